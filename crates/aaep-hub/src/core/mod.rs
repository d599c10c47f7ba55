//! The core, which owns the producer. Everything comes to it as a job, one at a time, in the order of
//! the inbox; what comes out is carried out here, in its order. The caller runs its job inline
//! if the core is free; the rest is done by the core's own task, which also keeps the time.

mod administer;
mod agents;
mod frames;
mod grants;
pub(crate) mod held;
mod keep;
mod keys;
mod mailboxes;
mod opening;
mod owed;
mod place;
mod processes;
mod producers;
mod recover;
mod streams;

use std::collections::{BTreeMap, VecDeque};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use aaep_engine::{
    Boot, Deliver, Handled, Input, Now, Output, Principal, Producer, ProducerOutput, Refusal,
    RequestId, View,
};
use aaep_store::{Entry, InlineCommit, JournalFault, JournalWriter, Unit};
use aaep_types::{EventKind, SubscriptionId};
use tokio::sync::oneshot;
use tracing::info;

use crate::hub::{Hub, Phase, Ran};
use crate::inbox::{After, Job, Queued};
use crate::metrics::Counts;
use crate::outbox::End;
use crate::pace;
use crate::start::journal::clock_difference;

pub(crate) use agents::Inputs;
pub(crate) use frames::Framing;
pub(crate) use grants::Grant;
pub(crate) use keys::{KeptAnswer, KeyUse};
pub(crate) use place::{Occupied, Place};
#[cfg(test)]
pub(crate) use processes::Kinship;
pub(crate) use processes::Processes;
pub(crate) use recover::{Recovered, RecoveredState as Recalled, recover};
pub(crate) use streams::{Attached, Taken};

use agents::Agents;
use frames::Frames;
use grants::Grants;
use keys::Keys;
use owed::Owed;
use producers::Producers;
use streams::Streams;

/// The longest sleep while something is due: the sleep's own clock stands still while the machine
/// sleeps, the boot clock does not.
const LONGEST_SLEEP: Duration = Duration::from_secs(1);

/// Why the core could not go on.
#[derive(Debug)]
pub(crate) enum Ended {
    /// Nobody knows what the journal kept.
    Journal(JournalFault),
    /// Something panicked in the middle of a step.
    Panicked,
}

/// What the core's task does next.
enum Next {
    /// Look again, after others had their turn.
    More,
    /// Wait until it is called, or so long.
    Sleep(Option<Duration>),
    End,
}

pub(crate) struct Core {
    pub(crate) hub: Hub,
    producer: Producer,
    /// `None`: nothing is kept, and everything counts as durable at once.
    writer: Option<JournalWriter>,
    now: Now,
    /// The clock on the wall minus the boot clock at the start, in microseconds; `None` once it
    /// jumped.
    clock: Option<i64>,
    /// What this step wants to be durable together.
    unit: Unit,
    /// How many units were handed over, and how many of them are durable.
    handed: u64,
    kept: u64,
    /// The last record that there is.
    last_record: u64,
    /// Why nothing can be made durable now.
    stuck: Option<JournalFault>,
    /// When its task looks by itself at the latest; `None` if only when it is called.
    alarm: Option<Boot>,
    /// What is to be done when a unit is durable.
    afters: VecDeque<(u64, Box<dyn FnOnce() + Send>)>,
    frames: Frames,
    /// Events handed to connections that are not counted yet.
    delivered: u64,
    streams: Streams,
    agents: Agents,
    owed: Owed,
    producers: Producers,
    keys: Keys,
    /// Callers that wait for the outcome of a request.
    waiting: BTreeMap<RequestId, Vec<(Principal, oneshot::Sender<View>)>>,
    granted: Grants,
    /// Numbers the messages of subscribers.
    last_call: u64,
    /// Callers that wait for the answer to a message beyond the rate (decision D40).
    held_answers: BTreeMap<u64, oneshot::Sender<()>>,
    /// Streams have come to their end.
    stopping: bool,
    /// Why the core cannot go on.
    broken: Option<JournalFault>,
    /// Done when time has passed, in tests.
    #[cfg(test)]
    pub(crate) on_tick: Option<Job>,
}

impl Core {
    /// What subscribers can agree on from now on.
    pub(crate) fn set_offer(&mut self, offer: std::sync::Arc<aaep_engine::Offer>) {
        self.producer.set_offer(offer);
    }

    pub(crate) fn new(
        hub: Hub,
        producer: Producer,
        writer: Option<JournalWriter>,
        recalled: Recalled,
        now: Now,
    ) -> Self {
        let Recalled { agents, producers, keys, granted, owed, durable } = recalled;
        Self {
            hub,
            producer,
            writer,
            now,
            clock: Some(clock_difference(now)),
            unit: Unit::default(),
            handed: 0,
            kept: 0,
            last_record: durable,
            stuck: None,
            alarm: None,
            afters: VecDeque::new(),
            frames: Frames::default(),
            delivered: 0,
            streams: Streams::default(),
            agents,
            owed,
            producers,
            keys,
            waiting: BTreeMap::new(),
            granted,
            last_call: 0,
            held_answers: BTreeMap::new(),
            stopping: false,
            broken: None,
            #[cfg(test)]
            on_tick: None,
        }
    }

    /// Looks after the core until the hub is told to stop and everything that was begun is durable:
    /// does what nobody does at once, and what is due by itself.
    pub(crate) async fn run(hub: Hub) -> Result<(), Ended> {
        let mut phase = hub.0.phase.subscribe();
        let mut alarm = false;
        loop {
            let over = *phase.borrow() == Phase::Over;
            let next = hub.0.core.occupy().await.with(|core| core.turn(alarm, over));
            let next = next.unwrap_or(Next::End);
            alarm = false;
            match next {
                Next::End => break,
                Next::More => tokio::task::yield_now().await,
                // A caller that came after it looked found the core taken, and relies on it.
                Next::Sleep(_) if !hub.0.inbox.is_empty() => {}
                Next::Sleep(sleep) => tokio::select! {
                    () = hub.0.inbox.called() => {}
                    () = tokio::time::sleep(sleep.unwrap_or_default()), if sleep.is_some() => {
                        alarm = true;
                    }
                    _ = phase.wait_for(|phase| *phase == Phase::Over), if !over => {}
                },
            }
        }
        let core = hub.0.core.occupy().await.take();
        // Callers that still wait learn that the hub has stopped.
        hub.0.inbox.close();
        let Some(core) = core else { return Ok(()) };
        let broken = core.broken;
        // After a panic anything may be wrong with it.
        let ended = catch_unwind(AssertUnwindSafe(|| core.end()));
        if hub.is_broken() || ended.is_err() {
            return Err(Ended::Panicked);
        }
        broken.map_or(Ok(()), |fault| Err(Ended::Journal(fault)))
    }

    /// Every stream ends, waiting callers are released, and the journal is closed.
    fn end(mut self) {
        self.streams.end_all(End::Stopping);
    }

    /// One turn of its task.
    fn turn(&mut self, alarm: bool, over: bool) -> Next {
        let (jobs, now) = self.hub.0.inbox.take();
        let idle = jobs.is_empty();
        self.steps(jobs);
        if alarm {
            self.tick(now);
        }
        if !idle {
            return Next::More;
        }
        if self.broken.is_some() || over && self.has_kept() {
            return Next::End;
        }
        let sleep = self.due().map(|due| {
            let micros = due.0.saturating_sub(now.boot.0);
            Duration::from_micros(micros).min(LONGEST_SLEEP)
        });
        self.alarm = sleep.map(|sleep| Boot(now.boot.0.saturating_add(sleep.as_micros() as u64)));
        Next::Sleep(sleep)
    }

    /// Does what waits.
    pub(crate) fn work(&mut self) {
        let (jobs, _) = self.hub.0.inbox.take();
        self.steps(jobs);
    }

    /// Does what waits, and then this. If that is the only thing that is not durable, the caller
    /// may make it so.
    pub(crate) fn run_now<T: Send + 'static>(
        &mut self,
        job: impl FnOnce(&mut Core) -> T,
    ) -> (Ran<T>, Option<InlineCommit>) {
        let (jobs, now) = self.hub.0.inbox.take();
        if !jobs.is_empty() {
            pace::for_others(|| self.steps(jobs));
        }
        self.set_time(now);
        let answer = job(self);
        self.drain();
        let inline = self.commit_inline_or_hand_over();
        if self.handed <= self.kept {
            return (Ran::Done(answer), None);
        }
        let (sender, receiver) = oneshot::channel();
        self.when_durable(Box::new(move || drop(sender.send(answer))));
        (Ran::Waits(receiver), inline)
    }

    /// When there is something to do by itself.
    fn due(&self) -> Option<Boot> {
        let due = [self.producer.next_deadline(), self.streams.next_deadline()];
        due.into_iter().flatten().min()
    }

    /// Whether there is something to do before its task looks by itself.
    pub(crate) fn wants_its_task(&self) -> bool {
        let sooner = |due| self.alarm.is_none_or(|alarm| due < alarm);
        self.broken.is_some() || self.due().is_some_and(sooner)
    }

    fn steps(&mut self, jobs: VecDeque<Queued>) {
        for (now, span, job) in jobs {
            let _in = span.enter();
            self.step(now, job);
        }
    }

    fn step(&mut self, now: Now, job: Job) {
        self.set_time(now);
        let after: After = job(self);
        self.drain();
        self.hand_over();
        if let Some(after) = after {
            self.when_durable(after);
        }
    }

    fn tick(&mut self, now: Now) {
        self.set_time(now);
        let _ = self.producer.handle(Input::Tick, self.now);
        self.forget_held();
        self.end_expired();
        #[cfg(test)]
        if let Some(on_tick) = self.on_tick.take() {
            on_tick(self);
        }
        self.drain();
        self.hand_over();
    }

    /// The boot clock never goes back.
    fn set_time(&mut self, now: Now) {
        self.now = Now { boot: now.boot.max(self.now.boot), wall: now.wall };
        self.watch_the_clock();
    }

    /// Gives the producer one input.
    pub(crate) fn handle(&mut self, input: Input<'_>) -> Result<Handled, Refusal> {
        let answer = self.producer.handle(input, self.now);
        self.drain();
        answer
    }

    /// Carries out everything that the producer wants, until it wants nothing more.
    pub(crate) fn drain(&mut self) {
        while let Some(outcome) = self.producer.poll_output(self.now) {
            match outcome {
                ProducerOutput::Engine(output) => self.carry_out(output),
                ProducerOutput::Deliver(Deliver::Send { subscription, place, event, bytes }) => {
                    self.send(subscription, place, &event, &bytes);
                }
                ProducerOutput::Deliver(Deliver::End { subscription, reason }) => {
                    self.give_up(subscription, &reason);
                }
                _ => {}
            }
        }
        self.frames.clear();
        if self.delivered > 0 {
            self.hub.metrics().delivered.add(std::mem::take(&mut self.delivered));
        }
    }

    // enforces: I4
    /// Ends a subscription that does not take what it is sent, and says why.
    fn give_up(&mut self, subscription: SubscriptionId, reason: &str) {
        info!(%subscription, reason, "a subscription was ended");
        self.hub.metrics().ended.add(1);
        self.streams.end(subscription, End::Closed);
    }

    fn carry_out(&mut self, output: Output) {
        match output {
            Output::Append { number, bytes } => {
                self.last_record = number;
                self.unit.entries.push(Entry { number, bytes });
            }
            Output::Decided { request, outcome, runs, by, .. } => {
                self.hub.metrics().resolved(outcome).add(1);
                info!(request = %aaep_types::EventId::from_bits(request.bits()), outcome = outcome.as_str(), by = &*by, runs, "a request was resolved");
                self.tell_decided(request);
            }
            Output::Granted { request, call, arguments } => {
                if let Some(session) = self.producer.engine().session_of(request) {
                    self.granted.insert(session, request, Grant { call, arguments });
                }
            }
            Output::Stopped { session, by_user } => self.agent_stopped(session, by_user),
            // Other answers are sent when the job that brought the message is durable.
            Output::Noted { call } => self.answer_held(call),
            _ => {}
        }
    }

    /// Nothing new begins any more (I23).
    pub(crate) fn begin_to_stop(&mut self) {
        let _ = self.handle(Input::Drain);
    }

    /// Every stream comes to its end, and no other begins; callers that wait for an outcome are released.
    pub(crate) fn end_streams(&mut self) {
        self.stopping = true;
        self.waiting.clear();
        self.streams.end_all(End::Stopping);
    }

    /// Whether new things can be taken.
    pub(crate) fn is_ready(&self) -> bool {
        self.stuck.is_none() && self.broken.is_none()
    }

    /// Requests that wait for a user and sessions that run for them; for everybody, without one.
    pub(crate) fn held(&self, user: Option<&str>) -> (usize, usize) {
        let engine = self.producer.engine();
        match user {
            Some(user) => {
                (engine.request_shares().of_user(user), engine.session_shares().of_user(user))
            }
            None => (engine.pending_requests(), engine.open_sessions()),
        }
    }

    /// What there is of everything at this moment.
    pub(crate) fn counts(&self) -> Counts {
        let engine = self.producer.engine();
        Counts {
            open_sessions: engine.open_sessions(),
            pending_requests: engine.pending_requests(),
            streams: self.streams.len(),
            is_stuck: self.stuck.is_some() || self.broken.is_some(),
        }
    }

    fn send(
        &mut self,
        subscription: SubscriptionId,
        place: usize,
        event: &aaep_shaping::Prepared,
        bytes: &Arc<str>,
    ) {
        let Some(stream) = self.streams.at(place, subscription) else { return };
        let role = stream.role();
        let frame = match self.hub.0.roles.heard_by(role, bytes) {
            Some(heard) => self.frames.frame(stream.framing, event, &heard.into()),
            None => self.frames.frame(stream.framing, event, bytes),
        };
        self.delivered += 1;
        if stream.starts_twice && event.kind() == Some(EventKind::SessionStarted) {
            stream.outbox.push(frame.clone());
        }
        // enforces: H21, I21, W14
        // A connection without room makes its own subscription wait, and no other.
        if !stream.outbox.push(frame) {
            self.producer.pause(subscription);
        }
    }
}
