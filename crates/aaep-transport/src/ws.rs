//! WebSocket: one JSON message in one text frame, subprotocol `aaep.v1` (W9, D27).
//!
//! Whether an `Origin` is welcome is for the hub to say, before it upgrades.

#[cfg(feature = "client")]
mod client;
#[cfg(feature = "server")]
mod server;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_util::{Sink as _, Stream as _};
use tokio::time::{Instant, Sleep, sleep_until};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Bytes, Error, Message};

use crate::TooLong;
use crate::link::{Link, LinkError, Options, Text};
use crate::peer::Peer;
use crate::stream::Stream;

#[cfg(feature = "client")]
pub use client::connect;
#[cfg(feature = "server")]
pub use server::{Offer, Pending, Refusal, Upgrade, upgrade};

/// The subprotocol of AAEP.
pub const SUBPROTOCOL: &str = "aaep.v1";

/// Bytes read at once; a held connection keeps a buffer of this size.
const READ_BUFFER: usize = 4 * 1024;

/// Close codes: those of AAEP (W9), and those of WebSocket that a hub needs.
// enforces: W9
pub mod close {
    /// The end that was agreed on.
    pub const NORMAL: u16 = 1000;
    /// The server stops.
    pub const GOING_AWAY: u16 = 1001;
    /// A binary message came where only text is spoken.
    pub const NOT_TEXT: u16 = 1003;
    /// A message was too long.
    pub const TOO_LONG: u16 = 1009;
    /// The producer closed the subscription.
    pub const CLOSED: u16 = 4000;
    /// The subscription was rejected.
    pub const REJECTED: u16 = 4001;
    /// Who is there is not known.
    pub const AUTHENTICATION: u16 = 4002;
    /// Who is there may not do this.
    pub const AUTHORIZATION: u16 = 4003;
    /// The peer broke the protocol.
    pub const VIOLATION: u16 = 4004;
    /// The subscriber closed the subscription.
    pub const BY_SUBSCRIBER: u16 = 4005;
}

type Socket = WebSocketStream<Stream>;

fn config(options: &Options) -> WebSocketConfig {
    WebSocketConfig::default()
        .read_buffer_size(READ_BUFFER)
        .write_buffer_size(0)
        // One message and the frames around it: more is only asked for once it is sent.
        .max_write_buffer_size(usize::MAX)
        .max_message_size(Some(options.max_message))
        .max_frame_size(Some(options.max_message))
}

async fn link(stream: Stream, role: Role, peer: Peer, options: &Options) -> Link {
    let socket = WebSocketStream::from_raw_socket(stream, role, Some(config(options))).await;
    let shared = Arc::new(Shared { socket: Mutex::new(socket), sending: AtomicBool::new(false) });
    let now = Instant::now();
    let receiver = WsReceiver {
        shared: Arc::clone(&shared),
        ping_every: options.ping_every,
        dead_after: options.dead_after,
        max: options.max_message,
        heard: now,
        next_ping: now + options.ping_every,
        timer: Box::pin(sleep_until(now + options.ping_every.min(options.dead_after))),
        ended: false,
        reason: None,
    };
    Link::ws(WsSender(shared), receiver, peer, options)
}

/// Both halves work on one socket, which is locked while it is polled and never longer.
struct Shared {
    socket: Mutex<Socket>,
    /// Someone waits for their message to be written. The socket remembers one writer only, so the
    /// receiver's own pings must stay out of the way.
    sending: AtomicBool,
}

impl Shared {
    fn socket(&self) -> MutexGuard<'_, Socket> {
        self.socket.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Hands a message to the socket; what it cannot write at once it keeps.
    fn poll_begin(
        &self,
        message: &mut Option<Message>,
        context: &mut Context<'_>,
    ) -> Poll<Result<(), Error>> {
        let mut socket = self.socket();
        ready!(Pin::new(&mut *socket).poll_ready(context))?;
        Poll::Ready(match message.take() {
            Some(message) => Pin::new(&mut *socket).start_send(message),
            None => Ok(()),
        })
    }

    fn poll_flush(&self, context: &mut Context<'_>) -> Poll<Result<(), Error>> {
        Pin::new(&mut *self.socket()).poll_flush(context)
    }
}

pub(crate) struct WsSender(Arc<Shared>);

impl WsSender {
    pub(crate) async fn send(&mut self, text: Text) -> Result<(), LinkError> {
        self.write(Message::Text(text)).await
    }

    pub(crate) async fn ping(&mut self) -> Result<(), LinkError> {
        self.write(Message::Ping(Bytes::new())).await
    }

    pub(crate) async fn close(&mut self, code: u16, reason: &str) -> Result<(), LinkError> {
        let reason = shortened(reason).into();
        self.write(Message::Close(Some(CloseFrame { code: code.into(), reason }))).await
    }

    async fn write(&mut self, message: Message) -> Result<(), LinkError> {
        let shared = &*self.0;
        let _sending = Sending::new(&shared.sending);
        let mut message = Some(message);
        poll_fn(|context| shared.poll_begin(&mut message, context)).await.map_err(unsent)?;
        poll_fn(|context| shared.poll_flush(context)).await.map_err(unsent)
    }
}

/// Says that someone sends, also when their future is dropped.
struct Sending<'a>(&'a AtomicBool);

impl<'a> Sending<'a> {
    fn new(sending: &'a AtomicBool) -> Self {
        sending.store(true, Ordering::SeqCst);
        Self(sending)
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::SeqCst);
    }
}

/// A close frame has room for 123 bytes of reason.
fn shortened(reason: &str) -> &str {
    &reason[..reason.floor_char_boundary(123)]
}

fn unsent(error: Error) -> LinkError {
    match error {
        Error::ConnectionClosed
        | Error::AlreadyClosed
        | Error::Protocol(ProtocolError::SendAfterClosing) => LinkError::Closed,
        other => LinkError::Lost(other.to_string()),
    }
}

pub(crate) struct WsReceiver {
    shared: Arc<Shared>,
    ping_every: Duration,
    dead_after: Duration,
    max: usize,
    heard: Instant,
    next_ping: Instant,
    timer: Pin<Box<Sleep>>,
    ended: bool,
    reason: Option<(u16, String)>,
}

impl WsReceiver {
    pub(crate) fn close_reason(&self) -> Option<(u16, &str)> {
        self.reason.as_ref().map(|(code, reason)| (*code, reason.as_str()))
    }

    pub(crate) fn poll_receive(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Text>, LinkError>> {
        loop {
            if self.ended {
                return Poll::Ready(Ok(None));
            }
            let message = Pin::new(&mut *self.shared.socket()).poll_next(context);
            match message {
                Poll::Pending => return self.poll_alive(context).map(Err),
                Poll::Ready(None) => self.ended = true,
                Poll::Ready(Some(Ok(message))) => {
                    self.heard = Instant::now();
                    match message {
                        Message::Text(text) => return Poll::Ready(Ok(Some(text))),
                        Message::Binary(_) => return Poll::Ready(Err(LinkError::NotText)),
                        Message::Close(frame) => {
                            let given = |frame: CloseFrame| {
                                (frame.code.into(), frame.reason.as_str().to_owned())
                            };
                            self.reason = frame.map(given);
                            self.ended = true;
                            // Looking once more sends our own close; what else would come is
                            // nothing that we wait for.
                            let _ = Pin::new(&mut *self.shared.socket()).poll_next(context);
                        }
                        Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.ended = true;
                    return Poll::Ready(self.blame(error));
                }
            }
        }
    }

    fn blame(&self, error: Error) -> Result<Option<Text>, LinkError> {
        Err(match error {
            Error::ConnectionClosed | Error::AlreadyClosed => return Ok(None),
            Error::Capacity(CapacityError::MessageTooLong { .. }) => {
                LinkError::TooLong(TooLong { max: self.max })
            }
            Error::Utf8(_) => LinkError::NotText,
            Error::Protocol(ProtocolError::ResetWithoutClosingHandshake) => {
                LinkError::Lost("it ended without a close".into())
            }
            Error::Protocol(error) => LinkError::Violation(error.to_string()),
            other => LinkError::Lost(other.to_string()),
        })
    }

    /// Nothing came: asks whether the peer is there, and gives it up when it does not answer (W3).
    // enforces: W3
    fn poll_alive(&mut self, context: &mut Context<'_>) -> Poll<LinkError> {
        loop {
            ready!(self.timer.as_mut().poll(context));
            let now = Instant::now();
            if now >= self.heard + self.dead_after {
                self.ended = true;
                return Poll::Ready(LinkError::Lost("the peer does not answer".into()));
            }
            if now >= self.next_ping {
                self.next_ping = now + self.ping_every;
                self.ping(context);
            }
            self.timer.as_mut().reset(self.next_ping.min(self.heard + self.dead_after));
        }
    }

    /// If it cannot be sent now, the next one may; the deadline runs on either way.
    fn ping(&self, context: &mut Context<'_>) {
        if self.shared.sending.load(Ordering::SeqCst) {
            return;
        }
        let mut ping = Some(Message::Ping(Bytes::new()));
        if let Poll::Ready(Ok(())) = self.shared.poll_begin(&mut ping, context) {
            let _ = self.shared.poll_flush(context);
        }
    }
}
