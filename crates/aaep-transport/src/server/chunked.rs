//! Long answers, written without hyper.
//!
//! hyper keeps two buffers of 8 KiB for each connection, as long as it lives. A stream of events
//! lives for hours and is silent most of the time, and a hub holds thousands. So hyper reads the
//! request and writes the head of the answer; then it is dropped, and the body is written here, in
//! chunks (RFC 9112, 7.1), without any buffer. The connection ends with the answer.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Buf, Bytes};
use http_body::Body;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::guard::Guarded;
use super::{BoxError, MAX_HEAD};

/// In the extensions of a response: its body is a long stream, mostly silent. Its connection costs
/// much less memory then, and is closed when the body ends.
#[derive(Clone, Copy, Debug)]
pub struct Long;

/// Writes a body to its end, or until the client goes.
pub(super) struct LongAnswer<B> {
    stream: Guarded,
    body: Pin<Box<B>>,
    /// What is being written.
    chunk: Chunk,
    /// The chunk is the last.
    over: bool,
    /// Bytes that came from the client although nothing was asked of it.
    unheard: usize,
}

impl<B> LongAnswer<B> {
    pub(super) fn new(stream: Guarded, body: Pin<Box<B>>) -> Self {
        Self { stream, body, chunk: Chunk::default(), over: false, unheard: 0 }
    }
}

impl<B> Future for LongAnswer<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    type Output = io::Result<()>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.get_mut().write(context)
    }
}

impl<B> LongAnswer<B>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    fn write(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Poll::Ready(gone) = self.poll_gone(context) {
            return Poll::Ready(gone);
        }
        loop {
            while !self.chunk.is_empty() {
                let stream = Pin::new(&mut self.stream);
                match ready!(stream.poll_write_vectored(context, &self.chunk.slices()))? {
                    0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                    written => self.chunk.advance(written),
                }
            }
            // A silent stream holds nothing of what it said last.
            self.chunk = Chunk::default();
            if self.over {
                ready!(Pin::new(&mut self.stream).poll_flush(context))?;
                return Pin::new(&mut self.stream).poll_shutdown(context);
            }
            match self.body.as_mut().poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    let data = frame.into_data().unwrap_or_default();
                    self.chunk = Chunk::of(data);
                }
                // Without the last chunk, the client knows that something is missing.
                Poll::Ready(Some(Err(error))) => {
                    return Poll::Ready(Err(io::Error::other(error)));
                }
                Poll::Ready(None) => {
                    self.chunk = Chunk::last();
                    self.over = true;
                }
                Poll::Pending => {
                    ready!(Pin::new(&mut self.stream).poll_flush(context))?;
                    return Poll::Pending;
                }
            }
        }
    }

    /// Ready when the client has gone. What it says is not heard: the answer said that the
    /// connection ends with it.
    // enforces: W3
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let mut bytes = [0; 64];
            let mut buffer = ReadBuf::new(&mut bytes);
            ready!(Pin::new(&mut self.stream).poll_read(context, &mut buffer))?;
            self.unheard += buffer.filled().len();
            if buffer.filled().is_empty() || self.unheard > MAX_HEAD {
                return Poll::Ready(Ok(()));
            }
        }
    }
}

/// One chunk: its length as a line, its bytes, a line end.
#[derive(Default)]
struct Chunk {
    line: [u8; Self::LINE],
    /// Bytes of the line that are not to be written, or are written already.
    skip: usize,
    data: Bytes,
    end: &'static [u8],
}

impl Chunk {
    /// Sixteen hexadecimal digits, and a line end.
    const LINE: usize = 18;

    /// Nothing for no bytes: an empty chunk would be the last.
    fn of(data: Bytes) -> Self {
        if data.is_empty() {
            return Self { skip: Self::LINE, ..Self::default() };
        }
        let mut line = *b"................\r\n";
        let (mut skip, mut rest) = (Self::LINE - 2, data.len());
        while rest > 0 {
            skip -= 1;
            line[skip] = b"0123456789abcdef"[rest % 16];
            rest /= 16;
        }
        Self { line, skip, data, end: b"\r\n" }
    }

    fn last() -> Self {
        Self { skip: Self::LINE, end: b"0\r\n\r\n", ..Self::default() }
    }

    /// True of a default one as well: it has no end.
    fn is_empty(&self) -> bool {
        self.end.is_empty()
    }

    fn slices(&self) -> [IoSlice<'_>; 3] {
        [&self.line[self.skip..], &self.data, self.end].map(IoSlice::new)
    }

    fn advance(&mut self, written: usize) {
        let of_line = written.min(Self::LINE - self.skip);
        self.skip += of_line;
        let of_data = (written - of_line).min(self.data.len());
        self.data.advance(of_data);
        let of_end = (written - of_line - of_data).min(self.end.len());
        self.end = &self.end[of_end..];
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::super::Limits;
    use super::super::guard::{Progress, Stage};
    use super::*;

    fn written(mut chunk: Chunk, step: usize) -> Vec<u8> {
        let mut out = Vec::new();
        while !chunk.is_empty() {
            let bytes: Vec<u8> = chunk.slices().iter().flat_map(|slice| slice.to_vec()).collect();
            let count = step.min(bytes.len());
            out.extend_from_slice(&bytes[..count]);
            chunk.advance(count);
        }
        out
    }

    #[test]
    fn a_chunk_is_the_same_however_it_is_torn() {
        for length in [1, 9, 10, 15, 16, 17, 255, 256, 70_000] {
            let data = Bytes::from(vec![b'x'; length]);
            let mut whole = format!("{length:x}\r\n").into_bytes();
            whole.extend_from_slice(&data);
            whole.extend_from_slice(b"\r\n");
            // Copied at every step, so a long one only takes long ones.
            for step in
                [1, 2, 3, 7, 1000, usize::MAX].into_iter().filter(|step| length / step < 1000)
            {
                assert_eq!(written(Chunk::of(data.clone()), step), whole, "{length} by {step}");
            }
        }
        assert_eq!(written(Chunk::last(), 2), b"0\r\n\r\n");
        assert_eq!(written(Chunk::of(Bytes::new()), 1), b"");
    }

    /// A body that says one thing and then nothing more.
    struct OnceThenSilent(Option<Bytes>);

    impl Body for OnceThenSilent {
        type Data = Bytes;
        type Error = BoxError;

        fn poll_frame(
            mut self: Pin<&mut Self>,
            _: &mut Context<'_>,
        ) -> Poll<Option<Result<http_body::Frame<Bytes>, BoxError>>> {
            match self.0.take() {
                Some(bytes) => Poll::Ready(Some(Ok(http_body::Frame::data(bytes)))),
                None => Poll::Pending,
            }
        }
    }

    /// Bytes of which one can see whether anybody has them.
    struct Seen(Arc<[u8]>);

    impl AsRef<[u8]> for Seen {
        fn as_ref(&self) -> &[u8] {
            &self.0
        }
    }

    #[tokio::test]
    async fn a_silent_stream_holds_nothing_of_what_it_said() {
        let said: Arc<[u8]> = Arc::from(&b"data: hello\n\n"[..]);
        let bytes = Bytes::from_owner(Seen(Arc::clone(&said)));
        let (here, _there) = tokio::io::duplex(1024);
        let progress = Arc::<Progress>::default();
        progress.enter(Stage::Busy);
        let stream = Guarded::new(Box::new(here), &Limits::default(), progress, None);
        let mut answer = LongAnswer::new(stream, Box::pin(OnceThenSilent(Some(bytes))));
        assert_eq!(Arc::strong_count(&said), 2);
        let polled =
            std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut answer).poll(context))).await;
        assert!(polled.is_pending());
        assert_eq!(Arc::strong_count(&said), 1);
    }
}
