//! What waits for the core: jobs, each with the moment at which it came.
//!
//! The moment is taken under the lock of the queue, so the order of the queue is the order of time:
//! a reply that came before its deadline is handled before the deadline passes, however long the
//! queue is (I7).

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use aaep_engine::Now;
use tokio::sync::{Notify, Semaphore};
use tracing::{Span, info_span};

use crate::clock;
use crate::core::Core;

/// A job for the core, which then tells the caller that waits for it.
pub(crate) type Job = Box<dyn FnOnce(&mut Core) -> After + Send>;

/// What is done once everything that the job recorded is durable.
pub(crate) type After = Option<Box<dyn FnOnce() + Send>>;

/// A job that waits: when it came, and the span of its caller. The core does it on somebody
/// else's time, and what it logs then is still about its own request.
pub(crate) type Queued = (Now, Span, Job);

pub(crate) struct Inbox {
    queue: Mutex<VecDeque<Queued>>,
    arrived: Notify,
    /// Bounds what comes from outside; what the hub tells itself is bounded by its connections.
    room: Semaphore,
}

impl Inbox {
    pub(crate) fn new(messages: usize) -> Self {
        Self {
            queue: Mutex::new(VecDeque::new()),
            arrived: Notify::new(),
            room: Semaphore::new(messages.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Waits for room at the door; the place is free again when the permit is dropped.
    pub(crate) async fn enter(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.room.acquire().await.ok()
    }

    fn queue(&self) -> MutexGuard<'_, VecDeque<Queued>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a job at the end. The core's holder looks here before and after; if nobody has it, it
    /// has to be called.
    pub(crate) fn push(&self, job: Job) {
        let mut span = Span::current();
        if span.is_none() {
            span = info_span!(parent: None, "hub");
        }
        let mut queue = self.queue();
        queue.push_back((clock::now(), span, job));
    }

    /// Everything that has come, and the moment after all of it.
    pub(crate) fn take(&self) -> (VecDeque<Queued>, Now) {
        let mut queue = self.queue();
        (std::mem::take(&mut *queue), clock::now())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.queue().is_empty()
    }

    /// Nothing is done any more: callers that wait, here or outside, learn that.
    pub(crate) fn close(&self) {
        self.room.close();
        drop(self.take());
    }

    /// Calls the core's own task.
    pub(crate) fn call(&self) {
        self.arrived.notify_one();
    }

    /// Waits until somebody calls.
    pub(crate) async fn called(&self) {
        self.arrived.notified().await;
    }
}
