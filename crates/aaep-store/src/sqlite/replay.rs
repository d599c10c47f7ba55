//! Reading every record back, in order. One thread reads ahead, verifies the chain and decodes, while
//! the other makes use of what was read: a start after a long day takes about as long as the slower of
//! the two.
#![allow(clippy::disallowed_methods)] // it is a thread

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use aaep_engine::Corrupt;
use rusqlite::{Connection, Row};

use super::Damage;
use super::gone::{self, Act, Gap, Runs};
use crate::chain::{Anchor, ChainHash, ChainKey};
use crate::head::{HeadCheck, Noted};

/// A batch is handed on when it has so many bytes.
const BATCH_BYTES: usize = 256 * 1024;

/// So many batches are read ahead at most.
const AHEAD: usize = 4;

/// Records that follow each other, each with its number and the time at which it was written.
type Batch<T> = Vec<(u64, i64, T)>;

/// What was read, all of it verified.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Replayed {
    /// How many records there are, erased ones among them.
    pub records: u64,
    /// How many of them are erased, and still take their room.
    pub to_remove: u64,
    /// When the last one was written, in microseconds since 1970; 0 if there is none.
    pub last_at: i64,
    /// How the journal stands to what was noted of it.
    pub head_check: HeadCheck,
}

/// The chain that records must follow.
#[derive(Clone, Copy)]
pub(super) struct Chain<'a> {
    pub(super) key: &'a ChainKey,
    pub(super) store: &'a str,
    pub(super) anchor: Anchor,
    /// What stands before the first record.
    pub(super) first: ChainHash,
    /// The last record and its hash, as known before.
    pub(super) last: (u64, ChainHash),
}

/// Where the reading thread has come to.
struct ReadState {
    records: u64,
    to_remove: u64,
    at: i64,
    hash: ChainHash,
    /// The hash of the record that was noted.
    noted: Option<ChainHash>,
}

// enforces: I3, I33
/// Hands every record to `each`, up to the last, whose number and hash are known. No record is decoded
/// or handed on before its place in the chain was verified.
pub(super) fn replay<T: Send>(
    connection: &mut Connection,
    chain: Chain<'_>,
    noted: Option<Noted>,
    decode: impl Fn(&[u8]) -> Result<T, Corrupt> + Send,
    mut each: impl FnMut(u64, i64, T) -> Result<(), Corrupt>,
) -> Result<Replayed, Damage> {
    thread::scope(|scope| {
        let (sender, batches) = sync_channel::<Batch<T>>(AHEAD);
        let reading = scope.spawn(move || read(connection, chain, noted, decode, &sender));
        // Ends when everything was read, or nothing more can be.
        while let Ok(batch) = batches.recv() {
            for (number, at, record) in batch {
                each(number, at, record).map_err(|why| Damage { number, why: why.to_string() })?;
            }
        }
        let panicked = |_| Damage { number: 0, why: "reading it broke off".into() };
        let read = reading.join().map_err(panicked)??;
        let missing = |after: u64| {
            let why = format!("records after {after} are missing");
            Damage { number: after + 1, why }
        };
        if read.records < chain.anchor.number {
            return Err(missing(read.records));
        }
        if (read.records, read.hash) != chain.last {
            return Err(missing(read.records.min(chain.last.0)));
        }
        let head_check = HeadCheck::of(read.records, noted, read.noted);
        let ReadState { records, to_remove, at: last_at, .. } = read;
        Ok(Replayed { records, to_remove, last_at, head_check })
    })
}

/// What is whole comes before the first damage.
fn read<T>(
    connection: &mut Connection,
    chain: Chain<'_>,
    noted: Option<Noted>,
    decode: impl Fn(&[u8]) -> Result<T, Corrupt>,
    batches: &SyncSender<Batch<T>>,
) -> Result<ReadState, Damage> {
    let (mut batch, mut length) = (Batch::new(), 0);
    let done = read_each(connection, chain, noted, |number, at, bytes| {
        batch.push((number, at, decode(bytes)?));
        length += bytes.len();
        if length < BATCH_BYTES {
            return Ok(true);
        }
        length = 0;
        let next = Vec::with_capacity(batch.len());
        Ok(batches.send(std::mem::replace(&mut batch, next)).is_ok())
    });
    // The receiver is gone only if it found damage earlier.
    let _ = batches.send(batch);
    done
}

/// Reads until `take` wants nothing more.
fn read_each(
    connection: &mut Connection,
    chain: Chain<'_>,
    noted: Option<Noted>,
    mut take: impl FnMut(u64, i64, &[u8]) -> Result<bool, Corrupt>,
) -> Result<ReadState, Damage> {
    let (told, mut found_gone) = (gone::told(connection)?, Runs::default());
    let all = "SELECT number, at, bytes, hash, kind = 'gap' FROM records ORDER BY number";
    let mut statement = connection.prepare(all)?;
    let mut rows = statement.query([])?;
    let wanted = noted.map(|noted| noted.number);
    let found = (wanted == Some(0)).then_some(chain.first);
    let mut last = ReadState { records: 0, to_remove: 0, at: 0, hash: chain.first, noted: found };
    loop {
        let next = last.records + 1;
        let damaged = |why: String| Damage { number: next, why };
        let row = rows.next().map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        let Some(row) = row else { break };
        let Some((number, at, bytes, hash, is_gap)) = fields(row) else {
            return Err(damaged("it is not what a record is".into()));
        };
        if is_gap {
            let number = u64::try_from(number).unwrap_or_default();
            let (key, store) = (Some(chain.key), chain.store);
            let gap = Gap::read((number, at, bytes, hash), (next, &last.hash), key, store)
                .map_err(|why| damaged(why.into()))?;
            if !told.contains_all(gap.first, gap.last) {
                return Err(damaged("it was taken away, and no record says so".into()));
            }
            last = ReadState { records: gap.last, at, hash, ..last };
            continue;
        }
        if u64::try_from(number) != Ok(next) {
            return Err(damaged(format!("it is missing, and record {number} follows")));
        }
        if !chain.anchor.follows(Some(chain.key), next, &last.hash, (at, bytes), &hash) {
            let why = "it was not written with this journal's key, or something before it was changed or taken away";
            return Err(damaged(why.into()));
        }
        last = ReadState { records: next, at, hash, ..last };
        if wanted == Some(next) {
            last.noted = Some(hash);
        }
        if let Some(act) = Act::of(next, bytes) {
            found_gone.add(&act.runs);
        }
        if told.contains(next) {
            last.to_remove += 1;
        } else if !take(next, at, bytes).map_err(|why| damaged(why.to_string()))? {
            return Ok(last);
        }
    }
    // What the table told before anything was verified is what the chain says, or nothing counts.
    if told != found_gone {
        let why = "a row says that records were erased, and no record does".into();
        return Err(Damage { number: 0, why });
    }
    Ok(last)
}

fn fields<'a>(row: &'a Row<'_>) -> Option<(i64, i64, &'a [u8], ChainHash, bool)> {
    let number = |at: usize| row.get_ref(at).ok()?.as_i64().ok();
    let blob = |at: usize| row.get_ref(at).ok()?.as_blob().ok();
    Some((number(0)?, number(1)?, blob(2)?, blob(3)?.try_into().ok()?, number(4)? == 1))
}
