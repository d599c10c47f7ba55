//! A text made of our words and of what arguments say. The two are kept apart to the end: when
//! together they look like a secret, it is the argument that goes, never a word of ours.

use aaep_types::deception;
use aaep_types::secret::{self, SecretMatch};

/// A text in the making.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug)]
struct Piece {
    text: String,
    theirs: bool,
}

impl Words {
    /// Adds words of ours.
    pub(crate) fn ours(&mut self, text: &str) {
        self.push(text, false);
    }

    /// Adds what an argument says, set apart and made visible already.
    pub(crate) fn theirs(&mut self, text: &str) {
        self.push(text, true);
    }

    // enforces: L5
    fn push(&mut self, text: &str, theirs: bool) {
        self.pieces.push(Piece { text: deception::compose(text).into_owned(), theirs });
    }

    /// Adds all of another text.
    pub(crate) fn add(&mut self, other: &Words) {
        self.pieces.extend(other.pieces.iter().cloned());
    }

    /// Ends a sentence, unless it has an end.
    pub(crate) fn end_sentence(&mut self) {
        let last = self.pieces.last().and_then(|piece| piece.text.chars().next_back());
        let ends = |last| matches!(last, '.' | '!' | '?' | '…' | '。' | '！' | '？' | '।' | '؟');
        if !last.is_some_and(ends) {
            self.ours(".");
        }
    }

    // enforces: T14
    /// The text, without secrets.
    pub(crate) fn finish(mut self) -> String {
        // Every round takes out an argument at least, or there is nothing left to take out.
        for _ in 0..=self.pieces.len() {
            let text = self.text();
            let found = secret::find(&text);
            if found.is_empty() {
                return text;
            }
            let touched: Vec<_> = found.iter().map(|secret| self.touched(secret)).collect();
            for (index, secret) in touched.into_iter().zip(&found) {
                let Some(index) = index else { continue };
                self.pieces[index] =
                    Piece { text: secret.kind.replacement().into(), theirs: false };
            }
        }
        secret::redact(&self.text()).into_owned()
    }

    fn text(&self) -> String {
        self.pieces.iter().map(|piece| piece.text.as_str()).collect()
    }

    /// The argument that a secret begins in; if it lies in none, the one before it, which made our
    /// words look like one. The others may be none without it.
    fn touched(&self, secret: &SecretMatch) -> Option<usize> {
        let (mut at, mut before) = (0, None);
        for (index, piece) in self.pieces.iter().enumerate() {
            let start = at;
            at += piece.text.len();
            if start >= secret.range.end {
                break;
            }
            if piece.theirs && at > secret.range.start {
                return Some(index);
            }
            if piece.theirs {
                before = Some(index);
            }
        }
        before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Odd parts are theirs.
    fn finish(parts: &[&str]) -> String {
        let mut words = Words::default();
        for (index, part) in parts.iter().enumerate() {
            words.push(part, index % 2 == 1);
        }
        words.finish()
    }

    // covers: T14
    #[test]
    fn the_argument_goes_and_our_words_stay() {
        assert_eq!(
            finish(&["Pay ", "\"password=\"", " to ", "\"bob\"", " now"]),
            "Pay [password removed] to \"bob\" now"
        );
        assert_eq!(
            finish(&["Pay ", "\"password='\"", " to ", "\"it's\"", " now"]),
            "Pay [password removed] to \"it's\" now"
        );
        assert_eq!(
            finish(&["Card ", "4111 1111", " ", "1111 1111", "."]),
            "Card [card number removed] 1111 1111."
        );
        assert_eq!(finish(&["password=", "\"y\"", "!"]), "password=[password removed]!");
        assert_eq!(finish(&["plain ", "\"text\""]), "plain \"text\"");
    }

    #[test]
    fn a_sentence_ends_once() {
        let mut words = Words::default();
        words.ours("Done");
        words.end_sentence();
        words.end_sentence();
        assert_eq!(words.finish(), "Done.");
    }
}
