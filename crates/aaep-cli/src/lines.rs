//! Lines for people, and strings for programs.

use std::fmt::{self, Write as _};
use std::io::{self, Write};

/// Words that come from a message or a file name, shown so that they cannot move the cursor, ring
/// the bell, break the line or turn the direction of the text.
pub(crate) struct Plain<'a>(pub(crate) &'a str);

impl fmt::Display for Plain<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(is_unsafe) {
            let Some(last) = part.chars().next_back().filter(|last| is_unsafe(*last)) else {
                f.write_str(part)?;
                continue;
            };
            f.write_str(&part[..part.len() - last.len_utf8()])?;
            write!(f, "{}", last.escape_unicode())?;
        }
        Ok(())
    }
}

/// JSON, shown so that nothing in its strings does any of that; it means the same.
pub(crate) struct Visible<'a>(pub(crate) &'a str);

impl fmt::Display for Visible<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for part in self.0.split_inclusive(is_unsafe) {
            let Some(last) = part.chars().next_back().filter(|last| is_unsafe(*last)) else {
                f.write_str(part)?;
                continue;
            };
            f.write_str(&part[..part.len() - last.len_utf8()])?;
            // All of them stand inside of strings, and none needs a surrogate.
            write!(f, "\\u{:04x}", u32::from(last))?;
        }
        Ok(())
    }
}

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(character, '\u{2060}'..='\u{206F}' | '\u{FEFF}')
}

/// Writes lines of JSON to somewhere, each made [`Visible`].
pub(crate) struct VisibleLines<'a, W: Write> {
    out: &'a mut W,
    line: Vec<u8>,
}

impl<'a, W: Write> VisibleLines<'a, W> {
    pub(crate) fn new(out: &'a mut W) -> Self {
        Self { out, line: Vec::new() }
    }
}

impl<W: Write> Write for VisibleLines<'_, W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        for part in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.line.extend(part);
            if let Some(line) = self.line.strip_suffix(b"\n") {
                writeln!(self.out, "{}", Visible(&String::from_utf8_lossy(line)))?;
                self.line.clear();
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

/// A count and its noun: `1 message`, `2 messages`.
pub(crate) fn count(number: u64, noun: &str) -> String {
    let mut text = format!("{number} {noun}");
    if number != 1 {
        let _ = text.write_char('s');
    }
    text
}

/// A JSON string, or `null`.
pub(crate) fn json_string(out: &mut impl Write, text: Option<&str>) -> io::Result<()> {
    write!(out, "{}", Visible(&serde_json::to_string(&text)?))
}

/// Members of a JSON object, each a string or `null`.
pub(crate) fn json_members(
    out: &mut impl Write,
    members: &[(&str, Option<&str>)],
) -> io::Result<()> {
    for (number, (name, value)) in members.iter().enumerate() {
        write!(out, "{}\"{name}\":", if number > 0 { "," } else { "" })?;
        json_string(out, *value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_of_a_message_cannot_move_the_cursor() {
        assert_eq!(Plain("/a\u{1b}[2Jb\n").to_string(), "/a\\u{1b}[2Jb\\u{a}");
        assert_eq!(Plain("\u{202e}abc").to_string(), "\\u{202e}abc");
        assert_eq!(Plain("größer, 日本").to_string(), "größer, 日本");
    }

    #[test]
    fn json_means_the_same_and_moves_nothing() {
        let said = serde_json::json!({ "by": "a\u{9b}2J\u{202e}\u{7f}\u{1b}é" });
        let shown = Visible(&said.to_string()).to_string();
        assert!(!shown.contains(is_unsafe), "{shown:?}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&shown).unwrap(), said);
        let mut out = Vec::new();
        let mut lines = VisibleLines::new(&mut out);
        for byte in format!("{said}\n{said}\n").bytes() {
            lines.write_all(&[byte]).unwrap();
        }
        assert_eq!(String::from_utf8(out).unwrap(), format!("{shown}\n{shown}\n"));
    }

    #[test]
    fn a_noun_follows_its_number() {
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(0, "message"), "0 messages");
    }
}
