//! A yes counts only from somebody who is present enough, and never from the asking agent itself.

use aaep_engine::*;
use aaep_types::{DescribedBy, EventKind, Presence};

use crate::PAY;
use crate::world::World;

/// Asks for something whose yes needs this.
fn ask(world: &mut World, needs: Presence, default: &str) -> RequestId {
    let session = world.open();
    let payload = format!(
        r#"{{"action":"Pay","consequence":"It leaves.","summary_normal":"Pay?","timeout_seconds":60,"default_decision":"{default}","risk_level":"low","irreversible":false}}"#
    );
    let kind = EventKind::AwaitingConfirmation;
    let question = AgentQuestion::read(kind, "pay", PAY, &payload).needing(needs);
    let agent = world.agent.clone();
    let described_by = DescribedBy::Agent;
    let ask = Ask { agent: &agent, session, question: &question, described_by };
    match world.handle(Input::Ask(ask)).unwrap() {
        Handled::Waiting { request, .. } => request,
        other => panic!("{other:?}"),
    }
}

fn reply(world: &mut World, request: RequestId, decision: &str, evidence: Evidence) {
    let (ann, phone, token, stamp) =
        (world.ann.clone(), world.phone, world.token(request), world.now.wall);
    let text = format!(
        r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{phone}","timestamp":"{stamp}"}}"#
    );
    let message = SubscriberMessage::parse(text.as_bytes()).unwrap().with_evidence(evidence);
    world.handle(Input::Message { peer: &ann, message: &message, call: 1 }).unwrap();
}

// covers: I34, I6
#[test]
fn a_yes_that_is_not_present_enough_is_ignored_and_the_request_stays_open() {
    for needs in [Presence::Listener, Presence::Pin, Presence::Passkey] {
        let mut world = World::new();
        let request = ask(&mut world, needs, "reject");
        for shown in Presence::ALL.iter().copied().filter(|shown| *shown < needs) {
            reply(&mut world, request, "accept", Evidence::of(shown));
            assert_eq!(world.decided(request), None, "{shown} for {needs}");
        }
        // After a restart it needs the same.
        world.restart(ClockTrust::Trusted);
        reply(&mut world, request, "accept", Evidence::none());
        assert_eq!(world.decided(request), None);
        reply(&mut world, request, "accept", Evidence::of(needs));
        assert_eq!(world.decided(request), Some((Outcome::Accepted, true)), "{needs}");
    }
}

// covers: I34
#[test]
fn a_no_needs_nobody_to_prove_anything_and_silence_proves_nothing() {
    let mut world = World::new();
    let request = ask(&mut world, Presence::Passkey, "reject");
    reply(&mut world, request, "reject", Evidence::none());
    assert_eq!(world.decided(request), Some((Outcome::Rejected, false)));
    let silent = ask(&mut world, Presence::Listener, "accept");
    world.pass(61);
    assert_eq!(world.decided(silent), Some((Outcome::TimedOut, false)));
    let usual = ask(&mut world, Presence::None, "accept");
    world.pass(61);
    assert_eq!(world.decided(usual), Some((Outcome::TimedOut, true)));
}

// covers: I30, I6
#[test]
fn nothing_that_the_agents_own_processes_say_counts() {
    let mut world = World::new();
    let request = ask(&mut world, Presence::None, "reject");
    for decision in ["accept", "reject"] {
        let own = Evidence { own_tree: true, ..Evidence::of(Presence::Passkey) };
        reply(&mut world, request, decision, own);
        assert_eq!(world.decided(request), None, "{decision}");
    }
    reply(&mut world, request, "accept", Evidence::none());
    assert_eq!(world.decided(request), Some((Outcome::Accepted, true)));
}
