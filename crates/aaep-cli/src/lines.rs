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

fn is_unsafe(character: char) -> bool {
    character.is_control()
        || matches!(character, '\u{61C}' | '\u{200B}'..='\u{200F}' | '\u{2028}'..='\u{202E}')
        || matches!(character, '\u{2060}'..='\u{206F}' | '\u{FEFF}')
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
    Ok(serde_json::to_writer(out, &text)?)
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
    fn a_noun_follows_its_number() {
        assert_eq!(count(1, "message"), "1 message");
        assert_eq!(count(0, "message"), "0 messages");
    }
}
