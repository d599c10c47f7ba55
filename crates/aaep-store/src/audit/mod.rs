//! The record that an auditor believes: verified from the first link to the last, and exported.
//!
//! ```no_run
//! use aaep_store::{Head, Reader, audit};
//! use std::path::Path;
//!
//! let reader = Reader::open(Path::new("journal.db"))?;
//! let noted = Head::look(Path::new("heads"), reader.store());
//! match audit::verify(&reader, noted) {
//!     Ok(whole) => println!("{} records, all as they were written", whole.records),
//!     Err(bad) => println!("record {}: {}", bad.number, bad.what),
//! }
//! # Ok::<(), aaep_store::CannotOpen>(())
//! ```

mod export;

use aaep_engine::Record;
use rusqlite::Row;

use crate::chain::{self, Hash};
use crate::head::Noted;
use crate::sqlite::{Columns, NAMES, Reader};

pub use export::{Filter, export};

/// A chain without a flaw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Whole {
    /// How many records there are.
    pub records: u64,
    /// The hash of the last one.
    pub hash: Hash,
    /// Whether the end was compared with what was noted outside. If not, records may have been cut
    /// off at the end.
    pub end_is_known: bool,
}

/// The first record that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bad {
    /// Its number.
    pub number: u64,
    /// What is wrong.
    pub what: String,
}

impl std::fmt::Display for Bad {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Record {}: {}", self.number, self.what)
    }
}

impl std::error::Error for Bad {}

/// One row of the table, as it is read.
struct Kept {
    number: i64,
    at: i64,
    bytes: Vec<u8>,
    hash: Hash,
    columns: Columns,
}

const COLUMNS: &str =
    "number, at, bytes, hash, kind, session, request, agent, user, tool, call, text,
    irreversible, deadline, outcome, runs, decided_by, reason";

impl Kept {
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

// enforces: I26
/// Looks at every record: its number, its checksum, its link to those before it, and what the table
/// says about it. What was noted outside says where the end is.
pub fn verify(reader: &Reader, noted: Option<Noted>) -> Result<Whole, Bad> {
    let mut last = Whole { records: 0, hash: chain::first(&reader.store), end_is_known: false };
    let mut noted_hash = noted.filter(|noted| noted.number == 0).map(|_| last.hash);
    let failed = |number: u64| {
        move |error: rusqlite::Error| Bad { number, what: format!("It cannot be read: {error}.") }
    };
    let all = format!("SELECT {COLUMNS} FROM records ORDER BY number");
    let mut statement = reader.connection.prepare(&all).map_err(failed(1))?;
    let mut rows = statement.query([]).map_err(failed(1))?;
    while let Some(row) = rows.next().map_err(failed(last.records + 1))? {
        let number = last.records + 1;
        let kept = Kept::read(row).map_err(failed(number))?;
        judge(&kept, number, &last.hash).map_err(|what| Bad { number, what })?;
        last = Whole { records: number, hash: kept.hash, ..last };
        if noted.is_some_and(|noted| noted.number == number) {
            noted_hash = Some(kept.hash);
        }
    }
    let Some(noted) = noted else { return Ok(last) };
    match noted_hash {
        None => Err(Bad {
            number: last.records + 1,
            what: format!(
                "It is missing, and so is everything up to {}. The end was cut off, or this is an old copy.",
                noted.number
            ),
        }),
        Some(hash) if hash != noted.hash => Err(Bad {
            number: noted.number,
            what: "It is not the one that was noted outside. This is another history of the same store.".into(),
        }),
        Some(_) => Ok(Whole { end_is_known: true, ..last }),
    }
}

fn judge(kept: &Kept, number: u64, before: &Hash) -> Result<(), String> {
    if u64::try_from(kept.number) != Ok(number) {
        return Err(format!("It is missing; record {} follows.", kept.number));
    }
    let record = match Record::decode(&kept.bytes) {
        Ok((inside, record, length)) if inside == number && length == kept.bytes.len() => record,
        Ok((inside, _, _)) => return Err(format!("Its bytes are those of record {inside}.")),
        Err(why) => return Err(format!("Its bytes are no record: {why}.")),
    };
    if chain::next(before, kept.at, &kept.bytes) != kept.hash {
        let what = "It does not follow from the record before it: one of the two was changed, or something between them was taken away.";
        return Err(what.into());
    }
    let said = Columns::of(&record);
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
