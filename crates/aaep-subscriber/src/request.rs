//! A question that waits for the user, and what becomes of it.

use std::sync::Arc;
use std::time::Duration;

use aaep_types::{DescribedBy, Presence, ReplyToken, ResponseKind, Reversibility, RiskLevel};

use crate::notification::Agent;

/// Names a request towards the [inbox](crate::inbox::Inbox) or the client that told of it: what a
/// program answers by. It is not the number that people say: a voice may number requests anew.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequestHandle(u32);

impl RequestHandle {
    pub(crate) fn get(self) -> u32 {
        self.0
    }
}

impl From<u32> for RequestHandle {
    fn from(number: u32) -> Self {
        Self(number)
    }
}

impl std::fmt::Display for RequestHandle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// A request of an agent, as the user hears it. Everything an agent wrote is as it was sent: the
/// words make it safe.
#[derive(Clone, Debug, PartialEq)]
pub struct Request {
    /// By which it is answered.
    pub id: RequestHandle,
    /// A small number, given in the order of asking, by which the user can name it.
    pub number: u32,
    /// Who asks.
    pub agent: Agent,
    /// The request's event.
    pub event_id: Arc<str>,
    /// Its session.
    pub session_id: Arc<str>,
    /// What is echoed in the reply (C7, C29). Never shown.
    pub reply_token: ReplyToken,
    /// What is asked.
    pub asks: Asks,
    /// What the hub itself says would run, apart from the agent's words.
    pub account: Option<Account>,
    /// The agent's own words, where those of the policy stand in their place.
    pub agent_says: Option<String>,
    /// How long it waits in all, in seconds.
    pub timeout_seconds: u64,
    /// When it stops to wait, in milliseconds of the clock with which the inbox is called.
    pub deadline_ms: u64,
    /// The number of the request that this one continues with more time (D32).
    pub continues: Option<u32>,
    /// The language of the agent's text, when it says so.
    pub language: Option<Arc<str>>,
    /// The event as it was received.
    pub json: Arc<str>,
}

impl Request {
    /// How long it waits in all.
    pub fn timeout(&self) -> Duration {
        Duration::from_secs(self.timeout_seconds)
    }

    /// How long it still waits, when the clock with which the inbox is called says this.
    pub fn time_left(&self, now_ms: u64) -> Duration {
        Duration::from_millis(self.deadline_ms.saturating_sub(now_ms))
    }

    /// The presence that a yes requires.
    pub fn needs(&self) -> Presence {
        aaep_types::presence::needed(&self.json)
    }

    // enforces: I31
    /// Whether the hub's account is said unasked, right after the question: nobody but the agent
    /// describes something grave.
    pub fn says_account(&self) -> bool {
        let grave = matches!(self.asks, Asks::Consent { risk: RiskLevel::High, .. });
        let account = self.account.as_ref();
        grave && account.is_some_and(|account| account.described_by == DescribedBy::Agent)
    }
}

/// What the hub itself says of an action: the extension `urn:aaep-rs:action:v1`. Whatever stands in
/// the arguments may be the agent's: the words make it safe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Account {
    /// The tool that would run.
    pub tool: String,
    /// Its arguments, one `path: value` in a line.
    pub arguments: String,
    /// What consent is bound to.
    pub digest: String,
    /// Whose words the question's are; unless the policy's, the agent's.
    pub described_by: DescribedBy,
    /// Whether something was left out.
    pub shortened: bool,
    /// Whether a secret was taken out.
    pub redacted: bool,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Asks {
    /// For consent (§4.4.1).
    Consent {
        /// What will be done.
        action: String,
        /// What comes of it.
        consequence: String,
        /// How much can go wrong; unknown counts as high.
        risk: RiskLevel,
        /// Whether it can be taken back; unknown counts as no.
        reversibility: Reversibility,
        /// Whether silence means yes.
        silence_accepts: bool,
    },
    /// For an answer (§4.4.2).
    Answer {
        /// What the agent wants to know.
        question: String,
        /// Why.
        context: Option<String>,
        /// How the answer may look.
        kinds: Vec<ResponseKind>,
        /// What to choose from.
        choices: Vec<Choice>,
        /// What counts when no answer comes.
        default: Option<String>,
    },
}

/// One of the answers to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// What is sent back.
    pub value: String,
    /// What is said.
    pub label: String,
}

/// What became of a request (C25, D30, D32).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestOutcome {
    /// The user's own yes counted.
    Accepted,
    /// The user's own no counted.
    Rejected,
    /// The user's own answer counted.
    Answered,
    /// Somebody else said yes, from another place.
    AcceptedElsewhere,
    /// Somebody else said no, from another place.
    RejectedElsewhere,
    /// Somebody else answered, from another place.
    AnsweredElsewhere,
    /// Nobody answered in time.
    TimedOut,
    /// The agent, or the end of its session, took it back.
    Cancelled,
    /// A device whose clock is wrong said no, so it was taken back.
    WrongClock,
    /// Another request continues it, with more time.
    Superseded,
    /// It no longer waits, and nobody said why.
    Gone,
}

impl RequestOutcome {
    /// Its word, as vectors, message files and programs have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::Answered => "answered",
            Self::AcceptedElsewhere => "accepted_elsewhere",
            Self::RejectedElsewhere => "rejected_elsewhere",
            Self::AnsweredElsewhere => "answered_elsewhere",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::WrongClock => "wrong_clock",
            Self::Superseded => "superseded",
            Self::Gone => "gone",
        }
    }
}
