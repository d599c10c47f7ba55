//! The message files of all languages say the same things.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // a test may look into the source directory

use std::collections::{BTreeMap, BTreeSet};

use aaep_subscriber::words;
use icu_locale_core::Locale;
use icu_plurals::PluralRules;
use serde_json::Value;

type Messages = serde_json::Map<String, Value>;

/// Every file of a language, by name.
fn files(language: &str) -> BTreeMap<&'static str, Messages> {
    let of_language = words::files().iter().filter(|(tag, ..)| *tag == language);
    of_language.map(|(_, name, text)| (*name, serde_json::from_str(text).unwrap())).collect()
}

fn languages() -> BTreeSet<&'static str> {
    words::files().iter().map(|(language, ..)| *language).collect()
}

/// The names in braces; what is in double braces does not count.
fn placeholders(text: &str) -> BTreeSet<String> {
    let plain = text.replace("{{", "").replace("}}", "");
    let names = plain.split('{').skip(1).map(|rest| rest.split_once('}').expect(text).0);
    names.map(str::to_owned).collect()
}

/// The strings of a message, each with its plural category.
fn forms(message: &Value) -> Vec<(&str, &str)> {
    match message {
        Value::String(text) => vec![("", text.as_str())],
        Value::Object(forms) => forms
            .iter()
            .map(|(category, text)| (category.as_str(), text.as_str().unwrap()))
            .collect(),
        other => panic!("{other} is no message"),
    }
}

#[test]
fn every_file_in_the_directory_is_embedded_and_there_is_no_other() {
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/messages");
    let mut there = BTreeSet::new();
    for language in std::fs::read_dir(root).unwrap().map(Result::unwrap) {
        if language.file_type().unwrap().is_dir() {
            for file in std::fs::read_dir(language.path()).unwrap().map(Result::unwrap) {
                let name = |entry: &std::fs::DirEntry| entry.file_name().into_string().unwrap();
                let text = std::fs::read_to_string(file.path()).unwrap();
                there.insert((name(&language), name(&file), text));
            }
        }
    }
    let embedded: BTreeSet<_> = words::files()
        .iter()
        .map(|(language, file, text)| {
            ((*language).to_owned(), (*file).to_owned(), (*text).to_owned())
        })
        .collect();
    assert_eq!(embedded, there);
}

#[test]
fn every_language_has_every_key_of_english_in_the_same_file() {
    let english = files("en");
    for language in languages() {
        let theirs = files(language);
        assert_eq!(
            theirs.keys().collect::<Vec<_>>(),
            english.keys().collect::<Vec<_>>(),
            "{language}"
        );
        for (file, messages) in &english {
            let keys = |of: &Messages| of.keys().cloned().collect::<BTreeSet<_>>();
            assert_eq!(keys(&theirs[file]), keys(messages), "{language}/{file}");
        }
    }
}

#[test]
fn a_client_uses_no_key_that_stands_for_something_else_already() {
    let english = files("en");
    for file in ["terminal.json", "page.json"] {
        for key in english[file].keys() {
            for shared in ["said.json", "rare.json"] {
                assert!(!english[shared].contains_key(key), "{file}: {key}");
            }
        }
    }
}

#[test]
fn every_message_has_the_placeholders_of_english() {
    let english = files("en");
    for language in languages() {
        for (file, messages) in files(language) {
            for (key, message) in messages {
                let wanted = placeholders(forms(&english[file][&key]).last().unwrap().1);
                for (category, text) in forms(&message) {
                    let mut found = placeholders(text);
                    // "one" and "two" may be said with a word instead of the number.
                    if matches!(category, "zero" | "one" | "two") && wanted.contains("count") {
                        found.insert("count".to_owned());
                    }
                    assert_eq!(found, wanted, "{language}/{file}: {key} {category}");
                }
            }
        }
    }
}

#[test]
fn plural_messages_have_just_the_categories_of_their_language() {
    for language in languages() {
        let locale = Locale::try_from_str(language).unwrap();
        let rules = PluralRules::try_new_cardinal(locale.into()).unwrap();
        let wanted: BTreeSet<String> =
            rules.categories().map(|category| format!("{category:?}").to_lowercase()).collect();
        for (file, messages) in files(language) {
            for (key, message) in messages.iter().filter(|(_, message)| message.is_object()) {
                let found: BTreeSet<String> =
                    forms(message).iter().map(|(category, _)| (*category).to_owned()).collect();
                assert_eq!(found, wanted, "{language}/{file}: {key}");
                assert!(placeholders(forms(message).last().unwrap().1).contains("count"), "{key}");
            }
        }
    }
}

#[test]
fn our_own_phrases_hold_nothing_hidden() {
    for (language, file, text) in words::files() {
        let messages: Messages = serde_json::from_str(text).unwrap();
        for (key, message) in &messages {
            for (_, text) in forms(message) {
                assert_eq!(words::safe(text).text, text, "{language}/{file}: {key}");
                assert_eq!(aaep_types::deception::compose(text), text, "{language}/{file}: {key}");
            }
        }
    }
}

#[test]
fn every_language_says_how_it_came_to_be() {
    for (language, name) in words::Words::languages() {
        let by = files(language)["language.json"]["written_by"].as_str().unwrap().to_owned();
        assert!(["authors", "machine", "speaker"].contains(&by.as_str()), "{language}: {by}");
        assert_eq!(words::Words::new(&[language]).by_machine(), by == "machine", "{language}");
        assert!(!name.is_empty() && name != language, "{language}");
    }
    assert_eq!(languages().len(), 11);
}

// covers: L7
#[test]
fn numbers_take_the_plural_form_of_their_language() {
    for (language, count, wanted) in [
        ("fr", 0, "0 seconde"),
        ("fr", 1, "1 seconde"),
        ("fr", 2, "2 secondes"),
        ("fr", 1_000_000, "1000000 de secondes"),
        ("de", 0, "0 Sekunden"),
        ("de", 1, "1 Sekunde"),
        ("es", 1, "1 segundo"),
        ("es", 2_000_000, "2000000 de segundos"),
        ("pt", 0, "0 segundo"),
        ("pt", 2, "2 segundos"),
        ("hi", 0, "0 सेकंड"),
        ("yo", 1, "ìṣẹ́jú àáyá 1"),
        ("ha", 2, "sakan 2"),
        ("ig", 5, "sekọnd 5"),
        ("ar", 5, "5 ثوانٍ"),
        ("ar-EG", 5, "٥ ثوانٍ"),
        ("ar-EG", 12_345, "١٢٣٤٥ ثانية"),
        ("ar-MA", 5, "5 ثوانٍ"),
    ] {
        let words = words::Words::new(&[language]);
        let said = words.phrase("time.seconds", &[("count", words::Argument::Count(count))]);
        assert_eq!(said.to_string(), wanted, "{language} {count}");
    }
}
