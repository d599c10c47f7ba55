//! A ledger to fill, and what is done to it. What agents and people would have written is written
//! just before, a few hundred messages at a time; it comes fresh from the network in real life.
//! Besides handing it in, what is measured takes every output, and says of every record that it is
//! durable.

use std::sync::Arc;

use aaep_engine::*;
use aaep_types::{
    DescribedBy, EventKind, LanguageTag, ReplyToken, SessionId, SubscriptionId, Timestamp,
};

/// One request in so many ends soon: at different times, each without a countdown.
const SOON_ONE_IN: usize = 50;
const SOON_SECONDS: usize = 60;
/// How many messages are written at a time.
const BATCH: usize = 400;
const START_MILLIS: i64 = 1_779_632_531_342;

/// How full the ledger is.
#[derive(Clone, Copy)]
pub struct Shape {
    pub pending: usize,
    /// How many requests wait in each session. Mostly it is one, because an agent that asks waits for
    /// the answer. Then asking makes two events, since the state becomes `awaiting_input`, and
    /// resolving makes one. With fifty it is the other way round: the state leaves `awaiting_input`
    /// with the outcome and returns to it because more waits.
    pub per_session: usize,
}

impl Shape {
    /// How many requests are issued or resolved in one round; and how many of those that wait end
    /// soon.
    pub fn sample(self) -> usize {
        self.pending / SOON_ONE_IN
    }
}

/// A request that an agent is about to make.
struct Question {
    session: SessionId,
    arguments: String,
    payload: String,
}

pub struct Bench {
    engine: Engine,
    now: Now,
    agent: Principal,
    ann: Principal,
    shape: Shape,
    /// Events that ask, until their tokens are looked for.
    events: Vec<Arc<str>>,
    /// Tokens of the requests that wait.
    waiting: Vec<ReplyToken>,
    /// In how many rounds some of them were answered.
    answered: usize,
    asked: usize,
}

impl Bench {
    pub fn new(shape: Shape) -> Self {
        let limits = Limits {
            sessions: usize::MAX,
            sessions_per_user: usize::MAX,
            sessions_per_principal: usize::MAX,
            pending_requests_per_user: usize::MAX,
            pending_requests_per_principal: usize::MAX,
            pending_bytes: usize::MAX,
            pending_bytes_per_user: usize::MAX,
            pending_bytes_per_principal: usize::MAX,
            pending_per_session: shape.per_session,
            prompts_per_window: u32::MAX,
            replies_per_second: u32::MAX,
            ..Limits::default()
        };
        let wall = Timestamp::from_millis(START_MILLIS).expect("a time of this century");
        let ann = Principal::new("reader", Role::AccessibilityConsumer, "ann");
        let mut bench = Self {
            engine: Engine::new(Secrets { seed: [1; 32], token_key: [2; 32] }, limits),
            now: Now { boot: Boot(0), wall },
            agent: Principal::new("agent", Role::Agent, "ann"),
            ann: ann.clone(),
            shape,
            events: Vec::with_capacity(shape.sample()),
            waiting: Vec::with_capacity(shape.pending),
            answered: 0,
            asked: 0,
        };
        let subscription = SubscriptionId::from_bits(1);
        bench.handle(Input::Joined { peer: &ann, subscription, confirms: true, clarifies: true });
        bench
    }

    fn handle(&mut self, input: Input<'_>) -> Handled {
        // Time passes, so that leases are renewed and everything is due at a time of its own.
        self.now.boot = Boot(self.now.boot.0 + 10);
        let wall = START_MILLIS + self.now.boot.0 as i64 / 1000;
        self.now.wall = Timestamp::from_millis(wall).expect("a time of this century");
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

    fn open(&mut self) -> SessionId {
        let agent = self.agent.clone();
        let open = Open {
            agent: &agent,
            producer: r#"{"agent_id":"agent"}"#,
            summary: "Working.",
            language: LanguageTag::parse("en").expect("a tag"),
            lease_seconds: 100_000,
            payload: "",
        };
        match self.handle(Input::Open(open)) {
            Handled::Session(session) => session,
            other => unreachable!("{other:?}"),
        }
    }

    /// Fills the ledger, and returns how many bytes of events and arguments it keeps for that.
    pub fn fill(&mut self) -> usize {
        (0..SOON_ONE_IN).map(|_| self.issue(&mut |work| work())).sum()
    }

    /// Opens sessions, then asks in them, so many times as there are in a sample; `measured` runs the
    /// part that counts. Returns how many bytes of events and arguments the ledger keeps for that.
    pub fn issue(&mut self, measured: &mut dyn FnMut(&mut dyn FnMut())) -> usize {
        let count = self.shape.sample();
        let sessions: Vec<_> = (0..count / self.shape.per_session).map(|_| self.open()).collect();
        let mut bytes = 0;
        for first in (0..count).step_by(BATCH) {
            let session = |place: usize| sessions[place / self.shape.per_session];
            let places = first..count.min(first + BATCH);
            let questions: Vec<_> =
                places.map(|place| question(session(place), self.asked + place + 1)).collect();
            measured(&mut || questions.iter().for_each(|question| self.ask(question)));
            bytes += questions.iter().map(|question| question.arguments.len()).sum::<usize>();
            bytes += self.note_tokens();
        }
        self.asked += count;
        bytes
    }

    #[inline(never)]
    fn ask(&mut self, question: &Question) {
        let agent = self.agent.clone();
        self.handle(Input::Ask(Ask {
            agent: &agent,
            session: question.session,
            question: &AgentQuestion::read(
                EventKind::AwaitingConfirmation,
                "send",
                &question.arguments,
                &question.payload,
            ),
            described_by: DescribedBy::Agent,
        }));
    }

    /// Notes the tokens of what was asked, and returns how many bytes the events had.
    fn note_tokens(&mut self) -> usize {
        let mut bytes = 0;
        for json in self.events.drain(..) {
            let at = json.find("\"rpl_").expect("a request has a token") + 1;
            self.waiting.extend(ReplyToken::parse(&json[at..at + 36]));
            bytes += json.len();
        }
        bytes
    }

    /// Answers requests from all over the ledger, so many as there are in a sample, but none that ends
    /// soon; `measured` runs the part that counts.
    pub fn resolve(&mut self, measured: &mut dyn FnMut(&mut dyn FnMut())) {
        let (count, before) = (self.shape.sample(), self.engine.pending_requests());
        for first in (0..count).step_by(BATCH) {
            let places = (first..count.min(first + BATCH)).map(|place| place * SOON_ONE_IN);
            let tokens = places.map(|place| self.waiting[place + self.answered]);
            let replies: Vec<_> = tokens.map(|token| reply(token, self.now)).collect();
            measured(&mut || replies.iter().for_each(|reply| self.answer(reply)));
        }
        self.answered += 1;
        assert_eq!(before - self.engine.pending_requests(), count, "every reply counts");
    }

    #[inline(never)]
    fn answer(&mut self, reply: &str) {
        let ann = self.ann.clone();
        if let Ok(message) = SubscriberMessage::parse(reply.as_bytes()) {
            self.handle(Input::Message { peer: &ann, message: &message, call: 1 });
        }
    }

    /// Comes back whenever something is due, as a driver does, until so many have ended.
    #[inline(never)]
    pub fn expire(&mut self, count: usize) {
        let left = self.engine.pending_requests() - count;
        while self.engine.pending_requests() > left {
            self.now.boot = self.engine.next_deadline().expect("something waits");
            let _ = self.engine.handle(Input::Tick, self.now);
            self.drain();
        }
    }

    /// Comes back so late that all those that end soon have ended; returns how many they were.
    #[inline(never)]
    pub fn expire_at_once(&mut self) -> usize {
        let before = self.engine.pending_requests();
        self.now.boot = Boot(0).after_seconds(3 * SOON_SECONDS as u64);
        self.handle(Input::Tick);
        before - self.engine.pending_requests()
    }
}

fn question(session: SessionId, asked: usize) -> Question {
    let soon = asked.is_multiple_of(SOON_ONE_IN);
    let timeout = if soon { SOON_SECONDS } else { 10_000 + asked % 70_000 };
    Question {
        session,
        arguments: format!("{{\"amount\":\"{asked}\"}}"),
        payload: format!(
            r#"{{"action":"Send {asked} euros.","consequence":"They are gone.","timeout_seconds":{timeout},"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send them?"}}"#
        ),
    }
}

fn reply(token: ReplyToken, now: Now) -> String {
    format!(
        r#"{{"type":"confirmation.reply","reply_token":"{}","decision":"reject","subscription_id":"{}","timestamp":"{}"}}"#,
        token.as_str(),
        SubscriptionId::from_bits(1),
        now.wall
    )
}
