//! Text that is heard otherwise than it is shown (decision D34): bidi overrides, invisible
//! characters, control and escape sequences; and the direction and composition of text.

use icu_normalizer::ComposingNormalizerBorrowed;
use std::borrow::Cow;
use std::fmt;

/// What a suspicious character does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Deception {
    /// Starts an escape sequence, with which a terminal can be made to do anything.
    Escape,
    /// A control character other than tab and line ends.
    Control,
    /// Turns the direction of what follows, whatever it is.
    Override,
    /// Opens or closes an embedding or isolate that has no other end.
    Unbalanced,
    /// Takes no room and says nothing.
    Invisible,
}

impl fmt::Display for Deception {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Deception::Escape => "Remove the escape sequence; it could drive a terminal.",
            Deception::Control => "Remove the control character; nobody hears it.",
            Deception::Override => "Remove the bidi override; the text would be shown in another order than it is heard.",
            Deception::Unbalanced => "Close every bidi embedding and isolate inside the text.",
            Deception::Invisible => "Remove the invisible character; nobody sees or hears it.",
        })
    }
}

/// A suspicious character and where it stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SuspiciousChar {
    /// Byte offset in the text.
    pub offset: usize,
    /// The character.
    pub character: char,
    /// What it does.
    pub kind: Deception,
}

/// The first suspicious character.
pub fn first(text: &str) -> Option<SuspiciousChar> {
    if is_harmless_ascii(text) { None } else { all(text).next() }
}

/// Whether there is nothing in it but ASCII that can be seen, tabs and line ends.
fn is_harmless_ascii(text: &str) -> bool {
    let harmless = |byte: u8| matches!(byte, b' '..=b'~' | b'\t' | b'\n' | b'\r');
    text.bytes().fold(true, |all, byte| all & harmless(byte))
}

/// Every suspicious character, in order; a bidi scope that is never closed comes last.
pub fn all(text: &str) -> impl Iterator<Item = SuspiciousChar> {
    let mut open: Vec<(usize, char)> = Vec::new();
    let mut unclosed = false;
    let mut found: Vec<SuspiciousChar> = Vec::new();
    for (offset, character) in text.char_indices() {
        let kind = match character {
            '\u{202a}' | '\u{202b}' | '\u{2066}'..='\u{2068}' => {
                // No real text nests deeper than this (UAX #9 stops at 125).
                unclosed |= open.len() >= 125;
                open.push((offset, character));
                None
            }
            '\u{202c}' | '\u{2069}' => close(&mut open, character).then_some(Deception::Unbalanced),
            _ => alone(character),
        };
        found.extend(kind.map(|kind| SuspiciousChar { offset, character, kind }));
        if unclosed {
            break;
        }
    }
    let unclosed = open.first().map(|&(offset, character)| SuspiciousChar {
        offset,
        character,
        kind: Deception::Unbalanced,
    });
    found.into_iter().chain(unclosed)
}

/// Closes the scope that `closer` belongs to; true when there was none.
fn close(open: &mut Vec<(usize, char)>, closer: char) -> bool {
    let isolate = closer == '\u{2069}';
    let fits = open.last().is_some_and(|&(_, opener)| (opener >= '\u{2066}') == isolate);
    if fits {
        open.pop();
    }
    !fits
}

/// What a character does by itself.
fn alone(character: char) -> Option<Deception> {
    match character {
        '\t' | '\n' | '\r' => None,
        '\u{1b}' | '\u{9b}' => Some(Deception::Escape),
        '\0'..='\u{1f}' | '\u{7f}'..='\u{9f}' => Some(Deception::Control),
        '\u{202d}' | '\u{202e}' => Some(Deception::Override),
        // The joiners U+200C and U+200D are not here: Persian, Hindi and family emoji need them.
        '\u{ad}'
        | '\u{34f}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180e}'
        | '\u{200b}'
        | '\u{2060}'..='\u{2065}'
        | '\u{206a}'..='\u{206f}'
        | '\u{3164}'
        | '\u{feff}'
        | '\u{ffa0}'
        | '\u{fff9}'..='\u{fffb}'
        | '\u{e0000}'..='\u{e007f}' => Some(Deception::Invisible),
        _ => None,
    }
}

/// Whether a character would not be seen or heard between these two, or would change how others
/// are.
pub fn is_hidden(sign: char, previous: Option<char>, next: Option<char>) -> bool {
    match sign {
        // Persian, Hindi and families of emoji need the joiners; between others they only hide.
        '\u{200c}' | '\u{200d}' => !(previous.is_some_and(joins) && next.is_some_and(joins)),
        // A space is a space.
        '\u{a0}' | '\u{202f}' | '\u{3000}' => false,
        '\u{fe00}'..='\u{fe0d}' | '\u{e0100}'..='\u{e01ef}' => true,
        // A mark belongs to the letter before it; without one it would change our quotes.
        _ if previous.is_none() && is_mark(sign) => true,
        _ => {
            let mut bytes = [0; 4];
            first(sign.encode_utf8(&mut bytes)).is_some() || !is_printable(sign)
        }
    }
}

fn joins(sign: char) -> bool {
    !sign.is_ascii() && !sign.is_whitespace() && !sign.is_control()
}

/// The standard library knows which characters have a form; after a letter it lets marks be.
fn is_printable(sign: char) -> bool {
    let mut text = String::from("a");
    text.push(sign);
    sign == '\'' || text.escape_debug().count() == 2
}

fn is_mark(sign: char) -> bool {
    is_printable(sign) && sign != '\'' && sign.escape_debug().count() > 1
}

/// Whether text has letters of both directions and nothing that tells a renderer how to order them.
pub fn runs_both_ways(text: &str) -> bool {
    if text.is_ascii() {
        return false;
    }
    let (mut left, mut right) = (false, false);
    for character in text.chars() {
        match character {
            '\u{61c}'
            | '\u{200e}'
            | '\u{200f}'
            | '\u{202a}'..='\u{202e}'
            | '\u{2066}'..='\u{2069}' => return false,
            _ if is_right_to_left(character) => right = true,
            _ if character.is_alphabetic() => left = true,
            _ => {}
        }
    }
    left && right
}

/// Letters of the scripts that are written from right to left.
fn is_right_to_left(character: char) -> bool {
    let block = matches!(character,
        '\u{590}'..='\u{8ff}' | '\u{fb1d}'..='\u{fdff}' | '\u{fe70}'..='\u{fefe}'
        | '\u{10800}'..='\u{10fff}' | '\u{1e800}'..='\u{1efff}');
    block && character.is_alphabetic()
}

/// Whether text is in normalisation form C.
pub fn is_composed(text: &str) -> bool {
    ComposingNormalizerBorrowed::new_nfc().is_normalized(text)
}

/// Text in normalisation form C (§11.3.2).
pub fn compose(text: &str) -> Cow<'_, str> {
    if text.is_ascii() {
        return Cow::Borrowed(text);
    }
    ComposingNormalizerBorrowed::new_nfc().normalize(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kinds(text: &str) -> Vec<Deception> {
        all(text).map(|found| found.kind).collect()
    }

    // covers: D34
    #[test]
    fn overrides_escapes_controls_and_invisibles_are_found() {
        assert_eq!(kinds("pay \u{202e}005$"), [Deception::Override]);
        assert_eq!(kinds("\u{1b}]0;title\u{7}"), [Deception::Escape, Deception::Control]);
        assert_eq!(kinds("a\u{200b}b\u{feff}"), [Deception::Invisible, Deception::Invisible]);
        assert_eq!(kinds("\u{9b}31m"), [Deception::Escape]);
    }

    // covers: D34
    #[test]
    fn ordinary_text_of_any_script_is_left_alone() {
        for text in ["two\nlines\tand a tab", "می‌خواهم", "👨‍👩‍👧", "क्‍ष", "שלום", "Ẹ káàárọ̀"]
        {
            assert_eq!(kinds(text), [], "{text}");
        }
    }

    // covers: D34
    #[test]
    fn isolates_must_be_closed_where_they_were_opened() {
        assert_eq!(kinds("send to \u{2068}שלום\u{2069} now"), []);
        assert_eq!(kinds("send to \u{2068}שלום now"), [Deception::Unbalanced]);
        assert_eq!(kinds("stray \u{2069}"), [Deception::Unbalanced]);
        assert_eq!(kinds("\u{202a}a\u{2069}\u{202c}"), [Deception::Unbalanced]);
        assert_eq!(kinds(&"\u{2066}".repeat(100_000)), [Deception::Unbalanced]);
    }

    // covers: L10
    #[test]
    fn mixed_direction_is_found_unless_the_text_says_how_to_order_it() {
        assert!(runs_both_ways("send שלום now"));
        assert!(!runs_both_ways("send \u{2068}שלום\u{2069} now"));
        assert!(!runs_both_ways("שלום 42!"));
        assert!(!runs_both_ways("only left"));
    }

    // covers: L5
    #[test]
    fn text_is_composed() {
        assert!(!is_composed("e\u{301}"));
        assert_eq!(compose("e\u{301}"), "é");
        assert!(matches!(compose("plain"), Cow::Borrowed(_)));
    }
}
