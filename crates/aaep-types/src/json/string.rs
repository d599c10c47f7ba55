//! JSON strings: finding their end quickly, and decoding them on demand.

use std::borrow::Cow;

/// A JSON string as it stands in the text, without its quotes. Its escapes are known to be right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JsonString<'a> {
    /// The characters between the quotes, escapes and all.
    pub raw: &'a str,
    /// Whether there is any backslash in it.
    pub escaped: bool,
    /// Whether every byte of `raw` is ASCII.
    pub ascii: bool,
}

impl<'a> JsonString<'a> {
    /// True when the text is plain ASCII without escapes: it needs no decoding and no inspection.
    pub fn is_plain(&self) -> bool {
        self.ascii && !self.escaped
    }

    /// The string's value; borrowed unless it has escapes.
    ///
    /// A lone surrogate, which the scanner reports as a fault, becomes U+FFFD.
    #[inline]
    pub fn decode(&self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }
}

fn unescape(raw: &str) -> String {
    let mut out = String::with_capacity(raw.len());
    let mut rest = raw;
    while let Some(at) = rest.find('\\') {
        out.push_str(&rest[..at]);
        let escape = rest.as_bytes().get(at + 1).copied().unwrap_or(b'\\');
        let mut used = 2;
        match escape {
            b'n' => out.push('\n'),
            b't' => out.push('\t'),
            b'r' => out.push('\r'),
            b'b' => out.push('\u{8}'),
            b'f' => out.push('\u{c}'),
            b'u' => {
                let (character, length) = unicode_escape(&rest[at..]);
                out.push(character);
                used = length;
            }
            other => out.push(char::from(other)),
        }
        rest = rest.get(at + used..).unwrap_or("");
    }
    out.push_str(rest);
    out
}

/// Decodes `\uXXXX`, or a surrogate pair of two of them, at the start of `text`.
fn unicode_escape(text: &str) -> (char, usize) {
    let Some(first) = code_unit(text.as_bytes()) else { return (char::REPLACEMENT_CHARACTER, 6) };
    if let Some(character) = char::from_u32(first) {
        return (character, 6);
    }
    let pair = text.as_bytes().get(6..).and_then(code_unit).and_then(|second| join(first, second));
    match pair {
        Some(character) => (character, 12),
        None => (char::REPLACEMENT_CHARACTER, 6),
    }
}

/// The number in a `\uXXXX` escape at the start of `bytes`.
pub(super) fn code_unit(bytes: &[u8]) -> Option<u32> {
    let [b'\\', b'u', digits @ ..] = bytes else { return None };
    let digits = digits.first_chunk::<4>()?;
    digits.iter().try_fold(0, |sum, &digit| Some(sum * 16 + char::from(digit).to_digit(16)?))
}

/// The character that a high and a low surrogate stand for together.
pub(super) fn join(high: u32, low: u32) -> Option<char> {
    if !(0xD800..0xDC00).contains(&high) || !(0xDC00..0xE000).contains(&low) {
        return None;
    }
    char::from_u32(0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decode(raw: &str) -> Cow<'_, str> {
        JsonString { raw, escaped: raw.contains('\\'), ascii: raw.is_ascii() }.decode()
    }

    #[test]
    fn a_string_without_escapes_is_borrowed() {
        assert!(matches!(decode("nothing to decode"), Cow::Borrowed(_)));
    }

    #[test]
    fn every_escape_is_decoded() {
        assert_eq!(decode(r#"a\"b\\c\/d\n\t\r\b\f"#), "a\"b\\c/d\n\t\r\u{8}\u{c}");
        assert_eq!(decode(r"\u00e9\ud83d\ude00!"), "é😀!");
    }

    #[test]
    fn a_lone_surrogate_becomes_the_replacement_character() {
        assert_eq!(decode(r"\ud83d!"), "\u{fffd}!");
        assert_eq!(decode(r"\ude00\ud83d"), "\u{fffd}\u{fffd}");
    }
}
