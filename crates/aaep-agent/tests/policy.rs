//! Tools under a policy, with a hub that has none and with one that has the same.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

mod support;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aaep_agent::{Error, NotApproved, Session};
use aaep_policy::Policy;
use serde_json::{Value, json};
use support::{Hub, LONG, Reaction};

const POLICY: &str = r#"
[[rule]]
tool = "notes.read"
risk_level = "low"
reversibility = "reversible"
verdict = "silent"

[[rule]]
tool = "notes.add"
where = { text = { present = true } }
risk_level = "medium"
reversibility = "reversible"
verdict = "announce"
action = "Note {text}"

[[rule]]
tool = "mail.send"
risk_level = "medium"
reversibility = "irreversible"
action = "Send a mail to {to}"
consequence = "It cannot be called back."
"#;

/// Runs a tool under the policy, and tells whether it ran.
async fn runs(session: &Session, tool: &str, arguments: Value) -> (bool, Result<u8, Error>) {
    let policy = Policy::parse(POLICY).unwrap();
    let ran = Arc::new(AtomicBool::new(false));
    let work = {
        let ran = ran.clone();
        async move {
            ran.store(true, Ordering::Relaxed);
            Ok::<u8, String>(7)
        }
    };
    let result = session.run_under(&policy, tool, &arguments, work).await;
    (ran.load(Ordering::Relaxed), result)
}

fn types(events: &[Value]) -> Vec<&str> {
    let types = events.iter().filter_map(|event| event["type"].as_str());
    types.filter_map(|kind| kind.strip_prefix("aaep:agent.")).collect()
}

async fn scene(hub: &Hub) {
    let person = hub
        .person(|event| match event["action"].as_str() {
            Some("Send a mail to \"ann\"") => Reaction::Accept,
            _ => Reaction::Reject,
        })
        .await;
    let agent = hub.agent();
    let session = agent.session("Working under a policy.").open().await.unwrap();
    assert!(matches!(runs(&session, "notes.read", json!({})).await, (true, Ok(7))));
    assert!(matches!(runs(&session, "notes.add", json!({"text": "milk"})).await, (true, Ok(7))));
    assert!(matches!(runs(&session, "mail.send", json!({"to": "ann"})).await, (true, Ok(7))));
    // No rule covers these, so they are asked, and refused.
    for tool in ["disk.wipe", "notes.add"] {
        let (ran, result) = runs(&session, tool, json!({"disk": 1})).await;
        assert!(!ran, "{tool} ran without a yes");
        assert!(
            matches!(result, Err(Error::NotApproved(NotApproved::Rejected { .. }))),
            "{result:?}"
        );
    }
    session.complete("Done.").await.unwrap();
    let events = person.judges(1).await;
    let types = types(&events);
    assert_eq!(
        types.iter().filter(|kind| **kind == "awaiting.confirmation").count(),
        3,
        "{types:?}"
    );
    assert_eq!(types.iter().filter(|kind| **kind == "tool.invoked").count(), 2, "{types:?}");
    let uncovered = events.iter().find(|event| event["risk_level"] == "high").unwrap();
    assert_eq!(uncovered["irreversible"], true);
    let noted = events.iter().find(|event| event["tool"] == "notes.add").unwrap();
    assert_eq!((&noted["risk_level"], noted.get("arguments")), (&json!("medium"), None));
}

// covers: T12, T27
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_tool_under_a_policy_runs_only_as_the_policy_says() {
    let hub = Hub::embedded().await;
    tokio::time::timeout(LONG, scene(&hub)).await.expect("it takes too long");
}

// covers: T27
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agent_and_hub_agree_when_both_have_the_policy() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("policy.toml");
    std::fs::write(&file, POLICY).unwrap();
    let hub =
        Hub::embedded_with(aaep_hub::config::Config { policy: Some(file), ..support::config() })
            .await;
    tokio::time::timeout(LONG, scene(&hub)).await.expect("it takes too long");
}
