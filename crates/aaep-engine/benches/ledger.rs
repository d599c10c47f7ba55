//! The ledger with a million requests waiting: memory for each, and the time to issue, resolve and
//! expire one at that size: `cargo xtask bench engine`.
#![allow(clippy::disallowed_methods, clippy::expect_used, missing_docs)] // a benchmark reads the clock

use std::time::{Duration, Instant};

use aaep_engine::*;
use aaep_types::{EventKind, LanguageTag, ReplyToken, SessionId, SubscriptionId, Timestamp};

const PENDING: usize = 1_000_000;
const SAMPLE: usize = 20_000;
const PER_SESSION: usize = 50;

struct Bench {
    engine: Engine,
    now: Now,
    agent: Principal,
    ann: Principal,
    sessions: Vec<SessionId>,
    /// Tokens of the requests that wait.
    waiting: Vec<ReplyToken>,
    event_bytes: usize,
    asked: usize,
}

fn main() {
    let mut bench = Bench::new();
    let grown = allocation_counter::measure(|| bench.fill());
    let bytes = (grown.bytes_current as usize - bench.event_bytes) / PENDING;
    println!(
        "{PENDING} requests wait; each takes {bytes} bytes beside its event and arguments (wanted: 1024 at most)"
    );
    let issued = bench.issue(SAMPLE);
    println!("issuing one:   {:>6.2} µs (wanted: 5 at most)", micros(issued, SAMPLE));
    let resolved = bench.resolve(SAMPLE);
    println!("resolving one: {:>6.2} µs (wanted: 5 at most)", micros(resolved, SAMPLE));
    let (expired, count) = bench.expire();
    println!(
        "expiring one:  {:>6.2} µs (wanted: 5 at most; {count} expired)",
        micros(expired, count)
    );
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}

impl Bench {
    fn new() -> Self {
        let limits = Limits {
            sessions: PENDING,
            pending_per_session: PER_SESSION * 2,
            prompts_per_window: u32::MAX,
            replies_per_second: u32::MAX,
            ..Limits::default()
        };
        let wall = Timestamp::from_millis(1_779_632_531_342).expect("a time of this century");
        let mut bench = Self {
            engine: Engine::new(Secrets { seed: [1; 32], token_key: [2; 32] }, limits),
            now: Now { boot: Boot(0), wall },
            agent: Principal::new("agent", Role::Agent, "ann"),
            ann: Principal::new("reader", Role::AccessibilityConsumer, "ann"),
            sessions: Vec::with_capacity(PENDING),
            waiting: Vec::with_capacity(PENDING + SAMPLE),
            event_bytes: 0,
            asked: 0,
        };
        let ann = bench.ann.clone();
        let subscription = SubscriptionId::from_bits(1);
        let joined = Input::Joined { peer: &ann, subscription, confirms: true, clarifies: true };
        bench.handle(joined);
        bench
    }

    fn handle(&mut self, input: Input<'_>) -> Answer {
        let answer = self.engine.handle(input, self.now).expect("nothing is refused here");
        self.drain();
        answer
    }

    fn drain(&mut self) {
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Append { number, .. } => {
                    let _ = self.engine.handle(Input::Persisted { number }, self.now);
                }
                Output::Event(event) if event.kind == Some(EventKind::AwaitingConfirmation) => {
                    let at = event.json.find("\"rpl_").expect("a request has a token") + 1;
                    self.waiting.extend(ReplyToken::parse(&event.json[at..at + 36]));
                    self.event_bytes += event.json.len();
                }
                _ => {}
            }
        }
    }

    fn open(&mut self) {
        let agent = self.agent.clone();
        let open = Open {
            agent: &agent,
            producer: r#"{"agent_id":"agent"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").expect("a tag"),
            lease_seconds: 100_000,
        };
        if let Answer::Session(session) = self.handle(Input::Open(open)) {
            self.sessions.push(session);
        }
    }

    fn ask(&mut self) {
        if self.asked.is_multiple_of(PER_SESSION) {
            self.open();
        }
        self.asked += 1;
        let arguments = format!("{{\"amount\":\"{}\"}}", self.asked);
        // The arguments are kept too, and do not count.
        self.event_bytes += arguments.len();
        // Requests end at different times; one in fifty soon, without a countdown.
        let timeout = if self.asked.is_multiple_of(50) { 60 } else { 10_000 + self.asked % 70_000 };
        let payload = format!(
            r#"{{"action":"Send {} euros.","consequence":"They are gone.","timeout_seconds":{timeout},"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send them?"}}"#,
            self.asked
        );
        let agent = self.agent.clone();
        let session = *self.sessions.last().expect("one is open");
        self.handle(Input::Ask(Ask {
            agent: &agent,
            session,
            kind: EventKind::AwaitingConfirmation,
            tool: "send",
            arguments: &arguments,
            payload: &payload,
        }));
    }

    fn fill(&mut self) {
        for _ in 0..PENDING {
            self.ask();
        }
    }

    fn issue(&mut self, count: usize) -> Duration {
        let start = Instant::now();
        for _ in 0..count {
            self.ask();
        }
        start.elapsed()
    }

    /// Answers requests from all over the ledger.
    fn resolve(&mut self, count: usize) -> Duration {
        let ann = self.ann.clone();
        let stamp = self.now.wall;
        let step = self.waiting.len() / count;
        let replies: Vec<String> = (0..count)
            .map(|index| {
                let token = self.waiting[index * step];
                format!(r#"{{"type":"confirmation.reply","reply_token":"{}","decision":"reject","subscription_id":"{}","timestamp":"{stamp}"}}"#, token.as_str(), SubscriptionId::from_bits(1))
            })
            .collect();
        let before = self.engine.pending_requests();
        let start = Instant::now();
        for (call, reply) in replies.iter().enumerate() {
            self.handle(Input::Message { peer: &ann, bytes: reply.as_bytes(), call: call as u64 });
        }
        let time = start.elapsed();
        assert_eq!(before - self.engine.pending_requests(), count, "every reply counts");
        time
    }

    /// Lets time pass until a good many have ended.
    fn expire(&mut self) -> (Duration, usize) {
        let before = self.engine.pending_requests();
        self.now.boot = Boot(0).after_seconds(61);
        let start = Instant::now();
        self.handle(Input::Tick);
        (start.elapsed(), before - self.engine.pending_requests())
    }
}
