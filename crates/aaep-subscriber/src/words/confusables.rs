//! Words that look like others: letters of one script that stand for those of another, and
//! characters that only look like ordinary letters. After UTS #39, with its tables, but judged word
//! by word so that ordinary text in several scripts raises no alarm.
//!
//! The rules; the page's script follows the same with [`table`], and `vectors/words.json` is run by
//! both:
//! 1. A word is a run of letters, digits, marks and joiners. Signs and digits have no script.
//! 2. A letter of another script than Latin is *alike* when its skeleton is ASCII letters and
//!    digits, marks aside. A character that is Latin or of no script, not ASCII, and not allowed in
//!    identifiers is *styled* on the same condition.
//! 3. A word is **mixed** when it has letters of two scripts, and of one of them, not Latin, only
//!    alike ones; where that script has no capitals (Lisu aside), only if one of them stands between
//!    two Latin letters. So `USBшка` and `使用Rust语言` are fine, and `p\u{430}ypal` is not.
//! 4. A word of one script is **alike** when it has at least two letters, all of them alike, the
//!    same is true of all letters of its script in all texts, and some text has Latin letters.
//! 5. A word is **styled** when it has at least two letters and one of them is styled; full-width
//!    letters count only beside ASCII ones.
//! 6. A number, a run of decimal digits and `. , ' ’ ٫ ٬ _`, has mixed **digits** when they are of
//!    different sets of ten: a row of decimal digits in Unicode consists of such sets. A Bengali
//!    four looks like an eight.

use std::collections::{BTreeMap, BTreeSet};

use icu_properties::CodePointMapData;
use icu_properties::props::GeneralCategory;
use unicode_script::UnicodeScript;
use unicode_security::{GeneralSecurityProfile, skeleton};

use super::safe::is_mark;

/// A word that looks like another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LookAlike {
    /// It mixes letters of two scripts, named by their four-letter codes.
    Mixed {
        /// The word as it was sent.
        word: String,
        /// The script of its look-alike letters.
        first: &'static str,
        /// Another script in it.
        second: &'static str,
    },
    /// All of it is in a script whose letters look like Latin ones here.
    Alike {
        /// The word as it was sent.
        word: String,
        /// The script's four-letter code.
        script: &'static str,
    },
    /// It has characters that only look like ordinary letters.
    Styled {
        /// The word as it was sent.
        word: String,
    },
    /// It is a number with digits of more than one kind.
    Digits {
        /// The number as it was sent.
        word: String,
    },
}

const LATIN: &str = "Latn";
const LISU: &str = "Lisu";
/// Signs, marks, and what is of no known script.
const NO_SCRIPT: [&str; 3] = ["Zinh", "Zyyy", "Zzzz"];

/// A letter, the code of its script, and how it looks.
type Letter = (char, &'static str, Looks);

/// What a letter is to a reader of Latin letters.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Looks {
    /// What it is.
    Itself,
    /// Like a Latin letter, from another script.
    Alike,
    /// Like a Latin letter, and not made for words.
    Styled,
}

/// The words in these texts that look like others, each once, in order. The texts are judged
/// together: a request's action and consequence.
pub fn look_alikes(texts: &[&str]) -> Vec<LookAlike> {
    if texts.iter().all(|text| text.is_ascii()) {
        return Vec::new();
    }
    let words: Vec<Word<'_>> = texts.iter().flat_map(|text| words(text)).collect();
    let has_latin = words.iter().any(|word| word.scripts.contains_key(LATIN));
    let honest: BTreeSet<&'static str> = words
        .iter()
        .flat_map(|word| &word.scripts)
        .filter(|(_, alike)| !**alike)
        .map(|(s, _)| *s)
        .collect();
    let mut seen = BTreeSet::new();
    let mut numbers = BTreeSet::new();
    let mixed_numbers = texts
        .iter()
        .flat_map(|text| text.split(|c| !is_of_a_number(c)))
        .filter(|number| has_mixed_digits(number) && numbers.insert(*number))
        .map(|number| LookAlike::Digits { word: number.to_owned() });
    words
        .iter()
        .filter(|word| !word.text.is_ascii() && seen.insert(word.text))
        .filter_map(|word| {
            let found = word.mixed().or_else(|| word.styled());
            found.or_else(|| word.confusable(&honest).filter(|_| has_latin))
        })
        .chain(mixed_numbers)
        .collect()
}

/// A word, and for each of its scripts whether all its letters look like Latin ones.
struct Word<'a> {
    text: &'a str,
    letters: Vec<Letter>,
    scripts: BTreeMap<&'static str, bool>,
}

fn words(text: &str) -> impl Iterator<Item = Word<'_>> {
    let of_a_word =
        |c: char| c.is_alphanumeric() || matches!(c, '\u{200c}' | '\u{200d}') || is_mark(c);
    text.split(move |c| !of_a_word(c)).filter(|word| !word.is_empty()).map(Word::new)
}

impl<'a> Word<'a> {
    fn new(text: &'a str) -> Self {
        let letters: Vec<_> = text
            .chars()
            .filter(|c| c.is_alphabetic() && !is_mark(*c))
            .map(|c| (c, c.script().short_name(), looks(c)))
            .collect();
        let mut scripts = BTreeMap::new();
        for &(_, script, looks) in &letters {
            if !NO_SCRIPT.contains(&script) {
                *scripts.entry(script).or_insert(true) &= looks == Looks::Alike;
            }
        }
        Self { text, letters, scripts }
    }

    fn mixed(&self) -> Option<LookAlike> {
        let deceives = |script: &str| {
            self.scripts.get(script) == Some(&true)
                && (has_capitals(script, &self.letters) || self.stands_between_latin(script))
        };
        let first = self.scripts.keys().copied().find(|script| deceives(script))?;
        let second = self.scripts.keys().copied().find(|script| *script != first)?;
        Some(LookAlike::Mixed { word: self.text.to_owned(), first, second })
    }

    fn stands_between_latin(&self, script: &str) -> bool {
        self.letters.windows(3).any(|three| {
            let at = |place: usize| three.get(place).map(|&(_, script, _)| script);
            at(0) == Some(LATIN) && at(1) == Some(script) && at(2) == Some(LATIN)
        })
    }

    fn styled(&self) -> Option<LookAlike> {
        let beside_ascii = self.text.bytes().any(|byte| byte.is_ascii_alphabetic());
        let counts = |c: char| beside_ascii || !matches!(c, '\u{ff21}'..='\u{ff5a}');
        let any = self.letters.iter().any(|&(c, _, looks)| looks == Looks::Styled && counts(c));
        (any && self.letters.len() > 1).then(|| LookAlike::Styled { word: self.text.to_owned() })
    }

    fn confusable(&self, honest: &BTreeSet<&'static str>) -> Option<LookAlike> {
        let (&script, &alike) = self.scripts.first_key_value()?;
        let whole = alike && self.scripts.len() == 1 && self.letters.len() > 1;
        (whole && !honest.contains(&script))
            .then(|| LookAlike::Alike { word: self.text.to_owned(), script })
    }
}

/// Whether the letters that a word has of a script are such as Latin ones: of an alphabet with
/// capitals, or made after them.
fn has_capitals(script: &str, letters: &[Letter]) -> bool {
    let cased = |c: char| c.is_lowercase() || c.is_uppercase();
    script == LISU || letters.iter().any(|&(c, of, _)| of == script && cased(c))
}

fn is_digit(character: char) -> bool {
    CodePointMapData::<GeneralCategory>::new().get(character) == GeneralCategory::DecimalNumber
}

fn is_of_a_number(character: char) -> bool {
    is_digit(character) || matches!(character, '.' | ',' | '\'' | '’' | '٫' | '٬' | '_')
}

fn has_mixed_digits(number: &str) -> bool {
    let mut zeros = number.chars().filter(|c| is_digit(*c)).map(zero_of);
    let first = zeros.next();
    zeros.any(|zero| Some(zero) != first)
}

/// The code point of the zero that belongs to a digit.
fn zero_of(digit: char) -> u32 {
    let digit = u32::from(digit);
    let is_digit = |code: &u32| char::from_u32(*code).is_some_and(is_digit);
    // At most fifty follow each other, the mathematical ones.
    let first = (0..=digit).rev().take_while(is_digit).last().unwrap_or(digit);
    first + (digit - first) / 10 * 10
}

fn looks(character: char) -> Looks {
    if character.is_ascii() {
        return Looks::Itself;
    }
    let script = character.script().short_name();
    let kind = match script {
        LATIN | "Zinh" | "Zyyy" => {
            if character.identifier_allowed() {
                return Looks::Itself;
            }
            Looks::Styled
        }
        _ => Looks::Alike,
    };
    let mut buffer = [0; 4];
    let mut letters = 0;
    for prototype in skeleton(character.encode_utf8(&mut buffer)) {
        if prototype.is_ascii_alphanumeric() {
            letters += 1;
        } else if !is_mark(prototype) {
            return Looks::Itself;
        }
    }
    if letters > 0 { kind } else { Looks::Itself }
}

/// What a client in another language needs to find the same: every alike letter by the four-letter
/// code of its script, and under `styled` every styled character, as a JSON object of strings. It
/// takes some milliseconds to make; keep it.
pub fn table() -> String {
    let mut by_name: BTreeMap<&'static str, String> = BTreeMap::new();
    for character in ('\u{80}'..=char::MAX).filter(|c| c.is_alphabetic() && !is_mark(*c)) {
        let name = match looks(character) {
            Looks::Itself => continue,
            Looks::Alike => character.script().short_name(),
            Looks::Styled => "styled",
        };
        by_name.entry(name).or_default().push(character);
    }
    serde_json::to_string(&by_name).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(texts: &[&str]) -> Vec<String> {
        let word = |found| match found {
            LookAlike::Mixed { word, first, second } => format!("{word} {first} {second}"),
            LookAlike::Alike { word, script } => format!("{word} {script}"),
            LookAlike::Styled { word } => format!("{word} styled"),
            LookAlike::Digits { word } => format!("{word} digits"),
        };
        look_alikes(texts).into_iter().map(word).collect()
    }

    // covers: D34
    #[test]
    fn words_that_mix_scripts_to_deceive_are_found() {
        assert_eq!(found(&["Log in to p\u{430}ypal.com"]), ["p\u{430}ypal Cyrl Latn"]);
        assert_eq!(found(&["send to g\u{3bf}\u{3bf}gle"]), ["g\u{3bf}\u{3bf}gle Grek Latn"]);
        assert_eq!(found(&["g\u{5e1}ogle"]), ["g\u{5e1}ogle Hebr Latn"]);
        assert_eq!(found(&["p\u{430}ypal p\u{430}ypal \u{440}\u{430}ypal"]).len(), 2);
    }

    // covers: D34
    #[test]
    fn words_all_in_look_alike_letters_are_found_beside_latin_ones() {
        assert_eq!(
            found(&["Log in to \u{430}\u{440}\u{440}\u{4cf}\u{435}.com"]),
            ["\u{430}\u{440}\u{440}\u{4cf}\u{435} Cyrl"]
        );
        assert_eq!(
            found(&["Pay \u{441}\u{43e}\u{441}\u{43e}", "It is gone."]),
            ["\u{441}\u{43e}\u{441}\u{43e} Cyrl"]
        );
    }

    // covers: D34
    #[test]
    fn letters_that_are_only_made_to_look_so_are_found() {
        assert_eq!(
            found(&["open \u{1d429}\u{1d41a}\u{1d432}pal"]),
            ["\u{1d429}\u{1d41a}\u{1d432}pal styled"]
        );
        assert_eq!(found(&["go to p\u{251}ypal"]), ["p\u{251}ypal styled"]);
        assert_eq!(found(&["\u{ff50}\u{ff41}ypal"]), ["\u{ff50}\u{ff41}ypal styled"]);
    }

    // covers: D34
    #[test]
    fn numbers_with_digits_of_several_kinds_are_found() {
        assert_eq!(found(&["Pay \u{9ea},000 euros"]), ["\u{9ea},000 digits"]);
        assert_eq!(found(&["Pay \u{116d0}\u{116da} euros"]).len(), 1);
        assert_eq!(
            found(&["共１２页，第3页 ١٥ 3.14 ৪০০ \u{116d9}\u{116d0}"]),
            Vec::<String>::new()
        );
    }

    // covers: D34
    #[test]
    fn ordinary_text_in_several_scripts_raises_no_alarm() {
        for text in [
            "使用Rust语言编写程序",
            "RustでWebサーバーを書く",
            "Rust로 서버를 작성",
            "Открой файл в GitHub с осью",
            "USBшка и IT-компания",
            "kΩ Δt μm λx",
            "مع واجهة الAPI الجديدة وAPI",
            "הקובץ ב-GitHub",
            "Größe naïve İstanbul ırmak Việt Nam Ẹ káàárọ̀",
            "ＡＢＣ と ABC",
            "एपीआईAPI",
            "1º 2ª",
            "оса",
        ] {
            assert_eq!(found(&[text]), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn the_table_holds_what_is_found() {
        let table: BTreeMap<String, String> = serde_json::from_str(&table()).unwrap();
        assert!(table["Cyrl"].contains('\u{430}') && table["Grek"].contains('\u{3bf}'));
        assert!(table["styled"].contains('𝐩') && !table["styled"].contains('ı'));
        assert!(!table.contains_key("Latn"));
        let size: usize = table.values().map(String::len).sum();
        assert!(size < 40_000, "{size}");
    }
}
