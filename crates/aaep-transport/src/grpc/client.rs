//! The client half of gRPC.

use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use futures_util::StreamExt as _;
use http::header::AUTHORIZATION;
use http::{HeaderValue, Request, Response, Uri};
use hyper::body::Incoming;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::metadata::MetadataValue;
use tonic::{Code, Status, Streaming};
use tower_service::Service;

use super::wire::aaep_service_client::AaepServiceClient;
use super::wire::{AaepMessage, GetManifestRequest, ListenRequest};
use super::{GrpcReceiver, GrpcSender, HANDSHAKE, NO_HANDSHAKE, Sent, WAITING, WRAPPING};
use super::{status, wrapped};
use crate::TooLong;
use crate::client::{self, ClientError};
use crate::dial::Dialer;
use crate::link::{Link, Options};
use crate::peer::Peer;

/// Opens a conversation both ways with a `grpc://` or `grpcs://` address. Without `negotiated` there is
/// no handshake, and events follow at once.
// enforces: W11
pub async fn connect(
    url: &str,
    negotiated: bool,
    client: &client::Options,
    options: Options,
) -> Result<Link, ClientError> {
    let options_of = client::Options {
        max_message: options.max_message,
        silence: options.dead_after,
        ..client.clone()
    };
    GrpcClient::connect(url, options_of).await?.subscribe(negotiated, &options).await
}

/// A connection over which calls are made.
pub struct GrpcClient {
    calls: AaepServiceClient<Channel>,
    options: client::Options,
    peer: Peer,
}

impl GrpcClient {
    /// Connects to a `grpc://` or `grpcs://` address.
    // enforces: W5
    pub async fn connect(url: &str, options: client::Options) -> Result<Self, ClientError> {
        let uri: Uri = url.parse().map_err(|_| ClientError::Address(url.to_owned()))?;
        let dialer = Dialer::new(&uri, "grpc", "grpcs", options.clone())?.over_http2();
        let scheme = if uri.scheme_str() == Some("grpcs") { "https" } else { "http" };
        let authority = uri.authority().map_or("", |authority| authority.as_str());
        let origin = Uri::builder().scheme(scheme).authority(authority).path_and_query("/").build();
        let origin = origin.map_err(|error| ClientError::Address(error.to_string()))?;
        let (stream, peer) = dialer.connect().await?;
        let shaking = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .keep_alive_interval(options.silence / 3)
            .keep_alive_timeout(options.silence / 3)
            .keep_alive_while_idle(true)
            .handshake(TokioIo::new(stream));
        let shaken = timeout(options.answer, shaking).await.map_err(|_| ClientError::TooSlow)?;
        let (sender, connection) = shaken.map_err(|e| ClientError::Broken(e.to_string()))?;
        // It ends by itself once nobody calls and every call is over.
        tokio::spawn(async move {
            let _ = connection.await;
        });
        let token = options.token.as_ref().map(client::Token::header);
        let calls = AaepServiceClient::with_origin(Channel { sender, token }, origin)
            .max_decoding_message_size(options.max_message + WRAPPING);
        Ok(Self { calls, options, peer })
    }

    /// Sends the handshake, and gives its answer.
    pub async fn open(&mut self, request: impl Into<Bytes>) -> Result<Bytes, ClientError> {
        let call = self.calls.open(wrapped(request));
        self.options.answer(call).await.map(|answer| answer.json)
    }

    /// Sends a reply or another message; what is answered is empty where nothing is.
    pub async fn reply(&mut self, message: impl Into<Bytes>) -> Result<Bytes, ClientError> {
        let call = self.calls.reply(wrapped(message));
        self.options.answer(call).await.map(|answer| answer.json)
    }

    /// The producer manifest.
    pub async fn manifest(&mut self) -> Result<Bytes, ClientError> {
        let call = self.calls.get_manifest(GetManifestRequest {});
        self.options.answer(call).await.map(|answer| answer.json)
    }

    /// The events of a subscription, after the one that was heard last; without a subscription, those of
    /// a stream without a handshake.
    pub async fn listen(
        &mut self,
        subscription: Option<&str>,
        last_event: Option<&str>,
    ) -> Result<Messages, ClientError> {
        let call = self.calls.listen(ListenRequest {
            subscription_id: subscription.unwrap_or_default().to_owned(),
            last_event_id: last_event.unwrap_or_default().to_owned(),
        });
        let received = self.options.answer(call).await?;
        Ok(Messages { received, max: self.options.max_message })
    }

    /// A conversation both ways.
    pub async fn subscribe(
        mut self,
        negotiated: bool,
        options: &Options,
    ) -> Result<Link, ClientError> {
        let (to, from) = mpsc::channel(WAITING);
        let sent = Sent(from).take_while(|sent| std::future::ready(sent.is_ok()));
        let sent = sent.map(|sent| sent.unwrap_or_default());
        let mut request = tonic::Request::new(sent);
        if !negotiated {
            let none = MetadataValue::from_static(NO_HANDSHAKE);
            request.metadata_mut().insert(HANDSHAKE, none);
        }
        let received = self.options.answer(self.calls.subscribe(request)).await?;
        let receiver = GrpcReceiver::new(received, options.max_message);
        Ok(Link::grpc(GrpcSender { to: Some(to) }, receiver, self.peer, options))
    }
}

impl client::Options {
    /// Waits for an answer no longer than these options say.
    async fn answer<T>(
        &self,
        call: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        match timeout(self.answer, call).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(said(&status, self.max_message)),
            Err(_) => Err(ClientError::TooSlow),
        }
    }
}

fn said(status: &Status, max: usize) -> ClientError {
    match status.code() {
        Code::OutOfRange => ClientError::TooLong(TooLong { max }),
        Code::Unknown | Code::Cancelled | Code::Internal => {
            ClientError::Broken(status.message().to_owned())
        }
        code => ClientError::refused(status::http_of(code), status.message().as_bytes()),
    }
}

/// The messages of one call of `Listen`.
pub struct Messages {
    received: Streaming<AaepMessage>,
    max: usize,
}

impl Messages {
    /// The next message; `None` once the hub has ended the call.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        match self.received.message().await {
            Ok(message) => Ok(message.map(|message| message.json)),
            Err(status) => Err(said(&status, self.max)),
        }
    }
}

/// One connection, as tonic sees it.
#[derive(Clone)]
struct Channel {
    sender: http2::SendRequest<Body>,
    token: Option<HeaderValue>,
}

impl Service<Request<Body>> for Channel {
    type Response = Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Incoming>, hyper::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.sender.poll_ready(context)
    }

    fn call(&mut self, mut request: Request<Body>) -> Self::Future {
        if let Some(token) = &self.token {
            request.headers_mut().insert(AUTHORIZATION, token.clone());
        }
        Box::pin(self.sender.send_request(request))
    }
}
