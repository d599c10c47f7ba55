//! `aaep audit`: verifies the audit chain, and exports what it holds.

use std::io::{self, Write};

use aaep_hub::Fault;
use aaep_hub::config::{Flags, Surroundings, load};
use aaep_hub::start::{HEADS_NAME, JOURNAL_NAME};
use aaep_store::audit::{Filter, export, verify};
use aaep_store::{Head, Noted, Reader};
use aaep_types::Timestamp;
use aaep_types::json::Writer;

use crate::arguments::{AuditCommand, AuditOptions, ExportOptions, Place, VerifyOptions};
use crate::demo::NAME as DEMO_NAME;
use crate::exit::{self, Exit};

pub(crate) fn run(options: &AuditOptions, out: &mut impl Write) -> io::Result<Exit> {
    match &options.command {
        AuditCommand::Verify(options) => run_verify(options, out),
        AuditCommand::Export(options) => run_export(options, out),
    }
}

/// The journal of a hub, and what was noted of it outside.
pub(crate) fn open(place: &Place) -> Result<(Reader, Option<Noted>), String> {
    let flags =
        Flags { data: place.data.clone(), config: place.config.clone(), ..Flags::default() };
    let config = Surroundings::of_process()
        .and_then(|surroundings| load(&flags, &surroundings))
        .map_err(|fault: Fault| fault.to_string())?
        .config;
    let data = config.data.ok_or("The configuration says that nothing is kept.")?;
    let path = data.join(JOURNAL_NAME);
    let reader = Reader::open(&path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    // Before anything is read: a hub that works goes on meanwhile, and never back.
    // The demo notes beside a hub; a store's name is its own, so whoever knows it means this one.
    let places =
        config.state.iter().flat_map(|state| [state.clone(), state.with_file_name(DEMO_NAME)]);
    let noted =
        places.into_iter().find_map(|state| Head::look(&state.join(HEADS_NAME), reader.store()));
    Ok((reader, noted))
}

fn unable(text: &str) -> Exit {
    exit::say(text);
    Exit::Unable
}

fn run_verify(options: &VerifyOptions, out: &mut impl Write) -> io::Result<Exit> {
    let (reader, noted) = match open(&options.place) {
        Ok(opened) => opened,
        Err(text) => return Ok(unable(&text)),
    };
    let verified = verify(&reader, noted);
    if options.json {
        let mut line = Writer::new();
        line.open('{');
        let mut put = |name: &str, json: &str| {
            line.name(name);
            line.json(json);
            line.comma();
        };
        put("whole", if verified.is_ok() { "true" } else { "false" });
        match &verified {
            Ok(whole) => {
                put("records", &whole.records.to_string());
                put("end_is_known", if whole.end_is_known { "true" } else { "false" });
            }
            Err(bad) => {
                put("record", &bad.number.to_string());
                let mut text = Writer::new();
                text.string(&bad.what);
                put("text", &text.finish());
            }
        }
        line.close('}');
        writeln!(out, "{}", line.finish())?;
    } else {
        match &verified {
            Ok(whole) => {
                writeln!(out, "{} records, each as it was written.", whole.records)?;
                if !whole.end_is_known {
                    writeln!(
                        out,
                        "Nothing is noted outside of the journal, so nobody can tell whether records are missing at its end."
                    )?;
                }
            }
            Err(bad) => {
                writeln!(out, "{bad}")?;
                let before = bad.number.saturating_sub(1);
                writeln!(out, "{before} records before it are as they were written.")?;
            }
        }
    }
    Ok(if verified.is_ok() { Exit::Good } else { Exit::Wrong })
}

fn run_export(options: &ExportOptions, out: &mut impl Write) -> io::Result<Exit> {
    let (reader, _) = match open(&options.place) {
        Ok(opened) => opened,
        Err(text) => return Ok(unable(&text)),
    };
    let filter = Filter {
        since: options.since,
        until: options.until,
        agent: options.agent.clone(),
        user: options.user.clone(),
        kinds: options.kind.clone(),
    };
    match export(&reader, &filter, out) {
        Ok(_) => Ok(Exit::Good),
        // What is wrong with the journal; an output that cannot be written is the caller's to tell.
        Err(error) if error.kind() == io::ErrorKind::Other => {
            out.flush()?;
            exit::say(&format!("The journal cannot be read further: {error}."));
            Ok(Exit::Unable)
        }
        Err(error) => Err(error),
    }
}

/// A time, or a day: its beginning.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let day = format!("{text}T00:00:00Z");
    Timestamp::parse(text)
        .or_else(|_| Timestamp::parse(&day))
        .map_err(|_| "Write a day, 2026-05-24, or a time, 2026-05-24T14:00:00Z.".to_owned())
}
