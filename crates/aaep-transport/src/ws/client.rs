//! The client's side of the WebSocket handshake.

use http::header::{
    AUTHORIZATION, CONNECTION, HOST, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL,
    SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{HeaderValue, Request, Uri};
use tokio::time::timeout;
use tokio_tungstenite::client_async_with_config;
use tokio_tungstenite::tungstenite::Error;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;

use super::{Io, SUBPROTOCOL};
use crate::client::{self, ClientError};
use crate::dial::Dialer;
use crate::link::{Link, Options};

/// Opens a WebSocket to a `ws://` or `wss://` address.
///
/// With `negotiated` it offers `aaep.v1` and insists on it; without, it offers nothing, as
/// published clients do (D27).
// enforces: W9, D27
pub async fn connect(
    url: &str,
    negotiated: bool,
    client: &client::Options,
    options: &Options,
) -> Result<Link, ClientError> {
    let uri: Uri = url.parse().map_err(|_| ClientError::Address(url.to_owned()))?;
    let request = request(&uri, negotiated, client)?;
    let dialer = Dialer::new(&uri, "ws", "wss", client.clone())?;
    let (stream, peer) = dialer.connect().await?;
    let stream: Box<dyn Io> = Box::new(stream);
    let handshake = client_async_with_config(request, stream, Some(super::config(options)));
    let Ok(answer) = timeout(client.answer, handshake).await else {
        return Err(ClientError::TooSlow);
    };
    match answer {
        Ok((socket, _)) => Ok(super::halves(socket, peer, options)),
        Err(Error::Http(response)) => {
            let (head, body) = response.into_parts();
            Err(ClientError::refused(head.status, body.as_deref().unwrap_or_default()))
        }
        Err(error) => Err(ClientError::Broken(error.to_string())),
    }
}

fn request(
    uri: &Uri,
    negotiated: bool,
    client: &client::Options,
) -> Result<Request<()>, ClientError> {
    let host = uri.authority().map_or("", |authority| authority.as_str());
    let mut request = Request::get(uri)
        .header(HOST, host)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_VERSION, "13")
        .header(SEC_WEBSOCKET_KEY, generate_key());
    if negotiated {
        request = request.header(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(SUBPROTOCOL));
    }
    if let Some(token) = &client.token {
        request = request.header(AUTHORIZATION, token.header());
    }
    request.body(()).map_err(|error| ClientError::Address(error.to_string()))
}
