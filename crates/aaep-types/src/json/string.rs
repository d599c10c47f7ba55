//! JSON strings: finding their end quickly, and decoding them when somebody asks.

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
    pub fn decode(&self) -> Cow<'a, str> {
        if self.escaped { Cow::Owned(unescape(self.raw)) } else { Cow::Borrowed(self.raw) }
    }
}

/// Bytes of `raw` that a string scan has to look at: a quote, a backslash, a control character.
/// Returns how many bytes precede the first of them, and whether all of those were ASCII.
pub(super) fn plain_run(bytes: &[u8]) -> (usize, bool) {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x8080_8080_8080_8080;
    // The classic "is any byte of this word zero" trick. A false positive can only stand above a
    // true one, so the lowest bit that is set is always exact.
    const fn zero_bytes(word: u64) -> u64 {
        word.wrapping_sub(ONES) & !word & HIGH
    }
    let mut seen = 0u64;
    let mut length = 0;
    let (words, rest) = bytes.as_chunks::<8>();
    for chunk in words {
        let word = u64::from_le_bytes(*chunk);
        let stops = zero_bytes(word ^ (ONES * b'"' as u64))
            | zero_bytes(word ^ (ONES * b'\\' as u64))
            | (word.wrapping_sub(ONES * 0x20) & !word & HIGH);
        if stops != 0 {
            let before = stops.trailing_zeros() / 8;
            let kept = word & !(u64::MAX << (before * 8));
            return (length + before as usize, (seen | kept) & HIGH == 0);
        }
        seen |= word;
        length += 8;
    }
    let mut ascii = seen & HIGH == 0;
    for &byte in rest {
        if byte == b'"' || byte == b'\\' || byte < 0x20 {
            break;
        }
        ascii &= byte < 0x80;
        length += 1;
    }
    (length, ascii)
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

    #[test]
    fn a_run_ends_at_the_first_byte_that_matters_wherever_it_stands() {
        for stop in [b'"', b'\\', 0x00, 0x1f, b'\n'] {
            for before in 0..40 {
                let mut bytes = vec![b'x'; before];
                bytes.push(stop);
                bytes.extend_from_slice(b"\xc3\xa9 tail \" \\");
                assert_eq!(plain_run(&bytes), (before, true), "{stop} after {before}");
            }
        }
    }

    #[test]
    fn a_run_knows_whether_it_is_ascii() {
        let text = "twelve bytesé and more";
        assert_eq!(plain_run(text.as_bytes()), (text.len(), false));
        assert_eq!(plain_run(b"abcdefg\"\xc3\xa9"), (7, true));
        assert_eq!(plain_run("é\"".as_bytes()), (2, false));
        assert_eq!(plain_run(b"\x7f\x7f\x7f\x7f\x7f\x7f\x7f\x7f"), (8, true));
    }
}
