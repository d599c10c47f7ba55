//! Somebody who can write the journal, but does not have its key: whatever they do to it is refused at
//! the start and named by the audit. They repair everything that anybody can compute.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files

mod support;

use std::path::Path;
use std::sync::LazyLock;

use aaep_engine::{Outcome, Record, RecordedEvents};
use aaep_store::audit::verify;
use aaep_store::{
    ChainKey, Entry, HeadCheck, Journal, KeptCall, Note, Noted, Options, Reader, Sqlite, Start,
    Unit, chain,
};
use proptest::prelude::*;
use rusqlite::{Connection, params};
use support::{Place, day, key, records};

/// A journal as a hub leaves it: records, calls, starts.
struct Original {
    place: Place,
    running: Noted,
    stopped: Noted,
    records: Vec<Vec<u8>>,
}

fn call(key: &str) -> KeptCall {
    KeptCall {
        agent: "bank-agent".into(),
        path: "/aaep/v1/agent/sessions".into(),
        key: key.into(),
        session: "sess_1".into(),
        body: [9; 32],
        status: 201,
        answer: "{}".into(),
    }
}

static ORIGINAL: LazyLock<Original> = LazyLock::new(|| {
    let place = Place::in_memory();
    let day = day();
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
    for boot in ["first", "second"] {
        let (version, trust) = ("0.1.0".into(), "trusted".into());
        let start = Start { at: 0, version, boot: boot.into(), clock: 5, jumped: false, trust };
        journal.note_start(&start).unwrap();
    }
    journal.note(Note::ClockJumped).unwrap();
    for (count, pair) in day.entries.chunks(2).enumerate() {
        let notes = vec![Note::Call(call(&format!("key {count}")))];
        journal.keep(&[Unit { entries: pair.to_vec(), notes }]).unwrap();
    }
    let (running, stopped) = (journal.position(), journal.final_position().unwrap());
    drop(journal);
    Original { place, running, stopped, records: records(&day.entries) }
});

/// A copy to tamper with.
fn copy() -> Place {
    let place = Place::in_memory();
    std::fs::copy(ORIGINAL.place.journal(), place.journal()).unwrap();
    place
}

/// What a hub would make of it: the records that it would believe, or why it refuses.
fn start(path: &Path, noted: Noted) -> Result<(HeadCheck, Vec<Vec<u8>>), String> {
    let mut journal =
        Sqlite::open(path, Options::default(), &key()).map_err(|fault| fault.to_string())?;
    let mut believed = Vec::new();
    let each = |_, _, bytes: &[u8]| {
        believed.push(bytes.to_vec());
        Ok(())
    };
    let replayed = journal.replay(Some(noted), each).map_err(|damage| damage.to_string())?;
    match replayed.head_check {
        HeadCheck::Longer { .. } => return Err("longer".into()),
        HeadCheck::Same => {
            journal.check_start(Some(noted)).map_err(|damage| damage.to_string())?;
            journal.calls(Some(noted)).map_err(|damage| damage.to_string())?;
        }
        _ => {}
    }
    journal.calls(None).map_err(|damage| damage.to_string())?;
    journal.last_start().map_err(|damage| damage.to_string())?;
    Ok((replayed.head_check, believed))
}

fn audit(path: &Path, noted: Noted) -> Result<(), String> {
    let reader = Reader::open(path).map_err(|fault| fault.to_string())?;
    verify(&reader, Some(&key()), Some(noted)).map(drop).map_err(|bad| bad.to_string())
}

/// Something that somebody does to the journal.
#[derive(Clone, Debug)]
enum Edit {
    /// A record says something else.
    Change(usize),
    Insert(usize),
    Delete(usize),
    Swap(usize, usize),
    Truncate(usize),
    Append(usize),
    /// It was written at another time.
    Redate(usize),
    /// Trust begins elsewhere.
    MoveAnchor(usize),
    TakeAnchor,
    ChangeCall(usize),
    InsertCall,
    DeleteCall(usize),
    /// As if its clock had not jumped.
    ChangeStart,
    InsertStart,
    DeleteStart,
    RenameStore,
}

fn edits() -> impl Strategy<Value = Edit> {
    let number = 0..64_usize;
    prop_oneof![
        number.clone().prop_map(Edit::Change),
        number.clone().prop_map(Edit::Insert),
        number.clone().prop_map(Edit::Delete),
        (number.clone(), number.clone()).prop_map(|(one, other)| Edit::Swap(one, other)),
        number.clone().prop_map(Edit::Truncate),
        (1..4_usize).prop_map(Edit::Append),
        number.clone().prop_map(Edit::Redate),
        number.clone().prop_map(Edit::MoveAnchor),
        Just(Edit::TakeAnchor),
        number.clone().prop_map(Edit::ChangeCall),
        Just(Edit::InsertCall),
        number.prop_map(Edit::DeleteCall),
        Just(Edit::ChangeStart),
        Just(Edit::InsertStart),
        Just(Edit::DeleteStart),
        Just(Edit::RenameStore),
    ]
}

/// An accept of the first request that waits.
fn forged() -> Record {
    let find = |bytes: &Vec<u8>| match Record::decode(bytes) {
        Ok((_, Record::Asked(asked), _)) => Some(asked.request),
        _ => None,
    };
    let request = ORIGINAL.records.iter().find_map(find).unwrap();
    Record::Resolved {
        request,
        outcome: Outcome::Accepted,
        runs: true,
        by: "ann's phone".into(),
        response: "".into(),
        reply: "".into(),
        presence: aaep_types::Presence::None,
        assertion: Default::default(),
        said: RecordedEvents::default(),
    }
}

/// One row: when, and what.
type Row = (i64, Record, Vec<u8>);

/// Which links the attacker leaves as they are, and how they compute the others.
#[derive(Clone, Copy, Debug)]
enum Repair {
    /// As before journals had keys.
    Unkeyed,
    /// With a key of their own.
    OwnKey,
    /// Not at all: the hash that the row at this place had.
    Old,
}

fn read(file: &Connection) -> Vec<Row> {
    let mut statement =
        file.prepare("SELECT at, bytes, hash FROM records ORDER BY number").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    rows.map(Result::unwrap)
        .map(|(at, bytes, hash): (i64, Vec<u8>, Vec<u8>)| {
            (at, Record::decode(&bytes).unwrap().1, hash)
        })
        .collect()
}

/// Does it to the list of records; true if records are what it is about.
fn edit_records(rows: &mut Vec<Row>, edit: &Edit) -> bool {
    let count = rows.len();
    let own = |at: i64| (at, forged(), vec![7; 32]);
    match *edit {
        Edit::Append(more) => rows.extend((0..more).map(|at| own(at as i64))),
        // An edit before this one took everything away.
        Edit::Change(_)
        | Edit::Insert(_)
        | Edit::Delete(_)
        | Edit::Swap(..)
        | Edit::Truncate(_)
        | Edit::Redate(_)
            if count == 0 => {}
        Edit::Change(at) => rows[at % count].1 = forged(),
        Edit::Insert(at) => rows.insert(at % count, own(5)),
        Edit::Delete(at) => drop(rows.remove(at % count)),
        Edit::Swap(one, other) => rows.swap(one % count, other % count),
        Edit::Truncate(at) => rows.truncate(at % count),
        Edit::Redate(at) => rows[at % count].0 += 1,
        _ => return false,
    }
    true
}

/// Writes them back, with right numbers and checksums, and links as good as they can be made.
fn write(file: &Connection, rows: Vec<Row>, repair: Repair) {
    let store: String = file.query_row("SELECT id FROM store", [], |row| row.get(0)).unwrap();
    let own = ChainKey::new(&[1; 32]);
    let before = read(file);
    // A journal of their own gives them everything that does not need the key.
    let scratch = Place::in_memory();
    let mut mine = Sqlite::open(&scratch.journal(), Options::default(), &own).unwrap();
    let entry =
        |(number, (_, record, _)): (u64, &Row)| Entry { number, bytes: record.encode(number) };
    mine.append(&(1..).zip(&rows).map(entry).collect::<Vec<_>>()).unwrap();
    drop(mine);
    file.execute("ATTACH ?1 AS mine", [scratch.journal().to_str().unwrap()]).unwrap();
    file.execute_batch("DELETE FROM records; INSERT INTO records SELECT * FROM mine.records")
        .unwrap();
    let mut last = chain::first(&store);
    let mut touched = false;
    for (number, (at, record, old)) in (1_u64..).zip(rows) {
        let bytes = record.encode(number);
        // What comes before the first change keeps its link: only the key could make another.
        touched |= before
            .get(number as usize - 1)
            .is_none_or(|(was_at, was, _)| (*was_at, was.encode(number)) != (at, bytes.clone()));
        last = match repair {
            _ if !touched => old.try_into().unwrap(),
            Repair::Unkeyed => chain::unkeyed(&last, at, &bytes),
            Repair::OwnKey => own.link(&last, at, &bytes),
            Repair::Old => old.try_into().unwrap(),
        };
        let update = "UPDATE records SET at = ?2, hash = ?3 WHERE number = ?1";
        file.execute(update, params![number as i64, at, last]).unwrap();
    }
}

fn apply(path: &Path, edit: &Edit, repair: Repair) {
    let file = Connection::open(path).unwrap();
    let mut rows = read(&file);
    if edit_records(&mut rows, edit) {
        return write(&file, rows, repair);
    }
    let run = |sql: &str| file.execute_batch(sql).unwrap();
    let keys: Vec<String> = {
        let mut statement = file.prepare("SELECT key FROM calls").unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    match edit {
        Edit::MoveAnchor(at) => {
            let number = at % ORIGINAL.records.len() + 1;
            run(&format!(
                "UPDATE store SET anchor_number = {number},
                 anchor_hash = (SELECT hash FROM records WHERE number = {number})"
            ));
        }
        Edit::TakeAnchor => run("UPDATE store SET seal = NULL"),
        Edit::ChangeCall(at) => {
            let update = "UPDATE calls SET answer = '{\"ok\":1}' WHERE key = ?1";
            file.execute(update, [&keys[at % keys.len()]]).unwrap();
        }
        Edit::InsertCall => {
            run("INSERT OR REPLACE INTO calls SELECT agent, path, 'mine', session, body, status,
            answer, seal FROM calls LIMIT 1")
        }
        Edit::DeleteCall(at) => {
            file.execute("DELETE FROM calls WHERE key = ?1", [&keys[at % keys.len()]]).unwrap();
        }
        Edit::ChangeStart => run("UPDATE starts SET jumped = 0 WHERE start = 2"),
        Edit::InsertStart => {
            run("INSERT OR REPLACE INTO starts SELECT 3, at, version, boot, clock, jumped, trust,
            seal FROM starts WHERE start = 1")
        }
        Edit::DeleteStart => run("DELETE FROM starts WHERE start = 2"),
        _ => run("UPDATE store SET id = '00000000000000000000000000000000'"),
    }
}

fn is_identity(edit: &Edit) -> bool {
    let count = ORIGINAL.records.len();
    matches!(edit, Edit::Swap(one, other) if one % count == other % count)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    // covers: I26, I33
    #[test]
    fn whatever_is_done_without_the_key_is_refused_and_named(
        edit in edits(),
        repair in prop_oneof![Just(Repair::Unkeyed), Just(Repair::OwnKey), Just(Repair::Old)],
        in_good_order: bool,
    ) {
        let place = copy();
        let noted = if in_good_order { ORIGINAL.stopped } else { ORIGINAL.running };
        prop_assert_eq!(&start(&place.journal(), noted).unwrap().1, &ORIGINAL.records);
        apply(&place.journal(), &edit, repair);
        let named = audit(&place.journal(), noted);
        let started = start(&place.journal(), noted);
        if is_identity(&edit) || matches!(edit, Edit::DeleteCall(_)) && !in_good_order {
            // After a kill a call that was taken away is not missed: see docs/durability.md.
            prop_assert_eq!(named, Ok(()));
            prop_assert_eq!(&started.unwrap().1, &ORIGINAL.records);
            return Ok(());
        }
        prop_assert!(named.is_err(), "not named");
        match started {
            Err(_) => {}
            // An end that was cut off is an old copy: nothing of it goes on.
            Ok((head_check, believed)) => {
                prop_assert!(matches!(edit, Edit::Truncate(_) | Edit::Delete(_)));
                let behind = matches!(head_check, HeadCheck::Behind { .. });
                prop_assert!(behind && ORIGINAL.records.starts_with(&believed));
            }
        }
    }

    // covers: I26, I33
    #[test]
    fn several_edits_one_after_the_other_are_refused_and_named(
        edits in prop::collection::vec(edits(), 2..5),
        repair in prop_oneof![Just(Repair::Unkeyed), Just(Repair::OwnKey), Just(Repair::Old)],
        in_good_order: bool,
    ) {
        let place = copy();
        let noted = if in_good_order { ORIGINAL.stopped } else { ORIGINAL.running };
        for edit in &edits {
            apply(&place.journal(), edit, repair);
        }
        let named = audit(&place.journal(), noted);
        match start(&place.journal(), noted) {
            Err(_) => prop_assert!(named.is_err(), "not named"),
            // One undid the other, or what was taken away after a kill is not missed.
            Ok((HeadCheck::Same, believed)) => prop_assert_eq!(&believed, &ORIGINAL.records),
            Ok((standing, believed)) => {
                prop_assert!(named.is_err(), "not named");
                let behind = matches!(standing, HeadCheck::Behind { .. });
                prop_assert!(behind && ORIGINAL.records.starts_with(&believed));
            }
        }
    }

    // covers: I33
    #[test]
    fn after_a_power_cut_only_what_the_note_missed_can_be_taken_away(
        edit in edits(),
        repair in prop_oneof![Just(Repair::Unkeyed), Just(Repair::OwnKey), Just(Repair::Old)],
        missed in 1..4_usize,
    ) {
        let place = copy();
        let number = ORIGINAL.records.len() - missed;
        let hash: Vec<u8> = Connection::open(place.journal()).unwrap().query_row(
            "SELECT hash FROM records WHERE number = ?1", [number as i64], |row| row.get(0),
        ).unwrap();
        let noted =
            Noted { number: number as u64, hash: hash.try_into().unwrap(), ..ORIGINAL.running };
        apply(&place.journal(), &edit, repair);
        if let Ok((_, believed)) = start(&place.journal(), noted) {
            prop_assert!(ORIGINAL.records.starts_with(&believed), "a forged record was believed");
        }
    }
}

// covers: I33
#[test]
fn an_accept_that_somebody_appended_is_never_believed() {
    for repair in [Repair::Unkeyed, Repair::OwnKey] {
        let place = copy();
        apply(&place.journal(), &Edit::Append(1), repair);
        let appended = ORIGINAL.records.len() + 1;
        for noted in [ORIGINAL.running, ORIGINAL.stopped] {
            let refused = start(&place.journal(), noted).unwrap_err();
            assert!(
                refused.contains(&format!("Record {appended} cannot be believed")),
                "{refused}"
            );
            let named = audit(&place.journal(), noted).unwrap_err();
            assert!(named.starts_with(&format!("Record {appended}:")), "{named}");
        }
    }
}

// covers: I33
#[test]
fn the_name_of_a_store_leads_to_no_file_but_its_own() {
    let place = copy();
    let file = Connection::open(place.journal()).unwrap();
    for name in ["../../share/aaep/mine", "", "0123456789ABCDEF0123456789ABCDEF", "a/b"] {
        file.execute("UPDATE store SET id = ?1", [name]).unwrap();
        assert!(Sqlite::open(&place.journal(), Options::default(), &key()).is_err(), "{name}");
        assert!(Reader::open(&place.journal()).is_err(), "{name}");
    }
}

/// The changed definition of a table of ours.
fn redefine(table: &str, from: &str, to: &str) -> String {
    format!(
        "PRAGMA writable_schema = 1;
         UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = '{table}';
         PRAGMA writable_schema = RESET;"
    )
}

// covers: I33
#[test]
fn a_layout_that_somebody_changed_is_refused_and_named() {
    let ignores = redefine("records", "TEXT NOT NULL", "TEXT NOT NULL ON CONFLICT IGNORE");
    let changes = [
        "CREATE TRIGGER mine AFTER INSERT ON starts BEGIN DELETE FROM records; END",
        "CREATE INDEX mine ON records (kind)",
        "CREATE TABLE mine (x)",
        "ALTER TABLE records ADD COLUMN mine TEXT",
        "DROP INDEX ends; CREATE INDEX ends ON records (number) WHERE kind = 'ended'",
        "DROP VIEW decisions; CREATE VIEW decisions AS SELECT 'accepted' AS outcome",
        &ignores,
    ];
    for change in changes {
        let place = copy();
        Connection::open(place.journal()).unwrap().execute_batch(change).unwrap();
        for noted in [ORIGINAL.running, ORIGINAL.stopped] {
            let refused = start(&place.journal(), noted).unwrap_err();
            assert!(refused.contains("somebody"), "{change}: {refused}");
            let named = audit(&place.journal(), noted).unwrap_err();
            assert!(named.contains("layout"), "{change}: {named}");
        }
    }
}

/// Somebody changes the layout while a journal is open, and the next record is written.
fn keep_after(change: &str) -> (Sqlite, Result<(), aaep_store::JournalFault>) {
    let place = copy();
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
    Connection::open(place.journal()).unwrap().execute_batch(change).unwrap();
    let number = journal.head().0 + 1;
    let entries = vec![Entry { number, bytes: forged().encode(number) }];
    let kept = journal.keep(&[Unit { entries, notes: Vec::new() }]);
    (journal, kept)
}

// covers: I33
#[test]
fn a_trigger_that_somebody_left_in_the_file_does_not_run() {
    let trigger = "CREATE TRIGGER mine AFTER INSERT ON records BEGIN DELETE FROM records; END";
    let (mut journal, kept) = keep_after(trigger);
    kept.unwrap();
    journal.replay(None, |_, _, _| Ok(())).unwrap();
}

// covers: I33, I10
#[test]
fn a_record_that_the_file_swallows_is_not_durable() {
    let (_, kept) = keep_after(
        "ALTER TABLE records RENAME TO theirs;
         CREATE TABLE records (number INTEGER PRIMARY KEY, at, kind, session, request, agent, user, tool,
             call, text, irreversible, deadline, outcome, runs, decided_by, reason,
             bytes, hash, mine INTEGER DEFAULT 1 UNIQUE ON CONFLICT IGNORE);
         INSERT INTO records (number) SELECT max(number) FROM theirs;",
    );
    assert_eq!(kept, Err(aaep_store::JournalFault::Failed));
}
