//! HTTP/2, for gRPC alone: many calls on one connection.

use std::convert::Infallible;
use std::future::Ready;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::sync::{Notify, watch};
use tokio::time::sleep;
use tower_service::Service;
use tracing::debug;

use super::guard::{Guarded, Stage};
use super::limits::Limits;
use super::{BoxError, MAX_HEAD, Seat, Server};
use crate::peer::Peer;
use crate::stream::Stream;

/// Calls on one connection at once, at most.
const CALLS: u32 = 64;

/// Bytes that wait for one stream inside HTTP/2; what more waits is the hub's to merge.
const SEND_BUFFER: usize = 64 * 1024;

impl Server {
    /// Like [`serve`](Self::serve), for HTTP/2 alone. With TLS, the configuration has to agree on it
    /// (see [`crate::tls::for_http2`]).
    // enforces: W11, W3
    pub async fn serve_http2<S, B>(self, service: S, stop: impl Future<Output = ()>)
    where
        S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
        S: Clone + Send + Sync + 'static,
        S::Future: Send,
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let drive = move |stream, limits, place, peer, stopped| {
            let service = service.clone();
            async move {
                drive(stream, limits, place, peer, service, stopped).await;
                // HTTP/2 carries its long answers itself.
                None::<Ready<io::Result<()>>>
            }
        };
        self.accept(stop, drive).await;
    }
}

async fn drive<S, B>(
    stream: Stream,
    limits: Limits,
    (slot, progress): Seat,
    peer: Peer,
    service: S,
    mut stopped: watch::Receiver<()>,
) where
    S: Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let io = TokioIo::new(Guarded::new(stream, &limits, Arc::clone(&progress), slot));
    let calls = Arc::<Calls>::default();
    let (here, counted) = (Arc::clone(&progress), Arc::clone(&calls));
    let answer = service_fn(move |mut request: Request<Incoming>| {
        // From now on the pings and `quiet` keep the time.
        here.enter(Stage::Busy);
        let running = Running::begin(&counted);
        request.extensions_mut().insert(peer.clone());
        let mut service = service.clone();
        async move {
            std::future::poll_fn(|context| service.poll_ready(context)).await?;
            let response = service.call(request).await?;
            Ok::<_, Infallible>(
                response.map(|body| Counted { body: Box::pin(body), _running: running }),
            )
        }
    });
    let patience = limits.write_stall / 2;
    let connection = http2::Builder::new(TokioExecutor::new())
        .timer(TokioTimer::new())
        .keep_alive_interval(patience)
        .keep_alive_timeout(patience)
        .max_concurrent_streams(CALLS)
        .max_header_list_size(MAX_HEAD as u32)
        .max_send_buf_size(SEND_BUFFER)
        .serve_connection(io, answer);
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = &mut connection => ended,
        () = progress.gave_way() => return,
        () = calls.quiet(limits.idle) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
        _ = stopped.changed() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended with an error");
    }
}

/// How many calls run on one connection.
#[derive(Default)]
struct Calls {
    running: AtomicUsize,
    changed: Notify,
}

impl Calls {
    /// Returns once nothing has run for so long. Before the first call, [`Guarded`] keeps the time.
    async fn quiet(&self, wait: Duration) {
        loop {
            let mut changed = pin!(self.changed.notified());
            changed.as_mut().enable();
            if self.running.load(Ordering::Acquire) > 0 {
                changed.await;
                continue;
            }
            tokio::select! {
                () = sleep(wait) => return,
                () = changed => {}
            }
        }
    }
}

/// One call that runs, until its answer was sent or dropped.
struct Running(Arc<Calls>);

impl Running {
    fn begin(calls: &Arc<Calls>) -> Self {
        calls.running.fetch_add(1, Ordering::AcqRel);
        calls.changed.notify_waiters();
        Self(Arc::clone(calls))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.0.running.fetch_sub(1, Ordering::AcqRel);
        self.0.changed.notify_waiters();
    }
}

/// The body of an answer, whose call ends with it.
struct Counted<B> {
    body: Pin<Box<B>>,
    _running: Running,
}

impl<B: Body<Data = Bytes>> Body for Counted<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        self.body.as_mut().poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
