//! Real records: an engine with one agent, one listener, and a day's work.
#![allow(dead_code, missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]
#![allow(clippy::disallowed_methods)] // tests of files

use std::path::{Path, PathBuf};

use aaep_engine::*;
use aaep_store::{ChainKey, Entry, Options, Sqlite, Unit};
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
    pub entries: Vec<Entry>,
    /// Reply tokens in the order of their requests.
    pub tokens: Vec<ReplyToken>,
}

/// The journal's key, which an attacker of these tests does not have.
pub fn key() -> ChainKey {
    ChainKey::new(&[9; 32])
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
            ann: Principal::new("ann's phone", Role::AccessibilityConsumer, "ann"),
            phone: SubscriptionId::from_bits(1),
            entries: Vec::new(),
            tokens: Vec::new(),
        };
        let (peer, subscription) = (&world.ann.clone(), world.phone);
        world.handle(Input::Joined { peer, subscription, confirms: true, clarifies: true });
        world
    }

    pub fn handle(&mut self, input: Input<'_>) -> Handled {
        let answer = self.engine.handle(input, self.now).unwrap();
        while let Some(output) = self.engine.poll_output() {
            match output {
                Output::Append { number, bytes } => {
                    self.entries.push(Entry { number, bytes });
                    self.engine.handle(Input::Persisted { number }, self.now).unwrap();
                }
                Output::Event(event) => {
                    if let Some(at) = event.json.find("\"rpl_") {
                        let token = ReplyToken::parse(&event.json[at + 1..at + 37]).unwrap();
                        self.tokens.push(token);
                    }
                }
                _ => {}
            }
        }
        answer
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
        match self.handle(Input::Open(open)) {
            Handled::Session(session) => session,
            other => panic!("{other:?}"),
        }
    }

    pub fn ask(&mut self, session: SessionId, amount: &str) -> RequestId {
        let agent = self.agent.clone();
        let payload = format!(
            r#"{{"action":"Send {amount} euros.","consequence":"They are gone.","timeout_seconds":300,
            "default_decision":"reject","risk_level":"high","irreversible":true}}"#
        );
        let arguments = format!(r#"{{"euros":"{amount}"}}"#);
        let answer = self.handle(Input::Ask(Ask {
            agent: &agent,
            session,
            question: &AgentQuestion::read(
                EventKind::AwaitingConfirmation,
                "transfer",
                &arguments,
                &payload,
            ),
            described_by: DescribedBy::Agent,
        }));
        match answer {
            Handled::Waiting { request, .. } => request,
            other => panic!("{other:?}"),
        }
    }

    pub fn reply(&mut self, token: &ReplyToken, decision: &str) {
        let (peer, phone) = (self.ann.clone(), self.phone);
        let reply = format!(
            r#"{{"type":"confirmation.reply","reply_token":"{}","decision":"{decision}","subscription_id":"{phone}","timestamp":"{}","decided_by":"Ann"}}"#,
            token.as_str(),
            self.now.wall,
        );
        let message = SubscriberMessage::parse(reply.as_bytes()).unwrap();
        self.handle(Input::Message { peer: &peer, message: &message, call: 1 });
    }

    pub fn invoke(&mut self, request: RequestId) {
        let agent = self.agent.clone();
        self.handle(Input::Invoke { agent: &agent, request, arguments: None });
    }

    pub fn more_time(&mut self, token: &ReplyToken) {
        let (peer, phone) = (self.ann.clone(), self.phone);
        let more = format!(
            r#"{{"type":"timing:extend","reply_token":"{}","subscription_id":"{phone}","timestamp":"{}","seconds":900}}"#,
            token.as_str(),
            self.now.wall,
        );
        let message = SubscriberMessage::parse(more.as_bytes()).unwrap();
        self.handle(Input::Message { peer: &peer, message: &message, call: 2 });
    }

    pub fn end(&mut self, session: SessionId) {
        let agent = self.agent.clone();
        self.handle(Input::Emit {
            agent: &agent,
            session,
            event: &AgentEvent::read(
                "aaep:agent.session.completed",
                r#"{"summary_normal":"Done."}"#,
            ),
            arguments: None,
        });
    }
}

/// A day's work: of five requests one is accepted and run, one rejected, one asked again with more
/// time, one left open; one belongs to a session that ended. Two replies do not count.
pub fn day() -> World {
    let mut world = World::new();
    let first = world.open();
    let accepted = world.ask(first, "800");
    let _rejected = world.ask(first, "20");
    let _extended = world.ask(first, "5");
    let _open = world.ask(first, "1");
    let tokens = world.tokens.clone();
    world.reply(&tokens[0], "accept");
    world.invoke(accepted);
    world.reply(&tokens[1], "reject");
    world.reply(&tokens[1], "accept");
    world.reply(&ReplyToken::from_bits(12), "accept");
    world.more_time(&tokens[2]);
    let second = world.open();
    world.ask(second, "3");
    world.end(second);
    world
}

/// The records of [`day`] in a new journal, two in a unit.
pub fn journal_with(path: &Path, options: Options, entries: &[Entry]) -> Sqlite {
    let mut journal = Sqlite::open(path, options, &key()).unwrap();
    for pair in entries.chunks(2) {
        let unit = Unit { entries: pair.to_vec(), notes: Vec::new() };
        journal.keep(&[unit]).unwrap();
    }
    journal
}

pub fn records(entries: &[Entry]) -> Vec<Vec<u8>> {
    entries.iter().map(|entry| entry.bytes.clone()).collect()
}

pub struct Place {
    pub directory: tempfile::TempDir,
}

/// Memory, where the system has such a place: for tests that are not about the disk.
pub fn workplace() -> tempfile::TempDir {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }.unwrap()
}

impl Place {
    pub fn new() -> Self {
        Self { directory: tempfile::tempdir().unwrap() }
    }

    pub fn in_memory() -> Self {
        Self { directory: workplace() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    pub fn journal(&self) -> PathBuf {
        self.path("journal.db")
    }
}
