//! Messages with their length in front: 4 bytes, big-endian (W1, W10). No input or output here.

use bytes::{Buf, BufMut, Bytes, BytesMut};

use crate::TooLong;

/// Bytes in front of a message.
pub const PREFIX: usize = 4;

/// Appends one message.
// enforces: W1, W10
pub fn encode(out: &mut BytesMut, message: &[u8]) -> Result<(), TooLong> {
    let length = u32::try_from(message.len()).map_err(|_| TooLong { max: u32::MAX as usize })?;
    out.reserve(PREFIX + message.len());
    out.put_u32(length);
    out.extend_from_slice(message);
    Ok(())
}

/// Reads messages from bytes that come in any portions.
///
/// Push what arrived, take with [`Decoder::next`] until there is no more, then push again. A length
/// that is announced costs nothing: memory follows what really came.
#[derive(Debug)]
pub struct Decoder {
    max: usize,
    input: BytesMut,
    /// Bytes still to come of a message that is too long and is being dropped.
    dropping: usize,
}

impl Decoder {
    /// A decoder that takes messages of at most `max` bytes.
    pub fn new(max: usize) -> Self {
        Self { max, input: BytesMut::new(), dropping: 0 }
    }

    /// Adds what arrived.
    pub fn push(&mut self, bytes: &[u8]) {
        let dropped = self.dropping.min(bytes.len());
        self.dropping -= dropped;
        self.input.extend_from_slice(&bytes[dropped..]);
    }

    /// The next message that is complete; one that is too long is reported once, and dropped.
    #[allow(clippy::should_implement_trait)] // an iterator that has ended does not go on; this does
    pub fn next(&mut self) -> Option<Result<Bytes, TooLong>> {
        let prefix: [u8; PREFIX] = self.input.get(..PREFIX)?.try_into().ok()?;
        let length = u32::from_be_bytes(prefix) as usize;
        if length > self.max {
            self.input.advance(PREFIX);
            let dropped = length.min(self.input.len());
            self.input.advance(dropped);
            self.dropping = length - dropped;
            return Some(Err(TooLong { max: self.max }));
        }
        if self.input.len() < PREFIX + length {
            return None;
        }
        self.input.advance(PREFIX);
        let message = self.input.split_to(length).freeze();
        if self.input.is_empty() {
            self.input = BytesMut::new(); // a quiet connection keeps no buffer
        }
        Some(Ok(message))
    }

    /// Whether a message has begun that is not complete: the end of the bytes would cut it.
    pub fn is_in_message(&self) -> bool {
        !self.input.is_empty() || self.dropping > 0
    }
}
