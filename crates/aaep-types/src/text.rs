//! Bounded strings: text that people hear, names that machines compare, and names with a pattern.

use icu_segmenter::GraphemeClusterSegmenter;
use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;
use std::ops::Deref;

use crate::Malformed;
use crate::deception;
use crate::json::{JsonString, Raw, Writer};
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::wire::{Wire, read_string};

/// No bound.
pub const UNBOUNDED: usize = usize::MAX;

/// Text for people, of `MIN` to `MAX` Unicode code points.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Text<'a, const MIN: usize, const MAX: usize>(Cow<'a, str>);

/// A string for machines, of `MIN` to `MAX` Unicode code points.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name<'a, const MIN: usize, const MAX: usize>(Cow<'a, str>);

/// `summary_terse`.
pub type Terse<'a> = Text<'a, 1, 4096>;
/// `summary_normal`, `summary_detailed`, and other long text that says something.
pub type Summary<'a> = Text<'a, 1, 16384>;
/// Long text that may be empty.
pub type Prose<'a> = Text<'a, 0, 16384>;

/// How many code points a string has, in bounds; the byte count settles most cases.
fn fits(text: &str, min: usize, max: usize) -> bool {
    if text.len() < min {
        return false;
    }
    // A code point takes at most four bytes.
    (text.len() <= max || text.chars().count() <= max)
        && (text.len() >= min.saturating_mul(4) || text.chars().count() >= min)
}

fn read_bounded<'a>(
    raw: Raw<'a>,
    (min, max): (usize, usize),
    rule: Rule,
    report: &mut Report,
) -> Option<(JsonString<'a>, Cow<'a, str>)> {
    let Raw::String(string) = raw else {
        report.wrong_type(rule, "a string", raw);
        return None;
    };
    let text = string.decode();
    if fits(&text, min, max) {
        return Some((string, text));
    }
    if text.is_empty() {
        report.error(rule, format_args!("Write something here, or leave the member out."));
    } else {
        report.error(rule, format_args!("Shorten this to at most {max} characters."));
    }
    None
}

fn bounded_schema(min: usize, max: usize) -> Value {
    let mut schema = json!({ "type": "string" });
    if min > 0 {
        schema["minLength"] = json!(min);
    }
    if max < UNBOUNDED {
        schema["maxLength"] = json!(max);
    }
    schema
}

macro_rules! bounded {
    ($name:ident) => {
        impl<'a, const MIN: usize, const MAX: usize> $name<'a, MIN, MAX> {
            /// Takes a string within the bounds.
            pub fn new(text: impl Into<Cow<'a, str>>) -> Result<Self, Malformed> {
                let text = text.into();
                if fits(&text, MIN, MAX) {
                    Ok(Self(text))
                } else {
                    Err(Malformed("The text is empty, or longer than the protocol allows."))
                }
            }

            /// The string.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The same, no longer borrowing.
            pub fn into_owned(self) -> $name<'static, MIN, MAX> {
                $name(Cow::Owned(self.0.into_owned()))
            }
        }

        impl<const MIN: usize, const MAX: usize> Deref for $name<'_, MIN, MAX> {
            type Target = str;

            fn deref(&self) -> &str {
                &self.0
            }
        }

        impl<const MIN: usize, const MAX: usize> fmt::Display for $name<'_, MIN, MAX> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

bounded!(Text);
bounded!(Name);

impl<const MIN: usize, const MAX: usize> Text<'_, MIN, MAX> {
    /// Takes text within the bounds and composes it (NFC, §11.3.2), as our own text is emitted.
    pub fn composed(text: &str) -> Result<Text<'static, MIN, MAX>, Malformed> {
        Text::new(deception::compose(text).into_owned())
    }
}

impl<'a, const MIN: usize, const MAX: usize> Wire<'a> for Text<'a, MIN, MAX> {
    const HUMAN: bool = true;

    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let (string, text) = read_bounded(raw, (MIN, MAX), rule, report)?;
        if !string.is_plain() {
            inspect(&text, report);
        }
        Some(Self(text))
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.0);
    }

    fn schema() -> Value {
        bounded_schema(MIN, MAX)
    }
}

/// Looks for what a listener would not hear, or would hear otherwise than it is shown.
fn inspect(text: &str, report: &mut Report) {
    if let Some(found) = deception::first(text) {
        report.refuse_at_source(rule::D34, format_args!("{}", found.kind));
    }
    if text.is_ascii() {
        return;
    }
    if !deception::is_composed(text) {
        report.warning(rule::L5, format_args!("Normalise this text to NFC before sending it."));
    }
    if deception::runs_both_ways(text) {
        report.note_mixed_direction();
    }
}

impl<'a, const MIN: usize, const MAX: usize> Wire<'a> for Name<'a, MIN, MAX> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        read_bounded(raw, (MIN, MAX), rule, report).map(|(_, text)| Self(text))
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.0);
    }

    fn schema() -> Value {
        bounded_schema(MIN, MAX)
    }
}

/// Declares a string that follows a pattern.
macro_rules! patterned {
    ($(#[doc = $doc:literal])* $name:ident, $pattern:literal, $expected:literal, $matches:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name<'a>(Cow<'a, str>);

        impl<'a> $name<'a> {
            #[doc = concat!("Takes a string that matches `", $pattern, "`.")]
            pub fn parse(text: impl Into<Cow<'a, str>>) -> Result<Self, Malformed> {
                let text = text.into();
                let matches: fn(&str) -> bool = $matches;
                if matches(&text) { Ok(Self(text)) } else { Err(Malformed($expected)) }
            }

            /// The string.
            pub fn as_str(&self) -> &str {
                &self.0
            }

            /// The same, no longer borrowing.
            pub fn into_owned(self) -> $name<'static> {
                $name(Cow::Owned(self.0.into_owned()))
            }
        }

        impl fmt::Display for $name<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl<'a> Wire<'a> for $name<'a> {
            fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
                read_string(raw, rule, report, Self::parse)
            }

            fn write(&self, out: &mut Writer) {
                out.string(&self.0);
            }

            fn schema() -> Value {
                json!({ "type": "string", "pattern": $pattern })
            }
        }
    };
}

patterned! {
    /// The name of a tool.
    ToolName, "^[A-Za-z_][A-Za-z0-9_.-]{0,255}$",
    "Write 1 to 256 ASCII letters, digits, `_`, `.` or `-`, beginning with a letter or `_`.",
    |text| spelled(text, 1..=256, |first| first.is_ascii_alphabetic() || first == b'_', |byte| {
        byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'-')
    })
}
patterned! {
    /// A code that names an error to programs.
    ErrorCode, "^[A-Z][A-Z0-9_]{1,63}$",
    "Write 2 to 64 capital letters, digits or `_`, beginning with a letter.",
    |text| spelled(text, 2..=64, |first| first.is_ascii_uppercase(), |byte| {
        byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_'
    })
}
patterned! {
    /// A word that says why a session was cancelled.
    CancellationReason, "^[a-z][a-z0-9_]{1,63}$",
    "Write 2 to 64 small letters, digits or `_`, beginning with a letter.",
    |text| spelled(text, 2..=64, |first| first.is_ascii_lowercase(), |byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_'
    })
}
patterned! {
    /// A media type without parameters.
    ContentType, "^[a-zA-Z][a-zA-Z0-9.+_-]*/[a-zA-Z][a-zA-Z0-9.+_-]*$",
    "Write a media type such as text/plain, without parameters.",
    |text| text.split_once('/').is_some_and(|(kind, subtype)| {
        let part = |text| spelled(text, 1..=usize::MAX, |first| first.is_ascii_alphabetic(), |byte| {
            byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'+' | b'_' | b'-')
        });
        part(kind) && part(subtype)
    })
}
patterned! {
    /// An ISO 15924 script code.
    Script, "^[A-Z][a-z]{3}$",
    "Write a script code of four letters such as Latn.",
    |text| spelled(text, 4..=4, |first| first.is_ascii_uppercase(), |byte| byte.is_ascii_lowercase())
}
patterned! {
    /// A signed manifest in compact form: three parts of base64url.
    CompactJws, "^[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+$",
    "Write a JWS in compact form: three base64url parts with dots between them.",
    |text| text.split('.').count() == 3 && text.split('.').all(|part| {
        let letter = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        spelled(part, 1..=usize::MAX, letter, letter)
    })
}

fn spelled(
    text: &str,
    length: std::ops::RangeInclusive<usize>,
    first: impl Fn(u8) -> bool,
    rest: impl Fn(u8) -> bool,
) -> bool {
    let Some((&head, tail)) = text.as_bytes().split_first() else { return false };
    length.contains(&text.len()) && first(head) && tail.iter().all(|&byte| rest(byte))
}

// enforces: L6
/// At most so many code points of a text, cut between characters as people see them. A character
/// that goes on past the limit is left out whole; one as long as everything is cut.
pub fn cut(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let Some((limit, _)) = text.char_indices().nth(max) else { return text };
    let near = text.ceil_char_boundary(limit.saturating_add(1));
    let segmenter = GraphemeClusterSegmenter::new();
    let end = segmenter.segment_str(&text[..near]).take_while(|&end| end <= limit).last();
    &text[..end.filter(|&end| end > 0).unwrap_or(limit)]
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: T2, T20
    #[test]
    fn lengths_count_code_points_not_bytes() {
        let longest = "é".repeat(4096);
        assert!(Terse::new(longest.as_str()).is_ok());
        assert!(Terse::new(longest + "e").is_err());
        assert!(Terse::new("😀".repeat(4096)).is_ok());
        assert!(Terse::new("").is_err());
        assert!(Prose::new("").is_ok());
    }

    // covers: T11, T4, T6, T17
    #[test]
    fn patterned_names_follow_their_patterns() {
        assert!(ToolName::parse("bank.transfer-funds_2").is_ok());
        assert!(ToolName::parse("_x").is_ok());
        for wrong in ["", "2x", "a b", "a\n", "é", &"a".repeat(257)] {
            assert!(ToolName::parse(wrong).is_err(), "{wrong}");
        }
        assert!(ErrorCode::parse("TOOL_TIMEOUT").is_ok());
        assert!(ErrorCode::parse("A").is_err());
        assert!(CancellationReason::parse("user_left").is_ok());
        assert!(CancellationReason::parse("User").is_err());
        assert!(ContentType::parse("text/markdown").is_ok());
        assert!(ContentType::parse("text/").is_err());
        assert!(ContentType::parse("text/html; charset=utf-8").is_err());
        assert!(Script::parse("Latn").is_ok());
        assert!(CompactJws::parse("a.b_-.c").is_ok());
        assert!(CompactJws::parse("a.b").is_err());
        assert!(CompactJws::parse("a..c").is_err());
    }

    // covers: L6
    #[test]
    fn text_is_cut_between_characters_as_people_see_them() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("abcd", 3), "abc");
        assert_eq!(cut("äöüß", 4), "äöüß");
        assert_eq!(cut("ab👩‍💻d", 3), "ab");
        assert_eq!(cut("e\u{301}e\u{301}", 3), "e\u{301}");
        assert_eq!(cut(&"\u{301}".repeat(9), 3).chars().count(), 3);
    }
}
