//! Moves AAEP messages and says who sent them: the server and client halves of SSE with POST, of
//! WebSocket, of gRPC, of Unix sockets and of stdio.
//!
//! | module | what it holds |
//! |---|---|
//! | [`sse`], [`length`] | framing, without input or output |
//! | [`server`] | accepts connections, drives HTTP/1.1, gives requests to a service; limits and deadlines |
//! | [`client`] | POST and streams of events |
//! | [`link`] | a duplex of text messages, for [`ws`], [`grpc`], [`unix`] and [`stdio`] |
//! | [`ws`] | WebSocket, both halves |
//! | [`grpc`] | gRPC over HTTP/2, both halves; the `.proto` is in `proto/` |
//! | [`stdio`] | JSON-RPC 2.0 by line, with a program that we started or that started us |
//! | [`unix`] | Unix sockets, both halves, and where they are (not on Windows) |
//! | [`tls`] | TLS, both halves |
//! | [`peer`] | who is at the other end |
//! | [`discovery`] | where the hub of this machine is |
//! | `contract` | the tests that every transport has to pass |
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `client` | on | connecting: [`client`], [`discovery`], `ws::connect`, `unix::connect`, `stdio::connect` |
//! | `server` | on | listening: [`server`], [`alarm`], `ws::upgrade`, `unix::Listener`, `stdio::serve` |
//! | `grpc` | on | gRPC, for whichever of the two is there: [`grpc`], `Server::serve_http2` |
//! | `test-util` | off | `contract`, the tests that every transport has to pass |
//!
//! Without any of them there is the framing alone ([`sse`], [`length`]). An agent takes `client` and
//! links no server.
//!
//! # What holds for every transport
//!
//! A message arrives byte for byte, or not at all. Messages keep their order: all of these are
//! streams of bytes, so nobody has to sort. Both sides notice that the other is gone: a server's
//! response body is dropped, [`link::Receiver::receive`] and [`client::EventStream::next`] end.
//! What is too long, too slow or too many is refused, and each limit has a name and a default.
//!
//! # What is deliberately left out
//!
//! What the messages mean. Who may connect: here is only said who did. Queues: a slow reader slows
//! its own stream, and what waits for it is the hub's. Coming back after a lost connection: when is
//! the subscriber's to say. HTTP/2 for anything but gRPC: thousands of silent streams are cheaper
//! without.
//!
//! # A new transport
//!
//! One file here, and `contract::transport_contract` in the tests. Windows named pipes (W13) are in
//! `pipe`, which only Windows compiles.
//!
//! # Example
//!
//! ```
//! use aaep_transport::client::{HttpClient, Options};
//! use aaep_transport::server::Server;
//! use axum::{Router, http::StatusCode, routing::post};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let server = Server::bind("127.0.0.1:0").await?;
//! let base = format!("http://{}/aaep/v1", server.local_addr()?);
//! let hub = Router::new().route("/aaep/v1/replies", post(|| async { StatusCode::NO_CONTENT }));
//! tokio::spawn(server.serve(hub, std::future::pending()));
//!
//! let client = HttpClient::new(&base, Options::default())?;
//! let answer = client.post("replies", r#"{"type":"aaep:confirmation.reply"}"#).await?;
//! assert_eq!(answer.status, 204);
//! # Ok(())
//! # }
//! ```
// enforces: W16
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // sockets, clocks and files are this crate's work

#[cfg(feature = "server")]
pub mod alarm;
#[cfg(any(feature = "client", feature = "server"))]
mod body;
#[cfg(feature = "client")]
pub mod client;
#[cfg(feature = "test-util")]
pub mod contract;
#[cfg(feature = "client")]
mod dial;
#[cfg(feature = "client")]
pub mod discovery;
#[cfg(all(feature = "grpc", any(feature = "client", feature = "server")))]
pub mod grpc;
pub mod length;
#[cfg(any(feature = "client", feature = "server"))]
pub mod link;
#[cfg(any(feature = "client", feature = "server"))]
#[cfg_attr(not(feature = "client"), allow(dead_code))]
mod owner;
#[cfg(any(feature = "client", feature = "server"))]
pub mod peer;
#[cfg(all(windows, any(feature = "client", feature = "server")))]
pub mod pipe;
#[cfg(any(feature = "client", feature = "server"))]
pub mod process;
#[cfg(feature = "server")]
pub mod server;
pub mod sse;
#[cfg(any(feature = "client", feature = "server"))]
pub mod stdio;
#[cfg(any(feature = "client", feature = "server"))]
mod stream;
#[cfg(any(feature = "client", feature = "server"))]
pub mod tls;
#[cfg(all(unix, any(feature = "client", feature = "server")))]
pub mod unix;
#[cfg(any(feature = "client", feature = "server"))]
pub mod ws;

/// A message that is longer than its receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The most bytes a message may have.
    pub max: usize,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the message is longer than {} bytes", self.max)
    }
}

impl std::error::Error for TooLong {}
