//! The page: a subscriber in the browser, and how it gets its token.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use aaep_page::File;
use aaep_transport::peer::Peer;
use aaep_transport::server::{RequestBody, read_body};
use aaep_types::json::{Members, Writer};
use http::header::{
    ACCESS_CONTROL_ALLOW_ORIGIN, CACHE_CONTROL, CONTENT_SECURITY_POLICY, ETAG, HeaderName,
    IF_NONE_MATCH, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use http::{HeaderValue, Method, StatusCode, request::Parts};

use super::route::{self, Route, RouteMatch};
use super::{HttpResponse, Problem, empty, json, typed};
use crate::codes::Worth;
use crate::hub::Hub;

/// The longest body that is read for a code, in bytes.
const CODE_BODY_BYTES: usize = 512;

/// How deep that body may nest.
const DEPTH: usize = 4;

/// The file that a request asks for, if it is one that sites of any origin may load.
pub(crate) fn public(hub: &Hub, parts: &Parts) -> Option<&'static File> {
    if parts.method != Method::GET {
        return None;
    }
    match route::find(&parts.method, parts.uri.path(), hub.config().base.as_str()) {
        RouteMatch::Route(Route::PageFile(file)) => Some(file),
        _ => None,
    }
}

/// `GET /`.
pub(crate) fn index(hub: &Hub) -> HttpResponse {
    let html = aaep_page::index(hub.config().base.as_str());
    let mut answer = typed(StatusCode::OK, "text/html; charset=utf-8", html);
    let headers = answer.headers_mut();
    let policy = HeaderValue::from_static(aaep_page::CONTENT_SECURITY_POLICY);
    headers.insert(CONTENT_SECURITY_POLICY, policy);
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let opener = HeaderName::from_static("cross-origin-opener-policy");
    headers.insert(opener, HeaderValue::from_static("same-origin"));
    answer
}

/// `GET /page/…`.
pub(crate) fn file(file: &'static File, parts: &Parts) -> HttpResponse {
    let known = parts.headers.get_all(IF_NONE_MATCH).iter();
    let mut known = known.filter_map(|value| value.to_str().ok()).flat_map(|list| list.split(','));
    let mut answer = match known.any(|etag| etag.trim() == file.etag()) {
        true => empty(StatusCode::NOT_MODIFIED),
        false => typed(StatusCode::OK, file.content_type, file.text.as_bytes()),
    };
    let headers = answer.headers_mut();
    if let Ok(etag) = HeaderValue::from_str(file.etag()) {
        headers.insert(ETAG, etag);
    }
    // Kept, and asked for each time: a new hub has new files, all at once.
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    let resource = HeaderName::from_static("cross-origin-resource-policy");
    headers.insert(resource, HeaderValue::from_static("cross-origin"));
    answer
}

/// Where a request came from, for those who are counted by that.
pub(crate) fn address_of(hub: &Hub, parts: &Parts) -> IpAddr {
    let peer = parts.extensions.get::<Peer>().and_then(Peer::address);
    let client = peer.and_then(|peer| hub.0.guard.client(&parts.headers, peer, true).ok());
    client.map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |client| client.address)
}

/// The answer to a wrong code.
fn wrong_code() -> Problem {
    let text = "This code was used, or is too old. Paste a token, or start the demo again.";
    Problem::new(StatusCode::UNAUTHORIZED, "unauthorized", text)
}

/// `POST page/token`: a code becomes a token, once.
// enforces: S5
pub(crate) async fn token(
    hub: &Hub,
    parts: &Parts,
    body: RequestBody,
) -> Result<HttpResponse, Problem> {
    let patience = Duration::from_secs(hub.config().limits.body_seconds);
    let bytes = read_body(body, CODE_BODY_BYTES, patience).await?;
    let text = std::str::from_utf8(&bytes).unwrap_or_default();
    let members = Members::whole(text, DEPTH).ok().flatten();
    let code = members.as_ref().and_then(|members| members.text("code"));
    let code = code.ok_or_else(|| Problem::malformed("Send {\"code\": \"…\"}."))?;
    let from = address_of(hub, parts);
    let token = match hub.0.codes.spend(&code, from) {
        Worth::Token(token) => token,
        Worth::Nothing(wait) => {
            hub.metrics().refused.add(1);
            if !wait.is_zero() {
                let _waits = hub.0.codes.begin_wait(from)?;
                tokio::select! {
                    () = tokio::time::sleep(wait) => {}
                    () = hub.stopping() => {}
                }
            }
            return Err(wrong_code());
        }
    };
    let mut out = Writer::new();
    out.open('{');
    out.name("token");
    out.string(token.as_str());
    out.close('}');
    Ok(json(StatusCode::OK, out.finish()))
}
