//! Which part of a file of records can be believed after a crash.

use aaep_engine::Record;

use crate::journal::JournalFault;

/// The records that can be believed, and where they end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tail {
    /// Where each record ends; the first begins at 0.
    pub ends: Vec<usize>,
}

impl Tail {
    /// How many bytes can be believed; what follows is to be cut off.
    pub fn length(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// The records within the file they were found in.
    pub fn records<'a>(&'a self, file: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        let starts = std::iter::once(0).chain(self.ends.iter().copied());
        starts.zip(&self.ends).map(|(start, end)| &file[start..*end])
    }
}

/// The longest run of whole records with the numbers 1, 2, 3, …. A crash may damage what was not
/// synced, and the run ends there; damage below `synced` is no accident of a crash and is reported.
pub fn longest_valid_prefix(file: &[u8], synced: usize) -> Result<Tail, JournalFault> {
    let mut tail = Tail::default();
    let mut at = 0;
    while at < file.len() {
        match Record::decode(&file[at..]) {
            Ok((number, _, length)) if number == tail.ends.len() as u64 + 1 => {
                at += length;
                tail.ends.push(at);
            }
            _ => break,
        }
    }
    if at < synced {
        return Err(JournalFault::Damaged { index: tail.ends.len() });
    }
    Ok(tail)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(numbers: &[u64]) -> Vec<u8> {
        let record = Record::Ended { session: "sess_1".into(), said: Default::default() };
        numbers.iter().flat_map(|number| record.encode(*number)).collect()
    }

    // covers: I3
    #[test]
    fn a_torn_record_ends_the_run_and_what_went_before_is_believed() {
        let whole = file(&[1, 2, 3]);
        for length in 0..whole.len() {
            let tail = longest_valid_prefix(&whole[..length], 0).unwrap();
            assert_eq!(tail.ends.len(), length / (whole.len() / 3));
        }
    }

    // covers: I3
    #[test]
    fn a_gap_in_the_numbers_ends_the_run() {
        assert_eq!(longest_valid_prefix(&file(&[1, 2, 4]), 0).unwrap().ends.len(), 2);
        assert_eq!(longest_valid_prefix(&file(&[2]), 0).unwrap().ends.len(), 0);
    }

    // covers: I3
    #[test]
    fn damage_to_what_was_synced_is_reported_and_never_cut_off() {
        let mut damaged = file(&[1, 2, 3]);
        let synced = damaged.len();
        damaged[synced / 2] ^= 1;
        assert_eq!(longest_valid_prefix(&damaged, synced), Err(JournalFault::Damaged { index: 1 }));
    }

    #[test]
    fn the_records_are_the_bytes_between_the_ends() {
        let whole = file(&[1, 2]);
        let tail = longest_valid_prefix(&whole, 0).unwrap();
        let records: Vec<&[u8]> = tail.records(&whole).collect();
        assert_eq!(records.concat(), whole);
        assert_eq!(records.len(), 2);
    }
}
