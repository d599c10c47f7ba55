//! Subscriptions over HTTP: the handshake, and the stream that follows (§5, B.1).

use aaep_engine::{Handshake, Negotiated, Resumed, terms_of};
use aaep_transport::server::Long;
use aaep_transport::sse::{RESUMED, RESUMED_ALL, RESUMED_SNAPSHOT};
use aaep_types::{Message, RejectionCode, SubscriptionId};
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, LOCATION, RETRY_AFTER};
use http::{HeaderValue, Response, StatusCode};

use super::{Body, Call, HttpResponse, Problem, json, query};
use crate::access::AuthenticatedPeer;
use crate::core::{Attached, Framing, held};
use crate::hub::{Hub, Stopped};

/// `POST subscriptions`.
// enforces: W8, H1
pub(crate) async fn subscribe(
    hub: &Hub,
    call: &Call,
    bytes: Bytes,
) -> Result<HttpResponse, Problem> {
    let known = call.known.clone();
    let turn = hub.handshake_turn(&known.principal).await?;
    // While its sender has no room for another one, nothing of a request is looked at.
    let peer = known.clone();
    let answer = match hub.look(move |core| core.rejects_more(&peer)).await? {
        Some(rejected) => rejected,
        None => {
            let request = read_request(hub, &known, &bytes)?;
            hub.look(move |core| core.subscribe(&known, request)).await??
        }
    };
    drop(turn);
    let (accepted, status) = match &answer {
        Negotiated::Accepted { subscription, .. } => (Some(*subscription), StatusCode::CREATED),
        Negotiated::Rejected(rejection) => (None, status_of(rejection.code)),
        Negotiated::Silent => (None, StatusCode::SERVICE_UNAVAILABLE),
    };
    let mut response = json(status, answer.json().unwrap_or_default());
    let headers = response.headers_mut();
    if let Some(id) = accepted {
        let path = format!("{}/events?subscription_id={id}", hub.config().base.as_str());
        if let Ok(path) = HeaderValue::from_str(&path) {
            headers.insert(LOCATION, path);
        }
    } else if status == StatusCode::TOO_MANY_REQUESTS {
        headers.insert(RETRY_AFTER, HeaderValue::from_static("10"));
    }
    Ok(response)
}

fn read_request(hub: &Hub, known: &AuthenticatedPeer, bytes: &[u8]) -> Result<Handshake, Problem> {
    held::assert_free();
    match Message::parse(bytes).map_err(|invalid| Problem::from_invalid(&invalid))? {
        request @ Message::Request(_) => {
            Ok(Handshake::of(request, &known.principal, &hub.0.offer.load())?)
        }
        _ => Err(Problem::malformed("Send a subscription.request here.")),
    }
}

/// The status of a rejection, as the contract has it.
fn status_of(code: RejectionCode) -> StatusCode {
    match code {
        RejectionCode::VersionUnsupported
        | RejectionCode::ManifestSignatureRequired
        | RejectionCode::CapabilitiesIncompatible => StatusCode::UNPROCESSABLE_ENTITY,
        RejectionCode::AuthenticationRequired => StatusCode::UNAUTHORIZED,
        RejectionCode::AuthorizationDenied => StatusCode::FORBIDDEN,
        RejectionCode::RateLimit => StatusCode::TOO_MANY_REQUESTS,
        _ => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// `GET events`: with a subscription its stream, without one a stream of its own (decision D4).
// enforces: W4, W7, W8, D27
pub(crate) async fn listen(hub: &Hub, call: &Call) -> Result<HttpResponse, Problem> {
    let last = call.parts.headers.get("last-event-id").and_then(|last| last.to_str().ok());
    let heard = match query(&call.parts, "subscription_id") {
        Some(id) => attach(hub, &call.known, &id, last, Framing::Named).await?,
        None => listen_unnegotiated(hub, &call.known, Framing::Unnamed).await?,
    };
    tracing::debug!(resumed = ?heard.resumed, "a stream was opened");
    Ok(stream(heard))
}

/// A stream of its own, for somebody who knows no handshake.
pub(super) async fn listen_unnegotiated(
    hub: &Hub,
    known: &AuthenticatedPeer,
    framing: Framing,
) -> Result<Attached, Problem> {
    let known = known.clone();
    Ok(hub.look(move |core| core.listen(&known, framing)).await??)
}

/// The stream of a subscription, after the event that was heard last.
pub(super) async fn attach(
    hub: &Hub,
    known: &AuthenticatedPeer,
    id: &str,
    last: Option<&str>,
    framing: Framing,
) -> Result<Attached, Problem> {
    let (known, last) = (known.clone(), last.map(str::to_owned));
    let heard = match SubscriptionId::parse(id) {
        Err(_) => None,
        Ok(id) => {
            // The terms are made before the core is taken. No other handshake of this principal changes
            // them meanwhile.
            let _turn = hub.handshake_turn(&known.principal).await?;
            let peer = known.clone();
            let asked = hub.look(move |core| core.asked_at_first(&peer, id)).await?;
            let made = asked.and_then(|asked| {
                held::assert_free();
                terms_of(&asked, &known.principal, &hub.0.offer.load()).map(|terms| (asked, terms))
            });
            hub.look(move |core| {
                if let Some((asked, terms)) = made {
                    core.prepare(id, &asked, terms);
                }
                core.attach(&known, id, last.as_deref(), framing, None)
            })
            .await?
        }
    };
    let nobody = "There is no such subscription of yours; it may have expired. Subscribe again.";
    heard.ok_or_else(|| match hub.is_stopping() {
        true => Problem::from(Stopped),
        false => Problem::not_found(nobody),
    })
}

fn stream(heard: Attached) -> HttpResponse {
    let resumed = match heard.resumed {
        Resumed::All => RESUMED_ALL,
        Resumed::Snapshot => RESUMED_SNAPSHOT,
    };
    let mut response = Response::new(Body::events(heard.hearing));
    response.extensions_mut().insert(Long);
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    // enforces: I32
    // A client that is told the present state knows that what is not mentioned is over.
    headers.insert(RESUMED, HeaderValue::from_static(resumed));
    // Proxies that gather answers before they pass them on would hold the stream back.
    headers.insert("x-accel-buffering", HeaderValue::from_static("no"));
    response
}
