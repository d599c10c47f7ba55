//! What really happened, kept by somebody who does not trust the engine. The oracle is told what
//! went in and what came out; it knows who said yes, in time, to what, and compares.

mod bounds;
mod events;
mod facts;
mod hearing;
mod listening;
mod outputs;
mod rates;
mod records;
mod replies;
mod restart;
mod urgent;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use aaep_engine::{EventNumber, Limits, Outcome, RequestId};
use aaep_types::{EventKind, SessionId, ToolCallId};

pub(crate) use events::{number, text};
pub(crate) use facts::{Asking, Call, Request, Session};
pub(crate) use listening::{Line, Listener};
use rates::{Flood, Pace};
pub(crate) use replies::{Reply, ReplyKind};

/// An invariant that did not hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// Its id.
    pub invariant: &'static str,
    /// What was seen.
    pub text: String,
}

/// Why the engine was called: what it does must follow from this, or from the time.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Cause {
    /// Nothing that ends a request by itself.
    Other,
    Reply(Verdict),
    Withdraw(RequestId),
    End(SessionId),
    Recovery {
        trusted: bool,
    },
}

/// What a reply is worth, in the oracle's own judgement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Verdict {
    pub(crate) request: Option<RequestId>,
    /// What has to become of the request; nothing, if the reply does not count.
    pub(crate) outcome: Option<(Outcome, bool)>,
    /// How much longer it has to wait, in milliseconds from now.
    pub(crate) more: Option<u64>,
    /// Whether the engine has to take it; where two readings are lawful it may.
    pub(crate) surely: bool,
    /// The invariant that is broken if it counts all the same.
    pub(crate) otherwise: &'static str,
}

/// The oracle.
#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) requests: BTreeMap<RequestId, Request>,
    /// Which request an event asks for.
    asks: BTreeMap<EventNumber, RequestId>,
    pub(crate) sessions: BTreeMap<SessionId, Session>,
    /// Which event a token was first seen in.
    pub(crate) tokens: BTreeMap<u128, EventNumber>,
    pub(crate) calls: BTreeMap<ToolCallId, Call>,
    /// Every event that came out.
    heard: BTreeMap<EventNumber, Arc<str>>,
    /// For each message its record, and whether it was answered.
    messages: BTreeMap<u64, (u64, bool)>,
    /// How fast each principal replies, and floods that have to be on record now.
    paces: BTreeMap<usize, Pace>,
    floods: Vec<(usize, Flood)>,
    pub(crate) replies_per_second: u32,
    /// How long an approval is good for.
    approval_millis: u64,
    critical_per_window: u32,
    settled_per_session: usize,
    /// Handoffs and errors of late: when, by whom, in which session, and whether it was a handoff.
    urgent: Vec<(u64, usize, SessionId, bool)>,
    /// When the engine took those that have not come out yet.
    taken: BTreeMap<(SessionId, EventKind), VecDeque<u64>>,
    /// The message that was handed over last is beyond the rate.
    beyond: bool,
    /// The engine is told the time in this step.
    pub(crate) told_the_time: bool,
    pub(crate) listeners: Vec<Listener>,
    /// Records that the disk has promised to keep.
    pub(crate) durable: u64,
    /// Records that the engine was told to be durable.
    pub(crate) told_durable: u64,
    /// The last record that the engine handed out.
    pub(crate) last_record: u64,
    pub(crate) now: u64,
    pub(crate) journal_down: bool,
    /// The hub was told that it is about to stop.
    pub(crate) draining: bool,
    /// It stopped in good order, and has not been started since.
    pub(crate) stopped: bool,
    restarted_at: Option<u64>,
    /// The record of the last restart; until it is durable, nothing is said.
    restart_record: u64,
    cause: Option<Cause>,
    /// A sign of life; it counts once everything that was due before it is done.
    alive: Option<SessionId>,
    /// Whether a timer was due, so that more may happen than the input explains.
    timers_due: bool,
    /// What came out in this step.
    appended: u32,
    events: u32,
    pub(crate) violation: Option<Violation>,
}

impl Oracle {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            replies_per_second: limits.replies_per_second,
            approval_millis: limits.approval_seconds * 1000,
            critical_per_window: limits.critical_per_window,
            settled_per_session: limits.settled_per_session,
            ..Self::default()
        }
    }

    /// Only the first is kept: later ones are mostly its consequences.
    pub(crate) fn violated(&mut self, invariant: &'static str, text: String) {
        if self.violation.is_none() {
            self.violation = Some(Violation { invariant, text });
        }
    }

    pub(crate) fn demand(
        &mut self,
        holds: bool,
        invariant: &'static str,
        text: impl FnOnce() -> String,
    ) {
        if !holds {
            self.violated(invariant, text());
        }
    }

    /// The engine is about to be called.
    pub(crate) fn begin(&mut self, cause: Cause, now: u64, timers_due: bool) {
        self.cause = Some(cause);
        self.now = now;
        self.timers_due = timers_due;
        self.appended = 0;
        self.events = 0;
        self.told_the_time = false;
        self.end_paces(now);
    }

    /// The engine was called and everything that came out was carried out.
    pub(crate) fn end(&mut self) {
        match self.cause.take() {
            Some(Cause::Reply(verdict)) => self.end_reply(verdict),
            Some(Cause::Withdraw(_) | Cause::End(_) | Cause::Recovery { .. } | Cause::Other)
            | None => {}
        }
        if let Some(session) = self.alive.take().and_then(|id| self.sessions.get_mut(&id)) {
            session.touched = self.now;
        }
        self.expire();
        self.check_floods();
        self.check_waits();
        self.check_shown();
    }

    /// With which output a session began, if everything that it says can be heard.
    pub(crate) fn began(&self, session: SessionId) -> Option<usize> {
        self.sessions.get(&session).filter(|session| !session.recovered)?.began
    }

    /// The time that something was asked with this event.
    fn asking(&self, event: EventNumber) -> Option<&Asking> {
        let request = self.requests.get(self.asks.get(&event)?)?;
        request.askings.iter().find(|asking| asking.event == event)
    }

    /// I6: a reply that does not count leaves one record and nothing else that anybody could see.
    /// Beyond the rate it does not even leave that (D40), and one that counts is taken all the same.
    fn end_reply(&mut self, verdict: Verdict) {
        let beyond = self.beyond;
        self.demand(self.appended >= 1 || beyond, "I6", || "a reply left no record".into());
        let counts = verdict.outcome.is_some() || verdict.more.is_some();
        if !counts && !self.timers_due {
            let (records, invariant) = if beyond { (0, "I22") } else { (1, "I6") };
            self.demand(self.appended == records && self.events == 0, invariant, || {
                "a reply that does not count was followed by something".into()
            });
        }
        let request = verdict.request.filter(|_| counts && verdict.surely);
        let Some(request) = request.and_then(|number| self.requests.get(&number)) else { return };
        let taken = match verdict.more {
            // Its session may have ended before, for another reason.
            Some(_) => request.now().record == self.last_record || request.resolved.is_some(),
            None => request.resolved.is_some(),
        };
        self.demand(taken, "I7", || "an answer that came in time was not taken".into());
    }

    /// I7, I14, I27: the engine has just been told the time, so nothing is overdue.
    fn check_waits(&mut self) {
        let now = self.now;
        let mut broken = None;
        for request in self.requests.values().filter(|request| request.waits()) {
            if now >= request.now().deadline {
                broken = Some(("I7", "a request waits past its deadline"));
            } else if self.should_have_ended(request) {
                broken = Some(("I14", "a request waits although nobody who could answer is left"));
            }
        }
        for request in self.requests.values().filter(|request| request.is_approved()) {
            let open = self.sessions.get(&request.session).is_some_and(|s| s.ended.is_none());
            if open && now >= request.approved_at + self.approval_millis {
                broken = Some(("D41", "an approval outlived its time"));
            }
        }
        if let Some((invariant, text)) = broken {
            self.violated(invariant, text.into());
        }
    }

    /// I18: what is durable is shown as soon as the outputs are drained.
    fn check_shown(&mut self) {
        let durable = self.told_durable;
        if durable < self.restart_record {
            return;
        }
        let hidden = self.requests.values().any(|request| self.hides(request, durable));
        self.demand(!hidden, "I18", || "a resolution was never shown".into());
    }

    /// Whether people do not know what became of something that they were asked.
    fn hides(&self, request: &Request, durable: u64) -> bool {
        let lives = || self.sessions.get(&request.session).is_some_and(|s| !s.told_end);
        let ends = request.askings.iter().skip(1).map(|next| Some(next.record));
        let ends = ends.chain([request.resolved.map(|resolved| resolved.record)]);
        let mut askings = request.askings.iter().zip(ends);
        let expired = request.expired.is_some_and(|record| record <= durable);
        if expired && !request.expiry_shown && lives() {
            return true;
        }
        askings.any(|(asking, end)| {
            asking.announced && !asking.shown && end.is_some_and(|record| record <= durable)
        }) && lives()
    }

    /// Faults have stopped and all the time has passed: what must be true in the end.
    pub(crate) fn at_rest(&mut self) {
        let waiting = self.requests.values().any(Request::waits);
        self.demand(!waiting, "I27", || "a request is still open after its deadline".into());
        let unshown = self.requests.values().any(|request| self.hides(request, u64::MAX));
        self.demand(!unshown, "I18", || "a restart swallowed a resolution".into());
        let untold = |call: &Call| call.completed_on.is_some() && !call.completed;
        let untold = self.calls.values().any(untold);
        self.demand(!untold, "I11", || "nobody was told how a call ended".into());
        let endless = self.sessions.values().any(|s| s.ended.is_some() && !s.told_end);
        self.demand(!endless, "I5", || "nobody was told that a session ended".into());
        let unanswered = self.messages.values().any(|(_, noted)| !noted);
        self.demand(!unanswered, "I6", || "a reply was never answered".into());
        self.nothing_is_owed();
    }
}
