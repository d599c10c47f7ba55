//! Compact JSON output.

use super::scan::Raw;
use std::fmt::{self, Write as _};

/// Appends compact JSON to a string.
#[derive(Debug, Default)]
pub struct Writer {
    out: String,
}

impl Writer {
    /// An empty output.
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty output with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        Self { out: String::with_capacity(bytes) }
    }

    /// What has been written.
    pub fn finish(self) -> String {
        self.out
    }

    /// Opens an object, an array, or anything else that one character opens.
    pub fn open(&mut self, bracket: char) {
        self.out.push(bracket);
    }

    /// Closes what was opened, dropping the comma before it.
    pub fn close(&mut self, bracket: char) {
        if self.out.ends_with(',') {
            self.out.pop();
        }
        self.out.push(bracket);
    }

    /// Starts a member.
    pub fn name(&mut self, name: &str) {
        self.string(name);
        self.out.push(':');
    }

    /// Ends a member or an element.
    pub fn comma(&mut self) {
        self.out.push(',');
    }

    /// A string with its quotes.
    pub fn string(&mut self, text: &str) {
        write_string(&mut self.out, text);
    }

    /// Something that shows itself as JSON, such as a number; in a string, what needs no escape.
    pub fn display(&mut self, value: impl fmt::Display) {
        // Writing into a string cannot fail.
        let _ = write!(self.out, "{value}");
    }

    /// Text that is JSON already.
    pub fn json(&mut self, text: &str) {
        self.out.push_str(text);
    }

    /// A value as it stood in the text it came from.
    pub fn raw(&mut self, value: Raw<'_>) {
        match value {
            Raw::Null => self.json("null"),
            Raw::Bool(true) => self.json("true"),
            Raw::Bool(false) => self.json("false"),
            Raw::Number(text) | Raw::Array(text) | Raw::Object(text) => self.json(text),
            Raw::String(string) => {
                self.out.push('"');
                self.out.push_str(string.raw);
                self.out.push('"');
            }
        }
    }
}

/// Appends `text` to `out` as a JSON string.
///
/// Besides what JSON demands, the line and paragraph separators and DEL are escaped, so that one
/// message always stays on one line, however a reader splits lines.
pub fn write_string(out: &mut String, text: &str) {
    out.push('"');
    if is_plain(text) {
        out.push_str(text);
        out.push('"');
        return;
    }
    let mut plain = 0;
    for (at, character) in text.char_indices() {
        let escape = match character {
            '"' => "\\\"",
            '\\' => "\\\\",
            '\n' => "\\n",
            '\r' => "\\r",
            '\t' => "\\t",
            '\0'..='\u{1f}' | '\u{7f}' | '\u{85}' | '\u{2028}' | '\u{2029}' => "",
            _ => continue,
        };
        out.push_str(&text[plain..at]);
        if escape.is_empty() {
            out.push_str(&format!("\\u{:04x}", u32::from(character)));
        } else {
            out.push_str(escape);
        }
        plain = at + character.len_utf8();
    }
    out.push_str(&text[plain..]);
    out.push('"');
}

/// Whether nothing in a text can need an escape. Looking at every byte without stopping lets the
/// compiler look at many at once.
fn is_plain(text: &str) -> bool {
    text.bytes().fold(true, |plain, byte| {
        // U+0085 and the separators U+2028 and U+2029 begin with these two bytes.
        let lead = (byte == 0xC2) | (byte == 0xE2);
        plain & !((byte < 0x20) | (byte == b'"') | (byte == b'\\') | (byte == 0x7f) | lead)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_escaped_so_that_they_stay_on_one_line() {
        let mut out = String::new();
        write_string(&mut out, "a\"b\\c\nd\u{1}\u{2028}é");
        assert_eq!(out, "\"a\\\"b\\\\c\\nd\\u0001\\u2028é\"");
    }

    #[test]
    fn closing_drops_the_last_comma() {
        let mut writer = Writer::new();
        writer.open('{');
        writer.name("a");
        writer.json("1");
        writer.comma();
        writer.close('}');
        assert_eq!(writer.finish(), "{\"a\":1}");
    }
}
