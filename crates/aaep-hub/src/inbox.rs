//! What waits for the core: jobs, each with the moment at which it came.
//!
//! The moment is taken under the lock of the queue, so the order of the queue is the order of time:
//! a reply that came before its deadline is handled before the deadline passes, however long the
//! queue is (I7).

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};

use aaep_engine::Now;
use tokio::sync::{Notify, Semaphore};

use crate::clock;
use crate::core::Core;

/// Something to be done with the core, which then tells whoever waits for it.
pub(crate) type Job = Box<dyn FnOnce(&mut Core) -> After + Send>;

/// What is done once everything that the job recorded is durable.
pub(crate) type After = Option<Box<dyn FnOnce() + Send>>;

pub(crate) struct Inbox {
    /// `None` once the core is gone.
    queue: Mutex<Option<VecDeque<(Now, Job)>>>,
    arrived: Notify,
    /// Bounds what comes from outside; what the hub tells itself is bounded by its connections.
    room: Semaphore,
}

impl Inbox {
    pub(crate) fn new(messages: usize) -> Self {
        Self {
            queue: Mutex::new(Some(VecDeque::new())),
            arrived: Notify::new(),
            room: Semaphore::new(messages.min(Semaphore::MAX_PERMITS)),
        }
    }

    /// Waits for room at the door; the place is free again when the permit is dropped.
    pub(crate) async fn enter(&self) -> Option<tokio::sync::SemaphorePermit<'_>> {
        self.room.acquire().await.ok()
    }

    pub(crate) fn push(&self, job: Job) {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(queue) = queue.as_mut() else { return };
        queue.push_back((clock::now(), job));
        if queue.len() == 1 {
            self.arrived.notify_one();
        }
    }

    /// Everything that has come.
    pub(crate) fn take(&self) -> VecDeque<(Now, Job)> {
        let mut queue = self.queue.lock().unwrap_or_else(PoisonError::into_inner);
        queue.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Nothing is done any more: whoever waits, or comes later, is told so.
    pub(crate) fn close(&self) {
        self.room.close();
        drop(self.queue.lock().unwrap_or_else(PoisonError::into_inner).take());
    }

    /// Waits until something comes.
    pub(crate) async fn wait(&self) {
        self.arrived.notified().await;
    }
}
