//! Records that are erased: what is gone is gone, what is needed stays, and the chain goes on over it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files

mod support;

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use aaep_engine::{ClockTrust, Engine, Erasure, Input, Limits, Principal, Record, Recovery, Role};
use aaep_store::audit::{Filter, Plan, Which, export, export_csv, plan, verify};
use aaep_store::{
    Entry, HeadCheck, JournalWriter, KeptCall, Note, Options, Reader, Report, Sqlite, Unit,
};
use proptest::prelude::*;
use rusqlite::{Connection, params};
use support::{Place, World, day, journal_with, key, secrets};

/// Later than anything.
const EVER: i64 = i64::MAX;

/// Two people, whose sessions ended, and one that goes on.
fn world() -> World {
    let mut world = World::new();
    let bob = Principal::new("shop-agent", Role::Agent, "bob");
    for round in 0..6 {
        let ann = round % 2 == 0;
        if ann {
            world.agent = Principal::new("bank-agent", Role::Agent, "ann");
        } else {
            world.agent = bob.clone();
        }
        let session = world.open();
        world.ask(session, if ann { "canary-of-ann" } else { "canary-of-bob" });
        world.end(session);
    }
    world.agent = Principal::new("bank-agent", Role::Agent, "ann");
    let open = world.open();
    world.ask(open, "77");
    world
}

fn erase(journal: &mut Sqlite, plan: &Plan, note: &str) {
    let number = journal.head().0 + 1;
    let record = Record::Erased { why: plan.why, note: note.into(), runs: plan.runs.clone() };
    let entries = vec![Entry { number, bytes: record.encode(number) }];
    let forget = |session: &std::sync::Arc<str>| Note::ForgetCalls { session: session.to_string() };
    let notes = plan.sessions.iter().map(forget).collect();
    journal.keep(&[Unit { entries, notes }]).unwrap();
}

fn compact(journal: &mut Sqlite) {
    let mut new = journal.compaction().unwrap();
    while new.step(3).unwrap() > 0 {}
    assert!(journal.replace_with(&mut new).unwrap());
}

fn planned(path: &Path, which: Which<'_>) -> Plan {
    plan(&Reader::open(path).unwrap(), &key(), None, which, EVER).unwrap()
}

fn exported(path: &Path, filter: &Filter) -> String {
    let mut out = Vec::new();
    export(&Reader::open(path).unwrap(), filter, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

/// Every file of the place, searched for these bytes.
fn found_in_files(place: &Place, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(place.directory.path()).unwrap() {
        let file = file.unwrap();
        let bytes = std::fs::read(file.path()).unwrap();
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(file.file_name().to_string_lossy().into_owned());
        }
    }
    found
}

// covers: S13, I26, I33
#[test]
fn a_person_is_erased_from_every_file_and_the_chain_is_whole() {
    let place = Place::new();
    let mut journal = journal_with(&place.journal(), Options::default(), &world().entries);
    let call = KeptCall {
        agent: "bank-agent".into(),
        path: "/p".into(),
        key: "k".into(),
        session: "sess_x".into(),
        body: [1; 32],
        status: 201,
        answer: "{}".into(),
    };
    journal.note(Note::Call(call.clone())).unwrap();
    let before = journal.head();
    assert!(!found_in_files(&place, "canary-of-ann").is_empty());
    let plan = planned(&place.journal(), Which::OfUser("ann"));
    assert_eq!((plan.sessions.len(), plan.still_needed, plan.why), (3, 1, Erasure::Person));
    erase(&mut journal, &plan, "request 7");

    // Before compaction it does not count any more, and is told as erased.
    let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
    assert_eq!((whole.erased(), whole.to_remove), (plan.records, plan.records));
    assert!(!exported(&place.journal(), &Filter::default()).contains("canary-of-ann"));

    compact(&mut journal);
    assert_eq!(found_in_files(&place, "canary-of-ann"), [""; 0]);
    assert!(!found_in_files(&place, "canary-of-bob").is_empty());
    assert_eq!(journal.head().0, before.0 + 1);
    assert_eq!(journal.calls(None).unwrap(), [call]);
    let noted = journal.position();
    let reader = Reader::open(&place.journal()).unwrap();
    let whole = verify(&reader, Some(&key()), Some(noted)).unwrap();
    assert_eq!((whole.erased(), whole.to_remove, whole.records), (plan.records, 0, before.0 + 1));
    let act = &whole.erasures[0];
    assert_eq!((act.number, act.why, &*act.note), (before.0 + 1, Erasure::Person, "request 7"));
    // The open session of hers is still there.
    let ann = exported(&place.journal(), &Filter { user: Some("ann".into()), ..Filter::default() });
    assert!(ann.contains("Send 77 euros."));
    // Nothing is left to erase, and it goes on.
    assert_eq!(planned(&place.journal(), Which::OfUser("ann")).records, 0);
    drop(reader);
    drop(journal);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
    let replayed = journal.replay(Some(noted), |_, _, _| Ok(())).unwrap();
    assert_eq!((replayed.head_check, replayed.to_remove), (HeadCheck::Same, 0));
    let record = Record::Restarted { stamp: 0 };
    let number = journal.head().0 + 1;
    let entries = vec![Entry { number, bytes: record.encode(number) }];
    journal.keep(&[Unit { entries, notes: Vec::new() }]).unwrap();
    verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
}

// covers: S13
#[test]
fn the_file_shrinks_and_rows_of_erased_runs_become_one() {
    let place = Place::new();
    let mut world = World::new();
    for _ in 0..190 {
        let session = world.open();
        world.ask(session, &"9".repeat(300));
        world.end(session);
    }
    let mut journal = journal_with(&place.journal(), Options::default(), &world.entries);
    let length = || std::fs::metadata(place.journal()).unwrap().len();
    compact(&mut journal);
    let before = length();
    let plan = planned(&place.journal(), Which::AllBut(10));
    assert!((165..185).contains(&plan.sessions.len()), "{}", plan.sessions.len());
    erase(&mut journal, &plan, "");
    compact(&mut journal);
    assert!(length() < before / 5, "{} of {before}", length());
    // Twice erased, the rows that stand for it are merged.
    let plan = planned(&place.journal(), Which::Before(EVER));
    assert_eq!(plan.why, Erasure::Age);
    erase(&mut journal, &plan, "");
    compact(&mut journal);
    let rows: i64 = Connection::open(place.journal())
        .unwrap()
        .query_row("SELECT count(*) FROM records WHERE kind = 'gap'", [], |row| row.get(0))
        .unwrap();
    assert_eq!(rows, 1);
    let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
    assert_eq!(whole.erased() + 2, whole.records);
}

/// Everything that an engine answers with, in words.
fn state_of(engine: &mut Engine, world: &World) -> Vec<String> {
    let mut lines = vec![format!("{} {}", engine.open_sessions(), engine.pending_requests())];
    for entry in &world.entries {
        if let Ok((_, Record::Asked(asked), _)) = Record::decode(&entry.bytes) {
            lines.push(format!(
                "{} {:?} {:?}",
                asked.request,
                engine.status(asked.request),
                engine.session_of(asked.request)
            ));
        }
    }
    while let Some(output) = engine.poll_output() {
        if let aaep_engine::Output::Append { number, .. } = output {
            let _ = engine.handle(Input::Persisted { number }, world.now);
        }
        lines.push(format!("{output:?}"));
    }
    lines
}

#[derive(Clone, Debug)]
enum Deed {
    Open,
    Ask(u8),
    Reply(u8, bool),
    Invoke(u8),
    End(u8),
    Guess,
    Restart,
}

fn deeds() -> impl Strategy<Value = Vec<Deed>> {
    let deed = prop_oneof![
        3 => Just(Deed::Open),
        6 => any::<u8>().prop_map(Deed::Ask),
        6 => (any::<u8>(), any::<bool>()).prop_map(|(which, yes)| Deed::Reply(which, yes)),
        4 => any::<u8>().prop_map(Deed::Invoke),
        3 => any::<u8>().prop_map(Deed::End),
        1 => Just(Deed::Guess),
        1 => Just(Deed::Restart),
    ];
    prop::collection::vec(deed, 1..60)
}

fn pick<T: Copy>(all: &[T], which: u8) -> Option<T> {
    all.get(usize::from(which) % all.len().max(1)).copied()
}

fn lived(deeds: &[Deed]) -> World {
    let mut world = World::new();
    let (mut open, mut requests, mut amount) = (Vec::new(), Vec::new(), 0);
    for deed in deeds {
        match *deed {
            Deed::Open => open.push(world.open()),
            Deed::Ask(which) => {
                if let Some(session) = pick(&open, which) {
                    amount += 1;
                    requests.push((session, world.ask(session, &amount.to_string()), amount - 1));
                }
            }
            Deed::Reply(which, yes) => {
                if let Some((.., token)) = pick(&requests, which) {
                    let token = world.tokens[token as usize];
                    world.reply(&token, if yes { "accept" } else { "reject" });
                }
            }
            Deed::Invoke(which) => {
                if let Some((_, request, _)) = pick(&requests, which)
                    && world
                        .engine
                        .status(request)
                        .is_some_and(|s| format!("{s:?}").contains("true"))
                {
                    world.invoke(request);
                }
            }
            Deed::End(which) => {
                if let Some(session) = pick(&open, which) {
                    open.retain(|one| *one != session);
                    requests.retain(|(of, ..)| *of != session);
                    world.end(session);
                }
            }
            Deed::Guess => {
                world.reply(&aaep_types::ReplyToken::from_bits(12), "accept");
            }
            Deed::Restart => {
                let records: Vec<Vec<u8>> = support::records(&world.entries);
                let records = records.iter().map(Vec::as_slice);
                let trust = ClockTrust::Trusted;
                let (secrets, limits) = (secrets(), Limits::default());
                world.engine = Engine::recover(secrets, limits, records, trust, world.now).unwrap();
                let (peer, subscription) = (world.ann.clone(), world.phone);
                let (confirms, clarifies) = (true, true);
                world.handle(Input::Joined { peer: &peer, subscription, confirms, clarifies });
            }
        }
    }
    world
}

fn recovered(journal: &mut Sqlite, old: &BTreeSet<String>, world: &World) -> Vec<String> {
    let mut recovery: Recovery = Recovery::new(secrets(), Limits::default(), world.now);
    recovery.forget(old.iter().cloned());
    let each = |number, _, bytes: &[u8]| {
        recovery.skip_to(number);
        recovery.replay(bytes, |_| {}).map(drop)
    };
    journal.replay(None, each).unwrap();
    // The erasure is a record of its own: what comes after it has other numbers.
    state_of(&mut recovery.finish(ClockTrust::Trusted), world)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    // covers: S13, I3, I25
    #[test]
    fn after_erasing_a_restart_gives_the_same_state(deeds in deeds(), person in any::<bool>(), step in 1_usize..7) {
        let place = Place::in_memory();
        let world = lived(&deeds);
        let mut journal = journal_with(&place.journal(), Options::default(), &world.entries);
        let old: BTreeSet<String> = journal.ended_before(EVER).unwrap().into_iter().collect();
        let which = if person { Which::OfUser("ann") } else { Which::Before(EVER) };
        let plan = planned(&place.journal(), which);
        prop_assert_eq!(plan.sessions.len(), old.len());
        // The same number of records on both sides.
        let empty = Plan { runs: Vec::new(), sessions: Vec::new(), ..plan.clone() };
        let other = Place::in_memory();
        let mut kept = journal_with(&other.journal(), Options::default(), &world.entries);
        erase(&mut kept, &empty, "");
        let expected = recovered(&mut kept, &old, &world);
        erase(&mut journal, &plan, "");
        let none = BTreeSet::new();
        prop_assert_eq!(&recovered(&mut journal, &none, &world), &expected);
        let mut new = journal.compaction().unwrap();
        while new.step(step).unwrap() > 0 {}
        prop_assert!(journal.replace_with(&mut new).unwrap());
        prop_assert_eq!(&recovered(&mut journal, &none, &world), &expected);
        prop_assert!(journal.ended_before(EVER).unwrap().is_empty());
        let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), Some(journal.position()));
        prop_assert_eq!(whole.unwrap().erased(), plan.records);
    }
}

/// What a hub makes of the journal, and what an auditor.
fn refused(place: &Place) -> bool {
    let started = Sqlite::open(&place.journal(), Options::default(), &key())
        .is_ok_and(|mut journal| journal.replay(None, |_, _, _| Ok(())).is_ok());
    let reader = Reader::open(&place.journal()).unwrap();
    let verified = verify(&reader, Some(&key()), None).is_ok();
    assert_eq!(started, verified, "the hub and the auditor agree");
    !started
}

fn erased_journal(compacted: bool) -> (Place, Plan) {
    let place = Place::in_memory();
    let mut journal = journal_with(&place.journal(), Options::default(), &world().entries);
    let plan = planned(&place.journal(), Which::OfUser("bob"));
    erase(&mut journal, &plan, "");
    if compacted {
        compact(&mut journal);
    }
    assert!(plan.runs.len() > 1);
    drop(journal);
    assert!(!refused(&place));
    (place, plan)
}

fn sql(place: &Place, text: &str) {
    Connection::open(place.journal()).unwrap().execute_batch(text).unwrap();
}

// covers: S13, I33
#[test]
fn without_the_key_nobody_makes_a_record_look_erased() {
    // A record is taken away, and a row like those of the hub put in its place.
    for number in 1..=8 {
        let (place, _) = erased_journal(true);
        let file = Connection::open(place.journal()).unwrap();
        let gap = "SELECT substr(bytes, 9) FROM records WHERE kind = 'gap' LIMIT 1";
        let seal: Vec<u8> = file.query_row(gap, [], |row| row.get(0)).unwrap();
        let mut bytes = (number as u64).to_le_bytes().to_vec();
        bytes.extend(seal);
        let update = "UPDATE records SET kind = 'gap', bytes = ?2, session = NULL, request = NULL,
            agent = NULL, user = NULL, tool = NULL, call = NULL, text = NULL, irreversible = NULL,
            deadline = NULL, outcome = NULL, runs = NULL, decided_by = NULL, reason = NULL
            WHERE number = ?1 AND kind != 'gap'";
        if file.execute(update, params![number, bytes]).unwrap() == 1 {
            drop(file);
            assert!(refused(&place), "record {number}");
        }
    }
    // An erasure that nobody ordered.
    let place = Place::in_memory();
    drop(journal_with(&place.journal(), Options::default(), &world().entries));
    let forged = Record::Erased { why: Erasure::Age, note: "".into(), runs: vec![(2, 3)] };
    let file = Connection::open(place.journal()).unwrap();
    let insert = "INSERT INTO records (number, at, kind, bytes, hash)
        SELECT number + 1, at, 'erased', ?1, randomblob(32) FROM records ORDER BY number DESC LIMIT 1";
    let last: i64 =
        file.query_row("SELECT max(number) FROM records", [], |row| row.get(0)).unwrap();
    file.execute(insert, params![forged.encode(last as u64 + 1)]).unwrap();
    drop(file);
    assert!(refused(&place));
    // An old record relabelled as an erasure.
    let (place, _) = erased_journal(false);
    let forged = Record::Erased { why: Erasure::Age, note: "".into(), runs: vec![(1, 1)] };
    Connection::open(place.journal())
        .unwrap()
        .execute(
            "UPDATE records SET kind = 'erased', bytes = ?1 WHERE number = 4",
            [forged.encode(4)],
        )
        .unwrap();
    assert!(refused(&place));
}

// covers: S13, I25, I33
#[test]
fn what_was_erased_cannot_be_put_back_in_part_or_called_something_else() {
    for compacted in [false, true] {
        let (place, _) = erased_journal(compacted);
        sql(&place, "UPDATE records SET kind = 'resolved' WHERE kind IN ('gap', 'erased')");
        assert!(refused(&place), "another kind");
    }
    let (place, _) = erased_journal(true);
    sql(
        &place,
        "DELETE FROM records WHERE number = (SELECT min(number) FROM records WHERE kind = 'gap')",
    );
    assert!(refused(&place), "a gap was taken away");
    let (place, _) = erased_journal(true);
    sql(&place, "UPDATE records SET at = at + 1 WHERE kind = 'gap'");
    assert!(refused(&place), "another time");
    // The bytes of one run are put back from a copy: they are as they were written, and still count as
    // erased.
    let (place, plan) = erased_journal(false);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
    let copy = place.path("copy.db");
    Reader::open(&place.journal()).unwrap().backup(&copy).unwrap();
    compact(&mut journal);
    drop(journal);
    let (first, last) = plan.runs[0];
    let run = [first as i64, last as i64];
    let file = Connection::open(place.journal()).unwrap();
    file.execute("ATTACH ?1 AS old", [copy.to_str().unwrap()]).unwrap();
    file.execute("DELETE FROM records WHERE number BETWEEN ?1 AND ?2", run).unwrap();
    file.execute(
        "INSERT INTO records SELECT * FROM old.records WHERE number BETWEEN ?1 AND ?2",
        run,
    )
    .unwrap();
    drop(file);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
    let mut seen = Vec::new();
    let each = |number, _, _: &[u8]| {
        seen.push(number);
        Ok(())
    };
    let replayed = journal.replay(None, each).unwrap();
    assert_eq!(replayed.to_remove, last - first + 1);
    assert!(!seen.iter().any(|number| (first..=last).contains(number)));
}

// covers: S13
#[test]
fn a_journal_from_before_records_could_be_erased_is_read_and_brought_up_to_date() {
    let place = Place::in_memory();
    let day = day();
    drop(journal_with(&place.journal(), Options::default(), &day.entries));
    sql(&place, "DROP INDEX erasures; PRAGMA user_version = 2;");
    let reader = Reader::open(&place.journal()).unwrap();
    let records = verify(&reader, Some(&key()), None).unwrap().records;
    drop(reader);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
    assert_eq!(journal.replay(None, |_, _, _| Ok(())).unwrap().records, records);
    let plan = planned(&place.journal(), Which::OfUser("ann"));
    erase(&mut journal, &plan, "");
    compact(&mut journal);
    verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
}

// covers: S13
#[test]
fn a_journal_that_somebody_looks_into_is_not_exchanged_under_them() {
    let place = Place::new();
    let mut journal = journal_with(&place.journal(), Options::default(), &world().entries);
    let plan = planned(&place.journal(), Which::OfUser("bob"));
    erase(&mut journal, &plan, "");
    let reader = Reader::open(&place.journal()).unwrap();
    let mut new = journal.compaction().unwrap();
    assert!(!journal.replace_with(&mut new).unwrap());
    assert_eq!(verify(&reader, Some(&key()), None).unwrap().to_remove, plan.records);
    // Meanwhile the journal goes on; what came is in the new one.
    let number = journal.head().0 + 1;
    let entries = vec![Entry { number, bytes: Record::Restarted { stamp: 0 }.encode(number) }];
    journal.keep(&[Unit { entries, notes: Vec::new() }]).unwrap();
    drop(reader);
    assert!(journal.replace_with(&mut new).unwrap());
    drop(new);
    assert!(!place.path("journal.db-compact").exists());
    let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
    assert_eq!((whole.records, whole.to_remove), (number, 0));
}

// covers: S13
#[test]
fn nothing_is_compacted_from_records_that_were_changed() {
    let place = Place::new();
    let journal = journal_with(&place.journal(), Options::default(), &world().entries);
    sql(&place, "UPDATE records SET at = at + 1 WHERE number = 5");
    let mut new = journal.compaction().unwrap();
    let fault = loop {
        match new.step(2) {
            Ok(0) => panic!("it was believed"),
            Ok(_) => {}
            Err(fault) => break fault,
        }
    };
    assert_eq!(fault, aaep_store::JournalFault::Damaged { index: 4 });
}

// covers: S13
#[test]
fn the_writer_compacts_while_it_commits() {
    let place = Place::new();
    let mut journal = journal_with(&place.journal(), Options::default(), &world().entries);
    let plan = planned(&place.journal(), Which::OfUser("ann"));
    erase(&mut journal, &plan, "");
    let mut number = journal.head().0;
    let (sender, reports) = mpsc::channel();
    let writer = JournalWriter::start(journal, None, move |report| {
        let _ = sender.send(report);
    })
    .unwrap();
    writer.compact().unwrap();
    let mut compacted = false;
    for unit in 1..=200 {
        number += 1;
        let entries = vec![Entry { number, bytes: Record::Restarted { stamp: 0 }.encode(number) }];
        writer.submit(Unit { entries, notes: Vec::new() });
        loop {
            match reports.recv_timeout(Duration::from_secs(60)).unwrap() {
                Report::Durable { units, .. } if units == unit => break,
                Report::Compacted { .. } => compacted = true,
                Report::Durable { .. } => {}
                other => panic!("{other:?}"),
            }
        }
    }
    while !compacted {
        compacted = matches!(
            reports.recv_timeout(Duration::from_secs(60)).unwrap(),
            Report::Compacted { .. }
        );
    }
    writer.close();
    assert_eq!(found_in_files(&place, "canary-of-ann"), [""; 0]);
    let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
    assert_eq!((whole.records, whole.to_remove), (number, 0));
}

// covers: S13
#[test]
fn as_csv_a_record_is_one_line_and_no_formula() {
    let place = Place::in_memory();
    let mut world = World::new();
    let session = world.open();
    world.ask(session, "=HYPERLINK(1)");
    world.agent = Principal::new("=cmd|' /C calc'!A0", Role::Agent, "ann");
    world.open();
    let journal = journal_with(&place.journal(), Options::default(), &world.entries);
    let mut out = Vec::new();
    let reader = Reader::open(&place.journal()).unwrap();
    let lines = export_csv(&reader, &Filter::default(), &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    assert_eq!(text.lines().count() as u64, lines + 1);
    assert_eq!(lines, journal.head().0);
    assert!(text.contains("\"'=cmd|' /C calc'!A0\""), "{text}");
    for line in text.lines().skip(1) {
        assert!(!line.contains(",=") && !line.contains(",\"=") && !line.contains(",@"), "{line}");
    }
}

/// Erases one more person and compacts, again and again, until it is killed. Only as a child process.
#[test]
fn compacts_until_it_is_killed() {
    let Some(directory) = std::env::var_os("AAEP_COMPACT_UNTIL_KILLED") else { return };
    let path = Path::new(&directory).join("journal.db");
    let mut journal = Sqlite::open(&path, Options::default(), &key()).unwrap();
    loop {
        let plan = planned(&path, Which::AllBut(97));
        erase(&mut journal, &plan, "");
        let mut new = journal.compaction().unwrap();
        while new.step(5).unwrap() > 0 {}
        assert!(journal.replace_with(&mut new).unwrap());
        drop(new);
        println!("compacted");
        if plan.records == 0 {
            std::thread::sleep(Duration::from_secs(600));
        }
    }
}

// covers: S13, I3, I26
#[test]
fn a_kill_at_any_point_leaves_the_old_journal_or_the_new_one() {
    use std::process::{Command, Stdio};
    let mut world = World::new();
    for _ in 0..60 {
        let session = world.open();
        world.ask(session, "5");
        world.end(session);
    }
    let open = world.open();
    world.ask(open, "77");
    let (mut interrupted, mut finished) = (0, 0);
    for round in 0..24_u64 {
        let place = Place::in_memory();
        drop(journal_with(&place.journal(), Options::default(), &world.entries));
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "compacts_until_it_is_killed", "--nocapture"])
            .env("AAEP_COMPACT_UNTIL_KILLED", place.directory.path())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        // At another moment each time; which one does not matter to what is asserted.
        std::thread::sleep(Duration::from_millis(20 + round * 7));
        child.kill().unwrap();
        child.wait().unwrap();
        let reader = Reader::open(&place.journal()).unwrap();
        let whole = verify(&reader, Some(&key()), None).unwrap();
        assert!(whole.records >= world.entries.len() as u64);
        drop(reader);
        let mut journal = Sqlite::open(&place.journal(), Options::default(), &key()).unwrap();
        assert!(!place.path("journal.db-compact").exists(), "what was unfinished is removed");
        let mut asked = Vec::new();
        let each = |_, _, bytes: &[u8]| {
            if let (_, Record::Asked(one), _) = Record::decode(bytes)? {
                asked.push(one.arguments.to_string());
            }
            Ok(())
        };
        let replayed = journal.replay(None, each).unwrap();
        assert_eq!(asked.last().unwrap(), r#"{"euros":"77"}"#);
        interrupted += u64::from(replayed.to_remove > 0);
        finished += u64::from(whole.erased() > replayed.to_remove);
        compact(&mut journal);
        let whole = verify(&Reader::open(&place.journal()).unwrap(), Some(&key()), None).unwrap();
        assert_eq!(whole.to_remove, 0);
    }
    println!("{interrupted} of 24 were killed before the exchange, {finished} after one");
}
