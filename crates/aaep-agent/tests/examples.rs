//! The examples do what they say, with the hub in this process and with the real program, and as
//! programs of their own.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, dead_code)]
#![allow(clippy::duplicate_mod)] // each example has its own copy of what they share

mod support;

#[path = "../examples/bank_transfer.rs"]
mod bank_transfer;
#[path = "../examples/chat.rs"]
mod chat;
#[path = "../examples/clean_files.rs"]
mod clean_files;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Hub, LONG, Program, Reaction};

fn of_type<'e>(events: &'e [Value], name: &str) -> Vec<&'e Value> {
    let wanted = format!("aaep:agent.{name}");
    events.iter().filter(|event| event["type"] == wanted.as_str()).collect()
}

in_both_worlds! {
    // covers: C27
    #[test]
    async fn the_bank_transfer_follows_the_worked_sequence(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        assert!(bank_transfer::run(&hub.agent()).await.unwrap());
        let events = person.judges(1).await;
        let asked = of_type(&events, "awaiting.confirmation")[0];
        assert_eq!(asked["timeout_seconds"], 300);
        assert_eq!(asked["default_decision"], "reject");
        assert_eq!((&asked["risk_level"], &asked["irreversible"]), (&json!("high"), &json!(true)));
        let from = events.iter().position(|event| event == asked).unwrap();
        let after: Vec<&str> = events[from..]
            .iter()
            .map(|event| event["type"].as_str().unwrap().trim_start_matches("aaep:agent."))
            .filter(|name| *name != "progress.updated")
            .collect();
        let wanted = [
            "awaiting.confirmation",
            "state.changed",
            "tool.invoked",
            "tool.completed",
            "session.completed",
        ];
        assert_eq!(after, wanted);
    }

    #[test]
    async fn a_bank_transfer_that_nobody_wants_does_not_happen(hub: &Hub) {
        let person = hub.person(|_| Reaction::Reject).await;
        assert!(!bank_transfer::run(&hub.agent()).await.unwrap());
        assert!(of_type(&person.judges(1).await, "tool.invoked").is_empty());
    }

    #[test]
    async fn the_cleaner_deletes_what_was_confirmed_and_nothing_else(hub: &Hub) {
        let person = hub.person(|_| Reaction::Accept).await;
        let directory = tempfile::tempdir().unwrap();
        for name in ["a.tmp", "b.bak", "c.log", "d.tmp", "e.tmp", "f.swp", "letter.txt"] {
            std::fs::write(directory.path().join(name), "x").unwrap();
        }
        assert_eq!(clean_files::run(&hub.agent(), directory.path()).await.unwrap(), 6);
        let left: Vec<_> = std::fs::read_dir(directory.path()).unwrap().flatten().collect();
        assert_eq!(left.len(), 1);
        let events = person.judges(1).await;
        let action = of_type(&events, "awaiting.confirmation")[0]["action"].as_str().unwrap();
        assert!(action.starts_with("Delete 6 files in"), "{action}");
        assert!(action.ends_with("e.tmp, and 1 more."), "{action}");
        // Nothing to ask for the second time.
        assert_eq!(clean_files::run(&hub.agent(), directory.path()).await.unwrap(), 0);
        assert_eq!(of_type(&person.judges(2).await, "awaiting.confirmation").len(), 1);
    }

    #[test]
    async fn the_cleaner_deletes_nothing_without_a_yes(hub: &Hub) {
        let person = hub.person(|_| Reaction::Reject).await;
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join("a.tmp"), "x").unwrap();
        assert_eq!(clean_files::run(&hub.agent(), directory.path()).await.unwrap(), 0);
        assert!(directory.path().join("a.tmp").exists());
        person.judges(1).await;
    }

    // covers: T34, T31
    #[test]
    async fn the_chat_streams_its_answers(hub: &Hub) {
        let person = hub.person(|_| Reaction::Say(json!("Folake"))).await;
        let agent = hub.agent();
        let chatting = tokio::spawn({
            let agent = agent.clone();
            async move { chat::run(&agent, agent.inputs()).await.unwrap() }
        });
        while person.says("Good morning!").await != 202 {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        person.judges(1).await;
        assert_eq!(person.says("Guess my name").await, 202);
        let events = person.judges(2).await;
        assert_eq!(person.says("goodbye").await, 202);
        assert_eq!(chatting.await.unwrap(), 2);
        // Each question had a session of its own, which ended well.
        let ends = of_type(&events, "session.completed");
        assert_eq!(ends.len(), 2, "{events:?}");
        assert_ne!(ends[0]["session_id"], ends[1]["session_id"]);
        let text: String = of_type(&events, "output.streaming")
            .iter()
            .map(|event| event["chunk"].as_str().unwrap())
            .collect();
        assert!(text.contains("Hello, friend! You said: “Good morning!”."), "{text}");
        assert!(text.ends_with("Hello, Folake! You said: “Guess my name”. That has 3 words. Say “goodbye” when you had enough. 👋🏽"), "{text}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_example_runs_as_a_program() {
    let example = support::built_example("bank_transfer");
    let hub = Hub::Program(Program::start(&[]).await);
    let person = hub.person(|_| Reaction::Accept).await;
    let run = tokio::process::Command::new(example).arg(hub.url()).kill_on_drop(true).output();
    let output = tokio::time::timeout(LONG, run).await.unwrap().unwrap();
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.starts_with("Done. 500.00 USD went from checking to savings"), "{said}");
    person.judges(1).await;
}
