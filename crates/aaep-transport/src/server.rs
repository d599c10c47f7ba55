//! The server half of HTTP: accepts connections, drives HTTP/1.1 on each, and hands every request
//! to a service with its [`Peer`] in the extensions.
//!
//! What is answered, and to whom, is the service's business. An axum `Router` is such a service.
//!
//! Memory per connection counts: a hub holds thousands of streams that are silent most of the time.
//! That is why hyper's HTTP/1.1 is driven directly, with small buffers.

mod chunked;
mod early;
mod guard;
#[cfg(feature = "grpc")]
mod http2;
mod limits;
mod repoll;

use std::convert::Infallible;
use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, EXPECT, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::pki_types::CertificateDer;
use tower_service::Service;
use tracing::{debug, warn};

use crate::peer::Peer;
use crate::stream::{self, Stream};
use crate::tls::ServerConfig;
use chunked::LongAnswer;
use guard::{Guarded, Progress, Stage, Watched, Way};
use limits::{Slot, Slots};
use repoll::Repoll;

pub use crate::body::{BodyError, discard_body, read_body};
pub use chunked::Long;
pub use early::RequestBody;
pub use limits::Limits;

/// Bytes of a request's head, and of what hyper holds back of a response, at most. hyper takes no
/// less than 8 KiB, and does begin with that.
pub const MAX_HEAD: usize = 16 * 1024;

/// The least and the longest pause after `accept` has failed, say for want of file descriptors.
const ACCEPT_PAUSE: (Duration, Duration) = (Duration::from_millis(20), Duration::from_secs(1));

/// What a body's error must be able to become.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Listens on a TCP address, plain or with TLS.
pub struct Server {
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    limits: Limits,
}

impl Server {
    /// A plain server on this listener, with the default limits.
    pub fn new(listener: TcpListener) -> Self {
        Self { listener, tls: None, limits: Limits::default() }
    }

    /// A plain server on this address, with the default limits.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        TcpListener::bind(address).await.map(Self::new)
    }

    /// The same server, behind TLS (see [`crate::tls::server`]).
    #[must_use]
    pub fn with_tls(mut self, config: Arc<ServerConfig>) -> Self {
        self.tls = Some(TlsAcceptor::from(config));
        self
    }

    /// The same server with other limits.
    #[must_use]
    pub fn with_limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Where it listens.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `stop` completes. Then no new connection is accepted, idle ones end, and running
    /// requests have the grace time of the limits; what still runs after that is dropped.
    ///
    /// An upgraded connection (a WebSocket) belongs to the code that took it over: it is waited for
    /// within the grace time as well, and left alone afterwards.
    ///
    /// Dropping a response's body is how a service learns that its client has gone (W3, H20).
    // enforces: W3
    pub async fn serve<S, B>(self, service: S, stop: impl Future<Output = ()>)
    where
        S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let drive = move |stream, limits, place, peer, stopped| {
            answer_requests(stream, limits, place, peer, service.clone(), stopped)
        };
        self.accept(stop, drive).await;
    }

    /// Accepts connections, and drives each to its end, or until only a long answer is left of it.
    async fn accept<D, F, L>(self, stop: impl Future<Output = ()>, drive: D)
    where
        D: Fn(Stream, Limits, Seat, Peer, watch::Receiver<()>) -> F + Clone + Send + 'static,
        F: Future<Output = Option<L>> + Send + 'static,
        L: Future<Output = io::Result<()>> + Send + 'static,
    {
        let Self { listener, tls, limits } = self;
        let slots = Slots::new(limits);
        let (stopping, stopped) = watch::channel(());
        let mut connections = JoinSet::new();
        let mut pause = ACCEPT_PAUSE.0;
        let mut stop = pin!(stop);
        loop {
            let accepted = tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                accepted = listener.accept() => accepted,
            };
            match accepted {
                Ok((stream, address)) => {
                    pause = ACCEPT_PAUSE.0;
                    let progress = Arc::<Progress>::default();
                    let admitted = admit(&slots, &stream, address, tls.is_some(), &progress);
                    let Some(slot) = admitted else { continue };
                    let peer = Peer::tcp(address, tls.is_some());
                    let (tls, drive, stopped) = (tls.clone(), drive.clone(), stopped.clone());
                    let requests = Box::pin(async move {
                        let secured = tokio::select! {
                            secured = secure(stream, tls, limits.tls_handshake) => secured,
                            () = progress.gave_way() => None,
                        };
                        let (stream, certificates) = secured?;
                        let peer = match certificates {
                            Some(certificates) => peer.with_certificates(certificates),
                            None => peer,
                        };
                        let place = (Some(slot), progress);
                        drive(stream, limits, place, peer, stopped).await
                    });
                    connections.spawn(serve_to_end(requests));
                }
                Err(error) if is_of_one_connection(&error) => {}
                Err(error) => {
                    warn!(%error, "cannot accept connections; trying again");
                    tokio::select! {
                        () = &mut stop => break,
                        () = sleep(pause) => pause = (pause * 2).min(ACCEPT_PAUSE.1),
                    }
                }
            }
        }
        drop(listener);
        let _ = stopping.send(());
        if timeout(limits.grace, slots.all_free()).await.is_err() {
            warn!("the grace time is over; dropping what still runs");
        }
        connections.shutdown().await;
    }
}

/// Serves HTTP on one connection that the caller accepted, to its end. When `stop` completes, a
/// running request has the grace time of the limits.
pub async fn serve_connection<S, B>(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    peer: Peer,
    limits: &Limits,
    service: S,
    stop: impl Future<Output = ()>,
) where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let (stopping, stopped) = watch::channel(());
    let (grace, limits) = (limits.grace, *limits);
    let place = (None, Arc::default());
    let requests = answer_requests(Box::new(stream), limits, place, peer, service, stopped);
    let mut serving = pin!(serve_to_end(Box::pin(requests)));
    tokio::select! {
        () = &mut serving => return,
        () = stop => {}
    }
    let _ = stopping.send(());
    let _ = timeout(grace, serving).await;
}

/// Serves one connection to its end: what becomes of its requests, and the long answer that may be left
/// of it. The first is several kilobytes, so it lies apart and is gone while the second lasts.
async fn serve_to_end<L>(requests: Pin<Box<impl Future<Output = Option<L>>>>)
where
    L: Future<Output = io::Result<()>>,
{
    let Some(answer) = requests.await else { return };
    if let Err(error) = answer.await {
        debug!(%error, "a stream ended with an error");
    }
}

/// The answer to a connection for which there is no place. `limit` is the bound's name.
fn full(limit: &str) -> String {
    let text = format!(
        r#"{{"error":"limit","text":"There is no room for another connection (limits.{limit}). Close some, or try again later."}}"#
    );
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\nretry-after: 5\r\nconnection: close\r\n\r\n{text}",
        text.len()
    )
}

/// A place for the connection; if there is none, it is told so and dropped.
fn admit(
    slots: &Arc<Slots>,
    stream: &TcpStream,
    address: SocketAddr,
    tls: bool,
    progress: &Arc<Progress>,
) -> Option<Slot> {
    match slots.take(address.ip(), progress) {
        Ok(slot) => Some(slot),
        Err(limit) => {
            // At this level only: a flood of connections would flood the log as well.
            debug!(%address, limit, "a connection was refused: the limit is reached");
            if !tls {
                let _ = stream.try_write(full(limit).as_bytes());
            }
            None
        }
    }
}

/// Errors of `accept` that concern the one connection that was to be accepted.
fn is_of_one_connection(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// The connection, behind TLS if it should be, and the certificates that the other end has shown.
async fn secure(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    wait: Duration,
) -> Option<(Stream, Option<Vec<CertificateDer<'static>>>)> {
    if let Err(error) = stream::tune(&stream) {
        debug!(%error, "a connection ended at once");
        return None;
    }
    let Some(tls) = tls else { return Some((Box::new(stream), None)) };
    match timeout(wait, tls.accept(stream)).await {
        Ok(Ok(stream)) => {
            let shown = stream.get_ref().1.peer_certificates();
            let shown =
                shown.map(|shown| shown.iter().map(|one| one.clone().into_owned()).collect());
            Some((Box::new(stream), shown))
        }
        Ok(Err(error)) => {
            debug!(%error, "a TLS handshake failed");
            None
        }
        Err(_) => {
            debug!("a TLS handshake took too long");
            None
        }
    }
}

/// The place of a connection, and what it does.
type Seat = (Option<Slot>, Arc<Progress>);

/// Answers the requests of one connection: to its end, or until a long answer is all that is left.
async fn answer_requests<S, B>(
    stream: Stream,
    limits: Limits,
    (slot, progress): Seat,
    peer: Peer,
    service: S,
    mut stopped: watch::Receiver<()>,
) -> Option<LongAnswer<B>>
where
    S: Service<Request<RequestBody>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let way = Way::<B>::default();
    let io = TokioIo::new(Guarded::new(stream, &limits, Arc::clone(&progress), slot));
    let (here, long) = (Arc::clone(&progress), Arc::clone(&way));
    let answer = service_fn(move |request: Request<Incoming>| {
        here.enter(Stage::Busy);
        let mut request = prefetch_body(request);
        request.extensions_mut().insert(peer.clone());
        // Older clients know no chunks, and HEAD has no body: hyper answers them to the end.
        let may_be_long = request.version() == Version::HTTP_11 && request.method() == Method::GET;
        let (mut service, progress) = (service.clone(), Arc::clone(&here));
        let way = may_be_long.then(|| Arc::clone(&long));
        async move {
            poll_fn(|context| service.poll_ready(context)).await?;
            let mut response = service.call(request).await?;
            let taken_over = response.status() == StatusCode::SWITCHING_PROTOCOLS;
            let progress = (!taken_over).then_some(progress);
            let way = way.filter(|_| response.extensions().get::<Long>().is_some());
            if way.is_some() {
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(response.map(|body| Watched::new(body, progress, way)))
        }
    });
    let ended = {
        let connection = http1::Builder::new()
            .header_read_timeout(None) // kept by `Guarded`
            .max_buf_size(MAX_HEAD)
            .serve_connection(io, answer)
            .with_upgrades();
        let mut connection = pin!(connection);
        let repoll = Repoll::new();
        tokio::select! {
            ended = until_handed(connection.as_mut(), &repoll, &progress) => ended,
            () = progress.gave_way() => return None,
            _ = stopped.changed() => {
                connection.as_mut().graceful_shutdown();
                until_handed(connection.as_mut(), &repoll, &progress).await
            }
        }
    };
    let body = way.lock().unwrap_or_else(PoisonError::into_inner).take();
    match (ended, body) {
        (Ok(Some(stream)), Some(body)) => Some(LongAnswer::new(*stream, body)),
        (Err(error), _) => {
            debug!(%error, "a connection ended with an error");
            None
        }
        (Ok(_), _) => None,
    }
}

/// Tells hyper that the body is wanted, before the service asks for it: hyper reads it at once then, if
/// it has come, and the service finds it there. Otherwise it would have to wait, and set a timer.
fn prefetch_body(request: Request<Incoming>) -> Request<RequestBody> {
    // `100 Continue` is sent when the body is really read.
    let later = request.headers().contains_key(EXPECT) || request.body().is_end_stream();
    let mut request = request.map(RequestBody::new);
    if !later {
        request.body_mut().want();
    }
    request
}

/// Drives hyper to the end of the connection, or until it hands the connection over.
async fn until_handed<C>(
    mut connection: Pin<&mut C>,
    repoll: &Repoll,
    progress: &Progress,
) -> Result<Option<Box<Guarded>>, hyper::Error>
where
    C: Future<Output = Result<(), hyper::Error>>,
{
    let mut poll = |context: &mut Context<'_>| match connection.as_mut().poll(context) {
        Poll::Ready(ended) => Poll::Ready(ended.map(|()| None)),
        Poll::Pending => match progress.handed() {
            Some(stream) => Poll::Ready(Ok(Some(stream))),
            None => Poll::Pending,
        },
    };
    poll_fn(|context| repoll.poll(context, &mut poll)).await
}
