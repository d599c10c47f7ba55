//! The embedded journal as a log, and as one node's copy of a shard's log.
#![allow(
    missing_docs,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods
)] // tests

mod support;

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use aaep_store::contract::batch;
use aaep_store::log::{
    Appended, CannotRead, CopyOfLog, Log, LogStorage, MemoryFault, MemoryStore, ShardKeeper,
    ShardLog, SqliteLog, Unavailable, contract,
};
use aaep_store::{
    ChainKey, Journal, JournalFault, JournalWriter, KeptCall, Note, Options, Report, Sqlite, Unit,
};
use support::Place;

fn open(place: &Place) -> SqliteLog {
    let journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    SqliteLog::new(journal)
}

#[test]
fn the_embedded_journal_is_a_log() {
    let mut places = Vec::new();
    contract::single_log_contract(|| {
        places.push(Place::new());
        open(&places[places.len() - 1])
    });
}

#[test]
fn while_another_program_holds_the_file_the_log_is_stuck_and_the_same_may_be_offered_again() {
    let place = Place::new();
    let mut log = open(&place);
    let units = [Unit { entries: batch([1]), notes: Vec::new() }];
    let other = rusqlite::Connection::open(place.journal()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(matches!(log.append(0, &units), Appended::Stuck(Unavailable::Away(_))));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(log.append(0, &units), Appended::Durable { head: 1 });
}

// covers: I26
#[test]
fn a_changed_record_is_damage_with_its_place() {
    let place = Place::new();
    let mut log = open(&place);
    let units = [Unit { entries: batch(1..=3), notes: Vec::new() }];
    assert_eq!(log.append(0, &units), Appended::Durable { head: 3 });
    let other = rusqlite::Connection::open(place.journal()).unwrap();
    other.execute_batch("UPDATE records SET at = at + 1 WHERE number = 2").unwrap();
    let read = log.read_from(0, &mut |_, _| {});
    assert!(matches!(read, Err(CannotRead::Damaged(damage)) if damage.place == 2));
}

/// A node that owns a shard: the thread of its journal, and the numbers that were reported durable.
fn node(store: &MemoryStore, name: &str, place: &Place) -> (JournalWriter, Receiver<Report>) {
    let journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    let mut copy = CopyOfLog::new(journal).unwrap();
    let log = ShardLog::new(store.storage("s"), "s", name, ChainKey::new(&[7; 32]));
    let each = |entry| copy.take(entry);
    let keeper = ShardKeeper::take_over(log, 5, Duration::from_secs(5), each).unwrap();
    let journal = copy.finish().unwrap();
    let (sender, reports) = channel();
    let report = move |report| {
        let _ = sender.send(report);
    };
    (JournalWriter::start_on(Box::new(keeper), journal, report).unwrap(), reports)
}

fn unit(number: u64) -> Unit {
    Unit { entries: batch([number]), notes: Vec::new() }
}

// covers: I10, I24
#[test]
fn a_node_that_takes_over_has_everything_that_was_reported_and_the_one_before_is_refused() {
    let (store, places) = (MemoryStore::default(), [Place::new(), Place::new()]);
    let (a, reports) = node(&store, "a", &places[0]);
    (1..=3).for_each(|number| a.submit(unit(number)));
    let durable = |report: &Report| matches!(report, Report::Durable { number: 3, .. });
    assert!(reports.iter().take(3).any(|report| durable(&report)));
    let (b, others) = node(&store, "b", &places[1]);
    a.submit(unit(4));
    assert_eq!(reports.recv().unwrap(), Report::Broken(JournalFault::Fenced));
    b.submit(unit(4));
    assert_eq!(others.recv().unwrap(), Report::Durable { units: 1, number: 4 });
    b.close();
    drop(a);
    let mut copy = Sqlite::open(&places[1].journal(), Options::default(), &support::key()).unwrap();
    assert_eq!(copy.read().unwrap().len(), 4);
    let start = copy.last_start().unwrap().unwrap();
    assert_eq!((start.jumped, &*start.trust), (false, "claimed by a"));
    let mut log = ShardLog::new(store.storage("s"), "s", "c", ChainKey::new(&[7; 32]));
    log.catch_up(|_| {}).unwrap();
    assert!(log.known().released, "b said that it is done");
}

#[test]
fn while_the_store_is_away_nothing_is_reported_and_all_of_it_once_it_is_back() {
    let (store, place) = (MemoryStore::default(), Place::new());
    let (a, reports) = node(&store, "a", &place);
    store.inject("s", MemoryFault::Lost);
    a.submit(unit(1));
    assert_eq!(reports.recv().unwrap(), Report::Stuck(JournalFault::Away));
    a.submit(unit(2));
    assert_eq!(reports.recv().unwrap(), Report::Recovered);
    let mut units = 0;
    while units < 2 {
        let Report::Durable { units: so_many, .. } = reports.recv().unwrap() else { panic!() };
        units = so_many;
    }
}

#[test]
fn what_is_too_much_for_one_entry_goes_into_several() {
    let (store, place) = (MemoryStore::default(), Place::new());
    let (a, reports) = node(&store, "a", &place);
    let large = |key: u64| {
        let call = KeptCall {
            agent: "a".into(),
            path: "p".into(),
            key: key.to_string(),
            session: "s".into(),
            body: [0; 32],
            status: 201,
            answer: "x".repeat(300_000),
        };
        Unit { entries: Vec::new(), notes: vec![Note::Call(call)] }
    };
    // They wait together while the store is away.
    store.inject("s", MemoryFault::Away);
    a.submit(unit(1));
    assert_eq!(reports.recv().unwrap(), Report::Stuck(JournalFault::Away));
    (0..8).for_each(|key| a.submit(large(key)));
    let mut units = 0;
    while units < 9 {
        if let Report::Durable { units: so_many, .. } = reports.recv().unwrap() {
            units = so_many;
        }
    }
    assert!(store.storage("s").head().unwrap() > 4, "the claim, and several entries");
}

/// What a takeover costs besides the store and the engine: reading, verifying and copying. Run it with
/// `cargo test --release -p aaep-store --features sqlite --test log long -- --ignored --nocapture`.
#[test]
#[ignore = "it measures"]
fn a_long_log_is_copied_at_a_takeover() {
    const ENTRIES: u64 = 100_000;
    let store = MemoryStore::default();
    let mut log = ShardLog::new(store.storage("s"), "s", "a", ChainKey::new(&[7; 32]));
    assert_eq!(log.claim(0), Appended::Durable { head: 1 });
    for number in 1..=ENTRIES {
        assert_eq!(log.append(number, &[unit(number)]), Appended::Durable { head: number + 1 });
    }
    let place = Place::new();
    let begun = std::time::Instant::now();
    let (b, _reports) = node(&store, "b", &place);
    println!("{ENTRIES} entries were read, verified and copied in {:?}", begun.elapsed());
    drop(b);
    let mut copy = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    assert_eq!(copy.read().unwrap().len() as u64, ENTRIES);
}
