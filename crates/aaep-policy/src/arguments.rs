//! The arguments of a call, read where they stand: numbers keep every digit they were written with.

use std::borrow::Cow;

use aaep_types::json::{JsonFaultKind, JsonString, Members, Raw, elements};

use crate::MAX_ARGUMENT_BYTES;

/// How deep arguments may nest.
const MAX_DEPTH: usize = 64;

/// Where in the arguments something is looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ArgumentPath {
    text: String,
    steps: Vec<String>,
}

/// The longest name or pointer, in bytes.
pub(crate) const MAX_PATH_BYTES: usize = 256;

impl ArgumentPath {
    /// A member's name, or a JSON pointer (RFC 6901) if it begins with `/`. What is wrong with it
    /// otherwise, in a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, &'static str> {
        if text.is_empty() {
            return Err("An argument has a name.");
        }
        if text.len() > MAX_PATH_BYTES {
            return Err("The name of the argument is too long.");
        }
        let steps = match text.strip_prefix('/') {
            // A name with a dot in it is mostly meant as a way into something. Taken for a name, it would be
            // the agent's to fill: `{"order.amount": 5, "order": {"amount": 9000}}`.
            None if text.contains(['.', '[']) => {
                return Err(
                    "Write the way into an argument with slashes, such as `/order/amount` or `/items/0`; \
                     and a name with a dot or a bracket in it with one slash before it.",
                );
            }
            None => vec![text.to_owned()],
            Some(pointer) => {
                let wrong =
                    |step: &str| step.split('~').skip(1).any(|rest| !rest.starts_with(['0', '1']));
                if pointer.split('/').any(wrong) {
                    return Err("In a pointer `~` is written `~0`, and `/` inside a name `~1`.");
                }
                let step = |step: &str| step.replace("~1", "/").replace("~0", "~");
                pointer.split('/').map(step).collect()
            }
        };
        Ok(Self { text: text.to_owned(), steps })
    }

    /// As it was written.
    pub(crate) fn as_str(&self) -> &str {
        &self.text
    }

    /// The name of what it leads to.
    pub(crate) fn last(&self) -> &str {
        self.steps.last().map_or("", String::as_str)
    }
}

/// The arguments of one call.
#[derive(Debug)]
pub(crate) enum Arguments<'a> {
    /// There are none.
    None,
    /// Named ones, as they usually are.
    Named(Members<'a>),
    /// A list, or a single value.
    Other(Raw<'a>),
}

impl<'a> Arguments<'a> {
    /// Reads them; the error is a clause that says why they are ambiguous.
    pub(crate) fn read(text: &'a str) -> Result<Self, String> {
        if text.len() > MAX_ARGUMENT_BYTES {
            return Err(format!(
                "they have {} bytes, and at most {MAX_ARGUMENT_BYTES} are read",
                text.len()
            ));
        }
        let space = [' ', '\t', '\n', '\r'];
        let text = text.trim_matches(space);
        if text.is_empty() || text == "null" {
            return Ok(Arguments::None);
        }
        let broken = |offset: usize| format!("they are not sound JSON from byte {offset} on");
        match Members::whole(text, MAX_DEPTH).map_err(|fault| broken(fault.offset))? {
            Some(members) => {
                unambiguous(&members)?;
                Ok(Arguments::Named(members))
            }
            None => {
                // Faults inside are told for objects only.
                let object = format!("{{\"a\":{text}}}");
                let members = Members::whole(&object, MAX_DEPTH + 1);
                unambiguous(&members.map_err(|_| broken(0))?.unwrap_or_default())?;
                Ok(Arguments::Other(single(text)))
            }
        }
    }

    /// What stands at a place. Nothing, and `null`, is missing.
    pub(crate) fn find(&self, place: &ArgumentPath) -> Option<Raw<'a>> {
        let mut steps = place.steps.iter();
        let mut value = match self {
            Arguments::None => return None,
            Arguments::Named(members) => members.find(steps.next()?)?,
            Arguments::Other(value) => *value,
        };
        for step in steps.by_ref() {
            value = step_into(value, step)?;
        }
        (value != Raw::Null).then_some(value)
    }
}

// The arguments' meaning must not depend on who reads them: a name that stands twice would be
// asked with one value and run with the other.
fn unambiguous(members: &Members<'_>) -> Result<(), String> {
    match members.ambiguity() {
        Some(fault) if fault.kind == JsonFaultKind::DuplicateName => {
            Err("a name stands twice in them".into())
        }
        Some(_) => Err("they hold half of a character".into()),
        None => Ok(()),
    }
}

/// A value that is no object, of a text that is known to hold one value.
fn single(text: &str) -> Raw<'_> {
    match text.as_bytes().first() {
        Some(b'[') => Raw::Array(text),
        Some(b'"') => {
            let raw = text.get(1..text.len() - 1).unwrap_or_default();
            Raw::String(JsonString { raw, escaped: raw.contains('\\'), ascii: raw.is_ascii() })
        }
        Some(b't') => Raw::Bool(true),
        Some(b'f') => Raw::Bool(false),
        Some(b'n') | None => Raw::Null,
        Some(_) => Raw::Number(text),
    }
}

fn step_into<'a>(value: Raw<'a>, step: &str) -> Option<Raw<'a>> {
    match value {
        Raw::Object(_) => members_of(value).find(step),
        Raw::Array(text) => {
            // RFC 6901: an index has no leading zeros.
            let plain = step == "0" || !step.starts_with(['0', '+']);
            let index = step.parse::<usize>().ok().filter(|_| plain)?;
            elements(text).get(index).copied()
        }
        _ => None,
    }
}

/// The members of an object that was read before.
pub(crate) fn members_of(value: Raw<'_>) -> Members<'_> {
    let Raw::Object(text) = value else { return Members::default() };
    Members::whole(text, MAX_DEPTH).ok().flatten().unwrap_or_default()
}

/// The text of a value that is a string.
pub(crate) fn text_of(value: Raw<'_>) -> Option<Cow<'_, str>> {
    match value {
        Raw::String(string) => Some(string.decode()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at<'a>(arguments: &'a str, place: &str) -> Option<Raw<'a>> {
        Arguments::read(arguments).unwrap().find(&ArgumentPath::parse(place).unwrap())
    }

    #[test]
    fn arguments_are_found_by_name_and_by_pointer() {
        let text = r#"{"a":{"b/c":[10,{"d~":"x"}]},"n":null,"/odd":1}"#;
        assert_eq!(at(text, "/a/b~1c/0"), Some(Raw::Number("10")));
        assert_eq!(at(text, "/a/b~1c/1/d~0").and_then(text_of).as_deref(), Some("x"));
        assert_eq!(at(text, "/a/b~1c/00"), None);
        assert_eq!(at(text, "/a/b~1c/-"), None);
        assert_eq!(at(text, "n"), None, "null is missing");
        assert_eq!(at(text, "/~1odd"), Some(Raw::Number("1")));
        assert_eq!(at("[1,2]", "/1"), Some(Raw::Number("2")));
        assert_eq!(at(" ", "a"), None);
        assert_eq!(at("\"x\"", "a"), None);
    }

    #[test]
    fn what_can_be_read_in_two_ways_is_not_read() {
        for text in [
            r#"{"amount":5,"amount":500}"#,
            r#"{"a":{"b":1,"b":2}}"#,
            r#"[{"b":1,"b":2}]"#,
            r#"{"a":"\ud800"}"#,
            "{",
            "{} {}",
            "hello",
            "1],[2",
        ] {
            assert!(Arguments::read(text).is_err(), "{text}");
        }
        // Whatever else is odd about them: other faults are told up to a hundred.
        let odd = "9007199254740993,".repeat(200);
        for text in [
            format!(r#"{{"x":[{odd}1],"a":{{"amount":5,"amount":500}}}}"#),
            format!(r#"[{odd}{{"amount":5,"amount":500}}]"#),
            format!(r#"[{odd}"\ud800"]"#),
        ] {
            assert!(Arguments::read(&text).is_err());
        }
        let long = format!("\"{}\"", "x".repeat(MAX_ARGUMENT_BYTES));
        assert!(Arguments::read(&long).is_err());
        assert!(Arguments::read(&"[".repeat(100_000)).is_err());
    }

    #[test]
    fn a_place_is_a_name_or_a_sound_pointer() {
        assert!(ArgumentPath::parse("").is_err());
        assert!(ArgumentPath::parse("/a~b").is_err());
        assert!(ArgumentPath::parse("/a~2").is_err());
        assert!(ArgumentPath::parse("a~b").is_ok());
        assert!(
            ArgumentPath::parse("order.amount").is_err()
                && ArgumentPath::parse("items[0]").is_err()
        );
        assert_eq!(at(r#"{"a.b":1}"#, "/a.b"), Some(Raw::Number("1")));
        assert!(ArgumentPath::parse(&"x".repeat(MAX_PATH_BYTES + 1)).is_err());
    }
}
