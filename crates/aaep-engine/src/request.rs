//! One request: what was asked, what it is bound to, what became of it.

use aaep_types::{EventKind, SessionId, Timestamp};
use std::sync::Arc;

use crate::clock::Boot;
use crate::ids::Digest;
use crate::record::Outcome;

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It waits for an answer.
    Pending,
    /// It has an outcome; `runs` says whether the action may run, once.
    Resolved {
        /// The outcome.
        outcome: Outcome,
        /// Whether there is an approval left to spend.
        runs: bool,
    },
    /// The approval was spent.
    Invoked,
    /// The action ended.
    Completed,
}

/// A request; it is bound to its session, its kind, the digest of its action and its deadline.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) session: SessionId,
    pub(crate) kind: EventKind,
    pub(crate) digest: Digest,
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Arc<str>,
    /// What is shown in the events about it.
    pub(crate) action: Arc<str>,
    pub(crate) stamp: Timestamp,
    pub(crate) asked_at: Boot,
    pub(crate) deadline: Boot,
    pub(crate) timeout_seconds: u64,
    pub(crate) default_accept: bool,
    /// The answer to a question, as JSON: first what counts when none comes (decision D17).
    pub(crate) answer: Option<Arc<str>>,
    /// The number of the event that asks now; another one after more time was given.
    pub(crate) event_number: u128,
    pub(crate) irreversible: bool,
    pub(crate) status: Status,
    /// The event as it was sent, for those who come later; dropped once it is resolved.
    pub(crate) event: Option<Arc<str>>,
}

impl Request {
    /// When the wait ends by the clock on the wall, in microseconds.
    pub(crate) fn wall_deadline(&self) -> i64 {
        self.stamp.as_micros().saturating_add(self.timeout_seconds as i64 * 1_000_000)
    }
}
