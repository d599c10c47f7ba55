//! The client's side of the WebSocket handshake.
//!
//! hyper reads the answer: tungstenite would take one that comes in small portions for an attack.

use bytes::Bytes;
use http::header::{
    AUTHORIZATION, CONNECTION, HOST, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderMap, HeaderName, Request, Response, StatusCode, Uri};
use http_body_util::Empty;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use tokio::time::timeout;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;

use super::SUBPROTOCOL;
use crate::body::read_body;
use crate::client::{self, ClientError};
use crate::dial::Dialer;
use crate::link::{Link, Options};
use crate::stream::Stream;

/// Opens a WebSocket to a `ws://` or `wss://` address.
///
/// With `negotiated` it offers `aaep.v1` and insists on it; without, it offers nothing, as
/// published clients do (D27).
// enforces: W9, D27
pub async fn connect(
    url: &str,
    negotiated: bool,
    client: &client::Options,
    options: Options,
) -> Result<Link, ClientError> {
    let uri: Uri = url.parse().map_err(|_| ClientError::Address(url.to_owned()))?;
    let key = generate_key();
    let request = request(&uri, negotiated, &key, client)?;
    let dialer = Dialer::new(&uri, "ws", "wss", client.clone())?;
    let (stream, peer) = dialer.connect().await?;
    let shaking = handshake(stream, request, client);
    let opened = timeout(client.answer, shaking).await.map_err(|_| ClientError::TooSlow)?;
    let (head, connection) = opened?;
    agreed(&head, negotiated, &key)?;
    Ok(super::link(Box::new(TokioIo::new(connection)), Role::Client, peer, &options).await)
}

fn request(
    uri: &Uri,
    negotiated: bool,
    key: &str,
    client: &client::Options,
) -> Result<Request<Empty<Bytes>>, ClientError> {
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let path = uri.path_and_query().map_or("/", |path| path.as_str());
    let mut request = Request::get(path)
        .header(HOST, host)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, key);
    if negotiated {
        request = request.header(SEC_WEBSOCKET_PROTOCOL, SUBPROTOCOL);
    }
    if let Some(token) = &client.token {
        request = request.header(AUTHORIZATION, token.header());
    }
    request.body(Empty::new()).map_err(|error| ClientError::Address(error.to_string()))
}

async fn handshake(
    stream: Stream,
    request: Request<Empty<Bytes>>,
    client: &client::Options,
) -> Result<(HeaderMap, Upgraded), ClientError> {
    let handshake = http1::handshake(TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(broken)?;
    tokio::spawn(async move {
        let _ = connection.with_upgrades().await;
    });
    let mut response: Response<Incoming> = sender.send_request(request).await.map_err(broken)?;
    if response.status() != StatusCode::SWITCHING_PROTOCOLS {
        let (head, body) = response.into_parts();
        let said = read_body(body, client.max_message, client.answer).await;
        return Err(ClientError::refused(head.status, &said.unwrap_or_default()));
    }
    let connection = hyper::upgrade::on(&mut response).await.map_err(broken)?;
    Ok((response.into_parts().0.headers, connection))
}

/// Whether the server has understood that this is a WebSocket, and which.
fn agreed(head: &HeaderMap, negotiated: bool, key: &str) -> Result<(), ClientError> {
    let text = |name: HeaderName| head.get(name).and_then(|value| value.to_str().ok());
    if text(SEC_WEBSOCKET_ACCEPT) != Some(&derive_accept_key(key.as_bytes())) {
        return Err(ClientError::Broken("the server did not understand the handshake".into()));
    }
    let wanted = negotiated.then_some(SUBPROTOCOL);
    if text(SEC_WEBSOCKET_PROTOCOL) != wanted {
        let text = format!("the server does not agree to the subprotocol {SUBPROTOCOL}");
        return Err(ClientError::Broken(text));
    }
    Ok(())
}

fn broken(error: hyper::Error) -> ClientError {
    ClientError::Broken(error.to_string())
}
