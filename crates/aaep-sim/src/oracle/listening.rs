//! Who is there to hear and to answer, and since when nobody is (decision D2).

use aaep_types::SubscriptionId;

use super::Oracle;
use super::facts::Request;
use super::hearing::Hearing;
use crate::cast::{may_answer, never_answers};
use crate::wants::Wants;

/// How long the last one may stay away, and how long a subscription waits for somebody to attach.
const GRACE_MILLIS: u64 = 30_000;

/// How a subscription stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Line {
    /// Agreed on at this time; nobody has attached yet.
    Agreed(u64),
    Live,
    Lost(u64),
    /// Over since this time.
    Closed(u64),
}

/// A subscription as the world has it.
#[derive(Debug)]
pub(crate) struct Listener {
    pub(crate) principal: usize,
    pub(crate) id: SubscriptionId,
    pub(crate) wants: Wants,
    /// Whether it may answer confirmations, and questions.
    replies: (bool, bool),
    pub(crate) line: Line,
    /// Its connection takes nothing for now.
    pub(crate) paused: bool,
    /// The hub that agreed on it still runs.
    pub(crate) known: bool,
    pub(crate) hearing: Hearing,
}

impl Listener {
    pub(crate) fn new(principal: usize, id: SubscriptionId, wants: Wants, now: (u64, u64)) -> Self {
        let (passed, boot) = now;
        Self {
            principal,
            id,
            wants,
            replies: (false, false),
            line: Line::Agreed(passed),
            paused: false,
            known: true,
            hearing: Hearing::new(wants.rate, boot),
        }
    }

    pub(crate) fn supports(&self, request: &Request) -> bool {
        if request.question.confirmation { self.replies.0 } else { self.replies.1 }
    }

    fn could_answer(&self, request: &Request) -> bool {
        may_answer(self.principal, request.user) && self.supports(request)
    }

    /// Somebody attached.
    pub(crate) fn attach(&mut self) {
        (self.line, self.paused) = (Line::Live, false);
        self.entitle();
    }

    fn entitle(&mut self) {
        let answers = !never_answers(self.principal);
        self.replies = (self.wants.confirms && answers, self.wants.clarifies && answers);
    }

    /// New terms; what they mean for answers counts while somebody is attached.
    pub(crate) fn change(&mut self, wants: Wants) {
        self.hearing.change(std::mem::replace(&mut self.wants, wants));
        if self.line == Line::Live {
            self.entitle();
        }
    }

    /// Its connection takes more again.
    pub(crate) fn go_on(&mut self) {
        self.paused = false;
        self.hearing.go_on();
    }

    /// Nothing that it has to hear is on its way.
    pub(crate) fn is_told_everything(&self) -> bool {
        self.hears() && self.hearing.owes_nothing()
    }

    /// It hears whatever is said, at once.
    pub(crate) fn hears(&self) -> bool {
        self.line == Line::Live && !self.paused
    }

    /// Its connection is gone, for a reason that is known.
    pub(crate) fn lose(&mut self, now: u64) {
        self.line = Line::Lost(now);
        self.hearing.forget();
    }

    /// It is over.
    pub(crate) fn close(&mut self, now: u64) {
        self.line = Line::Closed(now);
        self.hearing.forget();
    }
}

impl Oracle {
    /// The subscription with this id, if the hub knows it.
    pub(crate) fn listener(&self, id: SubscriptionId) -> Option<&Listener> {
        self.listeners.iter().find(|listener| listener.known && listener.id == id)
    }

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

    /// H19: what nobody attached to in time is over.
    pub(super) fn expire(&mut self) {
        let now = self.now;
        for listener in self.listeners.iter_mut().filter(|listener| listener.known) {
            if let Line::Agreed(at) | Line::Lost(at) = listener.line
                && now >= at + GRACE_MILLIS
            {
                listener.close(at + GRACE_MILLIS);
            }
        }
    }

    /// D32: how many times as long those need who may answer for this user.
    pub(super) fn time_factor(&self, user: usize) -> u64 {
        let open = |l: &&Listener| l.known && !matches!(l.line, Line::Closed(_));
        let entitled = self.listeners.iter().filter(open);
        let entitled = entitled.filter(|listener| may_answer(listener.principal, user));
        entitled.map(|listener| listener.wants.factor).max().unwrap_or(1)
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
                Line::Lost(at) if listener.supports(request) => {
                    since = since.max(at + GRACE_MILLIS)
                }
                Line::Agreed(_) | Line::Live | Line::Lost(_) => {}
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
