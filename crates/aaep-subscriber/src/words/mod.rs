//! What is said: events, requests and connections in words.

use aaep_types::{Level, Verbosity};

use crate::happening::Happening;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Terse, normal or detailed.
    pub verbosity: Verbosity,
    /// How much the listener can take in: with `High` load, one short idea per line.
    pub load: Level,
}

/// A piece of what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Our own words.
    Ours(String),
    /// The agent's words, made safe.
    Theirs(String),
}

/// One line: what is said without a pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Said {
    /// Its pieces in order.
    pub spans: Vec<Span>,
}

/// A value for a placeholder.
#[derive(Clone, Debug, PartialEq)]
pub enum Argument<'a> {
    /// A number, written as the language writes it; `count` chooses the plural.
    Count(u64),
    /// Our own words.
    Ours(&'a str),
    /// The agent's words as they were sent; they are made safe.
    Theirs(&'a str),
}

/// The words of one language.
#[derive(Clone, Debug)]
pub struct Words {}

impl Words {
    /// The words in the first of these languages that there is, or in English.
    pub fn new(_languages: &[&str]) -> Self {
        Self {}
    }

    /// What is said of something that happens; nothing when there is nothing to say.
    pub fn say(&self, _happening: &Happening, _manner: &Manner) -> Vec<Said> {
        Vec::new()
    }

    /// One phrase of the message files, by its key.
    pub fn phrase(&self, _key: &str, _arguments: &[(&str, Argument<'_>)]) -> Said {
        Said::default()
    }
}
