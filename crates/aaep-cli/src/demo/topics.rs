//! What the demo's agent understands: a few words of English.

/// What somebody wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Topic {
    Balance,
    Transfer,
    Email,
    Delete,
    Book,
    Sentences,
    AskMe,
    Fail,
    HandOff,
    LongJob,
    Several,
    GiveUp,
    MissingTool,
    Secrets,
    AskAlways,
    Explain,
    Moon,
    Help,
    Hello,
}

/// Words and what they stand for, in the order in which they are looked for: what asks for the most
/// comes first. Several words stand one after the other.
const WORDS: &[(Topic, &[&str])] = &[
    (Topic::Several, &["several", "at once"]),
    (Topic::AskAlways, &["any action"]),
    (Topic::AskMe, &["ask me", "weather", "clarification"]),
    (Topic::Transfer, &["transfer", "pay", "money"]),
    (Topic::Email, &["email", "mail"]),
    (Topic::Delete, &["delete", "remove"]),
    (Topic::Book, &["book", "room", "reserve"]),
    (Topic::HandOff, &["hand off", "handoff", "human", "escalate"]),
    (Topic::MissingTool, &["does not exist"]),
    (Topic::Secrets, &["these arguments", "password", "api"]),
    (Topic::Fail, &["fail", "error", "break"]),
    (Topic::GiveUp, &["give up", "never mind", "cancel"]),
    (Topic::LongJob, &["long job", "backup", "progress"]),
    (Topic::Explain, &["explain", "explanation", "rainbow", "rainbows"]),
    (Topic::Sentences, &["sentence", "sentences", "paragraph", "write"]),
    (Topic::Balance, &["balance", "fetch", "a tool"]),
    (Topic::Moon, &["fact", "moon"]),
    (Topic::Help, &["help", "what can you do"]),
];

/// The longest that is looked at, in bytes; longer texts have made their point by then.
const LOOKED_AT: usize = 4096;

impl Topic {
    /// What a text is about; whatever is not understood is a greeting.
    pub(super) fn of(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(LOOKED_AT)];
        let said = words(text);
        let says = |phrase: &&str| said.contains(&format!(" {phrase} "));
        let found = WORDS.iter().find(|(_, phrases)| phrases.iter().any(says));
        found.map_or(Topic::Hello, |(topic, _)| *topic)
    }
}

/// The words of a text in small letters, with one space around each.
fn words(text: &str) -> String {
    let mut said = String::from(" ");
    for word in text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty()) {
        said.extend(word.chars().flat_map(char::to_lowercase));
        said.push(' ');
    }
    said
}

/// What to say to hear each of them, for people.
pub(super) const EXAMPLES: &[(&str, &str)] = &[
    ("balance", "uses a tool that needs no question"),
    ("transfer 20 euros to Ann", "asks before something that cannot be undone"),
    ("send an email", "asks before something that cannot be undone"),
    ("delete the record", "asks, and does not do it without an answer"),
    ("book a room", "asks before something that can be undone with some effort"),
    ("three sentences", "streams text"),
    ("ask me something", "asks a question with an answer of your own"),
    ("fail", "ends with an error"),
    ("give up", "cancels what it began"),
    ("hand off", "asks a person to take over"),
    ("a long job", "says how far it is"),
    ("several at once", "does several things at the same time"),
];

/// The first number in a text, with its cents, if it looks like an amount of money.
pub(super) fn amount(text: &str) -> Option<String> {
    let digits = |c: char| c.is_ascii_digit() || c == '.';
    let found = text.split(|c| !digits(c)).map(|part| part.trim_matches('.'));
    let mut found = found.filter(|part| !part.is_empty() && part.len() <= 9);
    found.find(|part| part.matches('.').count() <= 1).map(str::to_owned)
}

/// The word after "to", if it is a plain one.
pub(super) fn recipient(text: &str) -> Option<String> {
    let mut all = text.split_whitespace().skip_while(|word| !word.eq_ignore_ascii_case("to"));
    let word = all.nth(1)?.trim_matches(|c: char| !c.is_alphanumeric());
    let plain =
        !word.is_empty() && word.chars().count() <= 40 && word.chars().all(char::is_alphanumeric);
    plain.then(|| word.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_example_is_understood_and_each_means_something_else() {
        let topics: Vec<Topic> = EXAMPLES.iter().map(|(said, _)| Topic::of(said)).collect();
        for (at, topic) in topics.iter().enumerate() {
            assert_ne!(*topic, Topic::Hello, "{:?}", EXAMPLES[at]);
            assert!(!topics[..at].contains(topic), "{:?}", EXAMPLES[at]);
        }
    }

    #[test]
    fn what_the_published_suite_says_is_understood() {
        for (said, topic) in [
            ("Hello, please respond briefly.", Topic::Hello),
            ("Tell me a short fact about the moon.", Topic::Moon),
            ("Please use a tool to fetch some data, then respond.", Topic::Balance),
            ("Write a short three-sentence paragraph.", Topic::Sentences),
            ("Please call a tool that does not exist: 'x_y'.", Topic::MissingTool),
            ("Please call a tool with these arguments: url=https://x, api_key=k", Topic::Secrets),
            (
                "Please book a meeting room tomorrow. Use a tool that requires confirmation.",
                Topic::Book,
            ),
            ("Please send an email to test@example.com. Use a tool.", Topic::Email),
            ("Please delete record ID 12345 (this is high-risk).", Topic::Delete),
            ("Tell me about the weather. Ask me where I am first via clarification.", Topic::AskMe),
            ("Please request confirmation for any action you take.", Topic::AskAlways),
            ("Please escalate this conversation to a human via handoff.", Topic::HandOff),
            ("Please give me a detailed explanation of how rainbows form.", Topic::Explain),
            ("Please trigger a deliberate error.", Topic::Fail),
        ] {
            assert_eq!(Topic::of(said), topic, "{said}");
        }
    }

    #[test]
    fn words_are_whole_words_in_any_case() {
        assert_eq!(Topic::of("FACEBOOK"), Topic::Hello);
        assert_eq!(Topic::of("Book!"), Topic::Book);
        assert_eq!(Topic::of(&"é".repeat(5000)), Topic::Hello);
        assert_eq!(Topic::of(""), Topic::Hello);
    }

    #[test]
    fn amounts_and_recipients_are_taken_only_if_they_are_plain() {
        assert_eq!(amount("send 12.50 euros"), Some("12.50".into()));
        assert_eq!(amount("1.2.3 or 99999999999 or .5."), Some("5".into()));
        assert_eq!(amount("none"), None);
        assert_eq!(recipient("transfer 5 to Bob."), Some("Bob".into()));
        assert_eq!(recipient("transfer 5 TO <b>x</b>"), None);
        assert_eq!(recipient("to"), None);
    }
}
