//! Records that may be forgotten: by age, by size and for a person, with the real binary.

use std::path::Path;
use std::sync::Arc;

use aaep_store::{ChainKey, Head, JournalFile, Noted, Options};
use rusqlite::{Connection, params};

use crate::durable::House;
use crate::support::*;

const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// Makes everything in the journal so many days older, as only the owner of its key can.
fn age(house: &House, days: i64) {
    rewrite(house, |_, at, _| *at -= days * DAY);
}

/// Changes the times and bytes of records, and links them anew, as only the owner of the journal's key
/// can: what is wrong then is what was changed, and nothing else.
pub fn rewrite(house: &House, mut change: impl FnMut(u64, &mut i64, &mut Vec<u8>)) {
    let journal = house.data().join("journal.db");
    let heads = house.0.path().join(".local/state/aaep/heads");
    let file = JournalFile::open(&journal, Options::default()).unwrap();
    let store = file.store().to_owned();
    drop(file);
    let key = ChainKey::read(&ChainKey::path_of(&heads, &store)).unwrap().unwrap();
    let file = Connection::open(&journal).unwrap();
    let mut all = file.prepare("SELECT number, at, bytes FROM records ORDER BY number").unwrap();
    let rows: Vec<(i64, i64, Vec<u8>)> = all
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    let mut last = aaep_store::chain::first(&store);
    file.execute_batch("BEGIN").unwrap();
    for (number, mut at, mut bytes) in rows {
        change(number.unsigned_abs(), &mut at, &mut bytes);
        last = key.link(&last, at, &bytes);
        let update = "UPDATE records SET at = ?2, bytes = ?3, hash = ?4 WHERE number = ?1";
        file.execute(update, params![number, at, bytes, last]).unwrap();
    }
    file.execute_batch("COMMIT").unwrap();
    drop(all);
    drop(file);
    let noted = Head::look(&heads, &store).unwrap();
    Head::open(&heads, &store).unwrap().note(Noted { hash: last, ..noted }).unwrap();
}

fn files_with(directory: &Path, text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        if bytes.windows(text.len()).any(|window| window == text.as_bytes()) {
            found.push(path.file_name().unwrap().to_string_lossy().into_owned());
        }
    }
    found
}

/// A house in which three sessions ended and one goes on; the hub has stopped.
async fn lived_in() -> (House, Person, Value) {
    let house = House::new();
    let hub = house.hub();
    let person = hub.person();
    let (agent, mut ear) = (person.agent(), person.reader().await);
    for name in ["canary-1.txt", "canary-2.txt", "canary-3.txt"] {
        let opened = agent.post_once("agent/sessions", name, &agent.opening()).await;
        let session = text(&body(&opened), "session_id").to_owned();
        let path = format!("agent/sessions/{session}/requests");
        let request = body(&agent.post_once(&path, name, &deletion(name)).await);
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        assert_eq!(agent.invoke(&request, "{}").await.status, 200);
        agent.complete(&session).await;
    }
    let session = agent.open().await;
    let request = agent.ask_for(&session, &deletion("still-open.txt")).await;
    hub.signal("TERM");
    hub.ended();
    (house, person, request)
}

fn user_of(house: &House) -> String {
    let (_, said) = house.aaep(&["audit", "export", "--kind", "opened"]);
    let line: Value = serde_json::from_str(said.lines().next().unwrap()).unwrap();
    text(&line, "user").to_owned()
}

fn goes_on(house: &House, hub: &Arc<Hub>) {
    let said = hub.greetings().join("\n");
    assert!(said.contains("Going on: 1 sessions, 1 requests that wait."), "{said}");
    let (code, said) = house.aaep(&["audit", "verify"]);
    assert_eq!(code, 0, "{said}");
}

// covers: S13, I26, I3
#[test]
fn a_person_is_erased_and_exported_before_and_what_waits_goes_on() {
    run(async {
        let (house, person, request) = lived_in().await;
        let user = user_of(&house);
        // What ended less than a day ago stays.
        let (code, said) = house.aaep(&["audit", "erase", "--user", &user]);
        assert!(code == 1 && said.contains("4 sessions are open, or ended less"), "{said}");
        // An export can be narrowed to a person, an agent, and a time.
        let lines = |more: &[&str]| {
            let (code, said) = house.aaep(&[&["audit", "export"], more].concat());
            assert_eq!(code, 0, "{said}");
            said.lines().count()
        };
        let opened = |more: &[&str]| lines(&[&["--kind", "opened"], more].concat());
        assert_eq!((opened(&[]), opened(&["--user", &user])), (4, 4));
        assert_eq!((lines(&["--user", "somebody"]), lines(&["--agent", "somebody"])), (0, 0));
        let (long_ago, far) = ("2020-01-01T00:00:00Z", "2999-01-01T00:00:00Z");
        assert_eq!((opened(&["--since", long_ago]), opened(&["--until", far])), (4, 4));
        assert_eq!((lines(&["--since", far]), lines(&["--until", long_ago])), (0, 0));
        // Of the records themselves, none is older; so the whole journal is made older, but for what waits.
        age(&house, 2);
        let (code, said) = house.aaep(&["audit", "erase", "--user", &user]);
        assert!(code == 1 && said.contains("Nothing was changed."), "{said}");
        assert!(said.contains("of 3 sessions") && said.contains("1 sessions are open"), "{said}");
        let (code, said) = house.aaep(&["audit", "erase", "--user", &user, "--confirm"]);
        assert!(code == 2 && said.contains("--without-export"), "{said}");
        let (code, said) = house.aaep(&["audit", "erase", "--user", &user, "--note", &user]);
        assert!(code == 2 && said.contains("not the name"), "{said}");
        assert!(!files_with(&house.data(), "canary-2.txt").is_empty());

        let copy = house.0.path().join("copy.jsonl");
        let arguments = ["--export", copy.to_str().unwrap(), "--note", "request 7", "--confirm"];
        let erase: Vec<&str> =
            ["audit", "erase", "--user", &user].into_iter().chain(arguments).collect();
        let (code, said) = house.aaep(&erase);
        assert!(code == 0 && said.contains("Their bytes are removed"), "{said}");
        let copied = std::fs::read_to_string(&copy).unwrap();
        for name in ["canary-1.txt", "canary-2.txt", "canary-3.txt"] {
            assert!(copied.contains(name));
            assert_eq!(files_with(&house.data(), name), [""; 0], "{name}");
        }
        assert!(!copied.contains("still-open.txt"));
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert!(code == 0 && said.contains("a person's data was erased (request 7)"), "{said}");
        let (code, said) = house.aaep(&["audit", "verify", "--json"]);
        let json: Value = serde_json::from_str(&said).unwrap();
        assert_eq!((code, &json["erasures"][0]["why"]), (0, &json!("person")), "{said}");
        assert_eq!(json["erased"], copied.lines().count());
        assert!(!said.contains(&user));
        // A second time there is nothing left, and the copy is not written over.
        let (code, said) = house.aaep(&erase);
        assert!(code == 1 && said.contains("Nothing is kept"), "{said}");

        let hub = house.hub();
        goes_on(&house, &hub);
        let agent = person.at(&hub).agent();
        assert_eq!(agent.look(&request, 0).await["status"], "pending");
        // While the hub runs, nothing is erased by hand.
        let (code, said) = house.aaep(&["audit", "erase", "--user", &user]);
        assert!(code == 2, "{said}");
        let (_, said) = house.aaep(&["audit", "export", "--format", "csv"]);
        assert!(said.starts_with("number,at,kind,") && said.contains(",gap,"), "{said}");
        assert!(said.contains("still-open.txt"), "{said}");
        hub.signal("TERM");
        hub.ended();
        house.aaep(&["hub", "backup", house.0.path().join("b.db").to_str().unwrap()]);
        let backup = house.0.path().join("b.db");
        let (code, said) = house.aaep(&["audit", "verify", "--file", backup.to_str().unwrap()]);
        assert_eq!(code, 0, "{said}");
    });
}

// covers: S13, I3, I25, S5
#[test]
fn what_is_older_than_it_is_kept_is_erased_while_the_hub_works() {
    run(async {
        let (house, person, request) = lived_in().await;
        age(&house, 40);
        let setup = || Setup::durable().set("AAEP_RECORDS__KEEP_DAYS", 30);
        let hub = Hub::start_in(setup(), house.0.clone());
        hub.logs(&["written anew without what was erased"]);
        for name in ["canary-1.txt", "canary-2.txt", "canary-3.txt"] {
            assert_eq!(files_with(&house.data(), name), [""; 0], "{name}");
        }
        goes_on(&house, &hub);
        let (_, said) = house.aaep(&["audit", "verify"]);
        assert!(said.contains("they were too old"), "{said}");
        // It goes on where it was: asked, answered, run; and its id is still its own.
        let now = person.at(&hub);
        let (agent, mut ear) = (now.agent(), now.reader().await);
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        hub.kill();
        let hub = Hub::start_in(setup(), house.0.clone());
        let now = person.at(&hub);
        let agent = now.agent();
        assert_eq!(agent.invoke(&request, "{}").await.status, 200);
        assert_eq!(agent.invoke(&request, "{}").await.status, 409);
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert_eq!(code, 0, "{said}");
    });
}

// covers: S13
#[test]
fn a_journal_that_is_too_large_loses_its_oldest_sessions() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let agent = hub.person().agent();
        let long = "x".repeat(30_000);
        for number in 0..40 {
            let session = agent.open().await;
            let mut asked = deletion(&format!("canary-{number:02}.txt"));
            asked["arguments"]["content"] = json!(long);
            agent.ask_for(&session, &asked).await;
            agent.complete(&session).await;
        }
        hub.signal("TERM");
        hub.ended();
        age(&house, 3);
        let file = house.data().join("journal.db");
        let before = std::fs::metadata(&file).unwrap().len();
        assert!(before > 1 << 20, "{before}");
        let setup = Setup::durable().set("AAEP_RECORDS__MAX_MEGABYTES", 1);
        let hub = Hub::start_in(setup, house.0.clone());
        hub.logs(&["written anew without what was erased"]);
        assert!(std::fs::metadata(&file).unwrap().len() < 1 << 20);
        assert_eq!(files_with(&house.data(), "canary-00.txt"), [""; 0]);
        assert!(!files_with(&house.data(), "canary-39.txt").is_empty());
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert!(code == 0 && said.contains("the journal was too large"), "{said}");
    });
}

// covers: S13, S9, I26, I3
#[test]
fn a_person_is_erased_by_an_administrator_while_the_hub_works() {
    run(async {
        let (house, person, request) = lived_in().await;
        let user = user_of(&house);
        age(&house, 2);
        let hub = house.hub();
        let erase = |who: &str, more: &[&str]| {
            let file = house.0.path().join(format!("{who}.token"));
            std::fs::write(&file, token(who)).unwrap();
            let (base, file) = (hub.base(), file.to_str().unwrap().to_owned());
            let fixed = ["audit", "erase", "--user", &user, "--running", "--hub", &base];
            house.aaep(&[&fixed[..], &["--token-file", &file], more].concat())
        };
        // Nobody but an administrator, and not without their word.
        let (code, said) = erase(&person.name("reader"), &["--confirm", "--without-export"]);
        assert_eq!(code, 2, "{said}");
        let (code, said) = erase("admin", &[]);
        assert!(code == 1 && said.contains("of 3 sessions."), "{said}");
        assert!(said.contains("1 sessions are open") && said.contains("Nothing was changed."));
        let (code, said) = erase("admin", &["--confirm"]);
        assert!(code == 2 && said.contains("--without-export"), "{said}");
        let (code, said) = erase("admin", &["--confirm", "--without-export", "--note", &user]);
        assert!(code == 2 && said.contains("not the name"), "{said}");
        assert!(!files_with(&house.data(), "canary-2.txt").is_empty());

        let copy = house.0.path().join("copy.jsonl");
        let export = ["--confirm", "--note", "request 7", "--export", copy.to_str().unwrap()];
        let (code, said) = erase("admin", &export);
        assert!(code == 0 && said.contains("records were erased, of 3 sessions"), "{said}");
        hub.logs(&["written anew without what was erased"]);
        let copied = std::fs::read_to_string(&copy).unwrap();
        for name in ["canary-1.txt", "canary-2.txt", "canary-3.txt"] {
            assert!(copied.contains(name));
            assert_eq!(files_with(&house.data(), name), [""; 0], "{name}");
        }
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert!(code == 0 && said.contains("a person's data was erased (request 7)"), "{said}");
        let (_, said) = house.aaep(&["audit", "export", "--kind", "administered"]);
        assert!(said.contains(r#""by":"admin""#) && said.contains(r#""act":"erased""#), "{said}");
        assert!(!said.contains(&user), "whose records they were is nowhere: {said}");
        let (code, said) = erase("admin", &["--confirm", "--without-export"]);
        assert!(code == 1 && said.contains("Nothing is kept"), "{said}");

        // What waited goes on, on this hub and the next one.
        let now = person.at(&hub);
        let (agent, mut ear) = (now.agent(), now.reader().await);
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        hub.kill();
        let hub = house.hub();
        assert_eq!(person.at(&hub).agent().invoke(&request, "{}").await.status, 200);
        assert_eq!(house.aaep(&["audit", "verify"]).0, 0);
    });
}
