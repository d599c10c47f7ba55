//! A request's body that may have been asked for before its reader was there.

use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;

/// What a body gives when it is polled.
type Polled<B> = Option<Result<Frame<<B as Body>::Data>, <B as Body>::Error>>;

/// The body of a request.
///
/// hyper begins to read a body when it is first polled. The server asks once before the service
/// does, so that the service finds what has come. Whatever that gives is kept here and handed on
/// first: no byte depends on when hyper has what.
pub struct RequestBody<B: Body = Incoming> {
    /// What came of asking early; `Some(None)` for the end.
    early: Option<Polled<B>>,
    body: B,
}

impl<B: Body<Data = Bytes> + Unpin> RequestBody<B> {
    pub(super) fn new(body: B) -> Self {
        Self { early: None, body }
    }

    /// Polls the body without a waker: its reader polls it again.
    pub(super) fn want(&mut self) {
        if self.early.is_none() {
            let mut context = Context::from_waker(Waker::noop());
            if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(&mut context) {
                self.early = Some(frame);
            }
        }
    }

    fn early_bytes(&self) -> u64 {
        let frame = self.early.as_ref().and_then(|early| early.as_ref()?.as_ref().ok());
        frame.and_then(Frame::data_ref).map_or(0, |data| data.len() as u64)
    }
}

impl<B: Body<Data = Bytes> + Unpin> Body for RequestBody<B>
where
    B::Error: Unpin,
{
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        let this = self.get_mut();
        match this.early.take() {
            Some(frame) => Poll::Ready(frame),
            None => Pin::new(&mut this.body).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.early {
            Some(early) => early.is_none(),
            None => self.body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, early) = (self.body.size_hint(), self.early_bytes());
        let mut all = SizeHint::new();
        all.set_lower(rest.lower().saturating_add(early));
        if let Some(upper) = rest.upper() {
            all.set_upper(upper.saturating_add(early));
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::convert::Infallible;

    use futures_util::FutureExt;
    use http_body_util::BodyExt;

    use super::*;

    /// Some frames, each after so many polls without one.
    struct Frames(VecDeque<(usize, Bytes)>);

    impl Body for Frames {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            context: &mut Context<'_>,
        ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
            match self.0.front_mut() {
                Some((waits @ 1.., _)) => {
                    *waits -= 1;
                    context.waker().wake_by_ref();
                    Poll::Pending
                }
                _ => Poll::Ready(self.0.pop_front().map(|(_, bytes)| Ok(Frame::data(bytes)))),
            }
        }

        fn size_hint(&self) -> SizeHint {
            SizeHint::with_exact(self.0.iter().map(|(_, bytes)| bytes.len() as u64).sum())
        }
    }

    fn body(frames: &[(usize, &'static str)]) -> RequestBody<Frames> {
        let frames =
            frames.iter().map(|(waits, text)| (*waits, Bytes::from_static(text.as_bytes())));
        RequestBody::new(Frames(frames.collect()))
    }

    // covers: W1
    #[tokio::test]
    async fn what_is_there_when_the_body_is_asked_for_early_is_not_lost() {
        for frames in [
            &[(0, "one"), (0, "two")][..],
            &[(1, "one"), (0, "two")],
            &[(2, "one"), (1, "two")],
            &[(0, "onetwo")],
            &[(0, "o"), (3, "netw"), (0, "o")],
        ] {
            let mut wanted = body(frames);
            for _ in 0..3 {
                wanted.want();
                assert!(!wanted.is_end_stream());
                assert_eq!(wanted.size_hint().exact(), Some(6), "{frames:?}");
            }
            let all = wanted.collect().await.unwrap().to_bytes();
            assert_eq!(all, "onetwo", "{frames:?}");
        }
    }

    #[test]
    fn an_end_that_comes_early_is_the_end() {
        let mut wanted = body(&[]);
        wanted.want();
        assert!(wanted.is_end_stream());
        assert!(wanted.frame().now_or_never().unwrap().is_none());
    }
}
