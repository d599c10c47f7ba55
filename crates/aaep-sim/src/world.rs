//! The world around an engine: everything that comes out is carried out here, and nothing goes in
//! but through here, so the oracle sees both.

use aaep_engine::{
    Answer, Emitted, Engine, Input, Limits, Output, Record, Refusal, Rules, Secrets,
};
use aaep_types::{SessionId, SubscriptionId, ToolCallId};

use crate::cast::{Cast, LISTENERS, Question};
use crate::clocks::Clocks;
use crate::disk::Disk;
use crate::oracle::{Cause, Line, Listener, Oracle, Reply};
use crate::power::Script;
use crate::random::Random;
use crate::witness::Witness;

/// A session as its agent knows it.
#[derive(Debug)]
pub(crate) struct Errand {
    pub(crate) session: SessionId,
    pub(crate) agent: usize,
    /// What it asked, in this order.
    pub(crate) asked: Vec<(u128, &'static Question)>,
    pub(crate) running: Vec<ToolCallId>,
    pub(crate) written: u64,
    /// The agent has crashed, or is done; only an attacker still uses this session.
    pub(crate) over: bool,
}

/// A request as people have heard it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Prompt {
    pub(crate) token: u128,
    pub(crate) user: usize,
    pub(crate) confirmation: bool,
}

pub(crate) struct World<'c, R: Rules> {
    pub(crate) cast: &'c Cast,
    pub(crate) random: Random,
    pub(crate) clocks: Clocks,
    pub(crate) disk: Disk,
    /// Where each record that was written ends in the file.
    pub(crate) ends: Vec<usize>,
    /// Records that found no room yet.
    pub(crate) unwritten: Vec<Vec<u8>>,
    /// None while the hub is down.
    pub(crate) engine: Option<Engine<R>>,
    pub(crate) token_key: [u8; 32],
    pub(crate) errands: Vec<Errand>,
    pub(crate) prompts: Vec<Prompt>,
    /// Replies on their way, with the time at which they arrive.
    pub(crate) flying: Vec<(u64, Reply)>,
    /// Replies that an attacker has copied.
    pub(crate) captured: Vec<Reply>,
    pub(crate) oracle: Oracle,
    pub(crate) witness: Witness,
    /// Records are synced only now and then.
    pub(crate) slow_disk: bool,
    /// The hub crashes before it carries out the output after so many.
    pub(crate) crash_in: Option<usize>,
    pub(crate) calls: u64,
    pub(crate) steps: u64,
    /// How many outputs were carried out.
    pub(crate) outputs: usize,
    /// What crashes do, where it is not left to chance.
    pub(crate) script: Option<Script>,
    pub(crate) trace: bool,
}

impl<'c, R: Rules> World<'c, R> {
    pub(crate) fn new(cast: &'c Cast, seed: u64, trace: bool) -> Self {
        let mut random = Random::new(seed);
        let token_key = random.bytes();
        let secrets = Secrets { seed: random.bytes(), token_key };
        let witness = Witness::new(&mut random);
        let listener = |(index, principal): (usize, &usize)| Listener {
            principal: *principal,
            id: SubscriptionId::from_bits(index as u128 + 1),
            confirms: true,
            clarifies: true,
            line: Line::Closed(0),
        };
        let mut oracle = Oracle::default();
        oracle.listeners.extend(LISTENERS.iter().enumerate().map(listener));
        Self {
            cast,
            random,
            clocks: Clocks::default(),
            disk: Disk::default(),
            ends: Vec::new(),
            unwritten: Vec::new(),
            engine: Some(Engine::new(secrets, Limits::default())),
            token_key,
            errands: Vec::new(),
            prompts: Vec::new(),
            flying: Vec::new(),
            captured: Vec::new(),
            oracle,
            witness,
            slow_disk: false,
            crash_in: None,
            calls: 0,
            steps: 0,
            outputs: 0,
            script: None,
            trace,
        }
    }

    /// Says what happens, for those who look for the cause of a violation.
    pub(crate) fn note(&self, what: impl FnOnce() -> String) {
        if self.trace {
            let line = what();
            crate::say(&format!("{:>8} ms  {line}", self.clocks.passed));
        }
    }

    /// Gives the engine one input and carries out everything that follows from it. `None` if the
    /// hub is down, or went down on the way.
    pub(crate) fn handle(
        &mut self,
        input: Input<'_>,
        cause: Cause,
    ) -> Option<Result<Answer, Refusal>> {
        self.handle_and(input, cause, |_, _| {})
    }

    /// The same; what the immediate answer means is told to the oracle before any output is seen.
    pub(crate) fn handle_and(
        &mut self,
        input: Input<'_>,
        cause: Cause,
        learn: impl FnOnce(&mut Self, &Result<Answer, Refusal>),
    ) -> Option<Result<Answer, Refusal>> {
        let now = self.clocks.now();
        let engine = self.engine.as_mut()?;
        let due = engine.next_deadline().is_some_and(|at| at <= now.boot);
        self.oracle.begin(cause, self.clocks.passed, due);
        if self.trace {
            crate::say(&format!("{:>8} ms  > {input:?}", self.clocks.passed));
        }
        let answer = engine.handle(input, now);
        if self.trace {
            crate::say(&format!("{:>8} ms    {answer:?}", self.clocks.passed));
        }
        learn(self, &answer);
        self.drain();
        self.engine.as_ref()?;
        self.oracle.end();
        Some(answer)
    }

    /// Carries out what the engine wants, in its order, unless the hub crashes in between.
    pub(crate) fn drain(&mut self) {
        while let Some(output) = self.engine.as_mut().and_then(Engine::poll_output) {
            match &mut self.crash_in {
                Some(0) => return self.crash(),
                Some(left) => *left -= 1,
                None => {}
            }
            self.outputs += 1;
            if self.trace {
                crate::say(&format!("{:>8} ms    < {}", self.clocks.passed, brief(&output)));
            }
            self.carry_out(output);
        }
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Append { number, bytes } => {
                if let Ok((_, record, _)) = Record::decode(&bytes) {
                    self.oracle.appended(number, &record);
                }
                self.write(bytes);
            }
            Output::Event(event) => self.deliver(&event),
            Output::Decided { request, outcome, runs, .. } => {
                self.oracle.decided(request, outcome, runs);
            }
            Output::Granted { request, call, arguments } => {
                self.oracle.granted(request, call, &arguments);
                let session = self.oracle.requests.get(&request).map(|request| request.session);
                let errand = self.errands.iter_mut().find(|e| Some(e.session) == session);
                if let Some(errand) = errand.filter(|errand| !errand.over) {
                    errand.running.push(call);
                }
            }
            Output::Noted { call } => self.oracle.noted(call),
            _ => {}
        }
    }

    fn write(&mut self, bytes: Vec<u8>) {
        // Later records never overtake those that found no room.
        if self.unwritten.is_empty() && self.disk.write(&bytes).is_ok() {
            self.ends.push(self.ends.last().copied().unwrap_or(0) + bytes.len());
        } else {
            self.unwritten.push(bytes);
        }
    }

    fn deliver(&mut self, event: &Emitted) {
        self.oracle.event(event);
        self.witness.hear(event, &mut self.random, &mut self.oracle);
        let Some(request) = self.oracle.requests.get(&event.event) else { return };
        let token = self.oracle.tokens.iter().find(|(_, of)| **of == event.event);
        if let Some((&token, _)) = token {
            let confirmation = request.question.confirmation;
            self.prompts.push(Prompt { token, user: request.user, confirmation });
        }
    }

    /// Syncs what was written and tells the engine, until nothing is left to sync.
    pub(crate) fn settle(&mut self) {
        while self.engine.is_some() && self.disk.unsynced_writes() > 0 {
            self.sync();
        }
        if !self.unwritten.is_empty() && !self.oracle.journal_down && self.engine.is_some() {
            self.oracle.journal_down = true;
            self.handle(Input::JournalFailed, Cause::Other);
        }
    }

    /// One sync. If it fails nobody knows what was kept, and the only safe way on is to stop.
    pub(crate) fn sync(&mut self) {
        match self.disk.sync() {
            Ok(_) => {
                let number = self.ends.len() as u64;
                self.oracle.durable = number;
                self.oracle.told_durable = number;
                self.handle(Input::Persisted { number }, Cause::Other);
            }
            Err(_) => {
                self.note(|| "the sync failed".into());
                self.crash();
            }
        }
    }
}

/// An output in a line.
fn brief(output: &Output) -> String {
    match output {
        Output::Append { number, bytes } => {
            format!("Append {number}: {:?}", Record::decode(bytes).map(|(_, record, _)| record))
        }
        Output::Event(event) => format!("Event {}", event.json),
        other => format!("{other:?}"),
    }
}
