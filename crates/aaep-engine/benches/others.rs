//! What an ask, an output and a disconnect cost among few and among many others: `cargo xtask bench
//! engine`. What others hold must not matter, so what counts is the ratio.
#![allow(clippy::disallowed_methods, clippy::expect_used, missing_docs)] // it reads the clock

use std::time::Instant;

use aaep_engine::*;
use aaep_types::{
    DescribedBy, EventKind, LanguageTag, Message, SessionId, SubscriptionId, Timestamp,
};

/// How many others there are.
const OTHERS: [usize; 2] = [100, 10_000];
/// The two are measured in turn, so that a busy machine slows both.
const ROUNDS: usize = 9;
/// How often each thing is done in a round.
const TIMES: usize = 200;

struct House {
    producer: Producer,
    now: Now,
}

/// A user with an agent, a listener and one request that waits.
#[derive(Clone)]
struct User {
    agent: Principal,
    phone: Principal,
    session: SessionId,
    subscription: SubscriptionId,
}

fn secrets() -> Secrets {
    Secrets { seed: [1; 32], token_key: [2; 32] }
}

impl House {
    fn with(others: usize) -> (Self, User) {
        let limits = Limits {
            prompts_per_window: u32::MAX / 100,
            pending_per_session: usize::MAX,
            ..Limits::default()
        };
        let now =
            Now { boot: Boot(5), wall: Timestamp::from_millis(1_779_632_531_342).expect("a time") };
        let offer = Offer {
            producer: r#"{"agent_id":"hub"}"#.into(),
            languages: ["en", "de"].map(|tag| LanguageTag::parse(tag).expect("a tag")).to_vec(),
            extensions: Vec::new(),
            manifest_uri: None,
            signed_manifest: None,
        };
        let producer = Producer::new(Engine::new(secrets(), limits), secrets(), limits, offer, now);
        let mut house = Self { producer, now };
        let user = house.user(0);
        for number in 1..=others {
            house.user(number);
        }
        (house, user)
    }

    fn user(&mut self, number: usize) -> User {
        let name = format!("user{number}");
        let agent = Principal::new(&format!("agent of {name}"), Role::Agent, &name);
        let phone = Principal::new(&format!("phone of {name}"), Role::AccessibilityConsumer, &name);
        let subscription = self.subscribe(&phone, r#"{"supports_confirmation_reply":true}"#);
        self.producer.attach(subscription, &phone, None, self.now).expect("a stream");
        let session = self.open(&agent);
        let user = User { agent, phone, session, subscription };
        self.ask(&user, "first");
        self.output(&user, 0, 0);
        user
    }

    fn subscribe(&mut self, phone: &Principal, capabilities: &str) -> SubscriptionId {
        let request = format!(
            r#"{{"type":"subscription.request","aaep_version":"1.0.0","subscriber_id":"x","capabilities":{capabilities}}}"#
        );
        let answer = self.producer.handshake(phone, request.as_bytes(), self.now);
        let answer = answer.expect("a request").expect("an answer");
        let Ok(Message::Accepted(accepted)) = Message::parse(answer.as_bytes()) else {
            unreachable!("{answer}")
        };
        accepted.subscription_id
    }

    fn open(&mut self, agent: &Principal) -> SessionId {
        let open = Open {
            agent,
            producer: r#"{"agent_id":"worker"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").expect("a language"),
            lease_seconds: 3600,
            payload: "",
        };
        let Ok(Handled::Session(session)) = self.handle(Input::Open(open)) else { unreachable!() };
        session
    }

    fn handle(&mut self, input: Input<'_>) -> Result<Handled, Refusal> {
        let answer = self.producer.handle(input, self.now);
        self.drain();
        answer
    }

    fn drain(&mut self) {
        while let Some(output) = self.producer.poll_output(self.now) {
            if let ProducerOutput::Engine(Output::Append { number, .. }) = output {
                self.producer.handle(Input::Persisted { number }, self.now).expect("done");
            }
        }
    }

    /// Asks, and takes it back.
    fn ask(&mut self, user: &User, what: &str) -> RequestId {
        let arguments = format!(r#"{{"what":"{what}"}}"#);
        let answer = self.handle(Input::Ask(Ask {
agent: &user.agent,
session: user.session,
question: &AgentQuestion::read(EventKind::AwaitingConfirmation, "delete", &arguments, r#"{"action":"Delete it.","consequence":"It is gone.","timeout_seconds":600,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Delete it?"}"#),
described_by: DescribedBy::Agent,
}));
        match answer {
            Ok(Handled::Waiting { request, .. }) => request,
            other => unreachable!("{other:?}"),
        }
    }

    /// Begins an output and completes it.
    fn output(&mut self, user: &User, round: usize, number: usize) {
        let payload = format!(
            r#"{{"chunk":"Hello.","position":0,"complete":true,"output_id":"out_{round}x{number}"}}"#
        );
        let (agent, session) = (&user.agent, user.session);
        let type_name = EventKind::OutputStreaming.as_str();
        let event = &AgentEvent::read(type_name, &payload);
        let emit = Input::Emit { agent, session, event, arguments: None };
        self.handle(emit).expect("an output");
    }

    /// Loses its connection and comes back.
    fn come_back(&mut self, user: &User) {
        self.producer.detach(user.subscription, self.now);
        self.drain();
        self.producer.attach(user.subscription, &user.phone, None, self.now).expect("a stream");
        self.drain();
    }
}

fn main() {
    println!(
        "Microseconds among {} and {} others, and the ratio; medians of {ROUNDS} rounds.",
        OTHERS[0], OTHERS[1]
    );
    println!(
        "Wanted: no more than twice as much among the many, for memory that is not in a cache."
    );
    let mut houses = OTHERS.map(House::with);
    type Work = fn(&mut House, &User, usize, usize);
    let works: [(&str, Work); 3] = [
        ("an ask, taken back", |house, user, round, number| {
            let request = house.ask(user, &format!("{round} {number}"));
            house.handle(Input::Withdraw { agent: &user.agent, request }).expect("it waits");
        }),
        ("an output", |house, user, round, number| house.output(user, round + 1, number)),
        ("a disconnect and a return", |house, user, _, _| house.come_back(user)),
    ];
    for (what, work) in works {
        let mut times = [Vec::new(), Vec::new()];
        for round in 0..ROUNDS {
            for ((house, user), times) in houses.iter_mut().zip(&mut times) {
                let start = Instant::now();
                for number in 0..TIMES {
                    work(house, user, round, number);
                }
                times.push(start.elapsed().as_secs_f64() * 1e6 / TIMES as f64);
            }
        }
        let ratios = times[1].iter().zip(&times[0]).map(|(many, few)| many / few).collect();
        let [few, many] = times;
        println!("  {what}: {:.2}, {:.2}, {:.2} times", median(few), median(many), median(ratios));
    }
    longest_steps();
}

/// What one step costs at its bounds: nobody else has the core meanwhile.
fn longest_steps() {
    let (mut house, user) = House::with(0);
    let most = Limits::default().sessions_per_principal;
    for _ in 1..most {
        let session = house.open(&user.agent);
        house.ask(&User { session, ..user.clone() }, "first");
    }
    println!("Milliseconds that one step takes at its bounds:");
    let mut attach = |what: &str, capabilities: &str| {
        let subscription = house.subscribe(&user.phone, capabilities);
        let start = Instant::now();
        house.producer.attach(subscription, &user.phone, None, house.now).expect("a stream");
        let took = start.elapsed();
        // The hub's connection is full after 64 KiB, and the rest waits.
        house.producer.pause(subscription);
        house.drain();
        house.producer.close(subscription, &user.phone, house.now);
        println!(
            "  attaching to {most} sessions, each with a question, {what}: {:.1}",
            millis(took)
        );
    };
    attach("plain", r#"{"supports_confirmation_reply":true}"#);
    attach(
        "terse, in German",
        r#"{"supports_confirmation_reply":true,"preferred_verbosity":"terse","languages":["de"]}"#,
    );
    attach(
        "merged by sentences",
        r#"{"supports_confirmation_reply":true,"coalesce_boundaries":["sentence"]}"#,
    );
    for kibibytes in [1, 15] {
        let chunk = "All work and no play. ".repeat(kibibytes * 1024 / 22);
        let payload = format!(r#"{{"chunk":"{chunk}","position":0,"complete":true}}"#);
        let (agent, session) = (&user.agent, user.session);
        let type_name = EventKind::OutputStreaming.as_str();
        let start = Instant::now();
        let event = &AgentEvent::read(type_name, &payload);
        let emit = Input::Emit { agent, session, event, arguments: None };
        house.handle(emit).expect("an output");
        println!("  an output of {kibibytes} KiB: {:.2}", millis(start.elapsed()));
    }
}

fn millis(took: std::time::Duration) -> f64 {
    took.as_secs_f64() * 1e3
}

fn median(mut all: Vec<f64>) -> f64 {
    all.sort_by(f64::total_cmp);
    all[all.len() / 2]
}
