//! Words for people: in a sentence, and if wanted shorter and longer. Secrets are taken out of all
//! of them, here and nowhere else.

use std::borrow::Cow;

use aaep_types::{cut, deception, secret};

/// How much of a text that came from outside is passed on, in characters.
const FOREIGN_CHARS: usize = 1000;

/// What is said of something: in a sentence, and if wanted in a word or two, and in full. A sentence
/// alone is enough: `"Looking for flights."`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Words {
    pub(crate) normal: String,
    pub(crate) terse: Option<String>,
    pub(crate) detailed: Option<String>,
    pub(crate) language: Option<String>,
}

impl Words {
    /// In a sentence.
    pub fn new(sentence: impl Into<String>) -> Self {
        Self { normal: sentence.into(), terse: None, detailed: None, language: None }
    }

    // enforces: L13
    /// A sentence of this library: English, whatever the session speaks, and labelled so.
    pub(crate) fn ours(sentence: impl Into<String>) -> Self {
        Self::new(sentence).language("en")
    }

    /// Their language, where that is not the session's: `yo-NG`.
    pub fn language(mut self, tag: impl Into<String>) -> Self {
        self.language = Some(tag.into());
        self
    }

    /// And in a word or two, for people who want to hear little.
    pub fn terse(mut self, words: impl Into<String>) -> Self {
        self.terse = Some(words.into());
        self
    }

    /// And in full, for people who want to hear everything.
    pub fn detailed(mut self, words: impl Into<String>) -> Self {
        self.detailed = Some(words.into());
        self
    }
}

impl From<&str> for Words {
    fn from(sentence: &str) -> Self {
        Self::new(sentence)
    }
}

impl From<String> for Words {
    fn from(sentence: String) -> Self {
        Self::new(sentence)
    }
}

// enforces: T14
/// A text without secrets, as it is sent.
pub(crate) fn without_secrets(text: &str) -> Cow<'_, str> {
    secret::redact(text)
}

/// A text that came from outside, such as a tool's error: shortened, and without characters that the
/// hub would refuse (D34). What a tool says must never keep its end from being told.
pub(crate) fn foreign(text: &str) -> String {
    // Before it is shortened: half a secret does not look like one.
    let mut kept = cut(&without_secrets(text), FOREIGN_CHARS).to_owned();
    if deception::first(&kept).is_some() {
        let found: Vec<usize> = deception::all(&kept).map(|found| found.offset).collect();
        kept = kept
            .char_indices()
            .filter(|(offset, character)| !found.contains(offset) && !is_bidi(*character))
            .map(|(_, character)| character)
            .collect();
    }
    kept
}

/// Embeddings and isolates, which may have lost their other end to the shortening.
fn is_bidi(character: char) -> bool {
    matches!(character, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: D34
    #[test]
    fn what_comes_from_outside_is_made_harmless_and_short() {
        let hostile = format!("\u{1b}]0;x\u{7} \u{2066}open \u{202e}tfel {}", "y".repeat(5000));
        let kept = foreign(&hostile);
        assert_eq!(deception::first(&kept), None);
        assert!(kept.starts_with("]0;x open tfel yyy"));
        assert!(kept.chars().count() <= FOREIGN_CHARS);
        assert_eq!(foreign("می‌خواهم\n"), "می‌خواهم\n");
    }

    // covers: T14
    #[test]
    fn a_secret_is_not_cut_in_two() {
        let text = format!("{} 4111 1111 1111 1111", "y".repeat(FOREIGN_CHARS - 10));
        assert!(!foreign(&text).contains("4111"));
    }
}
