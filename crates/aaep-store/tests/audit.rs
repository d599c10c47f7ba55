//! The audit chain under flips, cuts and swaps; what is exported.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // tests of files

mod support;

use aaep_engine::Record;
use aaep_store::audit::{Bad, Filter, Whole, export, verify};
use aaep_store::{ChainKey, KINDS, Noted, Options, Reader, chain};
use aaep_types::Timestamp;
use rusqlite::{Connection, params};
use support::{Place, day, journal_with, key};

/// A journal with a day's records, what was noted outside, and a way to tamper with it.
struct Tampered {
    place: Place,
    noted: Noted,
    count: u64,
}

impl Tampered {
    fn new() -> Self {
        let place = Place::new();
        let journal = journal_with(&place.journal(), Options::default(), &day().entries);
        let noted = journal.position();
        Self { place, noted, count: noted.number }
    }

    fn run(&self, sql: &str) {
        Connection::open(self.place.journal()).unwrap().execute_batch(sql).unwrap();
    }

    fn verify(&self) -> Result<Whole, Bad> {
        verify(&Reader::open(&self.place.journal()).unwrap(), Some(&key()), Some(self.noted))
    }

    fn verify_alone(&self) -> Result<Whole, Bad> {
        verify(&Reader::open(&self.place.journal()).unwrap(), Some(&key()), None)
    }
}

// covers: I26
#[test]
fn an_untouched_chain_is_whole_also_while_the_hub_works() {
    let place = Place::new();
    let journal = journal_with(&place.journal(), Options::default(), &day().entries);
    let (number, hash) = journal.head();
    let reader = Reader::open(&place.journal()).unwrap();
    let verify = |key: Option<&ChainKey>, noted| verify(&reader, key, noted);
    let whole = verify(Some(&key()), Some(journal.position())).unwrap();
    let (end_is_known, key_is_known, keyed_after) = (true, true, Some(0));
    assert_eq!(
        whole,
        Whole {
            records: number,
            erasures: Vec::new(),
            to_remove: 0,
            hash,
            end_is_known,
            key_is_known,
            keyed_after,
            old_copies: Vec::new()
        }
    );
    assert!(!verify(Some(&key()), None).unwrap().end_is_known);
    // What was noted a little earlier is fine too.
    let earlier = Noted::at(0, chain::first(reader.store()));
    assert!(verify(Some(&key()), Some(earlier)).unwrap().end_is_known);
    // An auditor without the key learns that it was not checked; with another one, that it is wrong.
    assert!(!verify(None, Some(journal.position())).unwrap().key_is_known);
    let bad = verify(Some(&ChainKey::new(&[1; 32])), None).unwrap_err();
    assert!(bad.number == 0 && bad.what.contains("not the key"), "{bad}");
}

// covers: I26
#[test]
fn a_flipped_bit_in_any_record_is_found_and_the_record_named() {
    let tampered = Tampered::new();
    let file = Connection::open(tampered.place.journal()).unwrap();
    let bytes_of = |number: u64| -> Vec<u8> {
        let one = "SELECT bytes FROM records WHERE number = ?1";
        file.query_row(one, [number as i64], |row| row.get(0)).unwrap()
    };
    let put = |number: u64, bytes: &[u8]| {
        let update = "UPDATE records SET bytes = ?2 WHERE number = ?1";
        file.execute(update, params![number as i64, bytes]).unwrap();
    };
    for number in 1..=tampered.count {
        let whole = bytes_of(number);
        for at in [0, 4, 8, 16, whole.len() / 2, whole.len() - 1] {
            let mut flipped = whole.clone();
            flipped[at] ^= 0x10;
            put(number, &flipped);
            assert_eq!(tampered.verify().unwrap_err().number, number, "byte {at}");
        }
        put(number, &whole);
    }
    tampered.verify().unwrap();
}

// covers: I26
#[test]
fn a_record_that_was_rewritten_with_a_right_checksum_is_found() {
    let tampered = Tampered::new();
    let file = Connection::open(tampered.place.journal()).unwrap();
    let find = "SELECT number, bytes FROM records WHERE outcome = 'rejected'";
    let (number, bytes): (i64, Vec<u8>) =
        file.query_row(find, [], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    let Ok((_, Record::Resolved { request, by, response, said, .. }, _)) = Record::decode(&bytes)
    else {
        panic!("a resolution")
    };
    let outcome = aaep_engine::Outcome::Accepted;
    let forged = Record::Resolved {
        request,
        outcome,
        runs: true,
        by,
        response,
        reply: "".into(),
        presence: aaep_types::Presence::None,
        assertion: Default::default(),
        said,
    };
    let update = "UPDATE records SET bytes = ?2, outcome = 'accepted', runs = 1 WHERE number = ?1";
    file.execute(update, params![number, forged.encode(number as u64)]).unwrap();
    let bad = tampered.verify().unwrap_err();
    assert_eq!(bad.number, number as u64);
    assert!(bad.to_string().contains("does not follow"), "{bad}");
}

// covers: I26
#[test]
fn whoever_computes_the_whole_chain_again_without_the_key_is_found() {
    let tampered = Tampered::new();
    let file = Connection::open(tampered.place.journal()).unwrap();
    let all = "SELECT number, at, bytes FROM records ORDER BY number";
    let mut statement = file.prepare(all).unwrap();
    let rows: Vec<(i64, i64, Vec<u8>)> = statement
        .query_map([], |row| Ok((row.get(0)?, row.get::<_, i64>(1)? - 1, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let store: String = file.query_row("SELECT id FROM store", [], |row| row.get(0)).unwrap();
    let mut hash = chain::first(&store);
    for (number, at, bytes) in rows {
        hash = chain::unkeyed(&hash, at, &bytes);
        let update = "UPDATE records SET at = ?2, hash = ?3 WHERE number = ?1";
        file.execute(update, params![number, at, hash]).unwrap();
    }
    for bad in [tampered.verify_alone().unwrap_err(), tampered.verify().unwrap_err()] {
        assert_eq!(bad.number, 1);
        assert!(bad.what.contains("not written with this journal's key"), "{bad}");
    }
}

// covers: I26
#[test]
fn a_cut_is_found_wherever_it_is_made() {
    for cut in 1..=Tampered::new().count {
        let tampered = Tampered::new();
        tampered.run(&format!("DELETE FROM records WHERE number = {cut}"));
        assert_eq!(tampered.verify().unwrap_err().number, cut);
        // Without the middle, the rest cannot move up: each record knows its number.
        tampered.run(&format!("UPDATE records SET number = number - 1 WHERE number > {cut}"));
        assert_eq!(tampered.verify().unwrap_err().number, cut);
    }
    let tampered = Tampered::new();
    tampered.run("DELETE FROM records WHERE number > 4");
    let bad = tampered.verify().unwrap_err();
    assert_eq!(bad.number, 5);
    assert!(bad.what.contains(&format!("up to {}", tampered.count)), "{bad}");
    // The chain alone cannot know its end, and says that it does not.
    assert!(!tampered.verify_alone().unwrap().end_is_known);
}

// covers: I26
#[test]
fn swapped_records_are_found() {
    for (one, other) in [(1, 2), (3, 9), (5, 6)] {
        for columns in ["number", "bytes", "at", "hash"] {
            let tampered = Tampered::new();
            if columns == "number" {
                tampered.run(&format!(
                    "UPDATE records SET number = -1 WHERE number = {one};
                     UPDATE records SET number = {one} WHERE number = {other};
                     UPDATE records SET number = {other} WHERE number = -1;"
                ));
            } else {
                tampered.run(&format!(
                    "CREATE TEMP TABLE kept AS SELECT number, {columns} AS value FROM records;
                     UPDATE records SET {columns} = (SELECT value FROM kept WHERE number = {other})
                         WHERE number = {one};
                     UPDATE records SET {columns} = (SELECT value FROM kept WHERE number = {one})
                         WHERE number = {other};"
                ));
                if columns == "at" {
                    tampered.run(&format!("UPDATE records SET at = at + 1 WHERE number = {one}"));
                }
            }
            assert_eq!(tampered.verify().unwrap_err().number, one, "{columns}");
        }
    }
}

// covers: I26
#[test]
fn a_column_that_says_something_else_than_its_record_is_named() {
    let changes = [
        ("decided_by = 'mallory'", "outcome = 'accepted'", "decided_by"),
        ("outcome = 'accepted'", "outcome = 'rejected'", "outcome"),
        ("text = 'Send 1 euro.'", "kind = 'asked'", "text"),
        ("kind = 'opened'", "kind = 'ended'", "kind"),
        ("reason = 6", "reason = 4", "reason"),
        ("user = NULL", "kind = 'opened'", "user"),
    ];
    for (change, of, column) in changes {
        let tampered = Tampered::new();
        tampered.run(&format!("UPDATE records SET {change} WHERE {of}"));
        let bad = tampered.verify().unwrap_err();
        assert!(bad.what.contains(&format!("`{column}`")), "{change}: {bad}");
    }
}

// covers: I26
#[test]
fn a_record_that_was_added_is_found() {
    let tampered = Tampered::new();
    let copy =
        "INSERT INTO records SELECT number + 1, at, kind, session, request, agent, user, tool,
        call, text, irreversible, deadline, outcome, runs, decided_by, reason, bytes, hash
        FROM records ORDER BY number DESC LIMIT 1";
    tampered.run(copy);
    assert_eq!(tampered.verify().unwrap_err().number, tampered.count + 1);
}

fn lines(tampered: &Tampered, filter: &Filter) -> Vec<serde_json::Value> {
    let reader = Reader::open(&tampered.place.journal()).unwrap();
    let mut out = Vec::new();
    let count = export(&reader, filter, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len() as u64, count);
    lines
}

#[test]
fn everything_is_exported_as_json_lines_with_whose_it_was() {
    let tampered = Tampered::new();
    let lines = lines(&tampered, &Filter::default());
    assert_eq!(lines.len() as u64, tampered.count);
    let find = |kind: &str| lines.iter().find(|line| line["kind"] == kind).unwrap();
    for (number, line) in (1..).zip(&lines) {
        assert_eq!(line["number"], number);
        assert_eq!(line["hash"].as_str().unwrap().len(), 64);
        assert!(KINDS.contains(&line["kind"].as_str().unwrap()));
        Timestamp::parse(line["at"].as_str().unwrap()).unwrap();
    }
    let asked = find("asked");
    assert_eq!(asked["arguments"], r#"{"euros":"800"}"#);
    assert_eq!(asked["asks"]["action"], "Send 800 euros.");
    assert_eq!(
        (asked["user"].as_str(), asked["irreversible"].as_bool()),
        (Some("ann"), Some(true))
    );
    assert!(asked["digest"].as_str().unwrap().starts_with("sha256:"));
    let resolved = find("resolved");
    assert_eq!(resolved["decided_by"], "ann's phone");
    // What the reply says of itself stands beside it, never in its place.
    assert_eq!(resolved["reply"]["decided_by"], "Ann");
    assert_eq!(resolved["agent"], "bank-agent");
    assert_eq!(resolved["request"], asked["request"]);
    assert!(resolved["announced"][0]["type"].as_str().unwrap().starts_with("aaep:"));
    assert_eq!(find("ignored")["reason_text"], "was decided already");
    assert_eq!(find("invoked")["request"], asked["request"]);
    assert!(find("ended")["announced"].is_array());
}

#[test]
fn an_export_can_be_narrowed() {
    let tampered = Tampered::new();
    let count = |filter: Filter| lines(&tampered, &filter).len() as u64;
    let kinds = |kinds: &[&str]| Filter {
        kinds: kinds.iter().map(|kind| (*kind).to_owned()).collect(),
        ..Filter::default()
    };
    assert_eq!(count(kinds(&["resolved"])), 3);
    assert_eq!(count(kinds(&["asked", "ignored"])), 7);
    let agent = |agent: &str| Filter { agent: Some(agent.into()), ..Filter::default() };
    // Replies that did not count belong to no session.
    assert_eq!(count(agent("bank-agent")), tampered.count - 2);
    assert_eq!(count(agent("another")), 0);
    let user = Filter { user: Some("ann".into()), ..kinds(&["invoked"]) };
    assert_eq!(count(user), 1);
    let year = Timestamp::parse("2100-01-01T00:00:00Z").unwrap();
    assert_eq!(count(Filter { since: Some(year), ..Filter::default() }), 0);
    assert_eq!(count(Filter { until: Some(year), ..Filter::default() }), tampered.count);
}

#[test]
fn a_text_with_line_ends_stays_on_its_line() {
    let place = Place::new();
    let record = Record::Asked(aaep_engine::Asked {
        request: aaep_engine::RequestId::from_bits(1),
        session: "s".into(),
        confirmation: true,
        tool: "t".into(),
        arguments: "{\n \"a\": 1\r\n}".into(),
        event: "\"action\":\n\"Do it.\",\"reply_token\":\"\"".into(),
        stamp: 0,
        timeout_seconds: 60,
        default_accept: false,
        irreversible: true,
        account: "".into(),
        needs: aaep_types::Presence::None,
        said: aaep_engine::RecordedEvents { events: vec!["no\njson".into()], ..Default::default() },
    });
    let entry = aaep_store::Entry { number: 1, bytes: record.encode(1) };
    drop(journal_with(&place.journal(), Options::default(), &[entry]));
    let tampered = Tampered { place, noted: Noted::at(0, [0; 32]), count: 1 };
    let lines = lines(&tampered, &Filter::default());
    assert_eq!(lines[0]["arguments"], "{\n \"a\": 1\r\n}");
    assert_eq!(lines[0]["asks"]["action"], "Do it.");
    assert_eq!(lines[0]["announced"][0], "no\njson");
}
