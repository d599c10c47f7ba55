//! Text that gives away a secret (rule T14): card numbers, keys, tokens, passwords.
//!
//! An agent's words are heard by others, kept in logs and shown on screens. This module finds what
//! must not be among them. Producers use [`redact`], checkers [`find`].
//!
//! It knows forms, not meanings. A key of a known service, a card number with a sound check digit,
//! an address with a password in it are unmistakable; `password: hunter2` is a guess, and
//! [`SecretMatch::certain`] says so. What is a secret without looking like one is not found: a password
//! in the middle of a sentence, a diagnosis, an address. Nor is what is split over two texts;
//! [`Watch`] follows text that comes in pieces.
//!
//! ```
//! use aaep_types::secret::{self, Kind};
//!
//! let text = "Paying with 4111 1111 1111 1111, order 4111 1111 1111 1112.";
//! assert_eq!(secret::find(text)[0].kind, Kind::CardNumber);
//! assert_eq!(
//!     secret::redact(text),
//!     "Paying with [card number removed], order 4111 1111 1111 1112."
//! );
//! ```

mod assigned;
mod card;
mod key;
mod name;
mod pieces;
mod redactor;

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;

pub use name::names_secret;
pub use pieces::{MAX_WATCHED_BYTES, Watch};
pub use redactor::{Passed, Redactor, open_secret};

/// What kind of secret it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Kind {
    /// The number of a payment card.
    CardNumber,
    /// A key to a service.
    Key,
    /// A token of a signed-in account.
    Token,
    /// The private half of a pair of keys.
    PrivateKey,
    /// A password.
    Password,
}

impl Kind {
    const ALL: [Kind; 5] =
        [Kind::CardNumber, Kind::Key, Kind::Token, Kind::PrivateKey, Kind::Password];

    /// Its name in a sentence.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::CardNumber => "card number",
            Kind::Key => "key",
            Kind::Token => "token",
            Kind::PrivateKey => "private key",
            Kind::Password => "password",
        }
    }

    /// What is put in its place.
    pub fn replacement(self) -> &'static str {
        match self {
            Kind::CardNumber => "[card number removed]",
            Kind::Key => "[key removed]",
            Kind::Token => "[token removed]",
            Kind::PrivateKey => "[private key removed]",
            Kind::Password => "[password removed]",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// A secret and where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretMatch {
    /// Where it is, in bytes.
    pub range: Range<usize>,
    /// What it looks like.
    pub kind: Kind,
    /// Whether its form is unmistakable.
    pub certain: bool,
}

/// Every secret in a text, in order; they do not overlap. The work grows with the length of the
/// text and no faster.
pub fn find(text: &str) -> Vec<SecretMatch> {
    let mut found = Vec::new();
    card::find(text, &mut found);
    key::find(text, &mut found);
    assigned::find(text, &mut found);
    joined(found)
}

/// Secrets that overlap are one, of the kind of the longer: nothing of either is left over.
fn joined(mut found: Vec<SecretMatch>) -> Vec<SecretMatch> {
    found.sort_by_key(|found| (found.range.start, found.range.end));
    let mut all: Vec<SecretMatch> = Vec::with_capacity(found.len());
    for next in found {
        match all.last_mut() {
            Some(last) if next.range.start < last.range.end => {
                if next.range.len() > last.range.len() {
                    last.kind = next.kind;
                }
                last.certain |= next.certain;
                last.range.end = last.range.end.max(next.range.end);
            }
            _ => all.push(next),
        }
    }
    all
}

/// How often a text is looked through again after something was taken out of it.
const ROUNDS: usize = 4;

/// What is left of a text that shows a new secret whenever one is taken out.
const NOTHING_LEFT: &str = "[text removed, it was full of secrets]";

// enforces: T14
/// The text without its secrets: in the place of each stands what was there, such as
/// `[card number removed]`. In the result [`find`] finds nothing.
pub fn redact(text: &str) -> Cow<'_, str> {
    let mut text = Cow::Borrowed(text);
    for _ in 0..ROUNDS {
        let found = find(&text);
        if found.is_empty() {
            return text;
        }
        // Taking one out can give another its place at the beginning of a word: look again.
        text = Cow::Owned(without(&text, &found));
    }
    if find(&text).is_empty() { text } else { Cow::Borrowed(NOTHING_LEFT) }
}

fn without(text: &str, found: &[SecretMatch]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for SecretMatch { range, kind, .. } in found {
        out.push_str(&text[at..range.start]);
        out.push_str(kind.replacement());
        at = range.end;
    }
    out.push_str(&text[at..]);
    out
}

/// Whether a value is one of our own replacements, or begins with one.
fn is_removed(value: &str) -> bool {
    Kind::ALL.iter().any(|kind| value.starts_with(kind.replacement()))
}

/// Letters, digits and what else is part of a word for programs.
fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte == b'_'
}

/// Whether a word can begin at this byte.
fn begins_word(bytes: &[u8], at: usize, joiners: &[u8]) -> bool {
    let before = at.checked_sub(1).and_then(|before| bytes.get(before));
    before.is_none_or(|before| !is_word(*before) && !joiners.contains(before))
}

/// Where the run of such bytes that begins here ends.
fn run_end(bytes: &[u8], at: usize, part: impl Fn(u8) -> bool) -> usize {
    let rest = bytes.get(at..).unwrap_or_default();
    at + rest.iter().position(|byte| !part(*byte)).unwrap_or(rest.len())
}

/// Whether a text has a letter and a digit, as what no person chose as a word has.
fn is_mixed(text: &[u8]) -> bool {
    text.iter().any(u8::is_ascii_digit) && text.iter().any(u8::is_ascii_alphabetic)
}

#[cfg(test)]
mod tests;
