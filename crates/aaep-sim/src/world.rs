//! The world around a producer: everything that comes out is carried out here, and nothing goes in
//! but through here, so the oracle sees both.

use aaep_engine::{
    Deliver, Emitted, Engine, Handled, Input, Limits, Now, Output, Producer, ProducerOutput,
    Record, Refusal, RequestId, Rules, Secrets,
};
use aaep_types::{SessionId, ToolCallId};

use crate::cast::{Cast, LISTENERS, Question};
use crate::client::Client;
use crate::clocks::Clocks;
use crate::disk::Disk;
use crate::forger::Seals;
use crate::mutation;
use crate::oracle::{Cause, Oracle, Reply};
use crate::power::{Script, limits};
use crate::prose::Writing;
use crate::random::Random;
use crate::twins::Sleeper;
use crate::witness::Witness;

/// The hub's machine.
pub(crate) type Hub<R> = Producer<R>;

/// A session as its agent knows it.
#[derive(Debug)]
pub(crate) struct AgentSession {
    pub(crate) session: SessionId,
    pub(crate) agent: usize,
    /// What it asked, in this order.
    pub(crate) asked: Vec<(RequestId, &'static Question)>,
    pub(crate) running: Vec<ToolCallId>,
    pub(crate) writing: Writing,
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
    /// What tells the hub's own records from others.
    pub(crate) seals: Seals,
    /// Where each record that was written ends in the file.
    pub(crate) ends: Vec<usize>,
    /// Records that found no room yet.
    pub(crate) unwritten: Vec<Vec<u8>>,
    /// None while the hub is down.
    pub(crate) hub: Option<Hub<R>>,
    pub(crate) token_key: [u8; 32],
    pub(crate) clients: Vec<Client>,
    /// There are all kinds of subscribers, not only plain ones.
    pub(crate) motley: bool,
    pub(crate) limits: Limits,
    /// Somebody who is there for the comparison alone.
    pub(crate) sleeper: Option<Sleeper>,
    pub(crate) errands: Vec<AgentSession>,
    pub(crate) prompts: Vec<Prompt>,
    /// Replies on their way, with the time at which they arrive.
    pub(crate) flying: Vec<(u64, Reply)>,
    /// Replies that an attacker has copied.
    pub(crate) captured: Vec<Reply>,
    pub(crate) oracle: Oracle,
    /// Hears everything as it was before shaping, if anybody does.
    pub(crate) witness: Option<Witness>,
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
    pub(crate) fn new(cast: &'c Cast, mut random: Random, motley: bool, trace: bool) -> Self {
        let limits = limits(motley);
        let token_key = random.bytes();
        let secrets = Secrets { seed: random.bytes(), token_key };
        let clocks = Clocks::default();
        let held_to = mutation::lifted(limits);
        let engine = Engine::new(secrets.clone(), held_to);
        let hub = Producer::new(engine, secrets, held_to, cast.offer.clone(), clocks.now());
        Self {
            cast,
            clocks,
            disk: Disk::default(),
            seals: Seals::new(random.bytes()),
            random,
            ends: Vec::new(),
            unwritten: Vec::new(),
            hub: Some(hub),
            token_key,
            clients: LISTENERS.map(Client::new).into(),
            motley,
            limits,
            sleeper: None,
            errands: Vec::new(),
            prompts: Vec::new(),
            flying: Vec::new(),
            captured: Vec::new(),
            oracle: Oracle::new(limits),
            witness: None,
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
    ) -> Option<Result<Handled, Refusal>> {
        self.handle_and(input, cause, |_, _| {})
    }

    /// The same; what the immediate answer means is told to the oracle before any output is seen.
    pub(crate) fn handle_and(
        &mut self,
        input: Input<'_>,
        cause: Cause,
        learn: impl FnOnce(&mut Self, &Result<Handled, Refusal>),
    ) -> Option<Result<Handled, Refusal>> {
        if self.trace {
            crate::say(&format!("{:>8} ms  > {input:?}", self.clocks.passed));
        }
        self.call(
            cause,
            |hub, now| hub.handle(input, now),
            |world, answer| {
                world.oracle.told_the_time = true;
                world.note(|| format!("  {answer:?}"));
                learn(world, answer);
            },
        )
    }

    /// Calls the hub's machine and carries out everything that follows from it.
    pub(crate) fn call<T>(
        &mut self,
        cause: Cause,
        act: impl FnOnce(&mut Hub<R>, Now) -> T,
        learn: impl FnOnce(&mut Self, &T),
    ) -> Option<T> {
        let now = self.clocks.now();
        let hub = self.hub.as_mut()?;
        let due = hub.next_deadline().is_some_and(|at| at <= now.boot);
        self.oracle.begin(cause, self.clocks.passed, due);
        let answer = act(hub, now);
        learn(self, &answer);
        self.drain();
        self.hub.as_ref()?;
        self.oracle.end();
        if let Some(violation) = self.oracle.violation.as_ref().filter(|_| self.trace) {
            crate::say(&format!("{}: {}", violation.invariant, violation.text));
        }
        Some(answer)
    }

    /// Carries out what the hub's machine wants, in its order, unless the hub crashes in between.
    pub(crate) fn drain(&mut self) {
        let now = self.clocks.now();
        while let Some(output) = self.hub.as_mut().and_then(|hub| hub.poll_output(now)) {
            if self.sleeper.is_none() || !self.is_for_sleeper(&output) {
                match &mut self.crash_in {
                    // Who hears the same event first does not matter, so twins do not crash in between.
                    _ if self.sleeper.is_some() && matches!(output, ProducerOutput::Deliver(_)) => {
                    }
                    Some(0) => return self.crash(),
                    Some(left) => *left -= 1,
                    None => {}
                }
                self.outputs += 1;
                self.compare_later(&output);
            }
            if self.trace {
                crate::say(&format!("{:>8} ms    < {}", self.clocks.passed, self.brief(&output)));
            }
            match output {
                ProducerOutput::Engine(output) => self.carry_out(output),
                ProducerOutput::Emitted(event) => self.said(&event),
                ProducerOutput::Deliver(Deliver::Send { subscription, event, bytes, .. }) => {
                    self.post(subscription, event, bytes);
                }
                ProducerOutput::Deliver(Deliver::End { subscription, reason }) => {
                    self.ended(subscription, &reason);
                }
                _ => {}
            }
        }
        if self.hub.is_some() {
            self.oracle.drained(now.boot.0);
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
        if !self.unwritten.is_empty() || !self.write_now(&bytes) {
            self.unwritten.push(bytes);
        }
    }

    /// Writes a record if there is room.
    pub(crate) fn write_now(&mut self, bytes: &[u8]) -> bool {
        let written = self.disk.write(bytes).is_ok();
        if written {
            self.ends.push(self.ends.last().copied().unwrap_or(0) + bytes.len());
            self.seals.wrote(bytes);
        }
        written
    }

    fn said(&mut self, event: &Emitted) {
        self.oracle.event(event, self.outputs);
        if let Some(witness) = &mut self.witness {
            witness.hear(event, &mut self.random, &mut self.oracle);
        }
        if let Some(prompt) = self.oracle.prompt(event.event) {
            self.prompts.push(prompt);
        }
    }

    /// Syncs what was written and tells the engine, until nothing is left to sync.
    pub(crate) fn settle(&mut self) {
        while self.hub.is_some() && self.disk.unsynced_writes() > 0 {
            self.sync();
        }
        if !self.unwritten.is_empty() && !self.oracle.journal_down && self.hub.is_some() {
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

    /// An output in a line.
    fn brief(&self, output: &ProducerOutput) -> String {
        match output {
            ProducerOutput::Engine(Output::Append { number, bytes }) => {
                format!("Append {number}: {:?}", Record::decode(bytes).map(|(_, record, _)| record))
            }
            ProducerOutput::Engine(other) => format!("{other:?}"),
            ProducerOutput::Emitted(event) => format!("Emitted {}", event.json),
            ProducerOutput::Deliver(Deliver::Send { subscription, event, bytes, .. }) => {
                let id = event.event_id();
                let same = **bytes == **event.json();
                let bytes = if same { "as it was said" } else { bytes };
                format!("Send to {subscription}: {id}, {bytes}")
            }
            other => format!("{other:?}"),
        }
    }
}
