//! Floods of replies: what they leave behind is bounded by who stands behind them, and an answer that
//! counts is never lost in one (D40).
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod world;

use aaep_engine::*;
use aaep_types::SubscriptionId;
use world::{World, secrets};

/// Replies that each flooder sends within a second; one connection has 50 (`replies_per_second`).
const EACH: usize = 60;

fn listener(name: String) -> Principal {
    Principal::new(&name, Role::AccessibilityConsumer, "ann")
}

/// A world with these bounds, and these listeners in it, each on a subscription of its own.
fn with(limits: Limits, listeners: &[Principal]) -> World {
    let mut world = World::new();
    world.engine = Engine::new(secrets(), limits);
    for (number, peer) in listeners.iter().enumerate() {
        world.join(peer, subscription(number));
    }
    world
}

fn subscription(number: usize) -> SubscriptionId {
    SubscriptionId::from_bits(100 + number as u128)
}

/// Sends a reply; what it leads to may be told later.
fn send(world: &mut World, peer: &Principal, on: SubscriptionId, token: &str, decision: &str) {
    let stamp = world.now.wall;
    let reply = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{on}","timestamp":"{stamp}"}}"#
    );
    let message = SubscriberMessage::parse(reply.as_bytes()).unwrap();
    world.handle(Input::Message { peer, message: &message, call: 7 }).unwrap();
}

/// Everybody sends junk; how many records that left.
fn flood(world: &mut World, flooders: &[Principal], on: impl Fn(usize) -> SubscriptionId) -> usize {
    let before = world.records.len();
    let unknown = format!("rpl_{}", "1".repeat(32));
    for _ in 0..EACH {
        for (number, peer) in flooders.iter().enumerate() {
            send(world, peer, on(number), &unknown, "accept");
        }
    }
    world.records.len() - before
}

// covers: D40, I22, I29
#[test]
fn replies_of_one_account_are_counted_together_under_however_many_names() {
    let guests: Vec<_> = (0..20).map(|number| listener(format!("guest:{number}"))).collect();
    let mut world = with(Limits::default(), &guests);
    let session = world.open();
    let request = world.ask(session, "{}");
    // Four connections of one account may reply at the full rate, and no more.
    let left = flood(&mut world, &guests, subscription);
    assert_eq!(left, 4 * Limits::default().replies_per_second as usize);
    // Each of them may still answer.
    let token = world.token(request);
    send(&mut world, &guests[11], subscription(11), &token, "reject");
    assert_eq!(world.decided(request), Some((Outcome::Rejected, false)));
}

// covers: D40, I22, I29
#[test]
fn a_connection_that_floods_uses_up_its_own_rate_and_not_that_of_its_principal() {
    let reader = listener("reader".into());
    let mut world = with(Limits::default(), &[reader.clone(), reader.clone()]);
    let session = world.open();
    let request = world.ask(session, "{}");
    let left = flood(&mut world, std::slice::from_ref(&reader), |_| subscription(0));
    assert_eq!(left, Limits::default().replies_per_second as usize);
    // The principal's other connection is within the rate: its answer is told at once.
    let (before, token) = (world.others.len(), world.token(request));
    send(&mut world, &reader, subscription(1), &token, "reject");
    assert!(world.others[before..].contains(&Output::Noted { call: 7 }));
    assert_eq!(world.decided(request), Some((Outcome::Rejected, false)));
}

// covers: D40, I22, I29
#[test]
fn beyond_the_principals_that_are_counted_apart_the_rest_share_and_may_still_answer() {
    let limits = Limits { counted_principals: 2, ..Limits::default() };
    let many: Vec<_> = (0..10).map(|number| listener(format!("reader {number}"))).collect();
    let mut world = with(limits, &many);
    let session = world.open();
    let request = world.ask(session, "{}");
    // On nobody's subscription, so each principal has one connection: two apart, the rest as one.
    let left = flood(&mut world, &many, |_| SubscriptionId::from_bits(9));
    assert_eq!(left, 3 * limits.replies_per_second as usize);
    let token = world.token(request);
    send(&mut world, &many[9], subscription(9), &token, "reject");
    assert_eq!(world.decided(request), Some((Outcome::Rejected, false)));
}
