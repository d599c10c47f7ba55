//! What must survive a restart, as bytes: encoded and checksummed here, so that every store keeps
//! the same bytes and the simulator's disk can damage the real ones; see `codec` for the layout.
//!
//! Nothing in a record is a reply token: those follow from the key.

use aaep_types::json::Canonical;
use aaep_types::{Presence, recorded};
use std::fmt;
use std::sync::Arc;

use crate::ids::{Digest, EventNumber, RequestId};
use crate::question::question_of;

/// What became of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// The user said yes, or answered.
    Accepted,
    /// The user said no.
    Rejected,
    /// Nobody answered in time, and the default applies.
    TimedOut,
    /// The agent or the user withdrew it, or the session ended.
    Cancelled,
    /// Another request took its place, with more time.
    Superseded,
}

impl Outcome {
    /// The word that stands in the outcome extension.
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Accepted => "accepted",
            Outcome::Rejected => "rejected",
            Outcome::TimedOut => "timed_out",
            Outcome::Cancelled => "cancelled",
            Outcome::Superseded => "superseded",
        }
    }

    pub(crate) const ALL: [Outcome; 5] = [
        Outcome::Accepted,
        Outcome::Rejected,
        Outcome::TimedOut,
        Outcome::Cancelled,
        Outcome::Superseded,
    ];
}

/// Why records were erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Erasure {
    /// They were older than records are kept.
    Age,
    /// The journal was larger than it may be.
    Size,
    /// Somebody wanted what was kept about them erased.
    Person,
}

impl Erasure {
    /// As it is written in an audit.
    pub fn as_str(self) -> &'static str {
        match self {
            Erasure::Age => "age",
            Erasure::Size => "size",
            Erasure::Person => "person",
        }
    }

    pub(crate) const ALL: [Erasure; 3] = [Erasure::Age, Erasure::Size, Erasure::Person];
}

/// One step that must survive a restart.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Record {
    /// A session began.
    Opened(Opened),
    /// It ended.
    Ended {
        /// Which.
        session: Arc<str>,
        /// What was said of it.
        said: RecordedEvents,
    },
    /// Something was asked.
    Asked(Asked),
    /// A request was resolved; its token is spent.
    Resolved {
        /// The request, by the number of its event.
        request: RequestId,
        /// What became of it.
        outcome: Outcome,
        /// Whether the action may run.
        runs: bool,
        /// Who decided.
        by: Arc<str>,
        /// The answer to a question, as JSON; empty for none.
        response: Arc<str>,
        /// What the reply says of itself, as a JSON object; empty for nothing, and in older journals.
        reply: Arc<str>,
        /// The presence that came with the reply; none in older journals, and where nobody replied.
        presence: Presence,
        /// The proof of that; empty for none.
        assertion: Arc<[u8]>,
        /// What was said of it.
        said: RecordedEvents,
    },
    /// An approval was not used in time, and is spent.
    Expired {
        /// The request.
        request: RequestId,
        /// What was said of it.
        said: RecordedEvents,
    },
    /// The approval was spent and the tool called.
    Invoked {
        /// The request.
        request: RequestId,
        /// The call.
        call: Arc<str>,
        /// What was said of it.
        said: RecordedEvents,
    },
    /// A tool was called that needs no approval.
    Called {
        /// The session.
        session: Arc<str>,
        /// The call.
        call: Arc<str>,
        /// The tool.
        tool: Arc<str>,
        /// What was said of it.
        said: RecordedEvents,
    },
    /// The tool came back, or was given up.
    Completed {
        /// The session.
        session: Arc<str>,
        /// The call.
        call: Arc<str>,
        /// Whether its agent said how it ended.
        known: bool,
        /// What was said of it.
        said: RecordedEvents,
    },
    /// A request was asked again, with more time and another token.
    Extended {
        /// The request.
        request: RequestId,
        /// The number of the event that asks now.
        event: EventNumber,
        /// How long it waits from then on.
        timeout_seconds: u64,
        /// What was said of it, but for the event that asks.
        said: RecordedEvents,
    },
    /// The engine was started again from the records before: the numbers of every open session
    /// skipped ahead.
    Restarted {
        /// The clock on the wall then, in microseconds; 0 if it could not be trusted.
        stamp: i64,
    },
    /// A reply that changed nothing; the reason is for the audit alone.
    Ignored {
        /// Who sent it.
        by: Arc<str>,
        /// Why it did not count.
        reason: u8,
    },
    /// Replies beyond the rate within one second, which leave no records of their own.
    Flooded {
        /// Who sent them.
        by: Arc<str>,
        /// How many.
        replies: u64,
        /// How many of them changed nothing; the others have the records of what they changed.
        ignored: u64,
    },
    /// An agent spoke under an id of its own in a session that another agent opened.
    Claimed {
        /// Name of the agent.
        agent: Arc<str>,
        /// Whose agent it is.
        user: Arc<str>,
        /// The `agent_id`.
        id: Arc<str>,
    },
    /// Somebody who runs the producer did something.
    Administered {
        /// Who.
        by: Arc<str>,
        /// What was done, in a word: `released`, `handed_over`, `ended_session`, `let_in`, `shut_out`,
        /// `passkey_added`, `passkey_removed`, `pin_changed`, `pin_set`, `pin_tried`, `presence_reset`, `denied`, `allowed`,
        /// `erased`.
        act: Arc<str>,
        /// To what: an `agent_id`, a session, a principal, the user whose passkey or PIN it is.
        what: Arc<str>,
        /// Who has it since, as `principal of user`; for a passkey, `key` and the SHA-256 of its key; empty
        /// otherwise.
        to: Arc<str>,
    },
    /// What still has to follow in a session before it may be completed; takes the place of what was
    /// owed before.
    Owed {
        /// The session.
        session: Arc<str>,
        /// The ids of the profile's rules that ask for it; none if nothing is owed any more.
        rules: Vec<Arc<str>>,
    },
    /// Earlier records count as erased from here on, whether their bytes are still there or not.
    /// Nothing of what they said is needed any more.
    Erased {
        /// Why.
        why: Erasure,
        /// The operator's words, such as the number of a request; empty for none. Never whose data it
        /// was.
        note: Arc<str>,
        /// The first and the last of each run, in order, apart from each other, all before this one.
        runs: Vec<(u64, u64)>,
    },
}

/// A session that began.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Its id.
    pub session: Arc<str>,
    /// Name of the agent.
    pub agent: Arc<str>,
    /// Whose session it is.
    pub user: Arc<str>,
    /// The producer object as JSON.
    pub producer: Arc<str>,
    /// The language of its texts.
    pub language: Arc<str>,
    /// How long the agent may stay silent.
    pub lease_seconds: u64,
    /// `session.started` as JSON.
    pub event: Arc<str>,
    /// When, in microseconds.
    pub stamp: i64,
}

/// A request that was made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Its number: that of its event.
    pub request: RequestId,
    /// The session.
    pub session: Arc<str>,
    /// Whether it asks for consent; otherwise for an answer.
    pub confirmation: bool,
    /// The tool; empty for a question.
    pub tool: Arc<str>,
    /// Its exact arguments.
    pub arguments: Arc<str>,
    /// The event as JSON, without the reply token.
    pub event: Arc<str>,
    /// When it was made, in microseconds.
    pub stamp: i64,
    /// How long it waits.
    pub timeout_seconds: u64,
    /// Whether silence means yes.
    pub default_accept: bool,
    /// Whether the action cannot be taken back.
    pub irreversible: bool,
    /// The account of the action, as JSON; empty for a question, and in journals of before there
    /// was one.
    pub account: Arc<str>,
    /// The presence that a yes requires; none in older journals.
    pub needs: Presence,
    /// What was said before it.
    pub said: RecordedEvents,
}

impl Asked {
    /// What consent is bound to. What could be asked before there was a canonical form, and has
    /// none, is told apart by its bytes.
    pub fn digest(&self) -> Digest {
        let question;
        let (tool, text) = if self.confirmation {
            (&*self.tool, &*self.arguments)
        } else {
            question = question_of(&["{", &self.event, "}"].concat());
            ("", &*question)
        };
        match Canonical::of(text) {
            Ok(canonical) => Digest::of(tool, &canonical),
            Err(_) => Digest::of_bytes(tool, text),
        }
    }

    /// The digest as people and the agent were told it then, for the audit.
    pub fn told_digest(&self) -> String {
        recorded::digest_of_account(&self.account)
            .unwrap_or_else(|| Digest::of_bytes(&self.tool, &self.arguments).to_string())
    }
}

/// What a session said because of a record. A crash between the record and its events must not
/// swallow them (I18), so they are kept with it, and said again if nobody knows that they were.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordedEvents {
    /// The events of every record up to this one had left when this one was made.
    pub told: u64,
    /// The next number of the session's events.
    pub next_number: u64,
    /// The last stamp of the session, in microseconds.
    pub stamp: i64,
    /// The events as JSON; never one that holds a reply token.
    pub events: Vec<Arc<str>>,
}

/// Why bytes are no record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Corrupt {
    /// They end too early.
    Short,
    /// They were changed.
    Checksum,
    /// Nobody knows this kind or shape.
    Unknown,
}

impl fmt::Display for Corrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Corrupt::Short => "the record is cut short",
            Corrupt::Checksum => "the record was changed after it was written",
            Corrupt::Unknown => "the record is of a kind that this version does not know",
        })
    }
}

impl std::error::Error for Corrupt {}
