//! Every byte of a small journal and of its log flipped once, and every prefix of both: noticed, or
//! without effect, and never a wrong accept.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files

mod support;

use std::fs;
use std::path::Path;

use aaep_engine::{ClockTrust, Limits, Recovery, Status};
use aaep_store::{Head, HeadCheck, Noted, Options, Sqlite, Unit};
use support::{World, day, records, secrets, workplace};

/// A journal as a killed hub leaves it: some of it in the file, some in its log.
struct Reference {
    file: Vec<u8>,
    log: Vec<u8>,
    noted: Noted,
    day: World,
}

fn small() -> Options {
    Options { page_bytes: 512, ..Options::default() }
}

fn reference(directory: &Path) -> Reference {
    let path = directory.join("journal.db");
    let day = day();
    let units = |entries: &[aaep_store::Entry]| -> Vec<Unit> {
        entries.chunks(2).map(|some| Unit { entries: some.to_vec(), notes: Vec::new() }).collect()
    };
    let half = day.entries.len() / 2;
    let mut journal = Sqlite::open(&path, small(), &support::key()).unwrap();
    for unit in units(&day.entries[..half]) {
        journal.keep(&[unit]).unwrap();
    }
    drop(journal);
    let mut journal = Sqlite::open(&path, small(), &support::key()).unwrap();
    for unit in units(&day.entries[half..]) {
        journal.keep(&[unit]).unwrap();
    }
    let noted = journal.position();
    let log = directory.join("journal.db-wal");
    let (file, log) = (fs::read(&path).unwrap(), fs::read(log).unwrap());
    Reference { file, log, noted, day }
}

/// What became of a journal that was tampered with.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Clone, Copy)]
enum Fate {
    /// It did not open, or a record was named: nothing starts.
    Refused,
    /// It was recognised as less than it was: nothing of it goes on.
    OldCopy,
    /// Every record is there as it was.
    Whole,
}

/// Starts from these files as a hub does; panics if that could lead to a wrong accept.
fn start(reference: &Reference, directory: &Path, file: &[u8], log: &[u8]) -> Fate {
    for name in ["journal.db-shm", "journal.db-lock", "journal.db-wal"] {
        let _ = fs::remove_file(directory.join(name));
    }
    fs::write(directory.join("journal.db"), file).unwrap();
    if !log.is_empty() {
        fs::write(directory.join("journal.db-wal"), log).unwrap();
    }
    let Ok(mut journal) = Sqlite::open(&directory.join("journal.db"), small(), &support::key())
    else {
        return Fate::Refused;
    };
    let day = &reference.day;
    let mut recovery: Recovery = Recovery::new(secrets(), Limits::default(), day.now);
    let mut seen = Vec::new();
    let each = |_, _, bytes: &[u8]| {
        seen.push(bytes.to_vec());
        recovery.replay(bytes, |_| {}).map(drop)
    };
    let Ok(replayed) = journal.replay(Some(reference.noted), each) else { return Fate::Refused };
    if journal.calls(None).is_err() || journal.last_start().is_err() {
        return Fate::Refused;
    }
    if replayed.head_check == HeadCheck::Same {
        assert_eq!(seen, records(&day.entries), "another history was taken for the right one");
        return Fate::Whole;
    }
    // Whatever is left is a beginning of what there was, and nothing of it goes on.
    assert!(records(&day.entries).starts_with(&seen));
    let engine = recovery.finish(ClockTrust::OldCopy);
    assert_eq!((engine.pending_requests(), engine.open_sessions()), (0, 0));
    Fate::OldCopy
}

/// Runs every case on two threads, each with a directory of its own; counts the fates.
fn all(
    reference: &Reference,
    cases: &[(usize, bool)],
    change: fn(&mut Vec<u8>, usize),
) -> [usize; 3] {
    let counts = std::thread::scope(|scope| {
        let halves = cases.chunks(cases.len().div_ceil(2).max(1));
        let threads: Vec<_> = halves
            .map(|half| {
                scope.spawn(move || {
                    let (place, mut counts) = (workplace(), [0; 3]);
                    for (at, in_log) in half {
                        let (mut file, mut log) = (reference.file.clone(), reference.log.clone());
                        change(if *in_log { &mut log } else { &mut file }, *at);
                        counts[start(reference, place.path(), &file, &log) as usize] += 1;
                    }
                    counts
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
    });
    counts.into_iter().fold([0; 3], |sum, more| std::array::from_fn(|at| sum[at] + more[at]))
}

/// Every seventh place; with `AAEP_EVERY_BYTE=1` all of them, which takes minutes.
fn cases(reference: &Reference) -> Vec<(usize, bool)> {
    let step = if std::env::var_os("AAEP_EVERY_BYTE").is_some() { 1 } else { 7 };
    let file = (0..reference.file.len()).step_by(step).map(|at| (at, false));
    let log = (0..reference.log.len()).step_by(step).map(|at| (at, true));
    file.chain(log).collect()
}

#[test]
fn the_reference_itself_is_whole() {
    let place = workplace();
    let reference = reference(place.path());
    let fate = start(&reference, workplace().path(), &reference.file, &reference.log);
    assert_eq!(fate, Fate::Whole);
    // Without its log, or without anything, it is recognised as less than it was.
    assert_eq!(start(&reference, workplace().path(), &reference.file, &[]), Fate::OldCopy);
    assert_eq!(start(&reference, workplace().path(), &[], &[]), Fate::OldCopy);
}

// covers: I3, I26
#[test]
fn no_flipped_byte_leads_to_a_wrong_accept() {
    let place = workplace();
    let reference = reference(place.path());
    let cases = cases(&reference);
    let [refused, old, whole] = all(&reference, &cases, |bytes, at| bytes[at] ^= 0xff);
    assert_eq!(refused + old + whole, cases.len());
    assert!(refused > 0 && old > 0, "{refused} refused, {old} old, {whole} whole");
}

// covers: I3, I26
#[test]
fn no_prefix_leads_to_a_wrong_accept() {
    let place = workplace();
    let reference = reference(place.path());
    let cases = cases(&reference);
    let [refused, old, whole] = all(&reference, &cases, |bytes, at| bytes.truncate(at));
    assert_eq!(refused + old + whole, cases.len());
    assert!(old > 0, "{refused} refused, {old} old, {whole} whole");
}

// covers: I2
#[test]
fn a_journal_of_which_nothing_is_known_outside_is_no_reason_to_go_on() {
    let place = workplace();
    let reference = reference(place.path());
    let mut journal =
        Sqlite::open(&place.path().join("journal.db"), small(), &support::key()).unwrap();
    let noted = Head::look(place.path(), journal.store());
    let replayed = journal.replay(noted, |_, _, _| Ok(())).unwrap();
    assert_eq!(replayed.head_check, HeadCheck::Unknown);
    let engine = <aaep_engine::Engine>::recover(
        secrets(),
        Limits::default(),
        records(&reference.day.entries).iter().map(Vec::as_slice),
        ClockTrust::OldCopy,
        reference.day.now,
    );
    let engine = engine.unwrap_or_else(|_| panic!("the records are whole"));
    let pending =
        reference.day.entries.iter().filter_map(|entry| {
            match aaep_engine::Record::decode(&entry.bytes) {
                Ok((_, aaep_engine::Record::Asked(asked), _)) => Some(asked.request),
                _ => None,
            }
        });
    for request in pending {
        assert_ne!(engine.status(request), Some(Status::Pending));
    }
}
