//! Chapter 6 as scenarios in virtual time.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

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
    let Answer::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
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
    assert!(matches!(again, Answer::Waiting { request: same, again: true, .. } if same == request));
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
            matches!(again, Answer::Waiting { request: same, again: true, .. } if same == request)
        );
    }
    for other in [r#"{"to":"Ann","euros":"1"}"#, r#"{"to":"Anna","euros":1}"#] {
        let anew = world.try_ask(session, other, more).unwrap();
        assert!(matches!(anew, Answer::Waiting { again: false, .. }), "{other}");
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

// covers: I10
#[test]
fn nobody_hears_of_a_request_or_its_outcome_before_it_is_durable() {
    let mut world = World::new();
    let session = world.open();
    world.quick_disk = false;
    let before = world.events.len();
    let request = world.ask(session, PAY);
    assert_eq!(world.events.len(), before);
    let asked = world.records.len() as u64;
    world.handle(Input::Persisted { number: asked }).unwrap();
    let heard = world.events.len();
    world.reply(request, "accept");
    assert_eq!((world.decided(request), world.events.len()), (None, heard));
    world.handle(Input::Persisted { number: asked + 1 }).unwrap();
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
    world.invoke(request, None).unwrap();
    assert_eq!(world.granted(request), 0);
    world.handle(Input::Persisted { number: asked + 2 }).unwrap();
    assert_eq!(world.granted(request), 1);
}

// covers: I3, I25, C6
#[test]
fn after_a_restart_every_request_is_pending_with_its_token_and_deadline_or_resolved() {
    let mut world = World::new();
    let session = world.open();
    let (first, second) = (world.ask(session, PAY), world.ask(session, r#"{"amount":"1"}"#));
    world.reply(first, "accept");
    let token = world.token(second);
    world.pass(100);
    world.restart(ClockTrust::Trusted);
    assert_eq!(
        world.engine.status(first),
        Some(Status::Resolved { outcome: Outcome::Accepted, runs: true })
    );
    assert_eq!(world.engine.status(second), Some(Status::Pending));
    world.reply(first, "reject");
    world.invoke(first, Some(PAY)).unwrap();
    world.pass(199);
    assert_eq!(world.engine.status(second), Some(Status::Pending));
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.reply_as(&ann, phone, &token, "accept");
    assert_eq!(world.decided(second), Some((Outcome::Accepted, true)));
}

// covers: I2, C13
#[test]
fn a_spent_approval_stays_spent_after_a_restart() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.reply(request, "accept");
    world.invoke(request, Some(PAY)).unwrap();
    world.restart(ClockTrust::Trusted);
    world.reply(request, "accept");
    assert!(world.invoke(request, Some(PAY)).is_err());
    assert_eq!(world.granted(request), 1);
}

// covers: I8
#[test]
fn if_the_clock_cannot_be_trusted_after_a_restart_what_waited_is_withdrawn() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.restart(ClockTrust::Doubtful);
    assert_eq!(world.decided(request), Some((Outcome::Cancelled, false)));
}

// covers: C6
#[test]
fn a_session_that_ended_long_ago_can_be_left_out_and_the_rest_is_as_it_was() {
    let mut world = World::new();
    let (old, open) = (world.open(), world.open());
    let (spent, waiting) = (world.ask(old, PAY), world.ask(open, PAY));
    world.reply(spent, "accept");
    world.invoke(spent, None).unwrap();
    let token = world.token(spent);
    world.emit(old, EventKind::SessionCompleted, r#"{"summary_normal":"Done."}"#).unwrap();
    let mut recovery = Recovery::new(world::secrets(), Limits::default(), world.now);
    recovery.forget([old.to_string()]);
    let mut seen = 0;
    for record in &world.records {
        recovery.replay(record, |_| seen += 1).unwrap();
    }
    assert_eq!(seen, world.records.len());
    world.engine = recovery.finish(ClockTrust::Trusted);
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.join(&ann, phone);
    assert_eq!((world.engine.open_sessions(), world.engine.pending_requests()), (1, 1));
    assert_eq!(world.engine.status(spent), None);
    world.reply_as(&ann, phone, &token, "accept");
    assert!(world.invoke(spent, None).is_err());
    world.reply(waiting, "accept");
    world.invoke(waiting, None).unwrap();
}

// covers: I1, I2
#[test]
fn from_an_old_copy_what_waits_is_rejected_and_no_approval_is_used_again() {
    let mut world = World::new();
    let session = world.open();
    let (waiting, accepted) = (world.ask(session, r#"{"amount":"1"}"#), world.ask(session, PAY));
    world.reply(accepted, "accept");
    let token = world.token(waiting);
    let copy = world.records.clone();
    world.reply(waiting, "accept");
    world.invoke(waiting, None).unwrap();
    world.invoke(accepted, Some(PAY)).unwrap();
    assert_eq!((world.granted(waiting), world.granted(accepted)), (1, 1));

    world.records = copy;
    world.events.clear();
    world.others.clear();
    world.restart(ClockTrust::OldCopy);
    assert_eq!(world.decided(waiting), Some((Outcome::Rejected, false)));
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.reply_as(&ann, phone, &token, "accept");
    assert!(world.invoke(waiting, None).is_err());
    assert!(world.invoke(accepted, Some(PAY)).is_err());
    assert_eq!((world.granted(waiting), world.granted(accepted)), (0, 0));
    assert_eq!(world.kinds().last(), Some(&EventKind::SessionErrored));
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

// covers: D2, H20, I14
#[test]
fn when_the_last_one_who_could_answer_leaves_a_default_of_reject_applies() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let phone = world.phone;
    world.handle(Input::Lost { subscription: phone }).unwrap();
    world.pass(29);
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    let ann = world.ann.clone();
    world.join(&ann, phone);
    world.pass(10);
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.handle(Input::Left { subscription: phone }).unwrap();
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
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

// covers: I7, I27
#[test]
fn soon_after_the_machine_booted_a_short_wait_still_ends() {
    let mut world = World::new();
    let session = world.open();
    let more = r#","timeout_seconds":60,"default_decision":"reject","irreversible":true"#;
    let Answer::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
        panic!()
    };
    world.pass(10);
    // The boot clock begins anew, with a value that no round number divides.
    world.now.boot = Boot(1_000_337);
    world.restart(ClockTrust::Trusted);
    world.pass(50);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
}

// covers: I19, E15
#[test]
fn no_number_is_used_twice_however_often_the_engine_restarts() {
    let mut world = World::new();
    let session = world.open();
    let progress = r#"{"progress":{"step":1},"summary_normal":"On."}"#;
    for _ in 0..3 {
        world.restart(ClockTrust::Trusted);
        world.emit(session, EventKind::ProgressUpdated, progress).unwrap();
    }
    let numbers: Vec<u64> = world.heard().iter().map(|event| event.number).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
}

// covers: D2, I14
#[test]
fn the_grace_begins_anew_each_time_somebody_comes_back() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.handle(Input::Lost { subscription: phone }).unwrap();
    world.pass(10);
    world.join(&ann, phone);
    world.pass(15);
    world.handle(Input::Lost { subscription: phone }).unwrap();
    world.pass(29);
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.pass(1);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
}

// covers: D2, I14
#[test]
fn while_one_may_still_come_back_another_may_leave() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone, laptop) = (world.ann.clone(), world.phone, SubscriptionId::from_bits(2));
    world.join(&ann, laptop);
    world.handle(Input::Lost { subscription: phone }).unwrap();
    let other = world.open();
    let asked_later = world.ask(other, PAY);
    world.pass(5);
    world.handle(Input::Left { subscription: laptop }).unwrap();
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.pass(25);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
    assert_eq!(world.decided(asked_later), Some((Outcome::TimedOut, false)));
}

// covers: D2, I14
#[test]
fn somebody_who_could_not_answer_takes_nothing_along() {
    let mut world = World::new();
    let session = world.open();
    let (phone, audit) = (world.phone, SubscriptionId::from_bits(2));
    world.join(&Principal::new("audit", Role::Auditor, "ann"), audit);
    world.handle(Input::Left { subscription: phone }).unwrap();
    let request = world.ask(session, PAY);
    world.handle(Input::Left { subscription: audit }).unwrap();
    world.pass(299);
    assert_eq!(world.engine.status(request), Some(Status::Pending));
}

// covers: D2, I14, I16
#[test]
fn giving_up_reply_support_is_like_leaving() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone) = (world.ann.clone(), world.phone);
    let listens_only =
        Input::Joined { peer: &ann, subscription: phone, confirms: false, clarifies: true };
    world.handle(listens_only).unwrap();
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
}

// covers: D2, I14
#[test]
fn after_a_restart_everybody_has_the_grace_to_come_back() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.restart(ClockTrust::Trusted);
    let phone = world.phone;
    world.handle(Input::Left { subscription: phone }).unwrap();
    world.pass(29);
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.pass(1);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
}

// covers: E10, I19
#[test]
fn stamps_go_on_after_a_restart_even_if_the_clock_is_set_back_later() {
    let mut world = World::new();
    let session = world.open();
    let progress = r#"{"progress":{"step":1},"summary_normal":"On."}"#;
    world.pass(60);
    world.emit(session, EventKind::ProgressUpdated, progress).unwrap();
    world.restart(ClockTrust::Trusted);
    world.now.wall = aaep_types::Timestamp::from_millis(world::START).unwrap();
    world.emit(session, EventKind::ProgressUpdated, progress).unwrap();
    let stamps: Vec<&str> = world
        .heard()
        .iter()
        .filter_map(|event| event.json.split("\"timestamp\":").nth(1))
        .collect();
    assert!(stamps.is_sorted_by_key(|stamp| &stamp[..26]), "{stamps:#?}");
}

/// Restarts from the first records, as if nothing after them had become durable, and as if none of
/// the events of the last ones had left.
fn crash_after_records(world: &mut World, kept: usize) -> Vec<String> {
    world.records.truncate(kept);
    let heard = world.events.len();
    world.restart(ClockTrust::Trusted);
    world.events[heard..].iter().map(|event| event.json.to_string()).collect()
}

// covers: I18, I2
#[test]
fn an_outcome_that_a_crash_swallowed_is_said_again_as_it_would_have_been() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let before = world.events.len();
    world.reply(request, "accept");
    let outcome = world.events[before].json.to_string();
    let records = world.records.len();
    let again = crash_after_records(&mut world, records);
    assert!(again.contains(&outcome), "{again:#?}");
    assert_eq!(world.engine.status(request).map(|s| s != Status::Pending), Some(true));
}

// covers: I18
#[test]
fn what_was_surely_heard_is_not_said_again() {
    let mut world = World::new();
    let session = world.open();
    let first = world.ask(session, PAY);
    world.reply(first, "reject");
    let outcome = world.events.last().unwrap().json.to_string();
    world.ask(session, "{}");
    let records = world.records.len();
    let again = crash_after_records(&mut world, records);
    assert!(!again.contains(&outcome), "{again:#?}");
    assert!(again.last().unwrap().contains("\"reply_token\":\"rpl_"), "{again:#?}");
}

// covers: I5, I11
#[test]
fn the_end_of_a_session_that_a_crash_swallowed_is_said_again() {
    let mut world = World::new();
    let session = world.open();
    let look = r#"{"tool":"look","summary_normal":"Looking."}"#;
    world.emit(session, EventKind::ToolInvoked, look).unwrap();
    let before = world.events.len();
    let done = r#"{"summary_normal":"Done."}"#;
    world.emit(session, EventKind::SessionCompleted, done).unwrap();
    let last: Vec<String> =
        world.events[before..].iter().map(|event| event.json.to_string()).collect();
    assert!(last[0].contains("\"status\":\"timeout\""), "{last:#?}");
    let records = world.records.len();
    let again = crash_after_records(&mut world, records);
    assert!(again.ends_with(&last), "{again:#?}");
    assert_eq!(world.engine.open_sessions(), 0);
}

// covers: T15, I11
#[test]
fn a_call_that_was_open_at_a_crash_can_still_be_completed() {
    let mut world = World::new();
    let session = world.open();
    let look = r#"{"tool":"look","summary_normal":"Looking."}"#;
    world.emit(session, EventKind::ToolInvoked, look).unwrap();
    world.restart(ClockTrust::Trusted);
    let seen = r#"{"tool":"look","status":"success","summary_normal":"Seen."}"#;
    world.emit(session, EventKind::ToolCompleted, seen).unwrap();
}

// covers: D6, I25
#[test]
fn no_record_holds_a_reply_token() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let token = world.last_token();
    world.more_time(&token, 600);
    let other = world.last_token();
    assert_ne!(token, other);
    let latest = other.clone();
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.reply_as(&ann, phone, &latest, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
    let journal = world.records.concat();
    for token in [token, other] {
        let bits = &token.as_bytes()["rpl_".len()..];
        assert!(!journal.windows(bits.len()).any(|window| window == bits));
    }
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
    assert!(matches!(world.try_ask(session, PAY, more), Ok(Answer::Waiting { again: true, .. })));
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
    let Answer::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
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

// covers: D41, I3, I8
#[test]
fn an_approval_keeps_its_deadline_over_a_restart_and_under_a_doubtful_clock_it_is_spent() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    world.reply(request, "accept");
    world.pass(400);
    world.restart(ClockTrust::Trusted);
    world.pass(199);
    assert!(matches!(world.engine.status(request), Some(Status::Resolved { runs: true, .. })));
    world.pass(1);
    assert_eq!(world.engine.status(request), Some(Status::Expired));
    world.restart(ClockTrust::Trusted);
    assert_eq!(world.engine.status(request), Some(Status::Expired));
    assert!(world.invoke(request, None).is_err());

    let request = world.ask(session, PAY);
    world.reply(request, "accept");
    world.restart(ClockTrust::Doubtful);
    assert_eq!(world.engine.status(request), Some(Status::Expired));
    assert!(world.invoke(request, None).is_err());
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
    let request = world.ask(session, PAY);
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

/// What the last event of this kind says.
fn last(world: &World, kind: EventKind) -> serde_json::Value {
    let event = world.events.iter().rev().find(|event| event.kind == Some(kind)).unwrap();
    serde_json::from_str(&event.json).unwrap()
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
            let Answer::Waiting { request, .. } = asked else { panic!() };
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
        assert_eq!(view.decided_by.as_deref(), Some(&*ann.name), "whoever the reply says");
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
            kind: EventKind::AwaitingConfirmation,
            tool: "long",
            arguments: "{}",
            payload: &payload,
            canonical: None,
            readable: None,
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
