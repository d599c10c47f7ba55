//! One tenant cannot take what is another's: sessions, requests and subscriptions, before and after
//! a restart.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_engine::*;
use aaep_types::{
    DescribedBy, EventKind, LanguageTag, Message, SessionId, SubscriptionId, Timestamp,
};

struct House {
    producer: Producer,
    limits: Limits,
    now: Now,
    records: Vec<Vec<u8>>,
    /// The last request that somebody may answer.
    asked: String,
}

fn secrets() -> Secrets {
    Secrets { seed: [1; 32], token_key: [2; 32] }
}

fn offer() -> Offer {
    Offer {
        producer: r#"{"agent_id":"hub"}"#.into(),
        languages: vec![LanguageTag::parse("en").unwrap()],
        extensions: Vec::new(),
        manifest_uri: None,
        signed_manifest: None,
    }
}

fn agent(name: &str, user: &str) -> Principal {
    Principal::new(name, Role::Agent, user)
}

fn reader(name: &str, user: &str) -> Principal {
    Principal::new(name, Role::AccessibilityConsumer, user)
}

impl House {
    fn new(limits: Limits) -> Self {
        let now = Now { boot: Boot(5), wall: Timestamp::from_millis(1_779_632_531_342).unwrap() };
        let engine = Engine::new(secrets(), limits);
        let producer = Producer::new(engine, secrets(), limits, offer(), now);
        Self { producer, limits, now, records: Vec::new(), asked: String::new() }
    }

    fn restart(&mut self) {
        let records = self.records.iter().map(Vec::as_slice);
        let trust = ClockTrust::Trusted;
        let engine = Engine::recover(secrets(), self.limits, records, trust, self.now).unwrap();
        self.producer = Producer::new(engine, secrets(), self.limits, offer(), self.now);
        self.drain();
    }

    fn drain(&mut self) {
        while let Some(output) = self.producer.poll_output(self.now) {
            match output {
                ProducerOutput::Engine(Output::Append { number, bytes }) => {
                    self.records.push(bytes);
                    self.producer.handle(Input::Persisted { number }, self.now).unwrap();
                }
                ProducerOutput::Emitted(event)
                    if event.kind == Some(EventKind::AwaitingConfirmation) =>
                {
                    self.asked = event.json.to_string();
                }
                _ => {}
            }
        }
    }

    fn handle(&mut self, input: Input<'_>) -> Result<Handled, Refusal> {
        let answer = self.producer.handle(input, self.now);
        self.drain();
        answer
    }

    fn open(&mut self, agent: &Principal) -> Result<SessionId, Refusal> {
        let open = Open {
            agent,
            producer: r#"{"agent_id":"worker"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").unwrap(),
            lease_seconds: 120,
            payload: "",
        };
        match self.handle(Input::Open(open))? {
            Handled::Session(session) => Ok(session),
            other => panic!("{other:?}"),
        }
    }

    fn end(&mut self, agent: &Principal, session: SessionId) {
        let payload = r#"{"summary_normal":"Done."}"#;
        let type_name = EventKind::SessionCompleted.as_str();
        let event = &AgentEvent::read(type_name, payload);
        self.handle(Input::Emit { agent, session, event, arguments: None }).unwrap();
    }

    fn ask(
        &mut self,
        agent: &Principal,
        session: SessionId,
        what: &str,
    ) -> Result<RequestId, Refusal> {
        let arguments = format!(r#"{{"what":"{what}"}}"#);
        let answer = self.handle(Input::Ask(Ask {
agent,
session,
question: &AgentQuestion::read(EventKind::AwaitingConfirmation, "delete", &arguments, r#"{"action":"Delete it.","consequence":"It is gone.","timeout_seconds":600,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Delete it?"}"#),
described_by: DescribedBy::Agent,
}))?;
        match answer {
            Handled::Waiting { request, .. } => Ok(request),
            other => panic!("{other:?}"),
        }
    }

    /// Accepts what was asked last.
    fn accept(&mut self, peer: &Principal) {
        let id = self.subscribe(peer).unwrap();
        self.producer.attach(id, peer, None, self.now).unwrap();
        let token = self.asked.split("\"reply_token\":\"").nth(1).unwrap();
        let token = token.split('"').next().unwrap();
        let (id, stamp) = (id.as_str(), self.now.wall.to_string());
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{id}","timestamp":"{stamp}"}}"#
        );
        let message = SubscriberMessage::parse(reply.as_bytes()).unwrap();
        self.handle(Input::Message { peer, message: &message, call: 1 }).unwrap();
    }

    fn subscribe(&mut self, peer: &Principal) -> Result<SubscriptionId, String> {
        let request = r#"{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{"supports_confirmation_reply":true}}"#;
        let answer = self.producer.handshake(peer, request.as_bytes(), self.now).unwrap().unwrap();
        self.drain();
        match Message::parse(answer.as_bytes()).unwrap() {
            Message::Accepted(accepted) => Ok(accepted.subscription_id),
            _ => Err(answer),
        }
    }
}

fn refused<T>(answer: Result<T, Refusal>, bound: &str) {
    let refusal = answer.err().unwrap_or_else(|| panic!("{bound} does not hold"));
    assert_eq!(refusal.blame, Blame::Limit);
    assert!(refusal.text.contains(&format!("(limits.{bound})")), "{refusal}");
}

// covers: I29, I22
#[test]
fn sessions_of_one_principal_and_one_user_leave_room_for_others() {
    let limits = Limits { sessions_per_principal: 3, sessions_per_user: 5, ..Limits::default() };
    let mut house = House::new(limits);
    let (eve, mallory, ann) = (agent("eve", "eve"), agent("mallory", "eve"), agent("ann", "ann"));
    let first = house.open(&eve).unwrap();
    for _ in 0..2 {
        house.open(&eve).unwrap();
    }
    refused(house.open(&eve), "sessions_per_principal");
    for _ in 0..2 {
        house.open(&mallory).unwrap();
    }
    refused(house.open(&mallory), "sessions_per_user");
    assert!(house.open(&ann).is_ok());
    // The same after a restart; what ended makes room.
    house.restart();
    refused(house.open(&eve), "sessions_per_principal");
    house.end(&eve, first);
    assert!(house.open(&eve).is_ok());
    // An agent that is silent for longer than a lease holds nothing any more.
    house.now.boot = house.now.boot.after_seconds(121);
    house.handle(Input::Tick).unwrap();
    assert_eq!(house.producer.engine().session_shares().total(), 0);
    assert!(house.open(&mallory).is_ok());
}

// covers: I29, I22
#[test]
fn requests_of_one_principal_and_one_user_leave_room_for_others() {
    let limits = Limits {
        pending_requests_per_principal: 2,
        pending_requests_per_user: 3,
        ..Limits::default()
    };
    let mut house = House::new(limits);
    let (eve, mallory, ann) = (agent("eve", "eve"), agent("mallory", "eve"), agent("ann", "ann"));
    let of_eve = house.open(&eve).unwrap();
    let of_mallory = house.open(&mallory).unwrap();
    let of_ann = house.open(&ann).unwrap();
    let first = house.ask(&eve, of_eve, "a").unwrap();
    house.ask(&eve, of_eve, "b").unwrap();
    refused(house.ask(&eve, of_eve, "c"), "pending_requests_per_principal");
    house.ask(&mallory, of_mallory, "a").unwrap();
    refused(house.ask(&mallory, of_mallory, "b"), "pending_requests_per_user");
    house.ask(&ann, of_ann, "a").unwrap();
    house.restart();
    refused(house.ask(&eve, of_eve, "c"), "pending_requests_per_principal");
    house.handle(Input::Withdraw { agent: &eve, request: first }).unwrap();
    house.ask(&eve, of_eve, "c").unwrap();
    house.end(&eve, of_eve);
    house.restart();
    let engine = house.producer.engine();
    assert_eq!(engine.request_shares().of_user("eve"), 1);
    assert_eq!(engine.pending_requests(), 2);
}

// covers: I29, I22
#[test]
fn after_a_restart_requests_count_as_many_bytes_as_before() {
    let limits = Limits { pending_bytes_per_principal: 2_000, ..Limits::default() };
    let mut house = House::new(limits);
    let eve = agent("eve", "eve");
    let session = house.open(&eve).unwrap();
    let mut asked = 0;
    while house.ask(&eve, session, &asked.to_string()).is_ok() {
        asked += 1;
    }
    let held = house.producer.engine().byte_shares().of_user("eve");
    assert!(asked > 3 && held > 1_000 && held <= 2_000, "{asked}, {held}");
    house.restart();
    assert_eq!(house.producer.engine().byte_shares().of_user("eve"), held);
}

// covers: I22, I29
#[test]
fn bytes_of_requests_that_wait_are_bounded() {
    let limits = Limits { pending_bytes_per_principal: 100_000, ..Limits::default() };
    let mut house = House::new(limits);
    let (eve, ann) = (agent("eve", "eve"), agent("ann", "ann"));
    let (of_eve, of_ann) = (house.open(&eve).unwrap(), house.open(&ann).unwrap());
    let large = "x".repeat(60_000);
    let asked = house.ask(&eve, of_eve, &large).unwrap();
    refused(house.ask(&eve, of_eve, &format!("y{large}")), "pending_bytes_per_principal");
    house.ask(&ann, of_ann, &large).unwrap();
    house.handle(Input::Withdraw { agent: &eve, request: asked }).unwrap();
    house.ask(&eve, of_eve, &large).unwrap();
}

// covers: I29, I22, H21
#[test]
fn subscriptions_of_one_principal_and_one_user_leave_room_for_others() {
    let limits = Limits {
        subscriptions_per_principal: 3,
        subscriptions_per_user: 4,
        unattached_per_principal: 2,
        ..Limits::default()
    };
    let mut house = House::new(limits);
    let (eve, mallory, ann) = (reader("eve", "eve"), reader("mal", "eve"), reader("ann", "ann"));
    let held: Vec<_> = (0..2).map(|_| house.subscribe(&eve).unwrap()).collect();
    let full = house.subscribe(&eve).unwrap_err();
    assert!(full.contains("rate_limit") && full.contains("limits.unattached_per_principal"));
    for id in held {
        assert!(house.producer.attach(id, &eve, None, house.now).is_some());
    }
    house.subscribe(&eve).unwrap();
    assert!(house.subscribe(&eve).unwrap_err().contains("limits.subscriptions_per_principal"));
    house.subscribe(&mallory).unwrap();
    assert!(house.subscribe(&mallory).unwrap_err().contains("limits.subscriptions_per_user"));
    house.subscribe(&ann).unwrap();
    // What nobody came for is given up.
    house.now.boot = house.now.boot.after_seconds(31);
    house.handle(Input::Tick).unwrap();
    assert_eq!(house.producer.subscription_shares().of_user("eve"), 2);
    assert!(house.subscribe(&mallory).is_ok());
}

// covers: I22
#[test]
fn a_subscription_that_nobody_attached_to_has_nothing_to_deliver_by() {
    let mut house = House::new(Limits::default());
    let ann = reader("ann", "ann");
    let id = house.subscribe(&ann).unwrap();
    assert_eq!((house.producer.load().subscriptions, house.producer.place(id)), (0, None));
    assert!(house.producer.attach(id, &ann, None, house.now).is_some());
    assert_eq!(house.producer.load().subscriptions, 1);
}

// covers: I22, I29
#[test]
fn the_ids_of_tool_calls_are_known_within_a_share_and_freed_with_their_session() {
    let limits = Limits { known_calls_per_principal: 3, ..Limits::default() };
    let mut house = House::new(limits);
    let (eve, ann) = (agent("eve", "eve"), agent("ann", "ann"));
    let call = |house: &mut House, agent: &Principal, session| {
        let (type_name, payload) =
            (EventKind::ToolInvoked.as_str(), r#"{"tool":"look","summary_normal":"Looking."}"#);
        let event = &AgentEvent::read(type_name, payload);
        house.handle(Input::Emit { agent, session, event, arguments: None })
    };
    let sessions = [house.open(&eve).unwrap(), house.open(&eve).unwrap()];
    for number in 0..3 {
        call(&mut house, &eve, sessions[number % 2]).unwrap();
    }
    let full = call(&mut house, &eve, sessions[1]).unwrap_err();
    assert!(full.text.contains("limits.known_calls_per_principal"), "{full}");
    let own = house.open(&ann).unwrap();
    call(&mut house, &ann, own).unwrap();
    house.restart();
    assert!(call(&mut house, &eve, sessions[1]).is_err(), "also after a restart");
    house.end(&eve, sessions[0]);
    call(&mut house, &eve, sessions[1]).unwrap();
    assert_eq!(house.producer.engine().call_shares().of_principal(&eve), 2);
}

// covers: I29
#[test]
fn calls_that_were_approved_count_for_the_share_of_their_agent_too() {
    let limits = Limits { known_calls: 2, known_calls_per_principal: 1, ..Limits::default() };
    let mut house = House::new(limits);
    let (eve, ann) = (agent("eve", "eve"), agent("ann", "ann"));
    let phone = reader("phone", "eve");
    let session = house.open(&eve).unwrap();
    let accepted = |house: &mut House, what| {
        let request = house.ask(&eve, session, what).unwrap();
        house.accept(&phone);
        request
    };
    let requests = [accepted(&mut house, "a"), accepted(&mut house, "b")];
    let invoke = |request| Input::Invoke { agent: &eve, request, arguments: None };
    house.handle(invoke(requests[0])).unwrap();
    refused(house.handle(invoke(requests[1])), "known_calls_per_principal");
    let approved = Some(Status::Resolved { outcome: Outcome::Accepted, runs: true });
    assert_eq!(house.producer.engine().status(requests[1]), approved, "it is not spent");
    // Otherwise this would have no room for what is another's.
    let own = house.open(&ann).unwrap();
    let (type_name, payload) =
        (EventKind::ToolInvoked.as_str(), r#"{"tool":"look","summary_normal":"Looking."}"#);
    let event = &AgentEvent::read(type_name, payload);
    let look = Input::Emit { agent: &ann, session: own, event, arguments: None };
    house.handle(look).unwrap();
}

// covers: I22, I29
#[test]
fn what_was_approved_counts_until_it_cannot_run_any_more() {
    let limits = Limits { approval_seconds: 30, ..Limits::default() };
    let mut house = House::new(limits);
    let (eve, phone) = (agent("eve", "eve"), reader("phone", "eve"));
    let session = house.open(&eve).unwrap();
    let held = |house: &House| house.producer.engine().byte_shares().of_principal(&eve);
    let request = house.ask(&eve, session, "approved").unwrap();
    let bytes = held(&house);
    assert!(bytes > 0);
    house.accept(&phone);
    let approved = Some(Status::Resolved { outcome: Outcome::Accepted, runs: true });
    assert_eq!(house.producer.engine().status(request), approved);
    assert_eq!(held(&house), bytes, "its arguments are kept until it runs");
    house.restart();
    assert!(held(&house) > 0, "also after a restart");
    house.now.boot = house.now.boot.after_seconds(31);
    house.handle(Input::Tick).unwrap();
    assert_eq!(house.producer.engine().status(request), Some(Status::Expired));
    assert_eq!(held(&house), 0);
}

// covers: I22, I29
#[test]
fn whoever_is_refused_is_told_which_bound_it_was() {
    let small = Limits {
        open_tools: 1,
        open_outputs: 1,
        pending_per_session: 1,
        critical_per_window: 1,
        argument_bytes: 100,
        ..Limits::default()
    };
    let limits = Limits { calls_per_session: 1, prompts_per_window: 1, ..small };
    let ann = agent("worker", "ann");
    let mut refusals: Vec<(&str, Refusal)> = Vec::new();
    let mut house = House::new(small);
    let session = house.open(&ann).unwrap();
    let tool = |call: u32| {
        format!(r#"{{"tool":"look","tool_call_id":"call_{call}","summary_normal":"Looking."}}"#)
    };
    let output = |id: u32| {
        format!(r#"{{"output_id":"out_{id}","chunk":"Once","position":0,"complete":false}}"#)
    };
    let handoff =
        r#"{"reason":"Too much.","target_kind":"human","summary_normal":"Somebody else, please."}"#;
    let emit = |house: &mut House, session, kind: EventKind, payload: &str| {
        let event = &AgentEvent::read(kind.as_str(), payload);
        house.handle(Input::Emit { agent: &ann, session, event, arguments: None })
    };
    emit(&mut house, session, EventKind::ToolInvoked, &tool(1)).unwrap();
    let refused = emit(&mut house, session, EventKind::ToolInvoked, &tool(2));
    refusals.push(("open_tools", refused.unwrap_err()));
    emit(&mut house, session, EventKind::OutputStreaming, &output(1)).unwrap();
    let refused = emit(&mut house, session, EventKind::OutputStreaming, &output(2));
    refusals.push(("open_outputs", refused.unwrap_err()));
    let urgent = house.open(&ann).unwrap();
    emit(&mut house, urgent, EventKind::HandoffRequested, handoff).unwrap();
    let refused = emit(&mut house, urgent, EventKind::HandoffRequested, handoff);
    refusals.push(("critical_per_window", refused.unwrap_err()));
    house.ask(&ann, session, "a").unwrap();
    refusals.push(("pending_per_session", house.ask(&ann, session, "b").unwrap_err()));
    let long = "long".repeat(50);
    refusals.push(("argument_bytes", house.ask(&ann, session, &long).unwrap_err()));

    let mut house = House::new(Limits { pending_per_session: 9, ..limits });
    let session = house.open(&ann).unwrap();
    emit(&mut house, session, EventKind::ToolInvoked, &tool(1)).unwrap();
    let done =
        r#"{"tool":"look","tool_call_id":"call_1","status":"success","summary_normal":"Seen."}"#;
    emit(&mut house, session, EventKind::ToolCompleted, done).unwrap();
    let refused = emit(&mut house, session, EventKind::ToolInvoked, &tool(2));
    refusals.push(("calls_per_session", refused.unwrap_err()));
    house.ask(&ann, session, "a").unwrap();
    refusals.push(("prompts_per_window", house.ask(&ann, session, "b").unwrap_err()));
    // The same for an agent with ever new sessions.
    let refused = (0..20).find_map(|_| {
        let session = house.open(&ann).unwrap();
        house.ask(&ann, session, "a").err()
    });
    refusals.push(("prompts_per_window", refused.unwrap()));
    for (name, refusal) in refusals {
        assert_eq!(refusal.blame, Blame::Limit, "{refusal}");
        assert!(refusal.text.contains(&format!("limits.{name}")), "{name}: {refusal}");
    }
}
