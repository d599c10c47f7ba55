//! The hub's own account of what is asked about goes with the question wherever it goes.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod world;

use aaep_engine::*;
use aaep_types::EventKind;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use world::World;

const PAY: &str = r#"{"euros":"9001","to":{"name":"Eve"}}"#;

fn questions(world: &World) -> Vec<Value> {
    let asks = |event: &&&Emitted| event.kind == Some(EventKind::AwaitingConfirmation);
    let heard = world.heard();
    heard.iter().filter(asks).map(|event| serde_json::from_str(&event.json).unwrap()).collect()
}

fn account(world: &World, request: RequestId) -> Value {
    let digest = world.engine.request(&world.agent, request).unwrap().digest.to_string();
    json!({ "tool": "transfer_funds", "arguments": "euros: 9001\nto.name: Eve", "digest": digest,
        "described_by": "agent" })
}

// covers: I31, X7, L12
#[test]
fn every_question_about_a_tool_says_what_would_run_whatever_the_agent_says() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let asked = questions(&world).remove(0);
    assert_eq!(asked["extensions"]["action"], account(&world, request));
    let context = asked["@context"].as_array().unwrap();
    assert_eq!(context[1], "urn:aaep-rs:action:v1");
    world.question(session, "");
    let plain = world.events.last().unwrap();
    assert!(!plain.json.contains("extensions"), "{}", plain.json);
    world.check();
}

// covers: I31, D32, I3
#[test]
fn more_time_and_a_restart_leave_the_account_as_it_was() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let token = world.token(request);
    world.more_time(&token, 1000);
    let longer = questions(&world).remove(1);
    assert_eq!(longer["extensions"]["action"], account(&world, request));
    assert!(longer["extensions"]["timing"]["supersedes"].is_string());
    assert_eq!(longer["@context"].as_array().unwrap().len(), 3);
    world.restart(ClockTrust::Trusted);
    // `heard` checks that what comes again has the same bytes.
    assert_eq!(questions(&world).len(), 2);
    let token = world.last_token();
    world.more_time(&token, 2000);
    assert_eq!(questions(&world)[2]["extensions"]["action"], account(&world, request));
    world.restart(ClockTrust::Trusted);
    assert_eq!(questions(&world).len(), 3);
}

// covers: I31, I3
#[test]
fn a_question_of_a_journal_without_accounts_gets_one() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    for bytes in &mut world.records {
        let (number, record, _) = Record::decode(bytes).unwrap();
        if let Record::Asked(asked) = record {
            *bytes = Record::Asked(Asked { account: "".into(), ..asked }).encode(number);
        }
    }
    world.restart(ClockTrust::Trusted);
    let token = world.last_token();
    world.more_time(&token, 2000);
    let asked = questions(&world);
    assert_eq!(asked.last().unwrap()["extensions"]["action"], account(&world, request));
}

// covers: D36, I3, I12
#[test]
fn a_question_of_a_journal_with_digests_over_bytes_can_be_answered_asked_again_and_invoked() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let now = world.engine.request(&world.agent, request).unwrap().digest.to_string();
    let mut hash = Sha256::new_with_prefix(b"aaep-action-v1\0");
    hash.update(14_u64.to_be_bytes());
    hash.update(b"transfer_funds");
    hash.update(PAY);
    let old: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    for bytes in &mut world.records {
        let (number, record, _) = Record::decode(bytes).unwrap();
        if let Record::Asked(asked) = record {
            let account = asked.account.replace(&now, &format!("sha256:{old}")).into();
            let asked = Asked { account, ..asked };
            assert_eq!(
                asked.told_digest(),
                format!("sha256:{old}"),
                "the audit says what was told"
            );
            *bytes = Record::Asked(asked).encode(number);
        }
    }
    // Only the digest in the question changed since it was first heard.
    world.events.clear();
    world.restart(ClockTrust::Trusted);
    assert_eq!(world.engine.request(&world.agent, request).unwrap().digest.to_string(), now);
    assert_eq!(world.ask(session, PAY), request);
    let token = world.last_token();
    world.more_time(&token, 2000);
    let asked = questions(&world);
    assert_eq!(asked.last().unwrap()["extensions"]["action"], account(&world, request));
    let (ann, phone, token) = (world.ann.clone(), world.phone, world.last_token());
    world.reply_as(&ann, phone, &token, "accept");
    world.invoke(request, Some(PAY)).unwrap();
}
