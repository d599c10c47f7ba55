//! The embedded journal as a log: one node, no lease, nobody to be fenced by but the file's lock.

use super::{Appended, CannotRead, DamagedEntry, EntryDamage, Log, Unavailable};
use crate::journal::{Entry, JournalFault};
use crate::sqlite::Sqlite;
use crate::unit::Unit;

/// The embedded journal, seen as a log. Its places are the numbers of records; notes take none.
#[derive(Debug)]
pub struct SqliteLog(Sqlite);

impl SqliteLog {
    /// This journal. The file's lock says that nobody else writes it.
    pub fn new(journal: Sqlite) -> Self {
        Self(journal)
    }

    /// The journal itself.
    pub fn journal(&self) -> &Sqlite {
        &self.0
    }
}

impl Log for SqliteLog {
    fn append(&mut self, expected: u64, units: &[Unit]) -> Appended {
        if expected != self.0.head().0 {
            return Appended::Fenced;
        }
        match self.0.keep(units) {
            Ok(()) => Appended::Durable { head: self.0.head().0 },
            Err(JournalFault::Full) => Appended::Stuck(Unavailable::Full),
            Err(JournalFault::Busy) => {
                Appended::Stuck(Unavailable::Away("another program writes to the file".into()))
            }
            Err(JournalFault::OutOfTurn { .. }) => Appended::Fenced,
            // The state on disk is unknown until the file is opened again.
            Err(_) => Appended::InDoubt,
        }
    }

    fn read_from(
        &mut self,
        after: u64,
        each: &mut dyn FnMut(u64, Vec<Unit>),
    ) -> Result<u64, CannotRead> {
        let read = self.0.replay(None, |number, _, bytes| {
            if number > after {
                let entries = vec![Entry { number, bytes: bytes.to_vec() }];
                each(number, vec![Unit { entries, notes: Vec::new() }]);
            }
            Ok(())
        });
        match read {
            Ok(replayed) => Ok(replayed.records),
            Err(damage) => {
                let why = EntryDamage::NotSealed;
                Err(DamagedEntry { place: damage.number, why }.into())
            }
        }
    }

    fn head(&mut self) -> Result<u64, CannotRead> {
        Ok(self.0.head().0)
    }
}
