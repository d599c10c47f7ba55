//! The embedded journal: its contract, its file, its views, its copies.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files

mod support;

use std::fs;

use aaep_store::contract::{batch, full_journal_contract, journal_contract};
use aaep_store::{
    CannotOpen, Head, HeadCheck, Journal, JournalFault, KeptCall, Note, Options, Reader, Sqlite,
    Start, Unit, VERSION,
};
use support::{Place, day, journal_with, records};

/// Journals in files of their own, as long as the place lives.
fn journals(place: &Place) -> impl FnMut() -> Sqlite {
    let mut count = 0;
    move || {
        count += 1;
        Sqlite::open(&place.path(&format!("{count}.db")), Options::default(), &support::key())
            .unwrap()
    }
}

// covers: I10
#[test]
fn the_journal_on_disk_keeps_the_contract() {
    let place = Place::new();
    journal_contract(journals(&place));
}

#[test]
fn a_full_journal_keeps_what_it_has_and_nothing_of_the_batch() {
    let place = Place::new();
    let mut make = journals(&place);
    full_journal_contract(|| {
        let mut journal = make();
        journal.set_room(0).unwrap();
        journal
    });
}

#[test]
fn a_full_journal_takes_the_same_records_once_there_is_room() {
    let place = Place::new();
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    journal.set_room(0).unwrap();
    let all = batch(1..=100);
    assert_eq!(journal.append(&all), Err(JournalFault::Full));
    journal.set_room(1 << 30).unwrap();
    journal.append(&all).unwrap();
    assert_eq!(journal.read().unwrap(), records(&all));
}

// covers: I3
#[test]
fn what_was_kept_is_there_after_it_was_closed_and_numbers_go_on() {
    let place = Place::new();
    let day = day();
    let (now, later) = day.entries.split_at(7);
    drop(journal_with(&place.journal(), Options::default(), now));
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    assert_eq!(journal.read().unwrap(), records(now));
    assert_eq!(journal.append(&later[1..]), Err(JournalFault::OutOfTurn { expected: 8 }));
    journal.append(later).unwrap();
    assert_eq!(journal.read().unwrap(), records(&day.entries));
}

// covers: I3
#[test]
fn a_long_journal_is_read_in_order_up_to_the_first_record_that_cannot_be_believed() {
    const LONG: u64 = 30_000;
    let place = Place::new();
    let all = batch(1..=LONG);
    let mut journal = journal_with(&place.journal(), Options::default(), &all);
    let mut read = Vec::new();
    let each = |_, _, bytes: &[u8]| {
        read.push(bytes.to_vec());
        Ok(())
    };
    assert_eq!(journal.replay(None, each).unwrap().records, LONG);
    assert_eq!(read, records(&all));

    // Found on reading: nothing after it is handed on.
    let mut handed = 0;
    let each = |_, _, _: &[u8]| {
        handed += 1;
        if handed == 20 { Err(aaep_engine::Corrupt::Unknown) } else { Ok(()) }
    };
    assert_eq!(journal.replay(None, each).unwrap_err().number, 20);
    assert_eq!(handed, 20);

    // Found in the file: all before it is handed on.
    let file = rusqlite::Connection::open(place.journal()).unwrap();
    file.execute("DELETE FROM records WHERE number = 25000", []).unwrap();
    let mut handed = 0;
    let each = |_, _, _: &[u8]| {
        handed += 1;
        Ok(())
    };
    assert_eq!(journal.replay(None, each).unwrap_err().number, 25_000);
    assert_eq!(handed, 24_999);
}

// covers: C13, I2
#[test]
fn two_hubs_never_share_a_journal_but_people_can_read_it() {
    let place = Place::new();
    let journal = journal_with(&place.journal(), Options::default(), &day().entries);
    let second = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap_err();
    assert_eq!(second, CannotOpen::InUse);
    assert!(second.to_string().contains("Stop the other hub"));
    let reader = rusqlite::Connection::open(place.journal()).unwrap();
    let open: i64 =
        reader.query_row("SELECT count(*) FROM open_requests", [], |row| row.get(0)).unwrap();
    assert_eq!(open, 2);
    drop(journal);
    Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
}

#[cfg(unix)]
#[test]
fn nobody_else_can_read_the_files() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let _journal = journal_with(&place.journal(), Options::default(), &day().entries);
    let mut seen = 0;
    for file in fs::read_dir(place.directory.path()).unwrap() {
        let file = file.unwrap();
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o077, 0, "{:?}", file.path());
        seen += 1;
    }
    assert!(seen >= 3, "the file, its log, its lock");
}

#[test]
fn another_program_that_holds_the_file_is_named_and_nothing_is_lost() {
    let place = Place::new();
    let all = batch(1..=2);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    let other = rusqlite::Connection::open(place.journal()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert_eq!(journal.append(&all), Err(JournalFault::Busy));
    other.execute_batch("ROLLBACK").unwrap();
    journal.append(&all).unwrap();
    assert_eq!(journal.read().unwrap(), records(&all));
}

#[test]
fn a_file_of_another_program_or_of_a_newer_version_is_refused_and_left_alone() {
    let place = Place::new();
    let theirs = rusqlite::Connection::open(place.path("theirs.db")).unwrap();
    theirs.execute_batch("CREATE TABLE addresses (name)").unwrap();
    drop(theirs);
    let before = fs::read(place.path("theirs.db")).unwrap();
    let refused =
        Sqlite::open(&place.path("theirs.db"), Options::default(), &support::key()).unwrap_err();
    assert_eq!(refused, CannotOpen::NotOurs);
    assert_eq!(fs::read(place.path("theirs.db")).unwrap(), before);

    fs::write(place.path("text.db"), "This is a letter to my aunt. ".repeat(100)).unwrap();
    let refused =
        Sqlite::open(&place.path("text.db"), Options::default(), &support::key()).unwrap_err();
    assert!(matches!(refused, CannotOpen::Damaged { .. }), "{refused:?}");

    drop(Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap());
    let newer = rusqlite::Connection::open(place.journal()).unwrap();
    newer.pragma_update(None, "user_version", VERSION + 1).unwrap();
    drop(newer);
    for refused in [
        Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap_err(),
        Reader::open(&place.journal()).unwrap_err(),
    ] {
        assert_eq!(refused, CannotOpen::Newer { found: VERSION + 1, known: VERSION });
        assert!(refused.to_string().contains("Use the newer version"), "{refused}");
    }
}

/// Rows of a query, as texts.
fn rows(place: &Place, query: &str) -> Vec<String> {
    let reader = rusqlite::Connection::open(place.journal()).unwrap();
    let mut statement = reader.prepare(query).unwrap();
    let columns = statement.column_count();
    let rows = statement.query_map([], |row| {
        let value = |at| match row.get_ref(at).unwrap() {
            rusqlite::types::ValueRef::Null => "-".to_owned(),
            rusqlite::types::ValueRef::Integer(number) => number.to_string(),
            other => other.as_str().unwrap().to_owned(),
        };
        Ok((0..columns).map(value).collect::<Vec<_>>().join("|"))
    });
    rows.unwrap().map(Result::unwrap).collect()
}

#[test]
fn people_can_ask_what_is_open_and_who_decided_what() {
    let place = Place::new();
    let _journal = journal_with(&place.journal(), Options::default(), &day().entries);
    let rows = |query| rows(&place, query);
    assert_eq!(
        rows("SELECT agent, user, tool, text, irreversible FROM open_requests ORDER BY text"),
        ["bank-agent|ann|transfer|Send 1 euros.|1", "bank-agent|ann|transfer|Send 5 euros.|1"]
    );
    assert_eq!(
        rows("SELECT deadline FROM open_requests ORDER BY text"),
        ["2026-05-24T14:27:11Z", "2026-05-24T14:37:11Z"]
    );
    assert_eq!(
        rows(
            "SELECT decided_by, outcome, runs, agent, text FROM decisions ORDER BY decided_at, text"
        ),
        [
            "ann's phone|rejected|0|bank-agent|Send 20 euros.",
            "session|cancelled|0|bank-agent|Send 3 euros.",
            "ann's phone|accepted|1|bank-agent|Send 800 euros.",
        ]
    );
    assert_eq!(
        rows("SELECT decided_by, outcome, decisions FROM decisions_by_person"),
        ["ann's phone|accepted|1", "ann's phone|rejected|1", "session|cancelled|1"]
    );
    assert_eq!(rows("SELECT agent, outcome FROM decisions_by_agent").len(), 3);
    let today = rows("SELECT strftime('%Y-%m-%d', 'now')").remove(0);
    assert!(rows("SELECT day, decisions FROM decisions_by_day")[0].starts_with(&today[..7]));
    assert_eq!(
        rows("SELECT sent_by, reason FROM ignored_replies"),
        ["ann's phone|was decided already", "ann's phone|no such token"]
    );
    assert_eq!(
        rows("SELECT tool, text, completed_at FROM invocations"),
        ["transfer|Send 800 euros.|-"]
    );
    assert_eq!(rows("SELECT ended_at IS NULL FROM sessions"), ["1", "0"]);
}

#[test]
fn the_layout_is_documented_and_every_query_in_the_document_runs() {
    let place = Place::new();
    let _journal = journal_with(&place.journal(), Options::default(), &day().entries);
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/durability.md");
    let document = fs::read_to_string(path).unwrap();
    let mut queries = 0;
    for block in document.split("```sql\n").skip(1) {
        for query in block.split("```").next().unwrap().split(';') {
            if !query.trim().is_empty() {
                rows(&place, query);
                queries += 1;
            }
        }
    }
    assert!(queries >= 5);
    let tables = "SELECT name FROM sqlite_schema WHERE type IN ('table', 'view')";
    for table in rows(&place, tables) {
        let row = document.lines().position(|line| line.starts_with(&format!("| `{table}` |")));
        let row = row.unwrap_or_else(|| panic!("{table} is not documented"));
        // A table's columns may take several lines, whose first cell is empty.
        let lines: Vec<&str> = document.lines().skip(row).collect();
        let end = lines[1..].iter().position(|line| !line.starts_with("| | ")).unwrap() + 1;
        let text = lines[..end].join("\n");
        for column in rows(&place, &format!("SELECT name FROM pragma_table_info('{table}')")) {
            assert!(text.contains(&format!("`{column}`")), "{table}.{column} is not documented");
        }
    }
    assert!(document.contains(&format!("Version {VERSION},")));
}

// covers: S8
#[test]
fn no_reply_token_is_in_the_file_or_its_log() {
    let place = Place::new();
    let day = day();
    let _journal = journal_with(&place.journal(), Options::default(), &day.entries);
    assert!(day.tokens.len() >= 5);
    for file in fs::read_dir(place.directory.path()).unwrap() {
        let bytes = fs::read(file.unwrap().path()).unwrap();
        for token in &day.tokens {
            let digits = &token.as_str().as_bytes()[4..];
            assert!(!bytes.windows(digits.len()).any(|window| window == digits));
        }
    }
}

fn call(key: &str, session: &str) -> KeptCall {
    KeptCall {
        agent: "bank-agent".into(),
        path: "/aaep/v1/agent/sessions".into(),
        key: key.into(),
        session: session.into(),
        body: [9; 32],
        status: 201,
        answer: "{}".into(),
    }
}

// covers: I11
#[test]
fn calls_are_kept_with_their_records_or_not_at_all() {
    let place = Place::new();
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    let unit =
        |number, key| Unit { entries: batch([number]), notes: vec![Note::Call(call(key, "s1"))] };
    journal.keep(&[unit(1, "a"), unit(2, "b")]).unwrap();
    assert!(journal.keep(&[unit(4, "c")]).is_err());
    journal.set_room(0).unwrap();
    let large = Unit { entries: batch(3..=200), notes: vec![Note::Call(call("d", "s1"))] };
    assert_eq!(journal.keep(&[large]), Err(JournalFault::Full));
    journal.set_room(1 << 30).unwrap();
    journal.note(Note::Call(call("e", "s2"))).unwrap();
    drop(journal);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    let keys = |journal: &Sqlite| -> Vec<String> {
        journal.calls(None).unwrap().into_iter().map(|call| call.key).collect()
    };
    assert_eq!(keys(&journal), ["a", "b", "e"]);
    assert_eq!(journal.calls(None).unwrap()[0], call("a", "s1"));
    journal.note(Note::ForgetCalls { session: "s1".into() }).unwrap();
    assert_eq!(keys(&journal), ["e"]);
    assert_eq!(journal.read().unwrap().len(), 2);
}

// covers: I8
#[test]
fn a_start_is_noted_with_its_clocks_and_so_is_a_jump() {
    let place = Place::new();
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    assert_eq!(journal.last_start().unwrap(), None);
    let start = Start {
        at: 0,
        version: "0.1.0".into(),
        boot: "b1".into(),
        clock: 17,
        jumped: false,
        trust: "new".into(),
    };
    journal.note_start(&start).unwrap();
    let start = Start { at: journal.last_start().unwrap().unwrap().at, ..start };
    assert!(start.at > support::START * 1000 / 2);
    drop(journal);
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    assert_eq!(journal.last_start().unwrap(), Some(start.clone()));
    journal.note(Note::ClockJumped).unwrap();
    assert_eq!(journal.last_start().unwrap(), Some(Start { jumped: true, ..start }));
    let other = rusqlite::Connection::open(place.journal()).unwrap();
    other.execute_batch("UPDATE starts SET jumped = 0").unwrap();
    assert!(journal.last_start().is_err());
}

#[test]
fn sessions_that_ended_before_some_time_are_found() {
    let place = Place::new();
    let journal = journal_with(&place.journal(), Options::default(), &day().entries);
    assert!(journal.ended_before(support::START).unwrap().is_empty());
    let ended = journal.ended_before(i64::MAX).unwrap();
    assert_eq!(ended.len(), 1);
    assert!(ended[0].starts_with("sess_"));
}

#[test]
fn a_copy_is_made_while_the_hub_works_and_is_one_whole_file() {
    let place = Place::new();
    let day = day();
    let mut journal = journal_with(&place.journal(), Options::default(), &day.entries[..9]);
    let reader = Reader::open(&place.journal()).unwrap();
    reader.backup(&place.path("copy.db")).unwrap();
    journal.append(&day.entries[9..]).unwrap();
    assert!(reader.backup(&place.path("copy.db")).is_err(), "nothing is written over");
    let names: Vec<_> = fs::read_dir(place.directory.path())
        .unwrap()
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .filter(|name| name.starts_with("copy"))
        .collect();
    assert_eq!(names, ["copy.db"]);
    let mut copy =
        Sqlite::open(&place.path("copy.db"), Options::default(), &support::key()).unwrap();
    assert_eq!(copy.read().unwrap(), records(&day.entries[..9]));
    assert_eq!(copy.store(), journal.store());
}

// covers: I2, I25, I26
#[test]
fn an_old_copy_is_recognised_by_what_was_noted_outside() {
    let place = Place::new();
    let heads = place.path("heads");
    let day = day();
    let mut journal = Sqlite::open(&place.journal(), Options::default(), &support::key()).unwrap();
    let store = journal.store().to_owned();
    let look = || Head::look(&heads, &store);
    let head_check = |journal: &mut Sqlite, noted| {
        journal.replay(noted, |_, _, _| Ok(())).map(|replayed| replayed.head_check)
    };
    assert_eq!(head_check(&mut journal, look()), Ok(HeadCheck::New));
    let mut head = Head::open(&heads, &store).unwrap();
    head.note(journal.position()).unwrap();
    assert_eq!(head_check(&mut journal, look()), Ok(HeadCheck::Same));
    journal.append(&day.entries[..4]).unwrap();
    // The power went before the note was written: fine.
    assert_eq!(head_check(&mut journal, look()), Ok(HeadCheck::Same));
    head.note(journal.position()).unwrap();
    Reader::open(&place.journal()).unwrap().backup(&place.path("copy.db")).unwrap();
    journal.append(&day.entries[4..]).unwrap();
    head.note(journal.final_position().unwrap()).unwrap();
    assert_eq!(head_check(&mut journal, look()), Ok(HeadCheck::Same));

    let last = day.entries.len() as u64;
    let mut copy =
        Sqlite::open(&place.path("copy.db"), Options::default(), &support::key()).unwrap();
    assert_eq!(head_check(&mut copy, look()), Ok(HeadCheck::Behind { noted: last }));
    assert_eq!(head_check(&mut copy, None), Ok(HeadCheck::Unknown));
    // The copy goes its own way, and further.
    copy.append(&batch(5..=last + 3)).unwrap();
    assert_eq!(head_check(&mut copy, look()), Ok(HeadCheck::Different { noted: last }));
    // After the hub stopped in good order, nothing may follow.
    journal.append(&batch([last + 1])).unwrap();
    assert_eq!(head_check(&mut journal, look()), Ok(HeadCheck::Longer { noted: last }));
}
