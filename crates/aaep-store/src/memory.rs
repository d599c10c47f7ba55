//! A journal that lasts as long as the program.

use crate::journal::{Entry, Journal, JournalFault};

/// A journal in memory, with a bound.
#[derive(Clone, Debug)]
pub struct Memory {
    records: Vec<Vec<u8>>,
    bytes: usize,
    max_bytes: usize,
}

impl Memory {
    /// What a journal in memory holds at most, unless told otherwise.
    pub const MAX_BYTES: usize = 256 * 1024 * 1024;

    /// An empty journal that holds at most so many bytes.
    pub fn with_room_for(max_bytes: usize) -> Self {
        Self { records: Vec::new(), bytes: 0, max_bytes }
    }
}

impl Default for Memory {
    fn default() -> Self {
        Self::with_room_for(Self::MAX_BYTES)
    }
}

impl Journal for Memory {
    fn append(&mut self, batch: &[Entry]) -> Result<(), JournalFault> {
        let next = self.records.len() as u64 + 1;
        for (expected, entry) in (next..).zip(batch) {
            if entry.number != expected {
                return Err(JournalFault::OutOfTurn { expected });
            }
        }
        let more: usize = batch.iter().map(|entry| entry.bytes.len()).sum();
        if self.bytes + more > self.max_bytes {
            return Err(JournalFault::Full);
        }
        self.bytes += more;
        self.records.extend(batch.iter().map(|entry| entry.bytes.clone()));
        Ok(())
    }

    fn read(&mut self) -> Result<Vec<Vec<u8>>, JournalFault> {
        Ok(self.records.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_in_memory_keeps_the_contract() {
        crate::contract::journal_contract(Memory::default);
    }

    /// A journal whose every third append fails, with or without having kept the batch.
    struct Failing<'a> {
        inner: &'a std::cell::RefCell<Memory>,
        turns: &'a std::cell::Cell<u32>,
        failed: bool,
    }

    impl Journal for Failing<'_> {
        fn append(&mut self, batch: &[Entry]) -> Result<(), JournalFault> {
            if self.failed {
                return Err(JournalFault::Failed);
            }
            self.turns.set(self.turns.get() + 1);
            match self.turns.get() % 6 {
                2 => return Err(JournalFault::Full),
                3 => self.failed = true,
                5 => {
                    self.inner.borrow_mut().append(batch)?;
                    self.failed = true;
                }
                _ => return self.inner.borrow_mut().append(batch),
            }
            Err(JournalFault::Failed)
        }

        fn read(&mut self) -> Result<Vec<Vec<u8>>, JournalFault> {
            self.inner.borrow_mut().read()
        }
    }

    #[test]
    fn the_contract_under_faults_holds_for_a_journal_that_fails_as_it_may() {
        let (inner, turns) = (Memory::default().into(), Default::default());
        let open = || Failing { inner: &inner, turns: &turns, failed: false };
        let mut faults = 0;
        crate::contract::faulty_journal_contract(open, 30, |_, taken| {
            faults += taken.is_err() as u32
        });
        assert!(faults > 10, "{faults}");
    }

    #[test]
    fn a_full_journal_keeps_what_it_has_and_nothing_of_the_batch() {
        crate::contract::full_journal_contract(|| Memory::with_room_for(200));
    }
}
