//! A text letter by letter, for who wants to be sure. Unicode's own names of characters are
//! English only; a script's name and a number can be said in every language.

use unicode_script::{Script, UnicodeScript};

use super::safe::{code, is_mark, safe};
use super::{Argument, SpokenLine, Words};

/// How many characters are spelled at a time; the rest is counted.
pub const MAX_SPELLED: usize = 1_000;

impl Words {
    /// A text letter by letter, each character a line: capitals and signs are named, and of what is
    /// not ASCII the script and the code point.
    pub fn spell(&self, text: &str) -> Vec<SpokenLine> {
        let mut lines: Vec<SpokenLine> =
            text.chars().take(MAX_SPELLED).map(|character| self.character(character)).collect();
        let rest = text.chars().skip(MAX_SPELLED).count();
        if rest > 0 {
            lines.push(self.phrase("left_out", &[("count", Argument::Count(rest as u64))]));
        }
        lines
    }

    /// A text letter by letter, each word a line: the characters stand one after the other, with
    /// `between` between them.
    pub fn spell_lines(&self, text: &str, between: &str) -> Vec<SpokenLine> {
        let mut lines = Vec::new();
        let mut line = SpokenLine::default();
        let spelled = self.spell(text);
        let ends = text.chars().map(char::is_whitespace).chain(std::iter::repeat(true));
        for (said, ends) in spelled.iter().zip(ends) {
            if !line.spans.is_empty() {
                line.ours(between);
            }
            line.append(said);
            if ends {
                lines.push(std::mem::take(&mut line));
            }
        }
        lines.extend(Some(line).filter(|line| !line.spans.is_empty()));
        lines
    }

    /// The name of a script, by its four-letter code.
    pub fn script(&self, code: &str) -> SpokenLine {
        let said = self.phrase(&format!("script.{code}"), &[]);
        if !said.to_string().starts_with("script.") {
            return said;
        }
        let name = Script::from_short_name(code).map_or("", |script| script.full_name());
        let mut said = SpokenLine::default();
        said.ours(&name.replace('_', " "));
        said
    }

    fn character(&self, character: char) -> SpokenLine {
        let mut buffer = [0; 4];
        let alone: &str = character.encode_utf8(&mut buffer);
        if character.is_whitespace() && !character.is_control() {
            return self.phrase("spell.space", &[]);
        }
        let direction_mark = matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}');
        let code = code(character);
        if direction_mark || character.is_control() || safe(alone).hidden > 0 {
            return self.phrase("spell.hidden", &[("code", Argument::Ours(&code))]);
        }
        // A mark needs something to sit on.
        let shown = if is_mark(character) { format!("◌{character}") } else { alone.to_owned() };
        let it = ("character", Argument::Theirs(&shown));
        if character.is_ascii_punctuation() {
            return self.phrase(&format!("sign.{:02X}", u32::from(character)), &[]);
        }
        if character.is_ascii() {
            let capital = character.is_ascii_uppercase();
            let key = if capital { "spell.capital" } else { "spell.plain" };
            return self.phrase(key, &[it]);
        }
        let script = self.script(character.script().short_name());
        let key = if character.is_uppercase() { "spell.capital_other" } else { "spell.other" };
        self.phrase(
            key,
            &[it, ("script", Argument::Phrase(&script)), ("code", Argument::Ours(&code))],
        )
    }
}
