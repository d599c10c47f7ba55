//! `aaep conformance`: speaks with a producer as several subscribers, and reports.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_conformance::suite::{Target, Texts, producer};
use clap::{Args, Subcommand, ValueEnum};

use crate::exit::Exit;
use crate::lines::Plain;
use crate::validate::unable;

/// Check a producer from outside, and say at which level it conforms.
#[derive(Args, Debug)]
pub(crate) struct ConformanceOptions {
    #[command(subcommand)]
    side: Side,
}

#[derive(Debug, Subcommand)]
enum Side {
    Producer(ProducerOptions),
}

/// Check a producer over HTTP, at level 1 or 2.
///
/// It listens on URL/events and speaks to URL/messages, as published clients do.
/// It begins sessions, answers, and answers as nobody should. Use it on what moves no real money.
#[derive(Args, Debug)]
#[command(after_help = "\
It ends with 0 if the level was granted, 1 if not, and 2 if the run was cut short.
A check that did not get what it needs is not exercised, and then the level is not granted.
Level 3, subscribers and other transports are not checked yet.

Examples:
  aaep conformance producer http://127.0.0.1:8707/aaep/v1 --level 1
  aaep conformance producer http://127.0.0.1:8000 --text confirm=\"book a room\" --format html")]
struct ProducerOptions {
    /// The address of the producer, such as http://127.0.0.1:8707/aaep/v1.
    #[arg(value_name = "URL")]
    url: String,
    /// The level to check.
    #[arg(long, value_parser = clap::value_parser!(u8).range(1..=2), default_value_t = 2)]
    level: u8,
    /// How the report is printed.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// The token of somebody who may answer.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// The token of somebody who may not answer.
    #[arg(long, value_name = "FILE")]
    stranger_token_file: Option<PathBuf>,
    /// What to say for tool, confirm, short, clarify, stream, fail, cancel or progress.
    #[arg(long, value_name = "NAME=TEXT")]
    text: Vec<String>,
    /// Seconds that the whole run may take.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=3600), default_value_t = 120)]
    deadline: u64,
    /// Seconds to wait for what should happen.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=600), default_value_t = 10)]
    patience: u64,
    /// Believe whatever listens on a loopback address.
    #[arg(long)]
    trust_loopback: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
    Junit,
    Html,
}

pub(crate) fn run(options: ConformanceOptions, out: &mut impl Write) -> io::Result<Exit> {
    let Side::Producer(options) = options.side;
    let target = match target(&options) {
        Ok(target) => target,
        Err(why) => return unable(&why, out),
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let report = runtime.block_on(producer::run(&target));
    let text = match options.format {
        Format::Text => report.to_text(),
        Format::Json => report.to_json(),
        Format::Junit => report.to_junit(),
        Format::Html => report.to_html(),
    };
    out.write_all(text.as_bytes())?;
    Ok(match (&report.cut_short, report.granted()) {
        (Some(_), _) => Exit::Unable,
        (None, Some(level)) if level >= options.level => Exit::Good,
        _ => Exit::Wrong,
    })
}

fn target(options: &ProducerOptions) -> Result<Target, String> {
    let mut texts = Texts::default();
    for given in &options.text {
        let (name, text) = given.split_once('=').unwrap_or((given, ""));
        let place = match name {
            "tool" => &mut texts.tool,
            "confirm" => &mut texts.confirm,
            "short" => &mut texts.short,
            "clarify" => &mut texts.clarify,
            "stream" => &mut texts.stream,
            "fail" => &mut texts.fail,
            "cancel" => &mut texts.cancel,
            "progress" => &mut texts.progress,
            _ => return Err(format!("--text {} names nothing. See --help.", Plain(name))),
        };
        text.clone_into(place);
    }
    Ok(Target {
        token: options.token_file.as_deref().map(read_token).transpose()?,
        stranger: options.stranger_token_file.as_deref().map(read_token).transpose()?,
        trust_loopback: options.trust_loopback,
        texts,
        patience: Duration::from_secs(options.patience),
        deadline: Duration::from_secs(options.deadline),
        ..Target::new(&options.url, options.level)
    })
}

fn read_token(path: &Path) -> Result<String, String> {
    let shown = path.to_string_lossy();
    let text = std::fs::read_to_string(path);
    let text =
        text.map_err(|error| format!("cannot read {}: {error}. Name a token.", Plain(&shown)))?;
    Ok(text.trim().to_owned())
}
