//! `aaep audit`: verifies the audit chain, and exports what it holds.

mod running;
mod signed;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use aaep_engine::Erasure;
use aaep_hub::Fault;
use aaep_hub::cluster::{chain_key, copy_in};
use aaep_hub::config::{Flags, Surroundings, load};
use aaep_hub::start::{Erase, Erased, HEADS_NAME, JOURNAL_NAME, erase};
use aaep_store::audit::{
    Bad, Filter, OldCopy, RecordedErasure, Whole, export, export_csv, verify_with,
};
use aaep_store::{ChainKey, Head, Noted, Reader};
use aaep_types::Timestamp;
use aaep_types::json::Writer;

use crate::arguments::{
    AuditCommand, AuditOptions, EraseOptions, ExportFormat, ExportOptions, JournalOptions,
    VerifyOptions,
};
use crate::demo::NAME as DEMO_NAME;
use crate::exit::{self, Exit};
use crate::lines::{Plain, Visible, VisibleLines};
use signed::{SignatureCheck, Signed};

pub(crate) fn run(options: &AuditOptions, out: &mut impl Write) -> io::Result<Exit> {
    match &options.command {
        AuditCommand::Verify(options) => run_verify(options, out),
        AuditCommand::Export(options) => run_export(options, out),
        AuditCommand::Erase(options) => run_erase(options, out),
    }
}

/// The journal of a hub, and what lies outside of it.
pub(crate) struct Opened {
    /// Where it is.
    pub(crate) path: PathBuf,
    pub(crate) reader: Reader,
    noted: Option<Noted>,
    key: Option<ChainKey>,
    /// The name of another journal that was there when a hub worked with it last.
    replaced: Option<String>,
}

/// Opens the journal of a hub.
pub(crate) fn open(place: &JournalOptions) -> Result<Opened, String> {
    open_file(place, None)
}

/// The same, or another file.
fn open_file(place: &JournalOptions, file: Option<&Path>) -> Result<Opened, String> {
    let flags =
        Flags { data: place.data.clone(), config: place.config.clone(), ..Flags::default() };
    let config = Surroundings::of_process()
        .and_then(|surroundings| load(&flags, &surroundings))
        .map_err(|fault: Fault| fault.to_string())?
        .config;
    let path = match (file, &config.data) {
        (Some(file), _) => file.to_owned(),
        (None, Some(data)) => data.join(JOURNAL_NAME),
        (None, None) => return Err("The configuration says that nothing is kept.".into()),
    };
    if let (None, Some(key), Some(data)) = (file, &place.cluster_key, &config.data) {
        // The log itself is in the cluster's store; what is noted beside the copy is noted of that.
        let path = copy_in(data);
        let key = chain_key(key).map_err(|fault| fault.to_string())?;
        let reader = Reader::open(&path).map_err(|fault| format!("{}: {fault}", path.display()))?;
        return Ok(Opened { path, reader, noted: None, key: Some(key), replaced: None });
    }
    let reader = Reader::open(&path).map_err(|fault| format!("{}: {fault}", path.display()))?;
    // The demo notes beside a hub; a store's name is its own, so it can only mean this one.
    // Without a state directory the key lies in the data directory.
    let states =
        config.state.iter().flat_map(|state| [state.clone(), state.with_file_name(DEMO_NAME)]);
    let places: Vec<PathBuf> =
        states.map(|state| state.join(HEADS_NAME)).chain(config.data.clone()).collect();
    // Before anything is read: a hub that works goes on meanwhile, and never back.
    let noted = places.iter().find_map(|place| Head::look(place, reader.store()));
    let mut key = None;
    for place in &places {
        let path = ChainKey::path_of(place, reader.store());
        if key.is_none() {
            key = ChainKey::read(&path).map_err(|fault| fault.to_string())?;
        }
    }
    let held = |heads: &PathBuf| aaep_store::JournalMarker::of(heads, &path).ok()?.look();
    let replaced = places.iter().find_map(held).filter(|before| before != reader.store());
    Ok(Opened { path, reader, noted, key, replaced })
}

fn unable(text: &str) -> Exit {
    exit::say(text);
    Exit::Unable
}

/// A journal without a flaw, and how many yeses in it were signed.
struct IntactJournal {
    whole: Whole,
    signed: Signed,
}

/// What was found, and whether a note outside changed meanwhile.
fn verified(options: &VerifyOptions) -> Result<Result<IntactJournal, Bad>, String> {
    let Opened { reader, noted, key, replaced, .. } =
        open_file(&options.place, options.file.as_deref())?;
    let key = match &options.key {
        None => key,
        Some(path) => {
            let read = ChainKey::read(path).map_err(|fault| fault.to_string())?;
            Some(read.ok_or_else(|| format!("There is no key at {}.", path.display()))?)
        }
    };
    // A backup ends earlier than the journal, as it should.
    let noted = noted.filter(|_| options.file.is_none());
    if let Some(before) = replaced.filter(|_| options.file.is_none()) {
        let what = format!(
            "When a hub worked here last, this place held another journal: {before}. This one is {}.",
            reader.store()
        );
        return Ok(Err(Bad { number: 0, what }));
    }
    let mut signatures = SignatureCheck::default();
    let whole = verify_with(&reader, key.as_ref(), noted, |number, record| {
        signatures.look(number, record);
    });
    Ok(whole.and_then(|whole| Ok(IntactJournal { whole, signed: signatures.finish()? })))
}

fn run_verify(options: &VerifyOptions, out: &mut impl Write) -> io::Result<Exit> {
    let verified = match verified(options) {
        // A hub that started meanwhile has changed what the note said: look again.
        Ok(Err(_)) => verified(options),
        done => done,
    };
    let verified = match verified {
        Ok(verified) => verified,
        Err(text) => return Ok(unable(&text)),
    };
    if options.json {
        writeln!(out, "{}", Visible(&verified_as_json(&verified)))?;
    } else {
        say_verified(&verified, out)?;
    }
    Ok(match verified {
        Ok(IntactJournal { whole, .. }) if whole.key_is_known && whole.keyed_after.is_some() => {
            Exit::Good
        }
        Ok(_) => Exit::Unable,
        Err(_) => Exit::Wrong,
    })
}

fn say_verified(verified: &Result<IntactJournal, Bad>, out: &mut impl Write) -> io::Result<()> {
    let IntactJournal { whole, signed } = match verified {
        Ok(found) => found,
        Err(bad) => {
            writeln!(out, "{}", Plain(&bad.to_string()))?;
            if bad.number > 0 {
                let before = bad.number - 1;
                writeln!(out, "{before} records before it are as they were written.")?;
            }
            return Ok(());
        }
    };
    match whole.keyed_after {
        Some(after) if whole.key_is_known => {
            writeln!(out, "{} records, each as it was written.", whole.records)?;
            if after > 0 {
                writeln!(
                    out,
                    "Trust begins with record {}: those before it were written before the journal had its key, and could be changed unseen until then.",
                    after + 1
                )?;
            }
        }
        Some(_) => writeln!(
            out,
            "{} records; their numbers, checksums and columns agree. The journal's key is not here, so nobody can tell them from forged ones: name it with --key.",
            whole.records
        )?,
        None => writeln!(
            out,
            "{} records, each following from the one before it. They were written before journals had keys, so nobody can tell them from forged ones: see `aaep hub migrate`.",
            whole.records
        )?,
    }
    let Signed { all, unknown } = signed;
    if *all > 0 {
        writeln!(out, "Yeses signed with a passkey, each over its own action: {all}.")?;
    }
    if *unknown > 0 {
        writeln!(
            out,
            "For {unknown} of these, whose key it was is not known: it was registered before the audit named keys."
        )?;
    }
    if !whole.erasures.is_empty() {
        writeln!(
            out,
            "Of these, {} were erased; their numbers and links are whole:",
            whole.erased()
        )?;
    }
    for RecordedErasure { number, at, why, note, records } in &whole.erasures {
        let when = Timestamp::from_millis(at.div_euclid(1000));
        let when = when.map_or_else(String::new, |when| format!(" on {when}"));
        let why = match why {
            Erasure::Age => "they were too old",
            Erasure::Size => "the journal was too large",
            _ => "a person's data was erased",
        };
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        let line = format!("Record {number} erased {records}{when}: {why}{note}.");
        writeln!(out, "{}", Plain(&line))?;
    }
    if whole.to_remove > 0 {
        writeln!(
            out,
            "The bytes of {} of them are still in the file; the hub removes them.",
            whole.to_remove
        )?;
    }
    if !whole.end_is_known {
        writeln!(
            out,
            "What was noted outside of the journal is not here, so nobody can tell whether records are missing at its end."
        )?;
    }
    for copy in &whole.old_copies {
        let OldCopy { start, found, .. } = copy;
        writeln!(
            out,
            "Start {start}, at {}, found this ({}): what was written after the copy was made, or was cut off, is not here.",
            when(copy),
            Plain(found)
        )?;
    }
    Ok(())
}

fn when(copy: &OldCopy) -> String {
    let at = Timestamp::from_millis(copy.at / 1000);
    at.map_or_else(|| copy.at.to_string(), |at| at.to_string())
}

/// What was found by starts from old copies, as a JSON list.
fn old_copies_as_json(copies: &[OldCopy]) -> String {
    let mut list = Writer::new();
    list.open('[');
    for copy in copies {
        list.open('{');
        list.name("start");
        list.json(&copy.start.to_string());
        list.comma();
        for (name, text) in [("at", &when(copy)), ("found", &copy.found)] {
            list.name(name);
            list.string(text);
            list.comma();
        }
        list.close('}');
        list.comma();
    }
    list.close(']');
    list.finish()
}

fn verified_as_json(verified: &Result<IntactJournal, Bad>) -> String {
    let mut line = Writer::new();
    line.open('{');
    let mut put = |name: &str, json: &str| {
        line.name(name);
        line.json(json);
        line.comma();
    };
    let flag = |value: bool| if value { "true" } else { "false" };
    put("whole", flag(verified.is_ok()));
    match verified {
        Ok(IntactJournal { whole, signed }) => {
            put("records", &whole.records.to_string());
            put("signed", &signed.all.to_string());
            put("signed_with_unknown_key", &signed.unknown.to_string());
            put("erased", &whole.erased().to_string());
            put("to_remove", &whole.to_remove.to_string());
            put("erasures", &erasures_as_json(&whole.erasures));
            put("end_is_known", flag(whole.end_is_known));
            put("key_is_known", flag(whole.key_is_known));
            if let Some(after) = whole.keyed_after {
                put("trust_begins", &(after + 1).to_string());
            }
            put("old_copies", &old_copies_as_json(&whole.old_copies));
        }
        Err(bad) => {
            put("record", &bad.number.to_string());
            let mut text = Writer::new();
            text.string(&bad.what);
            put("text", &text.finish());
        }
    }
    line.close('}');
    line.finish()
}

fn erasures_as_json(erasures: &[RecordedErasure]) -> String {
    let mut out = Writer::new();
    out.open('[');
    for RecordedErasure { number, at, why, note, records } in erasures {
        out.open('{');
        let at = Timestamp::from_millis(at.div_euclid(1000)).map(|at| at.to_string());
        for (name, number) in [("record", number), ("records", records)] {
            out.name(name);
            out.json(&number.to_string());
            out.comma();
        }
        for (name, text) in
            [("at", &*at.unwrap_or_default()), ("why", why.as_str()), ("note", note)]
        {
            out.name(name);
            out.string(text);
            out.comma();
        }
        out.close('}');
        out.comma();
    }
    out.close(']');
    out.finish()
}

fn run_export(options: &ExportOptions, out: &mut impl Write) -> io::Result<Exit> {
    let reader = match open(&options.place) {
        Ok(opened) => opened.reader,
        Err(text) => return Ok(unable(&text)),
    };
    let filter = Filter {
        since: options.since,
        until: options.until,
        agent: options.agent.clone(),
        user: options.user.clone(),
        kinds: options.kind.clone(),
        runs: Vec::new(),
    };
    // Records hold what agents and people wrote.
    let lines = &mut VisibleLines::new(out);
    let done = match options.format {
        ExportFormat::Jsonl => export(&reader, &filter, lines),
        ExportFormat::Csv => export_csv(&reader, &filter, lines),
    };
    match done {
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

fn run_erase(options: &EraseOptions, out: &mut impl Write) -> io::Result<Exit> {
    if options.place.cluster_key.is_some() {
        return Ok(unable("Records of a cluster's log cannot be erased yet. Nothing was changed."));
    }
    if options.confirm && options.export.is_none() && !options.without_export {
        return Ok(unable(
            "Say where a copy goes first, with --export FILE, or that there shall be none, with --without-export.",
        ));
    }
    let flags = Flags {
        data: options.place.data.clone(),
        config: options.place.config.clone(),
        ..Flags::default()
    };
    if options.running {
        return match running::erase(options, &flags) {
            Ok((lines, done)) => {
                for line in lines {
                    writeln!(out, "{}", Plain(&line))?;
                }
                Ok(if done { Exit::Good } else { Exit::Wrong })
            }
            Err(text) => Ok(unable(&Plain(&text).to_string())),
        };
    }
    let request = Erase {
        user: &options.user,
        export: options.export.as_deref(),
        note: &options.note,
        confirmed: options.confirm,
    };
    let erased = Surroundings::of_process()
        .and_then(|surroundings| load(&flags, &surroundings))
        .and_then(|loaded| erase(&loaded.config, &request));
    match erased {
        Ok(Erased { lines, done }) => {
            for line in lines {
                writeln!(out, "{}", Plain(&line))?;
            }
            Ok(if done { Exit::Good } else { Exit::Wrong })
        }
        Err(fault) => Ok(unable(&fault.to_string())),
    }
}

/// A time, or a day: its beginning.
pub(crate) fn time(text: &str) -> Result<Timestamp, String> {
    let day = format!("{text}T00:00:00Z");
    Timestamp::parse(text)
        .or_else(|_| Timestamp::parse(&day))
        .map_err(|_| "Write a day, 2026-05-24, or a time, 2026-05-24T14:00:00Z.".to_owned())
}
