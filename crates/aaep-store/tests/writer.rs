//! The thread that keeps: order, group commit, what it says when it cannot.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files and threads

mod support;

use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use aaep_store::contract::batch;
use aaep_store::{Head, Journal, JournalFault, JournalWriter, Options, Report, Sqlite, Unit};
use support::{Place, records};

const PATIENCE: Duration = Duration::from_secs(60);

fn unit(numbers: impl IntoIterator<Item = u64>) -> Unit {
    Unit { entries: batch(numbers), notes: Vec::new() }
}

fn start(journal: Sqlite, head: Option<Head>) -> (JournalWriter, Receiver<Report>) {
    let (sender, reports) = channel();
    let report = move |report| {
        let _ = sender.send(report);
    };
    let writer = JournalWriter::start(journal, head, report).unwrap();
    (writer, reports)
}

fn open(place: &Place) -> Sqlite {
    Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap()
}

// covers: I10
#[test]
fn everything_is_kept_in_order_and_reported_once_it_is_durable() {
    let place = Place::new();
    let (writer, reports) = start(open(&place), None);
    for number in 1..=1000 {
        writer.submit(unit([number]));
    }
    let mut last = 0;
    let mut transactions = 0;
    while last < 1000 {
        match reports.recv_timeout(PATIENCE).unwrap() {
            Report::Durable { number, units } => {
                assert_eq!(units, number, "one record in each");
                assert!(number > last);
                // Nobody is told earlier than it is there for everybody to see.
                let reader = rusqlite::Connection::open(place.journal()).unwrap();
                let kept: i64 = reader
                    .query_row("SELECT max(number) FROM records", [], |row| row.get(0))
                    .unwrap();
                assert!(kept as u64 >= number);
                (last, transactions) = (number, transactions + 1);
            }
            other => panic!("{other:?}"),
        }
    }
    assert!(transactions < 1000, "what waits is kept together");
    writer.close();
    assert_eq!(open(&place).read().unwrap(), records(&batch(1..=1000)));
}

#[test]
fn submitted_units_are_durable_when_the_writer_is_closed() {
    let place = Place::new();
    let (writer, _reports) = start(open(&place), None);
    writer.submit(unit(1..=3));
    writer.submit(unit(4..=4));
    drop(writer);
    assert_eq!(open(&place).read().unwrap().len(), 4);
}

// covers: I2
#[test]
fn how_far_it_is_is_noted_outside_before_anybody_is_told() {
    let place = Place::new();
    let heads = place.path("heads");
    let journal = open(&place);
    let store = journal.store().to_owned();
    let head = Head::open(&heads, &store).unwrap();
    let (sender, reports) = channel();
    let look = (heads.clone(), store.clone());
    let writer = JournalWriter::start(journal, Some(head), move |report| {
        let noted = Head::look(&look.0, &look.1).map(|noted| noted.number);
        sender.send((report, noted)).unwrap();
    })
    .unwrap();
    for number in 1..=20 {
        writer.submit(unit([number]));
        let (report, noted) = reports.recv_timeout(PATIENCE).unwrap();
        assert_eq!((report, noted), (Report::Durable { units: number, number }, Some(number)));
    }
}

#[test]
fn while_another_program_holds_the_file_it_says_so_and_then_goes_on_by_itself() {
    let place = Place::new();
    let (writer, reports) = start(open(&place), None);
    let other = rusqlite::Connection::open(place.journal()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    writer.submit(unit([1]));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Stuck(JournalFault::Busy));
    writer.submit(unit([2]));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Recovered);
    let mut last = reports.recv_timeout(PATIENCE).unwrap();
    if last == (Report::Durable { units: 1, number: 1 }) {
        last = reports.recv_timeout(PATIENCE).unwrap();
    }
    assert_eq!(last, Report::Durable { units: 2, number: 2 });
}

#[test]
fn a_writer_without_room_says_so_once_and_can_be_closed() {
    let place = Place::new();
    let mut journal = open(&place);
    journal.set_room(0).unwrap();
    let (writer, reports) = start(journal, None);
    writer.submit(unit(1..=500));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Stuck(JournalFault::Full));
    writer.submit(unit(501..=502));
    writer.close();
    assert!(reports.try_recv().is_err());
    assert!(open(&place).read().unwrap().is_empty());
}

#[test]
fn records_out_of_turn_are_a_fault_that_ends_it() {
    let place = Place::new();
    let (writer, reports) = start(open(&place), None);
    writer.submit(unit([2]));
    let report = reports.recv_timeout(PATIENCE).unwrap();
    assert_eq!(report, Report::Broken(JournalFault::OutOfTurn { expected: 1 }));
    writer.submit(unit([1]));
    drop(writer);
    assert!(open(&place).read().unwrap().is_empty());
}

// covers: I10
#[test]
fn whoever_helps_keeps_in_order_beside_the_thread() {
    let place = Place::new();
    let (writer, reports) = start(open(&place), None);
    // The first goes over the thread, so that it is known whether the disk is quick.
    writer.submit(unit([1]));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Durable { units: 1, number: 1 });
    let inline = writer.inline();
    for number in 2..=200 {
        if number % 3 == 0 {
            writer.submit(unit([number]));
        } else {
            writer.submit_inline(unit([number]));
            inline.commit();
        }
    }
    let mut last = 1;
    while last < 200 {
        match reports.recv_timeout(PATIENCE).unwrap() {
            Report::Durable { number, units } if units == number && number > last => last = number,
            other => panic!("{other:?}"),
        }
    }
    writer.close();
    // Who lives on can do no harm, and holds nothing.
    inline.commit();
    assert_eq!(open(&place).read().unwrap(), records(&batch(1..=200)));
}

// covers: I3
#[test]
fn a_log_with_room_laid_out_is_read_up_to_where_it_was_written() {
    let place = Place::new();
    let (writer, reports) = start(open(&place), None);
    writer.submit(unit(1..=5));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Durable { units: 1, number: 5 });
    // As after a kill: the files as they are now.
    let log = std::fs::read(place.path("journal.db-wal")).unwrap();
    assert!(log.len() >= 1 << 20 && log.ends_with(&[0; 4096]), "{}", log.len());
    let written = log.iter().rposition(|byte| *byte != 0).unwrap() + 1;
    let file = std::fs::read(place.journal()).unwrap();
    let kept = |length: usize, name: &str| {
        let copy = place.path(name);
        std::fs::write(&copy, &file).unwrap();
        std::fs::write(place.path(&format!("{name}-wal")), &log[..length]).unwrap();
        Sqlite::open(&copy, Options::default(), &support::key()).unwrap().read().unwrap().len()
    };
    assert_eq!(kept(log.len(), "whole.db"), 5);
    assert_eq!(kept(written.next_multiple_of(4096), "cut.db"), 5);
}

#[test]
fn what_a_helper_could_not_keep_is_tried_again_by_the_thread() {
    let place = Place::new();
    let (writer, reports) = start(open(&place), None);
    writer.submit(unit([1]));
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Durable { units: 1, number: 1 });
    let other = rusqlite::Connection::open(place.journal()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    writer.submit_inline(unit([2]));
    writer.inline().commit();
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Stuck(JournalFault::Busy));
    other.execute_batch("ROLLBACK").unwrap();
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Recovered);
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Durable { units: 2, number: 2 });
}

// covers: I28
#[test]
fn a_panic_while_keeping_is_the_end_of_it_and_is_reported() {
    let place = Place::new();
    let (sender, reports) = channel();
    let report = move |report| {
        let _ = sender.send(report);
        assert!(matches!(report, Report::Broken(_)), "the reader of the report panics");
    };
    let writer = JournalWriter::start(open(&place), None, report).unwrap();
    writer.submit(unit([1]));
    let first = reports.recv_timeout(PATIENCE).unwrap();
    assert_eq!(first, Report::Durable { units: 1, number: 1 });
    assert_eq!(reports.recv_timeout(PATIENCE).unwrap(), Report::Broken(JournalFault::Failed));
    // Nothing more is kept, by the thread or by anybody who helps.
    writer.submit_inline(unit([2]));
    writer.inline().commit();
    writer.close();
    assert_eq!(open(&place).read().unwrap().len(), 1);
}
