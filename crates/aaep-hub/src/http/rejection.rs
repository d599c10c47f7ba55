//! Handshakes that cannot be read, and callers that are not let in: both get a rejection with its
//! reason, at once (§5.5, §5.7).

use aaep_engine::Rejection;
use aaep_types::json::Members;
use aaep_types::{AAEP_VERSION, Invalid, RejectionCode, Version, cut, rule};
use http::HeaderValue;
use http::header::WWW_AUTHENTICATE;

use super::record::Reason;
use super::{HttpResponse, json};
use crate::access::Denied;

/// How deep a message may nest to be recognised.
const DEPTH: usize = 64;

/// Code points of a reason.
const REASON: usize = 4096;

/// What a message that cannot be read was meant to be, as far as that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Meant {
    Request,
    Renegotiate,
    /// Another message; nobody is told what is wrong with it (D5).
    Other,
    /// No JSON object with a type.
    Unclear,
}

/// What a message was meant to be.
pub(crate) fn meant(bytes: &[u8]) -> Meant {
    let members = std::str::from_utf8(bytes).ok().and_then(|text| Members::whole(text, DEPTH).ok());
    let Some(members) = members.flatten() else { return Meant::Unclear };
    match members.text("type").as_deref() {
        Some("subscription.request") => Meant::Request,
        Some("subscription.renegotiate") => Meant::Renegotiate,
        Some(_) => Meant::Other,
        None => Meant::Unclear,
    }
}

// enforces: H15, V1
/// The rejection of a handshake that cannot be read.
pub(crate) fn malformed(bytes: &[u8], invalid: &Invalid) -> Rejection {
    // Another version may have another shape: that is the reason then, not the shape.
    let text = std::str::from_utf8(bytes).unwrap_or_default();
    let members = Members::whole(text, DEPTH).ok().flatten();
    let version = members.as_ref().and_then(|members| members.text("aaep_version"));
    if let Some(Ok(version)) = version.map(Version::parse)
        && !version.is_served()
    {
        let text = format!("This producer speaks version {AAEP_VERSION}; ask for that.");
        return Rejection::new(RejectionCode::VersionUnsupported, text);
    }
    let at = |place: &str| invalid.problems.iter().any(|found| found.pointer.starts_with(place));
    let code = match () {
        () if at("/capabilities") => RejectionCode::CapabilitiesIncompatible,
        () if at("/aaep_version") => RejectionCode::VersionUnsupported,
        () => RejectionCode::Unknown,
    };
    // enforces: L6
    Rejection::new(code, cut(&invalid.to_string(), REASON))
}

/// The rejection of a second request on a link. The first one's subscription goes on.
pub(crate) fn second() -> Rejection {
    let text = "This connection has its subscription: send subscription.renegotiate for other terms, \
                or open another connection.";
    Rejection::new(RejectionCode::Unknown, text)
}

// enforces: H15, S5, S6
/// The rejection of somebody who is not let in.
pub(crate) fn denied(denied: Denied) -> Rejection {
    let code = match denied {
        Denied::Role => RejectionCode::AuthorizationDenied,
        _ => RejectionCode::AuthenticationRequired,
    };
    Rejection::new(code, denied.to_string())
}

/// The same as an answer over HTTP, to people who can sign in if that is so.
pub(crate) fn denied_answer(why: Denied, can_sign_in: bool) -> HttpResponse {
    let mut rejection = denied(why);
    if can_sign_in && why != Denied::Role {
        let text = format!("{why} People sign in with `aaep login`, or on the page.");
        rejection = Rejection::new(RejectionCode::AuthenticationRequired, text);
    }
    let mut answer = json(why.status(), rejection.to_json());
    answer.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    let (error, rule) = ("rejected", rule::H15);
    answer.extensions_mut().insert(Reason { error, rule, why: why.reason().into() });
    answer
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_types::Message;

    fn rejected(message: &str) -> RejectionCode {
        let invalid = Message::parse(message.as_bytes()).unwrap_err();
        let answer = malformed(message.as_bytes(), &invalid).to_json();
        match Message::parse(answer.as_bytes()) {
            Ok(Message::Rejected(rejected)) => rejected.reason_code,
            other => panic!("{other:?}"),
        }
    }

    // covers: H15, V1
    #[test]
    fn the_code_says_which_part_of_a_request_is_wrong() {
        let request = |version: &str, rest: &str| {
            format!(r#"{{"type":"subscription.request","aaep_version":"{version}"{rest}}}"#)
        };
        let code =
            rejected(&request("1.0.0", r#","subscriber_id":"x","capabilities":{"pace_wpm":1}"#));
        assert_eq!(code, RejectionCode::CapabilitiesIncompatible);
        assert_eq!(rejected(&request("1.0.0", "")), RejectionCode::CapabilitiesIncompatible);
        let code = rejected(&request("one", r#","subscriber_id":"x","capabilities":{}"#));
        assert_eq!(code, RejectionCode::VersionUnsupported);
        assert_eq!(rejected(&request("2.0.0", r#","who":"x""#)), RejectionCode::VersionUnsupported);
        let code = rejected(&request("1.0.0", r#","subscriber_id":7,"capabilities":{}"#));
        assert_eq!(code, RejectionCode::Unknown);
        assert_eq!(rejected("{"), RejectionCode::Unknown);
        // However much is wrong, the reason is one that may be sent.
        let long = format!(r#","capabilities":{{"languages":["{}"]}}"#, "x ".repeat(9000));
        rejected(&request("1.0.0", &long));
    }
}
