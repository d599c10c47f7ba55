//! The fixed phrases, read once from the message files.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use icu_locale_core::Locale;
use icu_plurals::{PluralCategory, PluralRules};
use serde_json::Value;

use super::direction::Direction;

/// A phrase, cut where arguments stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Words.
    Words(String),
    /// The place of the argument of this name.
    Argument(String),
}

/// A message: one phrase, or one for each plural category.
#[derive(Clone, Debug)]
pub(crate) enum Message {
    Always(Vec<Part>),
    Plural { by_category: BTreeMap<&'static str, Vec<Part>>, other: Vec<Part> },
}

/// All phrases of one language.
#[derive(Debug)]
pub(crate) struct Catalogue {
    /// Its tag.
    pub(crate) language: &'static str,
    /// Its name in itself.
    pub(crate) name: String,
    /// How it is written.
    pub(crate) direction: Direction,
    /// Whether no speaker has read it yet.
    pub(crate) by_machine: bool,
    texts: Vec<&'static str>,
    /// Read when somebody wants to hear this language.
    messages: OnceLock<BTreeMap<String, Message>>,
}

/// Every language; English is first, and is there even when the others are not.
pub(crate) fn catalogues() -> &'static [Catalogue] {
    static ALL: OnceLock<Vec<Catalogue>> = OnceLock::new();
    ALL.get_or_init(|| {
        let mut all: Vec<Catalogue> = Vec::new();
        // The page's own phrases are for its script, and may use the same keys as the terminal's.
        for &(language, file, text) in files().iter().filter(|(_, file, _)| *file != "page.json") {
            if all.last().is_none_or(|last| last.language != language) {
                all.push(Catalogue::empty(language));
            }
            if let Some(last) = all.last_mut() {
                last.read(file, text);
            }
        }
        all
    })
}

impl Catalogue {
    fn empty(language: &'static str) -> Self {
        let (name, direction) = (language.to_owned(), Direction::LeftToRight);
        Self {
            language,
            name,
            direction,
            by_machine: false,
            texts: Vec::new(),
            messages: OnceLock::new(),
        }
    }

    /// Takes in a file.
    fn read(&mut self, file: &str, text: &'static str) {
        if file != "language.json" {
            return self.texts.push(text);
        }
        let Ok(Value::Object(members)) = serde_json::from_str(text) else { return };
        let member = |name: &str| members.get(name).and_then(Value::as_str);
        if let Some(name) = member("name") {
            name.clone_into(&mut self.name);
        }
        if member("direction") == Some("rtl") {
            self.direction = Direction::RightToLeft;
        }
        self.by_machine = member("written_by") == Some("machine");
    }

    /// The files are ours, and a test reads them all: what cannot be read is left out here.
    fn messages(&self) -> &BTreeMap<String, Message> {
        self.messages.get_or_init(|| {
            let files = self.texts.iter().filter_map(|text| serde_json::from_str(text).ok());
            let members = files.flat_map(|members: serde_json::Map<String, Value>| members);
            members.filter_map(|(key, value)| Some((key, message(&value)?))).collect()
        })
    }

    /// The phrase for a key, of the plural category that `count` has.
    pub(crate) fn find(&self, key: &str, count: Option<u64>) -> Option<&[Part]> {
        Some(match self.messages().get(key)? {
            Message::Always(parts) => parts,
            Message::Plural { by_category, other } => {
                let category = count.map_or("other", |count| category(self.language, count));
                by_category.get(category).unwrap_or(other)
            }
        })
    }
}

/// The plural category of a number in a language.
pub(crate) fn category(language: &str, count: u64) -> &'static str {
    let rules = Locale::try_from_str(language)
        .ok()
        .and_then(|locale| PluralRules::try_new_cardinal(locale.into()).ok());
    let category = rules.map_or(PluralCategory::Other, |rules| rules.category_for(count));
    name(category)
}

fn name(category: PluralCategory) -> &'static str {
    match category {
        PluralCategory::Zero => "zero",
        PluralCategory::One => "one",
        PluralCategory::Two => "two",
        PluralCategory::Few => "few",
        PluralCategory::Many => "many",
        _ => "other",
    }
}

fn message(value: &Value) -> Option<Message> {
    match value {
        Value::String(text) => Some(Message::Always(parts(text))),
        Value::Object(members) => {
            let mut by_category = BTreeMap::new();
            for category in PluralCategory::all().map(name) {
                if let Some(text) = members.get(category).and_then(Value::as_str) {
                    by_category.insert(category, parts(text));
                }
            }
            let other = by_category.get("other")?.clone();
            Some(Message::Plural { by_category, other })
        }
        _ => None,
    }
}

/// Cuts a phrase: `{name}` is an argument, `{{` and `}}` are braces.
pub(crate) fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    let mut words = String::new();
    let mut rest = text.chars();
    while let Some(character) = rest.next() {
        let tail = rest.as_str();
        match character {
            '{' | '}' if tail.starts_with(character) => {
                words.push(character);
                rest.next();
            }
            '{' => {
                let Some((name, after)) = tail.split_once('}') else {
                    words.push(character);
                    continue;
                };
                if !words.is_empty() {
                    parts.push(Part::Words(std::mem::take(&mut words)));
                }
                parts.push(Part::Argument(name.to_owned()));
                rest = after.chars();
            }
            _ => words.push(character),
        }
    }
    if !words.is_empty() {
        parts.push(Part::Words(words));
    }
    parts
}

macro_rules! files {
    ($($language:literal: $($name:literal),*;)*) => {
        &[$($(
            ($language, $name, include_str!(concat!("../../messages/", $language, "/", $name))),
        )*)*]
    };
}

/// Every file: its language, its name and its text. English is first.
pub fn files() -> &'static [(&'static str, &'static str, &'static str)] {
    files! {
        "en": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "ar": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "zh": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "fr": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "de": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "es": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "pt": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "hi": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "yo": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "ha": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
        "ig": "language.json", "said.json", "rare.json", "terminal.json", "page.json";
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let part = |part| match part {
            Part::Words(words) => words,
            Part::Argument(name) => format!("<{name}>"),
        };
        parts(text).into_iter().map(part).collect()
    }

    #[test]
    fn a_message_is_cut_at_its_arguments() {
        assert_eq!(shown("Step {step} of {total}."), "Step <step> of <total>.");
        assert_eq!(shown("{{not}} {this}"), "{not} <this>");
        assert_eq!(shown("left { open"), "left { open");
        assert_eq!(shown("a } alone"), "a } alone");
        assert_eq!(shown(""), "");
    }

    #[test]
    fn a_number_has_the_category_of_its_language() {
        let of = |language, counts: &[u64]| -> Vec<&str> {
            counts.iter().map(|count| category(language, *count)).collect()
        };
        assert_eq!(of("en", &[0, 1, 2, 101]), ["other", "one", "other", "other"]);
        assert_eq!(
            of("ar", &[0, 1, 2, 3, 10, 11, 99, 100, 102, 103]),
            ["zero", "one", "two", "few", "few", "many", "many", "other", "other", "few"]
        );
        assert_eq!(of("zh", &[0, 1, 2]), ["other", "other", "other"]);
        assert_eq!(of("no such language", &[1]), ["other"]);
    }
}
