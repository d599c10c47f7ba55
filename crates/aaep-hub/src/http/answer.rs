//! Answers, and what becomes of refusals: status and text are declared together, here.

use std::borrow::Cow;

use aaep_engine::Refusal;
use aaep_transport::grpc::status_of_http;
use aaep_transport::server::BodyError;
use aaep_types::agent_api::{ApiError, error_json};
use aaep_types::{Rule, rule};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use http::{HeaderValue, Response, StatusCode};

use super::Body;
use super::record::Reason;
use crate::access::Denied;
use crate::guard::GuardRefusal;
use crate::hub::Stopped;

/// A response.
pub(crate) type HttpResponse = Response<Body>;

/// Something that went wrong, on its way to becoming an answer.
#[derive(Debug)]
pub(crate) struct Problem {
    status: StatusCode,
    /// For programs.
    error: &'static str,
    rule: Rule,
    text: String,
    request: Option<Box<str>>,
    /// What the log says; empty where the text could hold words of others.
    why: Cow<'static, str>,
}

impl Problem {
    /// Something that HTTP has a status for, and the protocol no rule of its own.
    pub(crate) fn new(status: StatusCode, error: &'static str, text: impl Into<String>) -> Self {
        let why = Cow::Borrowed("");
        Self { status, error, rule: rule::W8, text: text.into(), request: None, why }
    }

    pub(crate) fn malformed(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", text).under(rule::E1)
    }

    /// The same, with what the log says of it.
    fn because(self, why: impl Into<Cow<'static, str>>) -> Self {
        Self { why: why.into(), ..self }
    }

    /// The same, under another rule.
    pub(crate) fn under(self, rule: Rule) -> Self {
        Self { rule, ..self }
    }

    /// Bytes that are no message: the first thing that is wrong with them.
    pub(crate) fn from_invalid(invalid: &aaep_types::Invalid) -> Self {
        let rule = invalid.problems.first().map_or(rule::E1, |problem| problem.rule);
        Self::malformed(invalid.to_string()).under(rule)
    }

    pub(crate) fn not_found(text: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not_found", text)
    }

    pub(crate) fn to_json(&self) -> String {
        error_json(self.error, self.rule, &self.text, self.request.as_deref())
    }

    /// The same for gRPC: its text is what the HTTP interface would have answered.
    pub(crate) fn into_status(self) -> tonic::Status {
        status_of_http(self.status, self.to_json())
    }

    pub(crate) fn into_answer(self) -> HttpResponse {
        let mut answer = json(self.status, self.to_json());
        let Self { error, rule, why, .. } = self;
        answer.extensions_mut().insert(Reason { error, rule, why });
        let headers = answer.headers_mut();
        match self.status {
            StatusCode::UNAUTHORIZED => {
                headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => {
                headers.insert(RETRY_AFTER, HeaderValue::from_static("1"));
            }
            _ => {}
        }
        answer
    }
}

impl From<ApiError> for Problem {
    fn from(error: ApiError) -> Self {
        let status = StatusCode::from_u16(error.kind.status());
        Self {
            status: status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            error: error.kind.as_str(),
            rule: error.rule,
            text: error.text,
            request: error.request_id.map(Into::into),
            why: Cow::Borrowed(""),
        }
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        ApiError::from(refusal).into()
    }
}

impl From<Denied> for Problem {
    fn from(denied: Denied) -> Self {
        let (error, rule) = match denied {
            Denied::Role => ("forbidden", rule::S6),
            _ => ("unauthorized", rule::S5),
        };
        Self::new(denied.status(), error, denied.to_string()).under(rule).because(denied.reason())
    }
}

impl From<GuardRefusal> for Problem {
    fn from(refused: GuardRefusal) -> Self {
        let rule = match refused {
            GuardRefusal::NotJson | GuardRefusal::UnclearLength => rule::W1,
            GuardRefusal::UnclearAuthorization => rule::S5,
            _ => rule::W5,
        };
        let text = refused.to_string();
        Self::new(refused.status(), "refused", text.clone()).under(rule).because(text)
    }
}

impl From<BodyError> for Problem {
    fn from(error: BodyError) -> Self {
        let text = format!("Send less, or faster: {error}.");
        let (status, error, rule) = match error {
            BodyError::TooLong(_) => (StatusCode::PAYLOAD_TOO_LARGE, "too_large", rule::E21),
            BodyError::TooSlow(_) => (StatusCode::REQUEST_TIMEOUT, "too_slow", rule::W6),
            _ => (StatusCode::BAD_REQUEST, "malformed", rule::W1),
        };
        Self::new(status, error, text).under(rule)
    }
}

impl From<Stopped> for Problem {
    fn from(stopped: Stopped) -> Self {
        ApiError::from(stopped).into()
    }
}

/// An answer with a JSON body.
pub(crate) fn json(status: StatusCode, text: impl Into<bytes::Bytes>) -> HttpResponse {
    typed(status, "application/json", text)
}

pub(crate) fn typed(
    status: StatusCode,
    content_type: &'static str,
    text: impl Into<bytes::Bytes>,
) -> HttpResponse {
    let mut answer = Response::new(Body::whole(text));
    *answer.status_mut() = status;
    let headers = answer.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(content_type));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    answer
}

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> HttpResponse {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = status;
    answer
}
