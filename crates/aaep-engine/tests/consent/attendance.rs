//! Who could answer comes and goes.

use aaep_engine::*;
use aaep_types::SubscriptionId;

use crate::PAY;
use crate::world::World;

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
