//! The oracle's own ledger. A fact that rests on a record carries the record's number, so that a
//! crash that takes the record takes the fact.

use aaep_engine::Outcome;
use aaep_types::SessionId;

use crate::cast::Question;

/// A session that was opened.
#[derive(Debug)]
pub(crate) struct Session {
    pub(crate) agent: usize,
    pub(crate) user: usize,
    pub(crate) opened: u64,
    pub(crate) ended: Option<u64>,
    pub(crate) lease: u64,
    pub(crate) touched: u64,
    pub(crate) told_start: bool,
    pub(crate) told_end: bool,
    pub(crate) last_number: Option<u64>,
    pub(crate) last_stamp: i64,
    /// After a restart under a clock that nobody trusts, stamps may go back once.
    pub(crate) stamps_forgotten: bool,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved {
    pub(crate) outcome: Outcome,
    pub(crate) runs: bool,
    pub(crate) record: u64,
}

/// A request that was made.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) session: SessionId,
    pub(crate) user: usize,
    pub(crate) question: &'static Question,
    pub(crate) deadline: u64,
    /// The stamp of its event, in microseconds; what D9 measures a reply's claim by.
    pub(crate) stamp: i64,
    /// Its record; 0 before there is one.
    pub(crate) asked: u64,
    pub(crate) announced: bool,
    pub(crate) resolved: Option<Resolved>,
    /// Somebody has learned this outcome: it may never change, whatever crashes.
    pub(crate) told: Option<(Outcome, bool)>,
    pub(crate) shown: bool,
    pub(crate) invoked: Option<u64>,
    pub(crate) granted: bool,
    /// Somebody who could answer was there at some time since it was asked.
    pub(crate) heard_by_replier: bool,
    /// The same, since the last restart.
    pub(crate) heard_in_this_boot: bool,
}

impl Request {
    /// Pending, with a record.
    pub(crate) fn waits(&self) -> bool {
        self.asked > 0 && self.resolved.is_none()
    }
}

/// A tool call that consent was spent on.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) request: u128,
    pub(crate) session: SessionId,
    pub(crate) record: u64,
    pub(crate) announced: bool,
    pub(crate) completed: bool,
    pub(crate) completed_on: Option<u64>,
}
