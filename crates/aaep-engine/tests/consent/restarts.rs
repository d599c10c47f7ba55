//! What is durable, and what is left of it after a restart.

use aaep_engine::*;
use aaep_types::EventKind;

use crate::PAY;
use crate::world::{self, World};

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

// covers: I7, I27
#[test]
fn soon_after_the_machine_booted_a_short_wait_still_ends() {
    let mut world = World::new();
    let session = world.open();
    let more = r#","timeout_seconds":60,"default_decision":"reject","irreversible":true"#;
    let Handled::Waiting { request, .. } = world.try_ask(session, PAY, more).unwrap() else {
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
