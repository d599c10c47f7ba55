//! The embedded journal as a log.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod support;

use aaep_store::contract::batch;
use aaep_store::log::{Appended, CannotRead, Log, SqliteLog, Unavailable, contract};
use aaep_store::{Options, Sqlite, Unit};
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
