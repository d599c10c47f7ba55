//! Letter by letter, where the user wants that.

use std::borrow::Cow;
use std::str::FromStr;

use aaep_subscriber::words::Words;

use crate::utterance::Part;

/// Which of the agent's words are spelled. Ours never are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Spelling {
    /// None.
    #[default]
    None,
    /// Those with letters and digits in one, and addresses with an `@`: what no voice reads well.
    Codes,
    /// All of them.
    All,
}

impl FromStr for Spelling {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        match word {
            "none" => Ok(Self::None),
            "codes" => Ok(Self::Codes),
            "all" => Ok(Self::All),
            _ => Err("it is one of none, codes, all"),
        }
    }
}

/// The longest word that is spelled, in characters: nobody follows a longer one.
const MAX_WORD: usize = 64;

impl Spelling {
    /// The part as it is spoken. The words around letters, such as "capital", come from `words`.
    pub(super) fn spell<'p>(self, part: &'p Part, words: &Words) -> Cow<'p, Part> {
        let is_spelled = |word: &str| match self {
            Spelling::None => false,
            Spelling::Codes => is_code(word),
            Spelling::All => word.chars().any(char::is_alphanumeric),
        };
        let fits = |word: &&str| is_spelled(word) && word.chars().count() <= MAX_WORD;
        if !part.from_agent || !part.text.split_whitespace().any(|word| fits(&word)) {
            return Cow::Borrowed(part);
        }
        let spoken = part.text.split_whitespace().map(|word| match fits(&word) {
            true => Cow::Owned(letters(word, words)),
            false => Cow::Borrowed(word),
        });
        let text = spoken.collect::<Vec<_>>().join(" ");
        Cow::Owned(Part { text, ..part.clone() })
    }
}

fn is_code(word: &str) -> bool {
    let has = |what: fn(char) -> bool| word.chars().any(what);
    has(char::is_alphabetic) && (has(char::is_numeric) || word.contains('@'))
}

/// The letters of a word, with a pause after each; the signs around it stay as they are.
fn letters(word: &str, words: &Words) -> String {
    let inner = word.trim_matches(|sign: char| !sign.is_alphanumeric());
    let (before, after) = word.split_once(inner).unwrap_or(("", ""));
    let spelled: Vec<String> = words.spell(inner).iter().map(ToString::to_string).collect();
    format!("{before}{}{after}", spelled.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spelled(spelling: Spelling, text: &str, from_agent: bool) -> String {
        let part = Part { text: text.into(), language: None, from_agent };
        spelling.spell(&part, &Words::new(&["en"])).text.clone()
    }

    #[test]
    fn codes_are_spelled_and_other_words_are_not() {
        let text = "Send 20 euros to account DE4, then write to \"a@b\".";
        assert_eq!(
            spelled(Spelling::Codes, text, true),
            "Send 20 euros to account capital D, capital E, 4, then write to \"a, at, b\"."
        );
        assert_eq!(spelled(Spelling::None, text, true), text);
    }

    #[test]
    fn everything_of_the_agent_is_spelled_and_nothing_of_ours() {
        assert_eq!(spelled(Spelling::All, "Go - on.", true), "capital G, o - o, n.");
        assert_eq!(spelled(Spelling::All, "Allow this?", false), "Allow this?");
    }

    #[test]
    fn a_word_without_end_is_not_spelled() {
        let long = "a1".repeat(40);
        assert_eq!(spelled(Spelling::Codes, &long, true), long);
        assert_eq!(spelled(Spelling::All, &long, true), long);
    }

    #[test]
    fn it_is_named_by_a_word() {
        assert_eq!("codes".parse(), Ok(Spelling::Codes));
        assert!("some".parse::<Spelling>().is_err());
    }
}
