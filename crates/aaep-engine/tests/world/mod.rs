//! A small world around an engine: one agent, listeners, a disk that is always quick.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use aaep_conformance::stream::{Checker, Options, Weight};
use aaep_engine::*;
use aaep_types::json::Canonical;
use aaep_types::{
    DescribedBy, EventKind, LanguageTag, ReplyToken, SessionId, SubscriptionId, Timestamp,
};

pub const START: i64 = 1_779_632_531_342;

pub struct World {
    pub engine: Engine,
    pub now: Now,
    pub agent: Principal,
    pub ann: Principal,
    pub phone: SubscriptionId,
    /// Every event that came out.
    pub events: Vec<Emitted>,
    pub others: Vec<Output>,
    pub records: Vec<Vec<u8>>,
    /// Whether records become durable at once.
    pub quick_disk: bool,
    calls: u64,
}

pub fn secrets() -> Secrets {
    Secrets { seed: [3; 32], token_key: [5; 32] }
}

impl World {
    pub fn new() -> Self {
        let now = Now { boot: Boot(1_000_000), wall: Timestamp::from_millis(START).unwrap() };
        let mut world = Self {
            engine: Engine::new(secrets(), Limits::default()),
            now,
            agent: Principal::new("bank-agent", Role::Agent, "ann"),
            ann: Principal::new("ann's screen reader", Role::AccessibilityConsumer, "ann"),
            phone: SubscriptionId::from_bits(1),
            events: Vec::new(),
            others: Vec::new(),
            records: Vec::new(),
            quick_disk: true,
            calls: 0,
        };
        let (ann, phone) = (world.ann.clone(), world.phone);
        world.join(&ann, phone);
        world
    }

    pub fn join(&mut self, peer: &Principal, subscription: SubscriptionId) {
        let joined = Input::Joined { peer, subscription, confirms: true, clarifies: true };
        self.handle(joined).expect("there is room");
    }

    pub fn handle(&mut self, input: Input<'_>) -> Result<Handled, Refusal> {
        let answer = self.engine.handle(input, self.now);
        self.drain();
        answer
    }

    pub fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Append { number, bytes } => {
                    self.records.push(bytes);
                    if self.quick_disk {
                        self.engine.handle(Input::Persisted { number }, self.now).unwrap();
                    }
                }
                Output::Event(event) => self.events.push(event),
                other => self.others.push(other),
            }
        }
    }

    /// Every event that came out, once: after a restart some come again as they were.
    pub fn heard(&self) -> Vec<&Emitted> {
        let mut heard: Vec<&Emitted> = Vec::new();
        for event in &self.events {
            match heard.iter().find(|known| known.event == event.event) {
                Some(known) => assert_eq!(known.json, event.json),
                None => heard.push(event),
            }
        }
        heard
    }

    /// Lets time pass, on both clocks, stopping at every deadline.
    pub fn pass(&mut self, seconds: u64) {
        let end = self.now.boot.after_seconds(seconds);
        while let Some(at) = self.engine.next_deadline().filter(|at| *at <= end) {
            self.move_to(at.max(self.now.boot));
            self.handle(Input::Tick).unwrap();
        }
        self.move_to(end);
        self.handle(Input::Tick).unwrap();
    }

    fn move_to(&mut self, boot: Boot) {
        let passed = (boot.0 - self.now.boot.0) / 1000;
        self.now.boot = boot;
        let millis = self.now.wall.as_millis() + passed as i64;
        self.now.wall = Timestamp::from_millis(millis).unwrap();
    }

    pub fn open(&mut self) -> SessionId {
        let agent = self.agent.clone();
        let open = Open {
            agent: &agent,
            producer: r#"{"agent_id":"bank-agent"}"#,
            summary: "Moving money.",
            language: LanguageTag::parse("en").unwrap(),
            lease_seconds: 100_000,
            payload: "",
        };
        match self.handle(Input::Open(open)).unwrap() {
            Handled::Session(session) => session,
            other => panic!("{other:?}"),
        }
    }

    pub fn emit(
        &mut self,
        session: SessionId,
        kind: EventKind,
        payload: &str,
    ) -> Result<Handled, Refusal> {
        let agent = self.agent.clone();
        let (type_name, arguments) = (kind.as_str(), None);
        let event = &AgentEvent::read(type_name, payload);
        self.handle(Input::Emit { agent: &agent, session, event, arguments })
    }

    /// Announces that a tool runs that nobody was asked about, with these arguments if there are any.
    pub fn announce(
        &mut self,
        session: SessionId,
        tool: &str,
        arguments: Option<&str>,
    ) -> Result<Handled, Refusal> {
        let agent = self.agent.clone();
        let payload = format!(r#"{{"tool":"{tool}","summary_normal":"Running {tool}."}}"#);
        let arguments = arguments.map(|text| Canonical::of(text).unwrap());
        self.handle(Input::Emit {
            agent: &agent,
            session,
            event: &AgentEvent::read(EventKind::ToolInvoked.as_str(), &payload),
            arguments: arguments.as_ref(),
        })
    }

    pub fn try_ask(
        &mut self,
        session: SessionId,
        arguments: &str,
        more: &str,
    ) -> Result<Handled, Refusal> {
        let agent = self.agent.clone();
        let payload = format!(
            r#"{{"action":"Transfer money: {}","consequence":"It leaves at once.","summary_normal":"Transfer?"{more}}}"#,
            arguments.replace('"', "'"),
        );
        self.handle(Input::Ask(Ask {
            agent: &agent,
            session,
            question: &AgentQuestion::read(
                EventKind::AwaitingConfirmation,
                "transfer_funds",
                arguments,
                &payload,
            ),
            described_by: DescribedBy::Agent,
        }))
    }

    /// Asks for something irreversible of high risk.
    pub fn ask(&mut self, session: SessionId, arguments: &str) -> RequestId {
        let more = r#","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true"#;
        match self.try_ask(session, arguments, more).unwrap() {
            Handled::Waiting { request, .. } => request,
            other => panic!("{other:?}"),
        }
    }

    /// Asks a question.
    pub fn question(&mut self, session: SessionId, more: &str) -> RequestId {
        let agent = self.agent.clone();
        let payload = format!(
            r#"{{"question":"How many?","timeout_seconds":120,"summary_normal":"How many?"{more}}}"#
        );
        let asked = self.handle(Input::Ask(Ask {
            agent: &agent,
            session,
            question: &AgentQuestion::read(EventKind::AwaitingClarification, "", "", &payload),
            described_by: DescribedBy::Agent,
        }));
        match asked.unwrap() {
            Handled::Waiting { request, .. } => request,
            other => panic!("{other:?}"),
        }
    }

    pub fn answer(&mut self, request: RequestId, response: &str) {
        let (ann, phone, token, stamp) =
            (self.ann.clone(), self.phone, self.token(request), self.now.wall);
        let reply = format!(
            r#"{{"type":"clarification.reply","reply_token":"{token}","response":{response},"subscription_id":"{phone}","timestamp":"{stamp}"}}"#
        );
        self.message(&ann, &reply);
    }

    pub fn response(&self, request: RequestId) -> Option<String> {
        self.others.iter().find_map(|other| match other {
            Output::Decided { request: about, response, .. } if *about == request => {
                response.as_deref().map(str::to_owned)
            }
            _ => None,
        })
    }

    pub fn more_time(&mut self, token: &str, seconds: u64) {
        let (ann, phone, stamp) = (self.ann.clone(), self.phone, self.now.wall);
        let more = format!(
            r#"{{"type":"timing:extend","reply_token":"{token}","subscription_id":"{phone}","timestamp":"{stamp}","seconds":{seconds}}}"#
        );
        self.message(&ann, &more);
    }

    /// The token that a subscriber heard last.
    pub fn last_token(&self) -> String {
        let request =
            self.events.iter().rev().find(|event| event.json.contains("\"reply_token\"")).unwrap();
        token_in(&request.json)
    }

    /// The token of a request, as a subscriber heard it.
    pub fn token(&self, request: RequestId) -> String {
        let asked = self.events.iter().find(|event| event.event == request.first_event());
        token_in(&asked.unwrap_or_else(|| panic!("nobody heard {request}")).json)
    }

    pub fn reply_as(
        &mut self,
        peer: &Principal,
        subscription: SubscriptionId,
        token: &str,
        decision: &str,
    ) {
        let stamp = self.now.wall;
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"{decision}","subscription_id":"{subscription}","timestamp":"{stamp}"}}"#
        );
        self.message(peer, &reply);
    }

    /// Sends a message; it is answered like every other.
    pub fn message(&mut self, peer: &Principal, message: &str) {
        self.calls += 1;
        let call = self.calls;
        let message = SubscriberMessage::parse(message.as_bytes()).unwrap();
        self.handle(Input::Message { peer, message: &message, call }).unwrap();
        if self.quick_disk {
            assert_eq!(
                self.others.iter().filter(|other| **other == Output::Noted { call }).count(),
                1
            );
        }
    }

    pub fn reply(&mut self, request: RequestId, decision: &str) {
        let (ann, phone, token) = (self.ann.clone(), self.phone, self.token(request));
        self.reply_as(&ann, phone, &token, decision);
    }

    pub fn invoke(
        &mut self,
        request: RequestId,
        arguments: Option<&str>,
    ) -> Result<Handled, Refusal> {
        let agent = self.agent.clone();
        let arguments = arguments.map(|text| Canonical::of(text).unwrap());
        let arguments = arguments.as_ref();
        self.handle(Input::Invoke { agent: &agent, request, arguments })
    }

    pub fn decided(&self, request: RequestId) -> Option<(Outcome, bool)> {
        self.others.iter().find_map(|other| match other {
            Output::Decided { request: about, outcome, runs, .. } if *about == request => {
                Some((*outcome, *runs))
            }
            _ => None,
        })
    }

    pub fn granted(&self, request: RequestId) -> usize {
        let of = |other: &&Output| matches!(other, Output::Granted { request: about, .. } if *about == request);
        self.others.iter().filter(of).count()
    }

    pub fn kinds(&self) -> Vec<EventKind> {
        self.events.iter().filter_map(|event| event.kind).collect()
    }

    /// What the stream checker says of everything that came out: nothing may be wrong.
    pub fn check(&self) {
        let mut checker = Checker::new(Options { complete: true, ..Options::default() });
        let mut found = Vec::new();
        for (line, event) in self.events.iter().enumerate() {
            checker.message(line as u64 + 1, event.json.as_bytes(), &mut found);
        }
        let ended = self.engine.open_sessions() == 0;
        if ended {
            checker.finish(&mut found);
        }
        found.retain(|finding| finding.weight == Weight::Error);
        assert!(found.is_empty(), "{found:#?}\n{:#?}", self.events);
    }

    /// Another machine goes on, whose clock and the other's may be so many seconds apart.
    pub fn take_over(&mut self, apart_seconds: u32) {
        let fresh = Secrets { seed: [self.records.len() as u8; 32], ..secrets() };
        let recovery = Recovery::new(fresh, Limits::default(), self.now);
        let mut recovery = recovery.with_margin(apart_seconds);
        for bytes in &self.records {
            recovery.replay(bytes, |_| {}).unwrap();
        }
        self.engine = recovery.finish(ClockTrust::Trusted);
        let (ann, phone) = (self.ann.clone(), self.phone);
        self.join(&ann, phone);
        self.drain();
    }

    pub fn restart(&mut self, trust: ClockTrust) {
        let records: Vec<&[u8]> = self.records.iter().map(Vec::as_slice).collect();
        let fresh = Secrets { seed: [self.records.len() as u8; 32], ..secrets() };
        self.engine = Engine::recover(fresh, Limits::default(), records, trust, self.now).unwrap();
        let (ann, phone) = (self.ann.clone(), self.phone);
        self.join(&ann, phone);
        self.drain();
    }
}

pub fn token_of(text: &str) -> ReplyToken {
    ReplyToken::parse(text).unwrap()
}

fn token_in(json: &str) -> String {
    let at = json.find("\"rpl_").expect("a request has a token") + 1;
    json[at..].split('"').next().unwrap().to_owned()
}
