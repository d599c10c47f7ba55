//! Every path of the hub, in one table: the router and the OpenAPI document are made from it.

use aaep_engine::RequestId;
use aaep_types::SessionId;
use http::Method;

use crate::access::ApiSurface;

/// Where a request goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    Subscriptions,
    Events,
    Replies,
    WebSocket,
    Messages,
    OpenSession,
    Session(SessionId),
    Emit(SessionId),
    Ask(SessionId),
    Request(RequestId),
    Withdraw(RequestId),
    Invoke(RequestId),
    Inputs,
    Status,
    HeldIds,
    ReleaseId,
    HandOverId,
    OpenSessions,
    EndSession(SessionId),
    EraseUser,
    ResetPresence,
    Deny,
    Allow,
    Manifest,
    Health,
    Ready,
    Metrics,
    OpenApi,
    Page,
    PageFile(&'static aaep_page::File),
    PageToken,
    SignIn,
    BeginSignIn,
    FinishSignIn,
    Passkeys,
    Passkey(PasskeyStep),
    Pin,
}

/// What somebody does about passkeys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PasskeyStep {
    Begin,
    Register,
    Remove,
    Challenge,
    Assertion,
}

impl Route {
    /// As whom a request is looked at; `None` for what everybody may see.
    pub(crate) fn surface(&self) -> Option<ApiSurface> {
        use Route::*;
        match self {
            Subscriptions | Events | Replies | WebSocket | Messages | Status | Metrics
            | HeldIds | ReleaseId | HandOverId | OpenSessions | EndSession(_) | EraseUser
            | ResetPresence | Deny | Allow | Passkeys | Passkey(_) | Pin => {
                Some(ApiSurface::Listener)
            }
            OpenSession | Session(_) | Emit(_) | Ask(_) | Request(_) | Withdraw(_) | Invoke(_)
            | Inputs => Some(ApiSurface::Agent),
            // A code for the token proves nothing else.
            Manifest | Health | Ready | OpenApi | Page | PageFile(_) | PageToken | SignIn
            | BeginSignIn | FinishSignIn => None,
        }
    }
}

impl Route {
    /// Whether it is no place to look at with a browser: asking for it changes something.
    pub(crate) fn is_for_programs(&self) -> bool {
        self.surface().is_some() && *self != Self::Metrics
    }
}

/// What was found for a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum RouteMatch {
    Route(Route),
    /// The path is there, for these methods.
    Methods(&'static str),
    Nothing,
}

/// One line of the table. `{session_id}` and `{request_id}` stand for ids, `{file}` for a file of the
/// page.
pub(crate) struct Path {
    pub(crate) method: Method,
    /// Under the base, unless it begins with a slash.
    pub(crate) path: &'static str,
    to: fn(Ids) -> Option<Route>,
}

/// The ids in a path.
#[derive(Clone, Copy, Default)]
struct Ids {
    session: Option<SessionId>,
    request: Option<RequestId>,
    file: Option<&'static aaep_page::File>,
}

macro_rules! paths {
    ($($method:ident $path:literal => $to:expr;)+) => {
        /// Every path, in the order in which they are documented.
        pub(crate) const PATHS: &[Path] = &[$(
            Path { method: Method::$method, path: $path, to: $to }
        ),+];
    };
}

// enforces: W8, D27
paths! {
    POST "subscriptions" => |_| Some(Route::Subscriptions);
    GET "events" => |_| Some(Route::Events);
    POST "replies" => |_| Some(Route::Replies);
    GET "ws" => |_| Some(Route::WebSocket);
    POST "messages" => |_| Some(Route::Messages);
    POST "agent/sessions" => |_| Some(Route::OpenSession);
    GET "agent/sessions/{session_id}" => |ids| ids.session.map(Route::Session);
    POST "agent/sessions/{session_id}/events" => |ids| ids.session.map(Route::Emit);
    POST "agent/sessions/{session_id}/requests" => |ids| ids.session.map(Route::Ask);
    GET "agent/requests/{request_id}" => |ids| ids.request.map(Route::Request);
    DELETE "agent/requests/{request_id}" => |ids| ids.request.map(Route::Withdraw);
    POST "agent/requests/{request_id}/invoke" => |ids| ids.request.map(Route::Invoke);
    GET "agent/inputs" => |_| Some(Route::Inputs);
    GET "status" => |_| Some(Route::Status);
    GET "admin/agents" => |_| Some(Route::HeldIds);
    POST "admin/agents/release" => |_| Some(Route::ReleaseId);
    POST "admin/agents/hand-over" => |_| Some(Route::HandOverId);
    GET "admin/sessions" => |_| Some(Route::OpenSessions);
    POST "admin/erase" => |_| Some(Route::EraseUser);
    POST "admin/presence/reset" => |_| Some(Route::ResetPresence);
    POST "admin/deny" => |_| Some(Route::Deny);
    POST "admin/allow" => |_| Some(Route::Allow);
    POST "admin/sessions/{session_id}/end" => |ids| ids.session.map(Route::EndSession);
    GET "presence/passkeys" => |_| Some(Route::Passkeys);
    POST "presence/passkeys" => |_| Some(Route::Passkey(PasskeyStep::Register));
    POST "presence/passkeys/options" => |_| Some(Route::Passkey(PasskeyStep::Begin));
    POST "presence/passkeys/remove" => |_| Some(Route::Passkey(PasskeyStep::Remove));
    POST "presence/passkeys/challenge" => |_| Some(Route::Passkey(PasskeyStep::Challenge));
    POST "presence/passkeys/assertion" => |_| Some(Route::Passkey(PasskeyStep::Assertion));
    POST "presence/pin" => |_| Some(Route::Pin);
    POST "page/token" => |_| Some(Route::PageToken);
    GET "sign-in" => |_| Some(Route::SignIn);
    POST "sign-in/begin" => |_| Some(Route::BeginSignIn);
    POST "sign-in/token" => |_| Some(Route::FinishSignIn);
    GET "/.well-known/aaep-manifest.json" => |_| Some(Route::Manifest);
    GET "/healthz" => |_| Some(Route::Health);
    GET "/readyz" => |_| Some(Route::Ready);
    GET "/metrics" => |_| Some(Route::Metrics);
    GET "/openapi.json" => |_| Some(Route::OpenApi);
    GET "/" => |_| Some(Route::Page);
    GET "/page/{file}" => |ids| ids.file.map(Route::PageFile);
}

/// Finds where a request goes.
pub(crate) fn find(method: &Method, path: &str, base: &str) -> RouteMatch {
    let mut methods = RouteMatch::Nothing;
    for known in PATHS {
        let Some(ids) = matches(known.path, path, base) else { continue };
        if known.method == *method {
            return (known.to)(ids).map_or(RouteMatch::Nothing, RouteMatch::Route);
        }
        methods = match (&methods, known.method.as_str()) {
            (RouteMatch::Methods(_), "POST") => RouteMatch::Methods("GET, POST"),
            (RouteMatch::Methods(_), _) => RouteMatch::Methods("GET, DELETE"),
            (_, "GET") => RouteMatch::Methods("GET"),
            (_, "DELETE") => RouteMatch::Methods("DELETE"),
            _ => RouteMatch::Methods("POST"),
        };
    }
    methods
}

fn matches(pattern: &str, path: &str, base: &str) -> Option<Ids> {
    if let Some(folder) = pattern.strip_suffix("{file}") {
        let file = path.strip_prefix(folder)?;
        return Some(Ids { file: aaep_page::find(file), ..Ids::default() });
    }
    if pattern.starts_with('/') {
        return (pattern == path).then(Ids::default);
    }
    let rest = path.strip_prefix(base)?.strip_prefix('/')?;
    let Some((before, (name, after))) =
        pattern.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    else {
        return (pattern == rest).then(Ids::default);
    };
    let id = rest.strip_prefix(before)?.strip_suffix(after)?;
    if id.contains('/') {
        return None;
    }
    // An id that is none leads nowhere, like one that nobody knows.
    Some(match name {
        "session_id" => Ids { session: SessionId::parse(id).ok(), ..Ids::default() },
        _ => Ids { request: RequestId::parse(id), ..Ids::default() },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_found_and_nothing_else() {
        let session = SessionId::from_bits(7);
        let request = RequestId::from_bits(9).to_string();
        for known in PATHS {
            let filled = known
                .path
                .replace("{session_id}", session.as_str())
                .replace("{request_id}", &request)
                .replace("{file}", "aaep-subscriber.js");
            let full = if filled.starts_with('/') { filled } else { format!("/aaep/v1/{filled}") };
            assert!(
                matches!(find(&known.method, &full, "/aaep/v1"), RouteMatch::Route(_)),
                "{} {full}",
                known.method
            );
            assert!(
                matches!(find(&Method::PUT, &full, "/aaep/v1"), RouteMatch::Methods(_)),
                "{full}"
            );
        }
        for nowhere in ["/aaep/v1", "/aaep/v1/", "/aaep/v1/events/", "/aaep/v1//events", "/x"] {
            assert_eq!(find(&Method::GET, nowhere, "/aaep/v1"), RouteMatch::Nothing, "{nowhere}");
        }
        let bad = "/aaep/v1/agent/requests/req_X";
        assert_eq!(find(&Method::GET, bad, "/aaep/v1"), RouteMatch::Nothing);
    }
}
