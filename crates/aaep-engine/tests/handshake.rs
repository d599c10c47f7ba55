//! The handshake from end to end: subscribe, attach, renegotiate, close, come back.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_engine::*;
use aaep_types::{DescribedBy, EventKind, LanguageTag, Message, SubscriptionId, Timestamp};

struct Room {
    producer: Producer,
    now: Now,
    agent: Principal,
    ann: Principal,
    heard: Vec<(SubscriptionId, String)>,
    decided: Vec<(RequestId, Outcome)>,
}

fn secrets() -> Secrets {
    Secrets { seed: [1; 32], token_key: [2; 32] }
}

impl Room {
    fn new() -> Self {
        let now = Now { boot: Boot(5), wall: Timestamp::from_millis(1_779_632_531_342).unwrap() };
        let offer = Offer {
            producer: r#"{"agent_id":"hub"}"#.into(),
            languages: vec![LanguageTag::parse("en").unwrap()],
            extensions: Vec::new(),
            manifest_uri: None,
            signed_manifest: None,
        };
        let engine = Engine::new(secrets(), Limits::default());
        Self {
            producer: Producer::new(engine, secrets(), Limits::default(), offer, now),
            now,
            agent: Principal::new("agent", Role::Agent, "ann"),
            ann: Principal::new("reader", Role::AccessibilityConsumer, "ann"),
            heard: vec![],
            decided: vec![],
        }
    }

    fn drain(&mut self) {
        while let Some(output) = self.producer.poll_output(self.now) {
            match output {
                ProducerOutput::Engine(Output::Append { number, .. }) => {
                    self.producer.handle(Input::Persisted { number }, self.now).unwrap();
                }
                ProducerOutput::Engine(Output::Decided { request, outcome, .. }) => {
                    self.decided.push((request, outcome))
                }
                ProducerOutput::Deliver(Deliver::Send { subscription, bytes, .. }) => {
                    self.heard.push((subscription, bytes.to_string()))
                }
                _ => {}
            }
        }
    }

    fn say(&mut self, message: &str) -> Option<String> {
        let ann = self.ann.clone();
        let answer = self.producer.handshake(&ann, message.as_bytes(), self.now).unwrap();
        self.drain();
        answer
    }

    fn subscribe(&mut self, capabilities: &str) -> SubscriptionId {
        let request = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"reader","capabilities":{capabilities}}}"#
        );
        let answer = self.say(&request).unwrap();
        let Ok(Message::Accepted(accepted)) = Message::parse(answer.as_bytes()) else {
            panic!("{answer}")
        };
        accepted.subscription_id
    }

    fn attach(&mut self, id: SubscriptionId) -> Option<Resumed> {
        let ann = self.ann.clone();
        let resumed = self.producer.attach(id, &ann, None, self.now);
        self.drain();
        resumed
    }

    fn pass(&mut self, seconds: u64) {
        self.now.boot = self.now.boot.after_seconds(seconds);
        let millis = self.now.wall.as_millis() + seconds as i64 * 1000;
        self.now.wall = Timestamp::from_millis(millis).unwrap();
        self.producer.handle(Input::Tick, self.now).unwrap();
        self.drain();
    }

    fn ask(&mut self) -> RequestId {
        let agent = self.agent.clone();
        let open = Open {
            agent: &agent,
            producer: r#"{"agent_id":"agent"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").unwrap(),
            lease_seconds: 100_000,
            payload: "",
        };
        let Ok(Handled::Session(session)) = self.producer.handle(Input::Open(open), self.now)
        else {
            panic!()
        };
        let payload = r#"{"action":"Send it.","consequence":"It is gone.","timeout_seconds":100,"default_decision":"reject","irreversible":true,"summary_normal":"Send?"}"#;
        let ask = Ask {
            agent: &agent,
            session,
            question: &AgentQuestion::read(EventKind::AwaitingConfirmation, "send", "{}", payload),
            described_by: DescribedBy::Agent,
        };
        let Ok(Handled::Waiting { request, .. }) = self.producer.handle(Input::Ask(ask), self.now)
        else {
            panic!()
        };
        self.drain();
        request
    }

    fn reply(&mut self, subscription: SubscriptionId, decision: &str) {
        let (_, event) =
            self.heard.iter().rev().find(|(_, event)| event.contains("\"rpl_")).unwrap();
        let token = &event[event.find("\"rpl_").unwrap() + 1..][..36];
        let (ann, stamp) = (self.ann.clone(), self.now.wall);
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{stamp}"}}"#
        );
        let message = SubscriberMessage::parse(reply.as_bytes()).unwrap();
        self.producer
            .handle(Input::Message { peer: &ann, message: &message, call: 1 }, self.now)
            .unwrap();
        self.drain();
    }
}

const REPLIES: &str = r#"{"supports_confirmation_reply":true}"#;

// covers: H1, H13, H15, C28
#[test]
fn who_subscribes_and_attaches_hears_and_answers() {
    let mut room = Room::new();
    let id = room.subscribe(REPLIES);
    assert_eq!(room.attach(id), Some(Resumed::Snapshot));
    let request = room.ask();
    room.reply(id, "accept");
    assert_eq!(room.decided, [(request, Outcome::Accepted)]);
}

// covers: H6, D1, C21, D6
#[test]
fn who_declared_no_reply_support_hears_the_request_and_its_reply_is_ignored() {
    let mut room = Room::new();
    let (deaf, other) = (room.subscribe("{}"), room.subscribe(REPLIES));
    room.attach(deaf);
    room.attach(other);
    let request = room.ask();
    assert!(room.heard.iter().any(|(id, event)| *id == deaf && event.contains("\"rpl_")));
    let heard = room.heard.len();
    room.reply(deaf, "accept");
    assert_eq!((room.decided.len(), room.heard.len()), (0, heard), "nothing at all is sent");
    // Forwarded to somebody who can answer, the reply counts on that one's own subscription.
    room.reply(other, "accept");
    assert_eq!(room.decided, [(request, Outcome::Accepted)]);
}

// covers: H18, I16, D26
#[test]
fn a_renegotiation_changes_only_what_it_names_and_giving_up_replies_is_like_leaving() {
    let mut room = Room::new();
    let id =
        room.subscribe(r#"{"supports_confirmation_reply":true,"preferred_verbosity":"terse"}"#);
    room.attach(id);
    let request = room.ask();
    let change = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{id}","capabilities":{{"max_events_per_second":9}}}}"#
    );
    let answer = room.say(&change).unwrap();
    assert!(
        answer.contains("\"terse\"")
            && answer.contains(":9")
            && answer.contains("\"supports_confirmation_reply\":true"),
        "{answer}"
    );
    let give_up = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{id}","capabilities":{{"supports_confirmation_reply":false}}}}"#
    );
    room.say(&give_up).unwrap();
    assert_eq!(room.decided, [(request, Outcome::TimedOut)]);
    let unknown =
        r#"{"type":"subscription.renegotiate","subscription_id":"sub_nobody","capabilities":{}}"#;
    assert_eq!(room.say(unknown), None);
}

// covers: I14, I16, H18
#[test]
fn other_terms_while_away_do_not_end_the_time_for_coming_back() {
    let mut room = Room::new();
    let id = room.subscribe(REPLIES);
    room.attach(id);
    let request = room.ask();
    room.producer.detach(id, room.now);
    for answers in [false, true] {
        let change = format!(
            r#"{{"type":"subscription.renegotiate","subscription_id":"{id}","capabilities":{{"supports_confirmation_reply":{answers}}}}}"#
        );
        room.say(&change).unwrap();
        room.pass(10);
        assert_eq!(room.decided, [], "there are thirty seconds to come back");
    }
    room.attach(id);
    room.pass(20);
    room.reply(id, "accept");
    assert_eq!(room.decided, [(request, Outcome::Accepted)]);
}

// covers: H11, H18
#[test]
fn a_renegotiation_that_cannot_be_met_ends_the_subscription() {
    let mut room = Room::new();
    let id = room.subscribe(REPLIES);
    room.attach(id);
    let wanted = format!(
        r#"{{"type":"subscription.renegotiate","subscription_id":"{id}","capabilities":{{"accept_signed_manifests_only":true}}}}"#
    );
    assert!(room.say(&wanted).unwrap().contains("manifest_signature_required"));
    assert_eq!(room.attach(id), None);
}

// covers: H19, H20, D2
#[test]
fn closing_frees_everything_and_what_waited_for_it_is_decided() {
    let mut room = Room::new();
    let id = room.subscribe(REPLIES);
    room.attach(id);
    let request = room.ask();
    room.say(&format!(
        r#"{{"type":"subscription.close","subscription_id":"{id}","reason_code":"done"}}"#
    ));
    assert_eq!(room.decided, [(request, Outcome::TimedOut)]);
    assert_eq!(room.attach(id), None);
}

// covers: H19
#[test]
fn a_subscription_that_nobody_attaches_to_is_given_up() {
    let mut room = Room::new();
    let (late, kept) = (room.subscribe("{}"), room.subscribe("{}"));
    room.attach(kept);
    room.pass(31);
    assert_eq!(room.attach(late), None);
    assert_eq!(room.attach(kept), Some(Resumed::Snapshot));
}

// covers: I22, H21
#[test]
fn whoever_only_asks_and_never_attaches_leaves_room_for_others() {
    let mut room = Room::new();
    let asked = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{}}"#;
    let mut ids = Vec::new();
    let refused = loop {
        let answer = room.say(asked).unwrap();
        match Message::parse(answer.as_bytes()).unwrap() {
            Message::Accepted(accepted) => ids.push(accepted.subscription_id),
            _ => break answer,
        }
        assert!(ids.len() <= 20_000);
    };
    assert!(refused.contains("rate_limit"), "{refused}");
    // Attaching makes room, and losing the connection again does not make more.
    let ann = room.ann.clone();
    room.producer.attach(ids[0], &ann, None, room.now).unwrap();
    assert!(room.say(asked).unwrap().contains("subscription.accepted"));
    room.producer.detach(ids[0], room.now);
    room.producer.detach(ids[0], room.now);
    assert!(room.say(asked).unwrap().contains("rate_limit"));
    let other = Principal::new("phone", Role::AccessibilityConsumer, "ann");
    let answer = room.producer.handshake(&other, asked.as_bytes(), room.now).unwrap().unwrap();
    assert!(answer.contains("subscription.accepted"));
    // In time, all of them are given up.
    room.now.boot = room.now.boot.after_seconds(60);
    room.producer.handle(Input::Tick, room.now).unwrap();
    assert!(room.say(asked).unwrap().contains("subscription.accepted"));
}

// covers: D32, C17
#[test]
fn who_needs_more_time_gets_it_with_every_request() {
    let mut room = Room::new();
    let id = room.subscribe(r#"{"supports_confirmation_reply":true,"supported_extensions":["urn:aaep-rs:timing:v1"],"timing":{"factor":5}}"#);
    room.attach(id);
    room.ask();
    let (_, event) = room.heard.iter().find(|(_, event)| event.contains("\"rpl_")).unwrap();
    assert!(event.contains("\"timeout_seconds\":500"), "{event}");
    room.pass(499);
    assert_eq!(room.decided, []);
}

// covers: H15, V1, E1
#[test]
fn what_is_no_handshake_is_refused_and_every_request_is_answered() {
    let mut room = Room::new();
    let ann = room.ann.clone();
    assert!(room.producer.handshake(&ann, b"[]", room.now).is_err());
    assert!(room.producer.handshake(&ann, br#"{"type":"confirmation.reply"}"#, room.now).is_err());
    let future = r#"{"type":"subscription.request","aaep_version":"9.0.0","subscriber_id":"reader","capabilities":{}}"#;
    assert!(room.say(future).unwrap().contains("version_unsupported"));
}

// covers: D4, D27
#[test]
fn a_stream_without_a_handshake_hears_everything_and_can_still_negotiate() {
    let mut room = Room::new();
    let ann = room.ann.clone();
    let id = room.producer.listen(&ann, room.now).unwrap();
    room.attach(id).unwrap();
    room.ask();
    assert!(room.heard.iter().any(|(to, json)| *to == id && json.contains("reply_token")));
    let say = |room: &mut Room, message: &str| {
        let answer = room.producer.handshake_on(id, &ann, message.as_bytes(), room.now).unwrap();
        room.drain();
        answer
    };
    let refused = r#"{"type":"subscription.request","aaep_version":"99.0.0","subscriber_id":"x","capabilities":{}}"#;
    assert!(say(&mut room, refused).unwrap().contains("version_unsupported"));
    let quiet = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{"event_filters":{"exclude":["aaep:agent.progress.*"]}}}"#;
    let answer = say(&mut room, quiet).unwrap();
    assert!(answer.contains("subscription.accepted") && answer.contains(id.as_str()), "{answer}");
    let close =
        r#"{"type":"subscription.close","subscription_id":"sub_00000000000000000000000000000001"}"#;
    assert_eq!(say(&mut room, close), None);
    assert_eq!(room.attach(id), None);
}

// covers: W14, I21, I22
#[test]
fn a_connection_that_takes_nothing_is_waited_for_and_nobody_else_is() {
    let mut room = Room::new();
    let slow = room.subscribe("{}");
    let quick = room.subscribe("{}");
    room.attach(slow).unwrap();
    room.attach(quick).unwrap();
    room.producer.pause(slow);
    room.ask();
    let count = |room: &Room, id| room.heard.iter().filter(|(to, _)| *to == id).count();
    assert_eq!(count(&room, slow), 0);
    assert!(count(&room, quick) > 0);
    // What waits for a reader is no reason to come back again and again.
    assert!(room.producer.next_deadline().is_none_or(|at| at > room.now.boot));
    room.producer.go_on(slow);
    room.drain();
    assert_eq!(count(&room, slow), count(&room, quick));
}
