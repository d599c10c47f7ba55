//! What the hub itself says: in the session's language or labelled with its own, and without a warning.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod world;

use aaep_engine::*;
use aaep_types::{EventKind, LanguageTag, SessionId};
use world::World;

const SUMMARIES: &str = r#""summary_terse":"T","summary_normal":"N","summary_detailed":"D""#;

fn open_in(world: &mut World, language: &str, lease_seconds: u64) -> SessionId {
    let agent = world.agent.clone();
    let open = Open {
        agent: &agent,
        producer: r#"{"agent_id":"bank-agent"}"#,
        summary: "N",
        language: LanguageTag::parse(language).unwrap(),
        lease_seconds,
        payload: "",
    };
    match world.handle(Input::Open(open)).unwrap() {
        Handled::Session(session) => session,
        other => panic!("{other:?}"),
    }
}

fn ask(world: &mut World, session: SessionId, n: u32) -> RequestId {
    let more = r#","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_terse":"T","summary_detailed":"D""#;
    match world.try_ask(session, &format!("{{\"n\":{n}}}"), more).unwrap() {
        Handled::Waiting { request, .. } => request,
        other => panic!("{other:?}"),
    }
}

/// Lets the hub say everything that it can say.
fn say_everything(language: &str) -> World {
    let mut world = World::new();
    let session = open_in(&mut world, language, 100_000);
    let accepted = ask(&mut world, session, 1);
    let waiting = ask(&mut world, session, 2);
    world.reply(accepted, "accept");
    world.reply(waiting, "reject");
    world.invoke(accepted, None).unwrap();
    let output = r#"{"chunk":"Hello.","position":0,"complete":true}"#;
    let expires = ask(&mut world, session, 3);
    world.reply(expires, "accept");
    world.pass(2000);
    ask(&mut world, session, 4);
    world.pass(400);
    ask(&mut world, session, 5);
    let token = world.last_token();
    world.more_time(&token, 400);
    let cancelled = ask(&mut world, session, 6);
    let agent = world.agent.clone();
    world.handle(Input::Withdraw { agent: &agent, request: cancelled }).unwrap();
    world.emit(session, EventKind::SessionCompleted, r#"{"summary_normal":"N"}"#).unwrap();
    let other = open_in(&mut world, language, 100_000);
    world.emit(other, EventKind::OutputStreaming, output).unwrap();
    let handoff = format!(r#"{{"reason":"r","target_kind":"human",{SUMMARIES}}}"#);
    world.emit(other, EventKind::HandoffRequested, &handoff).unwrap();
    let (ann, phone, stamp) = (world.ann.clone(), world.phone, world.now.wall);
    let stop = format!(
        r#"{{"type":"control:cancel","session_id":"{other}","subscription_id":"{phone}","timestamp":"{stamp}"}}"#
    );
    world.message(&ann, &stop);
    open_in(&mut world, language, 15);
    world.pass(30);
    open_in(&mut world, language, 100_000);
    world.restart(ClockTrust::OldCopy);
    world
}

// covers: T29, T35, L13, E12, E14
#[test]
fn nothing_the_hub_says_is_worth_a_warning_in_any_language() {
    for language in
        ["en", "fr", "de", "es", "pt", "ar", "zh", "hi", "yo", "ha", "ig", "fr-CA", "sw"]
    {
        let world = say_everything(language);
        let mut said = 0;
        for event in world.heard() {
            let problems = aaep_types::validate(event.json.as_bytes());
            assert!(problems.is_empty(), "{language}: {problems:?}\n{}", event.json);
            let json: serde_json::Value = serde_json::from_str(&event.json).unwrap();
            // Ours say how much they say; this agent does not.
            if json["verbosity"] == "normal" {
                said += 1;
                let labelled = json["localization_hints"]["primary_language"].as_str().unwrap();
                let wanted = match language {
                    "fr-CA" => "fr",
                    "sw" => "en",
                    other => other,
                };
                assert_eq!(labelled, wanted, "{}", event.json);
            }
        }
        assert!(said >= 12, "{language}: {said}");
    }
}

// covers: L13
#[test]
fn a_french_session_hears_french_and_one_in_swahili_hears_english_that_says_so() {
    let french = say_everything("fr");
    let text: String = french.heard().iter().map(|event| event.json.to_string()).collect();
    for sentence in
        ["L’agent vous attend.", "Accepté : Transfer money", "Vous avez arrêté l’agent."]
    {
        assert!(text.contains(sentence), "{sentence}");
    }
    assert!(!text.contains("The agent waits"), "{text}");
    let swahili = say_everything("sw");
    for event in swahili.heard() {
        if event.json.contains("The agent waits for you.") {
            assert!(event.json.contains(r#""primary_language":"en""#), "{}", event.json);
        }
    }
}
