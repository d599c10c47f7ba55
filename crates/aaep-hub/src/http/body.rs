//! Bodies of responses: whole, or a stream of events.

use std::convert::Infallible;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use aaep_transport::alarm::Alarm;
use aaep_transport::sse;
use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio::time::Instant;

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

    /// The bytes of a whole body; a stream has none.
    pub(crate) fn into_whole(self) -> Bytes {
        match self {
            Self::Whole(bytes) => bytes.unwrap_or_default(),
            Self::Events(_) => Bytes::new(),
        }
    }

    pub(crate) fn events(hearing: Hearing) -> Self {
        Self::Events(Events {
            hearing,
            linger: Linger::default(),
            keep_alive: Alarm::at(Instant::now() + KEEP_ALIVE),
        })
    }
}

/// Less than this is worth waiting for one turn of the others, in the hope of more: a write costs as
/// much as a few frames.
const LITTLE_BYTES: usize = 16 * 1024;

/// Chunks that are written at once after waiting has not paid.
const HASTE: u8 = 15;

/// Whether to let others have their turn before a chunk is written.
#[derive(Default)]
pub(super) struct Linger {
    /// Bytes that waited when it began to linger.
    since: Option<usize>,
    /// Chunks to be written at once.
    haste: u8,
}

impl Linger {
    /// True once for a chunk, at most.
    pub(super) fn pays(&mut self, waiting: usize) -> bool {
        if waiting == 0 {
            return false;
        }
        if let Some(before) = self.since.take() {
            self.haste = if waiting > before { 0 } else { HASTE };
            return false;
        }
        if self.haste > 0 || waiting >= LITTLE_BYTES {
            self.haste = self.haste.saturating_sub(1);
            return false;
        }
        self.since = Some(waiting);
        true
    }
}

/// A stream of events for one connection.
pub(crate) struct Events {
    hearing: Hearing,
    linger: Linger,
    keep_alive: Alarm,
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
        if self.linger.pays(self.hearing.outbox.waiting()) {
            context.waker().wake_by_ref();
            return Poll::Pending;
        }
        match self.hearing.outbox.poll_chunk(context) {
            Poll::Ready(Ok(chunk)) => {
                self.keep_alive.set(Instant::now() + KEEP_ALIVE);
                Poll::Ready(Some(chunk))
            }
            Poll::Ready(Err(_)) => Poll::Ready(None),
            Poll::Pending => {
                ready!(self.keep_alive.poll(context));
                self.keep_alive.set(Instant::now() + KEEP_ALIVE);
                Poll::Ready(Some(Bytes::from_static(sse::KEEP_ALIVE.as_bytes())))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lingering_goes_on_while_it_pays_and_is_tried_again_now_and_then() {
        let mut linger = Linger::default();
        assert!(!linger.pays(0));
        for _ in 0..5 {
            assert!(linger.pays(100));
            assert!(!linger.pays(200));
        }
        assert!(linger.pays(100));
        assert!(!linger.pays(100), "a chunk waits once, at most");
        for _ in 0..HASTE {
            assert!(!linger.pays(100));
        }
        assert!(linger.pays(100));
        assert!(!linger.pays(LITTLE_BYTES));
        assert!(!linger.pays(LITTLE_BYTES));
    }
}
