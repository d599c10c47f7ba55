//! The record that an auditor believes: verified from the first link to the last, and exported.
//!
//! ```no_run
//! use aaep_store::{ChainKey, Head, Reader, audit};
//! use std::path::Path;
//!
//! let reader = Reader::open(Path::new("journal.db"))?;
//! let heads = Path::new("heads");
//! let noted = Head::look(heads, reader.store());
//! let key = ChainKey::read(&ChainKey::path_of(heads, reader.store()))?;
//! match audit::verify(&reader, key.as_ref(), noted) {
//!     Ok(whole) => println!("{} records, all as they were written", whole.records),
//!     Err(bad) => println!("record {}: {}", bad.number, bad.what),
//! }
//! # Ok::<(), aaep_store::CannotOpen>(())
//! ```

mod export;

use aaep_engine::Record;
use rusqlite::Row;

use crate::chain::{self, Anchor, ChainHash, ChainKey};
use crate::head::{HeadCheck, Noted};
use crate::sqlite::{Columns, NAMES, OLD_COPY, Reader, Start};

pub use export::{Filter, export};

/// A chain without a flaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// How many records there are.
    pub records: u64,
    /// The hash of the last one.
    pub hash: ChainHash,
    /// Whether the end was compared with what was noted outside. If not, records may have been cut
    /// off at the end.
    pub end_is_known: bool,
    /// Whether everything after `keyed_after` was checked with the journal's key. If not,
    /// these records cannot be told from forged ones.
    pub key_is_known: bool,
    /// The last record from before the journal had its key: up to there, a
    /// change by anyone with write access goes unnoticed. 0 if it always had one; `None` if it has none yet.
    pub keyed_after: Option<u64>,
    /// Starts that found an old copy of the journal, or one whose end was cut off, the first one
    /// first: what was written after it is not here. Known only with the key.
    pub old_copies: Vec<OldCopy>,
}

/// A start that found an old copy of the journal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldCopy {
    /// The number of the start.
    pub start: u64,
    /// When it was, in microseconds since 1970.
    pub at: i64,
    /// What it found, in a few words.
    pub found: String,
}

/// The first record that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Its number; 0 if it is no record, but something beside them.
    pub number: u64,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if self.number == 0 {
            return write!(f, "Beside the records: {}", self.what);
        }
        write!(f, "Record {}: {}", self.number, self.what)
    }
}

impl std::error::Error for Bad {}

/// One row of the table, as it is read.
struct StoredRow {
    number: i64,
    at: i64,
    bytes: Vec<u8>,
    hash: ChainHash,
    columns: Columns,
}

const COLUMNS: &str =
    "number, at, bytes, hash, kind, session, request, agent, user, tool, call, text,
    irreversible, deadline, outcome, runs, decided_by, reason";

impl StoredRow {
    fn read(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            number: row.get(0)?,
            at: row.get(1)?,
            bytes: row.get(2)?,
            hash: row.get(3)?,
            columns: Columns::read(row, 4)?,
        })
    }
}

// enforces: I26, I33
/// Looks at every record: its number, its checksum, its link to those before it, and what the table
/// says about it; then at what is kept beside the records. What was noted outside says where the end
/// is. Without the key, links that were made with it cannot be checked, and the answer says so.
pub fn verify(reader: &Reader, key: Option<&ChainKey>, noted: Option<Noted>) -> Result<Whole, Bad> {
    let first = chain::first(&reader.store);
    let anchor = match reader.anchor {
        // From before journals had keys.
        None if reader.is_unkeyed() => Anchor { number: u64::MAX, hash: first },
        Some((anchor, seal)) if key.is_none_or(|key| anchor.seal(key, &reader.store) == seal) => {
            anchor
        }
        _ => {
            let what =
                "This is not the key of this journal, or somebody changed where its chain begins.";
            return Err(Bad { number: 0, what: what.into() });
        }
    };
    let (records, hash, found) = verify_records(reader, key, &anchor, first, noted)?;
    if records < reader.keyed_after().unwrap_or(0) {
        return Err(missing(records, anchor.number));
    }
    match HeadCheck::of(records, noted, found) {
        HeadCheck::Behind { noted } => return Err(missing(records, noted)),
        HeadCheck::Different { noted } => {
            let what = "It is not the one that was noted outside. This is another history of the same store.";
            return Err(Bad { number: noted, what: what.into() });
        }
        HeadCheck::Longer { noted } => {
            let what = format!(
                "It was written after the hub stopped in good order with record {noted}. The hub did not write it, or the note outside is from an old copy."
            );
            return Err(Bad { number: noted + 1, what });
        }
        HeadCheck::New | HeadCheck::Same | HeadCheck::Unknown => {}
    }
    let mut old_copies = Vec::new();
    if let Some(key) = key.filter(|_| !reader.is_unkeyed()) {
        let starts = reader
            .check_rows(key, noted)
            .map_err(|damage| Bad { number: damage.number, what: format!("{}.", damage.why) })?;
        let old = starts.into_iter().rev().filter(|(_, start)| start.trust.starts_with(OLD_COPY));
        let told = old.map(|(start, Start { at, trust, .. })| OldCopy { start, at, found: trust });
        old_copies.extend(told);
    }
    Ok(Whole {
        records,
        hash,
        end_is_known: noted.is_some(),
        key_is_known: key.is_some(),
        keyed_after: reader.keyed_after(),
        old_copies,
    })
}

fn missing(records: u64, up_to: u64) -> Bad {
    let what = format!(
        "It is missing, and so is everything up to {up_to}. The end was cut off, or this is an old copy."
    );
    Bad { number: records + 1, what }
}

/// How many records there are, the hash of the last, and that of the one that was noted.
fn verify_records(
    reader: &Reader,
    key: Option<&ChainKey>,
    anchor: &Anchor,
    first: ChainHash,
    noted: Option<Noted>,
) -> Result<(u64, ChainHash, Option<ChainHash>), Bad> {
    let (mut number, mut last) = (0, first);
    let mut found = noted.filter(|noted| noted.number == 0).map(|_| first);
    let failed = |number: u64| {
        move |error: rusqlite::Error| Bad { number, what: format!("It cannot be read: {error}.") }
    };
    let all = format!("SELECT {COLUMNS} FROM records ORDER BY number");
    let mut statement = reader.connection.prepare(&all).map_err(failed(1))?;
    let mut rows = statement.query([]).map_err(failed(1))?;
    while let Some(row) = rows.next().map_err(failed(number + 1))? {
        number += 1;
        let kept = StoredRow::read(row).map_err(failed(number))?;
        let record = decode(&kept, number).map_err(|what| Bad { number, what })?;
        if !anchor.follows(key, number, &last, (kept.at, &kept.bytes), &kept.hash) {
            let what = "It does not follow from the record before it: one of the two was changed, something between them was taken away, or it was not written with this journal's key.";
            return Err(Bad { number, what: what.into() });
        }
        check_columns(&kept, &record).map_err(|what| Bad { number, what })?;
        last = kept.hash;
        if noted.is_some_and(|noted| noted.number == number) {
            found = Some(last);
        }
    }
    Ok((number, last, found))
}

fn decode(kept: &StoredRow, number: u64) -> Result<Record, String> {
    if u64::try_from(kept.number) != Ok(number) {
        return Err(format!("It is missing; record {} follows.", kept.number));
    }
    match Record::decode(&kept.bytes) {
        Ok((inside, record, length)) if inside == number && length == kept.bytes.len() => {
            Ok(record)
        }
        Ok((inside, _, _)) => Err(format!("Its bytes are those of record {inside}.")),
        Err(why) => Err(format!("Its bytes are no record: {why}.")),
    }
}

fn check_columns(kept: &StoredRow, record: &Record) -> Result<(), String> {
    let said = Columns::of(record);
    if said != kept.columns {
        let column = differing(&said, &kept.columns);
        return Err(format!("The column `{column}` says something else than the record."));
    }
    Ok(())
}

/// The first column that differs.
fn differing(one: &Columns, other: &Columns) -> &'static str {
    let text = |columns: &Columns| -> Vec<String> {
        let show = |value: &dyn rusqlite::ToSql| value.to_sql().map(|sql| format!("{sql:?}"));
        columns.values().into_iter().map(|value| show(value).unwrap_or_default()).collect()
    };
    let (one, other) = (text(one), text(other));
    let place = one.iter().zip(&other).position(|(one, other)| one != other);
    place.map_or("?", |place| NAMES[place])
}
