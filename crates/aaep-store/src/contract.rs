//! The tests that every journal has to pass. They panic at the first broken promise; they are meant
//! for the tests of a store and for nothing else.
#![allow(clippy::unwrap_used, clippy::panic)] // a failing test panics

use aaep_engine::Record;

use crate::journal::{Entry, Journal, JournalFault};

/// A batch of real records with these numbers.
pub fn batch(numbers: impl IntoIterator<Item = u64>) -> Vec<Entry> {
    let entry = |number: u64| {
        let session = format!("sess_{number}").into();
        Entry { number, bytes: Record::Ended { session, said: Default::default() }.encode(number) }
    };
    numbers.into_iter().map(entry).collect()
}

fn bytes(batch: &[Entry]) -> Vec<Vec<u8>> {
    batch.iter().map(|entry| entry.bytes.clone()).collect()
}

/// What every journal promises. `make` gives an empty one each time.
pub fn journal_contract<J: Journal>(mut make: impl FnMut() -> J) {
    an_empty_journal_reads_as_nothing(&mut make());
    what_was_appended_is_read_back_in_order(&mut make());
    reading_changes_nothing(&mut make());
    a_record_out_of_turn_is_refused_and_nothing_is_kept(&mut make());
}

/// What a journal promises once it is full. `make` gives one that is full after less than 100
/// records of [`batch`].
pub fn full_journal_contract<J: Journal>(mut make: impl FnMut() -> J) {
    let mut journal = make();
    let mut kept = Vec::new();
    for number in 1..=100 {
        let one = batch([number]);
        match journal.append(&one) {
            Ok(()) => kept.extend(bytes(&one)),
            Err(JournalFault::Full) => break,
            Err(other) => panic!("a full journal says so, not {other:?}"),
        }
    }
    assert!(kept.len() < 100, "the journal never got full");
    let next = kept.len() as u64 + 1;
    assert_eq!(journal.append(&batch(next..next + 50)), Err(JournalFault::Full));
    assert_eq!(journal.read().unwrap(), kept, "a batch that did not fit left something behind");
}

/// What a journal promises while the disk under it fails now and then: a batch that was taken is
/// there for ever, one that may be offered again left nothing behind, and after doubt nothing more is
/// taken until it is opened again from what is there. `open` gives the journal that is there; `told`
/// hears how each batch went. At the end every batch was taken, once.
pub fn faulty_journal_contract<J: Journal>(
    mut open: impl FnMut() -> J,
    batches: u64,
    mut told: impl FnMut(u64, Result<(), JournalFault>),
) {
    const TRIES: u32 = 100;
    let mut journal = open();
    let (mut next, mut tries) = (1, 0);
    while next <= batches {
        let last = next * 3;
        let one = batch(last - 2..=last);
        tries += 1;
        assert!(tries < TRIES, "the fault passes, and so must this");
        let taken = journal.append(&one);
        told(last, taken);
        match taken {
            Ok(()) => next += 1,
            Err(fault) if fault.may_pass() => {}
            Err(_) => {
                assert_eq!(
                    journal.append(&one),
                    Err(JournalFault::Failed),
                    "nobody knows what was kept"
                );
                drop(journal);
                journal = open();
                let kept = journal.read().unwrap().len() as u64;
                assert!(kept.is_multiple_of(3) && kept / 3 + 1 >= next, "{kept} kept");
                next = kept / 3 + 1;
            }
        }
    }
    drop(journal);
    assert_eq!(open().read().unwrap(), bytes(&batch(1..=batches * 3)));
}

fn an_empty_journal_reads_as_nothing(journal: &mut impl Journal) {
    assert!(journal.read().unwrap().is_empty());
    journal.append(&[]).unwrap();
    assert!(journal.read().unwrap().is_empty());
}

fn what_was_appended_is_read_back_in_order(journal: &mut impl Journal) {
    let (first, second) = (batch(1..=3), batch(4..=4));
    journal.append(&first).unwrap();
    journal.append(&second).unwrap();
    assert_eq!(journal.read().unwrap(), [bytes(&first), bytes(&second)].concat());
}

fn reading_changes_nothing(journal: &mut impl Journal) {
    journal.append(&batch(1..=2)).unwrap();
    let once = journal.read().unwrap();
    assert_eq!(journal.read().unwrap(), once);
    journal.append(&batch(3..=3)).unwrap();
    assert_eq!(journal.read().unwrap()[..2], once[..]);
}

fn a_record_out_of_turn_is_refused_and_nothing_is_kept(journal: &mut impl Journal) {
    assert_eq!(journal.append(&batch([2])), Err(JournalFault::OutOfTurn { expected: 1 }));
    assert_eq!(journal.append(&batch([1, 3])), Err(JournalFault::OutOfTurn { expected: 2 }));
    assert!(journal.read().unwrap().is_empty());
    journal.append(&batch([1])).unwrap();
    assert_eq!(journal.append(&batch([1])), Err(JournalFault::OutOfTurn { expected: 2 }));
}
