//! The vocabulary in which the schemas are written: objects of members, each of a kind.

use std::fmt;

use super::shapes::Shape;

/// What a value has to be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// A string of `min` to `max` code points.
    Text { min: usize, max: Option<usize> },
    /// This very string.
    Exactly(&'static str),
    /// One of these strings.
    OneOf(&'static [&'static str]),
    /// A string of a certain shape.
    Shaped(Shape),
    /// A string that is an RFC 3339 date and time.
    DateTime,
    /// A string that is an absolute URI.
    Uri,
    /// A number without a fraction; `1.0` is one.
    Integer { min: u32, max: Option<u32> },
    /// Any number from `min` to `max`.
    Number { min: u32, max: u32 },
    /// `true` or `false`.
    Boolean,
    /// An object of which nothing more is said.
    AnyObject,
    /// An object with members of its own.
    Object(&'static Object),
    /// An array.
    List(&'static List),
    /// `@context`: the core context, alone or first in a list of URIs.
    Context,
    /// The answer to a clarification: non-empty text, a boolean or a number.
    Response,
}

/// An object's members and what else is said of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Object {
    /// The rows every event shares, where there are any. A row of `members` with the same name
    /// takes the place of the shared one, and is never looser than it.
    pub(super) shared: &'static [Member],
    pub(super) members: &'static [Member],
    pub(super) others: Others,
    pub(super) rule: Option<Rule>,
}

/// One row of an object's table.
#[derive(Clone, Copy, Debug)]
pub(super) struct Member {
    pub(super) name: &'static str,
    pub(super) required: bool,
    pub(super) kind: Kind,
}

/// What the members that have no row may be.
#[derive(Clone, Copy, Debug)]
pub(super) enum Others {
    /// Anything.
    Anything,
    /// Objects only: room for extensions.
    Objects,
    /// There may be none.
    Forbidden,
}

/// What is said of an object as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rule {
    /// At least one member is there.
    NotEmpty,
    /// §6.4.1: an irreversible action of medium or high risk is refused by default.
    IrreversibleDefaultsToReject,
}

/// An array's items and how many there may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct List {
    pub(super) item: Kind,
    pub(super) min: usize,
    pub(super) max: Option<usize>,
    pub(super) unique: bool,
}

/// The context every event names first.
pub(super) const CORE_CONTEXT: &str = "https://aaep-protocol.org/context/v1";

/// The longest text answer to a clarification, in code points.
pub(super) const LONGEST_RESPONSE: usize = 16_384;

pub(super) const fn required(name: &'static str, kind: Kind) -> Member {
    Member { name, required: true, kind }
}

pub(super) const fn optional(name: &'static str, kind: Kind) -> Member {
    Member { name, required: false, kind }
}

/// Any string at all.
pub(super) const ANY_TEXT: Kind = Kind::Text { min: 0, max: None };

/// A string that is not empty.
pub(super) const SOME_TEXT: Kind = Kind::Text { min: 1, max: None };

/// A string of 1 to `max` code points.
pub(super) const fn text(max: usize) -> Kind {
    Kind::Text { min: 1, max: Some(max) }
}

/// A string of at most `max` code points, which may be empty.
pub(super) const fn text_or_empty(max: usize) -> Kind {
    Kind::Text { min: 0, max: Some(max) }
}

/// A whole number with a lower bound only.
pub(super) const fn at_least(min: u32) -> Kind {
    Kind::Integer { min, max: None }
}

/// A whole number between two bounds, both allowed.
pub(super) const fn between(min: u32, max: u32) -> Kind {
    Kind::Integer { min, max: Some(max) }
}

/// What a value of this kind is, as the end of the sentence "Make this …".
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Text { min: 0, max: None } => f.write_str("a string"),
            Self::Text { min, max: None } => write!(f, "a string of {min} or more characters"),
            Self::Text { min: 0, max: Some(max) } => {
                write!(f, "a string of at most {max} characters")
            }
            Self::Text { min, max: Some(max) } => {
                write!(f, "a string of {min} to {max} characters")
            }
            Self::Exactly(text) => write!(f, "`{text}`"),
            Self::OneOf(choices) => write_choices(f, choices),
            Self::Shaped(shape) => f.write_str(shape.description()),
            Self::DateTime => f.write_str(
                "an RFC 3339 date and time with `Z` or an offset, such as `2026-02-03T09:30:00Z`",
            ),
            Self::Uri => f.write_str("an absolute URI"),
            Self::Integer { min, max: None } => write!(f, "a whole number, {min} or more"),
            Self::Integer { min, max: Some(max) } => {
                write!(f, "a whole number from {min} to {max}")
            }
            Self::Number { min, max } => write!(f, "a number from {min} to {max}"),
            Self::Boolean => f.write_str("`true` or `false`, without quotes"),
            Self::AnyObject | Self::Object(_) => f.write_str("an object"),
            Self::List(list) => list.fmt(f),
            Self::Context => {
                write!(f, "`{CORE_CONTEXT}`, or an array of URIs that begins with it")
            }
            Self::Response => write!(
                f,
                "`true`, `false`, a number, or a string of 1 to {LONGEST_RESPONSE} characters"
            ),
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.min, self.max) {
            (0, None) => f.write_str("an array"),
            (0, Some(max)) => write!(f, "an array of at most {max} items"),
            (min, None) => write!(f, "an array of {min} or more items"),
            (min, Some(max)) => write!(f, "an array of {min} to {max} items"),
        }
    }
}

/// Writes `a`, `b` or `c`, each in backquotes.
fn write_choices(f: &mut fmt::Formatter<'_>, choices: &[&str]) -> fmt::Result {
    for (at, choice) in choices.iter().enumerate() {
        match at {
            0 => {}
            _ if at + 1 == choices.len() => f.write_str(" or ")?,
            _ => f.write_str(", ")?,
        }
        write!(f, "`{choice}`")?;
    }
    Ok(())
}
