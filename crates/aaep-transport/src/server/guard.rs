//! A connection with its deadlines and its place.
//!
//! hyper has one deadline for the head of a request, and it runs while a connection waits between
//! two requests as well. We want to be short with the one and patient with the other, and we want
//! a client that reads nothing to end. So the deadlines are kept here, below hyper; what hyper is
//! doing at the moment comes from the service and from the response's body ([`Stage`]).

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use futures_util::task::AtomicWaker;
use http_body::{Body, Frame, SizeHint};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::{Instant, Sleep, sleep};

use super::limits::{Limits, Slot};
use crate::alarm::Alarm;
use crate::stream::Stream;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum Stage {
    /// Connected; the first request has not come in full.
    First = 0,
    /// Between two requests.
    Idle = 1,
    /// A head has begun.
    Head = 2,
    /// A request is being answered, or the connection was taken over: others keep the time.
    Busy = 3,
    /// The head of a long answer is written, and its body waits to be written (see [`super::chunked`]).
    Long = 4,
}

/// Stages that a stamp can tell apart.
const STAGES: u64 = 8;

/// The present stage, shared by connection, service and body. Every change counts, so that a timer
/// set for one head is not taken for that of the next.
#[derive(Default)]
pub(crate) struct Progress {
    stamp: AtomicU64,
    /// The task that waits for the next request.
    reader: AtomicWaker,
    /// The connection, once hyper has flushed the head of a long answer.
    handed: Mutex<Option<Box<Guarded>>>,
    /// Its place was given to another.
    evicted: AtomicBool,
    told: Notify,
}

impl Progress {
    pub(crate) fn enter(&self, stage: Stage) {
        let changes = self.stamp() / STAGES + 1;
        self.stamp.store(changes * STAGES + stage as u64, Ordering::Relaxed);
    }

    /// Whether nothing is being answered, so that the slot can be given to a new connection.
    pub(crate) fn is_quiet(&self) -> bool {
        matches!(self.stage(), Stage::First | Stage::Idle | Stage::Head)
    }

    /// Gives its place to another.
    pub(crate) fn evict(&self) {
        self.evicted.store(true, Ordering::Release);
        self.told.notify_one();
    }

    #[cfg(test)]
    pub(crate) fn is_evicted(&self) -> bool {
        self.evicted.load(Ordering::Acquire)
    }

    /// Returns when its place was given to another.
    pub(crate) async fn gave_way(&self) {
        while !self.evicted.load(Ordering::Acquire) {
            self.told.notified().await;
        }
    }

    fn stamp(&self) -> u64 {
        self.stamp.load(Ordering::Relaxed)
    }

    fn stage(&self) -> Stage {
        match self.stamp() % STAGES {
            0 => Stage::First,
            1 => Stage::Idle,
            2 => Stage::Head,
            3 => Stage::Busy,
            _ => Stage::Long,
        }
    }

    /// The connection, if hyper is to let go of it.
    pub(crate) fn handed(&self) -> Option<Box<Guarded>> {
        if self.stage() != Stage::Long {
            return None;
        }
        let handed = self.handed.lock().unwrap_or_else(PoisonError::into_inner).take()?;
        self.enter(Stage::Busy);
        Some(handed)
    }
}

/// The connection that hyper is given.
pub(crate) struct Guarded {
    /// None once the connection was handed over.
    stream: Option<Stream>,
    progress: Arc<Progress>,
    header_read: Duration,
    idle: Duration,
    write_stall: Duration,
    /// Set for this stamp of the progress.
    read_timer: Option<(u64, Alarm)>,
    write_timer: Option<Pin<Box<Sleep>>>,
    slot: Option<Slot>,
}

impl Guarded {
    pub(crate) fn new(
        stream: Stream,
        limits: &Limits,
        progress: Arc<Progress>,
        slot: Option<Slot>,
    ) -> Self {
        Self {
            stream: Some(stream),
            progress,
            header_read: limits.header_read,
            idle: limits.idle,
            write_stall: limits.write_stall,
            read_timer: None,
            write_timer: None,
            slot,
        }
    }

    fn stream(&mut self) -> io::Result<Pin<&mut Stream>> {
        self.stream.as_mut().map(Pin::new).ok_or_else(|| io::ErrorKind::NotConnected.into())
    }

    /// Hands the connection over, and leaves hyper with nothing.
    fn hand_over(&mut self) {
        let handed = Self {
            stream: self.stream.take(),
            progress: Arc::clone(&self.progress),
            read_timer: None,
            write_timer: None,
            slot: self.slot.take(),
            ..*self
        };
        let mut place = self.progress.handed.lock().unwrap_or_else(PoisonError::into_inner);
        *place = Some(Box::new(handed));
    }

    /// Nothing came. Is it time to give up?
    fn poll_read_timer(&mut self, context: &mut Context<'_>) -> Poll<io::Error> {
        let wait = match self.progress.stage() {
            Stage::Busy | Stage::Long => {
                self.progress.reader.register(context.waker());
                return Poll::Pending;
            }
            Stage::Idle => self.idle,
            Stage::First | Stage::Head => self.header_read,
        };
        let stamp = self.progress.stamp();
        let (set_for, alarm) =
            self.read_timer.get_or_insert_with(|| (stamp, Alarm::at(Instant::now() + wait)));
        if *set_for != stamp {
            *set_for = stamp;
            alarm.set(Instant::now() + wait);
        }
        ready!(alarm.poll(context));
        Poll::Ready(io::Error::new(io::ErrorKind::TimedOut, "no request came in time"))
    }

    /// Passes a write's result on, unless nothing has moved for too long (W3, W14).
    // enforces: W3
    fn watch_write<T>(
        &mut self,
        context: &mut Context<'_>,
        written: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.write_timer = None;
            return written;
        }
        let wait = self.write_stall;
        let timer = self.write_timer.get_or_insert_with(|| Box::pin(sleep(wait)));
        ready!(timer.as_mut().poll(context));
        Poll::Ready(Err(io::Error::new(io::ErrorKind::TimedOut, "the client reads nothing")))
    }
}

impl AsyncRead for Guarded {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        match this.stream()?.poll_read(context, buffer) {
            Poll::Ready(result) => {
                if buffer.filled().len() > before && this.progress.stage() == Stage::Idle {
                    this.progress.enter(Stage::Head);
                }
                Poll::Ready(result)
            }
            Poll::Pending => this.poll_read_timer(context).map(Err),
        }
    }
}

impl AsyncWrite for Guarded {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.stream()?.poll_write(context, bytes);
        this.watch_write(context, written)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        slices: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let written = this.stream()?.poll_write_vectored(context, slices);
        this.watch_write(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.as_ref().is_some_and(|stream| stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = this.stream()?.poll_flush(context);
        let flushed = this.watch_write(context, flushed);
        // hyper flushes when it has written all it had.
        if matches!(flushed, Poll::Ready(Ok(()))) {
            match this.progress.stage() {
                // The head is out.
                Stage::Long => this.hand_over(),
                // The answer is out. hyper looked ahead for the next request while it was busy, and does
                // not look again by itself: nobody else would set the timer.
                Stage::Idle => {
                    if let Poll::Ready(error) = this.poll_read_timer(context) {
                        return Poll::Ready(Err(error));
                    }
                }
                _ => {}
            }
        }
        flushed
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let closed = this.stream()?.poll_shutdown(context);
        this.watch_write(context, closed)
    }
}

/// The body of a long answer on its way from hyper to [`super::chunked`].
pub(crate) type Way<B> = Arc<Mutex<Option<Pin<Box<B>>>>>;

/// A response's body that says when it is over, whichever way: when it has given its last frame
/// (hyper looks for the next request before it drops the body), or when it is dropped.
pub(crate) struct Watched<B> {
    /// None once it has left on its way.
    body: Option<Pin<Box<B>>>,
    /// None once it is over, and if the connection is taken over: then nobody waits for another
    /// request.
    progress: Option<Arc<Progress>>,
    /// Where a long body goes when hyper asks for it.
    way: Option<Way<B>>,
}

impl<B: Body> Watched<B> {
    pub(crate) fn new(body: B, progress: Option<Arc<Progress>>, way: Option<Way<B>>) -> Self {
        let over = body.is_end_stream();
        let mut watched = Self { body: Some(Box::pin(body)), progress, way };
        if over {
            watched.over();
        }
        watched
    }
}

impl<B> Watched<B> {
    fn over(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.enter(Stage::Idle);
        }
    }

    /// hyper asks for the first frame: the head is in its buffer, and nothing is behind it.
    fn leave(&mut self, way: &Way<B>) {
        *way.lock().unwrap_or_else(PoisonError::into_inner) = self.body.take();
        if let Some(progress) = self.progress.take() {
            progress.enter(Stage::Long);
        }
    }
}

impl<B: Body<Data = Bytes>> Body for Watched<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        if let Some(way) = this.way.take() {
            this.leave(&way);
        }
        let Some(body) = &mut this.body else { return Poll::Pending };
        let frame = ready!(body.as_mut().poll_frame(context));
        if frame.is_none() || body.is_end_stream() {
            this.over();
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_some_and(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(SizeHint::default, |body| body.size_hint())
    }
}

impl<B> Drop for Watched<B> {
    fn drop(&mut self) {
        if let Some(progress) = self.progress.take() {
            progress.enter(Stage::Idle);
            // Perhaps all was flushed by then, and nobody has set the timer.
            progress.reader.wake();
        }
    }
}
