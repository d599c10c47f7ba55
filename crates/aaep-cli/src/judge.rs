//! What is wrong with one message, by the rules or by the schemas.

use aaep_conformance::published;
use aaep_types::json::Members;
use aaep_types::{Limits, Problem, Rule, Severity, rule, validate_with};

use crate::reader::{Stray, Text};

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Complaint {
    pub(crate) severity: Severity,
    pub(crate) pointer: String,
    /// A rule's id, or `schema`.
    pub(crate) rule: &'static str,
    /// A section of the specification, or a schema's name.
    pub(crate) section: &'static str,
    /// One sentence that says what to change.
    pub(crate) text: String,
}

impl Complaint {
    fn new(rule: Rule, text: impl Into<String>) -> Self {
        Self {
            severity: Severity::Error,
            pointer: String::new(),
            rule: rule.id,
            section: rule.section,
            text: text.into(),
        }
    }

    /// Whether a published schema says so.
    pub(crate) fn is_of_schema(&self) -> bool {
        self.rule == SCHEMA
    }
}

impl From<Problem> for Complaint {
    fn from(problem: Problem) -> Self {
        let Problem { severity, rule, pointer, text, .. } = problem;
        Self { severity, pointer, rule: rule.id, section: rule.section, text }
    }
}

const SCHEMA: &str = "schema";

/// What came of one message.
#[derive(Debug)]
pub(crate) struct Verdict {
    pub(crate) complaints: Vec<Complaint>,
    /// The bytes are one JSON value and nothing else.
    pub(crate) is_sound: bool,
}

/// Who judges.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Judge {
    /// Every rule about single messages.
    Rules(Limits),
    /// The published schemas, and nothing else.
    Schemas,
}

impl Judge {
    pub(crate) fn judge(self, bytes: &[u8]) -> Verdict {
        // A line of a capture is judged by what was captured.
        let bytes = aaep_types::captured::message(bytes);
        match self {
            Judge::Rules(limits) => by_rules(bytes, &limits),
            Judge::Schemas => by_schemas(bytes),
        }
    }
}

fn by_rules(bytes: &[u8], limits: &Limits) -> Verdict {
    let problems = validate_with(bytes, limits);
    // Nothing that ends the reading of a text goes by another rule than these two.
    let is_sound =
        problems.iter().all(|problem| problem.rule != rule::E1 && problem.rule != rule::E21);
    Verdict { complaints: problems.into_iter().map(Complaint::from).collect(), is_sound }
}

fn by_schemas(bytes: &[u8]) -> Verdict {
    let message = match serde_json::from_slice(bytes) {
        Ok(message) => message,
        Err(error) => {
            let complaint = Complaint::new(rule::E1, not_json(bytes, &error));
            return Verdict { complaints: vec![complaint], is_sound: false };
        }
    };
    let section = published::schema_for(&message).name();
    let complaint = |violation: published::Violation| Complaint {
        severity: Severity::Error,
        pointer: violation.pointer,
        rule: SCHEMA,
        section,
        text: violation.text,
    };
    let complaints = published::judge(&message).into_iter().map(complaint).collect();
    Verdict { complaints, is_sound: true }
}

/// Our own words for text that is no JSON, and the parser's where we see nothing wrong.
fn not_json(bytes: &[u8], error: &serde_json::Error) -> String {
    let limits = Limits { max_bytes: usize::MAX, ..Limits::default() };
    let ours = validate_with(bytes, &limits).into_iter().find(|problem| problem.rule == rule::E1);
    ours.map_or_else(|| format!("This is not JSON: {error}."), |problem| problem.text)
}

// enforces: E21
/// A message that was too large to be read.
pub(crate) fn too_large(max_bytes: usize) -> Complaint {
    let text = format!(
        "The message is larger than {max_bytes} bytes and was skipped; make it smaller or split it."
    );
    Complaint::new(rule::E21, text)
}

// enforces: E1
/// Something that stands between messages and does not belong there.
pub(crate) fn stray(stray: Stray) -> Complaint {
    let text = match stray {
        Stray::ByteOrderMark => {
            "The input begins with a byte order mark; save it as UTF-8 without one."
        }
        Stray::ExtraComma => "A comma here separates nothing; take it out.",
        Stray::NoComma => "A comma is missing before this element of the array; add it.",
        Stray::AfterArray => {
            "Something follows the array; put everything into one array, or leave its brackets out."
        }
        Stray::Unclosed => "The input ends inside the array; close it with `]`.",
    };
    Complaint::new(rule::E1, text)
}

/// Everything that is wrong at one place of the input.
pub(crate) fn around(value: Option<Stray>, text: Text<'_>, max_bytes: usize) -> Vec<Complaint> {
    let large = matches!(text, Text::TooLarge).then(|| too_large(max_bytes));
    value.map(stray).into_iter().chain(large).collect()
}

/// What a valid message says it is, where that needs no escaping: found without reading the rest.
pub(crate) fn plain_type(bytes: &[u8]) -> Option<&[u8]> {
    let mut rest = bytes.trim_ascii_start().strip_prefix(b"{")?;
    loop {
        let (name, after) = plain_string(rest)?;
        let value = after.trim_ascii_start().strip_prefix(b":")?;
        if name == b"type" {
            return Some(plain_string(value)?.0);
        }
        // Only strings are passed over: the type stands before anything else.
        let (_, after) = plain_string(value)?;
        rest = after.trim_ascii_start().strip_prefix(b",")?;
    }
}

/// A string of visible ASCII without escapes, and what follows it.
fn plain_string(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = bytes.trim_ascii_start().strip_prefix(b"\"")?;
    let length = memchr::memchr(b'"', inside)?;
    let (text, after) = inside.split_at(length);
    let plain = |byte: &u8| (byte.is_ascii_graphic() || *byte == b' ') && *byte != b'\\';
    text.iter().all(plain).then(|| (text, &after[1..]))
}

/// What a message says it is.
pub(crate) fn type_of(bytes: &[u8]) -> Option<String> {
    let text = std::str::from_utf8(bytes).ok()?;
    let (members, _) = Members::index(text, Limits::default().max_depth).ok()?;
    members?.text("type").map(std::borrow::Cow::into_owned)
}
