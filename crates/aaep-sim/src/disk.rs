//! A disk that keeps its promises and no more: what was synced stays; what was only written may be
//! lost, torn, kept out of order or damaged when the power goes.

use aaep_store::{Entry, Journal, JournalFault, Tail, longest_valid_prefix};

/// What a power loss does to one write that was not synced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It is on the disk all the same.
    Kept,
    /// It is not; if a later one is, zeros stand in its place.
    Lost,
    /// Only this many of its bytes are.
    Torn(usize),
    /// It is, with this bit turned over.
    Flipped(usize),
}

/// One file of records on a simulated disk.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    file: Vec<u8>,
    synced: usize,
    /// Where each write ends that is not synced yet.
    writes: Vec<usize>,
    /// There is no room for another write.
    pub full: bool,
    /// The next sync fails.
    pub failing: bool,
}

impl Disk {
    /// Writes at the end of the file, into a cache that a power loss empties.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), JournalFault> {
        if self.full {
            return Err(JournalFault::Full);
        }
        self.file.extend_from_slice(bytes);
        self.writes.push(self.file.len());
        Ok(())
    }

    /// Makes everything durable that was written; returns how many bytes are.
    pub fn sync(&mut self) -> Result<usize, JournalFault> {
        if self.failing {
            return Err(JournalFault::Failed);
        }
        self.synced = self.file.len();
        self.writes.clear();
        Ok(self.synced)
    }

    /// How many bytes will survive, whatever happens.
    pub fn synced(&self) -> usize {
        self.synced
    }

    /// How many writes a power loss may undo.
    pub fn unsynced_writes(&self) -> usize {
        self.writes.len()
    }

    /// The power goes; `fate` decides about each write that was not synced, given its place among
    /// them and its length.
    pub fn lose_power(&mut self, mut fate: impl FnMut(usize, usize) -> Fate) {
        let mut start = self.synced;
        let mut end_of_file = self.synced;
        for (index, end) in std::mem::take(&mut self.writes).into_iter().enumerate() {
            let length = end - start;
            let kept = match fate(index, length) {
                Fate::Kept => length,
                Fate::Lost => 0,
                Fate::Torn(bytes) => bytes.min(length),
                Fate::Flipped(bit) => {
                    let bit = bit % (length * 8).max(1);
                    if let Some(byte) = self.file.get_mut(start + bit / 8) {
                        *byte ^= 1 << (bit % 8);
                    }
                    length
                }
            };
            self.file[start + kept..end].fill(0);
            if kept > 0 {
                end_of_file = start + kept;
            }
            start = end;
        }
        self.file.truncate(end_of_file);
        // What is on the platter now was never promised.
        if self.file.len() > self.synced {
            self.writes.push(self.file.len());
        }
    }

    /// Puts another file in its place, durably: what somebody does while the hub is down.
    pub fn write_over(&mut self, file: Vec<u8>) {
        (self.synced, self.file) = (file.len(), file);
        self.writes.clear();
    }

    /// Turns over one bit of what was synced: nothing that a crash may do.
    pub fn rot(&mut self, bit: usize) {
        let bit = bit % (self.synced * 8).max(1);
        if let Some(byte) = self.file.get_mut(bit / 8) {
            *byte ^= 1 << (bit % 8);
        }
    }

    /// Finds the records that can be believed and cuts off the rest. They are not durable before
    /// the next [`Disk::sync`].
    pub fn open(&mut self) -> Result<Tail, JournalFault> {
        let tail = longest_valid_prefix(&self.file, self.synced)?;
        self.file.truncate(tail.length());
        self.writes.retain(|end| *end < tail.length());
        if tail.length() > self.synced {
            self.writes.push(tail.length());
        }
        Ok(tail)
    }

    /// Everything that is in the file.
    pub fn contents(&self) -> &[u8] {
        &self.file
    }
}

/// The plainest store on this disk: every batch is written and synced.
impl Journal for Disk {
    fn append(&mut self, batch: &[Entry]) -> Result<(), JournalFault> {
        let next = self.open()?.ends.len() as u64 + 1;
        for (expected, entry) in (next..).zip(batch) {
            if entry.number != expected {
                return Err(JournalFault::OutOfTurn { expected });
            }
        }
        let bytes: Vec<u8> = batch.iter().flat_map(|entry| entry.bytes.iter().copied()).collect();
        self.write(&bytes)?;
        self.sync().map(|_| ())
    }

    fn read(&mut self) -> Result<Vec<Vec<u8>>, JournalFault> {
        let tail = self.open()?;
        self.sync()?;
        Ok(tail.records(&self.file).map(<[u8]>::to_vec).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_store::contract::{batch, journal_contract};

    #[test]
    fn a_store_on_the_simulated_disk_keeps_the_contract() {
        journal_contract(Disk::default);
    }

    /// Two records that are synced and three that are only written.
    fn disk() -> (Disk, Vec<Vec<u8>>) {
        let mut disk = Disk::default();
        let entries = batch(1..=5);
        for (index, entry) in entries.iter().enumerate() {
            disk.write(&entry.bytes).unwrap();
            if index == 1 {
                disk.sync().unwrap();
            }
        }
        (disk, entries.into_iter().map(|entry| entry.bytes).collect())
    }

    // covers: I3
    #[test]
    fn what_was_synced_survives_every_power_loss_and_nothing_false_is_believed() {
        let fates = [Fate::Kept, Fate::Lost, Fate::Torn(7), Fate::Flipped(70)];
        for choice in 0..64 {
            let (mut disk, records) = disk();
            disk.lose_power(|index, _| fates[choice >> (2 * index) & 3]);
            let kept = disk.read().unwrap();
            assert!(kept.len() >= 2 && kept[..] == records[..kept.len()], "{choice}");
            let whole = (0..3).take_while(|index| choice >> (2 * index) & 3 == 0).count();
            assert_eq!(kept.len(), 2 + whole);
        }
    }

    #[test]
    fn damage_to_what_was_synced_is_a_fault_and_not_a_shorter_journal() {
        let (mut disk, _) = disk();
        disk.rot(100);
        assert!(matches!(disk.open(), Err(JournalFault::Damaged { .. })));
    }

    #[test]
    fn a_full_disk_keeps_what_it_has() {
        let (mut disk, records) = disk();
        disk.full = true;
        assert_eq!(disk.append(&batch([6])), Err(JournalFault::Full));
        assert_eq!(disk.read().unwrap(), records);
    }
}
