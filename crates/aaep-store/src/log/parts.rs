//! Group commits that are too much for one entry: one step of an engine may end thousands of requests
//! at once, and is durable as a whole or not at all.

#[cfg(feature = "sqlite")]
use super::entry::MAX_ENTRY_BYTES;
use super::entry::{Body, LogEntry};
use super::wire::Reader;
#[cfg(feature = "sqlite")]
use super::wire::Writer;
#[cfg(feature = "sqlite")]
use crate::unit::Note;
use crate::unit::Unit;

#[cfg(feature = "sqlite")]
/// How much of a group commit one entry holds: the rest is what an entry says of itself.
pub(crate) const ROOM: usize = MAX_ENTRY_BYTES - 4096;

#[cfg(feature = "sqlite")]
/// How many bytes a unit takes in an entry, at most.
pub(crate) fn size(unit: &Unit) -> usize {
    let entries = unit.entries.iter().map(|entry| entry.bytes.len() + 16);
    entries.sum::<usize>() + unit.notes.iter().map(Note::size).sum::<usize>() + 16
}

// enforces: I11
#[cfg(feature = "sqlite")]
/// What these units are in the log: one entry, or several that count together.
pub(super) fn bodies(units: &[Unit]) -> Vec<Body> {
    if units.iter().map(size).sum::<usize>() <= ROOM {
        return vec![Body::Units(units.to_vec())];
    }
    let mut all = Writer::default();
    all.units(units);
    let parts = all.0.chunks(ROOM).map(<[u8]>::to_vec);
    let mut bodies: Vec<Body> = parts.map(|bytes| Body::Part { is_last: false, bytes }).collect();
    if let Some(Body::Part { is_last, .. }) = bodies.last_mut() {
        *is_last = true;
    }
    bodies
}

/// Puts parts together again.
#[derive(Debug, Default)]
pub struct Parts(Vec<u8>);

/// The parts of a group commit were put together, and are not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotWhole;

impl Parts {
    /// Takes the next entry of the log; gives the units that are whole with it. What the owner before a
    /// claim did not finish never counts.
    pub fn take(&mut self, entry: &mut LogEntry) -> Result<Option<Vec<Unit>>, NotWhole> {
        match &mut entry.body {
            Body::Units(units) if self.0.is_empty() => Ok(Some(std::mem::take(units))),
            Body::Units(_) => Err(NotWhole),
            Body::Part { is_last, bytes } => {
                self.0.append(bytes);
                if !*is_last {
                    return Ok(None);
                }
                let whole = std::mem::take(&mut self.0);
                let mut reader = Reader(&whole);
                let units = reader.units().filter(|_| reader.0.is_empty());
                units.map(Some).ok_or(NotWhole)
            }
            Body::Claimed { .. } | Body::Released => {
                self.0.clear();
                Ok(None)
            }
        }
    }
}
