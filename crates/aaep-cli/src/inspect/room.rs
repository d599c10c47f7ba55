//! How much of a recording is kept in memory.

/// Bytes of text that are kept, of all sessions together.
pub(super) const BYTES: usize = 64 << 20;

/// What a row, a span or a remark takes beside its text.
pub(super) const AROUND: usize = 256;

/// Stands in place of a word that did not fit.
const LEFT_OUT: &str = "[…]";

/// What may still be kept.
#[derive(Debug)]
pub(super) struct Room(usize);

impl Room {
    pub(super) fn of(bytes: usize) -> Self {
        Self(bytes)
    }

    /// Whether so many bytes fit; then they are taken.
    pub(super) fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.0;
        if fits {
            self.0 -= bytes;
        }
        fits
    }

    /// The text, if it fits.
    pub(super) fn keep(&mut self, text: &str) -> String {
        if self.take(text.len()) { text.to_owned() } else { LEFT_OUT.to_owned() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_left_out_and_smaller_things_still_fit() {
        let mut room = Room::of(5);
        assert_eq!(room.keep("abc"), "abc");
        assert_eq!(room.keep("def"), LEFT_OUT);
        assert!(room.take(2) && !room.take(1));
    }
}
