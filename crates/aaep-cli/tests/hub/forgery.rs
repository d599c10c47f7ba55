//! Somebody who can write the data directory while the hub is stopped, but not the state directory:
//! nothing that they write is believed, and the audit names it.

use std::path::PathBuf;
use std::sync::Arc;

use aaep_engine::{Outcome, Record, RecordedEvents, RequestId};
use aaep_store::chain;
use rusqlite::{Connection, params};
use sha2::{Digest as _, Sha256};

use crate::durable::House;
use crate::support::*;

impl House {
    fn journal(&self) -> PathBuf {
        self.data().join("journal.db")
    }

    fn heads(&self) -> PathBuf {
        self.0.path().join(".local/state/aaep/heads")
    }

    /// The file with this end in the state directory.
    fn outside(&self, end: &str) -> PathBuf {
        let files = std::fs::read_dir(self.heads()).unwrap().map(|file| file.unwrap().path());
        let mut files = files.filter(|path| path.to_str().unwrap().ends_with(end));
        files.next().unwrap_or_else(|| panic!("no {end}"))
    }

    fn edit(&self) -> Connection {
        Connection::open(self.journal()).unwrap()
    }

    fn refused(&self) -> String {
        let (code, said) = Setup::durable().fails_in(self.0.path());
        assert_eq!(code, 2, "{said}");
        said
    }

    fn verified(&self) -> (i32, String) {
        self.aaep(&["audit", "verify"])
    }
}

/// A house whose hub has one question open, and stopped.
async fn with_a_question(stop: &str) -> (House, Person, Value) {
    let house = House::new();
    let hub = house.hub();
    let person = hub.person();
    let agent = person.agent();
    let request = agent.ask(&agent.open().await).await;
    hub.signal(stop);
    hub.ended();
    (house, person, request)
}

/// Appends an accept of this request, with everything right that needs no key.
fn append_accept(house: &House, request: &Value, link: impl Fn(&[u8; 32], i64, &[u8]) -> [u8; 32]) {
    let file = house.edit();
    let last = "SELECT number, at, hash FROM records ORDER BY number DESC LIMIT 1";
    let (number, at, hash): (i64, i64, [u8; 32]) =
        file.query_row(last, [], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let id = text(request, "request_id");
    let record = Record::Resolved {
        request: RequestId::parse(id).unwrap(),
        outcome: Outcome::Accepted,
        runs: true,
        by: "reader".into(),
        response: "".into(),
        reply: "".into(),
        presence: aaep_types::Presence::None,
        assertion: Default::default(),
        said: RecordedEvents::default(),
    };
    let bytes = record.encode(number as u64 + 1);
    let insert = "INSERT INTO records (number, at, kind, request, outcome, runs, decided_by, bytes,
        hash) VALUES (?1, ?2, 'resolved', ?3, 'accepted', 1, 'reader', ?4, ?5)";
    let hash = link(&hash, at, &bytes);
    file.execute(insert, params![number + 1, at, id, bytes, hash]).unwrap();
}

// covers: I33, I26
#[test]
fn an_accept_that_was_appended_while_the_hub_was_stopped_is_refused_and_named() {
    run(async {
        for stop in ["TERM", "KILL"] {
            let (house, person, request) = with_a_question(stop).await;
            let before = std::fs::read(house.journal()).unwrap();
            append_accept(&house, &request, chain::unkeyed);
            let said = house.refused();
            for words in ["Record 3 cannot be believed", "key", "The 2 records before it are whole"]
            {
                assert!(said.contains(words), "{said}");
            }
            let (code, said) = house.verified();
            assert!(code == 1 && said.starts_with("Record 3:"), "{said}");
            // Without the forged record it goes on, and the question is still open.
            if stop == "TERM" {
                for end in ["-wal", "-shm"] {
                    let _ = std::fs::remove_file(house.data().join(format!("journal.db{end}")));
                }
                std::fs::write(house.journal(), before).unwrap();
            } else {
                house.edit().execute("DELETE FROM records WHERE number = 3", []).unwrap();
            }
            let hub = house.hub();
            let agent = person.at(&hub).agent();
            assert_eq!(agent.look(&request, 0).await["status"], "pending");
            assert_eq!(agent.invoke(&request, "{}").await.status, 409);
        }
    });
}

// covers: I33
#[test]
fn a_journal_that_is_longer_than_at_its_good_end_is_refused_also_with_right_links() {
    run(async {
        let (house, _, request) = with_a_question("TERM").await;
        let key = aaep_store::ChainKey::read(&house.outside(".key")).unwrap().unwrap();
        append_accept(&house, &request, |before, at, bytes| key.link(before, at, bytes));
        let said = house.refused();
        assert!(said.contains("written after the hub stopped in good order"), "{said}");
        let (code, said) = house.verified();
        assert!(code == 1 && said.contains("stopped in good order"), "{said}");
    });
}

// covers: I26, I33
#[test]
fn an_end_that_was_cut_off_is_named_before_the_next_start_and_for_good_after_it() {
    run(async {
        let (house, person, request) = with_a_question("TERM").await;
        house.edit().execute("DELETE FROM records WHERE number = 2", []).unwrap();
        let (code, said) = house.verified();
        assert!(code == 1 && said.starts_with("Record 2: It is missing"), "{said}");
        // Nothing of it goes on.
        let hub = house.hub();
        let said = hub.greetings().join("\n");
        assert!(said.contains("its end was lost"), "{said}");
        assert_eq!(person.at(&hub).agent().invoke(&request, "{}").await.status, 404);
        hub.signal("TERM");
        assert!(hub.ended().success());
        // The chain is whole again; that something is missing in it stays on record.
        let missing = "(old copy, 1 of 2 records)";
        let (code, said) = house.verified();
        assert!(code == 0 && said.contains("Start 2, at ") && said.contains(missing), "{said}");
        let (_, json) = house.aaep(&["audit", "verify", "--json"]);
        assert!(json.contains(r#""old_copies":[{"start":2,"at":"#), "{json}");
        // Taking that away as well is noticed.
        for edit in ["UPDATE starts SET trust = 'trusted'", "DELETE FROM starts WHERE start = 2"] {
            house.edit().execute_batch(edit).unwrap();
            let (code, said) = house.verified();
            assert!(code == 1 && said.contains("start"), "{edit}: {said}");
        }
    });
}

// covers: I33
#[test]
fn edits_of_records_calls_and_starts_are_refused_and_named() {
    run(async {
        let edits = [
            ("UPDATE records SET at = at + 1 WHERE number = 2", "Record 2"),
            ("UPDATE store SET anchor_number = 2", "key"),
            ("UPDATE starts SET boot = 'mine', jumped = 0", "last start was changed"),
            ("DELETE FROM starts", "start was taken away"),
            (
                "INSERT INTO calls VALUES ('agent', '/aaep/v1/agent/sessions', 'k', 'sess_1',
                  zeroblob(32), 201, '{}', zeroblob(8))",
                "call was changed",
            ),
            ("UPDATE records SET kind = 'ended', session = 'sess_x', at = at WHERE number = 2", ""),
        ];
        for (edit, words) in edits {
            let (house, person, request) = with_a_question("TERM").await;
            house.edit().execute_batch(edit).unwrap();
            let (code, said) = house.verified();
            assert_eq!(code, 1, "{edit}: {said}");
            if words.is_empty() {
                // A column that nothing relies on changes nothing.
                let hub = house.hub();
                let view = person.at(&hub).agent().look(&request, 0).await;
                assert_eq!(view["status"], "pending");
                continue;
            }
            let said = house.refused();
            assert!(said.contains(words), "{edit}: {said}");
        }
    });
}

// covers: I33
#[test]
fn a_column_that_ends_a_session_which_goes_on_is_refused() {
    run(async {
        let (house, _, _) = with_a_question("TERM").await;
        // An index that lies about when it was: long ago, so that the hub would forget the session with
        // all that waits in it.
        house
            .edit()
            .execute_batch(
                "DROP INDEX ends;
                 CREATE INDEX ends ON records (irreversible) WHERE kind = 'ended';
                 UPDATE records SET kind = 'ended', irreversible = 1 WHERE number = 1;
                 PRAGMA writable_schema = ON;
                 UPDATE sqlite_schema SET sql =
                     'CREATE INDEX ends ON records (at) WHERE kind = ''ended''' WHERE name = 'ends';",
            )
            .unwrap();
        let said = house.refused();
        assert!(said.contains("a session ended, and no record does"), "{said}");
        let (code, said) = house.verified();
        assert!(code == 1 && said.contains("column `kind`"), "{said}");
    });
}

// covers: I33
#[test]
fn another_journal_in_its_place_is_refused_and_an_empty_one_is_said() {
    run(async {
        let (house, person, request) = with_a_question("TERM").await;
        let (other, ..) = with_a_question("TERM").await;
        let original = std::fs::read(house.journal()).unwrap();
        let clear = || {
            for end in ["", "-wal", "-shm"] {
                let _ = std::fs::remove_file(house.data().join(format!("journal.db{end}")));
            }
        };
        // One that was written with another key.
        clear();
        std::fs::copy(other.journal(), house.journal()).unwrap();
        assert!(house.refused().contains("the key is not there"));
        let (code, said) = house.verified();
        assert!(code == 1 && said.contains("another journal"), "{said}");
        // One whose key is in the same state directory, because another hub uses it.
        for end in [".key", ".head"] {
            let file = other.outside(end);
            std::fs::copy(&file, house.heads().join(file.file_name().unwrap())).unwrap();
        }
        let said = house.refused();
        assert!(said.contains("held another journal") && said.contains(".place"), "{said}");
        // None at all: everybody is told.
        clear();
        let hub = house.hub();
        let said = hub.greetings().join("\n");
        assert!(said.contains("held another journal"), "{said}");
        assert_eq!(person.at(&hub).agent().invoke(&request, "{}").await.status, 404);
        hub.signal("TERM");
        assert!(hub.ended().success());
        assert_eq!(house.verified().0, 0);
        // The first one is put back by its owner.
        clear();
        std::fs::write(house.journal(), original).unwrap();
        assert!(house.refused().contains("held another journal"));
        std::fs::remove_file(house.outside(".place")).unwrap();
        let hub = house.hub();
        assert_eq!(person.at(&hub).agent().look(&request, 0).await["status"], "pending");
    });
}

// covers: I33
#[test]
fn a_lost_key_is_never_made_again_in_silence() {
    run(async {
        let (house, person, request) = with_a_question("TERM").await;
        let key = house.outside(".key");
        let bytes = std::fs::read(&key).unwrap();
        std::fs::remove_file(&key).unwrap();
        let said = house.refused();
        for words in ["key is not there", "Put the state directory back", "aaep hub migrate"] {
            assert!(said.contains(words), "{said}");
        }
        assert!(!key.exists());
        let (code, said) = house.verified();
        assert!(code == 2 && said.contains("--key"), "{said}");
        // An auditor elsewhere has a copy.
        let copy = house.0.path().join("copy.key");
        std::fs::write(&copy, &bytes).unwrap();
        set_private(&copy);
        let verify = ["audit", "verify", "--key", copy.to_str().unwrap()];
        assert_eq!(house.aaep(&verify).0, 0);
        // Somebody else's key.
        std::fs::write(&key, [1; 32]).unwrap();
        set_private(&key);
        assert!(house.refused().contains("another key"));
        assert_eq!(house.verified().0, 1);
        std::fs::remove_file(&key).unwrap();
        // The operator's word: a new one, and what waits is rejected.
        let (code, said) = house.aaep(&["hub", "migrate"]);
        assert!(code == 1 && said.contains("--confirm"), "{said}");
        let (code, said) = house.aaep(&["hub", "migrate", "--confirm"]);
        assert!(code == 0 && said.contains("Trust begins with record 3"), "{said}");
        let hub = house.hub();
        assert_eq!(person.at(&hub).agent().look(&request, 0).await["status"], "rejected");
        let (code, said) = house.verified();
        assert!(code == 0 && said.contains("Trust begins with record 3"), "{said}");
    });
}

fn set_private(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600)).unwrap();
}

// covers: I26
#[test]
fn a_backup_is_verified_wherever_it_lies() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let agent = hub.person().agent();
        let session = agent.open().await;
        let file = house.0.path().join("backup.db");
        let path = file.to_str().unwrap();
        assert_eq!(house.aaep(&["hub", "backup", path]).0, 0);
        agent.ask(&session).await;
        let (code, said) = house.aaep(&["audit", "verify", "--file", path]);
        assert!(code == 0 && said.starts_with("1 records"), "{said}");
        Connection::open(&file).unwrap().execute("UPDATE records SET at = 1", []).unwrap();
        assert_eq!(house.aaep(&["audit", "verify", "--file", path]).0, 1);
        drop(hub);
    });
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

/// Turns the journal into one of layout 1, as it was written before journals had keys.
fn make_old(house: &House) {
    let file = house.edit();
    let store: String = file.query_row("SELECT id FROM store", [], |row| row.get(0)).unwrap();
    let mut statement = file.prepare("SELECT number, at, bytes FROM records").unwrap();
    let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?))).unwrap();
    let rows: Vec<(i64, i64, Vec<u8>)> = rows.map(Result::unwrap).collect();
    let mut last = (0, chain::first(&store));
    for (number, at, bytes) in rows {
        last = (number, chain::unkeyed(&last.1, at, &bytes));
        let update = "UPDATE records SET hash = ?2 WHERE number = ?1";
        file.execute(update, params![number, last.1]).unwrap();
    }
    let start = "SELECT version, boot, clock, jumped, trust FROM starts";
    let sum = file.query_row(start, [], |row| {
        let (version, boot, trust): (String, String, String) =
            (row.get(0)?, row.get(1)?, row.get(4)?);
        let (clock, jumped): (i64, bool) = (row.get(2)?, row.get(3)?);
        Ok(checksum(&[
            version.as_bytes(),
            boot.as_bytes(),
            &clock.to_le_bytes(),
            &[u8::from(jumped)],
            trust.as_bytes(),
        ]))
    });
    file.execute("UPDATE starts SET seal = ?1", [sum.unwrap()]).unwrap();
    file.execute_batch(
        "DELETE FROM calls;
         DROP INDEX erasures;
         ALTER TABLE store DROP COLUMN anchor_number;
         ALTER TABLE store DROP COLUMN anchor_hash;
         ALTER TABLE store DROP COLUMN seal;
         ALTER TABLE calls RENAME COLUMN seal TO checksum;
         ALTER TABLE starts RENAME COLUMN seal TO checksum;
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let hex = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let note = format!("aaep head 1 {store} {:020} {}", last.0, hex(&last.1));
    let note = format!("{note} {}\n", hex(&checksum(&[note.as_bytes()])));
    std::fs::write(house.outside(".head"), note).unwrap();
    for end in [".key", ".place"] {
        std::fs::remove_file(house.outside(end)).unwrap();
    }
}

// covers: I33
#[test]
fn a_journal_from_before_journals_had_keys_is_migrated_once_with_the_operators_word() {
    run(async {
        let (house, person, request) = with_a_question("TERM").await;
        make_old(&house);
        let said = house.refused();
        for words in ["before journals had keys", "aaep hub migrate"] {
            assert!(said.contains(words), "{said}");
        }
        let (code, said) = house.verified();
        assert!(code == 2 && said.contains("aaep hub migrate"), "{said}");
        let before = std::fs::read(house.journal()).unwrap();
        let (code, said) = house.aaep(&["hub", "migrate"]);
        for words in ["2 records", "Its end agrees", "Nothing was changed", "--confirm"] {
            assert!(code == 1 && said.contains(words), "{said}");
        }
        assert_eq!(std::fs::read(house.journal()).unwrap(), before);
        let (code, said) = house.aaep(&["hub", "migrate", "--confirm"]);
        assert!(code == 0 && said.contains("Trust begins with record 3"), "{said}");
        let (code, said) = house.aaep(&["hub", "migrate", "--confirm"]);
        assert!(code == 0 && said.contains("nothing to do"), "{said}");

        let hub = house.hub();
        let now = person.at(&hub);
        let (agent, mut ear) = (now.agent(), now.reader().await);
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        let (code, said) = house.verified();
        assert!(code == 0 && said.contains("Trust begins with record 3"), "{said}");
        let (_, lines) = house.aaep(&["audit", "export"]);
        let keyed: Vec<bool> = lines.lines().map(|line| line.contains("\"keyed\":true")).collect();
        assert!(keyed.starts_with(&[false, false, true]), "{lines}");
        let (code, said) = house.aaep(&["hub", "migrate"]);
        assert!(code == 2 && said.contains("hub"), "not while the hub works: {said}");
        hub.signal("TERM");
        assert!(hub.ended().success());

        // The old file comes back, perhaps with something forged in it: that is no migration.
        for end in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(house.data().join(format!("journal.db{end}")));
        }
        std::fs::write(house.journal(), before).unwrap();
        let (code, said) = house.aaep(&["hub", "migrate", "--confirm"]);
        assert!(code == 2 && said.contains("old copy, or somebody forged it"), "{said}");
    });
}

// covers: I33
#[test]
fn an_old_journal_that_was_changed_is_not_migrated() {
    run(async {
        let (house, ..) = with_a_question("TERM").await;
        make_old(&house);
        house.edit().execute("UPDATE records SET at = at + 1 WHERE number = 2", []).unwrap();
        let (code, said) = house.aaep(&["hub", "migrate", "--confirm"]);
        assert!(code == 2 && said.contains("Record 2"), "{said}");
        assert!(house.refused().contains("aaep hub migrate"));
    });
}

#[test]
fn the_state_directory_holds_nothing_that_others_can_read() {
    use std::os::unix::fs::PermissionsExt;
    run(async {
        let (house, ..) = with_a_question("TERM").await;
        let mut seen = 0;
        for file in std::fs::read_dir(house.heads()).unwrap() {
            let mode = file.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o077, 0);
            seen += 1;
        }
        assert_eq!(seen, 3, "a key, a note, a place");
        let _: Arc<_> = house.0;
    });
}
