//! Which status says what.

use http::StatusCode;
use tonic::{Code, Status};

use crate::ws::close;

/// The ends of a link that are told, and the statuses that tell them.
const ENDS: [(u16, Code); 7] = [
    (close::GOING_AWAY, Code::Unavailable),
    (close::NOT_TEXT, Code::InvalidArgument),
    (close::TOO_LONG, Code::ResourceExhausted),
    (close::REJECTED, Code::FailedPrecondition),
    (close::AUTHENTICATION, Code::Unauthenticated),
    (close::AUTHORIZATION, Code::PermissionDenied),
    (close::VIOLATION, Code::InvalidArgument),
];

/// The status that ends a call as this code ends a WebSocket; `None` for an end that all agreed on.
pub fn closing(code: u16, reason: &str) -> Option<Status> {
    let (_, status) = ENDS.iter().find(|(known, _)| *known == code)?;
    Some(Status::new(*status, reason))
}

/// The code that a WebSocket would have been closed with; `None` if the connection broke.
pub(super) fn closed_by(status: &Status) -> Option<u16> {
    ENDS.iter().find(|(_, known)| *known == status.code()).map(|(code, _)| *code)
}

/// The status of a call that ended as this one of HTTP.
pub fn status_of_http(status: StatusCode, text: impl Into<String>) -> Status {
    let code = match status {
        StatusCode::BAD_REQUEST | StatusCode::UNSUPPORTED_MEDIA_TYPE => Code::InvalidArgument,
        StatusCode::UNAUTHORIZED => Code::Unauthenticated,
        StatusCode::FORBIDDEN => Code::PermissionDenied,
        StatusCode::NOT_FOUND => Code::NotFound,
        StatusCode::METHOD_NOT_ALLOWED => Code::Unimplemented,
        StatusCode::CONFLICT | StatusCode::UNPROCESSABLE_ENTITY => Code::FailedPrecondition,
        StatusCode::PAYLOAD_TOO_LARGE | StatusCode::TOO_MANY_REQUESTS => Code::ResourceExhausted,
        StatusCode::REQUEST_TIMEOUT => Code::DeadlineExceeded,
        StatusCode::SERVICE_UNAVAILABLE => Code::Unavailable,
        _ => Code::Internal,
    };
    Status::new(code, text)
}

/// The other way, for a client that knows both.
#[cfg(feature = "client")]
pub(super) fn http_of(code: Code) -> StatusCode {
    match code {
        Code::InvalidArgument | Code::OutOfRange => StatusCode::BAD_REQUEST,
        Code::Unauthenticated => StatusCode::UNAUTHORIZED,
        Code::PermissionDenied => StatusCode::FORBIDDEN,
        Code::NotFound => StatusCode::NOT_FOUND,
        Code::Unimplemented => StatusCode::NOT_IMPLEMENTED,
        Code::FailedPrecondition => StatusCode::CONFLICT,
        Code::ResourceExhausted => StatusCode::TOO_MANY_REQUESTS,
        Code::DeadlineExceeded => StatusCode::GATEWAY_TIMEOUT,
        Code::Unavailable => StatusCode::SERVICE_UNAVAILABLE,
        _ => StatusCode::INTERNAL_SERVER_ERROR,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: W11
    #[test]
    fn an_end_that_was_told_is_understood_and_one_that_broke_is_not() {
        for (code, _) in ENDS.into_iter().filter(|(code, _)| *code != close::VIOLATION) {
            let status = closing(code, "why").unwrap();
            assert_eq!((closed_by(&status), status.message()), (Some(code), "why"));
        }
        assert!(closing(close::NORMAL, "").is_none() && closing(close::CLOSED, "").is_none());
        assert_eq!(closed_by(&Status::unknown("reset")), None);
    }
}
