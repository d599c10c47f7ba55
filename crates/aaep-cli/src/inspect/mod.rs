//! `aaep inspect`: tells what is in a recording, or in what a producer says now.

mod clock;
mod follow;
mod html;
mod picture;
mod room;
mod session;
mod story;
mod text;

use std::fs::OpenOptions;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use aaep_types::{Limits, recorded};
use clap::{Args, ValueEnum};

use crate::capture::Feed;
use crate::exit::{self, Exit};
use crate::input::Source;
use crate::judge::around;
use crate::lines::Plain;
use crate::listen::{HubsOptions, hubs};
use crate::reader::{Reader, Text};
use crate::signals::Signals;
use crate::validate::unable;
use follow::Following;
use story::{Added, Story};

/// Tell what is in a recording: sessions, states, tools, outputs, requests, and what is wrong.
///
/// A file is told as a whole. A producer, named by its URL, is told as it speaks.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0, and with 2 if there is nothing to tell or it cannot read or write.
At a producer, and with --follow, it runs until it is stopped (Ctrl-C, or SIGTERM); then it tells the whole.
The page runs no scripts and loads nothing. It holds what the recording holds: share it with care.

Examples:
  aaep inspect session.jsonl
  aaep inspect session.jsonl --format html --output session.html
  aaep inspect session.jsonl --follow
  aaep inspect session.jsonl --audit audit.jsonl
  aaep inspect http://127.0.0.1:8707/aaep/v1
See docs/tools.md.")]
pub(crate) struct InspectOptions {
    #[command(flatten)]
    pub(crate) from: HubsOptions,
    /// Plain lines, or one page.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    pub(crate) format: Format,
    /// Write to this new file, which only you can read. Without it: standard output.
    #[arg(long, short, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
    /// A copy of the audit (`aaep audit export`), which says who answered.
    #[arg(long, value_name = "FILE")]
    pub(crate) audit: Option<PathBuf>,
    /// Go on with a file that still grows, until stopped.
    #[arg(long)]
    pub(crate) follow: bool,
    /// Listen to a producer without a handshake.
    #[arg(long)]
    pub(crate) raw: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines that are heard one by one.
    Text,
    /// One page that needs nothing else.
    Html,
}

pub(crate) fn run(options: &InspectOptions, out: &mut impl Write) -> io::Result<Exit> {
    let [name] = &options.from.urls[..] else {
        return unable("name one file, or the URL of one producer.", out);
    };
    let schemes = [
        "http://", "https://", "ws://", "wss://", "grpc://", "grpcs://", "unix:", "stdio:", "pipe:",
    ];
    let is_live = schemes.iter().any(|scheme| name.starts_with(scheme));
    let mut file = match options.output.as_deref().map(create).transpose() {
        Ok(file) => file,
        Err(why) => return unable(&why, out),
    };
    let mut story = Story::new();
    let is_watched = is_live || options.follow;
    // What is shown as it comes; a page, and a file, are written at the end.
    let shows = is_watched && file.is_none() && options.format == Format::Text;
    let mut nowhere = io::sink();
    let shown: &mut dyn Write = if shows { out } else { &mut nowhere };
    let told = match is_live {
        true => watch(&mut story, options, shown),
        false => read(&mut story, &Source::of(Path::new(name)), options.follow, shown),
    };
    if let Err(why) = told {
        return unable(&why, out);
    }
    story.finish();
    if let Some(file) = &options.audit
        && let Err(why) = read_audit(&mut story, &Source::of(file))
    {
        return unable(&why, out);
    }
    // Where a file lay is nobody's business who is given the page.
    let name = match Path::new(name).file_name() {
        Some(file) if !is_live => &*file.to_string_lossy(),
        _ => name,
    };
    let with_rows = !shows;
    match &mut file {
        Some(file) => {
            tell(&mut *file, &story, options.format, name, with_rows)?;
            file.flush()?;
        }
        None => tell(out, &story, options.format, name, with_rows)?,
    }
    Ok(Exit::Good)
}

fn tell(
    out: &mut impl Write,
    story: &Story,
    format: Format,
    name: &str,
    with_rows: bool,
) -> io::Result<()> {
    match format {
        Format::Text => text::write(out, story, with_rows),
        Format::Html => html::write(out, story, name),
    }
}

/// A new file that only its owner can read.
fn create(path: &Path) -> Result<BufWriter<std::fs::File>, String> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let name = path.to_string_lossy();
    options
        .open(path)
        .map(BufWriter::new)
        .map_err(|error| format!("cannot write {}: {error}. Name another file.", Plain(&name)))
}

fn read(
    story: &mut Story,
    source: &Source,
    follow: bool,
    out: &mut dyn Write,
) -> Result<(), String> {
    let max_bytes = Limits::default().max_bytes;
    let mut input = source.open()?;
    if follow {
        input = Box::new(Following::new(input).map_err(|error| source.explain(&error))?);
    }
    let mut reader = Reader::new(input, max_bytes);
    while let Some(value) = reader.next(|_| false).map_err(|error| source.explain(&error))? {
        let mut added = Vec::new();
        for complaint in around(value.stray, value.text, max_bytes) {
            added.push(story.complain(value.line, &complaint));
        }
        if let Text::Message(bytes) = value.text {
            added.push(story.take(value.line, bytes));
        }
        if follow {
            let shown = added.iter().try_for_each(|added| show(out, story, added));
            shown.map_err(|error| error.to_string())?;
        }
    }
    match story.messages {
        0 => Err(format!("there is nothing to tell in {source}. Name a file that holds messages.")),
        _ => Ok(()),
    }
}

/// A record of the audit holds what was announced with it, besides what it is about.
const RECORD_BYTES: usize = 4 << 20;

/// Takes from a copy of the audit who decided the requests of the recording.
fn read_audit(story: &mut Story, source: &Source) -> Result<(), String> {
    let asked = story.asked();
    let mut reader = Reader::new(source.open()?, RECORD_BYTES);
    let mut decisions = 0_u64;
    while let Some(value) = reader.next(|_| false).map_err(|error| source.explain(&error))? {
        let Text::Message(bytes) = value.text else { continue };
        let Some(decided) = std::str::from_utf8(bytes).ok().and_then(recorded::decided) else {
            continue;
        };
        decisions += 1;
        if let Some(place) = asked.get(decided.asked_by.as_str()) {
            story.decided(*place, &decided.by);
        }
    }
    match decisions {
        0 => Err(format!(
            "no answer is recorded in {source}. Make it on the hub's machine: aaep audit export > FILE."
        )),
        _ => Ok(()),
    }
}

/// Tells each message as it comes, until it is stopped or the producer ends.
fn watch(story: &mut Story, options: &InspectOptions, out: &mut dyn Write) -> Result<(), String> {
    let hub = hubs(&options.from)?.pop().ok_or("no producer was found. Name one.")?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| error.to_string())?;
    runtime.block_on(async {
        let mut signals = Signals::new().map_err(|fault| fault.to_string())?;
        let mut feed = Feed::new(hub, options.raw, false, None);
        tokio::select! {
            () = signals.stop() => return Ok(()),
            connected = feed.connect() => connected.map_err(|why| format!("nobody is heard: {why}"))?,
        }
        exit::say("Listening. Stop with Ctrl-C.");
        loop {
            let next = tokio::select! {
                () = signals.stop() => return Ok(()),
                next = feed.next() => next,
            };
            match next {
                Ok(Some(message)) => {
                    let line = story.messages + 1;
                    let added = story.take(line, message.as_bytes());
                    show(out, story, &added).map_err(|error| error.to_string())?;
                }
                Ok(None) => exit::say("A message was too long, and is left out."),
                Err(why) => {
                    exit::say(&format!("The end: {}.", Plain(why.trim_end_matches('.'))));
                    return Ok(());
                }
            }
        }
    })
}

fn show(out: &mut dyn Write, story: &Story, added: &Added) -> io::Result<()> {
    if let Some((session, row)) = added.row
        && let Some(session) = story.sessions.get(session)
        && let Some(row) = session.rows.get(row)
    {
        write!(out, "{}", Plain(&session.id))?;
        text::row(&mut *out, session, row)?;
    } else {
        added.remarks.iter().try_for_each(|remark| text::remark(&mut *out, remark))?;
    }
    out.flush()
}
