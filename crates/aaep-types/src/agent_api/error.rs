//! What an agent is told when the hub does not do what it asked.

use std::fmt;

use crate::json::{Members, Writer};
use crate::rule::{self, Rule};

/// What kind of refusal, with the status that HTTP has for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ApiErrorKind {
    /// The request itself is wrong.
    Malformed,
    /// Nobody knows who asks.
    Unauthorized,
    /// There is no such thing, or it is somebody else's.
    NotFound,
    /// There was such a session, and its user stopped it.
    Stopped,
    /// The order of a session, or the lack of consent, forbids it.
    Conflict,
    /// It is too long.
    TooLarge,
    /// The idempotency key was used with another body.
    KeyReused,
    /// Too much at once.
    Limit,
    /// It cannot be made durable now, or the hub stops; try again later.
    Unavailable,
}

impl ApiErrorKind {
    /// The HTTP status.
    pub const fn status(self) -> u16 {
        match self {
            Self::Malformed => 400,
            Self::Unauthorized => 401,
            Self::NotFound | Self::Stopped => 404,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::KeyReused => 422,
            Self::Limit => 429,
            Self::Unavailable => 503,
        }
    }

    /// The word for programs, `error` on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Malformed => "malformed",
            Self::Unauthorized => "unauthorized",
            Self::NotFound => "not_found",
            Self::Stopped => "stopped",
            Self::Conflict => "conflict",
            Self::TooLarge => "too_large",
            Self::KeyReused => "key_reused",
            Self::Limit => "limit",
            Self::Unavailable => "unavailable",
        }
    }
}

/// A refusal: it names the rule and says what to do. Nothing has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiError {
    /// What kind of refusal.
    pub kind: ApiErrorKind,
    /// The rule that would have been broken.
    pub rule: Rule,
    /// One sentence: what to do.
    pub text: String,
    /// The request that it is about, if it is about one.
    pub request_id: Option<String>,
}

impl ApiError {
    /// A refusal that no rule but the API itself demands.
    pub fn new(kind: ApiErrorKind, text: impl Into<String>) -> Self {
        Self { kind, rule: rule::W8, text: text.into(), request_id: None }
    }

    /// A request that cannot be read.
    pub fn malformed(text: impl Into<String>) -> Self {
        Self::new(ApiErrorKind::Malformed, text).under(rule::E1)
    }

    /// The same, under this rule.
    pub fn under(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    /// The same, about this request.
    pub fn about(self, request: impl fmt::Display) -> Self {
        Self { request_id: Some(request.to_string()), ..self }
    }

    /// The body of the answer.
    pub fn to_json(&self) -> String {
        let word = self.kind.as_str();
        error_json(word, self.rule, &self.text, self.request_id.as_deref())
    }
}

impl fmt::Display for ApiError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({}, §{})", self.text, self.rule.id, self.rule.section)
    }
}

impl std::error::Error for ApiError {}

/// `{error, rule, section, text, request_id?}`, which is what every refusal over HTTP looks like.
pub fn error_json(word: &str, rule: Rule, text: &str, request: Option<&str>) -> String {
    let mut out = Writer::new();
    out.open('{');
    let members = [
        ("error", Some(word)),
        ("rule", Some(rule.id)),
        ("section", Some(rule.section)),
        ("text", Some(text)),
        ("request_id", request),
    ];
    for (name, value) in members {
        if let Some(value) = value {
            out.name(name);
            out.string(value);
            out.comma();
        }
    }
    out.close('}');
    out.finish()
}

/// What a refusal says, as far as it can be read: it may come from a proxy, or a later hub.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorText {
    /// The word for programs, such as `stopped`.
    pub error: Option<String>,
    /// The rule.
    pub rule: Option<String>,
    /// Its section.
    pub section: Option<String>,
    /// What to do; `None` if this does not look like a hub's answer.
    pub text: Option<String>,
}

impl ErrorText {
    /// Reads the body of a refusal.
    pub fn read(body: &[u8]) -> Self {
        let text = String::from_utf8_lossy(body);
        let members = Members::whole(&text, 8).ok().flatten().unwrap_or_default();
        let find = |name| members.text(name).map(|text| text.into_owned());
        Self {
            error: find("error"),
            rule: find("rule"),
            section: find("section"),
            text: find("text"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_read_back_and_what_is_none_says_nothing() {
        let error = ApiError::new(ApiErrorKind::Conflict, "Ask again.").under(rule::T12);
        let json = error.about("req_1").to_json();
        assert!(json.starts_with(r#"{"error":"conflict","rule":"T12","section":"#), "{json}");
        assert!(json.ends_with(r#""text":"Ask again.","request_id":"req_1"}"#), "{json}");
        let read = ErrorText::read(json.as_bytes());
        assert_eq!((read.rule.as_deref(), read.text.as_deref()), (Some("T12"), Some("Ask again.")));
        assert_eq!(read.error.as_deref(), Some("conflict"));
        assert_eq!(ErrorText::read(b"<h1>Bad gateway</h1>"), ErrorText::default());
    }
}
