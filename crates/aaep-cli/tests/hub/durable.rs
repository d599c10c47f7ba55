//! Nothing asked is forgotten, nothing answered is answered twice: across kills, restarts and copies.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;

use tempfile::TempDir;

use crate::support::*;

/// A directory in which one hub is started after the other.
pub struct House(pub Arc<TempDir>);

impl House {
    pub fn new() -> Self {
        Self(Arc::new(tempfile::tempdir().unwrap()))
    }

    pub fn hub(&self) -> Arc<Hub> {
        Hub::start_in(Setup::durable(), self.0.clone())
    }

    pub fn data(&self) -> PathBuf {
        self.0.path().join(".local/share/aaep")
    }

    /// Runs another command on the same data: its exit status, and what it printed.
    pub fn aaep(&self, arguments: &[&str]) -> (i32, String) {
        let ended = Command::new(env!("CARGO_BIN_EXE_aaep"))
            .args(arguments)
            .env_clear()
            .env("HOME", self.0.path())
            .output()
            .unwrap();
        let said = format!(
            "{}{}",
            String::from_utf8(ended.stdout).unwrap(),
            String::from_utf8(ended.stderr).unwrap()
        );
        (ended.status.code().unwrap(), said)
    }
}

fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for file in std::fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        std::fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

// covers: I3, I10, W7
#[test]
fn a_hub_that_is_killed_comes_back_with_every_question_open_and_every_answer_kept() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let mut requests = Vec::new();
        let mut questions = Vec::new();
        for name in ["a.txt", "b.txt", "c.txt"] {
            requests.push(agent.ask_for(&session, &deletion(name)).await);
            questions.push(ear.event("awaiting.confirmation").await);
        }
        ear.decide(&questions[0], "accept").await;
        ear.decide(&questions[1], "reject").await;
        hub.kill();

        let hub = house.hub();
        let said = hub.greetings().join("\n");
        assert!(said.contains("Going on: 1 sessions, 1 requests that wait."), "{said}");
        let person = person.at(&hub);
        let (agent, mut ear) = (person.agent(), person.reader().await);
        for (request, status) in requests.iter().zip(["accepted", "rejected", "pending"]) {
            let view = agent.look(request, 0).await;
            assert_eq!(view["status"], status);
            for same in ["deadline", "digest", "event_id", "session_id"] {
                assert_eq!(view[same], request[same], "{same}");
            }
        }
        // The question comes again as it was, and the token that was heard before still counts.
        let again = ear.event("awaiting.confirmation").await;
        assert_eq!(again["event_id"], questions[2]["event_id"]);
        assert_eq!(again["reply_token"], questions[2]["reply_token"]);
        ear.decide(&questions[2], "accept").await;
        assert_eq!(agent.outcome(&requests[2]).await, "accepted");
        for request in [&requests[0], &requests[2]] {
            assert_eq!(agent.invoke(request, "{}").await.status, 200);
            assert_eq!(agent.invoke(request, "{}").await.status, 409);
        }
        assert_eq!(agent.invoke(&requests[1], "{}").await.status, 409);
        agent.complete(&session).await;
        ear.event("session.completed").await;
        ear.is_lawful();
    });
}

// covers: I11
#[test]
fn a_call_that_is_repeated_with_its_key_after_a_restart_is_done_once() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let opened = agent.post_once("agent/sessions", "open", &agent.opening()).await;
        let session = text(&body(&opened), "session_id").to_owned();
        let path = format!("agent/sessions/{session}/requests");
        let asked = agent.post_once(&path, "ask", &deletion("a.txt")).await;
        let request = body(&asked);
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        let invoke = format!("agent/requests/{}/invoke", text(&request, "request_id"));
        let arguments = json!({ "arguments": { "path": "a.txt" } });
        let granted = agent.post_once(&invoke, "run", &arguments).await;
        assert_eq!(granted.status, 200);
        let call = text(&body(&granted), "tool_call_id").to_owned();
        hub.kill();

        for stop in ["KILL", "TERM"] {
            let hub = house.hub();
            let agent = person.at(&hub).agent();
            let again = agent.post_once("agent/sessions", "open", &agent.opening()).await;
            assert_eq!((again.status, &again.body), (opened.status, &opened.body));
            let again = agent.post_once(&path, "ask", &deletion("a.txt")).await;
            assert_eq!((again.status, &again.body), (asked.status, &asked.body));
            let again = agent.post_once(&invoke, "run", &arguments).await;
            assert_eq!((again.status, &again.body), (granted.status, &granted.body));
            let other = agent.post_once(&invoke, "run", &json!({})).await;
            assert_eq!(other.status, 422);
            assert_eq!(agent.post_once(&invoke, "again", &arguments).await.status, 409);
            hub.signal(stop);
            hub.ended();
        }
        let hub = house.hub();
        let agent = person.at(&hub).agent();
        let done = json!({ "tool": "delete_file", "tool_call_id": call, "status": "success",
            "summary_normal": "Gone." });
        agent.emit(&session, "tool.completed", done).await;
        agent.complete(&session).await;
        let (code, lines) = house.aaep(&["audit", "export", "--kind", "invoked"]);
        assert_eq!((code, lines.lines().count()), (0, 1), "{lines}");
    });
}

// covers: I11
#[test]
fn an_event_that_is_repeated_with_its_key_after_a_kill_is_announced_once() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let path = format!("agent/sessions/{session}/events");
        let looking = json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": "call_1",
            "summary_normal": "Looking." });
        let seen = json!({ "type": "aaep:agent.tool.completed", "tool": "look", "tool_call_id": "call_1",
            "status": "success", "summary_normal": "Seen." });
        let progress = json!({ "type": "aaep:agent.progress.updated", "progress": { "percent": 5 },
            "summary_normal": "A little." });
        let invoked = agent.post_once(&path, "look", &looking).await;
        assert_eq!(invoked.status, 201, "{invoked:?}");
        assert_eq!(agent.post_once(&path, "little", &progress).await.status, 201);
        ear.event("tool.invoked").await;
        hub.kill();

        let hub = house.hub();
        let now = person.at(&hub);
        let (agent, mut ear) = (now.agent(), now.reader().await);
        for _ in 0..2 {
            let again = agent.post_once(&path, "look", &looking).await;
            assert_eq!((again.status, &again.body), (invoked.status, &invoked.body));
        }
        assert_eq!(agent.post_once(&path, "look", &seen).await.status, 422);
        // What leaves no record is said once more, and changes nothing.
        assert_eq!(agent.post_once(&path, "little", &progress).await.status, 201);
        let completed = agent.post_once(&path, "seen", &seen).await;
        assert_eq!(completed.status, 201, "{completed:?}");
        // Newer ones take the place of older ones, also in the journal.
        for count in 0..70 {
            let call = format!("call_n{count}");
            let more = json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": call,
                "summary_normal": "Looking." });
            assert_eq!(agent.post_once(&path, &call, &more).await.status, 201);
        }
        hub.kill();
        let kept = rusqlite::Connection::open(house.data().join("journal.db")).unwrap();
        let keys: i64 = kept.query_row("SELECT count(*) FROM calls", [], |row| row.get(0)).unwrap();
        assert!((64..72).contains(&keys), "{keys}");
        drop(kept);

        let hub = house.hub();
        let agent = person.at(&hub).agent();
        let last = json!({ "type": "aaep:agent.tool.invoked", "tool": "look", "tool_call_id": "call_n69",
            "summary_normal": "Looking." });
        assert_eq!(agent.post_once(&path, "call_n69", &last).await.status, 201);
        agent.complete(&session).await;
        ear.event("tool.completed").await;
        let (code, lines) = house.aaep(&["audit", "export", "--kind", "called"]);
        assert_eq!((code, lines.lines().count()), (0, 71), "{lines}");
        let (code, lines) = house.aaep(&["audit", "export", "--kind", "completed"]);
        let known = lines.lines().filter(|line| line.contains("\"outcome_known\":true"));
        assert_eq!((code, known.count()), (0, 1), "{lines}");
    });
}

// covers: W7, D28
#[test]
fn whoever_comes_back_after_a_restart_hears_what_was_missed() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear, mut stayed) =
            (person.agent(), person.reader().await, person.phone().await);
        let session = agent.open().await;
        ear.event("session.started").await;
        let last = ear.last_event_id();
        drop(ear);
        let request = agent.ask(&session).await;
        let question = stayed.event("awaiting.confirmation").await;
        stayed.decide(&question, "reject").await;
        assert_eq!(agent.outcome(&request).await, "rejected");
        let tool = json!({ "tool": "look", "summary_normal": "Looking." });
        agent.emit(&session, "tool.invoked", tool).await;
        stayed.event("tool.invoked").await;
        hub.kill();

        let hub = house.hub();
        let person = person.at(&hub);
        let reader = person.client("reader");
        let mut ear = Ear::subscribe_after(reader, everything(), last.as_deref()).await;
        person.agent().complete(&session).await;
        ear.event("session.completed").await;
        let ids = |heard: &[String]| -> Vec<String> {
            let id = |message: &String| {
                let message: Value = serde_json::from_str(message).unwrap();
                Some(message["event_id"].as_str()?.to_owned())
            };
            heard.iter().filter_map(id).collect()
        };
        let (back, missed) = (ids(&ear.heard), ids(&stayed.heard[1..]));
        for id in missed.iter().filter(|id| !back.contains(id)) {
            // The question itself is settled: it is not asked again.
            assert_eq!(*id, question["event_id"], "{back:#?}");
        }
        let (mut unique, all) = (back.clone(), back.len());
        unique.sort();
        unique.dedup();
        assert_eq!(unique.len(), all, "nothing is said twice");
    });
}

// covers: I2, I25
#[test]
fn from_a_restored_copy_nothing_is_done_a_second_time() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let first = agent.ask_for(&session, &deletion("a.txt")).await;
        let question = ear.event("awaiting.confirmation").await;
        let second = agent.ask_for(&session, &deletion("b.txt")).await;
        let other = ear.event("awaiting.confirmation").await;
        ear.decide(&other, "accept").await;
        assert_eq!(agent.outcome(&second).await, "accepted");
        hub.kill();
        let copied = house.0.path().join("copy");
        copy(&house.data(), &copied);

        let hub = house.hub();
        let now = person.at(&hub);
        let (agent, mut ear) = (now.agent(), now.reader().await);
        ear.decide(&question, "accept").await;
        for request in [&first, &second] {
            assert_eq!(agent.outcome(request).await, "accepted");
            assert_eq!(agent.invoke(request, "{}").await.status, 200);
        }
        hub.kill();

        std::fs::remove_dir_all(house.data()).unwrap();
        copy(&copied, &house.data());
        private(&house.data());
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert!(code == 1 && said.contains("old copy"), "{said}");
        let hub = house.hub();
        let said = hub.greetings().join("\n");
        assert!(said.contains("old copy") && said.contains("rejected"), "{said}");
        hub.logs(&["WARN", "old copy"]);
        let now = person.at(&hub);
        let (agent, mut ear) = (now.agent(), now.reader().await);
        ear.decide(&question, "accept").await;
        assert_eq!(agent.outcome(&first).await, "rejected");
        for request in [&first, &second] {
            let status = agent.invoke(request, "{}").await.status.as_u16();
            assert!(status == 409 || status == 404, "{status}");
        }
        // It goes on as usual, and the next start finds nothing strange.
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        hub.kill();
        let hub = house.hub();
        assert_eq!(person.at(&hub).agent().look(&request, 0).await["status"], "pending");
        assert!(!hub.greetings().join("\n").contains("copy"));
    });
}

fn private(path: &Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700)).unwrap();
}

// covers: I2
#[test]
fn without_a_note_outside_what_waits_is_rejected_and_said_so() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let agent = person.agent();
        let request = agent.ask(&agent.open().await).await;
        hub.kill();
        let heads = house.0.path().join(".local/state/aaep/heads");
        for file in std::fs::read_dir(heads).unwrap().map(|file| file.unwrap().path()) {
            if file.to_str().unwrap().ends_with(".head") {
                std::fs::remove_file(file).unwrap();
            }
        }
        let hub = house.hub();
        let said = hub.greetings().join("\n");
        assert!(said.contains("Nothing is noted outside"), "{said}");
        assert_eq!(person.at(&hub).agent().look(&request, 0).await["status"], "rejected");
    });
}

// covers: S4, S5
#[test]
fn a_producer_still_belongs_to_its_agent_after_a_restart() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let session = person.agent().open().await;
        person.agent().complete(&session).await;
        hub.signal("TERM");
        assert!(hub.ended().success());
        let hub = house.hub();
        let person = person.at(&hub);
        let thief = person.helper();
        let stolen =
            json!({ "producer": { "agent_id": person.agent().id }, "summary_normal": "Me." });
        assert_eq!(thief.post("agent/sessions", &stolen).await.status, 404);
        person.agent().open().await;
    });
}

// covers: E28, S4, S5, I1
#[test]
fn what_a_sub_agent_asked_for_is_still_its_own_after_a_restart() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, helper, mut ear) = (person.agent(), person.helper(), person.reader().await);
        let mut opening = agent.opening();
        opening["sub_agents"] = json!([helper.id]);
        let answer = agent.post("agent/sessions", &opening).await;
        let session = text(&body(&answer), "session_id").to_owned();
        let mut asked = deletion("old.txt");
        asked["producer"] = json!({ "agent_id": helper.id });
        let request = helper.ask_for(&session, &asked).await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        assert_eq!(helper.outcome(&request).await, "accepted");
        hub.kill();

        let hub = house.hub();
        let person = person.at(&hub);
        let (agent, helper) = (person.agent(), person.helper());
        // Neither its name nor its yes is anybody else's, not even the orchestrator's.
        let mut progress = json!({ "progress": { "step": 1 }, "summary_normal": "On." });
        progress["producer"] = json!({ "agent_id": helper.id });
        let refused = agent.try_emit(&session, "progress.updated", progress).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (404, &json!("S5")));
        let refused = agent.invoke(&request, "{}").await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (409, &json!("E28")));
        let begun = helper.invoke(&request, "{}").await;
        assert_eq!(begun.status, 200, "{begun:?}");
        let (code, audit) = house.aaep(&["audit", "export", "--kind", "claimed"]);
        assert!(code == 0 && audit.contains(&helper.id), "{code} {audit}");
    });
}

// covers: S5, I22, I29
#[test]
fn a_call_that_is_refused_claims_no_id_and_leaves_no_record() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let (person, other) = (hub.person(), hub.person());
        let (agent, eve) = (person.agent(), person.helper());
        // A session that is not open to it, another user's, and none at all.
        let none = "sess_00000000000000000000000000000000".to_owned();
        let sessions = [agent.open().await, other.agent().open().await, none];
        for (number, session) in sessions.iter().enumerate() {
            let producer = json!({ "agent_id": format!("squatted-{number}") });
            let progress = json!({ "progress": { "step": 1 }, "summary_normal": "On.",
                "producer": producer });
            let refused = eve.try_emit(session, "progress.updated", progress).await;
            assert!(refused.status.is_client_error(), "{refused:?}");
            let mut asked = deletion("old.txt");
            asked["producer"] = producer;
            let refused = eve.post(&format!("agent/sessions/{session}/requests"), &asked).await;
            assert!(refused.status.is_client_error(), "{refused:?}");
        }
        let (code, audit) = house.aaep(&["audit", "export", "--kind", "claimed"]);
        assert_eq!((code, &*audit), (0, ""));
        // So everybody else may still use them.
        let mut opening = other.agent().opening();
        opening["producer"] = json!({ "agent_id": "squatted-1" });
        assert_eq!(other.agent().post("agent/sessions", &opening).await.status, 201);
    });
}

// covers: X9, I3
#[test]
fn what_a_session_owes_by_its_profile_is_owed_after_a_kill_until_it_followed() {
    const MEDICAL: &str = "https://example.org/medai/context/v1";
    run(async {
        let house = House::new();
        let profile = include_str!("../../../../vectors/profiles/medical.json");
        std::fs::write(house.0.path().join("medical.json"), profile).unwrap();
        let start =
            || Hub::start_in(Setup::durable().toml("profile = \"medical.json\""), house.0.clone());
        let hub = start();
        let person = hub.person();
        let agent = person.agent();
        let (owing, paid) = (agent.open().await, agent.open().await);
        let uncertain = json!({ "@context": ["https://aaep-protocol.org/context/v1", MEDICAL], "progress": { "step": 1 },
            "summary_normal": "Unsure.", "extensions": { "medai": { "confidence": "low" } } });
        let handoff = json!({ "reason": "Unsure.", "target_kind": "human",
            "summary_normal": "A person takes over." });
        for session in [&owing, &paid] {
            agent.emit(session, "progress.updated", uncertain.clone()).await;
        }
        agent.emit(&paid, "handoff.requested", handoff.clone()).await;
        hub.kill();

        let hub = start();
        let agent = person.at(&hub).agent();
        agent.complete(&paid).await;
        let over = json!({ "summary_normal": "Over." });
        let refused = agent.try_emit(&owing, "session.completed", over).await;
        assert_eq!((refused.status.as_u16(), &body(&refused)["rule"]), (409, &json!("X9")));
        agent.emit(&owing, "handoff.requested", handoff).await;
        agent.complete(&owing).await;
        let (code, audit) = house.aaep(&["audit", "export", "--kind", "owed"]);
        assert!(code == 0 && audit.matches("\"rules\":[\"MED3\"]").count() == 2, "{audit}");
        assert_eq!(audit.matches("\"rules\":[]").count(), 2, "{audit}");
    });
}

// covers: I3
#[test]
fn a_changed_record_stops_the_start_and_says_what_was_kept_and_how_to_go_on() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let agent = hub.person().agent();
        let session = agent.open().await;
        agent.ask(&session).await;
        hub.signal("TERM");
        assert!(hub.ended().success());
        let path = house.data().join("journal.db");
        let mut bytes = std::fs::read(&path).unwrap();
        let at = bytes.windows(9).position(|nine| nine == b"\"old.txt\"").unwrap();
        bytes[at + 1] = b'O';
        std::fs::write(&path, bytes).unwrap();
        let (code, said) = Setup::durable().fails_in(house.0.path());
        assert_eq!(code, 2, "{said}");
        for words in ["Record 2 cannot be believed", "The 1 records before it are whole", "backup"]
        {
            assert!(said.contains(words), "{said}");
        }
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert!(code == 1 && said.contains("Record 2"), "{said}");
    });
}

// covers: I26
#[test]
fn the_audit_is_verified_and_exported_and_a_backup_made_while_the_hub_works() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let question = ear.event("awaiting.confirmation").await;
        let says = json!({ "decided_by": "Ann, at the window", "decision_rationale": "It is old.",
            "correlation_id": "trace-7" });
        ear.decide_saying(&question, "accept", says.clone()).await;
        ear.decide(&question, "reject").await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        let (code, said) = house.aaep(&["audit", "verify"]);
        assert_eq!((code, &*said), (0, "4 records, each as it was written.\n"));
        let (code, said) = house.aaep(&["audit", "verify", "--json"]);
        let whole: Value = serde_json::from_str(&said).unwrap();
        assert_eq!(
            (code, whole),
            (
                0,
                json!({ "whole": true, "records": 4, "erased": 0, "to_remove": 0, "erasures": [],
                    "end_is_known": true, "key_is_known": true, "trust_begins": 1,
                    "old_copies": [], "signed": 0, "signed_with_unknown_key": 0 })
            )
        );
        let (code, lines) =
            house.aaep(&["audit", "export", "--kind", "resolved", "--kind", "ignored"]);
        let lines: Vec<Value> =
            lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!((code, lines.len()), (0, 2));
        assert_eq!(lines[0]["decided_by"], person.name("reader"));
        assert_eq!(lines[0]["reply"], says, "beside the principal, never instead");
        assert_eq!(lines[0]["user"], format!("user{}", &person.name("")));
        assert_eq!(lines[1]["reason_text"], "was decided already");
        let file = house.0.path().join("backup.db");
        let (code, said) = house.aaep(&["hub", "backup", file.to_str().unwrap()]);
        assert!(code == 0 && file.exists(), "{said}");
        let (code, _) = house.aaep(&["hub", "backup", file.to_str().unwrap()]);
        assert_eq!(code, 2, "a file that is there stays as it is");
    });
}

#[test]
fn inspect_says_who_answered_by_a_copy_of_the_audit() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let request = agent.ask(&session).await;
        let mut heard = vec![ear.event("awaiting.confirmation").await];
        let says = json!({ "decided_by": "Ann, at the window" });
        ear.decide_saying(&heard[0], "accept", says).await;
        assert_eq!(agent.outcome(&request).await, "accepted");
        while !heard.last().unwrap()["extensions"]["outcome"].is_object() {
            heard.push(ear.event("state.changed").await);
        }
        let folder = tempfile::tempdir().unwrap();
        let keep = |name: &str, text: &str| {
            let file = folder.path().join(name);
            std::fs::write(&file, text).unwrap();
            file.to_str().unwrap().to_owned()
        };
        let lines: Vec<String> = heard.iter().map(|event| format!("{event}\n")).collect();
        let recording = keep("heard.jsonl", &lines.concat());
        let (_, exported) = house.aaep(&["audit", "export"]);
        let audit = keep("audit.jsonl", &exported);
        let inspect = |more: &[&str]| house.aaep(&[&["inspect", &*recording], more].concat());
        let (code, told) = inspect(&[]);
        assert!(code == 0 && told.contains("By whom is not in the recording."), "{told}");
        let (code, told) = inspect(&["--audit", &audit]);
        let by = format!(": accepted, by Ann, at the window ({}).", person.name("reader"));
        assert!(code == 0 && told.contains(&by), "{told}");
        // A file without an answer is a mistake, and said.
        let (code, told) = inspect(&["--audit", &recording]);
        assert!(code == 2 && told.contains("no answer is recorded in"), "{told}");
    });
}

// covers: S8, C6
#[test]
fn no_reply_token_and_no_key_is_in_the_store_or_in_the_log() {
    run(async {
        let house = House::new();
        let setup = Setup::durable().set("AAEP_LOG", "trace");
        let hub = Hub::start_in(setup, house.0.clone());
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let mut canaries = vec![person.token("reader"), person.token("agent")];
        for (name, decision) in [("a", "accept"), ("b", "reject"), ("c", "")] {
            agent.ask_for(&session, &deletion(name)).await;
            let question = ear.event("awaiting.confirmation").await;
            let token = text(&question, "reply_token");
            // Without its prefix, in case somebody takes it apart.
            canaries.push(token[4..].to_owned());
            if !decision.is_empty() {
                ear.decide(&question, decision).await;
                ear.decide(&question, decision).await;
            }
        }
        let scan = |canaries: &[String]| {
            let mut files = vec![house.data(), house.0.path().join(".local/state/aaep/heads")];
            let mut seen = 0;
            while let Some(path) = files.pop() {
                if path.is_dir() {
                    files.extend(std::fs::read_dir(path).unwrap().map(|file| file.unwrap().path()));
                    continue;
                }
                let bytes = std::fs::read(&path).unwrap();
                for canary in canaries {
                    let found = bytes.windows(canary.len()).any(|some| some == canary.as_bytes());
                    assert!(!found, "{canary} in {path:?}");
                }
                seen += 1;
            }
            assert!(seen >= 5, "the journal, its log, locks, key, note: {seen}");
        };
        scan(&canaries);
        hub.kill();
        let log = hub.log().join("\n");
        assert!(log.contains("a request was resolved"), "{log}");
        for canary in &canaries {
            assert!(!log.contains(&**canary), "{canary} in the log");
        }
        let hub = house.hub();
        let (agent, mut ear) = (person.at(&hub).agent(), person.at(&hub).reader().await);
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "accept").await;
        agent.complete(&session).await;
        scan(&canaries);
        let (_, lines) = house.aaep(&["audit", "export"]);
        assert!(canaries.iter().all(|canary| !lines.contains(&**canary)));
    });
}

#[test]
fn an_ephemeral_hub_writes_nothing() {
    run(async {
        let house = House::new();
        let hub = Hub::start_in(Setup::default(), house.0.clone());
        let agent = hub.person().agent();
        agent.ask(&agent.open().await).await;
        assert!(!house.0.path().join(".local").exists());
    });
}

/// Junk replies, over so many connections at once.
const JUNK: (usize, usize) = (100_000, 4);

// covers: D40, I22
#[test]
fn a_hundred_thousand_junk_replies_leave_a_bounded_number_of_records_and_all_are_counted() {
    run(async {
        let house = House::new();
        let hub = house.hub();
        let person = hub.person();
        let flood = (0..JUNK.1).map(|_| {
            let (hub, token) = (hub.clone(), person.token("phone"));
            tokio::spawn(async move {
                let mut ear = Ear::web_socket(&hub, Some(&token), true).await;
                let unknown = format!("rpl_{}", "1".repeat(32));
                let junk = decision(&unknown, &ear.subscription, "accept");
                for _ in 0..JUNK.0 / JUNK.1 {
                    ear.send(&junk).await;
                }
                // Its own close is taken after all of them.
                let close = json!({ "type": "subscription.close",
                    "subscription_id": ear.subscription });
                ear.send(&close.to_string()).await;
                ear.until_end().await;
            })
        });
        for flood in flood.collect::<Vec<_>>() {
            soon("the flood", flood).await.unwrap();
        }
        let counts = || {
            let (code, lines) = house.aaep(&["audit", "export", "--kind", "ignored"]);
            assert_eq!(code, 0, "{lines}");
            let recorded = lines.lines().filter(|line| line.contains("\"sent_by\"")).count();
            let (_, lines) = house.aaep(&["audit", "export", "--kind", "flooded"]);
            let floods: Vec<Value> =
                lines.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
            let counted = floods.iter().filter_map(|flood| flood["ignored"].as_u64()).sum::<u64>();
            (recorded, counted, floods.len())
        };
        // The last second has to end before it is on record.
        soon("the last count", async {
            while counts().0 as u64 + counts().1 < JUNK.0 as u64 {
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        })
        .await;
        hub.signal("TERM");
        hub.ended();
        let (recorded, counted, floods) = counts();
        assert_eq!(recorded as u64 + counted, JUNK.0 as u64);
        assert!(recorded <= 4 * 50 && floods < 120, "{recorded}, {floods}");
    });
}

// covers: D41, I3
#[test]
fn an_approval_that_is_not_used_in_time_is_spent_also_over_a_kill_and_people_are_told() {
    run(async {
        let house = House::new();
        let short =
            || Hub::start_in(Setup::durable().limit("approval_seconds", 3), house.0.clone());
        let hub = short();
        let person = hub.person();
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let session = agent.open().await;
        let mut requests = Vec::new();
        for name in ["used.txt", "kept.txt"] {
            requests.push(agent.ask_for(&session, &deletion(name)).await);
            let question = ear.event("awaiting.confirmation").await;
            ear.decide(&question, "accept").await;
            assert_eq!(agent.outcome(&requests[requests.len() - 1]).await, "accepted");
        }
        assert_eq!(agent.invoke(&requests[0], "{}").await.status, 200);
        hub.kill();

        let hub = short();
        let person = person.at(&hub);
        let (agent, mut ear) = (person.agent(), person.reader().await);
        let told = loop {
            let event = ear.next().await;
            if event["extensions"]["outcome"]["outcome"] == "expired" {
                break event;
            }
        };
        assert_eq!(told["extensions"]["outcome"]["request_event_id"], requests[1]["event_id"]);
        assert!(text(&told, "summary_normal").contains("was not used in time"), "{told}");
        assert_eq!(agent.look(&requests[1], 0).await["status"], "expired");
        let refused = agent.invoke(&requests[1], "{}").await;
        assert_eq!(refused.status, 409);
        assert!(text(&body(&refused), "text").ends_with("is spent; ask again."));
        // The other one was used in time, and its call goes on.
        assert_eq!(agent.look(&requests[0], 0).await["status"], "invoked");
        hub.signal("TERM");
        hub.ended();
        let (_, lines) = house.aaep(&["audit", "export", "--kind", "expired"]);
        assert_eq!(lines.matches(r#""kind":"expired""#).count(), 1, "{lines}");
    });
}
