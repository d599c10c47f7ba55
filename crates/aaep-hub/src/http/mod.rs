//! The doors: HTTP requests are looked at, in this order: where they claim to go and come from, who
//! sent them, and only then what they say (D5).

mod admin;
mod agent;
mod answer;
mod body;
mod events;
mod grpc;
mod links;
mod messages;
mod operations;
mod page;
mod passkeys;
mod pin;
mod record;
mod rejection;
pub(crate) mod route;
mod sign_in;

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use aaep_engine::Role;
use aaep_transport::peer::Peer;
use aaep_transport::server::{BodyError, RequestBody, discard_body, read_body};
use aaep_types::rule;
use bytes::Bytes;
use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ALLOW, CONNECTION, TRANSFER_ENCODING,
    VARY,
};
use http::{HeaderMap, HeaderValue, Method, Request, StatusCode, request::Parts};
use http_body::Body as _;
use tokio::time::timeout;
use tower_service::Service;
use tracing::Instrument as _;

use crate::access::{ApiSurface, AuthenticatedPeer, SESSION_SECRET_HEADER, SessionSecret};
use crate::guard::{GuardRefusal, sent_by_program};
use crate::hub::Hub;
use crate::pace::When;
use crate::reading::{SMALL_BYTES, Turn};

pub(crate) use answer::{HttpResponse, Problem, empty, json, typed};
pub(crate) use body::Body;
pub(crate) use grpc::GrpcDoor;
pub(crate) use links::{deny_link, options as link_options, serve_link};
use record::Recorded;
pub(crate) use record::{RefusalLog, RequestIds, TraceParent};
use route::{Route, RouteMatch};

/// How long the rest of a body that is too long is read.
const REFUSED_BODY: Duration = Duration::from_secs(2);

/// The service behind every connection of the hub that speaks HTTP.
#[derive(Clone)]
pub(crate) struct HttpService(pub(crate) Hub);

impl Service<Request<RequestBody>> for HttpService {
    type Response = HttpResponse;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, Infallible>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<RequestBody>) -> Self::Future {
        let hub = self.0.clone();
        // A proxy may not agree with us where a body without a length ends, so it is the last one:
        // nothing that follows it is taken for a request (RFC 9112, section 6.1).
        let last = request.headers().contains_key(TRANSFER_ENCODING);
        let (parts, body) = request.into_parts();
        // Not in the future, which is as large as everything that it may ever hold.
        let recorded = Recorded::begin(&hub, &parts);
        // Not inside the span: it takes its place in a trace before it is first entered, and only of
        // those who are let in.
        let seen = look(&hub, parts, None);
        if let Ok((Visitor::AuthenticatedPeer(call), _)) = &seen {
            recorded.known(&hub, &call.known.principal.name, &call.parts.headers);
        }
        Box::pin(async move {
            let mut answer = match seen {
                Ok((visitor, page)) => {
                    let entered = enter(&hub, visitor, body).instrument(recorded.span.clone());
                    allow_page(entered.await, page)
                }
                Err(answer) => *answer,
            };
            recorded.end(&hub, &mut answer);
            if last {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok(answer)
        })
    }
}

/// One request, once everything before its body has been looked at.
pub(crate) struct Call {
    pub(crate) parts: Parts,
    pub(crate) route: Route,
    pub(crate) known: AuthenticatedPeer,
}

/// Who comes.
enum Visitor {
    /// It does not matter: everybody may see this.
    Anybody(Box<(Parts, Route)>),
    AuthenticatedPeer(Box<Call>),
}

/// Who comes, and the page of another origin that may read the answer; or the answer already.
type Seen = Result<(Visitor, Option<HeaderValue>), Box<HttpResponse>>;

/// Looks at everything but the body. `route` is where it goes, if its path does not say it.
fn look(hub: &Hub, parts: Parts, route: Option<Route>) -> Seen {
    let Some(peer) = parts.extensions.get::<Peer>() else {
        return Err(Box::new(empty(StatusCode::INTERNAL_SERVER_ERROR)));
    };
    let guard = &hub.0.guard;
    let admitted = match (peer.address(), peer.credentials()) {
        (Some(address), _) => guard.admit(&parts, address, peer.is_tls()),
        (None, Some(credentials)) => guard.admit_local(&parts, credentials.uid),
        (None, None) => return Err(Box::new(empty(StatusCode::FORBIDDEN))),
    };
    let admitted = match admitted {
        Ok(admitted) => admitted,
        // Everything but the origin was looked at by then, and the files are the same for everybody.
        Err(GuardRefusal::ForeignOrigin) if page::public(hub, &parts).is_some() => {
            let answer = page::public(hub, &parts)
                .map_or_else(|| empty(StatusCode::NOT_FOUND), |file| page::file(file, &parts));
            return Err(Box::new(answer));
        }
        Err(refused) => {
            hub.metrics().refused.add(1);
            return Err(Box::new(Problem::from(refused).into_answer()));
        }
    };
    let page = admitted.page.and_then(|page| HeaderValue::from_str(page).ok());
    let answered = |answer| Box::new(allow_page(answer, page.clone()));
    if parts.method == Method::OPTIONS {
        return Err(answered(empty(StatusCode::NO_CONTENT)));
    }
    let find = || route::find(&parts.method, parts.uri.path(), hub.config().base.as_str());
    let route = match route.map_or_else(find, RouteMatch::Route) {
        RouteMatch::Route(route) => route,
        RouteMatch::Nothing => {
            return Err(answered(Problem::not_found("There is nothing here.").into_answer()));
        }
        RouteMatch::Methods(methods) => {
            let problem =
                Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method", "Use another method.");
            let mut answer = problem.into_answer();
            answer.headers_mut().insert(ALLOW, HeaderValue::from_static(methods));
            return Err(answered(answer));
        }
    };
    // Everybody may see the hub's own manifest; who shows a token sees more.
    let shows_token =
        route == Route::Manifest && (admitted.bearer.is_some() || peer.certificates().is_some());
    let surface = route.surface().or(shows_token.then_some(ApiSurface::Listener));
    let Some(surface) = surface else {
        return Ok((Visitor::Anybody(Box::new((parts, route))), page));
    };
    if route.is_for_programs()
        && let Err(refused) = sent_by_program(&parts.headers)
    {
        hub.metrics().refused.add(1);
        return Err(answered(Problem::from(refused).into_answer()));
    }
    let access = hub.0.access.current();
    let chain = peer.certificates().filter(|_| !admitted.client.is_forwarded);
    let known = who(&access, (admitted.bearer, chain), admitted.client.via, surface);
    // enforces: S6
    // A principal that reads figures hears nothing.
    let known = known.and_then(|known| match known.principal.role {
        Role::Metrics if route != Route::Metrics => Err(crate::access::Denied::Role),
        _ => Ok(known),
    });
    match known {
        Ok(known) => {
            let mut known = known.over(peer);
            if let Err(problem) = show_secret(&mut known, &parts.headers) {
                return Err(answered(problem.into_answer()));
            }
            if let (Some(until), ApiSurface::Listener) = (known.renewed_until(), surface) {
                let peer = known.principal.clone();
                hub.tell(move |core| core.renew(&peer, until));
            }
            Ok((Visitor::AuthenticatedPeer(Box::new(Call { parts, route, known })), page))
        }
        Err(denied) => {
            hub.metrics().refused.add(1);
            // Who asks for a subscription gets an answer of the handshake.
            let answer = match route {
                Route::Subscriptions | Route::WebSocket => {
                    rejection::denied_answer(denied, access.has_sign_in())
                }
                _ => Problem::from(denied).into_answer(),
            };
            Err(answered(answer))
        }
    }
}

fn who(
    access: &crate::access::Access,
    (bearer, chain): (Option<&str>, Option<&crate::access::Chain>),
    via: crate::access::Via,
    surface: ApiSurface,
) -> Result<AuthenticatedPeer, crate::access::Denied> {
    let mut known = access.who_with(bearer, chain, via, surface)?;
    access.may_use(&known, surface)?;
    // enforces: D4
    // To the engine, a peer that may not reply only listens.
    if surface == ApiSurface::Listener && !access.may_reply(&known) {
        known.listens_only();
    }
    Ok(known)
}

/// Takes the session secret of an agent that needs one, if it shows one.
fn show_secret(known: &mut AuthenticatedPeer, headers: &HeaderMap) -> Result<(), Problem> {
    let Some(shown) = headers.get(SESSION_SECRET_HEADER).filter(|_| known.lacks_secret()) else {
        return Ok(());
    };
    let secret = shown.to_str().ok().and_then(SessionSecret::parse).ok_or_else(|| {
        let text = "AAEP-Session-Secret is aaeps_ and 43 random characters of base64url.";
        Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", text).under(rule::S5)
    })?;
    known.show_secret(&secret);
    Ok(())
}

/// Lets a request in. What is rare is boxed, so that what is common stays small.
async fn enter(hub: &Hub, visitor: Visitor, body: RequestBody) -> HttpResponse {
    let call = match visitor {
        Visitor::Anybody(request) => {
            // Health checks are answered at once.
            let when = match request.1 {
                Route::Health | Route::Ready => When::Never,
                _ => When::Before,
            };
            let open = Box::pin(open_to_all(hub, request, body));
            return hub.0.pace.work(None, when, 0, open).await;
        }
        Visitor::AuthenticatedPeer(call) => call,
    };
    if matches!(call.route, Route::WebSocket) {
        let user = call.known.principal.user.clone();
        let opening = async { links::web_socket(hub, call.parts, call.known) };
        return hub.0.pace.work(Some(user), When::Before, 0, opening).await;
    }
    // Streams are bounded as subscriptions.
    let _call = match hub.0.calls.begin(&call.known.principal) {
        Ok(begun) => (call.route != Route::Events).then_some(begun),
        Err(refusal) => return Problem::from(refusal).into_answer(),
    };
    let (user, bytes) = (call.known.principal.user.clone(), body.size_hint().lower());
    // A reply may have a deadline; what many of them leave is bounded by a rate (D40).
    let when = match call.route {
        Route::Replies | Route::Messages => When::After,
        _ => When::Before,
    };
    hub.0.pace.work(Some(user), when, bytes, serve(hub, &call, body)).await
}

async fn serve(hub: &Hub, call: &Call, body: RequestBody) -> HttpResponse {
    // A large body's place is held to the end of the call.
    let (bytes, _held) = if call.parts.method == Method::POST {
        match take_body(hub, call, body).await {
            Ok(taken) => taken,
            Err(problem) => return problem.into_answer(),
        }
    } else {
        (Bytes::new(), None)
    };
    let answered = match call.route {
        Route::Subscriptions => Box::pin(events::subscribe(hub, call, bytes)).await,
        Route::Events => Box::pin(events::listen(hub, call)).await,
        Route::Replies => messages::reply(hub, call, bytes).await,
        Route::Messages => Box::pin(messages::say(hub, call, bytes)).await,
        Route::Status => Box::pin(operations::status(hub, call)).await,
        Route::Metrics => Box::pin(operations::metrics(hub, call)).await,
        Route::Manifest => Box::pin(operations::manifest(hub, call)).await,
        Route::HeldIds
        | Route::ReleaseId
        | Route::HandOverId
        | Route::OpenSessions
        | Route::EndSession(_)
        | Route::EraseUser
        | Route::ResetPresence
        | Route::Deny
        | Route::Allow => Box::pin(admin::answer(hub, call, bytes)).await,
        Route::Passkeys => passkeys::list(hub, call),
        Route::Pin => Box::pin(pin::answer(hub, call, bytes)).await,
        Route::Passkey(step) => Box::pin(passkeys::answer(hub, call, step, bytes)).await,
        _ => agent::answer(hub, call, bytes).await,
    };
    answered.unwrap_or_else(Problem::into_answer)
}

// enforces: I22, I29
/// Reads a body. A large one waits for a place among those of its principal, so that what one
/// principal makes the hub hold is bounded.
async fn take_body(
    hub: &Hub,
    call: &Call,
    body: RequestBody,
) -> Result<(Bytes, Option<Turn>), Problem> {
    let limits = &hub.config().limits;
    let patience = Duration::from_secs(limits.body_seconds);
    let (max, name) = match call.route.surface() {
        Some(ApiSurface::Agent) => (limits.body_bytes, "body_bytes"),
        _ => (limits.reply_bytes, "reply_bytes"),
    };
    let explained = |error| match error {
        BodyError::TooLong(_) => {
            let text = format!("A body has at most {max} bytes here (limits.{name}); send less.");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text).under(rule::E21)
        }
        other => Problem::from(other),
    };
    let size = body.size_hint();
    if size.lower() > max as u64 {
        // One that another path would take is read to its end first, so that the answer is.
        if size.lower() <= limits.body_bytes as u64 {
            discard_body(body, REFUSED_BODY).await;
        }
        return Err(explained(BodyError::TooLong(max)));
    }
    let small = size.upper().is_some_and(|upper| upper <= SMALL_BYTES as u64);
    let held = if small {
        None
    } else {
        match timeout(patience, hub.0.turns.hold(&call.known.principal)).await {
            Ok(held) => Some(held?),
            Err(_) => {
                let text = format!(
                    "You have {} large bodies under way (limits.large_bodies_per_principal); wait for their answers.",
                    limits.large_bodies_per_principal
                );
                return Err(Problem::new(StatusCode::TOO_MANY_REQUESTS, "limit", text));
            }
        }
    };
    Ok((read_body(body, max, patience).await.map_err(explained)?, held))
}

async fn open_to_all(hub: &Hub, request: Box<(Parts, Route)>, body: RequestBody) -> HttpResponse {
    let (parts, route) = *request;
    match route {
        Route::Page => page::index(hub),
        Route::PageFile(found) => page::file(found, &parts),
        Route::PageToken => {
            page::token(hub, &parts, body).await.unwrap_or_else(Problem::into_answer)
        }
        Route::SignIn => sign_in::offers(hub),
        Route::BeginSignIn => {
            sign_in::begin(hub, &parts, body).await.unwrap_or_else(Problem::into_answer)
        }
        Route::FinishSignIn => {
            sign_in::finish(hub, &parts, body).await.unwrap_or_else(Problem::into_answer)
        }
        other => operations::open(hub, &other, &parts.headers).await,
    }
}

/// Lets a web page of an allowed origin read the answer.
fn allow_page(mut answer: HttpResponse, page: Option<HeaderValue>) -> HttpResponse {
    let headers = answer.headers_mut();
    headers.insert(VARY, HeaderValue::from_static("origin"));
    if let Some(page) = page {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, page);
        let methods = HeaderValue::from_static("GET, POST, DELETE");
        headers.insert(ACCESS_CONTROL_ALLOW_METHODS, methods);
        let allowed = "authorization, content-type, last-event-id, idempotency-key, \
             aaep-session-secret";
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(allowed));
        headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        // D9: clients correct their stamps by the server's clock.
        let readable =
            HeaderValue::from_static("date, location, retry-after, aaep-resumed, x-request-id");
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, readable);
    }
    answer
}

/// A parameter of the query, decoded; the first of its name.
pub(crate) fn query(parts: &Parts, name: &str) -> Option<String> {
    let pairs = parts.uri.query()?.split('&');
    let mut values = pairs.filter_map(|pair| {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        (key == name).then_some(value)
    });
    values.next().and_then(decode)
}

/// Percent-decoding; `None` if what comes out is no text.
fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        out.push(match byte {
            b'+' => b' ',
            b'%' => {
                let digits = [bytes.next()?, bytes.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            other => other,
        });
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_is_decoded_and_broken_escapes_are_no_value() {
        let parts = |uri: &str| Request::get(uri).body(()).unwrap().into_parts().0;
        assert_eq!(query(&parts("/x?a=1&b=%2Fc+d&b=2"), "b").as_deref(), Some("/c d"));
        for broken in ["/x?b=%", "/x?b=%g0", "/x?b=%ff", "/x?c=1", "/x"] {
            assert_eq!(query(&parts(broken), "b"), None, "{broken}");
        }
    }
}
