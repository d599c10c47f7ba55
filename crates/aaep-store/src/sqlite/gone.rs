//! Records that were erased: which, and what stands in their place.
//!
//! An erasure is a record of the chain. From there on the records that it names do not count, also if
//! their bytes are still in the file. Compaction takes the bytes away and leaves one row for each run,
//! with the link of the last record of the run and a seal: the chain goes on over it. A row like that
//! counts only where an erasure in the chain says so.

use aaep_engine::{Erasure, Record};
use rusqlite::Connection;

use crate::chain::{ChainHash, ChainKey};

/// What the column `kind` of such a row says.
pub(crate) const KIND: &str = "gap";

/// Runs of numbers, in order and apart from each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs(Vec<(u64, u64)>);

impl Runs {
    pub(crate) fn contains(&self, number: u64) -> bool {
        self.contains_all(number, number)
    }

    /// Whether all of these are in it.
    pub(crate) fn contains_all(&self, first: u64, last: u64) -> bool {
        let after = self.0.partition_point(|run| run.0 <= first);
        after.checked_sub(1).is_some_and(|at| self.0[at].1 >= last)
    }

    /// Whether all of the others are in it.
    pub(crate) fn contains_runs(&self, others: &Runs) -> bool {
        others.0.iter().all(|(first, last)| self.contains_all(*first, *last))
    }

    pub(crate) fn add(&mut self, runs: &[(u64, u64)]) {
        self.0.extend_from_slice(runs);
        self.0.sort_unstable();
        let mut merged: Vec<(u64, u64)> = Vec::with_capacity(self.0.len());
        for (first, last) in self.0.drain(..) {
            match merged.last_mut() {
                Some(before) if first <= before.1.saturating_add(1) => {
                    before.1 = before.1.max(last)
                }
                _ => merged.push((first, last)),
            }
        }
        self.0 = merged;
    }

    /// Numbers in order become runs.
    pub(crate) fn of(numbers: impl IntoIterator<Item = u64>) -> Self {
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for number in numbers {
            match runs.last_mut() {
                Some(run) if run.1.checked_add(1) == Some(number) => run.1 = number,
                _ => runs.push((number, number)),
            }
        }
        Self(runs)
    }

    pub(crate) fn into_vec(self) -> Vec<(u64, u64)> {
        self.0
    }
}

/// An erasure that is on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Act {
    pub(crate) number: u64,
    pub(crate) why: Erasure,
    pub(crate) note: String,
    pub(crate) runs: Vec<(u64, u64)>,
}

impl Act {
    /// The erasure in these bytes, if it is one. It names only records before it.
    pub(crate) fn of(number: u64, bytes: &[u8]) -> Option<Self> {
        if !Record::is_erasure(bytes) {
            return None;
        }
        match Record::decode(bytes) {
            Ok((inside, Record::Erased { why, note, runs }, _))
                if inside == number && runs.last().is_none_or(|run| run.1 < number) =>
            {
                Some(Self { number, why, note: note.to_string(), runs })
            }
            _ => None,
        }
    }
}

/// What the table says was erased. It is not verified here: the walk along the chain compares
/// it with the erasures that it comes across.
pub(crate) fn told(connection: &Connection) -> rusqlite::Result<Runs> {
    let mut statement = connection
        .prepare("SELECT number, bytes FROM records WHERE kind = 'erased' ORDER BY number")?;
    let mut rows = statement.query([])?;
    let mut told = Runs::default();
    while let Some(row) = rows.next()? {
        let (number, bytes): (i64, Vec<u8>) = (row.get(0)?, row.get(1)?);
        if let Some(act) = u64::try_from(number).ok().and_then(|number| Act::of(number, &bytes)) {
            told.add(&act.runs);
        }
    }
    Ok(told)
}

/// A row that stands for a run of erased records.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) first: u64,
    pub(crate) last: u64,
    /// When the last one was written.
    pub(crate) at: i64,
    /// The link of the last one.
    pub(crate) hash: ChainHash,
}

impl Gap {
    fn seal(&self, key: &ChainKey, store: &str, before: &ChainHash) -> ChainHash {
        let Self { first, last, at, hash } = self;
        let numbers = [first.to_le_bytes(), last.to_le_bytes(), at.to_le_bytes()];
        let [first, last, at] = numbers.each_ref();
        key.seal("gap", &[store.as_bytes(), first, last, at, before, hash])
    }

    /// What stands in the place of a record's bytes.
    pub(crate) fn bytes(&self, key: &ChainKey, store: &str, before: &ChainHash) -> Vec<u8> {
        let mut bytes = self.first.to_le_bytes().to_vec();
        bytes.extend(self.seal(key, store, before));
        bytes
    }

    // enforces: I33
    /// Reads the row that follows the record before `first`. Without the key nobody can tell whether it
    /// was made by the hub.
    pub(crate) fn read(
        (last, at, bytes, hash): (u64, i64, &[u8], ChainHash),
        (next, before): (u64, &ChainHash),
        key: Option<&ChainKey>,
        store: &str,
    ) -> Result<Self, &'static str> {
        let (first, seal) = bytes.split_first_chunk::<8>().ok_or("it is not what a gap is")?;
        let gap = Self { first: u64::from_le_bytes(*first), last, at, hash };
        if gap.first != next || gap.last < gap.first {
            return Err("it says that records were erased which are there, or leaves some out");
        }
        if key.is_some_and(|key| gap.seal(key, store, before)[..] != *seal) || seal.len() != 32 {
            return Err(
                "it says that records were erased, and was not written with this journal's key",
            );
        }
        Ok(gap)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_merged_and_searched() {
        let mut runs = Runs::of([1, 2, 3, 7, 9]);
        assert_eq!(runs.0, [(1, 3), (7, 7), (9, 9)]);
        for number in 0..12 {
            assert_eq!(runs.contains(number), [1, 2, 3, 7, 9].contains(&number), "{number}");
        }
        assert!(runs.contains_all(1, 3) && !runs.contains_all(3, 7) && !runs.contains_all(0, 1));
        runs.add(&[(8, 8), (4, 5)]);
        assert_eq!(runs.0, [(1, 5), (7, 9)]);
        assert!(runs.contains_runs(&Runs::of([2, 3, 8])) && !runs.contains_runs(&Runs::of([5, 6])));
    }
}
