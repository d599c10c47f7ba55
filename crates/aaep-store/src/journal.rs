//! The contract between the engine's records and whatever keeps them.

use std::fmt;

/// One record on its way to the journal, as `Output::Append` gives it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Its number; the first is 1, and they follow each other.
    pub number: u64,
    /// The record, encoded and checksummed by the engine.
    pub bytes: Vec<u8>,
}

/// Why records were not made durable, or cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum JournalFault {
    /// There is no room. Nothing of the batch was kept; it may be offered again.
    Full,
    /// Another program holds the file. Nothing of the batch was kept; it may be offered again.
    Busy,
    /// The store of the cluster does not answer, or has not said what became of the batch. The same is
    /// offered again.
    Away,
    /// Another node owns the shard. Nothing of the batch was kept, and nothing will be.
    Fenced,
    /// The disk of the node's copy has no room. What was offered is in the log; another node goes on.
    CopyFull,
    /// A write or sync failed, and the state on disk is unknown: reopen the journal and recover.
    Failed,
    /// A record that had been made durable is damaged. Nothing may be started from this journal.
    Damaged {
        /// Which one, counted from 0.
        index: usize,
    },
    /// The caller offered a record out of turn.
    OutOfTurn {
        /// The number that would have been next.
        expected: u64,
    },
}

impl fmt::Display for JournalFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            JournalFault::Full => f.write_str(
                "The journal is full. Nothing was kept; make room, then the same records can be written.",
            ),
            JournalFault::Busy => f.write_str(
                "Another program writes to the journal. Nothing was kept; end it, then the same records can be written.",
            ),
            JournalFault::Away => f.write_str(
                "The store of the cluster does not answer. What was asked and answered before is kept; all goes on when it is back.",
            ),
            JournalFault::Fenced => f.write_str(
                "Another node has taken over. What was durable is kept, and that node goes on with it.",
            ),
            JournalFault::CopyFull => f.write_str(
                "This node's copy of the log cannot grow. What was durable is kept, and another node can go on with it; make room on this machine.",
            ),
            JournalFault::Failed => f.write_str(
                "Writing the journal failed. What was durable before is kept; start again from it.",
            ),
            JournalFault::Damaged { index } => write!(
                f,
                "Record {index} of the journal was changed after it was written. Nothing was started; restore the journal from a copy.",
            ),
            JournalFault::OutOfTurn { expected } => {
                write!(f, "The next record has the number {expected}. Nothing was kept.")
            }
        }
    }
}

impl std::error::Error for JournalFault {}

impl JournalFault {
    /// Whether the same batch may be offered again.
    pub fn may_pass(self) -> bool {
        matches!(self, JournalFault::Full | JournalFault::Busy | JournalFault::Away)
    }
}

/// Keeps records durably and in order.
pub trait Journal {
    /// Makes a batch durable, all of it or, if there is no room, nothing. Every number has its turn.
    fn append(&mut self, batch: &[Entry]) -> Result<(), JournalFault>;

    /// Everything that is durable, in order. What this returned once it returns for ever: a journal
    /// that reads records which a crash may still take away makes them durable first.
    fn read(&mut self) -> Result<Vec<Vec<u8>>, JournalFault>;
}
