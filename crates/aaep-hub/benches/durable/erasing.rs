//! What it takes to find and erase what is kept of a person, among little and much of others.

use std::time::{Duration, Instant};

use aaep_engine::Record;
use aaep_hub::start::JOURNAL_NAME;
use aaep_store::audit::{Which, plan};
use aaep_store::{Entry, Reader, Unit};

use crate::records::{PER_SESSION, begin, keep_session, write};

/// Records in all.
const SIZES: [u64; 2] = [200_000, 1_000_000];

/// Persons, and how many records are kept of each.
const PERSONS: [(&str, u64); 3] = [("ann", 1_000), ("ben", 10_000), ("cid", 100_000)];

const ROUNDS: usize = 5;

pub fn measure() {
    for size in SIZES {
        measure_among(size);
    }
}

fn measure_among(size: u64) {
    let place = crate::place();
    let (mut journal, key) = begin(place.path());
    let mut session = 0;
    for (person, records) in PERSONS {
        for _ in 0..records / PER_SESSION {
            keep_session(&mut journal, session, person);
            session += 1;
        }
    }
    while session * PER_SESSION < size {
        keep_session(&mut journal, session, "others");
        session += 1;
    }
    write(&mut journal);
    println!("Erasing a person from a journal of {size} records:");
    let file = place.path().join("data").join(JOURNAL_NAME);
    for (person, records) in PERSONS {
        let mut finding = Vec::new();
        let mut found = None;
        for _ in 0..ROUNDS {
            let begun = Instant::now();
            let reader = Reader::open(&file).expect("a journal");
            let planned = plan(&reader, &key, None, Which::OfUser(person), i64::MAX);
            found = Some(planned.expect("a whole journal"));
            finding.push(begun.elapsed());
        }
        let found = found.expect("a round");
        assert_eq!(found.records, records);
        // The record that says so: from there on they do not count.
        let record = Record::Erased { why: found.why, note: "".into(), runs: found.runs };
        let number = journal.head().0 + 1;
        let unit =
            Unit { entries: vec![Entry { number, bytes: record.encode(number) }], notes: vec![] };
        let begun = Instant::now();
        journal.keep(&[unit]).expect("room");
        let written = begun.elapsed();
        println!(
            "  {records} records of theirs: found and verified in {:.0} ms, erased in {:.1} ms",
            millis(crate::median(finding)),
            millis(written)
        );
    }
    let begun = Instant::now();
    let mut new = journal.compaction().expect("a compaction");
    while new.step(10_000).expect("a step") > 0 {}
    assert!(journal.replace_with(&mut new).expect("a new file"));
    println!("  their bytes taken out of the file in {:.0} ms", millis(begun.elapsed()));
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}
