//! Erasing what is kept about a person, while no hub works with the journal.

use std::io::{self, Write};
use std::path::Path;

use aaep_engine::Record;
use aaep_store::audit::{Filter, Plan, Which, export, plan};
use aaep_store::{CannotOpen, Entry, JournalFault, Note, Reader, Unit};

use super::journal::{JOURNAL_NAME, cannot_open};
use super::{DataDirectory, Kept};
use crate::config::Config;
use crate::{Fault, clock, files};

/// What the words of an erasure may have, in bytes.
const NOTE_BYTES: usize = 256;

/// In microseconds. What ended less than a day ago is still needed: agents may repeat calls (C6).
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Rows that are taken over at once.
const ROWS: usize = 10_000;

/// Whose records are to be erased, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Erase<'a> {
    /// The user.
    pub user: &'a str,
    /// Where a copy of the records goes first.
    pub export: Option<&'a Path>,
    /// The operator's words. They stay in the journal.
    pub note: &'a str,
    /// Whether it is to be done, or only told.
    pub confirmed: bool,
}

/// What was found, and done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Erased {
    /// In sentences.
    pub lines: Vec<String>,
    /// Whether there is nothing left to do now. If not, nothing was changed.
    pub done: bool,
}

// enforces: S13
/// Erases what is kept about a person from the journal of a data directory that no hub works with.
pub fn erase(config: &Config, request: &Erase<'_>) -> Result<Erased, Fault> {
    let Some(data) = &config.data else {
        let what = "The configuration says that nothing is kept.".into();
        return Err(Fault::System { what });
    };
    if request.note.len() > NOTE_BYTES || request.note.contains(request.user) {
        let what = format!(
            "The words of --note stay in the journal: at most {NOTE_BYTES} bytes, and not the name of the person."
        );
        return Err(Fault::System { what });
    }
    let path = data.join(JOURNAL_NAME);
    let failed = |fault: CannotOpen| cannot_open(&path, &fault);
    if !path.exists() {
        return Err(failed(CannotOpen::Missing));
    }
    let data = DataDirectory::open(data)?;
    let mut kept = Kept::open(&data, config.state.as_deref())?;
    let reader = Reader::open(&path).map_err(failed)?;
    let over_before = clock::now().wall.as_micros() - DAY;
    let which = Which::OfUser(request.user);
    let plan = plan(&reader, kept.journal.key(), kept.noted, which, over_before);
    let plan = plan.map_err(|bad| Fault::System {
        what: format!("{bad} Nothing was changed. See `aaep audit verify`."),
    })?;
    let mut lines = vec![format!("Journal: {}", path.display())];
    lines.extend(told(&plan));
    if plan.records == 0 {
        return Ok(Erased { lines, done: plan.still_needed == 0 });
    }
    if !request.confirmed {
        lines.push("Nothing was changed. To erase them, say --confirm, and --export FILE for a copy or --without-export for none.".into());
        return Ok(Erased { lines, done: false });
    }
    if let Some(file) = request.export {
        write_copy(&reader, &plan, file).map_err(|error| files::cannot_write(file, &error))?;
        lines.push(format!("A copy is in {}.", file.display()));
    }
    drop(reader);
    let number = record(&mut kept, &plan, request.note)?;
    lines.push(format!("Erased. Record {number} of the journal says so."));
    lines.push(match remove(&mut kept) {
        Ok(true) => "Their bytes are removed from its files. Backups that were made before still hold them.".into(),
        Ok(false) => "Another program reads the journal, so their bytes are still in its file. They count no more; the hub removes the bytes when it is started.".into(),
        Err(fault) => format!("{fault} Their bytes are still in its file. They count no more; the hub removes the bytes when it is started."),
    });
    Ok(Erased { lines, done: true })
}

fn told(plan: &Plan) -> Vec<String> {
    let Plan { records, sessions, still_needed, .. } = plan;
    let mut lines = vec![match records {
        0 => "Nothing is kept about this person that can be erased now.".to_owned(),
        _ => format!("{records} records can be erased, of {} sessions.", sessions.len()),
    }];
    if *still_needed > 0 {
        lines.push(format!("{still_needed} sessions are open, or ended less than a day ago, and stay. Erase again when they are over."));
    }
    lines
}

/// Everything that is erased, as JSON Lines, for the owner alone and on the disk.
fn write_copy(reader: &Reader, plan: &Plan, to: &Path) -> io::Result<()> {
    write(reader, &Filter { runs: plan.runs.clone(), ..Filter::default() }, to)
}

fn write(reader: &Reader, filter: &Filter, to: &Path) -> io::Result<()> {
    let mut file = io::BufWriter::new(files::open_private(to, true)?);
    export(reader, filter, &mut file)?;
    file.flush()?;
    file.get_ref().sync_all()
}

/// Writes a copy of everything that is kept about a person, while a hub may work with the journal.
pub fn copy_of(config: &Config, user: &str, to: &Path) -> Result<(), Fault> {
    let Some(data) = &config.data else {
        let what = "The configuration says that nothing is kept.".into();
        return Err(Fault::System { what });
    };
    let path = data.join(JOURNAL_NAME);
    let reader = Reader::open(&path).map_err(|fault| cannot_open(&path, &fault))?;
    let filter = Filter { user: Some(user.to_owned()), ..Filter::default() };
    write(&reader, &filter, to).map_err(|error| files::cannot_write(to, &error))
}

/// Writes the erasure down; from then on the records do not count.
fn record(kept: &mut Kept, plan: &Plan, note: &str) -> Result<u64, Fault> {
    let is_known = kept.noted.is_some();
    // From here on it is no longer the journal of a hub that stopped in good order.
    if is_known {
        kept.note_head()?;
    }
    let number = kept.journal.head().0 + 1;
    let record = Record::Erased { why: plan.why, note: note.into(), runs: plan.runs.clone() };
    let forget = plan.with_calls.iter().map(|session| session.to_string());
    let unit = Unit {
        entries: vec![Entry { number, bytes: record.encode(number) }],
        notes: forget.map(|session| Note::ForgetCalls { session }).collect(),
    };
    let path = kept.journal.path().to_owned();
    let failed = |fault: JournalFault| {
        Fault::file(&path, fault.to_string(), "Free some space, or check the disk.")
    };
    kept.journal.keep(&[unit]).map_err(failed)?;
    // One that nobody noted may be an old copy, and stays one.
    if let (true, Some(head)) = (is_known, &mut kept.head) {
        let stopped = kept.noted.is_some_and(|noted| noted.stopped.is_some());
        let position = match stopped {
            true => kept.journal.final_position().map_err(failed)?,
            false => kept.journal.position(),
        };
        head.note(position).map_err(|error| files::cannot_write(head.path(), &error))?;
    }
    Ok(number)
}

/// Takes the bytes away; false if another program has the journal open.
fn remove(kept: &mut Kept) -> Result<bool, JournalFault> {
    let mut new = kept.journal.compaction()?;
    while new.step(ROWS)? > 0 {}
    kept.journal.replace_with(&mut new)
}
