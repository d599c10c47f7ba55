//! What can go wrong, by whose fault it is.

use std::fmt;
use std::sync::Arc;

use aaep_types::Rule;
#[cfg(feature = "embedded")]
use aaep_types::agent_api::ApiError;
use aaep_types::agent_api::ErrorText;

use crate::reply::ReplyDetails;

pub(crate) const ODD_ANSWER: &str = "the hub's answer cannot be read; is it another version?";

/// The error underneath, shared so that an [`Error`] can be cloned.
pub type Source = Arc<dyn std::error::Error + Send + Sync>;

/// Why something was not done, or was done and failed: the one error of this crate.
///
/// Its text says what happened; what lies underneath is its
/// [`source`](std::error::Error::source). [`report`](Self::report) gives both in one line.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Error {
    /// The caller misused this library. Nothing was sent.
    Misuse(Misuse),
    /// The hub refused. Nothing has changed there.
    Refused(HubRefusal),
    /// The user was asked, and there is no yes. The action has not run.
    NotApproved(NotApproved),
    /// A question has no answer. Never guess one (D17).
    Unanswered(Unanswered),
    /// The session is over: its user stopped it, or its agent was silent for too long.
    SessionOver,
    /// A tool ran and gave no result.
    Tool(ToolError),
    /// The hub could not be asked. It has not done it: nothing reached it, or nothing was to be
    /// changed.
    Unavailable(Source),
    /// The hub was asked, and its answer was lost or could not be read: nobody knows whether it was
    /// done.
    InDoubt(Source),
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
pub struct HubRefusal {
    /// The HTTP status: 400 malformed, 401 and 403 not let in, 404 not yours, 409 order or consent,
    /// 413 too long, 422 key reused, 429 too much at once.
    pub status: u16,
    /// The rule that would have been broken, such as `T12`.
    pub rule: Option<String>,
    /// The section of the specification.
    pub section: Option<String>,
    /// One sentence: what to do.
    pub text: String,
    /// The word for programs, such as `conflict` or `stopped`.
    pub word: Option<String>,
}

impl HubRefusal {
    pub(crate) fn read(status: u16, body: &[u8]) -> Self {
        let ErrorText { error: word, rule, section, text } = ErrorText::read(body);
        let text = text.unwrap_or_else(|| {
            let body = String::from_utf8_lossy(body);
            format!("This does not look like a hub: {}", aaep_types::cut(&body, 200))
        });
        Self { status, rule, section, text, word }
    }

    /// Whether it was refused for this rule.
    pub(crate) fn is(&self, rule: Rule) -> bool {
        self.rule.as_deref() == Some(rule.id)
    }
}

#[cfg(feature = "embedded")]
impl From<ApiError> for HubRefusal {
    fn from(error: ApiError) -> Self {
        Self {
            status: error.kind.status(),
            rule: Some(error.rule.id.to_owned()),
            section: Some(error.rule.section.to_owned()),
            text: error.text,
            word: Some(error.kind.as_str().to_owned()),
        }
    }
}

impl Error {
    pub(crate) fn misuse(rule: Rule, text: impl Into<String>) -> Self {
        Self::Misuse(Misuse { rule, text: text.into() })
    }

    pub(crate) fn unavailable(source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        Self::Unavailable(source.into().into())
    }

    /// An answer that the hub should not have given, where nothing was to be changed.
    pub(crate) fn odd_reading() -> Self {
        Self::unavailable(ODD_ANSWER)
    }

    /// Whether the hub could not be asked, or its answer was lost: the same call may be made later.
    pub fn is_unavailable(&self) -> bool {
        matches!(self, Self::Unavailable(_) | Self::InDoubt(_))
    }

    /// Whether nobody knows if the hub has done it.
    pub fn is_in_doubt(&self) -> bool {
        matches!(self, Self::InDoubt(_))
    }

    /// The error of the tool itself, if it failed with one of this type.
    pub fn tool_error<E: std::error::Error + 'static>(&self) -> Option<&E> {
        match self {
            Self::Tool(ToolError::Failed(error)) => error.downcast_ref(),
            _ => None,
        }
    }

    /// What happened and everything underneath, in one line.
    pub fn report(&self) -> String {
        let mut text = self.to_string();
        let mut below = std::error::Error::source(self);
        while let Some(error) = below {
            let above = text.trim_end_matches('.').len();
            text.truncate(above);
            text.push_str(&format!(": {error}"));
            below = error.source();
        }
        text
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Misuse(misuse) => misuse.fmt(f),
            Self::Refused(refused) => refused.fmt(f),
            Self::NotApproved(why) => why.fmt(f),
            Self::Unanswered(why) => why.fmt(f),
            Self::SessionOver => f.write_str("The session is over."),
            Self::Tool(error) => error.fmt(f),
            Self::Unavailable(_) => f.write_str("The hub could not be asked."),
            Self::InDoubt(_) => f.write_str(
                "The hub was asked and gave no answer; nobody knows whether it was done.",
            ),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Tool(error) => error.source(),
            Self::Unavailable(source) | Self::InDoubt(source) => Some(&**source),
            _ => None,
        }
    }
}

impl fmt::Display for Misuse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, §{})", self.text, self.rule.id, self.rule.section)
    }
}

impl fmt::Display for HubRefusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        match (&self.rule, &self.section) {
            (Some(rule), Some(section)) => write!(f, " ({rule}, §{section})"),
            _ => write!(f, " (status {})", self.status),
        }
    }
}

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
    /// The action was begun before, perhaps by an agent that then crashed: nobody knows how it ended
    /// (I11). Ask again, or see [`Parked::rerun_if_begun`](crate::Parked::rerun_if_begun).
    Begun,
    /// The approval was handed out before; it is good for one run.
    AlreadyGiven,
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
            Self::Begun => f.write_str(
                "The action was begun before, and nobody knows how it ended; ask again. (I11)",
            ),
            Self::AlreadyGiven => {
                f.write_str("The approval was handed out before; it is good for one run.")
            }
        }
    }
}

impl From<NotApproved> for Error {
    fn from(why: NotApproved) -> Self {
        Self::NotApproved(why)
    }
}

/// Why a question has no answer. Never guess one (D17).
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Unanswered {
    /// Nobody answered in time, and there is no default. Hand over, or end the session (C30).
    TimedOut,
    /// The question was withdrawn, by its agent or by the hub.
    Cancelled,
}

impl fmt::Display for Unanswered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TimedOut => f.write_str("Nobody answered in time."),
            Self::Cancelled => f.write_str("The question was withdrawn."),
        }
    }
}

impl From<Unanswered> for Error {
    fn from(why: Unanswered) -> Self {
        Self::Unanswered(why)
    }
}

/// Who decided, in words for people: `by ann`. A user who needs no name on the hub's own machine has none:
/// `on this machine`.
pub fn decided_by(principal: &str) -> String {
    match principal {
        "local" | "socket" => "on this machine".to_owned(),
        name => format!("by {name}"),
    }
}

/// Why a tool that ran gave no result.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ToolError {
    /// The tool itself failed, with this.
    Failed(Source),
    /// It did not come back in time, and was given up.
    TimedOut,
    /// It panicked, with this message.
    Panicked(String),
}

impl ToolError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Failed(error) => Some(&**error),
            _ => None,
        }
    }
}

impl fmt::Display for ToolError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Failed(_) => f.write_str("The tool failed."),
            Self::TimedOut => f.write_str("The tool did not come back in time."),
            Self::Panicked(message) => write!(f, "The tool panicked: {message}"),
        }
    }
}

impl From<ToolError> for Error {
    fn from(error: ToolError) -> Self {
        Self::Tool(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_names_every_cause_once() {
        let denied = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
        let error = Error::Tool(ToolError::Failed(Arc::new(denied)));
        assert_eq!(error.to_string(), "The tool failed.");
        assert_eq!(error.report(), "The tool failed: permission denied");
        assert!(error.tool_error::<std::io::Error>().is_some());
        assert!(error.tool_error::<fmt::Error>().is_none());
        assert_eq!(Error::SessionOver.report(), "The session is over.");
    }

    #[test]
    fn doubt_is_said_only_where_it_is() {
        let lost = Error::InDoubt(Arc::new(std::fmt::Error));
        assert!(lost.is_in_doubt() && lost.is_unavailable());
        assert!(lost.to_string().contains("nobody knows"));
        let away = Error::unavailable("connection refused");
        assert!(!away.is_in_doubt() && away.is_unavailable());
        assert!(!away.report().contains("nobody knows"), "{}", away.report());
        assert!(away.report().contains("connection refused"));
    }
}
