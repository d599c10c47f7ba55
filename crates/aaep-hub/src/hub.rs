//! The hub as everybody in this process sees it: a handle to the core.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Instant;

use aaep_engine::Offer;
use aaep_policy::Policy;
use aaep_signature::SigningKey;
use aaep_types::profile::Profile;
use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, oneshot, watch};

use crate::access::SharedAccess;
use crate::codes::Codes;
use crate::config::Config;
use crate::core::{Core, Occupied, Place};
use crate::guard::Guard;
use crate::http::{RefusalLog, RequestIds, TraceParent};
use crate::inbox::Inbox;
use crate::manifest::Manifests;
use crate::metrics::Metrics;
use crate::pace::{self, Pace};
use crate::passkey::Passkeys;
use crate::presence::PresenceDesk;
use crate::reading::Turns;
use crate::redaction::Outputs;
use crate::retention::Eraser;
use crate::roles::Roles;
use crate::sign_in::SignInDesk;
use crate::tls::Tls;
use crate::waits::Waits;

/// A handle to a running hub; cheap to clone.
#[derive(Clone)]
pub struct Hub(pub(crate) Arc<Shared>);

pub(crate) struct Shared {
    pub(crate) inbox: Inbox,
    /// The holder runs the waiting jobs; only the core's own task queues for it.
    pub(crate) core: Place,
    pub(crate) access: SharedAccess,
    /// What is asked before tools run, if anybody said so.
    pub(crate) policy: ArcSwap<Option<Policy>>,
    /// What agents' events are held to besides the protocol, if anything.
    pub(crate) profile: Option<Profile>,
    pub(crate) guard: Guard,
    /// Who reads something large, and when.
    pub(crate) turns: Turns,
    /// Calls that wait for something to happen.
    pub(crate) waits: Waits,
    /// Calls that are being answered.
    pub(crate) calls: Waits,
    /// Whose call is worked at when.
    pub(crate) pace: Pace,
    /// What subscribers can agree on.
    pub(crate) offer: ArcSwap<Offer>,
    /// Signs the manifest.
    pub(crate) manifest_key: ArcSwapOption<SigningKey>,
    /// What the hub says of itself to everybody, and to those who are let in.
    pub(crate) manifests: Manifests,
    /// What roles are not to hear.
    pub(crate) roles: Roles,
    /// What agents stream, watched for secrets.
    pub(crate) outputs: Outputs,
    /// Codes that are worth a token, for the page.
    pub(crate) codes: Codes,
    /// People who sign in with a provider, from the page.
    pub(crate) sign_in: SignInDesk,
    /// Whether it was really the person.
    pub(crate) presence: PresenceDesk,
    pub(crate) passkeys: Passkeys,
    /// Erases records, where any are kept.
    pub(crate) eraser: OnceLock<Arc<Eraser>>,
    pub(crate) config: Config,
    pub(crate) metrics: Metrics,
    /// The certificate in use, if there is one.
    pub(crate) tls: Option<Tls>,
    pub(crate) refusals: RefusalLog,
    pub(crate) request_ids: RequestIds,
    /// Tells a request's span from which trace it comes.
    pub(crate) trace_parent: Option<TraceParent>,
    /// Where its configuration stands, if it may be written there.
    pub(crate) config_file: Option<PathBuf>,
    /// Somebody wants the configuration to be read again.
    pub(crate) reload: Notify,
    pub(crate) phase: watch::Sender<Phase>,
}

/// What became of a job that was done at once.
pub(crate) enum Ran<T> {
    Done(T),
    /// It is done, and not durable yet.
    Waits(oneshot::Receiver<T>),
    /// It panicked, and nothing is done any more.
    Panicked,
}

/// A job on its way. Small, since every request has one: what is rare is boxed.
#[must_use = "what it leads to is durable when this is awaited"]
pub(crate) enum Calling<T> {
    Done(Option<T>),
    Waits(oneshot::Receiver<T>),
    Queued(Pin<Box<dyn Future<Output = Result<T, Stopped>> + Send>>),
}

// Nothing in it is ever pinned in place.
impl<T> Unpin for Calling<T> {}

impl<T> Future for Calling<T> {
    type Output = Result<T, Stopped>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match &mut *self {
            Self::Done(answer) => Poll::Ready(answer.take().ok_or(Stopped)),
            Self::Waits(answer) => Pin::new(answer).poll(context).map_err(|_| Stopped),
            Self::Queued(answer) => answer.as_mut().poll(context),
        }
    }
}

/// How far the hub is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Phase {
    /// It works.
    Open,
    /// What runs comes to its end.
    Stopping,
    /// Nobody can come any more.
    Over,
}

/// The hub has stopped, or cannot make durable what was to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stopped;

/// How often the core's holder looks for more jobs before the core's own task is woken.
const WORK_AT_ONCE: usize = 8;

impl Hub {
    /// Lets the core do something, at once if it is free. Wait for the answer: it comes when all that was
    /// recorded is durable.
    pub(crate) fn call<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Calling<T> {
        if self.is_over() {
            return Calling::Done(None);
        }
        match self.at_once(job) {
            Ok(Ran::Done(answer)) => Calling::Done(Some(answer)),
            Ok(Ran::Waits(receiver)) => Calling::Waits(receiver),
            Ok(Ran::Panicked) => Calling::Done(None),
            Err(job) => Calling::Queued(Box::pin(self.clone().call_later(job))),
        }
    }

    async fn call_later<T: Send + 'static>(
        self,
        job: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        let _room = self.0.inbox.enter().await.ok_or(Stopped)?;
        let (sender, receiver) = oneshot::channel();
        self.0.inbox.push(Box::new(move |core| {
            let begun = Instant::now();
            let answer = job(core);
            let took = begun.elapsed();
            Some(Box::new(move || drop(sender.send((answer, took)))))
        }));
        pace::for_others(|| self.work());
        let (answer, took) = receiver.await.map_err(|_| Stopped)?;
        pace::done_elsewhere(took);
        Ok(answer)
    }

    /// Lets the core do something whose answer tells nothing that must be durable first: it comes at
    /// once, also while nothing can be made durable.
    pub(crate) async fn look<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Core) -> T + Send + 'static,
    ) -> Result<T, Stopped> {
        if self.is_over() {
            return Err(Stopped);
        }
        let (sender, receiver) = oneshot::channel();
        let job = move |core: &mut Core| {
            let begun = Instant::now();
            let answer = job(core);
            drop(sender.send((answer, begun.elapsed())));
        };
        if let Err(job) = self.at_once(job) {
            let _room = self.0.inbox.enter().await.ok_or(Stopped)?;
            self.0.inbox.push(Box::new(move |core| {
                job(core);
                None
            }));
            pace::for_others(|| self.work());
            let (answer, took) = receiver.await.map_err(|_| Stopped)?;
            pace::done_elsewhere(took);
            return Ok(answer);
        }
        receiver.await.map(|(answer, _)| answer).map_err(|_| Stopped)
    }

    /// Does a job here and now, after everything that waits, if nobody else has the core. Most jobs
    /// find it free, which avoids a task switch.
    fn at_once<T: Send + 'static, J: FnOnce(&mut Core) -> T>(&self, job: J) -> Result<Ran<T>, J> {
        let Some(mut place) = self.0.core.try_occupy() else { return Err(job) };
        if !place.is_working() {
            return Err(job);
        }
        let ran = place.with(|core| core.run_now(job));
        if !self.leave(place) {
            pace::for_others(|| self.work());
        }
        let Some((ran, inline)) = ran else { return Ok(Ran::Panicked) };
        if let Some(inline) = inline {
            // A commit waits for the disk. The runtime is told, so that this worker's other tasks
            // move to another thread instead of waiting with it.
            pace::for_others(|| tokio::task::block_in_place(|| inline.commit()));
        }
        Ok(ran)
    }

    /// Does what waits, unless somebody is at it. What comes meanwhile finds the core taken, so it is
    /// done here as well, for a while: calling another thread for it takes longer.
    fn work(&self) {
        for _ in 0..WORK_AT_ONCE {
            let Some(mut place) = self.0.core.try_occupy() else { return };
            if place.with(Core::work).is_none() {
                // The waiting caller learns that the hub has stopped.
                drop(self.0.inbox.take());
            }
            if self.leave(place) {
                return;
            }
        }
        self.0.inbox.call();
    }

    /// Gives the core back; false if somebody came in the meantime and found it taken. If something is
    /// due sooner than its task thinks, its task is called.
    fn leave(&self, mut place: Occupied<'_>) -> bool {
        let wanted = place.with(|core| core.wants_its_task());
        drop(place);
        // After a panic its task ends the hub.
        let wanted = wanted.unwrap_or_else(|| self.0.core.has_panicked());
        if wanted {
            self.0.inbox.call();
        }
        self.0.inbox.is_empty()
    }

    /// Lets the core do something that nobody waits for.
    pub(crate) fn tell(&self, job: impl FnOnce(&mut Core) + Send + 'static) {
        self.0.inbox.push(Box::new(move |core| {
            job(core);
            None
        }));
        // Not here and now: who tells may hold what the core needs.
        self.0.inbox.call();
    }

    /// The same, here and now if nobody else has the core: for a thread that holds nothing which the
    /// core needs.
    pub(crate) fn tell_here(&self, job: impl FnOnce(&mut Core) + Send + 'static) {
        self.0.inbox.push(Box::new(move |core| {
            job(core);
            None
        }));
        self.work();
    }

    pub(crate) fn config(&self) -> &Config {
        &self.0.config
    }

    /// The policy in force.
    pub(crate) fn policy(&self) -> arc_swap::Guard<Arc<Option<Policy>>> {
        self.0.policy.load()
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// Waits until the hub begins to stop.
    pub(crate) async fn stopping(&self) {
        let mut phase = self.0.phase.subscribe();
        let _ = phase.wait_for(|phase| *phase >= Phase::Stopping).await;
    }

    // enforces: I28
    /// Whether the core panicked: then nothing is asked, and no answer counts, ever again.
    pub(crate) fn is_broken(&self) -> bool {
        self.0.core.has_panicked()
    }

    /// Whether nobody is let in any more: handles that were kept are refused, although the core may
    /// still be making durable what was recorded.
    fn is_over(&self) -> bool {
        *self.0.phase.borrow() == Phase::Over
    }

    pub(crate) fn is_stopping(&self) -> bool {
        *self.0.phase.borrow() >= Phase::Stopping
    }
}
