//! The handshake as the listener sees it.

use super::*;

fn inbox() -> (Inbox, Connection) {
    let mut inbox = Inbox::new(Settings::default(), Bounds::default(), START);
    let hub = inbox.add("hub", 0);
    (inbox, hub)
}

fn rejected(inbox: &mut Inbox, hub: Connection, code: &str, why: &str) {
    let text = format!(
        r#"{{"type":"subscription.rejected","reason_code":"{code}","reason_message":"{why}","retry_after_seconds":7}}"#
    );
    inbox.handle(InboxInput::Message { connection: hub, bytes: text.as_bytes() }, 0);
}

// covers: X8
#[test]
fn after_a_prefix_collision_it_is_asked_again_without_it() {
    let (mut inbox, hub) = inbox();
    assert!(inbox.begin(hub, 0).contains("urn:aaep-rs:timing:v1"));
    rejected(&mut inbox, hub, "capabilities_incompatible", "Two extensions use the prefix timing.");
    assert!(matches!(inbox.standing(hub), SubscriptionState::Refused { again_now: true, .. }));
    let again = inbox.begin(hub, 0);
    assert!(!again.contains("timing") && again.contains("outcome"), "{again}");
    // A refusal that names nothing of ours: without all of them.
    rejected(&mut inbox, hub, "capabilities_incompatible", "No.");
    assert!(matches!(inbox.standing(hub), SubscriptionState::Refused { again_now: true, .. }));
    assert!(!inbox.begin(hub, 0).contains("urn:"));
    rejected(&mut inbox, hub, "capabilities_incompatible", "No.");
    let standing = inbox.standing(hub);
    assert!(
        matches!(
            standing,
            SubscriptionState::Refused { again_now: false, retry_after_ms: 7000, .. }
        ),
        "{standing:?}"
    );
}

// covers: H24
#[test]
fn other_refusals_are_not_answered_with_another_request() {
    let (mut inbox, hub) = inbox();
    inbox.begin(hub, 0);
    rejected(&mut inbox, hub, "authentication_required", "Who are you?");
    let standing = inbox.standing(hub);
    assert!(
        matches!(standing, SubscriptionState::Refused { again_now: false, why, .. } if why == "Who are you?")
    );
}

// covers: H24
#[test]
fn the_honoured_terms_are_what_counts() {
    let mut world = World::with(r#"{"supports_confirmation_reply":true}"#, Bounds::default());
    world.asks(0);
    let question =
        r#","urgency":"critical","question":"Which?","reply_token":"rpl_q","timeout_seconds":60"#;
    world.event("awaiting.clarification", 1, question);
    let now = world.now;
    assert_eq!(world.inbox.answer(1.into(), Answer::Accept, now), Ok(()));
    let text = Answer::Text("x".into());
    assert_eq!(world.inbox.answer(2.into(), text, now), Err(InboxError::MayNotReply));
}

// covers: H24, H25
#[test]
fn terms_are_renegotiated_and_what_is_in_flight_is_heard() {
    let mut world = World::new();
    let settings = Settings {
        exclude: vec!["aaep:agent.progress.updated".into()],
        rate: Some(9),
        ..Settings::default()
    };
    world.inbox.renegotiate(settings, world.now).unwrap();
    let sent = world.sends();
    assert_eq!(sent[0].purpose, Purpose::Renegotiate);
    assert!(matches!(Message::parse(sent[0].json.as_bytes()), Ok(Message::Renegotiate(_))));
    // Sent before the hub has answered, and under terms of which nobody knows.
    world.event("progress.updated", 3, r#","progress":{"percent":1}"#);
    world.event("progress.updated", 9, r#","progress":{"percent":2}"#);
    assert_eq!(world.told(), ["progress.updated", "progress.updated"]);
    world.accepts(PLAIN, "sub_1");
    let rest = r#","urgency":"critical","progress":{"percent":3}"#;
    world.event("progress.updated", 30, rest);
    assert_eq!(world.told(), ["!progress.updated"], "critical despite the filter");
    assert_eq!(world.inbox.settings().rate, Some(9));
}

// covers: H24
#[test]
fn new_terms_reach_a_hub_that_was_away() {
    let mut world = World::new();
    world.lost();
    let settings = Settings { rate: Some(9), ..Settings::default() };
    world.inbox.renegotiate(settings, world.now).unwrap();
    assert!(world.sends().is_empty());
    world.inbox.handle(InboxInput::Attached { connection: world.hub }, world.now);
    assert_eq!(world.sends()[0].purpose, Purpose::Renegotiate);
    world.accepts(PLAIN, "sub_1");
    world.lost();
    world.inbox.handle(InboxInput::Attached { connection: world.hub }, world.now);
    assert!(world.sends().is_empty(), "once is enough");
}

// covers: H26
#[test]
fn goodbye_is_said() {
    let mut world = World::new();
    world.inbox.close(world.now);
    let sent = world.sends();
    assert_eq!(sent[0].purpose, Purpose::Close);
    let Ok(Message::Close(close)) = Message::parse(sent[0].json.as_bytes()) else { panic!() };
    assert_eq!(close.subscription_id.as_str(), "sub_1");
}

// covers: H19, H24
#[test]
fn a_hub_may_end_it_and_a_lost_connection_is_told_once() {
    let mut world = World::new();
    world.comes(r#"{"type":"subscription.close","subscription_id":"sub_1","anything":1}"#);
    assert_eq!(world.inbox.standing(world.hub), SubscriptionState::Ended);
    world.lost();
    world.lost();
    assert_eq!(world.told(), ["lost"]);
    world.begins(EVERYTHING, "sub_2");
    assert_eq!(world.told(), ["connected true true"]);
}

// covers: V2
#[test]
fn an_odd_acceptance_is_taken_for_what_it_says() {
    let (mut inbox, hub) = inbox();
    inbox.begin(hub, 0);
    let odd = br#"{"type":"subscription.accepted","subscription_id":"sub_9","later_field":{},"honored_capabilities":{"supports_confirmation_reply":true,"max_events_per_second":"many","supported_extensions":[7]}}"#;
    inbox.handle(InboxInput::Message { connection: hub, bytes: odd }, 0);
    assert!(
        matches!(inbox.standing(hub), SubscriptionState::Subscribed(id) if id.as_str() == "sub_9")
    );
}

// covers: D4
#[test]
fn without_a_handshake_answers_may_be_sent() {
    let (mut inbox, hub) = inbox();
    inbox.handle(InboxInput::AttachedBare { connection: hub }, 0);
    let asks = event("evt_1", 1, "awaiting.confirmation", 0, START, &confirmation("rpl_1"));
    inbox.handle(InboxInput::Message { connection: hub, bytes: asks.as_bytes() }, 0);
    inbox.answer(1.into(), Answer::Reject, 0).unwrap();
    assert!(inbox.poll_send().is_some());
}
