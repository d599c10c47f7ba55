//! gRPC (W11): messages as JSON inside `aaep.v1.AaepMessage`, over HTTP/2.
//!
//! The service is in `proto/aaep/v1/aaep.proto`; [`wire`] is made from it by `cargo xtask grpc`. Neither
//! half brings a stack of its own: a server is [`Server::serve_http2`](crate::server::Server::serve_http2)
//! with [`wire::aaep_service_server`] as the service, and a client connects as every other one here does,
//! with the same checks of who is there.

#[cfg(feature = "client")]
mod client;
mod status;

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::Stream;
use tokio::sync::mpsc;
use tonic::{Code, Status, Streaming};

use crate::TooLong;
use crate::link::{Link, LinkError, Options, Text};
use crate::peer::Peer;
use crate::ws::close;

#[cfg(feature = "client")]
pub use client::{GrpcClient, Messages, connect};
pub use status::{closing, status_of_http};

/// What the `.proto` gives.
#[allow(missing_docs, clippy::all, clippy::disallowed_types, clippy::disallowed_methods)]
pub mod wire {
    include!("grpc/generated/aaep.v1.rs");
}

use wire::AaepMessage;

/// The `.proto`, as it is published.
pub const PROTO: &str = include_str!("../proto/aaep/v1/aaep.proto");

/// The metadata key with which a subscriber says that it knows no handshake.
pub const HANDSHAKE: &str = "aaep-handshake";

/// Its value.
pub const NO_HANDSHAKE: &str = "none";

/// Messages that wait between a link and HTTP/2.
const WAITING: usize = 4;

/// What a message is wrapped in may take so many bytes; more is no message of ours.
pub const WRAPPING: usize = 1024;

/// A message on the wire.
pub fn wrapped(json: impl Into<Bytes>) -> AaepMessage {
    AaepMessage { json: json.into(), message_type: String::new() }
}

/// The server's end of one call of `Subscribe`: a link, and what it sends.
pub fn accept(received: Streaming<AaepMessage>, peer: Peer, options: &Options) -> (Link, Sent) {
    let (to, from) = mpsc::channel(WAITING);
    let receiver = GrpcReceiver::new(received, options.max_message);
    (Link::grpc(GrpcSender { to: Some(to) }, receiver, peer, options), Sent(from))
}

/// What one end of a call sends, for tonic to send on.
pub struct Sent(mpsc::Receiver<Result<AaepMessage, Status>>);

impl Stream for Sent {
    type Item = Result<AaepMessage, Status>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.poll_recv(context)
    }
}

/// The half of a link that sends.
pub(crate) struct GrpcSender {
    /// None once it was closed.
    to: Option<mpsc::Sender<Result<AaepMessage, Status>>>,
}

impl GrpcSender {
    pub(crate) async fn send(&mut self, text: Text) -> Result<(), LinkError> {
        let to = self.to.as_ref().ok_or(LinkError::Closed)?;
        let lost = |_| LinkError::Lost("the call ended".into());
        to.send(Ok(wrapped(Bytes::from(text)))).await.map_err(lost)
    }

    /// A client has no status to send: its half just ends.
    pub(crate) fn close(&mut self, code: u16, reason: &str) {
        let Some(to) = self.to.take() else { return };
        if let Some(status) = closing(code, reason) {
            let _ = to.try_send(Err(status));
        }
    }
}

/// The half of a link that receives.
pub(crate) struct GrpcReceiver {
    /// None once nothing more can come.
    received: Option<Streaming<AaepMessage>>,
    max_message: usize,
    closed: Option<(u16, String)>,
}

impl GrpcReceiver {
    fn new(received: Streaming<AaepMessage>, max_message: usize) -> Self {
        Self { received: Some(received), max_message, closed: None }
    }

    pub(crate) fn close_reason(&self) -> Option<(u16, &str)> {
        self.closed.as_ref().map(|(code, reason)| (*code, reason.as_str()))
    }

    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Text>, LinkError>> {
        let Some(received) = &mut self.received else { return Poll::Ready(Ok(None)) };
        let message = match std::task::ready!(Pin::new(received).poll_next(context)) {
            Some(Ok(message)) => message,
            None => {
                self.received = None;
                self.closed = Some((close::NORMAL, String::new()));
                return Poll::Ready(Ok(None));
            }
            Some(Err(status)) => {
                self.received = None;
                return Poll::Ready(self.end(&status));
            }
        };
        // enforces: W6
        if message.json.len() > self.max_message {
            return Poll::Ready(Err(LinkError::TooLong(TooLong { max: self.max_message })));
        }
        Poll::Ready(match Text::try_from(message.json) {
            Ok(text) => Ok(Some(text)),
            Err(_) => Err(LinkError::NotText),
        })
    }

    fn end(&mut self, status: &Status) -> Result<Option<Text>, LinkError> {
        if status.code() == Code::OutOfRange {
            return Err(LinkError::TooLong(TooLong { max: self.max_message }));
        }
        match status::closed_by(status) {
            Some(code) => {
                self.closed = Some((code, status.message().to_owned()));
                Ok(None)
            }
            None => Err(LinkError::Lost(format!("{}: {}", status.code(), status.message()))),
        }
    }
}
