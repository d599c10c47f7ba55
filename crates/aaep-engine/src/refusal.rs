//! What an agent or a subscriber is told when it may not do what it asked. Nothing has changed then.

use aaep_types::agent_api::{ApiError, ApiErrorKind};
use aaep_types::{Invalid, Rule, Severity, rule};
use std::fmt;

/// Whose fault it is, and what kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Blame {
    /// The message itself is wrong.
    Malformed,
    /// There is no such session, request or subscription, or it is somebody else's.
    NotYours,
    /// It comes at the wrong time: an order or the lack of consent forbids it.
    OutOfOrder,
    /// Too much at once.
    Limit,
    /// It cannot be made durable now.
    Unavailable,
}

/// A refusal: it names the rule and says what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// What kind of fault.
    pub blame: Blame,
    /// The rule that would have been broken.
    pub rule: Rule,
    /// One sentence.
    pub text: String,
}

impl Refusal {
    pub(crate) fn new(blame: Blame, rule: Rule, text: impl Into<String>) -> Self {
        Self { blame, rule, text: text.into() }
    }

    pub(crate) fn order(rule: Rule, text: impl Into<String>) -> Self {
        Self::new(Blame::OutOfOrder, rule, text)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, §{})", self.text, self.rule.id, self.rule.section)
    }
}

impl std::error::Error for Refusal {}

impl From<Invalid> for Refusal {
    fn from(mut invalid: Invalid) -> Self {
        // A warning is no reason to refuse, so it is not given as one.
        invalid.problems.retain(|problem| problem.severity == Severity::Error);
        let rule = invalid.problems.first().map_or(rule::E1, |problem| problem.rule);
        Self::new(Blame::Malformed, rule, invalid.to_string())
    }
}

impl From<Refusal> for ApiError {
    fn from(refusal: Refusal) -> Self {
        let kind = match refusal.blame {
            Blame::Malformed => ApiErrorKind::Malformed,
            Blame::NotYours => ApiErrorKind::NotFound,
            Blame::OutOfOrder => ApiErrorKind::Conflict,
            // Trying again later does not make it smaller.
            Blame::Limit if refusal.rule == rule::E21 => ApiErrorKind::TooLarge,
            Blame::Limit => ApiErrorKind::Limit,
            Blame::Unavailable => ApiErrorKind::Unavailable,
        };
        Self::new(kind, refusal.text).under(refusal.rule)
    }
}
