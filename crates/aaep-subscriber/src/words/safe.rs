//! The agent's text made safe to show and to hear (decision D34).
//!
//! Nothing is dropped: a character that nobody would see or hear, or that would do something to a
//! terminal or to the order of what is shown, is written as its code, `[U+202E]`, and a row of the
//! same one as `[U+200B×500]`. Tabs and line ends become spaces. What scripts and emoji need stays:
//! joiners in the scripts that join and in emoji, variation selectors after what has variants,
//! direction marks, and isolates and embeddings that are closed where they were opened.
//!
//! The rules, in this order; the page's script follows the same, and `vectors/safe.json` is run by
//! both:
//! 1. Tab, line feed, carriage return, U+2028 and U+2029 become a space; CR LF becomes one.
//! 2. An embedding or isolate stays if it is closed and not nested deeper than [`MAX_NESTING`];
//!    openers and closers without a partner become codes. Overrides always do.
//! 3. U+200C and U+200D stay directly after a letter or mark of a joining script; U+200D stays
//!    directly after an emoji and before a pictograph. Elsewhere they become codes.
//! 4. A variation selector stays directly after an emoji, an ideograph, or a letter or mark of a
//!    joining script; elsewhere it becomes a code.
//! 5. Combining marks stay, up to [`MAX_MARKS`] in a row; what follows becomes codes.
//! 6. Control characters, private use, noncharacters, tags and everything else that Unicode calls
//!    default ignorable becomes a code; U+061C, U+200E and U+200F stay.

use std::borrow::Cow;
use std::fmt::Write;

use icu_properties::props::{
    BinaryProperty, DefaultIgnorableCodePoint, Emoji, ExtendedPictographic, GeneralCategory,
    GeneralCategoryGroup,
};
use icu_properties::{CodePointMapData, CodePointSetData};
use unicode_script::{Script, UnicodeScript};

/// How deep embeddings and isolates may stand in each other (UAX #9 stops there too).
pub const MAX_NESTING: usize = 125;

/// How many combining marks may follow each other (UAX #15 calls text with at most as many
/// stream-safe).
pub const MAX_MARKS: usize = 30;

/// Text that is safe, and how much had to be made visible.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Safe<'a> {
    /// The text.
    pub text: Cow<'a, str>,
    /// How many characters were hidden and are codes now.
    pub hidden: usize,
}

/// Makes text safe.
pub fn safe(text: &str) -> Safe<'_> {
    // enforces: D34
    if text.bytes().all(|byte| matches!(byte, b' '..=b'~')) {
        return Safe { text: Cow::Borrowed(text), hidden: 0 };
    }
    let scopes = unpaired(text);
    let mut scopes = scopes.iter().copied().peekable();
    let mut writer = SafeWriter::default();
    let mut marks = 0;
    let mut before = None;
    let mut rest = text.char_indices().peekable();
    while let Some((offset, character)) = rest.next() {
        let after = rest.peek().map(|&(_, next)| next);
        marks = if is_mark(character) { marks + 1 } else { 0 };
        if is_line_end_or_tab(character) {
            if !(character == '\r' && after == Some('\n')) {
                writer.keep(' ');
            }
        } else if scopes.next_if_eq(&offset).is_some()
            || marks > MAX_MARKS
            || is_hidden(before, character, after)
        {
            writer.code(character);
            before = None;
            continue;
        } else {
            writer.keep(character);
        }
        before = Some(character);
    }
    let (text, hidden) = writer.finish();
    Safe { text: Cow::Owned(text), hidden }
}

/// How a character that must not stand in a text is written.
pub fn code(character: char) -> String {
    format!("U+{:04X}", u32::from(character))
}

/// The text so far, and a code that may be repeated.
#[derive(Default)]
struct SafeWriter {
    text: String,
    hidden: usize,
    repeated: Option<(char, usize)>,
}

impl SafeWriter {
    fn keep(&mut self, character: char) {
        self.flush();
        self.text.push(character);
    }

    fn code(&mut self, character: char) {
        self.hidden += 1;
        match &mut self.repeated {
            Some((same, count)) if *same == character => *count += 1,
            _ => {
                self.flush();
                self.repeated = Some((character, 1));
            }
        }
    }

    fn flush(&mut self) {
        let Some((character, count)) = self.repeated.take() else { return };
        let code = code(character);
        // Writing to a string cannot fail.
        let _ = match count {
            1 => write!(self.text, "[{code}]"),
            _ => write!(self.text, "[{code}×{count}]"),
        };
    }

    fn finish(mut self) -> (String, usize) {
        self.flush();
        (self.text, self.hidden)
    }
}

/// Where openers and closers of embeddings and isolates stand that have no partner.
fn unpaired(text: &str) -> Vec<usize> {
    let mut open: Vec<(usize, bool)> = Vec::new();
    let mut alone = Vec::new();
    for (offset, character) in text.char_indices() {
        let (opens, isolate) = match character {
            '\u{202a}' | '\u{202b}' => (true, false),
            '\u{2066}'..='\u{2068}' => (true, true),
            '\u{202c}' => (false, false),
            '\u{2069}' => (false, true),
            _ => continue,
        };
        if opens && open.len() < MAX_NESTING {
            open.push((offset, isolate));
        } else if !opens && open.last().is_some_and(|&(_, same)| same == isolate) {
            open.pop();
        } else {
            alone.push(offset);
        }
    }
    alone.extend(open.into_iter().map(|(offset, _)| offset));
    alone.sort_unstable();
    alone
}

fn is_line_end_or_tab(character: char) -> bool {
    matches!(character, '\t' | '\n' | '\r' | '\u{2028}' | '\u{2029}')
}

/// Whether nobody would see or hear a character, or it would do harm, between these two.
fn is_hidden(before: Option<char>, character: char, after: Option<char>) -> bool {
    match character {
        '\u{200c}' => !before.is_some_and(joins),
        '\u{200d}' => {
            let emoji = before.is_some_and(is_emoji) && after.is_some_and(is_pictograph);
            !(emoji || before.is_some_and(joins))
        }
        '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}' => {
            !before.is_some_and(|before| has_variants(before) || joins(before))
        }
        // Direction marks are only as strong as a letter. Embeddings and isolates were looked at.
        '\u{61c}' | '\u{200e}' | '\u{200f}' => false,
        '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}' => false,
        '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => never_seen(character),
    }
}

fn never_seen(character: char) -> bool {
    if character.is_ascii() {
        return character.is_ascii_control();
    }
    let private = matches!(character,
        '\u{e000}'..='\u{f8ff}' | '\u{f0000}'..='\u{ffffd}' | '\u{100000}'..='\u{10fffd}');
    let noncharacter =
        matches!(character, '\u{fdd0}'..='\u{fdef}') || u32::from(character) & 0xfffe == 0xfffe;
    character.is_control() || private || noncharacter || has::<DefaultIgnorableCodePoint>(character)
}

fn has<P: BinaryProperty>(character: char) -> bool {
    CodePointSetData::new::<P>().contains(character)
}

/// Whether it can be joined to a pictograph: an emoji, its skin tone, or the sign that it is one.
fn is_emoji(character: char) -> bool {
    character == '\u{fe0f}' || (!character.is_ascii() && has::<Emoji>(character))
}

fn is_pictograph(character: char) -> bool {
    has::<ExtendedPictographic>(character)
}

fn has_variants(character: char) -> bool {
    has::<Emoji>(character) || character.script() == Script::Han
}

pub(crate) fn is_mark(character: char) -> bool {
    let category = CodePointMapData::<GeneralCategory>::new().get(character);
    GeneralCategoryGroup::Mark.contains(category)
}

/// Whether it is of a script in which letters join, so that joiners mean something.
fn joins(character: char) -> bool {
    use Script::*;
    matches!(
        character.script(),
        Adlam
            | Arabic
            | Balinese
            | Bengali
            | Devanagari
            | Gujarati
            | Gurmukhi
            | Hanifi_Rohingya
            | Javanese
            | Kannada
            | Khmer
            | Malayalam
            | Mandaic
            | Mongolian
            | Myanmar
            | Nko
            | Oriya
            | Phags_Pa
            | Sinhala
            | Syriac
            | Tamil
            | Telugu
            | Tibetan
    ) && (character.is_alphabetic() || is_mark(character))
}
