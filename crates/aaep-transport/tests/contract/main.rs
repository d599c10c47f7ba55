//! Every transport keeps the contract.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real sockets and files

mod grpc;
mod http;
#[cfg(unix)]
mod stdio;
#[cfg(unix)]
mod unix;
mod ws;

use std::sync::Arc;

use aaep_transport::contract::{Settings, transport_contract};
use aaep_transport::server::{Limits, Server};
use aaep_transport::tls::{self, ServerConfig};
use aaep_transport::{client, link};

/// A certificate for this machine's loopback address, signed by itself.
pub struct Certificate {
    pub server: Arc<ServerConfig>,
    pub pem: Vec<u8>,
}

impl Certificate {
    pub fn made() -> Self {
        let made = rcgen::generate_simple_self_signed(vec!["127.0.0.1".into()]).unwrap();
        let (pem, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let server = tls::server(pem.as_bytes(), key.as_bytes()).unwrap();
        Self { server, pem: pem.into_bytes() }
    }
}

pub async fn http_server(settings: Settings, certificate: Option<&Certificate>) -> Server {
    let limits = Limits { write_stall: settings.patience, ..Limits::default() };
    let server = Server::bind("127.0.0.1:0").await.unwrap().with_limits(limits);
    match certificate {
        Some(certificate) => server.with_tls(Arc::clone(&certificate.server)),
        None => server,
    }
}

pub fn client_options(settings: Settings, certificate: Option<&Certificate>) -> client::Options {
    client::Options {
        extra_roots_pem: certificate.map(|certificate| certificate.pem.clone()),
        silence: settings.patience,
        answer: settings.patience,
        max_message: settings.max_message,
        ..client::Options::default()
    }
}

pub fn link_options(settings: Settings) -> link::Options {
    link::Options {
        max_message: settings.max_message,
        ping_every: settings.patience / 3,
        dead_after: settings.patience,
        write_stall: settings.patience,
    }
}

// covers: W1, W3, W4, W6, W16
#[tokio::test]
async fn sse_and_post_keep_the_contract() {
    transport_contract(&http::Http::<false>::new()).await;
}

// covers: W1, W3, W4, W5, W6
#[tokio::test]
async fn sse_and_post_over_tls_keep_the_contract() {
    transport_contract(&http::Http::<true>::new()).await;
}

// covers: W1, W3, W6, W9, W16
#[tokio::test]
async fn websocket_keeps_the_contract() {
    transport_contract(&ws::WebSocket::<false>::new()).await;
}

// covers: W1, W3, W5, W6, W9
#[tokio::test]
async fn websocket_over_tls_keeps_the_contract() {
    transport_contract(&ws::WebSocket::<true>::new()).await;
}

// covers: W1, W3, W6, W10, W16
#[cfg(unix)]
#[tokio::test]
async fn unix_socket_keeps_the_contract() {
    transport_contract(&unix::Unix::new()).await;
}

// covers: W1, W3, W6, W11, W16
#[tokio::test]
async fn grpc_keeps_the_contract() {
    transport_contract(&grpc::Grpc::<false>::new()).await;
}

// covers: W1, W3, W5, W6, W11
#[tokio::test]
async fn grpc_over_tls_keeps_the_contract() {
    transport_contract(&grpc::Grpc::<true>::new()).await;
}

// covers: W1, W3, W6, W12, W16
#[cfg(unix)]
#[tokio::test]
async fn stdio_keeps_the_contract() {
    transport_contract(&stdio::Stdio::new()).await;
}
