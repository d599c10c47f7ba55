//! Who hears what: fan-out, newcomers, those who come back, filters that must not hide an outcome.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

mod returning;
#[path = "../world/mod.rs"]
mod world;

use aaep_engine::*;
use aaep_shaping::Terms;
use aaep_types::handshake::Capabilities;
use aaep_types::json::Members;
use aaep_types::{Event, EventKind, Payload, SubscriptionId};
use world::World;

struct Delivered {
    subscription: SubscriptionId,
    kind: Option<EventKind>,
    id: String,
    json: String,
}

fn terms(capabilities: &str) -> Terms {
    let request = format!(
        r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{capabilities}}}"#
    );
    let Ok(aaep_types::Message::Request(request)) = aaep_types::Message::parse(request.as_bytes())
    else {
        panic!()
    };
    Terms::new(&request.capabilities)
}

struct Hall {
    world: World,
    delivery: Delivery,
    offered: usize,
    heard: Vec<Delivered>,
    ended: usize,
}

fn id(number: u128) -> SubscriptionId {
    SubscriptionId::from_bits(number)
}

impl Hall {
    fn new(limits: Limits) -> Self {
        Self {
            world: World::new(),
            delivery: Delivery::new(limits),
            offered: 0,
            heard: vec![],
            ended: 0,
        }
    }

    fn listen(&mut self, number: u128, peer: &Principal, capabilities: &str) {
        let now = self.world.now.boot;
        self.delivery.subscribe(id(number), peer, terms(capabilities), now);
        assert_eq!(self.delivery.attach(id(number), peer, None, now), Some(Resumed::Snapshot));
        self.drain();
    }

    /// After a restart: what was said before, as the engine remembers it.
    fn remind(&mut self) {
        for reminder in self.world.engine.reminders() {
            self.delivery.remind(reminder, self.world.now.boot);
        }
    }

    /// Hands over what the engine has said since.
    fn drain(&mut self) {
        let now = self.world.now.boot;
        for event in &self.world.events[self.offered..] {
            self.delivery.offer(event, now).expect("our events are valid");
        }
        self.offered = self.world.events.len();
        self.delivery.tick(now);
        while let Some(output) = self.delivery.poll_output(now) {
            match output {
                Deliver::Send { subscription, event, bytes, .. } => self.heard.push(Delivered {
                    subscription,
                    kind: event.kind(),
                    id: event.event_id().to_string(),
                    json: bytes.to_string(),
                }),
                Deliver::End { .. } => self.ended += 1,
                _ => {}
            }
        }
    }

    fn kinds(&self, number: u128) -> Vec<EventKind> {
        self.heard
            .iter()
            .filter(|heard| heard.subscription == id(number))
            .filter_map(|heard| heard.kind)
            .collect()
    }
}

use EventKind::*;

// covers: C22, S6, H21
#[test]
fn an_event_reaches_everybody_who_may_hear_it_and_nobody_else() {
    let mut hall = Hall::new(Limits::default());
    let bob = Principal::new("bob", Role::AccessibilityConsumer, "bob");
    let audit = Principal::new("audit", Role::Auditor, "carol");
    let ann = hall.world.ann.clone();
    for (number, peer) in [(1, &ann), (2, &bob), (3, &audit)] {
        hall.listen(number, peer, "{}");
    }
    let session = hall.world.open();
    hall.world.ask(session, "{}");
    hall.drain();
    assert_eq!(hall.kinds(1), [SessionStarted, StateChanged, AwaitingConfirmation]);
    assert_eq!(hall.kinds(1), hall.kinds(3));
    assert_eq!(hall.kinds(2), []);
}

// covers: S6, S1
#[test]
fn an_agent_hears_its_own_sessions_only_and_never_a_reply_token() {
    let mut hall = Hall::new(Limits::default());
    let (own, ann) = (hall.world.agent.clone(), hall.world.ann.clone());
    let other = Principal::new("mail-agent", Role::Agent, "ann");
    hall.listen(1, &own, "{}");
    hall.listen(2, &other, "{}");
    let session = hall.world.open();
    let request = hall.world.ask(session, "{}");
    hall.drain();
    assert_eq!(hall.kinds(1), [SessionStarted, StateChanged, AwaitingConfirmation]);
    // As newcomers, or by what is repeated when they come back, they learn no more.
    hall.listen(3, &own, "{}");
    hall.listen(4, &other, "{}");
    let first = hall.heard[0].id.clone();
    let now = hall.world.now.boot;
    assert_eq!(hall.delivery.attach(id(1), &own, Some(&first), now), Some(Resumed::All));
    hall.listen(5, &ann, "{}");
    hall.drain();
    let asked = |number: u128| {
        let of = move |heard: &&Delivered| heard.subscription == id(number);
        let asking = |heard: &&Delivered| heard.kind == Some(AwaitingConfirmation);
        let found: Vec<&Delivered> = hall.heard.iter().filter(of).filter(asking).collect();
        found
    };
    let token_of = |heard: &Delivered| match Event::parse(heard.json.as_bytes()).unwrap().payload()
    {
        Payload::AwaitingConfirmation(asks) => asks.reply_token.as_str().to_owned(),
        other => panic!("{other:?}"),
    };
    let real = token_of(asked(5)[0]);
    assert_eq!((asked(1).len(), asked(3).len()), (2, 1));
    for heard in asked(1).into_iter().chain(asked(3)) {
        assert!(!heard.json.contains(&real));
        assert_eq!(token_of(heard), heard.id.replace("evt_", "rpl_"));
    }
    assert_eq!((hall.kinds(2), hall.kinds(4)), (vec![], vec![]));
    hall.world.reply(request, "accept");
    hall.drain();
    assert_eq!(hall.kinds(3).last(), Some(&StateChanged));
}

// covers: H16, D31, T28, I18
#[test]
fn a_filter_hides_neither_a_request_nor_its_outcome() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, r#"{"event_filters":{"include":["aaep:agent.output.*"]}}"#);
    let session = hall.world.open();
    let request = hall.world.ask(session, "{}");
    hall.world.reply(request, "reject");
    hall.world.emit(session, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
    hall.drain();
    assert_eq!(hall.kinds(1), [AwaitingConfirmation, StateChanged, SessionCompleted]);
    assert!(hall.heard[1].json.contains("\"urgency\":\"critical\""));
}

// covers: D28, W7
#[test]
fn a_newcomer_is_told_how_things_stand_with_the_same_ids_and_tokens() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    let (over, session) = (hall.world.open(), hall.world.open());
    hall.world.emit(over, SessionCompleted, r#"{"summary_normal":"Over."}"#).unwrap();
    let (first, second) = (hall.world.ask(session, "{}"), hall.world.ask(session, "{\"a\":1}"));
    hall.world.reply(first, "reject");
    hall.drain();
    hall.listen(1, &ann, "{}");
    assert_eq!(hall.kinds(1), [SessionStarted, StateChanged, AwaitingConfirmation]);
    assert_eq!(hall.heard[2].id, second.first_event().id().to_string());
    assert!(hall.heard[2].json.contains(&hall.world.token(second)));
}

// covers: W7, I19
#[test]
fn what_waited_is_not_lost_though_something_urgent_went_before_it() {
    let mut hall = Hall::new(Limits::default());
    let (ann, now) = (hall.world.ann.clone(), hall.world.now.boot);
    hall.listen(1, &ann, r#"{"coalesce_boundaries":["none"]}"#);
    let (talks, asks) = (hall.world.open(), hall.world.open());
    hall.drain();
    hall.delivery.pause(id(1));
    let progress = r#"{"progress":{"percent":1},"summary_normal":"On."}"#;
    hall.world.emit(talks, ProgressUpdated, progress).unwrap();
    hall.world.ask(asks, "{}");
    hall.drain();
    hall.delivery.go_on(id(1));
    hall.drain();
    let expected = [StateChanged, AwaitingConfirmation, ProgressUpdated];
    assert_eq!(hall.kinds(1)[2..], expected);
    // The line broke after the request.
    let last = hall.heard[3].id.clone();
    hall.delivery.detach(id(1));
    assert_eq!(hall.delivery.attach(id(1), &ann, Some(&last), now), Some(Resumed::All));
    hall.drain();
    assert_eq!(hall.kinds(1)[5..], [ProgressUpdated]);
}

// covers: S4
#[test]
fn a_stolen_subscription_id_opens_nothing() {
    let mut hall = Hall::new(Limits::default());
    let (ann, now) = (hall.world.ann.clone(), hall.world.now.boot);
    hall.listen(1, &ann, "{}");
    let thief = Principal::new("thief", Role::AccessibilityConsumer, "bob");
    assert_eq!(hall.delivery.attach(id(1), &thief, None, now), None);
    assert_eq!(hall.delivery.attach(id(9), &thief, None, now), None);
}

// covers: I4, I21, I22, H21
#[test]
fn a_stalled_subscription_is_ended_with_a_reason_and_changes_nothing_for_others() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, r#"{"max_events_per_second":1}"#);
    hall.listen(2, &ann, "{}");
    let session = hall.world.open();
    for number in 0..3_000 {
        // A call that states its risk is told alone, so nothing of this is merged.
        let call = format!(
            r#"{{"tool":"look","tool_call_id":"call_{number}","risk_level":"low","summary_normal":"Looking."}}"#
        );
        hall.world.emit(session, ToolInvoked, &call).unwrap();
        let done = format!(
            r#"{{"tool":"look","tool_call_id":"call_{number}","status":"success","summary_normal":"Seen."}}"#
        );
        hall.world.emit(session, ToolCompleted, &done).unwrap();
        hall.drain();
    }
    assert_eq!(hall.ended, 1);
    assert_eq!(hall.kinds(2).len(), 1 + 1 + 6_000);
}

// covers: H18, L4
#[test]
fn new_terms_bind_what_comes_after_them() {
    let mut hall = Hall::new(Limits::default());
    let ann = hall.world.ann.clone();
    hall.listen(1, &ann, "{}");
    let session = hall.world.open();
    hall.drain();
    let mut terms = Capabilities::none();
    terms.preferred_verbosity = Some(aaep_types::Verbosity::Terse);
    let now = hall.world.now.boot;
    hall.delivery.renegotiate(id(1), Terms::new(&terms), now);
    let progress = r#"{"progress":{"step":1},"summary_terse":"On.","summary_normal":"Going on.","summary_detailed":"Going on at length."}"#;
    hall.world.emit(session, ProgressUpdated, progress).unwrap();
    hall.drain();
    assert!(!hall.heard.last().unwrap().json.contains("at length"));
}
