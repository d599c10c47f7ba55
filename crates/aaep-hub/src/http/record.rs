//! What is written down of requests: each has an id, which its sender is told and which stands in
//! every line of the log that is about it; what was refused is logged with its reason.

use std::borrow::Cow;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aaep_transport::peer::Peer;
use aaep_types::Rule;
use http::header::HeaderName;
use http::{HeaderMap, HeaderValue, request::Parts};
use tracing::field::Empty;
use tracing::{Span, info, info_span};

use super::HttpResponse;
use super::route::{self, RouteMatch};
use crate::hub::Hub;

/// Tells a request's span from which trace it comes, by the headers of the request.
pub(crate) type TraceParent = fn(&Span, &HeaderMap);

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// How many refusals are logged within [`WINDOW`]; the rest are counted.
const LOGGED: u32 = 50;

/// For how long they are counted.
const WINDOW: Duration = Duration::from_secs(1);

// enforces: I6
/// Makes ids. They are a keyed hash of a number: all have one length, and nobody learns from theirs how
/// many requests others have made.
#[derive(Default)]
pub(crate) struct RequestIds {
    key: RandomState,
    next: AtomicU64,
}

impl RequestIds {
    pub(crate) fn next(&self) -> String {
        format!("{:016x}", self.key.hash_one(self.next.fetch_add(1, Ordering::Relaxed)))
    }
}

/// Why something was refused, on its way from where it is known to the log.
#[derive(Clone, Debug)]
pub(crate) struct Reason {
    /// For programs.
    pub(crate) error: &'static str,
    pub(crate) rule: Rule,
    /// In the hub's own words; empty where they could hold those of others.
    pub(crate) why: Cow<'static, str>,
}

/// One request, as far as the log is concerned.
pub(crate) struct Recorded {
    pub(crate) span: Span,
    id: String,
}

impl Recorded {
    /// Begins one. Its path is written down only where the hub has such a path: anything else is
    /// the sender's own words.
    pub(crate) fn begin(hub: &Hub, parts: &Parts) -> Self {
        let peer = parts.extensions.get::<Peer>().and_then(Peer::address);
        let given = peer.and_then(|peer| hub.0.guard.request_id(&parts.headers, peer));
        let id = given.map_or_else(|| hub.0.request_ids.next(), str::to_owned);
        let path = parts.uri.path();
        let path = match route::find(&parts.method, path, hub.config().base.as_str()) {
            RouteMatch::Nothing => "?",
            _ => path,
        };
        // The names are those of OpenTelemetry.
        let span = info_span!(
            parent: None,
            "request",
            id = &*id,
            http.request.method = parts.method.as_str(),
            url.path = path,
            http.response.status_code = Empty,
            principal = Empty,
        );
        Self { span, id }
    }

    /// Says who sent it.
    pub(crate) fn known(&self, hub: &Hub, principal: &str, headers: &HeaderMap) {
        self.span.record("principal", principal);
        if let Some(trace_parent) = hub.0.trace_parent {
            trace_parent(&self.span, headers);
        }
    }

    // enforces: S8
    /// Tells the sender the id, and the log what was refused; in the hub's own words, never in those of
    /// the request.
    pub(crate) fn end(self, hub: &Hub, answer: &mut HttpResponse) {
        if let Ok(id) = HeaderValue::from_str(&self.id) {
            answer.headers_mut().insert(&REQUEST_ID, id);
        }
        let status = answer.status();
        self.span.record("http.response.status_code", status.as_u16());
        let reason = answer.extensions_mut().remove::<Reason>();
        if !status.is_client_error() && !status.is_server_error() {
            return;
        }
        let Some(unlogged) = hub.0.refusals.may_log(Instant::now()) else { return };
        self.span.in_scope(|| {
            if unlogged > 0 {
                info!(unlogged, "more was refused than is logged");
            }
            let (status, reason) = (status.as_u16(), reason.as_ref());
            let error = reason.map(|reason| reason.error);
            let rule = reason.map(|reason| reason.rule.id);
            let why = reason.map(|reason| &*reason.why).filter(|why| !why.is_empty());
            info!(status, error, rule, why, "a request was refused");
        });
    }
}

/// Bounds how much is logged of refusals: the client that is refused decides how often.
#[derive(Debug, Default)]
pub(crate) struct RefusalLog(Mutex<Window>);

#[derive(Debug, Default)]
struct Window {
    until: Option<Instant>,
    logged: u32,
    unlogged: u64,
}

impl RefusalLog {
    /// Whether one more is logged, and how many before it were not.
    fn may_log(&self, now: Instant) -> Option<u64> {
        let mut window = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if window.until.is_none_or(|until| now >= until) {
            window.until = Some(now + WINDOW);
            window.logged = 0;
        }
        if window.logged >= LOGGED {
            window.unlogged += 1;
            return None;
        }
        window.logged += 1;
        Some(std::mem::take(&mut window.unlogged))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_refusals_is_counted_and_not_logged() {
        let (log, now) = (RefusalLog::default(), Instant::now());
        for _ in 0..LOGGED {
            assert_eq!(log.may_log(now), Some(0));
        }
        for _ in 0..7 {
            assert_eq!(log.may_log(now), None);
        }
        assert_eq!(log.may_log(now + WINDOW), Some(7));
        assert_eq!(log.may_log(now + WINDOW), Some(0));
    }

    #[test]
    fn ids_differ_and_fit_into_a_header() {
        let ids = RequestIds::default();
        let (one, other) = (ids.next(), ids.next());
        assert_ne!(one, other);
        assert_eq!((one.len(), other.len()), (16, 16));
        assert!(HeaderValue::from_str(&one).is_ok());
    }
}
