//! A duplex of text messages: what WebSocket, gRPC, Unix sockets and stdio have in common.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Buf, BytesMut};
use std::future::poll_fn;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::time::timeout;

#[cfg(feature = "grpc")]
use crate::grpc::{GrpcReceiver, GrpcSender};
use crate::peer::Peer;
use crate::stdio::{LineReceiver, LineSender};
use crate::ws::{WsReceiver, WsSender};
use crate::{TooLong, length};

/// Text that is cheap to clone: many links can send the same bytes.
pub use tokio_tungstenite::tungstenite::Utf8Bytes as Text;

/// What a link takes, and how long it waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// Bytes in one message, at most.
    pub max_message: usize,
    /// How often the other end is asked whether it is there (WebSocket and gRPC; the kernel tells us of
    /// the end of a Unix socket, and of a program's).
    pub ping_every: Duration,
    /// How long it may say nothing at all before it counts as lost (WebSocket only).
    pub dead_after: Duration,
    /// How long it may read nothing while there is something to send.
    pub write_stall: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            max_message: 1 << 20,
            ping_every: Duration::from_secs(15),
            dead_after: Duration::from_secs(45),
            write_stall: Duration::from_secs(30),
        }
    }
}

/// Why a message could not be received or sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LinkError {
    /// The peer sent a message that is longer than we take.
    TooLong(TooLong),
    /// The peer sent bytes that are not text.
    NotText,
    /// The peer broke the rules of its transport.
    Violation(String),
    /// The connection is gone, without a closing handshake.
    Lost(String),
    /// The link was closed before, by us or by the peer.
    Closed,
}

impl fmt::Display for LinkError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong(error) => error.fmt(f),
            Self::NotText => write!(f, "the message is not text"),
            Self::Violation(why) => write!(f, "the peer broke the rules of the transport: {why}"),
            Self::Lost(why) => write!(f, "the connection was lost: {why}"),
            Self::Closed => write!(f, "the connection is closed"),
        }
    }
}

impl std::error::Error for LinkError {}

/// A connection that carries text messages both ways, and who is at its other end.
pub struct Link {
    sender: Sender,
    receiver: Receiver,
    peer: Peer,
}

/// The half that sends.
pub struct Sender {
    half: SendHalf,
    write_stall: Duration,
}

/// The half that receives.
pub struct Receiver(ReceiveHalf);

enum SendHalf {
    Ws(WsSender),
    Framed(FramedSender),
    #[cfg(feature = "grpc")]
    Grpc(GrpcSender),
    Lines(LineSender),
}

enum ReceiveHalf {
    Ws(WsReceiver),
    Framed(FramedReceiver),
    #[cfg(feature = "grpc")]
    Grpc(GrpcReceiver),
    Lines(LineReceiver),
}

impl Link {
    pub(crate) fn ws(
        sender: WsSender,
        receiver: WsReceiver,
        peer: Peer,
        options: &Options,
    ) -> Self {
        Self {
            sender: Sender { half: SendHalf::Ws(sender), write_stall: options.write_stall },
            receiver: Receiver(ReceiveHalf::Ws(receiver)),
            peer,
        }
    }

    #[cfg(feature = "grpc")]
    pub(crate) fn grpc(
        sender: GrpcSender,
        receiver: GrpcReceiver,
        peer: Peer,
        options: &Options,
    ) -> Self {
        Self {
            sender: Sender { half: SendHalf::Grpc(sender), write_stall: options.write_stall },
            receiver: Receiver(ReceiveHalf::Grpc(receiver)),
            peer,
        }
    }

    pub(crate) fn lines(
        sender: LineSender,
        receiver: LineReceiver,
        peer: Peer,
        options: &Options,
    ) -> Self {
        Self {
            sender: Sender { half: SendHalf::Lines(sender), write_stall: options.write_stall },
            receiver: Receiver(ReceiveHalf::Lines(receiver)),
            peer,
        }
    }

    /// A link over a byte stream, each message with its length in front (W1). `peer` is who is at
    /// the other end, as the transport knows it.
    pub fn framed(
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        peer: Peer,
        options: &Options,
    ) -> Self {
        let sender = FramedSender { writer: Some(Box::new(writer)), unsent: BytesMut::new() };
        let receiver = FramedReceiver {
            reader: Some(Box::new(reader)),
            decoder: length::Decoder::new(options.max_message),
        };
        Self {
            sender: Sender { half: SendHalf::Framed(sender), write_stall: options.write_stall },
            receiver: Receiver(ReceiveHalf::Framed(receiver)),
            peer,
        }
    }

    /// Who is at the other end.
    pub fn peer(&self) -> &Peer {
        &self.peer
    }

    /// Two halves, for two tasks. The connection ends when both are dropped.
    pub fn split(self) -> (Sender, Receiver) {
        (self.sender, self.receiver)
    }

    /// See [`Receiver::receive`].
    pub async fn receive(&mut self) -> Result<Option<Text>, LinkError> {
        self.receiver.receive().await
    }

    /// See [`Sender::send`].
    pub async fn send(&mut self, text: impl Into<Text>) -> Result<(), LinkError> {
        self.sender.send(text).await
    }

    /// See [`Sender::close`].
    pub async fn close(&mut self, code: u16, reason: &str) -> Result<(), LinkError> {
        self.sender.close(code, reason).await
    }
}

impl Receiver {
    /// The next message; `None` once the peer has closed the link.
    ///
    /// After an error, ask again: a message that was refused does not end a link that can go on
    /// (D5), and one that cannot says `None`.
    ///
    /// Keep asking even if you expect nothing: that is how pings are sent and answered, and how a
    /// lost peer is noticed (W3). Dropping the future loses nothing.
    // enforces: D5, W3
    pub async fn receive(&mut self) -> Result<Option<Text>, LinkError> {
        match &mut self.0 {
            ReceiveHalf::Ws(half) => poll_fn(|context| half.poll_receive(context)).await,
            ReceiveHalf::Framed(half) => poll_fn(|context| half.poll_receive(context)).await,
            #[cfg(feature = "grpc")]
            ReceiveHalf::Grpc(half) => poll_fn(|context| half.poll_receive(context)).await,
            ReceiveHalf::Lines(half) => poll_fn(|context| half.poll_receive(context)).await,
        }
    }

    /// With which code and reason the peer closed the link, if it gave them (WebSocket and gRPC).
    pub fn close_reason(&self) -> Option<(u16, &str)> {
        match &self.0 {
            ReceiveHalf::Ws(half) => half.close_reason(),
            #[cfg(feature = "grpc")]
            ReceiveHalf::Grpc(half) => half.close_reason(),
            ReceiveHalf::Framed(_) | ReceiveHalf::Lines(_) => None,
        }
    }
}

impl Sender {
    /// Sends a message. Waits while the peer is slow, and gives it up when it reads nothing for
    /// too long (W3, W14).
    ///
    /// A future that is dropped may leave a part of the message unsent; the next call sends it
    /// first, so messages are never cut.
    // enforces: W3
    pub async fn send(&mut self, text: impl Into<Text>) -> Result<(), LinkError> {
        let text = text.into();
        match &mut self.half {
            SendHalf::Ws(half) => stall(self.write_stall, half.send(text)).await,
            SendHalf::Framed(half) => stall(self.write_stall, half.send(&text)).await,
            #[cfg(feature = "grpc")]
            SendHalf::Grpc(half) => stall(self.write_stall, half.send(text)).await,
            SendHalf::Lines(half) => stall(self.write_stall, half.send(&text)).await,
        }
    }

    /// Asks whether the peer is there. [`Receiver::receive`] does so by itself; on a Unix socket
    /// there is nothing to ask.
    pub async fn ping(&mut self) -> Result<(), LinkError> {
        match &mut self.half {
            SendHalf::Ws(half) => stall(self.write_stall, half.ping()).await,
            SendHalf::Framed(_) | SendHalf::Lines(_) => Ok(()),
            // HTTP/2 has pings of its own.
            #[cfg(feature = "grpc")]
            SendHalf::Grpc(_) => Ok(()),
        }
    }

    /// Closes the link. WebSocket tells the peer the code and the reason (see [`crate::ws::close`]);
    /// gRPC puts them into its status; a Unix socket and stdio have no place for them.
    pub async fn close(&mut self, code: u16, reason: &str) -> Result<(), LinkError> {
        match &mut self.half {
            SendHalf::Ws(half) => stall(self.write_stall, half.close(code, reason)).await,
            SendHalf::Framed(half) => stall(self.write_stall, half.close()).await,
            #[cfg(feature = "grpc")]
            SendHalf::Grpc(half) => {
                half.close(code, reason);
                Ok(())
            }
            SendHalf::Lines(half) => {
                half.close();
                Ok(())
            }
        }
    }
}

async fn stall(
    wait: Duration,
    sending: impl Future<Output = Result<(), LinkError>>,
) -> Result<(), LinkError> {
    let reads_nothing = |_| LinkError::Lost("the peer reads nothing".into());
    timeout(wait, sending).await.map_err(reads_nothing)?
}

struct FramedSender {
    writer: Option<Box<dyn AsyncWrite + Send + Unpin>>,
    unsent: BytesMut,
}

impl FramedSender {
    async fn send(&mut self, text: &Text) -> Result<(), LinkError> {
        self.flush().await?;
        length::encode(&mut self.unsent, text.as_bytes()).map_err(LinkError::TooLong)?;
        self.flush().await
    }

    /// What was written leaves the buffer at once, so that a dropped future keeps the frame whole.
    async fn flush(&mut self) -> Result<(), LinkError> {
        let writer = self.writer.as_mut().ok_or(LinkError::Closed)?;
        while !self.unsent.is_empty() {
            match writer.write(&self.unsent).await {
                Ok(0) => return Err(LinkError::Lost("nothing more can be written".into())),
                Ok(written) => self.unsent.advance(written),
                Err(error) => return Err(LinkError::Lost(error.to_string())),
            }
        }
        self.unsent = BytesMut::new(); // a quiet link keeps no buffer
        Ok(())
    }

    async fn close(&mut self) -> Result<(), LinkError> {
        self.flush().await?;
        match self.writer.take() {
            Some(mut writer) => {
                writer.shutdown().await.map_err(|error| LinkError::Lost(error.to_string()))
            }
            None => Ok(()),
        }
    }
}

struct FramedReceiver {
    /// None once nothing more can come.
    reader: Option<Box<dyn AsyncRead + Send + Unpin>>,
    decoder: length::Decoder,
}

impl FramedReceiver {
    fn poll_receive(&mut self, context: &mut Context<'_>) -> Poll<Result<Option<Text>, LinkError>> {
        loop {
            if let Some(message) = self.decoder.next() {
                let message = message.map_err(LinkError::TooLong)?;
                return Poll::Ready(match Text::try_from(message) {
                    Ok(text) => Ok(Some(text)),
                    Err(_) => Err(LinkError::NotText),
                });
            }
            let Some(reader) = &mut self.reader else { return Poll::Ready(Ok(None)) };
            // On the stack: a link that waits holds no buffer.
            let mut space = [0; 8 * 1024];
            let mut chunk = ReadBuf::new(&mut space);
            let read = std::task::ready!(Pin::new(reader).poll_read(context, &mut chunk));
            if let Some(end) = self.end_of(read, chunk.filled()) {
                self.reader = None;
                return Poll::Ready(end);
            }
            self.decoder.push(chunk.filled());
        }
    }

    fn end_of(
        &self,
        read: std::io::Result<()>,
        chunk: &[u8],
    ) -> Option<Result<Option<Text>, LinkError>> {
        match read {
            Err(error) => Some(Err(LinkError::Lost(error.to_string()))),
            Ok(()) if !chunk.is_empty() => None,
            Ok(()) if self.decoder.is_in_message() => {
                Some(Err(LinkError::Lost("it ended in the middle of a message".into())))
            }
            Ok(()) => Some(Ok(None)),
        }
    }
}
