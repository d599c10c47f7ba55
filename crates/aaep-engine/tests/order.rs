//! The order of a session's events (§4.5): what breaks it is refused, and changes nothing.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod world;

use aaep_engine::*;
use aaep_types::EventKind::{self, *};
use world::World;

fn refused(
    world: &mut World,
    session: aaep_types::SessionId,
    kind: EventKind,
    payload: &str,
) -> &'static str {
    let before = world.events.len();
    let refusal = world.emit(session, kind, payload).expect_err(payload);
    assert_eq!(world.events.len(), before, "a refusal changes nothing");
    refusal.rule.id
}

// covers: T1, T7, T12, T13, T15, T16, T17, T18, T33, E8, C1
#[test]
fn an_event_out_of_order_is_refused_with_its_rule() {
    let mut world = World::new();
    let session = world.open();
    let call = r#"{"tool":"look","tool_call_id":"call_1","summary_normal":"Looking."}"#;
    assert_eq!(
        refused(&mut world, session, SessionStarted, r#"{"summary_normal":"Again."}"#),
        "T1"
    );
    assert_eq!(
        refused(
            &mut world,
            session,
            StateChanged,
            r#"{"from_state":"thinking","to_state":"deciding"}"#
        ),
        "T7"
    );
    assert_eq!(
        refused(&mut world, session, ToolCompleted, r#"{"tool":"look","status":"success"}"#),
        "T15"
    );
    assert_eq!(
        refused(
            &mut world,
            session,
            ToolInvoked,
            r#"{"tool":"pay","summary_normal":"Paying.","irreversible":true}"#
        ),
        "T12"
    );
    assert_eq!(
        refused(
            &mut world,
            session,
            OutputStreaming,
            r#"{"chunk":"x","position":3,"complete":false}"#
        ),
        "T17"
    );
    world.emit(session, ToolInvoked, call).unwrap();
    assert_eq!(refused(&mut world, session, ToolInvoked, call), "T13");
    assert_eq!(
        refused(
            &mut world,
            session,
            StateChanged,
            r#"{"from_state":"calling_tool","to_state":"thinking"}"#
        ),
        "T16"
    );
    assert_eq!(
        refused(
            &mut world,
            session,
            ToolCompleted,
            r#"{"tool":"other","tool_call_id":"call_1","status":"success"}"#
        ),
        "T33"
    );
    world.emit(session, ToolCompleted, r#"{"tool":"look","tool_call_id":"call_1","status":"success","summary_normal":"Seen."}"#).unwrap();
    world
        .emit(session, OutputStreaming, r#"{"chunk":"Done.","position":0,"complete":true}"#)
        .unwrap();
    assert_eq!(
        refused(
            &mut world,
            session,
            OutputStreaming,
            r#"{"chunk":"x","position":5,"complete":false}"#
        ),
        "T18"
    );
    assert_eq!(refused(&mut world, session, AwaitingConfirmation, r#"{"action":"x"}"#).len(), 2);
    world.emit(session, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
    assert_eq!(refused(&mut world, session, ProgressUpdated, r#"{"progress":{"step":1}}"#), "E8");
    world.check();
}

// covers: E19, E1, D34
#[test]
fn what_is_no_payload_is_refused() {
    let mut world = World::new();
    let session = world.open();
    for (payload, rule) in [
        ("[1]", "E1"),
        ("{", "E1"),
        (r#"{"progress":{"step":1},"event_id":"evt_1"}"#, "E19"),
        (r#"{"progress":{"step":1},"urgency":"critical"}"#, "E13"),
        (r#"{"progress":{"step":0}}"#, "T9"),
        (r#"{"progress":{"description":"pay \u202e005"}}"#, "D34"),
    ] {
        assert_eq!(refused(&mut world, session, ProgressUpdated, payload), rule, "{payload}");
    }
}

// covers: W1
#[test]
fn every_event_stays_on_one_line_however_the_agent_wrote_it() {
    let mut world = World::new();
    let agent = world.agent.clone();
    let open = Open {
        agent: &agent,
        producer: "{\n  \"agent_id\": \"a\"\r\n}",
        summary: "Two\nlines.",
        language: aaep_types::LanguageTag::parse("en").unwrap(),
        lease_seconds: 60,
        payload: "",
    };
    let Ok(Handled::Session(session)) = world.handle(Input::Open(open)) else { panic!() };
    world.emit(session, ProgressUpdated, "{\n\"progress\": {\n\"step\": 1\n}\n}").unwrap();
    assert!(world.events.iter().all(|event| !event.json.contains(['\n', '\r'])));
    assert!(world.events[0].json.contains(r"Two\nlines."));
}

// covers: E4, E19
#[test]
fn a_type_cannot_smuggle_members_into_the_envelope() {
    let mut world = World::new();
    let session = world.open();
    let agent = world.agent.clone();
    let type_name = "aaep:agent.progress.updated\",\"correlation_id\":\"x";
    let payload = r#"{"progress":{"step":1}}"#;
    let event = &AgentEvent::read(type_name, payload);
    let input = Input::Emit { agent: &agent, session, event, arguments: None };
    assert!(world.handle(input).is_err());
}

// covers: E8, T34
#[test]
fn a_session_belongs_to_its_agent() {
    let mut world = World::new();
    let session = world.open();
    let other = Principal::new("other-agent", Role::Agent, "ann");
    let input = Input::Emit {
        agent: &other,
        session,
        event: &AgentEvent::read(ProgressUpdated.as_str(), r#"{"progress":{"step":1}}"#),
        arguments: None,
    };
    assert_eq!(world.handle(input).unwrap_err().blame, Blame::NotYours);
}

// covers: T25, D35, E15
#[test]
fn state_changes_that_an_agent_left_out_are_put_in() {
    let mut world = World::new();
    let session = world.open();
    world.emit(session, ToolInvoked, r#"{"tool":"look","summary_normal":"Looking."}"#).unwrap();
    world
        .emit(
            session,
            ToolCompleted,
            r#"{"tool":"look","status":"success","summary_normal":"Seen."}"#,
        )
        .unwrap();
    world
        .emit(session, OutputStreaming, r#"{"chunk":"It rains.","position":0,"complete":true}"#)
        .unwrap();
    world.emit(session, HandoffRequested, r#"{"reason":"A person should look.","target_kind":"human","summary_normal":"Handing over."}"#).unwrap();
    world.emit(session, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
    let expected = [
        SessionStarted,
        StateChanged,
        ToolInvoked,
        ToolCompleted,
        StateChanged,
        OutputStreaming,
        StateChanged,
        HandoffRequested,
        SessionCompleted,
    ];
    assert_eq!(world.kinds(), expected);
    world.check();
}

// covers: T1
#[test]
fn an_agent_that_falls_silent_loses_its_session() {
    let mut world = World::new();
    let session = world.open();
    world.emit(session, ToolInvoked, r#"{"tool":"look","summary_normal":"Looking."}"#).unwrap();
    world.pass(100_000);
    assert_eq!(world.kinds().last(), Some(&SessionErrored));
    assert_eq!(world.engine.open_sessions(), 0);
    world.check();
}

// covers: E4, D23, I5, T12, C1
#[test]
fn a_core_type_is_that_type_however_it_is_written() {
    let mut world = World::new();
    for address in ["https://aaep-protocol.org/types/", "https://aaep-protocol.org/vocab/v1#"] {
        let session = world.open();
        let agent = world.agent.clone();
        let mut emit = |name: &str, payload: &str| {
            let type_name = &format!("{address}{name}");
            world.handle(Input::Emit {
                agent: &agent,
                session,
                event: &AgentEvent::read(type_name, payload),
                arguments: None,
            })
        };
        let rule = |refused: Result<Handled, Refusal>| refused.unwrap_err().rule.id;
        assert_eq!(rule(emit("agent.session.started", r#"{"summary_normal":"X."}"#)), "T1");
        assert_eq!(rule(emit("agent.awaiting.confirmation", "{}")), "C1");
        let tool = r#"{"tool":"rm","irreversible":true,"summary_normal":"X."}"#;
        assert_eq!(rule(emit("agent.tool.invoked", tool)), "T12");
        emit("agent.tool.invoked", r#"{"tool":"look","summary_normal":"X."}"#).unwrap();
        emit("agent.session.completed", r#"{"summary_normal":"Done."}"#).unwrap();
        // The end is the end, also of the call that was open.
        assert_eq!(rule(emit("agent.progress.updated", r#"{"summary_normal":"X."}"#)), "E8");
        assert_eq!(world.engine.open_sessions(), 0);
    }
    assert!(world.events.iter().all(|event| event.json.contains("\"type\":\"aaep:agent.")));
    world.check();
}

// covers: I27
#[test]
fn the_next_deadline_is_that_of_something_that_is_really_due() {
    let mut world = World::new();
    let (agent, start) = (world.agent.clone(), world.now.boot);
    let at = |seconds| Some(start.after_seconds(seconds));
    let (first, second) = (world.open(), world.open());
    let renew = |world: &mut World, session| {
        world.pass(10);
        world.handle(Input::Touch { agent: &agent, session }).unwrap();
        world.engine.next_deadline()
    };
    // Leases of 100000 seconds: the one that was not renewed runs out first.
    assert_eq!(renew(&mut world, first), at(100_000));
    assert_eq!(renew(&mut world, second), at(100_010));
    assert_eq!(renew(&mut world, second), at(100_010));
    assert_eq!(renew(&mut world, first), at(100_030));
    // Countdowns of requests, until these are answered; in any order.
    let requests: Vec<RequestId> = (0..3)
        .map(|index| {
            world.pass(5);
            world.ask(first, &format!("{index}"))
        })
        .collect();
    assert_eq!(world.engine.next_deadline(), at(45 + 150));
    world.reply(requests[1], "reject");
    assert_eq!(world.engine.next_deadline(), at(45 + 150));
    world.reply(requests[0], "reject");
    assert_eq!(world.engine.next_deadline(), at(55 + 150));
    // An approval has a deadline of its own.
    world.reply(requests[2], "accept");
    assert_eq!(world.engine.next_deadline(), at(55 + 600));
    world.invoke(requests[2], None).unwrap();
    assert_eq!(world.engine.next_deadline(), at(100_030));
    assert_eq!(world.engine.pending_requests(), 0);
    world.pass(99_000);
    world.emit(second, EventKind::SessionCompleted, r#"{"summary_normal":"Done."}"#).unwrap();
    assert_eq!(world.engine.next_deadline(), at(100_055));
}

// covers: C4
#[test]
fn a_session_that_asks_too_often_is_refused_at_the_source() {
    let mut world = World::new();
    let session = world.open();
    let asked: Vec<_> = (0..50)
        .map(|amount| {
            let more = r#","timeout_seconds":300,"default_decision":"reject","irreversible":true"#;
            world.try_ask(session, &format!("{{\"amount\":\"{amount}\"}}"), more)
        })
        .collect();
    let limit = Limits::default().prompts_per_window as usize;
    assert!(asked[..limit].iter().all(Result::is_ok));
    assert!(
        asked[limit..]
            .iter()
            .all(|asked| asked.as_ref().is_err_and(|refusal| refusal.blame == Blame::Limit))
    );
    world.pass(60);
    world.ask(session, "{\"amount\":\"later\"}");
}

// covers: C4
#[test]
fn an_agent_that_begins_session_after_session_has_no_more_to_ask() {
    let mut world = World::new();
    let more = r#","timeout_seconds":300,"default_decision":"reject","irreversible":true"#;
    let mut asked = 0;
    for _ in 0..20 {
        let session = world.open();
        for amount in 0..30 {
            let answer = world.try_ask(session, &format!("{{\"amount\":\"{amount}\"}}"), more);
            asked += u32::from(answer.is_ok());
        }
        world.emit(session, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
    }
    assert_eq!(asked, 10 * Limits::default().prompts_per_window);
    // Another agent of the same user is not concerned, and time heals.
    world.agent = Principal::new("other-agent", Role::Agent, "ann");
    let session = world.open();
    assert!(world.try_ask(session, "{}", more).is_ok());
    world.agent = Principal::new("bank-agent", Role::Agent, "ann");
    world.pass(60);
    let session = world.open();
    assert!(world.try_ask(session, "{}", more).is_ok());
}

// covers: I10
#[test]
fn without_a_journal_there_is_no_new_consent() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, "{}");
    world.handle(Input::JournalFailed).unwrap();
    world.reply(request, "accept");
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    let more = r#","timeout_seconds":300,"default_decision":"reject","irreversible":true"#;
    assert_eq!(world.try_ask(session, "{\"a\":1}", more).unwrap_err().blame, Blame::Unavailable);
    world.handle(Input::JournalWorks).unwrap();
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
}

// covers: T17
#[test]
fn after_a_restart_an_output_goes_on_where_its_agent_was() {
    let mut world = World::new();
    let session = world.open();
    let write =
        |position: u64| format!(r#"{{"chunk":"word ","position":{position},"complete":false}}"#);
    world.emit(session, EventKind::OutputStreaming, &write(0)).unwrap();
    world.restart(ClockTrust::Trusted);
    world.emit(session, EventKind::OutputStreaming, &write(5)).unwrap();
    let refused = world.emit(session, EventKind::OutputStreaming, &write(5)).unwrap_err();
    assert_eq!(refused.rule.id, "T17");
    world.emit(session, EventKind::OutputStreaming, &write(10)).unwrap();
}

// covers: T35, T15
#[test]
fn a_call_and_its_end_carry_one_id_also_if_the_agent_names_none() {
    let mut world = World::new();
    let session = world.open();
    let invoked = r#"{"tool":"look","summary_normal":"Looking."}"#;
    let completed = r#"{"tool":"look","status":"success","summary_normal":"Seen."}"#;
    world.emit(session, ToolInvoked, invoked).unwrap();
    world.emit(session, ToolCompleted, completed).unwrap();
    let call = |kind: EventKind| {
        let event = world.events.iter().find(|event| event.kind == Some(kind)).unwrap();
        let json: serde_json::Value = serde_json::from_str(&event.json).unwrap();
        json["tool_call_id"].as_str().unwrap_or_default().to_owned()
    };
    assert!(call(ToolInvoked).starts_with("call_"));
    assert_eq!(call(ToolInvoked), call(ToolCompleted));
    // Of two, nobody knows which is meant.
    world.emit(session, ToolInvoked, invoked).unwrap();
    world.emit(session, ToolInvoked, invoked).unwrap();
    assert_eq!(refused(&mut world, session, ToolCompleted, completed), "T15");
}
