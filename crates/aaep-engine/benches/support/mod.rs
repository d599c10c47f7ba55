//! A ledger to fill.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aaep_engine::*;
use aaep_types::{EventKind, LanguageTag, ReplyToken, SessionId, SubscriptionId, Timestamp};

/// How many requests are issued and resolved for a measurement, and about how many expire.
pub const SAMPLE: usize = 20_000;

/// When the first ones end; without a countdown.
const SOON_SECONDS: u64 = 60;
const START_MILLIS: i64 = 1_779_632_531_342;

/// How full the ledger is.
#[derive(Clone, Copy)]
pub struct Shape {
    pub pending: usize,
    /// Requests that wait in each session. With one, the agent waits for its answer before it goes
    /// on; that is what most do. With fifty, every resolution makes two events: the state leaves
    /// `awaiting_input` with the outcome, and returns to it because more waits.
    pub per_session: usize,
}

/// What an agent says when it asks. Made before the time is taken.
struct Question {
    arguments: String,
    payload: String,
}

pub struct Bench {
    engine: Engine,
    now: Now,
    agent: Principal,
    ann: Principal,
    shape: Shape,
    session: Option<SessionId>,
    /// Events that ask, until their tokens are looked for.
    events: Vec<Arc<str>>,
    /// Tokens of the requests that wait.
    waiting: Vec<ReplyToken>,
    /// Bytes of events and arguments, which are kept for redelivery and do not count.
    pub event_bytes: usize,
    asked: usize,
}

impl Bench {
    pub fn new(shape: Shape) -> Self {
        let limits = Limits {
            sessions: usize::MAX,
            pending_per_session: shape.per_session * 2,
            prompts_per_window: u32::MAX,
            replies_per_second: u32::MAX,
            ..Limits::default()
        };
        let wall = Timestamp::from_millis(START_MILLIS).expect("a time of this century");
        let mut bench = Self {
            engine: Engine::new(Secrets { seed: [1; 32], token_key: [2; 32] }, limits),
            now: Now { boot: Boot(0), wall },
            agent: Principal::new("agent", Role::Agent, "ann"),
            ann: Principal::new("reader", Role::AccessibilityConsumer, "ann"),
            shape,
            session: None,
            events: Vec::with_capacity(SAMPLE),
            waiting: Vec::with_capacity(shape.pending + SAMPLE),
            event_bytes: 0,
            asked: 0,
        };
        let ann = bench.ann.clone();
        let subscription = SubscriptionId::from_bits(1);
        let joined = Input::Joined { peer: &ann, subscription, confirms: true, clarifies: true };
        bench.handle(joined);
        bench
    }

    /// Time passes: from one input to the next this long.
    fn pass_micros(&mut self, micros: u64) {
        self.now.boot = Boot(self.now.boot.0 + micros);
        let wall = START_MILLIS + self.now.boot.0 as i64 / 1000;
        self.now.wall = Timestamp::from_millis(wall).expect("a time of this century");
    }

    fn handle(&mut self, input: Input<'_>) -> Answer {
        self.pass_micros(10);
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
                    self.events.push(event.json);
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
            self.session = Some(session);
        }
    }

    fn questions(&mut self, count: usize) -> Vec<Question> {
        let mut question = || {
            self.asked += 1;
            let asked = self.asked;
            // Requests end at different times; one in fifty soon, without a countdown.
            let timeout = if asked.is_multiple_of(50) {
                SOON_SECONDS as usize
            } else {
                10_000 + asked % 70_000
            };
            Question {
                arguments: format!("{{\"amount\":\"{asked}\"}}"),
                payload: format!(
                    r#"{{"action":"Send {asked} euros.","consequence":"They are gone.","timeout_seconds":{timeout},"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send them?"}}"#,
                ),
            }
        };
        (0..count).map(|_| question()).collect()
    }

    #[inline(never)]
    fn ask(&mut self, question: &Question) {
        let agent = self.agent.clone();
        let session = self.session.expect("one is open");
        self.handle(Input::Ask(Ask {
            agent: &agent,
            session,
            kind: EventKind::AwaitingConfirmation,
            tool: "send",
            arguments: &question.arguments,
            payload: &question.payload,
        }));
    }

    pub fn fill(&mut self) {
        for _ in 0..self.shape.pending / SAMPLE {
            self.issue();
        }
    }

    /// Asks in sessions that are opened for it, and returns the time that asking took.
    pub fn issue(&mut self) -> Duration {
        let questions = self.questions(SAMPLE);
        let mut time = Duration::ZERO;
        for questions in questions.chunks(self.shape.per_session) {
            self.open();
            let start = Instant::now();
            questions.iter().for_each(|question| self.ask(question));
            time += start.elapsed();
        }
        // The arguments are kept too, and do not count.
        self.event_bytes +=
            questions.iter().map(|question| question.arguments.len()).sum::<usize>();
        for json in self.events.drain(..) {
            let at = json.find("\"rpl_").expect("a request has a token") + 1;
            self.waiting.extend(ReplyToken::parse(&json[at..at + 36]));
            self.event_bytes += json.len();
        }
        time
    }

    /// Answers requests from all over the ledger.
    #[inline(never)]
    pub fn resolve(&mut self) -> Duration {
        let ann = self.ann.clone();
        let stamp = self.now.wall;
        let step = self.waiting.len() / SAMPLE;
        let replies: Vec<String> = (0..SAMPLE)
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
        assert_eq!(before - self.engine.pending_requests(), SAMPLE, "every reply counts");
        time
    }

    /// Comes back whenever something is due, as a driver does, until half of those that end soon have
    /// ended: the time, and how many they were.
    #[inline(never)]
    pub fn expire(&mut self) -> (Duration, usize) {
        let before = self.engine.pending_requests();
        let end = Boot(self.now.boot.0.div_ceil(2)).after_seconds(SOON_SECONDS);
        let start = Instant::now();
        while let Some(due) = self.engine.next_deadline().filter(|due| *due < end) {
            self.now.boot = due;
            let _ = self.engine.handle(Input::Tick, self.now);
            self.drain();
        }
        (start.elapsed(), before - self.engine.pending_requests())
    }

    /// Comes back so late that all the others have ended in the meantime.
    pub fn expire_at_once(&mut self) -> (Duration, usize) {
        let before = self.engine.pending_requests();
        self.now.boot = Boot(0).after_seconds(SOON_SECONDS * 3);
        let start = Instant::now();
        self.handle(Input::Tick);
        (start.elapsed(), before - self.engine.pending_requests())
    }
}
