//! Questions, more time, and stopping the agent.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod world;

use aaep_engine::*;
use aaep_types::{EventKind, SubscriptionId};
use world::World;

const PAY: &str = r#"{"amount":"500.00"}"#;

// covers: C5, C20, C19
#[test]
fn an_answer_of_the_wrong_kind_counts_as_none_and_the_wait_goes_on() {
    let mut world = World::new();
    let session = world.open();
    let request = world.question(session, r#","accepted_response_kinds":["numeric"]"#);
    world.answer(request, "\"many\"");
    world.answer(request, "true");
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.answer(request, "7");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, false)));
    assert_eq!(world.response(request).as_deref(), Some("7"));
    world.check();
}

// covers: D17, C30
#[test]
fn a_question_without_an_answer_gets_its_default_or_none_never_a_guess() {
    let mut world = World::new();
    let session = world.open();
    let with = world
        .question(session, r#","accepted_response_kinds":["yes_no"],"default_response":"true""#);
    let without = world.question(session, r#","accepted_response_kinds":["numeric"]"#);
    world.pass(120);
    assert_eq!(world.decided(with), Some((Outcome::TimedOut, false)));
    assert_eq!(world.response(with).as_deref(), Some("true"));
    assert_eq!(world.decided(without), Some((Outcome::TimedOut, false)));
    assert_eq!(world.response(without), None);
    world.check();
}

// covers: D32, C17, I25
#[test]
fn more_time_gives_a_new_token_and_a_later_deadline_as_often_as_wanted() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let first = world.token(request);
    for _ in 0..12 {
        world.pass(250);
        let token = world.last_token();
        world.more_time(&token, 300);
        assert_ne!(world.last_token(), token);
    }
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.reply_as(&ann, phone, &first, "accept");
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    let last = world.last_token();
    world.reply_as(&ann, phone, &last, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
    world.invoke(request, Some(PAY)).unwrap();
    world.check();
}

// covers: D32
#[test]
fn more_time_never_shortens_a_wait_and_only_the_entitled_get_it() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let token = world.token(request);
    world.more_time(&token, 10);
    let bob = Principal::new("bob's phone", Role::AccessibilityConsumer, "bob");
    world.join(&bob, SubscriptionId::from_bits(2));
    let stamp = world.now.wall;
    let sub = SubscriptionId::from_bits(2);
    let stolen = format!(
        r#"{{"type":"timing:extend","reply_token":"{token}","subscription_id":"{sub}","timestamp":"{stamp}","seconds":9000}}"#
    );
    world.message(&bob, &stolen);
    world.pass(300);
    assert_eq!(world.decided(request), Some((Outcome::TimedOut, false)));
}

// covers: D32, I3
#[test]
fn more_time_survives_a_restart() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let token = world.token(request);
    world.more_time(&token, 1000);
    let longer = world.last_token();
    world.pass(400);
    world.restart(ClockTrust::Trusted);
    world.pass(500);
    let (ann, phone) = (world.ann.clone(), world.phone);
    world.reply_as(&ann, phone, &token, "accept");
    assert_eq!(world.engine.status(request), Some(Status::Pending));
    world.reply_as(&ann, phone, &longer, "accept");
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
}

// covers: X7, C24, I13
#[test]
fn the_user_stops_the_agent_and_what_waits_dies() {
    let mut world = World::new();
    let session = world.open();
    let request = world.ask(session, PAY);
    let (ann, phone, stamp) = (world.ann.clone(), world.phone, world.now.wall);
    let stop = format!(
        r#"{{"type":"control:cancel","session_id":"{session}","subscription_id":"{phone}","timestamp":"{stamp}"}}"#
    );
    let bob = Principal::new("bob's phone", Role::AccessibilityConsumer, "bob");
    world.message(&bob, &stop);
    assert_eq!(world.engine.open_sessions(), 1);
    world.message(&ann, &stop);
    assert_eq!(world.engine.open_sessions(), 0);
    assert_eq!(world.decided(request), Some((Outcome::Cancelled, false)));
    assert_eq!(world.kinds().last(), Some(&EventKind::SessionCancelled));
    assert!(world.others.contains(&Output::Stopped { session, by_user: true }));
    world.check();
}
