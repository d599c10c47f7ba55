//! What `park`, `decision` and `invoke` add to the engine's own work, with the hub in the same
//! process: `cargo xtask bench agent`.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used, missing_docs)] // it reads the clock

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use aaep_agent::{Agent, Approval, Confirmation, Irreversible, RiskLevel};
use aaep_engine::{
    AgentQuestion, Ask, Boot, Engine, Handled, Input, Limits, Now, Open, Output, Principal, Role,
    Secrets, SubscriberMessage,
};
use aaep_hub::Hub;
use aaep_hub::config::{Config, Development, UnixSocket};
use aaep_transport::client::{HttpClient, Options};
use aaep_types::json::Canonical;
use aaep_types::{
    DescribedBy, EventKind, LanguageTag, ReplyToken, SessionId, SubscriptionId, Timestamp,
};
use serde_json::{Value, json};

/// Requests that are measured, and how many of them a session asks.
const REQUESTS: usize = 2000;
const PER_SESSION: usize = 20;

/// What an author is promised, in microseconds.
const WANTED: f64 = 20.0;

fn main() {
    let engine = engine_alone();
    println!("{REQUESTS} requests, each parked, decided and invoked; medians in microseconds:");
    print("the engine alone", engine);
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let whole = runtime.block_on(async { tokio::spawn(through_the_agent()).await.unwrap() });
    print("through the agent", whole);
    let added = whole.iter().sum::<f64>() - engine.iter().sum::<f64>();
    println!("added: {added:.1} µs (wanted: {WANTED} at most)");
}

fn print(name: &str, [park, decision, invoke]: [f64; 3]) {
    let sum = park + decision + invoke;
    println!("{name}: park {park:.1}, decision {decision:.1}, invoke {invoke:.1}: {sum:.1} µs");
}

/// Times of single requests. Their median does not mind what else the machine does.
#[derive(Default)]
struct Times(Vec<Duration>);

impl Times {
    fn note(&mut self, since: Instant) {
        self.0.push(since.elapsed());
    }

    fn micros(mut self) -> f64 {
        self.0.sort();
        self.0[self.0.len() / 2].as_secs_f64() * 1e6
    }
}

fn request(number: usize) -> Confirmation<Irreversible> {
    let action = format!("Send {number} euros.");
    Confirmation::irreversible("send", action, "They are gone.")
        .risk(RiskLevel::High)
        .arguments(&json!({ "amount": number.to_string() }))
}

async fn through_the_agent() -> [f64; 3] {
    let mut config = Config {
        listen: vec![SocketAddr::from(([127, 0, 0, 1], 0))],
        ephemeral: true,
        development: Development { local_replies: true, ..Development::default() },
        unix_socket: UnixSocket { enabled: false, path: None },
        ..Config::default()
    };
    config.limits.prompts_per_window = u32::MAX;
    config.limits.replies_per_second = u32::MAX;
    let running = Hub::builder().config(config).start().await.unwrap();
    let agent = Agent::embed(running.hub(), "agent").unwrap();
    let mut sessions = Vec::new();
    for _ in 0..REQUESTS / PER_SESSION {
        sessions.push(agent.session("Working.").open().await.unwrap());
    }
    let [mut park, mut decision, mut spend] = <[Times; 3]>::default();
    let mut parked = Vec::with_capacity(REQUESTS);
    for number in 0..REQUESTS {
        let session = &sessions[number / PER_SESSION];
        // What is asked is made outside the measurement, on both sides.
        let request = request(number);
        let start = Instant::now();
        let one = session.park(number, request).await.unwrap();
        park.note(start);
        parked.push(one);
    }
    say_yes(&running.url(running.addresses()[0])).await;
    let mut approvals: Vec<Approval<usize>> = Vec::with_capacity(REQUESTS);
    for parked in &parked {
        let start = Instant::now();
        let approval = parked.decision().await.unwrap();
        decision.note(start);
        approvals.push(approval);
    }
    let mut calls = Vec::with_capacity(REQUESTS);
    for (number, (parked, approval)) in parked.into_iter().zip(approvals).enumerate() {
        let session = &sessions[number / PER_SESSION];
        let start = Instant::now();
        let call = session.invoke(parked, approval).await.unwrap();
        spend.note(start);
        calls.push(call);
    }
    std::mem::forget((calls, sessions));
    [park.micros(), decision.micros(), spend.micros()]
}

/// Somebody comes, hears what waits, says yes to all of it, and leaves.
async fn say_yes(url: &str) {
    let client = HttpClient::new(url, Options::default()).unwrap();
    let request = json!({
        "type": "subscription.request", "aaep_version": "1.0.0", "subscriber_id": "bench",
        "capabilities": { "supports_confirmation_reply": true },
    });
    let accepted = client.post("subscriptions", request.to_string()).await.unwrap();
    let accepted: Value = serde_json::from_slice(&accepted.body).unwrap();
    let subscription = accepted["subscription_id"].as_str().unwrap();
    let path = format!("events?subscription_id={subscription}");
    let mut events = client.events(&path, None).await.unwrap();
    let mut answered = 0;
    while answered < REQUESTS {
        let event: Value =
            serde_json::from_str(&events.next().await.unwrap().unwrap().data).unwrap();
        if event["reply_token"].is_string() {
            let reply = json!({
                "type": "confirmation.reply", "reply_token": event["reply_token"],
                "decision": "accept", "subscription_id": subscription,
                "timestamp": event["timestamp"],
            });
            assert_eq!(client.post("replies", reply.to_string()).await.unwrap().status, 204);
            answered += 1;
        }
    }
}

/// The same inputs, given to the machine itself.
struct Alone {
    engine: Engine,
    now: Now,
    tokens: Vec<ReplyToken>,
}

impl Alone {
    fn handle(&mut self, input: Input<'_>) -> Handled {
        let answer = self.engine.handle(input, self.now).expect("nothing is refused here");
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Append { number, .. } => {
                    let _ = self.engine.handle(Input::Persisted { number }, self.now);
                }
                Output::Event(event) => self.note(&event),
                _ => {}
            }
        }
        answer
    }

    fn note(&mut self, event: &aaep_engine::Emitted) {
        if event.kind == Some(EventKind::AwaitingConfirmation) {
            let at = event.json.find("\"rpl_").expect("a request has a token") + 1;
            self.tokens.extend(ReplyToken::parse(&event.json[at..at + 36]));
        }
    }
}

fn engine_alone() -> [f64; 3] {
    let limits =
        Limits { prompts_per_window: u32::MAX, replies_per_second: u32::MAX, ..Limits::default() };
    let wall = Timestamp::from_millis(1_779_632_531_342).expect("a time of this century");
    let now = Now { boot: Boot(0), wall };
    let engine = Engine::new(Secrets { seed: [1; 32], token_key: [2; 32] }, limits);
    let mut alone = Alone { engine, now, tokens: Vec::new() };
    let agent = Principal::new("agent", Role::Agent, "ann");
    let ann = Principal::new("reader", Role::AccessibilityConsumer, "ann");
    let mut sessions: Vec<SessionId> = Vec::new();
    for _ in 0..REQUESTS / PER_SESSION {
        let open = Open {
            agent: &agent,
            producer: r#"{"agent_id":"agent"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").expect("a tag"),
            lease_seconds: 100_000,
            payload: "",
        };
        if let Handled::Session(session) = alone.handle(Input::Open(open)) {
            sessions.push(session);
        }
    }
    let [mut park, mut decision, mut spend] = <[Times; 3]>::default();
    let mut requests = Vec::new();
    for number in 0..REQUESTS {
        let arguments = format!(r#"{{"amount":"{number}"}}"#);
        let payload = format!(
            r#"{{"action":"Send {number} euros.","consequence":"They are gone.","timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true,"reversibility":"irreversible","summary_normal":"Send {number} euros.","summary_detailed":"Send {number} euros. They are gone."}}"#
        );
        let ask = Ask {
            agent: &agent,
            session: sessions[number / PER_SESSION],
            question: &AgentQuestion::read(
                EventKind::AwaitingConfirmation,
                "send",
                &arguments,
                &payload,
            ),
            described_by: DescribedBy::Agent,
        };
        let start = Instant::now();
        let answer = alone.handle(Input::Ask(ask));
        park.note(start);
        if let Handled::Waiting { request, .. } = answer {
            requests.push((request, arguments));
        }
    }
    let subscription = SubscriptionId::from_bits(1);
    alone.handle(Input::Joined { peer: &ann, subscription, confirms: true, clarifies: true });
    for (call, token) in std::mem::take(&mut alone.tokens).into_iter().enumerate() {
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{}","decision":"accept","subscription_id":"{subscription}","timestamp":"{wall}"}}"#,
            token.as_str()
        );
        let message = SubscriberMessage::parse(reply.as_bytes()).unwrap();
        alone.handle(Input::Message { peer: &ann, message: &message, call: call as u64 });
    }
    for (request, _) in &requests {
        let start = Instant::now();
        std::hint::black_box(alone.engine.request(&agent, *request));
        decision.note(start);
    }
    for (request, arguments) in &requests {
        let arguments = Canonical::of(arguments).expect("sound JSON");
        let (request, arguments) = (*request, Some(&arguments));
        let start = Instant::now();
        alone.handle(Input::Invoke { agent: &agent, request, arguments });
        spend.note(start);
    }
    [park.micros(), decision.micros(), spend.micros()]
}
