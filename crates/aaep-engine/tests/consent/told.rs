//! What people and the agent are told of an outcome.

use aaep_engine::*;
use aaep_types::EventKind;

use crate::PAY;
use crate::world::World;

// covers: C2, T24, D16, C13, S2
#[test]
fn a_rejected_action_never_runs_and_says_so() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.reply(request, "reject");
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Rejected, false)));
    assert!(world.invoke(request, None).is_err());
    let last = world.events.last().unwrap();
    assert!(last.json.contains(r#""to_state":"thinking""#) && last.json.contains("\"rejected\""));
    world.check();
}

// covers: C14, C15, I7, I9, D11, C26
#[test]
fn silence_is_no_and_a_late_accept_does_nothing() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.pass(299);
    assert_eq!(world.decided(request), None);
    world.pass(1);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
    world.reply(request, "accept");
    assert!(world.invoke(request, None).is_err());
    world.check();
}

// covers: C18
#[test]
fn a_long_wait_is_counted_down_at_half_and_at_a_tenth() {
    let mut world = World::new();
    let session = world.open();
    world.ask(session, PAY);
    world.pass(150);
    assert_eq!(world.kinds().last(), Some(&EventKind::ProgressUpdated));
    world.pass(119);
    assert_eq!(world.kinds().iter().filter(|kind| **kind == EventKind::ProgressUpdated).count(), 1);
    world.pass(1);
    assert_eq!(world.kinds().iter().filter(|kind| **kind == EventKind::ProgressUpdated).count(), 2);
    world.check();
}

// covers: D30, C22
#[test]
fn several_requests_may_wait_and_each_outcome_names_its_own() {
    let mut world = World::new();
    let session = world.open();
    let requests: Vec<RequestId> =
        (0..3).map(|amount| world.ask(session, &format!("{{\"amount\":\"{amount}\"}}"))).collect();
    world.reply(requests[1], "accept");
    world.reply(requests[0], "reject");
    world.invoke(requests[1], None).unwrap();
    world.reply(requests[2], "reject");
    for (request, outcome) in
        [(requests[0], "rejected"), (requests[1], "accepted"), (requests[2], "rejected")]
    {
        let id = request.first_event().id();
        let named = format!(r#""request_event_id":"{id}","outcome":"{outcome}""#);
        assert!(world.events.iter().any(|event| event.json.contains(&named)), "{named}");
    }
    world.check();
}

// covers: D41, I18
#[test]
fn an_approval_that_is_not_used_in_time_is_spent_and_everybody_is_told() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.reply(request, "accept");
    world.pass(599);
    assert!(matches!(world.engine.status(request), Some(Status::Resolved { runs: true, .. })));
    let heard = world.events.len();
    world.pass(1);
    assert_eq!(world.engine.status(request), Some(Status::Expired));
    let told = &world.events[heard];
    assert_eq!(told.kind, Some(EventKind::StateChanged));
    assert!(told.json.contains("not used in time"), "{}", told.json);
    assert!(told.json.contains(r#""outcome":"expired""#), "{}", told.json);
    let refused = world.invoke(request, Some(PAY)).unwrap_err();
    assert_eq!((refused.blame, refused.rule.id), (Blame::OutOfOrder, "T12"));
    assert!(refused.text.ends_with("is spent; ask again."), "{}", refused.text);
    assert_eq!(world.granted(request), 0);
    // It is asked again like anything else, and a late reply to the old question does nothing.
    let again = world.ask(session, PAY);
    world.reply(request, "accept");
    assert_eq!(world.engine.status(again), Some(Status::Pending));
    world.reply(again, "accept");
    world.invoke(again, Some(PAY)).unwrap();
    world.check();
}

// covers: D41
#[test]
fn a_yes_by_silence_expires_too_and_the_state_stays_while_something_else_goes_on() {
    let mut world = World::new();
    let session = world.open();
    let more = r#","timeout_seconds":60,"default_decision":"accept","risk_level":"low","irreversible":false"#;
    let Handled::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
        panic!()
    };
    world.pass(60);
    world
        .emit(session, EventKind::ToolInvoked, r#"{"tool":"look","summary_normal":"Looking."}"#)
        .unwrap();
    let heard = world.events.len();
    world.pass(600);
    assert_eq!(world.engine.status(request), Some(Status::Expired));
    let told = &world.events[heard];
    assert_eq!(told.kind, Some(EventKind::ProgressUpdated));
    assert!(told.json.contains(r#""outcome":"expired""#), "{}", told.json);
    world.check();
}

// covers: D37
#[test]
fn what_waits_or_was_refused_is_not_announced_as_running() {
    let mut world = World::new();
    let session = world.open();
    let other = r#"{"amount":"7"}"#;
    let refused = |world: &mut World, arguments| {
        let before = world.events.len();
        let refusal = world.announce(session, "transfer_funds", arguments).unwrap_err();
        assert_eq!((refusal.rule.id, refusal.blame), ("D37", Blame::OutOfOrder));
        assert_eq!(world.events.len(), before);
        refusal.text
    };
    // While it waits.
    let request = world.ask(session, PAY);
    assert!(refused(&mut world, Some(PAY)).contains("has not answered yet"));
    refused(&mut world, None);
    world.announce(session, "transfer_funds", Some(other)).unwrap();
    world.announce(session, "look", None).unwrap();
    // After a no, also over a restart.
    world.reply(request, "reject");
    assert!(refused(&mut world, Some(PAY)).contains("ask again"));
    world.restart(ClockTrust::Trusted);
    refused(&mut world, Some(PAY));
    assert!(refused(&mut world, None).contains("`arguments`"));
    // A new request that is accepted frees it, one that is not does not.
    let request = world.ask(session, PAY);
    world.pass(301);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
    refused(&mut world, Some(PAY));
    let request = world.ask(session, PAY);
    let agent = world.agent.clone();
    world.handle(Input::Withdraw { agent: &agent, request }).unwrap();
    refused(&mut world, Some(PAY));
    let more = r#","timeout_seconds":300,"default_decision":"reject","risk_level":"medium","reversibility":"reversible""#;
    let Handled::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
        panic!()
    };
    world.reply(request, "accept");
    world.announce(session, "transfer_funds", Some(PAY)).unwrap();
    world.announce(session, "transfer_funds", None).unwrap();
    // What was refused with other arguments stays so.
    let request = world.ask(session, other);
    world.reply(request, "reject");
    refused(&mut world, Some(other));
    refused(&mut world, None);
    world.announce(session, "transfer_funds", Some(PAY)).unwrap();
}

// covers: T27
#[test]
fn a_yes_to_what_cannot_be_undone_is_used_by_its_request_and_not_beside_it() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.reply(request, "accept");
    let refused = |world: &mut World| {
        let before = world.events.len();
        let refusal = world.announce(session, "transfer_funds", Some(PAY)).unwrap_err();
        assert_eq!((refusal.rule.id, refusal.blame), ("T27", Blame::OutOfOrder));
        assert_eq!(world.events.len(), before);
    };
    refused(&mut world);
    world.restart(ClockTrust::Trusted);
    refused(&mut world);
    // Other arguments are another action.
    world.announce(session, "transfer_funds", Some(r#"{"amount":"7"}"#)).unwrap();
    world.invoke(request, Some(PAY)).unwrap();
    assert_eq!(last(&world, EventKind::ToolInvoked)["irreversible"], true);
}

// covers: T11, L13
#[test]
fn the_call_that_follows_a_yes_says_its_arguments_and_speaks_the_language_of_the_question() {
    for restarts in [false, true] {
        let mut world = World::new();
        let session = world.open();
        let more = r#","timeout_seconds":300,"default_decision":"reject","risk_level":"medium","irreversible":true,"localization_hints":{"primary_language":"yo-NG"}"#;
        let arguments = r#"{"to":"Ann","euros":[1,2]}"#;
        let Handled::Waiting { request, .. } = world.try_ask(session, arguments, more).unwrap()
        else {
            panic!()
        };
        world.reply(request, "accept");
        if restarts {
            world.restart(ClockTrust::Trusted);
        }
        world.invoke(request, None).unwrap();
        let invoked = last(&world, EventKind::ToolInvoked);
        assert_eq!(invoked["args_summary"], "to: Ann; euros[0]: 1; euros[1]: 2");
        assert_eq!(invoked["risk_level"], "medium");
        assert_eq!(invoked["localization_hints"]["primary_language"], "yo-NG");
        if !restarts {
            world.check();
        }
    }
}

/// What the last event of this kind says.
fn last(world: &World, kind: EventKind) -> serde_json::Value {
    let event = world.events.iter().rev().find(|event| event.kind == Some(kind)).unwrap();
    serde_json::from_str(&event.json).unwrap()
}

// covers: C23, D17, T24
#[test]
fn a_question_that_goes_on_with_its_default_says_so() {
    let mut world = World::new();
    let session = world.open();
    world.question(session, r#","default_response":"three""#);
    world.pass(121);
    let told = last(&world, EventKind::StateChanged);
    assert_eq!(told["summary_normal"], "No answer in time; going on with “three”: How many?");
    world.question(session, r#","default_response":"3","accepted_response_kinds":["numeric"]"#);
    world.pass(121);
    let told = last(&world, EventKind::StateChanged);
    assert_eq!(told["summary_normal"], "No answer in time; going on with “3”: How many?");
    world.question(session, r#","context":"There is no default.""#);
    world.pass(121);
    let told = last(&world, EventKind::StateChanged);
    assert_eq!(
        told["summary_normal"],
        "No answer in time; the agent decides how to go on: How many?"
    );
    world.check();
}

// covers: D9, D42, C9
#[test]
fn a_no_with_a_wrong_clock_is_told_as_such_and_what_a_reply_says_reaches_the_agent() {
    let mut world = World::new();
    let session = world.open();
    let (ann, phone) = (world.ann.clone(), world.phone);
    let request = world.ask(session, PAY);
    let token = world.token(request);
    let says = r#""decided_by":"Ann","decision_rationale":"Too much. password=hunter2hunter2","correlation_id":"trace-1""#;
    let reply = |stamp: &str| {
        format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"reject","subscription_id":"{phone}","timestamp":"{stamp}",{says}}}"#
        )
    };
    world.message(&ann, &reply("1999-01-01T00:00:00Z"));
    assert_eq!(world.decided(request), Some((Outcome::Cancelled, false)));
    let told = last(&world, EventKind::StateChanged);
    let words = told["summary_normal"].as_str().unwrap();
    assert!(words.starts_with("Rejected by a device whose clock is wrong; not done"), "{words}");
    assert_eq!(told["extensions"]["outcome"]["reason"], "wrong_clock");
    world.check();
    for _ in 0..2 {
        let view = world.engine.request(&world.agent, request).unwrap();
        assert_eq!(view.decided_by.as_deref(), Some(&*ann.name), "whatever name the reply gives");
        let said: serde_json::Value = serde_json::from_str(view.reply.as_deref().unwrap()).unwrap();
        assert_eq!((&said["decided_by"], &said["wrong_clock"]), (&"Ann".into(), &true.into()));
        assert_eq!(said["correlation_id"], "trace-1");
        let why = said["decision_rationale"].as_str().unwrap();
        assert!(why.starts_with("Too much.") && !why.contains("hunter2"), "{why}");
        world.restart(ClockTrust::Trusted);
    }
}

// covers: C19
#[test]
fn how_sure_a_device_is_of_an_answer_reaches_the_agent() {
    let mut world = World::new();
    let session = world.open();
    let (ann, phone, stamp) = (world.ann.clone(), world.phone, world.now.wall);
    let request = world.question(session, "");
    let token = world.token(request);
    let long = "x".repeat(300);
    world.message(&ann, &format!(
        r#"{{"type":"clarification.reply","reply_token":"{token}","response":"two","subscription_id":"{phone}","timestamp":"{stamp}","confidence":0.75,"correlation_id":"{long}"}}"#
    ));
    let view = world.engine.request(&world.agent, request).unwrap();
    assert_eq!(view.reply.as_deref(), Some(r#"{"confidence":0.75}"#), "half an id names nothing");
    assert_eq!(view.response.as_deref(), Some("\"two\""));
}

// covers: T24, I18, D41
#[test]
fn what_was_approved_and_never_run_is_explained_before_the_end_whoever_the_agent_is() {
    for (ends, restarts) in [(true, false), (false, false), (true, true), (false, true)] {
        let mut world = World::new();
        let session = world.open();
        let request = world.ask(session, PAY);
        world.reply(request, "accept");
        if restarts {
            world.restart(ClockTrust::Trusted);
        }
        let words = if ends {
            let done = r#"{"summary_normal":"Done."}"#;
            world.emit(session, EventKind::SessionCompleted, done).unwrap();
            "The session ends before this was done, though you approved it"
        } else {
            let agent = world.agent.clone();
            world.handle(Input::Withdraw { agent: &agent, request }).unwrap();
            "The agent gave up what you approved, so this was not done"
        };
        let told = last(&world, EventKind::StateChanged);
        assert!(told["summary_normal"].as_str().unwrap().starts_with(words), "{told}");
        assert_eq!(told["extensions"]["outcome"]["outcome"], "expired");
        assert_eq!(world.engine.status(request), Some(Status::Expired));
        assert!(world.invoke(request, None).is_err());
        // Numbers have a hole after a restart.
        if !restarts {
            world.check();
        }
    }
}

// covers: C18, L6
#[test]
fn a_countdown_is_heard_whatever_the_length_of_the_action_and_leaves_no_hole() {
    let mut world = World::new();
    let session = world.open();
    let agent = world.agent.clone();
    // Each of these is one character of five code points.
    let action = "👩‍👩‍👦".repeat(16_384 / 5);
    let payload = format!(
        r#"{{"action":"{action}","consequence":"It is long.","summary_normal":"Long?","timeout_seconds":100,"default_decision":"reject","irreversible":true}}"#
    );
    world
        .handle(Input::Ask(Ask {
            agent: &agent,
            session,
            question: &AgentQuestion::read(EventKind::AwaitingConfirmation, "long", "{}", &payload),
            described_by: aaep_types::DescribedBy::Agent,
        }))
        .unwrap();
    world.pass(51);
    let told = last(&world, EventKind::ProgressUpdated);
    let words = told["summary_normal"].as_str().unwrap();
    let (left, cut) = words.split_once(": ").unwrap();
    assert!(left.ends_with("seconds left to answer"), "{left}");
    assert!(cut.ends_with("👩‍👩‍👦"), "cut between characters as people see them");
    world.pass(50);
    let told = last(&world, EventKind::StateChanged);
    assert!(told["summary_normal"].as_str().unwrap().ends_with("👩‍👩‍👦"));
    world.check();
    let numbers: Vec<u64> = world.events.iter().map(|event| event.number).collect();
    assert!(numbers.windows(2).all(|pair| pair[1] == pair[0] + 1), "{numbers:?}");
    for event in &world.events {
        aaep_types::Event::parse(event.json.as_bytes()).unwrap();
    }
}

// covers: T11, D10
#[test]
fn the_confirmed_call_is_as_risky_as_its_request_also_after_a_restart() {
    for (said, risk, irreversible) in [
        (r#","risk_level":"medium","reversibility":"irreversible""#, "medium", true),
        (r#","risk_level":"low","irreversible":false"#, "low", false),
        ("", "high", true),
    ] {
        for restarts in [false, true] {
            let mut world = World::new();
            let session = world.open();
            let more = format!(r#","timeout_seconds":300,"default_decision":"reject"{said}"#);
            let asked = world.try_ask(session, PAY, &more).unwrap();
            let Handled::Waiting { request, .. } = asked else { panic!() };
            if restarts {
                world.restart(ClockTrust::Trusted);
            }
            world.reply(request, "accept");
            if restarts {
                world.restart(ClockTrust::Trusted);
            }
            world.invoke(request, None).unwrap();
            let invoked = last(&world, EventKind::ToolInvoked);
            assert_eq!(
                (&invoked["risk_level"], &invoked["irreversible"]),
                (&risk.into(), &irreversible.into())
            );
            if !restarts {
                world.check();
            }
        }
    }
}
