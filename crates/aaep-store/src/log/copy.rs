//! One node's copy of a shard's log, in the layout of the embedded journal: so that recovery, and
//! whoever looks into it, find what they know.

use super::entry::{Body, LogEntry};
use super::parts::{NotWhole, Parts};
use crate::journal::JournalFault;
use crate::sqlite::{Sqlite, Start};

/// So many entries are copied in one transaction. A copy that was not finished is made anew.
const GROUP: usize = 1000;

/// A copy that is being made. Nothing of it is synced: it can be made again from the log.
#[derive(Debug)]
pub struct CopyOfLog {
    journal: Sqlite,
    grouped: usize,
    parts: Parts,
}

impl CopyOfLog {
    /// Begins a copy in an empty journal.
    pub fn new(mut journal: Sqlite) -> Result<Self, JournalFault> {
        journal.is_disposable()?;
        journal.begin_group()?;
        Ok(Self { journal, grouped: 0, parts: Parts::default() })
    }

    /// Takes the next entry of the log over. A claim is a start of a hub there.
    pub fn take(&mut self, mut entry: LogEntry) -> Result<(), JournalFault> {
        match self.parts.take(&mut entry) {
            Ok(Some(units)) => self.journal.keep_in_group(&units, entry.at)?,
            Ok(None) => {}
            Err(NotWhole) => return Err(JournalFault::Failed),
        }
        match &entry.body {
            Body::Claimed { .. } => {
                let trust = format!("claimed by {}", entry.node);
                // Another machine's boot clock says nothing here.
                let (version, boot) = (String::new(), String::new());
                let at = entry.at;
                let start = Start { at, version, boot, clock: 0, jumped: false, trust };
                self.journal.note_start_at(&start)?;
            }
            Body::Units(_) | Body::Part { .. } | Body::Released => {}
        }
        self.grouped += 1;
        if self.grouped >= GROUP {
            self.grouped = 0;
            self.journal.end_group()?;
            self.journal.begin_group()?;
        }
        Ok(())
    }

    /// The whole copy.
    pub fn finish(mut self) -> Result<Sqlite, JournalFault> {
        self.journal.end_group()?;
        Ok(self.journal)
    }
}
