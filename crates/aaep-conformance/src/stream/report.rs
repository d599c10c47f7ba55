//! Findings about one place of the stream.

use aaep_types::{Rule, rule};

use super::memory::short;
use super::{Finding, Weight};

/// Where we are, and where findings go.
#[derive(Debug)]
pub(super) struct Report<'a> {
    pub(super) line: u64,
    pub(super) event_id: Option<&'a str>,
    pub(super) session_id: Option<&'a str>,
    pub(super) found: &'a mut Vec<Finding>,
}

impl Report<'_> {
    pub(super) fn add(&mut self, weight: Weight, rule: Rule, text: impl Into<String>) {
        self.found.push(Finding {
            weight,
            line: self.line,
            event_id: self.event_id.map(short),
            session_id: self.session_id.map(short),
            rule,
            text: text.into(),
        });
    }

    pub(super) fn error(&mut self, rule: Rule, text: impl Into<String>) {
        self.add(Weight::Error, rule, text);
    }

    pub(super) fn warning(&mut self, rule: Rule, text: impl Into<String>) {
        self.add(Weight::Warning, rule, text);
    }

    pub(super) fn note(&mut self, rule: Rule, text: impl Into<String>) {
        self.add(Weight::Note, rule, text);
    }

    /// A bound of ours was reached: what is not judged from here on is said (§3.7).
    pub(super) fn bound(&mut self, text: String) {
        self.note(rule::E21, text);
    }
}

/// A state or another short word, to be repeated in a sentence; anything that is not plainly a
/// word is not repeated, so that no secret gets into a report.
pub(super) fn word(text: &str) -> &str {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    if text.len() <= 64 && text.bytes().all(plain) && !text.starts_with("rpl_") {
        text
    } else {
        "another word"
    }
}
