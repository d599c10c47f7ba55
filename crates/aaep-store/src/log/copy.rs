//! One node's copy of a shard's log, in the layout of the embedded journal: so that recovery, and
//! people who look into it, find what they know.

use super::entry::{Body, LogEntry};
use crate::journal::JournalFault;
use crate::sqlite::{Sqlite, Start};

/// Takes an entry of the log over into a copy. A claim is a start of a hub there.
pub fn copy(entry: &LogEntry, journal: &mut Sqlite) -> Result<(), JournalFault> {
    match &entry.body {
        Body::Units(units) => journal.keep_at(units, entry.at),
        Body::Claimed { .. } => {
            let trust = format!("claimed by {}", entry.node);
            // Another machine's boot clock says nothing here.
            let (version, boot) = (String::new(), String::new());
            journal.note_start(&Start {
                at: entry.at,
                version,
                boot,
                clock: 0,
                jumped: false,
                trust,
            })
        }
        Body::Released => Ok(()),
    }
}
