//! What a store has to offer for logs.

use std::fmt;

/// Why a store did not do something. Nothing was kept.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unavailable {
    /// The store cannot be reached, or has no majority.
    Away(String),
    /// The store has no room.
    Full,
    /// An earlier append is not settled, or this one has too many bytes.
    Misuse(&'static str),
}

impl fmt::Display for Unavailable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unavailable::Away(why) => write!(
                f,
                "The store does not answer ({why}). Nothing new is asked and no answer counts; all goes on when it is back.",
            ),
            Unavailable::Full => f.write_str("The store is full. Nothing was kept; make room."),
            Unavailable::Misuse(why) => write!(f, "Nothing was kept: {why}."),
        }
    }
}

impl std::error::Error for Unavailable {}

/// What became of bytes that were put at a place.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Put {
    /// These bytes are at this place, durably: put now, or by an earlier attempt.
    Durable,
    /// They are not there and will not be: other bytes are, or the log is too short for this place.
    Taken,
    /// Nobody knows. Put the same bytes there again.
    InDoubt,
    /// Nothing was sent.
    Refused(Unavailable),
}

/// Numbered places, the first of which is 1. Each is taken once, in order, and for ever.
///
/// Implementations never have two puts of one shard on their way, and may answer [`Put::Taken`] only
/// if the bytes cannot come to stand at this place later.
pub trait LogStorage {
    /// Puts these bytes at this place, if everything before it is taken and it is not. Putting the
    /// same bytes again is the same put.
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put;

    /// The bytes at the places from this one on, in order, at most so many of them (and fewer if
    /// they are large). Nothing is skipped: a hole ends what is given.
    fn get(&mut self, from: u64, at_most: usize) -> Result<Vec<Vec<u8>>, Unavailable>;

    /// The last place that is taken; 0 if none is. A hint: it may be behind.
    fn head(&mut self) -> Result<u64, Unavailable>;
}
