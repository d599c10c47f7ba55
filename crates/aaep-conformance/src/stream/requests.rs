//! Requests and consent (§6): what was asked, what became of it, and what it allowed.
//!
//! A request stays here until the stream shows what became of it. An accepted one stays until a
//! call uses it up: it is the ledger of consent. `answer` takes replies, `resolve` takes the state
//! changes that report an outcome, `consent` takes tool calls, `waiting` watches the time.

mod answer;
mod consent;
mod resolve;
mod waiting;

use std::collections::VecDeque;

use aaep_types::{EventKind, ReplyToken, rule};

use super::Weight;
use super::memory::Digest;
use super::report::Report;
use super::said::{Ask, RequestKind};

pub(super) use answer::ValidReply;
pub(super) use resolve::Change;

/// Requests of one session that are followed at a time; further ones are not judged.
pub const MAX_REQUESTS: usize = 64;
/// How long after a deadline or a reply a producer may take to show what came of it, measured by
/// the timestamps of its events.
pub const RESOLUTION_GRACE_SECONDS: i64 = 5;

const GRACE_MICROS: i64 = RESOLUTION_GRACE_SECONDS * 1_000_000;

/// What the stream has shown of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    Pending,
    Accepted(By),
    Rejected,
    /// A clarification got its answer.
    Answered,
    /// A call has used the accept, but no state change has reported it yet.
    UsedUp,
}

/// On what ground a request counts as accepted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum By {
    /// A reply, or a state change that says so.
    Word,
    /// Nobody answered, and the default was accept.
    Default,
    /// The producer went on where it should not have; that was reported, and is not again.
    Dispute,
}

/// Why a token counts for nothing any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Dead {
    Cancelled,
    TimedOut,
    Settled,
}

#[derive(Debug)]
struct Request {
    ask: Ask,
    line: u64,
    status: Status,
    /// A state change has shown the outcome.
    reported: bool,
    /// Some event after the reply shows that the producer reacted.
    followed: bool,
    /// The time of the first event after the reply, in microseconds.
    waiting_since: Option<i64>,
    /// An accept came after the deadline.
    late_accept: bool,
    /// The line of a call that looks as if it ran against the user's decision.
    suspect: Option<u64>,
    /// The line of a call that looks like the accepted one, but does not say `irreversible`.
    unflagged: Option<u64>,
}

impl Request {
    fn is_pending(&self) -> bool {
        self.status == Status::Pending
    }

    fn is_confirmation(&self) -> bool {
        self.ask.kind == RequestKind::Confirmation
    }

    /// A reply settled it, and no state change has said so.
    fn is_unreported(&self, status: Status) -> bool {
        self.status == status && !self.reported
    }

    fn is_past(&self, time: Option<i64>) -> bool {
        matches!((self.ask.deadline, time), (Some(deadline), Some(time)) if time >= deadline)
    }

    fn is_long_past(&self, time: Option<i64>) -> bool {
        let with_grace = self.ask.deadline.and_then(|deadline| deadline.checked_add(GRACE_MICROS));
        matches!((with_grace, time), (Some(limit), Some(time)) if time > limit)
    }
}

/// How well the stream can be seen.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sight {
    pub(super) complete: bool,
    /// The weight of what a lost event could explain.
    pub(super) lost: Weight,
}

/// The requests of one session.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: Vec<Request>,
    /// Tokens that are dead, the latest last.
    graves: VecDeque<(ReplyToken, Dead)>,
    /// An accept for a dead token is the latest that was heard from the user.
    dead_accept: Option<Dead>,
    /// Tools of requests that were not accepted, with their lines, the latest last.
    refused: VecDeque<(Digest, u64)>,
    /// Accepts that had to be forgotten before a call used them.
    forgotten_accepts: u64,
    /// Several requests were open, and nothing said which one a state change was about.
    ambiguous: bool,
    full: bool,
}

impl Requests {
    /// Something is asked; true if a bound of ours was reached just now.
    pub(super) fn ask(&mut self, ask: Ask, sight: Sight, report: &mut Report<'_>) -> bool {
        self.judge_repetition(&ask, sight, report);
        if self.open.len() >= MAX_REQUESTS && !self.forget_an_accept() {
            let newly = !self.full;
            self.full = true;
            if newly {
                report.bound(format!(
                    "This session has more than {MAX_REQUESTS} open requests. \
                     Further ones are not followed."
                ));
            }
            return newly;
        }
        self.open.push(Request {
            ask,
            line: report.line,
            status: Status::Pending,
            reported: false,
            followed: false,
            waiting_since: None,
            late_accept: false,
            suspect: None,
            unflagged: None,
        });
        false
    }

    /// §6.1: asking twice leaves the user with two prompts for one action.
    fn judge_repetition(&self, ask: &Ask, sight: Sight, report: &mut Report<'_>) {
        let same = self.open.iter().find(|open| {
            open.is_pending()
                && open.is_confirmation()
                && open.ask.action == ask.action
                // The first may have timed out in silence; that is another rule's business.
                && !open.is_past(ask.asked_at)
        });
        if let Some(first) = same.filter(|_| ask.kind == RequestKind::Confirmation) {
            report.add(
                self.weight(sight),
                rule::C4,
                format!(
                    "The same action is asked for again while the request on line {} is open. \
                     Wait for its outcome or cancel it first.",
                    first.line
                ),
            );
        }
    }

    /// Makes room by dropping the oldest accept that was reported and never used.
    fn forget_an_accept(&mut self) -> bool {
        let spare = |request: &Request| match request.status {
            Status::Accepted(_) => request.reported,
            Status::UsedUp => true,
            _ => false,
        };
        let Some(at) = self.open.iter().position(spare) else { return false };
        let request = self.open.remove(at);
        if request.status == Status::Accepted(By::Word) {
            self.forgotten_accepts = self.forgotten_accepts.saturating_add(1);
        }
        true
    }

    fn weight(&self, sight: Sight) -> Weight {
        if self.ambiguous { Weight::Note } else { sight.lost }
    }

    /// The weight of what only a complete stream can show: that something did *not* happen.
    fn weight_of_absence(&self, sight: Sight) -> Weight {
        if sight.complete { self.weight(sight) } else { Weight::Note }
    }

    /// The weight of what contradicts a reply: unless the stream is complete, somebody else's reply
    /// may have come first.
    fn weight_against_reply(&self, sight: Sight) -> Weight {
        if sight.complete { self.weight(sight) } else { self.weight(sight).max(Weight::Warning) }
    }

    fn bury(&mut self, at: usize, dead: Dead) {
        let request = self.open.remove(at);
        if matches!(request.status, Status::Pending | Status::Rejected) {
            self.refuse(&request);
        }
        let Some(token) = request.ask.token else { return };
        self.graves.push_back((token, dead));
        if self.graves.len() > MAX_REQUESTS {
            self.graves.pop_front();
        }
    }

    fn refuse(&mut self, request: &Request) {
        let Some(tool) = request.ask.tool else { return };
        self.refused.push_back((tool, request.line));
        if self.refused.len() > MAX_REQUESTS {
            self.refused.pop_front();
        }
    }

    fn first(&self, test: impl Fn(&Request) -> bool) -> Option<usize> {
        self.open.iter().position(test)
    }

    /// Whether a request that is open has this event id.
    pub(super) fn asked_by(&self, event: &Digest) -> bool {
        self.open.iter().any(|request| request.ask.event == *event)
    }

    /// The session ends, which resolves everything.
    pub(super) fn end(&mut self, kind: EventKind, sight: Sight, report: &mut Report<'_>) {
        // enforces: C24
        self.judge_unflagged(report);
        if kind != EventKind::SessionCompleted {
            return;
        }
        self.judge_suspects(sight, report);
        self.judge_silence(sight, report);
        for request in self.open.iter().filter(|request| request.is_pending()) {
            report.warning(
                rule::C24,
                format!(
                    "The session was completed while the request on line {} was open. \
                     Say first what became of it.",
                    request.line
                ),
            );
        }
    }

    /// Calls that ran although the user said no, or only said yes too late.
    fn judge_suspects(&mut self, sight: Sight, report: &mut Report<'_>) {
        let weight = self.weight_against_reply(sight);
        for request in &mut self.open {
            let Some(line) = request.suspect.take() else { continue };
            let (rule, why) = if request.late_accept {
                (rule::C1, "its accept came after the deadline")
            } else {
                (rule::T24, "it was rejected")
            };
            report.add(
                weight,
                rule,
                format!(
                    "A tool was invoked on line {line} after the request on line {}, although \
                     {why}. The action must not run; say that it was given up.",
                    request.line
                ),
            );
            request.followed = true;
        }
    }

    /// Decisions that nothing followed: a completed session says nothing about them (§4.5.3, §6.1).
    fn judge_silence(&self, sight: Sight, report: &mut Report<'_>) {
        let weight = self.weight_of_absence(sight);
        for request in self.open.iter().filter(|open| open.is_confirmation() && !open.followed) {
            let line = request.line;
            match request.status {
                Status::Rejected if !request.reported => report.add(
                    weight,
                    rule::C2,
                    format!(
                        "The request on line {line} was rejected, and the session was completed \
                         without an event that shows that its action was given up. Return to \
                         `thinking` or `deciding` first, and say why."
                    ),
                ),
                Status::Accepted(By::Word | By::Default) => report.add(
                    weight,
                    rule::T24,
                    format!(
                        "The request on line {line} was accepted, and the session was completed \
                         without its call. Invoke the tool, or say that the action no longer goes \
                         ahead."
                    ),
                ),
                _ => {}
            }
        }
    }

    /// T27: what was confirmed as irreversible is invoked as irreversible. Only a warning, since the
    /// call may have been other work.
    fn judge_unflagged(&mut self, report: &mut Report<'_>) {
        for request in &mut self.open {
            if let Some(line) = request.unflagged.take() {
                report.warning(
                    rule::T27,
                    format!(
                        "The request on line {} was for an irreversible action, but the call on \
                         line {line} does not say `irreversible: true`.",
                        request.line
                    ),
                );
            }
        }
    }

    #[cfg(test)]
    pub(super) fn is_bounded(&self) -> bool {
        self.open.len() <= MAX_REQUESTS
            && self.graves.len() <= MAX_REQUESTS
            && self.refused.len() <= MAX_REQUESTS
    }
}
