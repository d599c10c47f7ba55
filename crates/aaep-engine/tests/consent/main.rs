//! Chapter 6 as scenarios in virtual time: asking, answering, and running what was confirmed.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod attendance;
mod margin;
mod presence;
mod restarts;
mod told;
#[path = "../world/mod.rs"]
mod world;

use aaep_engine::*;
use aaep_types::{EventKind, SubscriptionId};
use world::World;

const PAY: &str = r#"{"amount":"500.00","to":"savings"}"#;

// covers: C27, C1, C23, T11, T12, T24, T26, I1, I18
#[test]
fn the_worked_sequence_holds() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    assert_eq!(world.invoke(request, None).unwrap_err().rule.id, "T12");
    world.pass(5);
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
    world.invoke(request, Some(PAY)).unwrap();
    let Some(Output::Granted { call, arguments, .. }) = world.others.last().cloned() else {
        panic!()
    };
    assert_eq!(&*arguments, PAY);
    let done = format!(
        r#"{{"tool":"transfer_funds","tool_call_id":"{call}","status":"success","summary_normal":"Sent."}}"#
    );
    world.emit(session, EventKind::ToolCompleted, &done).unwrap();
    world.emit(session, EventKind::SessionCompleted, r#"{"summary_normal":"Done."}"#).unwrap();
    use EventKind::*;
    let expected = [
        SessionStarted,
        StateChanged,
        AwaitingConfirmation,
        StateChanged,
        ToolInvoked,
        ToolCompleted,
        SessionCompleted,
    ];
    assert_eq!(world.kinds(), expected);
    world.check();
}

// covers: T12, C13, I1, I2
#[test]
fn an_approval_is_good_for_one_run_of_exactly_what_was_confirmed() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.reply(request, "accept");
    let other = PAY.replace("500", "5000");
    assert_eq!(world.invoke(request, Some(&other)).unwrap_err().rule.id, "T12");
    assert_eq!(world.granted(request), 0);
    world.invoke(request, Some(PAY)).unwrap();
    assert_eq!(world.invoke(request, Some(PAY)).unwrap_err().rule.id, "T12");
    assert_eq!(world.granted(request), 1);
    world.check();
}

// covers: I7
#[test]
fn a_reply_in_the_very_microsecond_of_the_deadline_is_too_late() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let deadline = world.engine.next_deadline().unwrap();
    assert!(deadline.0 > world.now.boot.0);
    world.now.boot = world.now.boot.after_seconds(300);
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
}

// covers: C1, C14
#[test]
fn a_reversible_action_may_run_on_silence_if_that_was_announced() {
    let mut world = World::new();
    let session = world.open();
    let more = r#","timeout_seconds":60,"default_decision":"accept","risk_level":"low","irreversible":false"#;
    let Handled::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
        panic!()
    };
    world.pass(60);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, true)));
    world.invoke(request, None).unwrap();
    world.check();
}

// covers: C15, D10, D11, I9
#[test]
fn a_default_of_accept_for_what_may_be_irreversible_is_refused_before_anyone_hears_it() {
    for risk in
        ["", r#","risk_level":"low""#, r#","risk_level":"medium""#, r#","risk_level":"high""#]
    {
        for reversible in [
            "",
            r#","irreversible":true"#,
            r#","reversibility":"irreversible""#,
            r#","reversibility":"reversible_with_effort""#,
        ] {
            let mut world = World::new();
            let session = world.open();
            let before = world.events.len();
            let more =
                format!(r#","timeout_seconds":60,"default_decision":"accept"{risk}{reversible}"#);
            let refusal = world.try_ask(session, PAY, &more).unwrap_err();
            assert!(["C15", "D10", "D11"].contains(&refusal.rule.id), "{refusal}");
            assert_eq!(world.events.len(), before);
        }
    }
}

// covers: C4, I12
#[test]
fn asking_the_same_twice_returns_the_request_that_waits() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let more = r#","timeout_seconds":300,"default_decision":"reject","irreversible":true"#;
    let again = world.try_ask(session, PAY, more).unwrap();
    assert!(
        matches!(again, Handled::Waiting { request: same, again: true, .. } if same == request)
    );
    assert_eq!(
        world.kinds().iter().filter(|kind| **kind == EventKind::AwaitingConfirmation).count(),
        1
    );
}

// covers: D36, I12, I1
#[test]
fn the_same_action_is_the_same_however_it_is_written() {
    let mut world = World::new();
    let session = world.open();
    let asked = r#"{"to": "Ann", "euros": 1.0}"#;
    let request = world.ask(session, asked);
    let more = r#","timeout_seconds":300,"default_decision":"reject","irreversible":true"#;
    for same in [r#"{"to":"Ann","euros":1}"#, r#"{ "euros" : 10e-1, "to" : "\u0041nn" }"#] {
        let again = world.try_ask(session, same, more).unwrap();
        assert!(
            matches!(again, Handled::Waiting { request: same, again: true, .. } if same == request)
        );
    }
    for other in [r#"{"to":"Ann","euros":"1"}"#, r#"{"to":"Anna","euros":1}"#] {
        let anew = world.try_ask(session, other, more).unwrap();
        assert!(matches!(anew, Handled::Waiting { again: false, .. }), "{other}");
    }
    // A question is the same with another timeout, also after a restart.
    let of = |choice: &str| {
        format!(
            r#","accepted_response_kinds":["multiple_choice"],"choices":[{{"value":"2","label":"Two"}},{choice}]"#
        )
    };
    let question = world.question(session, &of(r#"{"value":"1","label":"One"}"#));
    world.restart(ClockTrust::Trusted);
    let again = world.question(session, &of(r#"{ "label":"One", "value":"1" }"#));
    assert_eq!(again, question);
    world.reply(request, "accept");
    let refused = world.invoke(request, Some(r#"{"to":"Ann","euros":2}"#)).unwrap_err();
    assert_eq!(refused.rule.id, "T12");
    // The agent's own bytes come back.
    world.invoke(request, Some(r#"{"euros":1,"to":"Ann"}"#)).unwrap();
    let granted = world
        .others
        .iter()
        .any(|other| matches!(other, Output::Granted { arguments, .. } if &**arguments == asked));
    assert!(granted);
}

// covers: D36
#[test]
fn an_action_that_has_no_canonical_form_is_refused_with_its_place() {
    let mut world = World::new();
    let session = world.open();
    let more = r#","timeout_seconds":300,"default_decision":"reject","irreversible":true"#;
    for arguments in [r#"{"x":0.30000000000000000004}"#, r#"{"x":12345678901234567890}"#] {
        let refused = world.try_ask(session, arguments, more).unwrap_err();
        assert_eq!((refused.rule.id, refused.blame), ("D36", Blame::Malformed));
        assert!(refused.text.contains("send it as a string"), "{}", refused.text);
        assert!(refused.text.contains("byte 5 of the arguments"), "{}", refused.text);
    }
}

// covers: S1, S2, S4, C8, C11, C12, D1, D3, D12, D29, I6, I15
#[test]
fn replies_that_do_not_count_change_nothing_and_look_the_same() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let token = world.token(request);
    let bob = Principal::new("bob's phone", Role::AccessibilityConsumer, "bob");
    let audit = Principal::new("audit", Role::Auditor, "ann");
    let agent = world.agent.clone();
    let (ann, phone) = (world.ann.clone(), world.phone);
    for (number, peer) in [(2, &bob), (3, &audit), (4, &agent)] {
        world.join(peer, SubscriptionId::from_bits(number));
        world.reply_as(peer, SubscriptionId::from_bits(number), &token, "accept");
    }
    world.reply_as(&bob, phone, &token, "accept");
    world.reply_as(&ann, SubscriptionId::from_bits(99), &token, "accept");
    world.reply_as(&ann, phone, "rpl_0000", "accept");
    let stamp = world.now.wall;
    let wrong_kind = format!(
        r#"{{"type":"clarification.reply","reply_token":"{token}","response":"accept","subscription_id":"{phone}","timestamp":"{stamp}"}}"#
    );
    world.message(&ann, &wrong_kind);
    let old = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{phone}","timestamp":"1999-01-01T00:00:00Z"}}"#
    );
    world.message(&ann, &old);
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    // The honest answer still counts.
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
}

// covers: I6, D5
#[test]
fn an_ignored_reply_is_answered_after_a_record_like_one_that_counts() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone, token) = (world.ann.clone(), world.phone, world.token(request));
    let answers = |world: &World| {
        world.others.iter().filter(|output| matches!(output, Output::Noted { .. })).count()
    };
    world.quick_disk = false;
    // A token that nobody gave out, the honest answer, and the same once more.
    for token in ["rpl_0000", &token, &token] {
        let (records, answered) = (world.records.len(), answers(&world));
        world.reply_as(&ann, phone, token, "accept");
        assert_eq!((world.records.len(), answers(&world)), (records + 1, answered), "{token}");
        let number = world.records.len() as u64;
        world.handle(Input::Persisted { number }).unwrap();
        assert_eq!(answers(&world), answered + 1, "{token}");
    }
}

// covers: C10, D8
#[test]
fn an_accept_with_a_modified_action_is_a_no() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone, token, stamp) =
        (world.ann.clone(), world.phone, world.token(request), world.now.wall);
    let modified = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{phone}","timestamp":"{stamp}","modified_action":{{"amount":"5"}}}}"#
    );
    world.message(&ann, &modified);
    assert_eq!(world.decided(request), Some((Outcome::Rejected, false)));
}

// covers: D9
#[test]
fn a_no_with_a_wrong_stamp_withdraws_the_question() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone, token) = (world.ann.clone(), world.phone, world.token(request));
    let old = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"reject","subscription_id":"{phone}","timestamp":"1999-01-01T00:00:00Z"}}"#
    );
    world.message(&ann, &old);
    assert_eq!(world.decided(request), Some((Outcome::Cancelled, false)));
}

// covers: C24, I13, T15, T18
#[test]
fn when_a_session_ends_everything_of_it_has_ended_before() {
    let mut world = World::new();
    let session = world.open();
    world
        .emit(session, EventKind::ToolInvoked, r#"{"tool":"look","summary_normal":"Looking."}"#)
        .unwrap();
    world
        .emit(
            session,
            EventKind::OutputStreaming,
            r#"{"chunk":"Half a","position":0,"complete":false}"#,
        )
        .unwrap();
    let request = world.ask(session, PAY);
    world
        .emit(
            session,
            EventKind::SessionCancelled,
            r#"{"cancelled_by":"user","summary_normal":"Stopped."}"#,
        )
        .unwrap();
    assert_eq!(world.decided(request), Some((Outcome::Cancelled, false)));
    world.reply(request, "accept");
    assert!(world.invoke(request, None).is_err());
    assert!(world.emit(session, EventKind::ProgressUpdated, r#"{"progress":{"step":1}}"#).is_err());
    world.check();
}

// covers: I8, E10
#[test]
fn a_wall_clock_that_jumps_never_creates_consent_and_stamps_never_go_back() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let year = 365 * 86_400_000;
    world.now.wall = aaep_types::Timestamp::from_millis(world::START - year).unwrap();
    world.handle(Input::Tick).unwrap();
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world
        .emit(
            session,
            EventKind::ProgressUpdated,
            r#"{"progress":{"step":1},"summary_normal":"On."}"#,
        )
        .unwrap();
    world.check();
    world.now.wall = aaep_types::Timestamp::from_millis(world::START + year).unwrap();
    world.handle(Input::Tick).unwrap();
    assert_eq!(world.engine.status(request), Some(Status::Pending));
}

// covers: I23
#[test]
fn a_drain_takes_nothing_new_and_loses_no_answer() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.handle(Input::Drain).unwrap();
    let more = r#","timeout_seconds":60,"default_decision":"reject","irreversible":true"#;
    let refused = world.try_ask(session, "{}", more).unwrap_err();
    assert_eq!(refused.blame, Blame::Unavailable);
    // The same question as before is still the one that waits.
    assert!(matches!(world.try_ask(session, PAY, more), Ok(Handled::Waiting { again: true, .. })));
    world.reply(request, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
    world.restart(ClockTrust::Trusted);
    world.invoke(request, None).unwrap();
    assert_eq!(world.granted(request), 1);
}

// covers: C6, I2, I25
#[test]
fn a_day_after_its_session_a_request_is_forgotten_and_what_takes_its_place_is_another() {
    let mut world = World::new();
    let mut tokens = Vec::new();
    for _ in 0..3 {
        let session = world.open();
        let request = world.ask(session, PAY);
        tokens.push(world.token(request));
        world.emit(session, EventKind::SessionCompleted, r#"{"summary_normal":"Done."}"#).unwrap();
        assert!(world.engine.status(request).is_some());
        world.pass(24 * 60 * 60);
        assert_eq!(world.engine.status(request), None);
        assert_eq!((world.engine.pending_requests(), world.engine.next_deadline()), (0, None));
    }
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone) = (world.ann.clone(), world.phone);
    for token in &tokens {
        world.reply_as(&ann, phone, token, "accept");
    }
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.pass(300);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
    world.check();
}
