//! Arguments as lines of text: one `path: value` for each value. One pass, bounded output.

use std::borrow::Cow;
use std::fmt::Write;
use std::ops::ControlFlow;

use crate::cut;
use crate::json::{Raw, Step, walk};
use crate::{deception, secret};

/// The longest account of all arguments, in characters.
pub const MAX_CHARACTERS: usize = 2000;
/// The longest account of one value, in characters: a long one must not hide those after it.
pub const MAX_VALUE_CHARACTERS: usize = 500;
/// The longest path, and the longest name in it, in characters.
const MAX_PATH_CHARACTERS: usize = 160;
const MAX_NAME_CHARACTERS: usize = 60;
/// How deep arguments are followed.
const MAX_DEPTH: usize = 128;
/// Stands where something was left out.
const LEFT_OUT: &str = "…";

/// Arguments in a form that people can read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ReadableArguments {
    /// One `path: value` line for each value.
    pub text: String,
    /// Whether something was left out.
    pub shortened: bool,
    /// Whether a secret was taken out.
    pub redacted: bool,
}

impl ReadableArguments {
    // enforces: I31, T14, D34
    /// Reads a JSON text; an empty one means that there are no arguments. The work is linear in its
    /// length. What is not sound JSON is shown as it stands.
    pub fn of(arguments: &str) -> Self {
        let text = arguments.trim_matches([' ', '\t', '\n', '\r']);
        let mut lines = Lines::default();
        if !text.is_empty() && walk(text, MAX_DEPTH, |path, leaf| lines.add(path, leaf)).is_err() {
            lines = Lines::default();
            lines.value(text);
        }
        lines.finish()
    }
}

/// Lines in the making.
#[derive(Default)]
struct Lines {
    text: String,
    characters: usize,
    shortened: bool,
    redacted: bool,
}

impl Lines {
    fn add(&mut self, path: &[Step<'_>], leaf: Raw<'_>) -> ControlFlow<()> {
        if path.is_empty() && matches!(leaf, Raw::Object(_) | Raw::Null) {
            return ControlFlow::Continue(());
        }
        if self.characters > MAX_CHARACTERS {
            self.shortened = true;
            return ControlFlow::Break(());
        }
        if !self.text.is_empty() {
            self.push("\n");
        }
        if !path.is_empty() {
            self.path(path);
            self.push(": ");
        }
        let secret = path.iter().rev().find_map(|step| match step {
            Step::Name(name) => secret::names_secret(&name.decode()),
            Step::Index(_) => None,
        });
        match (secret, leaf) {
            (_, Raw::Null) => self.push("null"),
            (_, Raw::Bool(value)) => self.push(if value { "true" } else { "false" }),
            (Some(kind), _) => {
                self.redacted = true;
                self.push(kind.replacement());
            }
            (None, Raw::Object(_)) => self.push("{}"),
            (None, Raw::Array(_)) => self.push("[]"),
            (None, Raw::Number(number)) => self.value(number),
            (None, Raw::String(string)) => self.value(&string.decode()),
        }
        ControlFlow::Continue(())
    }

    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.characters += text.chars().count();
    }

    /// `to.name`, `files[3].path`; a name that is no plain word stands in quotes, so that it cannot
    /// pass for a path or for a value.
    fn path(&mut self, path: &[Step<'_>]) {
        let mut out = String::new();
        for step in path {
            match step {
                Step::Index(index) => {
                    // Writing to a string cannot fail.
                    let _ = write!(out, "[{index}]");
                }
                Step::Name(name) => {
                    if !out.is_empty() {
                        out.push('.');
                    }
                    out.push_str(&self.name(&name.decode()));
                }
            }
            if out.chars().count() > MAX_PATH_CHARACTERS {
                self.shortened = true;
                out.push_str(LEFT_OUT);
                break;
            }
        }
        self.push(&out);
    }

    fn name<'n>(&mut self, name: &'n str) -> Cow<'n, str> {
        let plain = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '_' | '-');
        if (1..=MAX_NAME_CHARACTERS).contains(&name.len()) && name.chars().all(plain) {
            return Cow::Borrowed(name);
        }
        let shown = self.visible(name, MAX_NAME_CHARACTERS);
        Cow::Owned(format!("\"{}\"", shown.replace('"', "[U+0022]")))
    }

    fn value(&mut self, text: &str) {
        let redacted = secret::redact(text);
        self.redacted |= redacted != text;
        let shown = self.visible(&redacted, MAX_VALUE_CHARACTERS);
        // Nothing, or space at either end, would not be seen.
        let bare = !shown.is_empty() && shown.trim() == shown;
        self.push(&if bare { shown } else { format!("\"{shown}\"") });
    }

    // enforces: D34
    /// The beginning of a text, with everything in it visible.
    fn visible(&mut self, text: &str, most: usize) -> String {
        let mut out = String::new();
        let mut left = most;
        let mut before = None;
        let mut rest = text.chars().peekable();
        while let Some(sign) = rest.next() {
            let hidden = matches!(sign, '\t' | '\n' | '\r')
                || deception::is_hidden(sign, before, rest.peek().copied());
            let needs = if hidden { 8 } else { 1 };
            if left < needs {
                self.shortened = true;
                out.push_str(LEFT_OUT);
                break;
            }
            left -= needs;
            if hidden {
                let _ = write!(out, "[U+{:04X}]", u32::from(sign));
            } else {
                out.push(sign);
            }
            before = Some(sign);
        }
        out
    }

    // enforces: T14
    fn finish(mut self) -> ReadableArguments {
        // What is no secret by itself may be one beside its name.
        let redacted = secret::redact(&self.text);
        self.redacted |= redacted != self.text;
        let mut text = redacted.into_owned();
        if text.char_indices().nth(MAX_CHARACTERS).is_some() {
            // enforces: L6
            text.truncate(cut(&text, MAX_CHARACTERS - 1).len());
            text.push_str(LEFT_OUT);
            self.shortened = true;
        }
        ReadableArguments { text, shortened: self.shortened, redacted: self.redacted }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: L6, I22
    #[test]
    fn a_long_account_is_cut_between_characters_as_people_see_them() {
        // Each value is cut by itself; together they are too long.
        let value = "e\u{301}".repeat(200);
        let list: Vec<&str> = vec![&value; 20];
        let readable = ReadableArguments::of(&serde_json::to_string(&list).unwrap());
        let text = &readable.text;
        assert!(text.chars().count() <= MAX_CHARACTERS, "{}", text.chars().count());
        assert!(readable.shortened);
        let kept = text.strip_suffix(LEFT_OUT).unwrap();
        assert!(kept.ends_with('\u{301}') || !kept.ends_with('e'), "a letter lost its accent");
    }

    fn text(json: &str) -> String {
        ReadableArguments::of(json).text
    }

    // covers: I31
    #[test]
    fn every_value_has_a_line_with_its_path() {
        assert_eq!(text(r#"{"euros":"9001","to":"Eve"}"#), "euros: 9001\nto: Eve");
        assert_eq!(
            text(r#"{"a":{"b":[1,{"c":true}],"d":{}},"e":[],"f":null,"g":1e3}"#),
            "a.b[0]: 1\na.b[1].c: true\na.d: {}\ne: []\nf: null\ng: 1e3"
        );
        assert_eq!(text(r#"["x","y"]"#), "[0]: x\n[1]: y");
        assert_eq!(text("\"only\""), "only");
        assert_eq!(text(""), "");
        assert_eq!(text(" {} "), "");
        assert_eq!(text("null"), "");
        assert_eq!(text(r#"{"a":"","b":" x"}"#), "a: \"\"\nb: \" x\"");
        assert_eq!(text("rm -r build"), "rm -r build");
    }

    // covers: I31, D34
    #[test]
    fn no_value_and_no_name_can_pass_for_another_line() {
        assert_eq!(text(r#"{"note":"lunch\nto: Bob"}"#), "note: lunch[U+000A]to: Bob");
        assert_eq!(text(r#"{"to: Bob, x":1}"#), "\"to: Bob, x\": 1");
        assert_eq!(text(r#"{"a.b":1,"a\"b":2,"":3}"#), "\"a.b\": 1\n\"a[U+0022]b\": 2\n\"\": 3");
        assert_eq!(
            text("{\"to\":\"\u{202e}evE\u{200b}\\u001b\"}"),
            "to: [U+202E]evE[U+200B][U+001B]"
        );
    }

    #[test]
    fn letters_of_every_script_stay_as_they_are() {
        for word in ["日本語", "Ẹ káàárọ̀", "👨‍👩‍👧", "क्‍ष", "аpple"]
        {
            assert_eq!(text(&format!("{{\"to\":\"{word}\"}}")), format!("to: {word}"));
        }
    }

    // covers: T14
    #[test]
    fn secrets_are_taken_out_and_that_is_said() {
        let readable = ReadableArguments::of(
            r#"{"password":"x","api_key":{"a":[1]},"note":"card 4111 1111 1111 1111","secret":true}"#,
        );
        assert_eq!(
            readable.text,
            "password: [password removed]\napi_key.a[0]: [key removed]\nnote: card [card number removed]\nsecret: true"
        );
        assert!(readable.redacted && !readable.shortened);
        assert!(!ReadableArguments::of(r#"{"a":1}"#).redacted);
    }

    // covers: I31, I22
    #[test]
    fn a_hostile_argument_neither_takes_all_the_room_nor_hides_those_after_it() {
        let long = format!(r#"{{"note":"{}","to":"Eve"}}"#, "x".repeat(200_000));
        let readable = ReadableArguments::of(&long);
        assert!(readable.text.ends_with("x…\nto: Eve"), "{}", readable.text);
        assert!(readable.shortened && readable.text.chars().count() < 600);
        let many: Vec<String> = (0..1_000_000).map(|n| format!("\"k{n}\":{n}")).collect();
        let readable = ReadableArguments::of(&format!("{{{}}}", many.join(",")));
        assert!(readable.shortened && readable.text.chars().count() <= MAX_CHARACTERS);
        assert!(readable.text.ends_with('…'));
        let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
        let readable = ReadableArguments::of(&deep);
        assert!(readable.shortened && readable.text.chars().count() <= MAX_CHARACTERS);
        let names = format!("{{{}1{}}}", "\"n\":{".repeat(60), "}".repeat(60));
        assert!(ReadableArguments::of(&names).text.chars().count() <= MAX_CHARACTERS);
        let hidden = format!("[\"{}\"]", "\u{200b}".repeat(80_000));
        assert!(ReadableArguments::of(&hidden).text.chars().count() <= MAX_CHARACTERS);
        // A card number at the end of the room is not cut into something that no longer looks like
        // one.
        let edge = format!(r#"{{"note":"{}4111 1111 1111 1111"}}"#, "x ".repeat(245));
        let readable = ReadableArguments::of(&edge);
        assert!(readable.redacted && !readable.text.contains("4111"), "{}", readable.text);
    }
}
