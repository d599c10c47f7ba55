//! What can go wrong, by whose fault it is.

use std::fmt;

use aaep_types::Rule;
use aaep_types::json::Members;

use crate::reply::ReplyDetails;

/// Why something was not done.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The caller misused this library. Nothing was sent.
    Misuse(Misuse),
    /// The hub refused. Nothing has changed there.
    Refused(Refused),
    /// The session is over: its user stopped it, or its agent was silent for too long.
    SessionOver,
    /// The hub could not be asked in time, or could not keep it. Nobody knows whether it was done.
    Unavailable(String),
}

/// What the caller did that the protocol does not allow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misuse {
    /// The rule that would have been broken.
    pub rule: Rule,
    /// One sentence: what to do instead.
    pub text: String,
}

/// What the hub said when it refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refused {
    /// The HTTP status: 400 malformed, 401 and 403 not let in, 404 not yours, 409 order or consent,
    /// 413 too long, 422 key reused, 429 too much at once.
    pub status: u16,
    /// The rule that would have been broken, such as `T12`.
    pub rule: Option<String>,
    /// The section of the specification.
    pub section: Option<String>,
    /// One sentence: what to do.
    pub text: String,
}

impl Refused {
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let members = Members::whole(&text, 8).ok().flatten().unwrap_or_default();
        let find = |name| members.text(name).map(|text| text.into_owned());
        let said = find("text").unwrap_or_else(|| {
            format!("This does not look like a hub: {}", aaep_types::cut(&text, 200))
        });
        Self { status, rule: find("rule"), section: find("section"), text: said }
    }

    /// Whether it was refused for this rule.
    pub(crate) fn is(&self, rule: Rule) -> bool {
        self.rule.as_deref() == Some(rule.id)
    }
}

impl Error {
    pub(crate) fn misuse(rule: Rule, text: impl Into<String>) -> Self {
        Self::Misuse(Misuse { rule, text: text.into() })
    }

    /// An answer that the hub should not have given.
    pub(crate) fn odd_answer() -> Self {
        Self::Unavailable("the hub's answer cannot be read; is it another version?".into())
    }

    /// Whether the hub has surely not done it.
    pub(crate) fn is_certain(&self) -> bool {
        !matches!(self, Self::Unavailable(_))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(misuse) => {
                write!(f, "{} ({}, §{})", misuse.text, misuse.rule.id, misuse.rule.section)
            }
            Self::Refused(refused) => refused.fmt(f),
            Self::SessionOver => f.write_str("The session is over."),
            Self::Unavailable(why) => {
                write!(f, "The hub cannot be asked: {why}. Nobody knows whether it was done.")
            }
        }
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match (&self.rule, &self.section) {
            (Some(rule), Some(section)) => write!(f, " ({rule}, §{section})"),
            _ => write!(f, " (status {})", self.status),
        }
    }
}

impl std::error::Error for Error {}

/// Why there is no approval. None of them ever becomes one: to try again, ask again.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum NotApproved {
    /// Somebody said no.
    Rejected {
        /// Who.
        by: String,
        /// What the reply says of itself.
        reply: Box<ReplyDetails>,
    },
    /// Nobody answered in time, and silence means no.
    TimedOut,
    /// Somebody said yes, and the approval was not used in time (D41).
    Expired,
    /// The request was withdrawn, by its agent or by the hub.
    Cancelled,
    /// The session is over.
    SessionOver,
    /// The action was begun before, perhaps by an agent that then crashed: nobody knows how it ended
    /// (I11). Ask again, or see [`Parked::rerun_if_begun`](crate::Parked::rerun_if_begun).
    Begun,
    /// The approval was handed out before; it is good for one run.
    AlreadyGiven,
    /// The hub cannot be asked. Ask for the decision again later.
    Unavailable(Error),
}

impl fmt::Display for NotApproved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Rejected { by, reply } => match &reply.rationale {
                Some(why) => write!(f, "Rejected {}: {why}", decided_by(by)),
                None => write!(f, "Rejected {}.", decided_by(by)),
            },
            Self::TimedOut => f.write_str("Nobody answered in time, and silence means no."),
            Self::Expired => {
                f.write_str("The approval was not used in time and is spent; ask again.")
            }
            Self::Cancelled => f.write_str("The request was withdrawn."),
            Self::SessionOver => Error::SessionOver.fmt(f),
            Self::Begun => f.write_str(
                "The action was begun before, and nobody knows how it ended; ask again. (I11)",
            ),
            Self::AlreadyGiven => {
                f.write_str("The approval was handed out before; it is good for one run.")
            }
            Self::Unavailable(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for NotApproved {}

/// Why a question has no answer. Never guess one (D17).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Unanswered {
    /// Nobody answered in time, and there is no default. Hand over, or end the session (C30).
    TimedOut,
    /// The question was withdrawn, by its agent or by the hub.
    Cancelled,
    /// The session is over.
    SessionOver,
    /// It could not be asked.
    NotAsked(Error),
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("Nobody answered in time."),
            Self::Cancelled => f.write_str("The question was withdrawn."),
            Self::SessionOver => Error::SessionOver.fmt(f),
            Self::NotAsked(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for Unanswered {}

impl From<Error> for Unanswered {
    fn from(error: Error) -> Self {
        match error {
            Error::SessionOver => Self::SessionOver,
            other => Self::NotAsked(other),
        }
    }
}

/// Who decided, in words for people: `by ann`. Whoever needs no name on the hub's own machine has none:
/// `on this machine`.
pub fn decided_by(principal: &str) -> String {
    match principal {
        "local" | "socket" => "on this machine".to_owned(),
        name => format!("by {name}"),
    }
}

/// Why a tool gave no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ToolError<E> {
    /// The tool itself failed.
    Failed(E),
    /// It did not come back in time, and was given up.
    TimedOut,
    /// It panicked, with this message.
    Panicked(String),
    /// The session ended while it ran, and it was given up.
    SessionOver,
    /// It was not begun.
    NotBegun(Error),
}

impl<E: fmt::Display> fmt::Display for ToolError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(error) => error.fmt(f),
            Self::TimedOut => f.write_str("The tool did not come back in time."),
            Self::Panicked(message) => write!(f, "The tool panicked: {message}"),
            Self::SessionOver => Error::SessionOver.fmt(f),
            Self::NotBegun(error) => error.fmt(f),
        }
    }
}

impl<E: fmt::Debug + fmt::Display> std::error::Error for ToolError<E> {}
