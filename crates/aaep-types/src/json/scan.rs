//! The scanner: one pass, no copies, bounded depth.

mod literals;

use super::fault::{JsonFault, JsonFaultKind};
use super::names::Names;
use super::string::JsonString;
use crate::limits::MAX_PROBLEMS;

/// A value as it stands in the text; its grammar has been checked.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Raw<'a> {
    /// `null`
    Null,
    /// `true` or `false`
    Bool(bool),
    /// A number, as written.
    Number(&'a str),
    /// A string, still escaped.
    String(JsonString<'a>),
    /// An array, brackets included.
    Array(&'a str),
    /// An object, braces included.
    Object(&'a str),
}

impl Raw<'_> {
    /// The value's JSON type, for sentences.
    pub fn type_name(&self) -> &'static str {
        match self {
            Raw::Null => "null",
            Raw::Bool(_) => "a boolean",
            Raw::Number(_) => "a number",
            Raw::String(_) => "a string",
            Raw::Array(_) => "an array",
            Raw::Object(_) => "an object",
        }
    }
}

/// Reads one JSON value after the other from a text.
#[derive(Debug)]
pub(super) struct Scanner<'a, 'm> {
    text: &'a str,
    bytes: &'a [u8],
    at: usize,
    max_depth: usize,
    depth: usize,
    /// Whether the text is all ASCII; then so is every string.
    ascii: bool,
    marks: &'m [u64],
    faults: Vec<JsonFault>,
    /// The first fault that makes the text ambiguous. Never left out, however many others there
    /// are: safety rests on it.
    ambiguity: Option<JsonFault>,
    /// The longest string so far, in bytes as written.
    longest: usize,
}

/// Ends the reading of a value. The fault is boxed: it is rare, and values stay small.
type Scan<T> = Result<T, Box<JsonFault>>;

impl<'a, 'm> Scanner<'a, 'm> {
    /// Starts at the beginning of `text`, whose marks are given; values nested deeper than
    /// `max_depth` are refused.
    pub(super) fn new(text: &'a str, marks: &'m [u64], max_depth: usize) -> Self {
        let bytes = text.as_bytes();
        let ascii = bytes.is_ascii();
        Self {
            text,
            bytes,
            at: 0,
            max_depth,
            depth: 0,
            ascii,
            marks,
            faults: Vec::new(),
            ambiguity: None,
            longest: 0,
        }
    }

    /// How far the scanner has read.
    pub(super) fn offset(&self) -> usize {
        self.at
    }

    /// How deep objects and arrays were nested so far.
    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// The longest string so far, in bytes as written.
    pub(super) fn longest_string(&self) -> usize {
        self.longest
    }

    /// Notes a fault that does not end the reading. Each has to be located later, so there is an
    /// end to it; but the first one that makes the text ambiguous is always among them.
    #[cold]
    fn note(&mut self, offset: usize, kind: JsonFaultKind) {
        let first = kind.is_ambiguous() && self.ambiguity.is_none();
        if first {
            self.ambiguity = Some(JsonFault { offset, kind });
        }
        if first || self.faults.len() < MAX_PROBLEMS {
            self.faults.push(JsonFault { offset, kind });
        }
    }

    /// The first fault that makes the text ambiguous.
    pub(super) fn ambiguity(&self) -> Option<&JsonFault> {
        self.ambiguity.as_ref()
    }

    /// The faults that did not end the reading.
    pub(super) fn into_faults(self) -> Vec<JsonFault> {
        self.faults
    }

    #[inline]
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    #[cold]
    pub(super) fn fatal(&self, kind: JsonFaultKind) -> Box<JsonFault> {
        Box::new(JsonFault { offset: self.at, kind })
    }

    /// What to say when the byte at hand is not the wanted one.
    #[cold]
    fn surprise(&self) -> Box<JsonFault> {
        self.fatal(if self.at >= self.text.len() {
            JsonFaultKind::Unfinished
        } else {
            JsonFaultKind::Unexpected
        })
    }

    #[inline]
    pub(super) fn skip_space(&mut self) {
        while let Some(byte) = self.peek() {
            // Nearly everything is beyond the space, and ends this with one comparison.
            if byte > b' ' || !matches!(byte, b' ' | b'\n' | b'\r' | b'\t') {
                break;
            }
            self.at += 1;
        }
    }

    #[inline]
    pub(super) fn expect(&mut self, byte: u8) -> Scan<()> {
        if self.peek() == Some(byte) {
            self.at += 1;
            Ok(())
        } else {
            Err(self.surprise())
        }
    }

    /// Whether the object or array at hand holds nothing. If it holds something, the scanner stands
    /// at its first name or element afterwards.
    pub(super) fn is_empty_container(&mut self) -> bool {
        let start = self.at;
        self.at += 1;
        self.skip_space();
        let empty = matches!(self.peek(), Some(b'}' | b']'));
        if empty {
            self.at = start;
        }
        empty
    }

    /// Reads the name of a member and the colon after it.
    #[inline(always)]
    pub(super) fn name(&mut self) -> Scan<JsonString<'a>> {
        if self.peek() != Some(b'"') {
            return Err(self.surprise());
        }
        let name = self.string()?;
        self.skip_space();
        self.expect(b':')?;
        self.skip_space();
        Ok(name)
    }

    /// Reads the value at hand, checking all of it.
    pub(super) fn value(&mut self) -> Scan<Raw<'a>> {
        self.value_at(0)
    }

    fn value_at(&mut self, depth: usize) -> Scan<Raw<'a>> {
        let start = self.at;
        match self.peek() {
            Some(b'"') => self.string().map(Raw::String),
            Some(b'{') => {
                self.object(depth)?;
                Ok(Raw::Object(&self.text[start..self.at]))
            }
            Some(b'[') => {
                self.array(depth, |_| {})?;
                Ok(Raw::Array(&self.text[start..self.at]))
            }
            Some(b't') => self.word("true").map(|()| Raw::Bool(true)),
            Some(b'f') => self.word("false").map(|()| Raw::Bool(false)),
            Some(b'n') => self.word("null").map(|()| Raw::Null),
            Some(b'-' | b'0'..=b'9') => self.number().map(Raw::Number),
            _ => Err(self.surprise()),
        }
    }

    fn enter(&mut self, depth: usize) -> Scan<usize> {
        let depth = depth + 1;
        if depth > self.max_depth {
            return Err(self.fatal(JsonFaultKind::TooDeep));
        }
        self.depth = self.depth.max(depth);
        Ok(depth)
    }

    /// Reads an object that lies `depth` levels below the outermost value, looking for names that
    /// stand twice.
    fn object(&mut self, depth: usize) -> Scan<()> {
        let mut names = Names::default();
        let mut twice = Vec::new();
        self.members(depth, |offset, name, _| {
            if !names.insert(name) {
                twice.push(offset);
            }
        })?;
        for offset in twice {
            self.note(offset, JsonFaultKind::DuplicateName);
        }
        Ok(())
    }

    /// Reads an object; `member` is given the offset of each name, the name and the value.
    #[inline]
    pub(super) fn members(
        &mut self,
        depth: usize,
        mut member: impl FnMut(usize, JsonString<'a>, Raw<'a>),
    ) -> Scan<()> {
        let depth = self.enter(depth)?;
        self.expect(b'{')?;
        self.skip_space();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(());
        }
        loop {
            let name_at = self.at;
            let name = self.name()?;
            // Most values are strings; these are read here, without the way through the match.
            let value = match self.peek() {
                Some(b'"') => Raw::String(self.string()?),
                _ => self.value_at(depth)?,
            };
            member(name_at, name, value);
            self.skip_space();
            if self.peek() == Some(b'}') {
                self.at += 1;
                return Ok(());
            }
            self.expect(b',')?;
            self.skip_space();
        }
    }

    pub(super) fn array(&mut self, depth: usize, mut element: impl FnMut(Raw<'a>)) -> Scan<()> {
        let depth = self.enter(depth)?;
        self.expect(b'[')?;
        self.skip_space();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(());
        }
        loop {
            element(self.value_at(depth)?);
            self.skip_space();
            if self.peek() == Some(b']') {
                self.at += 1;
                return Ok(());
            }
            self.expect(b',')?;
            self.skip_space();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::json::marks::Marks;

    fn scan(text: &str) -> (Result<Raw<'_>, Box<JsonFault>>, Vec<JsonFault>) {
        let marks = Marks::of(text.as_bytes());
        let mut scanner = Scanner::new(text, marks.words(), 8);
        let value = scanner.value();
        (value, scanner.into_faults())
    }

    fn fatal(text: &str) -> (usize, JsonFaultKind) {
        let fault = scan(text).0.expect_err(text);
        (fault.offset, fault.kind)
    }

    fn noted(text: &str) -> Vec<(usize, JsonFaultKind)> {
        let (value, faults) = scan(text);
        value.expect(text);
        faults.into_iter().map(|fault| (fault.offset, fault.kind)).collect()
    }

    #[test]
    fn plain_values_of_every_type_are_read() {
        for text in [
            "null",
            "true",
            "false",
            "0",
            "-0",
            "1.5e-3",
            "12",
            "\"\"",
            "\"a\\u0041\"",
            "[]",
            "{}",
            "[ 1 , [ ] ]",
            "{ \"a\" : { } , \"b\" : [ null ] }",
        ] {
            assert_eq!(noted(text), [], "{text}");
        }
    }

    // covers: E1
    #[test]
    fn what_is_not_json_is_refused_where_it_goes_wrong() {
        assert_eq!(fatal("{'a':1}"), (1, JsonFaultKind::Unexpected));
        assert_eq!(fatal("{\"a\":1,}"), (7, JsonFaultKind::Unexpected));
        assert_eq!(fatal("[1 2]"), (3, JsonFaultKind::Unexpected));
        assert_eq!(fatal("// no"), (0, JsonFaultKind::Unexpected));
        assert_eq!(fatal("NaN"), (0, JsonFaultKind::Unexpected));
        assert_eq!(fatal("trye"), (2, JsonFaultKind::Unexpected));
        assert_eq!(fatal("01"), (0, JsonFaultKind::Number));
        assert_eq!(fatal("-x"), (1, JsonFaultKind::Number));
        assert_eq!(fatal("1.x"), (2, JsonFaultKind::Number));
        assert_eq!(fatal("\"a\nb\""), (2, JsonFaultKind::Control));
        assert_eq!(fatal("\"\\x\""), (1, JsonFaultKind::Escape));
        assert_eq!(fatal("\"\\u12g4 \""), (1, JsonFaultKind::Escape));
    }

    #[test]
    fn every_cut_of_a_value_is_called_unfinished() {
        let whole = r#"{"a":[true,null,-1.5e3,"x\u00e9\n"],"b":{}}"#;
        for length in 1..whole.len() {
            let fault = scan(&whole[..length]).0.expect_err("a cut value is no value");
            // A number may end anywhere as far as its own grammar goes.
            assert_eq!(fault.kind, JsonFaultKind::Unfinished, "{}", &whole[..length]);
        }
    }

    // covers: E1
    #[test]
    fn a_name_that_stands_twice_is_noted_at_any_depth_and_spelling() {
        assert_eq!(noted(r#"{"a":1,"a":2}"#), [(7, JsonFaultKind::DuplicateName)]);
        assert_eq!(noted(r#"{"a":1,"\u0061":2}"#), [(7, JsonFaultKind::DuplicateName)]);
        assert_eq!(noted(r#"[{"x":{"b":1,"b":1}}]"#), [(13, JsonFaultKind::DuplicateName)]);
    }

    #[test]
    fn duplicates_are_found_among_thousands_of_names() {
        let mut text = String::from("{");
        for number in 0..5_000 {
            text.push_str(&format!("\"name{number}\":0,"));
        }
        text.push_str("\"name17\":1}");
        assert_eq!(noted(&text).len(), 1);
    }

    // covers: E22
    #[test]
    fn numbers_that_do_not_survive_as_a_double_are_noted() {
        assert_eq!(noted("9007199254740992"), []);
        assert_eq!(noted("-9007199254740992"), []);
        assert_eq!(noted("9007199254740993"), [(0, JsonFaultKind::UnsafeNumber)]);
        assert_eq!(noted("123456789012345678901234567890"), [(0, JsonFaultKind::UnsafeNumber)]);
        assert_eq!(noted("[1e999]"), [(1, JsonFaultKind::UnsafeNumber)]);
    }

    // covers: E1
    #[test]
    fn lone_surrogates_are_noted() {
        assert_eq!(noted(r#""\ud83d""#), [(1, JsonFaultKind::LoneSurrogate)]);
        assert_eq!(noted(r#""\ude00\ud83d\ude00""#), [(1, JsonFaultKind::LoneSurrogate)]);
        assert_eq!(noted(r#""\ud83d\ud83d\ude00""#), [(1, JsonFaultKind::LoneSurrogate)]);
    }

    // covers: E1
    #[test]
    fn what_makes_a_text_ambiguous_is_noted_behind_any_number_of_other_faults() {
        let unsafe_numbers = "9007199254740993,".repeat(10 * MAX_PROBLEMS);
        for (end, kind) in [
            (r#"{"a":1,"a":2}"#, JsonFaultKind::DuplicateName),
            (r#""\ud800""#, JsonFaultKind::LoneSurrogate),
        ] {
            let found = noted(&format!("[{unsafe_numbers}{end}]"));
            assert_eq!(found.len(), MAX_PROBLEMS + 1);
            assert_eq!(found[MAX_PROBLEMS].1, kind);
        }
        let duplicates = format!("[{}0]", r#"{"a":1,"a":2},"#.repeat(10 * MAX_PROBLEMS));
        assert_eq!(noted(&duplicates).len(), MAX_PROBLEMS);
    }

    #[test]
    fn depth_is_bounded() {
        assert_eq!(noted("[[[[[[[[]]]]]]]]"), []);
        assert_eq!(fatal("[[[[[[[[[]]]]]]]]]"), (8, JsonFaultKind::TooDeep));
        assert_eq!(fatal(&"[".repeat(100_000)), (8, JsonFaultKind::TooDeep));
    }

    #[test]
    fn depth_is_measured() {
        let text = r#"{"a":["four"]}"#;
        let marks = Marks::of(text.as_bytes());
        let mut scanner = Scanner::new(text, marks.words(), 8);
        scanner.value().expect("valid");
        assert_eq!(scanner.depth(), 2);
    }
}
