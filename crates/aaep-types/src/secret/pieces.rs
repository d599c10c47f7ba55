//! Text that comes in pieces, as a model streams it: a secret may lie across many of them.

use super::{SecretMatch, find};

/// Bytes of earlier pieces that are kept.
pub const MAX_WATCHED_BYTES: usize = 256;

/// Follows one text that comes in pieces. It keeps the last [`MAX_WATCHED_BYTES`] and no more.
///
/// ```
/// use aaep_types::secret::{Kind, Watch};
///
/// let mut watch = Watch::default();
/// assert!(watch.next("The card is 4111 1111").is_empty());
/// assert!(watch.next(" 1111 1111").is_empty(), "it could be a longer number");
/// assert_eq!(watch.next(", thank you.")[0].kind, Kind::CardNumber);
/// assert!(watch.end().is_empty());
/// ```
#[derive(Clone, Debug, Default)]
pub struct Watch {
    tail: String,
}

impl Watch {
    /// Takes the next piece and says which secrets are complete; their ranges are those of the text
    /// that was looked at, not of the piece.
    pub fn next(&mut self, piece: &str) -> Vec<SecretMatch> {
        self.tail.push_str(piece);
        let mut found = find(&self.tail);
        // What touches the end may go on, and turn out to be nothing.
        let open = found.pop_if(|last| {
            last.range.end == self.tail.len() && last.range.len() <= MAX_WATCHED_BYTES / 2
        });
        let told = found.last().map_or(0, |last| last.range.end);
        // The word before an open one says what it is, as in `password=`; it is kept too.
        let room = MAX_WATCHED_BYTES - if open.is_some() { 0 } else { MAX_WATCHED_BYTES / 4 };
        self.forget(told, self.tail.len().saturating_sub(room));
        found
    }

    /// Forgets what was told, and what is too far back. Where that cuts a word, something is left
    /// in its place, so that the rest is not taken for a beginning.
    fn forget(&mut self, told: usize, far: usize) {
        if far <= told {
            self.tail.drain(..told);
            return;
        }
        let mut keep = far;
        while !self.tail.is_char_boundary(keep) {
            keep += 1;
        }
        let stand_in = match self.tail[..keep].chars().next_back() {
            Some(before) if before.is_ascii_alphanumeric() || before == '_' => "z",
            Some(before) if before.is_ascii_punctuation() => &before.to_string(),
            _ => "",
        };
        let stand_in = stand_in.to_owned();
        self.tail.replace_range(..keep, &stand_in);
    }

    #[cfg(test)]
    pub(super) fn is_bounded(&self) -> bool {
        self.tail.len() <= MAX_WATCHED_BYTES
    }

    /// There are no more pieces.
    pub fn end(&mut self) -> Vec<SecretMatch> {
        find(&std::mem::take(&mut self.tail))
    }
}
