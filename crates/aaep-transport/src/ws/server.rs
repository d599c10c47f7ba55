//! The server's side of the WebSocket handshake, on a connection of [`crate::server`].

use std::fmt;

use http::header::{
    CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Response, StatusCode, Version};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::SUBPROTOCOL;
use crate::link::{Link, LinkError, Options};
use crate::peer::Peer;

/// What a client offers to speak.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Offer {
    /// `aaep.v1`, perhaps among others.
    Aaep,
    /// No subprotocol: a published client, served as an un-negotiated stream (D27).
    Nothing,
    /// Only others, named here.
    Others(String),
}

impl Offer {
    /// Reads it from the head of a request.
    // enforces: D27, W9
    pub fn of(headers: &HeaderMap) -> Self {
        let offered = list(headers, SEC_WEBSOCKET_PROTOCOL);
        if offered.is_empty() {
            Self::Nothing
        } else if offered.iter().any(|name| name == SUBPROTOCOL) {
            Self::Aaep
        } else {
            Self::Others(offered.join(", "))
        }
    }
}

/// Why a request does not become a WebSocket.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Refusal {
    /// It does not ask for one, or not in the way of HTTP/1.1.
    NotWebSocket,
    /// It wants a version other than 13.
    Version,
    /// It offers only subprotocols that we do not speak, named here.
    Subprotocol(String),
    /// The connection cannot be taken over: it is not one of [`crate::server`].
    Connection,
}

impl Refusal {
    /// The status to answer with.
    pub fn status(&self) -> StatusCode {
        match self {
            Self::NotWebSocket | Self::Subprotocol(_) => StatusCode::BAD_REQUEST,
            Self::Version => StatusCode::UPGRADE_REQUIRED,
            Self::Connection => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The answer without its text, which is what `Display` shows.
    pub fn response(&self) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = self.status();
        if *self == Self::Version {
            let headers = response.headers_mut();
            headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        response
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotWebSocket => write!(f, "this is not a WebSocket request"),
            Self::Version => write!(f, "only version 13 of WebSocket is spoken here"),
            Self::Subprotocol(offered) => {
                write!(f, "offer the subprotocol {SUBPROTOCOL}, or none; offered: {offered}")
            }
            Self::Connection => write!(f, "this connection cannot become a WebSocket"),
        }
    }
}

impl std::error::Error for Refusal {}

/// A request that may become a WebSocket. Send the response, then wait for the link in a task of
/// its own.
pub struct Upgrade {
    /// Whether `aaep.v1` was agreed on; otherwise the stream is un-negotiated (D27).
    pub negotiated: bool,
    /// What to answer: 101.
    pub response: Response<()>,
    /// The connection, once the response has gone out.
    pub pending: Pending,
}

/// A connection that will become a WebSocket.
pub struct Pending {
    connection: OnUpgrade,
    peer: Peer,
}

/// Reads a request for a WebSocket.
// enforces: W9, D27
pub fn upgrade<B>(request: &mut Request<B>) -> Result<Upgrade, Refusal> {
    let headers = request.headers();
    let asks = request.method() == Method::GET
        && request.version() == Version::HTTP_11
        && contains(headers, CONNECTION, "upgrade")
        && contains(headers, UPGRADE, "websocket");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|key| asks && key.len() == 24);
    let key = key.ok_or(Refusal::NotWebSocket)?;
    if headers.get(SEC_WEBSOCKET_VERSION).is_none_or(|version| version != "13") {
        return Err(Refusal::Version);
    }
    let negotiated = match Offer::of(headers) {
        Offer::Aaep => true,
        Offer::Nothing => false,
        Offer::Others(names) => return Err(Refusal::Subprotocol(names)),
    };
    let response = switching(&derive_accept_key(key.as_bytes()), negotiated)?;
    let peer = request.extensions().get::<Peer>().cloned().ok_or(Refusal::Connection)?;
    if request.extensions().get::<OnUpgrade>().is_none() {
        return Err(Refusal::Connection);
    }
    let connection = hyper::upgrade::on(request);
    Ok(Upgrade { negotiated, response, pending: Pending { connection, peer } })
}

fn switching(accept: &str, negotiated: bool) -> Result<Response<()>, Refusal> {
    let accept = HeaderValue::from_str(accept).map_err(|_| Refusal::NotWebSocket)?;
    let mut response = Response::new(());
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(SEC_WEBSOCKET_ACCEPT, accept);
    if negotiated {
        headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    Ok(response)
}

impl Pending {
    /// Who asked.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// The link, once the response has gone out. Never comes if it is not sent.
    pub async fn link(self, options: Options) -> Result<Link, LinkError> {
        let connection = self.connection.await;
        let connection = connection.map_err(|error| LinkError::Lost(error.to_string()))?;
        let stream = Box::new(TokioIo::new(connection));
        Ok(super::link(stream, Role::Server, self.peer, &options).await)
    }
}

/// The elements of a header that is a list; it may come several times.
fn list(headers: &HeaderMap, name: HeaderName) -> Vec<String> {
    let texts = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
    let elements = texts.flat_map(|text| text.split(','));
    elements.map(|element| element.trim().to_owned()).filter(|e| !e.is_empty()).collect()
}

fn contains(headers: &HeaderMap, name: HeaderName, wanted: &str) -> bool {
    list(headers, name).iter().any(|element| element.eq_ignore_ascii_case(wanted))
}
