//! The core: the one task that owns the producer. Everything comes to it as a job, one at a time;
//! what comes out is carried out here, in its order.

mod agents;
mod frames;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use aaep_engine::{Answer, Deliver, Input, Now, Outcomes, Output, Producer, Refusal};
use aaep_store::{Entry, Fault as JournalFault, Journal};
use aaep_types::SubscriptionId;
use tokio::sync::oneshot;
use tracing::{error, info, warn};

use crate::hub::{Hub, Phase};
use crate::inbox::{After, Job};
use crate::outbox::End;

pub(crate) use agents::{Grant, Inputs, Kept, KeyUse};
pub(crate) use frames::Framing;

use agents::Agents;
use frames::Frames;
use streams::Streams;

/// The longest sleep while something is due: the sleep's own clock stands still while the machine
/// sleeps, the boot clock does not.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// How long a journal without room is left alone before it is tried again, in seconds.
const RETRY_SECONDS: u64 = 1;

pub(crate) struct Core {
    pub(crate) hub: Hub,
    producer: Producer,
    /// `None`: nothing is kept, and everything counts as durable at once.
    journal: Option<Box<dyn Journal + Send>>,
    now: Now,
    /// Records that the journal has not taken yet.
    batch: Vec<Entry>,
    appended: u64,
    persisted: u64,
    /// When the journal is tried again.
    retry_at: Option<aaep_engine::Boot>,
    /// What is to be done when a record is durable.
    afters: VecDeque<(u64, Box<dyn FnOnce() + Send>)>,
    frames: Frames,
    streams: Streams,
    agents: Agents,
    /// Whoever waits for the outcome of a request.
    waiting: BTreeMap<u128, Vec<oneshot::Sender<()>>>,
    granted: BTreeMap<u128, Grant>,
    /// Why the core cannot go on.
    broken: Option<JournalFault>,
}

impl Core {
    pub(crate) fn new(
        hub: Hub,
        producer: Producer,
        journal: Option<Box<dyn Journal + Send>>,
        now: Now,
    ) -> Self {
        Self {
            hub,
            producer,
            journal,
            now,
            batch: Vec::new(),
            appended: 0,
            persisted: 0,
            retry_at: None,
            afters: VecDeque::new(),
            frames: Frames::default(),
            streams: Streams::default(),
            agents: Agents::default(),
            waiting: BTreeMap::new(),
            granted: BTreeMap::new(),
            broken: None,
        }
    }

    /// Works until the hub is told to stop and everything that was begun is durable.
    pub(crate) async fn run(mut self) -> Result<(), JournalFault> {
        let hub = self.hub.clone();
        let mut phase = hub.0.phase.subscribe();
        self.drain();
        loop {
            let jobs = hub.0.inbox.take();
            if jobs.is_empty() {
                let over = *phase.borrow() == Phase::Over;
                if self.broken.is_some() || over && self.batch.is_empty() {
                    break;
                }
                let sleep = self.sleep();
                tokio::select! {
                    () = hub.0.inbox.wait() => {}
                    () = tokio::time::sleep(sleep.unwrap_or_default()), if sleep.is_some() => {
                        self.tick(crate::clock::now());
                    }
                    _ = phase.wait_for(|phase| *phase == Phase::Over), if !over => {}
                }
                continue;
            }
            for (now, job) in jobs {
                self.step(now, job);
            }
            tokio::task::yield_now().await;
        }
        self.streams.end_all(End::Stopping);
        match self.broken {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    /// How long there is nothing to do by itself; `None` if there is nothing at all.
    fn sleep(&self) -> Option<Duration> {
        let due = [self.producer.next_deadline(), self.retry_at, self.streams.next_deadline()];
        let due = due.into_iter().flatten().min()?;
        let micros = due.0.saturating_sub(crate::clock::now().boot.0);
        Some(Duration::from_micros(micros).min(LONGEST_SLEEP))
    }

    fn step(&mut self, now: Now, job: Job) {
        self.set_time(now);
        let after: After = job(self);
        self.drain();
        let Some(after) = after else { return };
        if self.appended <= self.persisted {
            after();
        } else {
            self.afters.push_back((self.appended, after));
        }
    }

    fn tick(&mut self, now: Now) {
        self.set_time(now);
        let _ = self.producer.handle(Input::Tick, self.now);
        self.forget_held();
        if self.retry_at.is_some_and(|at| at <= self.now.boot) {
            self.keep();
        }
        self.drain();
    }

    /// The boot clock never goes back.
    fn set_time(&mut self, now: Now) {
        self.now = Now { boot: now.boot.max(self.now.boot), wall: now.wall };
    }

    /// Gives the producer one input.
    pub(crate) fn handle(&mut self, input: Input<'_>) -> Result<Answer, Refusal> {
        let answer = self.producer.handle(input, self.now);
        self.drain();
        answer
    }

    /// Carries out everything that the producer wants, until it wants nothing more.
    pub(crate) fn drain(&mut self) {
        loop {
            while let Some(outcome) = self.producer.poll_output(self.now) {
                match outcome {
                    Outcomes::Engine(output) => self.carry_out(output),
                    Outcomes::Deliver(Deliver::Send { subscription, event, bytes }) => {
                        self.send(subscription, &event, &bytes);
                    }
                    Outcomes::Deliver(Deliver::End { subscription, reason }) => {
                        // enforces: I4
                        info!(%subscription, reason, "a subscription was ended");
                        self.hub.metrics().ended.add(1);
                        self.streams.end(subscription, End::Closed);
                    }
                    _ => {}
                }
            }
            if self.batch.is_empty() || self.retry_at.is_some() || self.broken.is_some() {
                break;
            }
            self.keep();
        }
        self.frames.clear();
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Append { number, bytes } => {
                self.appended = number;
                self.batch.push(Entry { number, bytes });
            }
            Output::Decided { request, outcome, runs, .. } => {
                self.hub.metrics().resolved(outcome).add(1);
                info!(request = %aaep_types::EventId::from_bits(request), outcome = outcome.as_str(), runs, "a request was resolved");
                for waiting in self.waiting.remove(&request).unwrap_or_default() {
                    let _ = waiting.send(());
                }
            }
            Output::Granted { request, call, arguments } => {
                self.granted.insert(request, Grant { call, arguments });
            }
            Output::Stopped { session } => self.agent_stopped(session),
            // The answer to a message is sent when the job that brought it is durable.
            _ => {}
        }
    }

    // enforces: I10
    /// Makes what waits durable, and tells the producer.
    fn keep(&mut self) {
        let Some(last) = self.batch.last().map(|entry| entry.number) else { return };
        let kept = match &mut self.journal {
            Some(journal) => journal.append(&self.batch),
            None => Ok(()),
        };
        match kept {
            Ok(()) => {
                self.batch.clear();
                self.persisted = last;
                if self.retry_at.take().is_some() {
                    info!("the journal takes records again");
                    let _ = self.producer.handle(Input::JournalWorks, self.now);
                }
                let _ = self.producer.handle(Input::Persisted { number: last }, self.now);
                while let Some((_, after)) = self.afters.pop_front_if(|(at, _)| *at <= last) {
                    after();
                }
            }
            Err(JournalFault::Full) => {
                if self.retry_at.is_none() {
                    warn!("{}", JournalFault::Full);
                    let _ = self.producer.handle(Input::JournalFailed, self.now);
                }
                self.retry_at = Some(self.now.boot.after_seconds(RETRY_SECONDS));
            }
            Err(fault) => {
                error!("{fault}");
                self.broken = Some(fault);
            }
        }
    }

    /// Nothing new begins any more (I23).
    pub(crate) fn begin_to_stop(&mut self) {
        let _ = self.handle(Input::Drain);
    }

    /// Every stream comes to its end.
    pub(crate) fn end_streams(&mut self) {
        self.streams.end_all(End::Stopping);
    }

    /// Whether new things can be taken.
    pub(crate) fn is_ready(&self) -> bool {
        self.retry_at.is_none() && self.broken.is_none()
    }

    /// Open sessions, pending requests, and connections that hear.
    pub(crate) fn counts(&self) -> (usize, usize, usize) {
        let engine = self.producer.engine();
        (engine.open_sessions(), engine.pending_requests(), self.streams.len())
    }

    fn send(
        &mut self,
        subscription: SubscriptionId,
        event: &aaep_shaping::Prepared,
        bytes: &Arc<str>,
    ) {
        let Some(stream) = self.streams.get(subscription) else { return };
        let frame = self.frames.frame(stream.framing, event, bytes);
        self.hub.metrics().delivered.add(1);
        if !stream.outbox.push(frame) {
            self.producer.pause(subscription);
        }
    }
}
