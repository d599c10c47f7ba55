//! One request: what was asked, what it is bound to, what became of it.

use aaep_types::json::string_value;
use aaep_types::{EventKind, Presence, RiskLevel, SessionId, Timestamp, cut, recorded};
use std::borrow::Cow;
use std::sync::Arc;

use crate::clock::Boot;
use crate::hints::members_inside;
use crate::ids::{Digest, EventNumber, RequestId, SessionKey, TokenNumber};
use crate::principal::Evidence;
use crate::principal::Principal;
use crate::record::Outcome;
use crate::slab::SlotIndex;
use crate::words::Phrase;

/// How much of an answer is told with the outcome, in code points.
const SPOKEN_CHARACTERS: usize = 200;

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
    /// The action was approved, and the approval was not used in time (D41).
    Expired,
    /// The approval was spent.
    Invoked,
    /// The action ended, and its agent said how.
    Completed,
    /// The action was begun and nobody knows how it ended (I11).
    Unknown,
}

impl Status {
    /// Whether there is an approval left to spend.
    pub(crate) fn is_approved(self) -> bool {
        matches!(self, Status::Resolved { runs: true, .. })
    }

    /// Whether there was a yes: the action may run, runs, or ran.
    pub(crate) fn has_consent(self) -> bool {
        self.is_approved() || matches!(self, Status::Invoked | Status::Completed | Status::Unknown)
    }

    /// Whether something will be due for the request: it waits for an answer, or to be used.
    pub(crate) fn has_deadline(self) -> bool {
        self == Status::Pending || self.is_approved()
    }

    /// After a call: I11, only what its agent said is known.
    pub(crate) fn after_call(known: bool) -> Self {
        if known { Status::Completed } else { Status::Unknown }
    }
}

/// A request as its agent may see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct View {
    /// Where it stands.
    pub status: Status,
    /// The session that asked.
    pub session: SessionId,
    /// Whether it asks for consent; otherwise for an answer.
    pub confirmation: bool,
    /// The event that asks; another one after more time was given.
    pub event: EventNumber,
    /// What consent is bound to.
    pub digest: Digest,
    /// When the wait ends, by the clock on the wall.
    pub deadline: Timestamp,
    /// Who or what decided.
    pub decided_by: Option<Arc<str>>,
    /// The answer to a question, as JSON.
    pub response: Option<Arc<str>>,
    /// What the reply says of itself, as a JSON object: nobody has checked it.
    pub reply: Option<Arc<str>>,
}

/// Whose a request is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asker {
    /// The agent of the session.
    pub owner: Principal,
    /// The `agent_id` of the sub-agent that asked in it, if one did.
    pub sub_agent: Option<String>,
}

/// Why an approval was not used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unused {
    /// Its time is over (D41).
    TooLate,
    /// Its agent gave it up.
    GivenUp,
    /// Its session ends.
    SessionEnds,
}

impl Unused {
    /// What people are told.
    pub(crate) fn phrase(self) -> Phrase {
        match self {
            Unused::TooLate => Phrase::EXPIRED,
            Unused::GivenUp => Phrase::GIVEN_UP,
            Unused::SessionEnds => Phrase::SESSION_ENDS,
        }
    }
}

/// A request; it is bound to its session, its kind, the digest of its action and its deadline.
#[derive(Debug)]
pub(crate) struct Request {
    /// What others know it by: the number of the event that asked first.
    pub(crate) number: RequestId,
    /// The reply token that counts now.
    pub(crate) token: TokenNumber,
    pub(crate) session: SessionKey,
    /// Where its session lies, or another one when it has ended.
    pub(crate) home: SlotIndex,
    pub(crate) kind: EventKind,
    pub(crate) digest: Digest,
    pub(crate) tool: Arc<str>,
    /// Until it is settled, or its call is over.
    pub(crate) arguments: Arc<str>,
    /// What is shown in the events about it; after a restart it is read from the event when it is
    /// needed, for there may be a million.
    pub(crate) action: Option<Arc<str>>,
    pub(crate) stamp: Timestamp,
    pub(crate) asked_at: Boot,
    /// When the wait ends; after a yes, when the approval does.
    pub(crate) deadline: Boot,
    /// How much later than it was said, in microseconds: its wait began on another machine, whose clock
    /// may have been off.
    pub(crate) margin: u32,
    pub(crate) timeout_seconds: u64,
    pub(crate) default_accept: bool,
    /// The answer to a question, as JSON: first what counts when none comes (decision D17).
    pub(crate) answer: Option<Arc<str>>,
    /// The number of the event that asks now; another one after more time was given.
    pub(crate) event_number: EventNumber,
    pub(crate) irreversible: bool,
    /// How much can go wrong; after a restart it is read from the event when it is needed.
    pub(crate) risk: Option<RiskLevel>,
    pub(crate) status: Status,
    /// Who or what decided.
    pub(crate) by: Option<Arc<str>>,
    /// What the reply says of itself, as a JSON object.
    pub(crate) reply: Option<Arc<str>>,
    /// The presence that a yes requires (I34).
    pub(crate) needs: Presence,
    /// What was verified of the reply that decides, until it is on record.
    pub(crate) shown: Option<Box<Evidence>>,
    /// It was rejected by somebody whose clock cannot be right (D42).
    pub(crate) wrong_clock: bool,
    /// What it counts for in its agent's share while it waits.
    pub(crate) bytes: usize,
    /// How much of the time was left when that was said last, in percent (§6.4.3).
    pub(crate) counted_down: u8,
    /// The event as it was sent, for those who come later; dropped once it is resolved.
    pub(crate) event: Option<Arc<str>>,
    /// The sub-agent that asked, as a JSON object.
    pub(crate) producer: Option<Box<str>>,
    /// What its call is announced with besides; there once it is approved.
    pub(crate) call: Option<Box<CallWords>>,
}

/// What the announcement of an approved action says besides its own words (§4.3.1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CallWords {
    /// The arguments as the hub told them in the question, in one line; empty if there are none.
    pub(crate) args_summary: String,
    /// The members of the question's `localization_hints`: its words are said again.
    pub(crate) localization: Option<String>,
}

impl Request {
    /// What is shown in the events about it.
    pub(crate) fn action(&mut self) -> Arc<str> {
        // It was valid when it was asked.
        let event = self.event.as_deref();
        let look = match self.kind {
            EventKind::AwaitingConfirmation => recorded::action,
            _ => recorded::question,
        };
        let read = || event.and_then(look).unwrap_or_default().into();
        self.action.get_or_insert_with(read).clone()
    }

    // enforces: T11, L13, D10
    /// Keeps what its call is announced with, before the event that asked is dropped. A risk that is
    /// not stated counts as high.
    pub(crate) fn keep_for_call(&mut self) {
        let asked = self.event.as_deref().map(recorded::asked_call);
        let risk = asked.as_ref().and_then(|asked| asked.risk).unwrap_or(RiskLevel::High);
        self.risk.get_or_insert(risk);
        let Some(asked) = asked else { return };
        let args_summary = asked.arguments.unwrap_or_default().replace('\n', "; ");
        let localization = asked.localization.and_then(members_inside);
        self.call = Some(Box::new(CallWords { args_summary, localization }));
    }

    // enforces: C23, D17, D42
    /// What became of it, and the answer that it goes on with where none came.
    pub(crate) fn outcome_phrase(&self, outcome: Outcome, runs: bool) -> (Phrase, String) {
        let question = self.kind == EventKind::AwaitingClarification;
        let phrase = match (outcome, runs) {
            (Outcome::Accepted, _) if question => Phrase::ANSWERED,
            (Outcome::Accepted, _) => Phrase::ACCEPTED,
            (Outcome::Rejected, _) => Phrase::REJECTED,
            (Outcome::TimedOut, true) => Phrase::TIMED_OUT_RUNS,
            (Outcome::TimedOut, false) if question => match &self.answer {
                Some(answer) => {
                    let answer = spoken(answer);
                    let answer = cut(&answer, SPOKEN_CHARACTERS).to_owned();
                    return (Phrase::TIMED_OUT_WITH, answer);
                }
                None => Phrase::TIMED_OUT_OPEN,
            },
            (Outcome::TimedOut, false) => Phrase::TIMED_OUT,
            (Outcome::Cancelled, _) if self.wrong_clock => Phrase::WRONG_CLOCK,
            (Outcome::Cancelled, _) => Phrase::CANCELLED,
            (Outcome::Superseded, _) => Phrase::SUPERSEDED,
        };
        (phrase, String::new())
    }

    /// Whether something may still become of it: it waits, may be invoked, or runs.
    pub(crate) fn is_live(&self) -> bool {
        self.status.has_deadline() || self.status == Status::Invoked
    }

    /// Lets go of what nobody needs any more; the journal has it.
    pub(crate) fn forget_action(&mut self) {
        self.arguments = Arc::default();
        self.action = None;
        self.event = None;
        self.call = None;
    }

    /// The bytes of its texts.
    pub(crate) fn text_bytes(&self) -> usize {
        let texts = [&self.action, &self.answer, &self.by, &self.reply, &self.event];
        let texts = texts.into_iter().flatten().map(|text| text.len());
        let call = self.call.as_ref().map_or(0, |call| {
            call.args_summary.len() + call.localization.as_ref().map_or(0, String::len)
        });
        self.tool.len() + self.arguments.len() + call + texts.sum::<usize>()
    }

    // enforces: I7, I8
    /// From when on no reply counts: at the deadline, or as much before the time that was said as silence
    /// counts after it.
    pub(crate) fn closes(&self) -> Boot {
        Boot(self.deadline.0.saturating_sub(2 * u64::from(self.margin)))
    }

    /// When something is due for it: half of the time left, a tenth left, none left; after a yes, the
    /// end of the approval.
    pub(crate) fn due(&self) -> Boot {
        if self.status.is_approved() {
            return self.deadline;
        }
        let length = self.deadline.0.saturating_sub(self.asked_at.0);
        // Counted back from the end: with nothing left it is the deadline to the microsecond. Were
        // it a little before, the timer would be due for ever without the wait being over.
        let left = match self.counted_down {
            _ if self.timeout_seconds <= 60 => 0,
            100 => 50,
            50 => 10,
            _ => 0,
        };
        Boot(self.deadline.0 - length / 100 * left)
    }

    /// When the wait ends by the clock on the wall, in microseconds.
    pub(crate) fn wall_deadline(&self) -> i64 {
        self.stamp.as_micros().saturating_add(self.timeout_seconds as i64 * 1_000_000)
    }
}

/// An answer as people say it: texts without their quotes.
fn spoken(json: &str) -> Cow<'_, str> {
    match string_value(json) {
        Some(text) => text.into(),
        None => json.into(),
    }
}
