//! What operators and newcomers look at: health, readiness, figures, the manifest, the API's
//! description.

use aaep_engine::Role;
use http::header::ACCEPT;
use http::{HeaderMap, StatusCode};

use super::route::Route;
use super::{Call, HttpResponse, Problem, json, typed};
use crate::access::Denied;
use crate::hub::Hub;
use crate::metrics::{Counter, Gauges};
use crate::vitals::Vitals;
use crate::{manifest, openapi};

/// What everybody may see.
pub(crate) async fn open(hub: &Hub, route: &Route, headers: &HeaderMap) -> HttpResponse {
    match route {
        // enforces: I28
        Route::Health if hub.is_broken() => {
            typed(StatusCode::SERVICE_UNAVAILABLE, "text/plain; charset=utf-8", "broken\n")
        }
        Route::Health => typed(StatusCode::OK, "text/plain; charset=utf-8", "ok\n"),
        Route::Ready => match hub.look(|core| core.is_ready()).await {
            Ok(true) if !hub.is_stopping() => {
                typed(StatusCode::OK, "text/plain; charset=utf-8", "ready\n")
            }
            _ => Problem::from(crate::hub::Stopped).into_answer(),
        },
        Route::OpenApi => {
            json(StatusCode::OK, openapi::document(hub.config().base.as_str()).to_string())
        }
        Route::Manifest if wants_signed(headers) => signed(hub),
        Route::Manifest => json(StatusCode::OK, hub.0.manifests.own()),
        _ => Problem::not_found("There is nothing here.").into_answer(),
    }
}

/// The type of a JWS in compact form (RFC 7515).
const JOSE: &str = "application/jose";

/// Whether somebody wants the manifest signed, and says so.
fn wants_signed(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT).iter().filter_map(|accept| accept.to_str().ok());
    let mut kinds = accepted.flat_map(|accept| accept.split(','));
    kinds.any(|kind| kind.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(JOSE))
}

// enforces: S7
/// The hub's own part of the manifest, signed.
fn signed(hub: &Hub) -> HttpResponse {
    match hub.0.manifests.signed() {
        Some(signed) => typed(StatusCode::OK, JOSE, signed),
        None => {
            let text = "This hub does not sign its manifest (hub.manifest_key).";
            Problem::new(StatusCode::NOT_ACCEPTABLE, "not_acceptable", text).into_answer()
        }
    }
}

// enforces: I22, I29
/// The manifest for somebody who showed a token: with the agents of their user, or all of them for
/// auditors and admins.
pub(crate) async fn manifest(hub: &Hub, call: &Call) -> Result<HttpResponse, Problem> {
    if wants_signed(&call.parts.headers) {
        return Ok(signed(hub));
    }
    let principal = &call.known.principal;
    let all = matches!(principal.role, Role::Auditor | Role::Admin);
    let user = (!all).then(|| principal.user.clone());
    if let Some(listed) = hub.0.manifests.listed(user.as_ref()) {
        return Ok(json(StatusCode::OK, listed));
    }
    let (of, most) = (user.clone(), hub.config().limits.manifest_agents);
    let agents = hub.look(move |core| core.producers(of.as_deref(), most)).await?;
    let text = manifest::of(hub.config(), hub.0.profile.as_ref(), Some(&agents));
    Ok(json(StatusCode::OK, hub.0.manifests.keep(user, text)))
}

// enforces: I29
/// `GET status`: how many requests wait for a user and how many sessions run for them; for auditors and
/// admins, for everybody. It holds no words: a prompt may show it.
pub(crate) async fn status(hub: &Hub, call: &Call) -> Result<HttpResponse, Problem> {
    let principal = &call.known.principal;
    let all = matches!(principal.role, Role::Auditor | Role::Admin);
    let user = (!all).then(|| principal.user.clone());
    let (waiting, sessions) = hub.look(move |core| core.held(user.as_deref())).await?;
    let name = hub.config().hub.agent_name.as_str();
    let status = serde_json::json!({ "name": name, "waiting": waiting, "sessions": sessions });
    Ok(json(StatusCode::OK, status.to_string()))
}

/// `GET metrics`: for auditors, admins, the role `metrics`, and clients on this machine.
pub(crate) async fn metrics(hub: &Hub, call: &Call) -> Result<HttpResponse, Problem> {
    let principal = &call.known.principal;
    let local = crate::access::BUILT_IN_NAMES.contains(&&*principal.name);
    if !local && !matches!(principal.role, Role::Auditor | Role::Admin | Role::Metrics) {
        return Err(Denied::Role.into());
    }
    let counts = hub.look(|core| core.counts()).await?;
    let waits = [&hub.0.pace.waits.calls, &hub.0.pace.waits.links].map(Counter::get);
    let vitals = Vitals::measure(hub.config(), hub.0.tls.as_ref());
    let gauges = Gauges { waits, counts, vitals };
    let text = hub.metrics().to_text(&gauges);
    Ok(typed(StatusCode::OK, "text/plain; version=0.0.4; charset=utf-8", text))
}
