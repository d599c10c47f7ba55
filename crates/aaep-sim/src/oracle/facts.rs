//! The oracle's own ledger. A fact that rests on a record carries the record's number, so that a
//! crash that takes the record takes the fact.

use aaep_engine::{EventNumber, Outcome, RequestId};
use aaep_types::SessionId;
use std::collections::BTreeMap;

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
    /// The output with which it began.
    pub(crate) began: Option<usize>,
    /// The event with which it began.
    pub(crate) started: Option<EventNumber>,
    pub(crate) told_end: bool,
    pub(crate) last_number: Option<u64>,
    pub(crate) last_stamp: i64,
    /// Stamps that are on record, with the record.
    pub(crate) stamps: Vec<(u64, i64)>,
    /// It began before a restart: its numbers skip, and some of its text may be lost.
    pub(crate) recovered: bool,
    /// How many of its requests may be remembered at most.
    pub(crate) kept: usize,
    /// How much text of each output was said.
    pub(crate) written: BTreeMap<u32, u64>,
}

/// How a request ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Resolved {
    pub(crate) outcome: Outcome,
    pub(crate) runs: bool,
    pub(crate) record: u64,
}

/// One time that something was asked: the first, or once more with more time (D32).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asking {
    /// The number of the event that asks.
    pub(crate) event: EventNumber,
    /// Its record; 0 before there is one.
    pub(crate) record: u64,
    pub(crate) deadline: u64,
    pub(crate) timeout_millis: u64,
    /// The stamp of its event, in microseconds; what D9 measures a reply's claim by.
    pub(crate) stamp: i64,
    pub(crate) announced: bool,
    /// People were told what became of it.
    pub(crate) shown: bool,
}

impl Asking {
    pub(crate) fn new(event: EventNumber, record: u64, now: u64, timeout_millis: u64) -> Self {
        let deadline = now + timeout_millis;
        Self { event, record, deadline, timeout_millis, stamp: 0, announced: false, shown: false }
    }
}

/// A request that was made.
#[derive(Debug)]
pub(crate) struct Request {
    pub(crate) session: SessionId,
    pub(crate) user: usize,
    pub(crate) question: &'static Question,
    /// How often it was asked; at least once.
    pub(crate) askings: Vec<Asking>,
    pub(crate) resolved: Option<Resolved>,
    /// Somebody has learned this outcome: it may never change, whatever crashes.
    pub(crate) told: Option<(Outcome, bool)>,
    pub(crate) invoked: Option<u64>,
    /// When it was approved; when the approval was spent unused, and whether people know.
    pub(crate) approved_at: u64,
    pub(crate) expired: Option<u64>,
    pub(crate) expiry_shown: bool,
    pub(crate) granted: bool,
    /// Somebody who could answer was there at some time since it was asked.
    pub(crate) heard_by_replier: bool,
    /// The same, since the last restart.
    pub(crate) heard_in_this_boot: bool,
}

impl Request {
    /// How it is asked now.
    pub(crate) fn now(&self) -> &Asking {
        &self.askings[self.askings.len() - 1]
    }

    /// It is on record that it was asked.
    pub(crate) fn exists(&self) -> bool {
        self.askings[0].record > 0
    }

    /// Pending, with a record.
    pub(crate) fn waits(&self) -> bool {
        self.exists() && self.resolved.is_none()
    }

    /// Approved, and neither used nor given up.
    pub(crate) fn is_approved(&self) -> bool {
        self.resolved.is_some_and(|resolved| resolved.runs)
            && self.invoked.is_none()
            && self.expired.is_none()
    }

    /// People have heard of it, and how it is asked now.
    pub(crate) fn announced(&self) -> bool {
        self.askings.iter().any(|asking| asking.announced)
    }
}

/// A tool call that consent was spent on.
#[derive(Debug)]
pub(crate) struct Call {
    pub(crate) request: RequestId,
    pub(crate) session: SessionId,
    pub(crate) record: u64,
    /// The event that told of it.
    pub(crate) announced: Option<EventNumber>,
    pub(crate) completed: bool,
    pub(crate) completed_on: Option<u64>,
}
