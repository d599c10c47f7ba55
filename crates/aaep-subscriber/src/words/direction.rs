//! In which direction text runs (§11.4).

use aaep_types::{LenientEvent, TextDirection};
use icu_properties::CodePointMapData;
use icu_properties::props::BidiClass;

/// From which side text is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// As English.
    LeftToRight,
    /// As Arabic.
    RightToLeft,
}

impl Direction {
    /// As HTML writes it: `ltr` or `rtl`.
    pub fn as_str(self) -> &'static str {
        match self {
            Direction::LeftToRight => "ltr",
            Direction::RightToLeft => "rtl",
        }
    }

    /// The direction of the first strong character (UAX #9, P2 and P3): what `auto` means. Text
    /// inside isolates does not count. `None` when nothing in it has a direction.
    pub fn of_text(text: &str) -> Option<Self> {
        // enforces: L7
        let classes = CodePointMapData::<BidiClass>::new();
        let mut isolates = 0usize;
        for character in text.chars() {
            match classes.get(character) {
                BidiClass::LeftToRightIsolate
                | BidiClass::RightToLeftIsolate
                | BidiClass::FirstStrongIsolate => isolates += 1,
                BidiClass::PopDirectionalIsolate => isolates = isolates.saturating_sub(1),
                BidiClass::LeftToRight if isolates == 0 => return Some(Direction::LeftToRight),
                BidiClass::RightToLeft | BidiClass::ArabicLetter if isolates == 0 => {
                    return Some(Direction::RightToLeft);
                }
                _ => {}
            }
        }
        None
    }

    /// The direction in which a language is written: by the script in its tag, else by its usual
    /// one.
    pub fn of_language(tag: &str) -> Self {
        let mut parts = tag.split('-').map(str::to_ascii_lowercase);
        let language = parts.next().unwrap_or_default();
        // A script is the four letters that follow the language.
        let script = parts
            .take_while(|part| part.len() > 2)
            .find(|part| part.len() == 4 && part.bytes().all(|byte| byte.is_ascii_alphabetic()));
        let right = match script {
            Some(script) => RIGHT_TO_LEFT_SCRIPTS.contains(&script.as_str()),
            None => RIGHT_TO_LEFT_LANGUAGES.contains(&language.as_str()),
        };
        if right { Direction::RightToLeft } else { Direction::LeftToRight }
    }

    /// The direction of an agent's text in an event: as the event says; where it says `auto` or
    /// nothing, as the text runs; where that has no direction, as its language does.
    pub fn of_event(heard: &LenientEvent<'_>, text: &str) -> Self {
        // enforces: L7
        let hints = heard.object("localization_hints");
        let hint = |name| hints.as_ref().and_then(|hints| hints.text(name));
        match hint("text_direction").and_then(|word| TextDirection::parse(&word).ok()) {
            Some(TextDirection::Ltr) => return Direction::LeftToRight,
            Some(TextDirection::Rtl) => return Direction::RightToLeft,
            Some(TextDirection::Auto) | None => {}
        }
        let language = || hint("primary_language").map(|tag| Self::of_language(&tag));
        Self::of_text(text).or_else(language).unwrap_or(Direction::LeftToRight)
    }
}

/// Scripts that run from right to left.
const RIGHT_TO_LEFT_SCRIPTS: &[&str] =
    &["adlm", "arab", "aran", "hebr", "mand", "mend", "nkoo", "rohg", "samr", "syrc", "thaa"];

/// Languages that are usually written in one of them.
const RIGHT_TO_LEFT_LANGUAGES: &[&str] = &[
    "ar", "arc", "arz", "azb", "bal", "ckb", "dv", "fa", "glk", "he", "iw", "khw", "ks", "lrc",
    "mzn", "nqo", "pnb", "prs", "ps", "sd", "syr", "ug", "ur", "yi",
];

#[cfg(test)]
mod tests {
    use super::*;
    use Direction::{LeftToRight, RightToLeft};

    // covers: L7
    #[test]
    fn text_runs_as_its_first_strong_character() {
        assert_eq!(Direction::of_text("12, שלום world"), Some(RightToLeft));
        assert_eq!(Direction::of_text("1) hello سلام"), Some(LeftToRight));
        assert_eq!(Direction::of_text("\u{2067}שלום\u{2069} then"), Some(LeftToRight));
        assert_eq!(Direction::of_text("42!"), None);
    }

    // covers: L7
    #[test]
    fn a_language_has_a_direction_and_its_script_comes_first() {
        assert_eq!(Direction::of_language("ar-EG"), RightToLeft);
        assert_eq!(Direction::of_language("he"), RightToLeft);
        assert_eq!(Direction::of_language("ku-Arab-IQ"), RightToLeft);
        assert_eq!(Direction::of_language("ur-Latn"), LeftToRight);
        assert_eq!(Direction::of_language("zh-Hans-CN"), LeftToRight);
        assert_eq!(Direction::of_language(""), LeftToRight);
    }

    // covers: L7
    #[test]
    fn what_the_event_says_counts_before_the_text() {
        let event = |hints: &str| {
            format!(
                r#"{{"type":"aaep:agent.state.changed","event_id":"evt_1","session_id":"sess_1",
                "localization_hints":{hints}}}"#
            )
        };
        let of = |hints: &str, text: &str| {
            Direction::of_event(&LenientEvent::parse(event(hints).as_bytes()).unwrap(), text)
        };
        assert_eq!(of(r#"{"text_direction":"rtl"}"#, "hello"), RightToLeft);
        assert_eq!(of(r#"{"text_direction":"auto"}"#, "hello"), LeftToRight);
        assert_eq!(of(r#"{"text_direction":"sideways"}"#, "سلام"), RightToLeft);
        assert_eq!(of(r#"{"primary_language":"ar"}"#, "42"), RightToLeft);
    }
}
