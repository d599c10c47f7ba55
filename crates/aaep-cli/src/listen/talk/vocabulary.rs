//! What can be typed: one key, or a word and Enter. Words are data, so that each language has its own;
//! the English ones always work.

use aaep_subscriber::words::Words;

/// What the user wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Yes,
    No,
    Answer,
    Repeat,
    List,
    Details,
    Spell,
    Doing,
    Hush,
    Skip,
    Pause,
    Play,
    Next,
    MoreTime,
    Stop,
    Help,
    Quit,
}

impl Command {
    /// Whether the user asks for words with it, and so does not want to hear others any longer.
    pub(crate) fn asks_for_words(self) -> bool {
        matches!(
            self,
            Command::Repeat
                | Command::Details
                | Command::Spell
                | Command::List
                | Command::Doing
                | Command::Play
                | Command::Next
                | Command::Help
        )
    }
}

/// Every command and the key of its words. Those of `help` are told in this order.
const COMMANDS: [(Command, &str); 17] = [
    (Command::Yes, "terminal.command.yes"),
    (Command::No, "terminal.command.no"),
    (Command::Answer, "terminal.command.answer"),
    (Command::Repeat, "terminal.command.repeat"),
    (Command::List, "terminal.command.list"),
    (Command::Details, "terminal.command.details"),
    (Command::Spell, "terminal.command.spell"),
    (Command::Next, "terminal.command.next"),
    (Command::MoreTime, "terminal.command.time"),
    (Command::Doing, "terminal.command.doing"),
    (Command::Hush, "terminal.command.hush"),
    (Command::Skip, "terminal.command.skip"),
    (Command::Pause, "terminal.command.pause"),
    (Command::Play, "terminal.command.play"),
    (Command::Stop, "terminal.command.stop"),
    (Command::Help, "terminal.command.help"),
    (Command::Quit, "terminal.command.quit"),
];

/// All words of all commands.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    words: Vec<(String, Command)>,
}

impl Vocabulary {
    /// The words of a language, and the English ones. Where two commands share a word, the first
    /// one has it: `n` is no before it is next.
    pub(crate) fn new(language: &Words) -> Self {
        let english = Words::new(&["en"]);
        let mut words: Vec<(String, Command)> = Vec::new();
        for source in [&english, language] {
            for (command, key) in COMMANDS {
                for word in source.phrase(key, &[]).to_string().split_whitespace() {
                    if !words.iter().any(|(known, _)| known == word) {
                        words.push((word.to_owned(), command));
                    }
                }
            }
        }
        Self { words }
    }

    /// The command of a word or of a key.
    pub(crate) fn find(&self, word: &str) -> Option<Command> {
        let word = word.to_lowercase();
        self.words.iter().find(|(known, _)| *known == word).map(|(_, command)| *command)
    }

    /// The command at the beginning of a line, and what stands behind it.
    pub(crate) fn read<'l>(&self, line: &'l str) -> Option<(Command, &'l str)> {
        let line = line.trim();
        let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        Some((self.find(word)?, rest.trim()))
    }
}

/// A whole number in any of the digits that our languages write.
pub(crate) fn whole(text: &str) -> Option<u32> {
    let digits = western(text.trim());
    (!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| digits.parse().ok())
        .flatten()
}

/// A number, with a point or a comma before its fraction.
pub(crate) fn number(text: &str) -> Option<f64> {
    let text = western(text.trim());
    let plain = |sign: char| sign.is_ascii_digit() || matches!(sign, '+' | '-' | '.');
    // Thousands are not guessed: 1,234 would be a thousand to some and one and a bit to others.
    let commas = text.matches(',').count();
    let grouped = commas > 1
        || (commas == 1 && text.contains('.'))
        || text.split_once(',').is_some_and(|(_, after)| after.len() == 3);
    if grouped {
        return None;
    }
    let text = text.replace(',', ".");
    let number: f64 = text.chars().all(plain).then(|| text.parse().ok()).flatten()?;
    number.is_finite().then_some(number)
}

/// The same text with the digits of ASCII, and its signs around numbers.
fn western(text: &str) -> String {
    let digit = |sign: char, zero: char| char::from_digit(sign as u32 - zero as u32, 10);
    text.chars()
        .map(|sign| match sign {
            '\u{660}'..='\u{669}' => digit(sign, '\u{660}').unwrap_or(sign),
            '\u{6F0}'..='\u{6F9}' => digit(sign, '\u{6F0}').unwrap_or(sign),
            '\u{966}'..='\u{96F}' => digit(sign, '\u{966}').unwrap_or(sign),
            '\u{FF10}'..='\u{FF19}' => digit(sign, '\u{FF10}').unwrap_or(sign),
            '\u{66B}' => '.',
            '\u{2212}' | '\u{FF0D}' => '-',
            '\u{FF0E}' => '.',
            _ => sign,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_command_has_words_of_its_own_in_every_language() {
        for (language, _) in Words::languages() {
            let words = Words::new(&[language]);
            let vocabulary = Vocabulary::new(&words);
            for (command, key) in COMMANDS {
                let own = words.phrase(key, &[]).to_string();
                assert!(!own.is_empty() && own != key, "{language} {key}");
                for word in own.split_whitespace() {
                    assert_eq!(vocabulary.find(word), Some(command), "{language} {word}");
                }
            }
            assert_eq!(vocabulary.find("YES"), Some(Command::Yes));
            assert_eq!(
                vocabulary.read(" answer  two words "),
                Some((Command::Answer, "two words"))
            );
        }
    }

    #[test]
    fn numbers_are_read_in_the_digits_of_each_language_and_never_guessed() {
        for (text, value) in [
            ("7", Some(7.0)),
            (" -2.5 ", Some(-2.5)),
            ("2,5", Some(2.5)),
            ("٣٫٥", Some(3.5)),
            ("７", Some(7.0)),
            ("१२.५", Some(12.5)),
            ("1,234", None),
            ("1,234.5", None),
            ("1e5", None),
            ("nan", None),
            ("inf", None),
            ("", None),
            ("seven", None),
            ("3 4", None),
        ] {
            assert_eq!(number(text), value, "{text}");
        }
        assert_eq!(
            (whole("12"), whole("١٢"), whole("-1"), whole("")),
            (Some(12), Some(12), None, None)
        );
        assert_eq!(whole("99999999999"), None);
    }
}
