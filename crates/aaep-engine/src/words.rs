//! What the hub itself says, in the session's language where there is a message file for it (§11.1.1,
//! decision D39).

use aaep_types::cut;
use aaep_types::json::{Members, Raw, Writer};
use std::collections::BTreeMap;
use std::sync::OnceLock;

use crate::hints::Hints;

/// The message files; English first.
const FILES: [(&str, &str); 11] = [
    ("en", include_str!("../messages/en.json")),
    ("ar", include_str!("../messages/ar.json")),
    ("de", include_str!("../messages/de.json")),
    ("es", include_str!("../messages/es.json")),
    ("fr", include_str!("../messages/fr.json")),
    ("ha", include_str!("../messages/ha.json")),
    ("hi", include_str!("../messages/hi.json")),
    ("ig", include_str!("../messages/ig.json")),
    ("pt", include_str!("../messages/pt.json")),
    ("yo", include_str!("../messages/yo.json")),
    ("zh", include_str!("../messages/zh.json")),
];

/// The longest summary of ours, and the longest terse one, in characters.
const LONGEST: usize = 4000;

/// What stands in the place of a text that is left out, by its key.
const LEFT_OUT: &str = "left_out";

/// What is said, by its key in the message files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Phrase(pub(crate) &'static str);

impl Phrase {
    pub(crate) const BEGUN: Self = Self("begun");
    pub(crate) const USES_TOOL: Self = Self("uses_tool");
    pub(crate) const WRITES: Self = Self("writes");
    pub(crate) const WAITS: Self = Self("waits");
    pub(crate) const STILL_WAITS: Self = Self("still_waits");
    pub(crate) const HANDS_OVER: Self = Self("hands_over");
    pub(crate) const ACCEPTED: Self = Self("accepted");
    pub(crate) const REJECTED: Self = Self("rejected");
    pub(crate) const TIMED_OUT_RUNS: Self = Self("timed_out_runs");
    pub(crate) const TIMED_OUT: Self = Self("timed_out");
    pub(crate) const CANCELLED: Self = Self("cancelled");
    pub(crate) const SUPERSEDED: Self = Self("superseded");
    pub(crate) const EXPIRED: Self = Self("expired");
    pub(crate) const ANSWERED: Self = Self("answered");
    pub(crate) const TIMED_OUT_WITH: Self = Self("timed_out_with");
    pub(crate) const TIMED_OUT_OPEN: Self = Self("timed_out_open");
    pub(crate) const WRONG_CLOCK: Self = Self("wrong_clock");
    pub(crate) const GIVEN_UP: Self = Self("given_up");
    pub(crate) const SESSION_ENDS: Self = Self("session_ends");
    pub(crate) const TOOL_LOST: Self = Self("tool_lost");
    pub(crate) const SILENT: Self = Self("silent");
    pub(crate) const OLD_COPY: Self = Self("old_copy");
    pub(crate) const STOPPED: Self = Self("stopped");
    pub(crate) const TIME_LEFT: Self = Self("time_left");
}

/// A sentence of ours, and the language that it has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Words {
    pub(crate) terse: String,
    pub(crate) normal: String,
    language: &'static str,
}

impl Words {
    /// The texts as members of a payload.
    pub(crate) fn members(&self) -> [(&'static str, &str); 3] {
        [
            ("summary_terse", &self.terse),
            ("summary_normal", &self.normal),
            ("summary_detailed", &self.normal),
        ]
    }

    // enforces: L13, D39, E12
    /// What the envelope says of them: how much is said, and the language that they really have.
    pub(crate) fn hints(&self, session_language: &str) -> Option<Box<Hints>> {
        let other = session_language != self.language;
        let localization = other.then(|| format!("\"primary_language\":\"{}\"", self.language));
        let verbosity = Some(aaep_types::Verbosity::Normal);
        Some(Box::new(Hints { verbosity, localization, ..Hints::default() }))
    }
}

/// A sentence in this language, or else in English.
pub(crate) fn say(language: &str, phrase: Phrase) -> Words {
    say_of(language, phrase, ["", "", "0"])
}

/// The same about an action, in the agent's own words.
pub(crate) fn say_about(language: &str, phrase: Phrase, action: &str) -> Words {
    say_of(language, phrase, [action, "", "0"])
}

/// The same about how a request ended, with the answer that it goes on with where none came.
pub(crate) fn say_outcome(language: &str, phrase: Phrase, action: &str, answer: &str) -> Words {
    say_of(language, phrase, [action, answer, "0"])
}

/// How much time is left to answer.
pub(crate) fn say_time_left(language: &str, seconds: u64, action: &str) -> Words {
    say_of(language, Phrase::TIME_LEFT, [action, "", &seconds.to_string()])
}

/// The payload of an end of ours, with one more member: an object, like those of agents.
pub(crate) fn ending(language: &str, phrase: Phrase, more: (&str, &str)) -> String {
    let words = say(language, phrase);
    let mut out = Writer::new();
    out.open('{');
    for (name, value) in [more, ("verbosity", "normal")].into_iter().chain(words.members()) {
        out.name(name);
        out.string(value);
        out.comma();
    }
    out.name("localization_hints");
    out.open('{');
    out.name("primary_language");
    out.string(words.language);
    out.close('}');
    out.close('}');
    out.finish()
}

// enforces: L6
fn say_of(language: &str, phrase: Phrase, [action, answer, seconds]: [&str; 3]) -> Words {
    let (tag, messages) = catalogue(language);
    let find = |key: &str| messages.get(key).map_or("", String::as_str);
    let arguments = [("action", action), ("answer", answer), ("seconds", seconds)];
    let fill = |template: &str| cut(&filled(template, &arguments), LONGEST).to_owned();
    let terse = fill(find(&format!("{}.terse", phrase.0)));
    Words { terse, normal: fill(find(phrase.0)), language: tag }
}

// enforces: L13, D39
/// What stands in the place of a text that somebody is not to hear, in the language of the event; in a
/// language that we do not speak, a sign that belongs to none.
pub fn left_out(language: &str) -> &'static str {
    let (tag, messages) = catalogue(language);
    let first = language.split('-').next().unwrap_or_default();
    let known = tag.eq_ignore_ascii_case(first).then(|| messages.get(LEFT_OUT)).flatten();
    known.map_or("[…]", String::as_str)
}

type Messages = BTreeMap<String, String>;

/// The messages of a language, by its first subtag; English where there are none.
fn catalogue(language: &str) -> (&'static str, &'static Messages) {
    static ALL: OnceLock<Vec<(&'static str, Messages)>> = OnceLock::new();
    let all = ALL.get_or_init(|| FILES.iter().map(|(tag, text)| (*tag, read(text))).collect());
    let first = language.split('-').next().unwrap_or_default();
    let known = all.iter().find(|(tag, _)| tag.eq_ignore_ascii_case(first));
    // There is always English.
    let (tag, messages) = known.unwrap_or(&all[0]);
    (tag, messages)
}

/// The files are ours, and a test reads them all.
fn read(text: &str) -> Messages {
    let members = Members::whole(text, 4).ok().flatten().unwrap_or_default();
    let texts = members.iter().filter_map(|member| match member.value {
        Raw::String(text) => Some((member.name.to_string(), text.decode().into_owned())),
        _ => None,
    });
    texts.collect()
}

/// A message with its arguments in their places. What an argument holds is not read again.
fn filled(template: &str, arguments: &[(&str, &str)]) -> String {
    let mut out = String::with_capacity(template.len() + 64);
    let mut rest = template;
    while let Some((before, after)) = rest.split_once('{') {
        out.push_str(before);
        let Some((name, after)) = after.split_once('}') else {
            out.push('{');
            rest = after;
            continue;
        };
        let value = arguments.iter().find(|(known, _)| *known == name);
        out.push_str(value.map_or("", |(_, value)| value));
        rest = after;
    }
    out.push_str(rest);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placeholders(text: &str) -> Vec<&str> {
        text.split('{')
            .skip(1)
            .filter_map(|rest| rest.split_once('}').map(|(name, _)| name))
            .collect()
    }

    // covers: L13
    #[test]
    fn every_language_has_every_message_with_the_same_placeholders() {
        let english = read(FILES[0].1);
        assert!(english.len() > 30, "{}", english.len());
        for (tag, text) in FILES {
            let messages = read(text);
            assert_eq!(messages["language"], tag);
            for (key, message) in english.iter().filter(|(key, _)| *key != "name") {
                let other = messages.get(key).unwrap_or_else(|| panic!("{tag} lacks {key}"));
                assert_eq!(placeholders(message), placeholders(other), "{tag} {key}");
                assert!(!other.is_empty() && other.trim() == other, "{tag} {key}");
            }
            let more = usize::from(messages.contains_key("translated_by"));
            assert_eq!(messages.len(), english.len() + more, "{tag}");
            assert!(tag == "en" || more == 1, "say that {tag} is machine-written, or who read it");
        }
    }

    // covers: L13, D39
    #[test]
    fn a_sentence_has_the_sessions_language_or_says_which_it_has() {
        let french = say("fr", Phrase::WAITS);
        assert_eq!(french.normal, "L’agent vous attend.");
        assert_eq!(french.hints("fr").unwrap().localization, None);
        let canadian = say("fr-CA", Phrase::WAITS).hints("fr-CA").unwrap();
        assert_eq!(canadian.localization.as_deref(), Some("\"primary_language\":\"fr\""));
        let none = say("sw", Phrase::WAITS);
        assert_eq!(none.normal, "The agent waits for you.");
        let hints = none.hints("sw").unwrap();
        assert_eq!(hints.localization.as_deref(), Some("\"primary_language\":\"en\""));
    }

    #[test]
    fn what_an_argument_holds_is_not_read_again() {
        let words = say_about("en", Phrase::ACCEPTED, "Print {seconds} {action}");
        assert_eq!(words.normal, "Accepted: Print {seconds} {action}");
        assert_eq!(say_time_left("en", 30, "Go").normal, "30 seconds left to answer: Go");
        assert!(
            say_about("en", Phrase::ACCEPTED, &"ä".repeat(9000)).normal.chars().count() <= LONGEST
        );
    }
}
