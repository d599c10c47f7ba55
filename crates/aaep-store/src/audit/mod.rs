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

mod csv;
mod export;
mod plan;

use aaep_engine::{Erasure, Record};
use rusqlite::Row;

use crate::chain::{self, Anchor, ChainHash, ChainKey};
use crate::head::{HeadCheck, Noted};
use crate::sqlite::gone::{self, Act, Gap, Runs};
use crate::sqlite::{Columns, NAMES, OLD_COPY, Reader, Start};

pub use csv::export_csv;
pub use export::{Filter, export};
pub use plan::{Plan, Which, plan};

/// A chain without a flaw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Whole {
    /// How many records there are, erased ones among them.
    pub records: u64,
    /// Every erasure, in order.
    pub erasures: Vec<RecordedErasure>,
    /// How many erased records still take their room.
    pub to_remove: u64,
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

/// An erasure that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedErasure {
    /// The number of the record that says so.
    pub number: u64,
    /// When it was written, in microseconds since 1970.
    pub at: i64,
    /// Why.
    pub why: Erasure,
    /// The operator's words.
    pub note: String,
    /// How many records were erased.
    pub records: u64,
}

impl Whole {
    /// How many records were erased.
    pub fn erased(&self) -> u64 {
        self.erasures.iter().map(|erasure| erasure.records).sum()
    }
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
    verify_each(reader, key, noted, |_, _| {})
}

/// The same; `each` sees every record that was not erased, with its number, once it was verified.
pub fn verify_with(
    reader: &Reader,
    key: Option<&ChainKey>,
    noted: Option<Noted>,
    mut each: impl FnMut(u64, &Record),
) -> Result<Whole, Bad> {
    verify_each(reader, key, noted, |row, record| each(row.number.unsigned_abs(), record))
}

fn verify_each(
    reader: &Reader,
    key: Option<&ChainKey>,
    noted: Option<Noted>,
    each: impl FnMut(&StoredRow, &Record),
) -> Result<Whole, Bad> {
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
    let chain = Chain { key, anchor: &anchor, first, noted };
    let Verified { number: records, last: hash, found, erasures, to_remove } =
        verify_records(reader, chain, each)?;
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
        erasures,
        to_remove,
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

/// What records are held against.
struct Chain<'a> {
    key: Option<&'a ChainKey>,
    anchor: &'a Anchor,
    first: ChainHash,
    noted: Option<Noted>,
}

/// Where the chain was followed to.
struct Verified {
    /// The last record, and its hash.
    number: u64,
    last: ChainHash,
    /// The hash of the record that was noted.
    found: Option<ChainHash>,
    erasures: Vec<RecordedErasure>,
    to_remove: u64,
}

fn verify_records(
    reader: &Reader,
    chain: Chain<'_>,
    mut each: impl FnMut(&StoredRow, &Record),
) -> Result<Verified, Bad> {
    let Chain { key, anchor, first, noted } = chain;
    let failed = |number: u64| {
        move |error: rusqlite::Error| Bad { number, what: format!("It cannot be read: {error}.") }
    };
    // One moment for all of it.
    let moment = reader.connection.unchecked_transaction().map_err(failed(1))?;
    let (told, mut found_erased) = (gone::told(&moment).map_err(failed(1))?, Runs::default());
    let found = noted.filter(|noted| noted.number == 0).map(|_| first);
    let mut state = Verified { number: 0, last: first, found, erasures: Vec::new(), to_remove: 0 };
    let all = format!("SELECT {COLUMNS} FROM records ORDER BY number");
    let mut statement = moment.prepare(&all).map_err(failed(1))?;
    let mut rows = statement.query([]).map_err(failed(1))?;
    while let Some(row) = rows.next().map_err(failed(state.number + 1))? {
        let (number, before) = (state.number + 1, state.last);
        let bad = |what: String| Bad { number, what };
        let kept = StoredRow::read(row).map_err(failed(number))?;
        if &*kept.columns.kind == gone::KIND {
            let last = verify_gap(&kept, (number, &before), key, &reader.store, &told);
            (state.number, state.last) = (last.map_err(bad)?, kept.hash);
            continue;
        }
        let record = decode(&kept, number).map_err(bad)?;
        if !anchor.follows(key, number, &before, (kept.at, &kept.bytes), &kept.hash) {
            let what = "It does not follow from the record before it: one of the two was changed, something between them was taken away, or it was not written with this journal's key.";
            return Err(bad(what.into()));
        }
        check_columns(&kept, &record).map_err(bad)?;
        if let Some(Act { why, note, runs, .. }) = Act::of(number, &kept.bytes) {
            found_erased.add(&runs);
            let records = runs.iter().map(|(first, last)| last - first + 1).sum();
            state.erasures.push(RecordedErasure { number, at: kept.at, why, note, records });
        }
        if told.contains(number) {
            state.to_remove += 1;
        } else {
            each(&kept, &record);
        }
        (state.number, state.last) = (number, kept.hash);
        if noted.is_some_and(|noted| noted.number == number) {
            state.found = Some(kept.hash);
        }
    }
    if told != found_erased {
        let what = "a row says that records were erased, and no record does.".into();
        return Err(Bad { number: 0, what });
    }
    Ok(state)
}

/// Looks at a row that stands for erased records; says which is the last of them.
fn verify_gap(
    kept: &StoredRow,
    next: (u64, &ChainHash),
    key: Option<&ChainKey>,
    store: &str,
    told: &Runs,
) -> Result<u64, String> {
    let row = (kept.number.unsigned_abs(), kept.at, &*kept.bytes, kept.hash);
    let gap = Gap::read(row, next, key, store).map_err(|why| format!("In its place {why}."))?;
    if !told.contains_all(gap.first, gap.last) {
        return Err("It was taken away, and no record says that it was erased.".into());
    }
    let plain = Columns { kind: gone::KIND.into(), ..Columns::default() };
    if kept.columns != plain {
        let column = differing(&plain, &kept.columns);
        return Err(format!("The column `{column}` says something of an erased record."));
    }
    Ok(gap.last)
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
