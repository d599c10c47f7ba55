//! Reading every record back, in order. One thread reads ahead while the other makes use of what was
//! read: a start after a long day takes about as long as the slower of the two.
#![allow(clippy::disallowed_methods)] // it is a thread

use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread;

use aaep_engine::Corrupt;
use rusqlite::Connection;

use super::Damage;

/// A batch is handed on when it has so many bytes.
const BATCH_BYTES: usize = 256 * 1024;

/// So many batches are read ahead at most.
const AHEAD: usize = 4;

/// Records that follow each other.
#[derive(Default)]
struct Batch {
    bytes: Vec<u8>,
    /// Where each one ends.
    ends: Vec<usize>,
}

// enforces: I3
/// Hands every record to `each`, up to the last, whose number is known.
pub(super) fn replay(
    connection: &mut Connection,
    last: u64,
    mut each: impl FnMut(&[u8]) -> Result<(), Corrupt>,
) -> Result<u64, Damage> {
    thread::scope(|scope| {
        let (sender, batches) = sync_channel(AHEAD);
        let reading = scope.spawn(move || read(connection, &sender));
        let mut number = 0;
        // Ends when everything was read, or nothing more can be.
        while let Ok(batch) = batches.recv() {
            let mut start = 0;
            for end in batch.ends {
                number += 1;
                each(&batch.bytes[start..end])
                    .map_err(|why| Damage { number, why: why.to_string() })?;
                start = end;
            }
        }
        let panicked = |_| Damage { number: 0, why: "reading it broke off".into() };
        reading.join().map_err(panicked)??;
        if number != last {
            let why = format!("records after {number} are missing");
            return Err(Damage { number: number + 1, why });
        }
        Ok(number)
    })
}

/// What is whole comes before the first damage.
fn read(connection: &mut Connection, batches: &SyncSender<Batch>) -> Result<(), Damage> {
    let mut batch = Batch::default();
    let done = read_each(connection, |bytes| {
        batch.bytes.extend_from_slice(bytes);
        batch.ends.push(batch.bytes.len());
        if batch.bytes.len() < BATCH_BYTES {
            return true;
        }
        let next = Batch { bytes: Vec::with_capacity(batch.bytes.capacity()), ends: Vec::new() };
        batches.send(std::mem::replace(&mut batch, next)).is_ok()
    });
    // Whoever does not take it has found damage before this.
    let _ = batches.send(batch);
    done
}

/// Reads until `take` wants nothing more.
fn read_each(
    connection: &mut Connection,
    mut take: impl FnMut(&[u8]) -> bool,
) -> Result<(), Damage> {
    let mut statement = connection.prepare("SELECT number, bytes FROM records ORDER BY number")?;
    let mut rows = statement.query([])?;
    for next in 1.. {
        let damaged = |why: String| Damage { number: next, why };
        let row = rows.next().map_err(|error| damaged(format!("it cannot be read: {error}")))?;
        let Some(row) = row else { break };
        let found = row.get_ref(0).ok().and_then(|value| value.as_i64().ok());
        let bytes = row.get_ref(1).ok().and_then(|value| value.as_blob().ok());
        let Some((found, bytes)) = found.zip(bytes) else {
            return Err(damaged("it is not what a record is".into()));
        };
        if u64::try_from(found) != Ok(next) {
            return Err(damaged(format!("it is missing, and record {found} follows")));
        }
        if !take(bytes) {
            break;
        }
    }
    Ok(())
}
