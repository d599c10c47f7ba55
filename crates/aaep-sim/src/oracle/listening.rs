//! Who is there to answer, and since when nobody is (decision D2).

use aaep_types::SubscriptionId;

use super::Oracle;
use super::facts::Request;
use crate::cast::may_answer;

/// How long the last one may stay away.
const GRACE_MILLIS: u64 = 30_000;

/// How a subscription stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// The engine has not heard of it since this time.
    Closed(u64),
    Live,
    Lost(u64),
}

/// A subscription as the world has it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) principal: usize,
    pub(crate) id: SubscriptionId,
    pub(crate) confirms: bool,
    pub(crate) clarifies: bool,
    pub(crate) line: Line,
}

impl Listener {
    pub(crate) fn supports(&self, request: &Request) -> bool {
        if request.question.confirmation { self.confirms } else { self.clarifies }
    }

    fn could_answer(&self, request: &Request) -> bool {
        may_answer(self.principal, request.user) && self.supports(request)
    }
}

impl Oracle {
    /// Somebody joined, or something was asked: who could answer what?
    pub(crate) fn note_repliers(&mut self) {
        let listeners = &self.listeners;
        for request in self.requests.values_mut().filter(|request| request.resolved.is_none()) {
            let there = |l: &Listener| l.line == Line::Live && l.could_answer(request);
            if listeners.iter().any(there) {
                request.heard_by_replier = true;
                request.heard_in_this_boot = true;
            }
        }
    }

    /// When the last one who could answer was gone for good, if everybody is.
    fn nobody_since(&self, request: &Request) -> Option<u64> {
        let mut since = 0;
        for listener in &self.listeners {
            if !may_answer(listener.principal, request.user) {
                continue;
            }
            match listener.line {
                Line::Live if listener.supports(request) => return None,
                Line::Live => {}
                Line::Lost(at) if listener.supports(request) => {
                    since = since.max(at + GRACE_MILLIS)
                }
                Line::Lost(_) => {}
                Line::Closed(at) => since = since.max(at),
            }
        }
        Some(since)
    }

    /// I14: whether the default may be applied before the deadline.
    pub(crate) fn may_end_early(&self, request: &Request) -> bool {
        !request.question.default_accept
            && request.heard_by_replier
            && self.nobody_since(request).is_some_and(|since| since <= self.now)
    }

    /// I14: whether it must have been applied by now.
    pub(crate) fn should_have_ended(&self, request: &Request) -> bool {
        request.heard_in_this_boot
            && request.question.confirmation
            && !self.journal_down
            // After a restart those whom the engine has not seen yet may still come back.
            && self.restarted_at.is_none_or(|at| self.now >= at + GRACE_MILLIS)
            && self.may_end_early(request)
    }
}
