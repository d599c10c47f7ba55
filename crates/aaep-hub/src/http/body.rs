//! Bodies of responses: whole, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use aaep_transport::sse;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::{Instant, Sleep, sleep};

use crate::outbox::Hearing;

/// How often a stream with nothing to say says that it is there; well under the 30 seconds after
/// which published clients give up.
pub(crate) const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// What a response carries.
pub(crate) enum Body {
    Whole(Option<Bytes>),
    Events(Events),
}

impl Body {
    pub(crate) fn empty() -> Self {
        Self::Whole(None)
    }

    pub(crate) fn whole(bytes: impl Into<Bytes>) -> Self {
        Self::Whole(Some(bytes.into()).filter(|bytes: &Bytes| !bytes.is_empty()))
    }

    pub(crate) fn events(hearing: Hearing) -> Self {
        Self::Events(Events { hearing, keep_alive: Box::pin(sleep(KEEP_ALIVE)) })
    }
}

/// A stream of events for one connection.
pub(crate) struct Events {
    hearing: Hearing,
    keep_alive: Pin<Box<Sleep>>,
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Events(events) => events.poll(context).map(|chunk| Some(Ok(Frame::data(chunk?)))),
        }
    }

    fn is_end_stream(&self) -> bool {
        matches!(self, Self::Whole(None))
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |bytes| bytes.len() as u64))
            }
            Self::Events(_) => SizeHint::default(),
        }
    }
}

impl Events {
    /// The next chunk; `None` at the end.
    fn poll(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        match self.hearing.outbox.poll_chunk(context) {
            Poll::Ready(Ok(chunk)) => {
                self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
                Poll::Ready(Some(chunk))
            }
            Poll::Ready(Err(_)) => Poll::Ready(None),
            Poll::Pending => {
                if self.keep_alive.as_mut().poll(context).is_pending() {
                    return Poll::Pending;
                }
                self.keep_alive.as_mut().reset(Instant::now() + KEEP_ALIVE);
                // Polled once more, so that the timer wakes us.
                let _ = self.keep_alive.as_mut().poll(context);
                Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE.as_bytes())))
            }
        }
    }
}
