//! A journal from before journals had keys gets one, once; so does one whose key is lost.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files and processes

mod support;

#[path = "../../../testing/skipped.rs"]
mod skipped;

use aaep_store::audit::{Filter, export, verify};
use aaep_store::{
    CannotOpen, ChainKey, HeadCheck, Journal, KeptCall, Migration, Note, Noted, Options, Reader,
    Sqlite, Start, Unit, chain,
};
use rusqlite::{Connection, params};
use sha2::{Digest, Sha256};
use skipped::skipped;
use support::{Place, World, day, key, records};

fn call() -> KeptCall {
    KeptCall {
        agent: "bank-agent".into(),
        path: "/aaep/v1/agent/sessions".into(),
        key: "open".into(),
        session: "sess_1".into(),
        body: [9; 32],
        status: 201,
        answer: "{}".into(),
    }
}

fn started() -> Start {
    let (version, boot, trust) = ("0.1.0".into(), "b".into(), "trusted".into());
    Start { at: 7, version, boot, clock: 5, jumped: false, trust }
}

/// What version 1 wrote beside calls and starts.
fn checksum(fields: &[&[u8]]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.finalize()[..8].to_vec()
}

/// A journal as version 1 wrote it, and what it noted outside.
fn old_journal(place: &Place) -> (World, Noted) {
    let day = day();
    // Columns are as today; they are taken from a journal of today.
    let scratch = Place::in_memory();
    let mut today = Sqlite::open(&scratch.journal(), Options::default(), &key()).unwrap();
    today.keep(&[Unit { entries: day.entries.clone(), notes: Vec::new() }]).unwrap();
    drop(today);
    let file = Connection::open(place.journal()).unwrap();
    file.execute_batch(include_str!("support/layout1.sql")).unwrap();
    file.pragma_update(None, "application_id", 0x4141_4550).unwrap();
    file.pragma_update(None, "user_version", 1).unwrap();
    file.execute("ATTACH ?1 AS today", [scratch.journal().to_str().unwrap()]).unwrap();
    file.execute_batch("INSERT INTO records SELECT * FROM today.records").unwrap();
    let store: String = file.query_row("SELECT id FROM main.store", [], |row| row.get(0)).unwrap();
    let mut noted = Noted::at(0, chain::first(&store));
    for entry in &day.entries {
        let one = "SELECT at FROM records WHERE number = ?1";
        let at = file.query_row(one, [entry.number as i64], |row| row.get(0)).unwrap();
        noted = Noted::at(entry.number, chain::unkeyed(&noted.hash, at, &entry.bytes));
        let update = "UPDATE main.records SET hash = ?2 WHERE number = ?1";
        file.execute(update, params![entry.number as i64, noted.hash]).unwrap();
    }
    let KeptCall { agent, path, key, session, body, status, answer } = call();
    let sum = checksum(&[
        agent.as_bytes(),
        path.as_bytes(),
        key.as_bytes(),
        session.as_bytes(),
        &body,
        &status.to_le_bytes(),
        answer.as_bytes(),
    ]);
    let insert = "INSERT INTO main.calls VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)";
    file.execute(insert, params![agent, path, key, session, body, status, answer, sum]).unwrap();
    let Start { at, version, boot, clock, jumped, trust } = started();
    let sum = checksum(&[
        version.as_bytes(),
        boot.as_bytes(),
        &clock.to_le_bytes(),
        &[u8::from(jumped)],
        trust.as_bytes(),
    ]);
    let insert = "INSERT INTO main.starts VALUES (1, ?1, ?2, ?3, ?4, ?5, ?6, ?7)";
    file.execute(insert, params![at, version, boot, clock, jumped, trust, sum]).unwrap();
    (day, noted)
}

fn open(place: &Place, key: &ChainKey) -> Result<Sqlite, CannotOpen> {
    Sqlite::open(&place.journal(), Options::default(), key)
}

fn migrate(place: &Place, key: &ChainKey) -> Result<u64, CannotOpen> {
    Migration::open(&place.journal())?.apply(key).map(|anchor| anchor.number)
}

// covers: I33
#[test]
fn an_old_journal_is_refused_until_it_has_a_key_and_then_says_where_trust_begins() {
    let place = Place::new();
    let (day, noted) = old_journal(&place);
    let last = day.entries.len() as u64;
    let refused = open(&place, &key()).unwrap_err();
    assert!(refused.to_string().contains("aaep hub migrate"), "{refused}");
    let reader = Reader::open(&place.journal()).unwrap();
    let whole = verify(&reader, None, Some(noted)).unwrap();
    assert_eq!((whole.records, whole.keyed_after, whole.key_is_known), (last, None, false));
    drop(reader);

    assert_eq!(migrate(&place, &key()), Ok(last));
    let mut journal = open(&place, &key()).unwrap();
    assert_eq!(journal.read().unwrap(), records(&day.entries));
    assert_eq!(journal.calls(None).unwrap(), [call()]);
    assert_eq!(journal.last_start().unwrap(), Some(started()));
    // What was noted before is still the same record, and it goes on from there.
    let replayed = journal.replay(Some(noted), |_, _, _| Ok(())).unwrap();
    assert_eq!(replayed.head_check, HeadCheck::Same);
    let more = aaep_store::contract::batch(last + 1..=last + 2);
    journal.append(&more).unwrap();
    journal.note(Note::ForgetCalls { session: "sess_1".into() }).unwrap();
    let reader = Reader::open(&place.journal()).unwrap();
    let whole = verify(&reader, Some(&key()), Some(journal.position())).unwrap();
    assert_eq!(
        (whole.records, whole.keyed_after, whole.key_is_known),
        (last + 2, Some(last), true)
    );
    let mut lines = Vec::new();
    export(&reader, &Filter::default(), &mut lines).unwrap();
    let lines = String::from_utf8(lines).unwrap();
    let keyed: Vec<bool> = lines.lines().map(|line| line.contains("\"keyed\":true")).collect();
    assert_eq!(keyed.iter().filter(|keyed| **keyed).count(), 2);
    assert!(keyed.ends_with(&[false, true, true]));
    drop(journal);
    assert_eq!(open(&place, &ChainKey::new(&[1; 32])).unwrap_err(), CannotOpen::OtherKey);
}

// covers: I33
#[test]
fn what_was_there_before_the_key_cannot_be_changed_after_it() {
    for number in [1, 5, 9] {
        let place = Place::new();
        let (day, _) = old_journal(&place);
        migrate(&place, &key()).unwrap();
        // Everything that anybody can compute is repaired, up to the end.
        let file = Connection::open(place.journal()).unwrap();
        let store: String = file.query_row("SELECT id FROM store", [], |row| row.get(0)).unwrap();
        file.execute("UPDATE records SET at = at - 1 WHERE number = ?1", [number]).unwrap();
        let mut last = chain::first(&store);
        for entry in &day.entries {
            let one = "SELECT at FROM records WHERE number = ?1";
            let at = file.query_row(one, [entry.number as i64], |row| row.get(0)).unwrap();
            last = chain::unkeyed(&last, at, &entry.bytes);
            let update = "UPDATE records SET hash = ?2 WHERE number = ?1";
            file.execute(update, params![entry.number as i64, last]).unwrap();
        }
        for anchored in [false, true] {
            if anchored {
                file.execute("UPDATE store SET anchor_hash = ?1", [last]).unwrap();
            }
            let start = open(&place, &key()).and_then(|mut journal| {
                journal.read().map_err(|fault| CannotOpen::System { what: fault.to_string() })
            });
            assert!(start.is_err());
            let reader = Reader::open(&place.journal()).unwrap();
            assert!(verify(&reader, Some(&key()), None).is_err());
        }
    }
}

// covers: I26, I33
#[test]
fn an_old_journal_that_is_not_whole_gets_no_key_and_stays_as_it_is() {
    let changes = [
        "UPDATE records SET at = at + 1 WHERE number = 3",
        "DELETE FROM records WHERE number = 4",
        "UPDATE calls SET answer = '{\"x\":1}'",
        "UPDATE starts SET clock = 6",
    ];
    for change in changes {
        let place = Place::new();
        old_journal(&place);
        let file = Connection::open(place.journal()).unwrap();
        file.execute_batch(change).unwrap();
        assert!(matches!(migrate(&place, &key()), Err(CannotOpen::Damaged { .. })), "{change}");
        let version: i64 = file.pragma_query_value(None, "user_version", |row| row.get(0)).unwrap();
        assert_eq!(version, 1);
        file.prepare("SELECT checksum FROM calls").unwrap();
    }
}

// covers: I33
#[test]
fn a_journal_whose_key_is_lost_gets_a_new_one_and_trust_begins_anew() {
    let place = Place::new();
    let day = day();
    let mut journal = open(&place, &key()).unwrap();
    let notes = vec![Note::Call(call())];
    journal.keep(&[Unit { entries: day.entries.clone(), notes }]).unwrap();
    journal.note_start(&started()).unwrap();
    let noted = journal.position();
    drop(journal);
    let other = ChainKey::new(&[1; 32]);
    let last = day.entries.len() as u64;
    assert_eq!(migrate(&place, &other), Ok(last));
    let mut journal = open(&place, &other).unwrap();
    assert_eq!(journal.read().unwrap(), records(&day.entries));
    assert!(journal.calls(None).unwrap().is_empty() && journal.last_start().unwrap().is_none());
    // A hub that still has the note sees another history: nothing of it goes on.
    let replayed = journal.replay(Some(noted), |_, _, _| Ok(())).unwrap();
    assert_eq!(replayed.head_check, HeadCheck::Different { noted: last });
    let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&other), None).unwrap();
    assert_eq!(whole.keyed_after, Some(last));
}

/// The child's name among the tests, and where it finds its journal.
#[cfg(target_os = "linux")]
const CHILD: (&str, &str) = ("child_that_migrates", "AAEP_STORE_TEST_JOURNAL");

#[cfg(target_os = "linux")]
#[test]
#[ignore = "run by the tests of this file, in a process of its own"]
fn child_that_migrates() {
    let Some(path) = std::env::var_os(CHILD.1) else { return };
    Migration::open(path.as_ref()).unwrap().apply(&key()).unwrap();
}

// covers: I33
#[cfg(target_os = "linux")]
#[test]
fn a_crash_in_the_middle_leaves_the_old_or_the_new() {
    use std::process::{Command, Stdio};
    let tried = Command::new("strace").args(["-q", "-o", "/dev/null", "true"]).output();
    if !tried.is_ok_and(|output| output.status.success()) {
        skipped("strace is not here, or may not be used");
        return;
    }
    let (mut old, mut new) = (0, 0);
    for nth in 1.. {
        let place = Place::in_memory();
        let (day, noted) = old_journal(&place);
        // Killed at the nth write or sync.
        let inject = format!("inject=pwrite64,fsync,fdatasync:signal=KILL:when={nth}");
        let ended = Command::new("strace")
            .args(["-f", "-q", "-e", "trace=pwrite64,fsync,fdatasync", "-e", &inject])
            .args(["-o", "/dev/null"])
            .arg(std::env::current_exe().unwrap())
            .args(["--ignored", "--exact", CHILD.0, "--test-threads=1"])
            .env(CHILD.1, place.journal())
            .stdin(Stdio::null())
            .output()
            .unwrap();
        match open(&place, &key()) {
            Err(CannotOpen::Older { .. }) => {
                old += 1;
                let reader = Reader::open(&place.journal()).unwrap();
                verify(&reader, None, Some(noted)).unwrap();
                drop(reader);
                // Done again, it comes to its end.
                migrate(&place, &key()).unwrap();
            }
            Ok(_) => new += 1,
            Err(other) => panic!("{nth}: {other}"),
        }
        let mut journal = open(&place, &key()).unwrap();
        assert_eq!(journal.read().unwrap(), records(&day.entries), "{nth}");
        assert_eq!(journal.calls(None).unwrap(), [call()]);
        if ended.status.success() {
            break;
        }
        assert!(nth < 1000, "there is an end to it");
    }
    assert!(old > 3 && new > 0, "{old} old, {new} new");
}
