//! What is said in one go, and how much it matters.

use std::sync::Arc;

use aaep_subscriber::words::{Span, SpokenLine};
use icu_segmenter::SentenceSegmenter;
use icu_segmenter::options::SentenceBreakInvariantOptions;

/// How much an utterance matters, the most important first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// A request that waits for the user.
    Request,
    /// What became of a request.
    Outcome,
    /// An error, or something that may not wait.
    Error,
    /// What has to be known of a request that waits: its time runs out, or another one waits too.
    Notice,
    /// The answer to a key that the user pressed.
    Feedback,
    /// What a tool or a session brought.
    Result,
    /// The end of a session.
    End,
    /// The agent's own text.
    Text,
    /// What an agent does now. Only the latest counts.
    State,
    /// How far an agent is. Only the latest counts.
    Progress,
}

impl Class {
    /// Utterances of a lower rank are said first. Within a rank the order of arrival is kept:
    /// a session's result never overtakes the text that leads to it.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Class::Request => 0,
            Class::Outcome | Class::Error | Class::Notice | Class::Feedback => 1,
            // 2 is a request that is read again.
            Class::Result | Class::End | Class::Text | Class::State => 3,
            Class::Progress => 4,
        }
    }

    /// Whether it is said before any result, and cuts what is not urgent.
    pub fn is_urgent(self) -> bool {
        self.rank() < Class::Result.rank()
    }

    /// Whether it waits while a request is open.
    pub fn is_chatter(self) -> bool {
        matches!(self, Class::Text | Class::State | Class::Progress)
    }

    /// Whether a newer one of the same session replaces it.
    pub(crate) fn is_replaced_by_newer(self) -> bool {
        matches!(self, Class::State | Class::Progress)
    }
}

/// A piece of an utterance that is spoken with one voice. It holds no more than one sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The words.
    pub text: String,
    /// Their language as a tag, such as `ar`; the synthesizer's own where nobody knows it.
    pub language: Option<Arc<str>>,
    /// Whether the agent wrote them.
    pub from_agent: bool,
}

/// Something that is said in one go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Utterance {
    /// How much it matters.
    pub class: Class,
    /// The number of the request that it is about.
    pub request: Option<u32>,
    /// The session that it is about.
    pub session: Option<Arc<str>>,
    /// The same as a line of plain text, for a terminal.
    pub line: String,
    /// Its words.
    pub parts: Vec<Part>,
}

impl Utterance {
    /// An utterance without words.
    pub fn new(class: Class) -> Self {
        Self { class, request: None, session: None, line: String::new(), parts: Vec::new() }
    }

    /// About this request.
    pub fn of_request(mut self, number: u32) -> Self {
        self.request = Some(number);
        self
    }

    /// About this session.
    pub fn of_session(mut self, session_id: &Arc<str>) -> Self {
        self.session = Some(session_id.clone());
        self
    }

    /// As this line of plain text.
    pub fn printed(mut self, line: String) -> Self {
        self.line = line;
        self
    }

    /// With these words. Ours are in the language `ours`; the agent's in `theirs`, if it said so.
    pub fn words(mut self, said: &SpokenLine, ours: &str, theirs: Option<&Arc<str>>) -> Self {
        let ours: Arc<str> = ours.into();
        for span in &said.spans {
            let (text, from_agent) = match span {
                Span::Ours(text) => (text, false),
                Span::Theirs(text) => (text, true),
            };
            let language = if from_agent { theirs.unwrap_or(&ours) } else { &ours };
            for sentence in sentences(text) {
                // A full stop of ours behind the agent's words has no voice of its own: a synthesizer
                // would say "dot".
                if !from_agent
                    && !sentence.contains(char::is_alphanumeric)
                    && let Some(last) = self.parts.last_mut()
                {
                    last.text.push_str(sentence);
                    continue;
                }
                let (text, language) = (sentence.to_owned(), Some(language.clone()));
                self.parts.push(Part { text, language, from_agent });
            }
        }
        self
    }

    /// All of its words.
    pub fn text(&self) -> String {
        let words: Vec<&str> = self.parts.iter().map(|part| part.text.as_str()).collect();
        words.join(" ")
    }

    /// Whether the other one continues this one, so that both are said in one go.
    pub(crate) fn is_continued_by(&self, other: &Utterance) -> bool {
        matches!(
            self.class,
            Class::Request | Class::Outcome | Class::Error | Class::Notice | Class::Feedback
        ) && (self.class, self.request, &self.session)
            == (other.class, other.request, &other.session)
    }
}

/// The sentences of a text, without the space around them.
fn sentences(text: &str) -> impl Iterator<Item = &str> {
    let segmenter = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
    // A sentence does not begin with a small letter: "Press ? for help" is one.
    let begins = |at: &usize| !text[*at..].trim_start().starts_with(char::is_lowercase);
    let breaks: Vec<usize> =
        segmenter.segment_str(text).filter(|at| *at == 0 || begins(at)).collect();
    breaks
        .windows(2)
        .map(|pair| text[pair[0]..pair[1]].trim())
        .filter(|sentence| !sentence.is_empty())
        .collect::<Vec<_>>()
        .into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_becomes_sentences_with_the_language_of_who_wrote_them() {
        let said = SpokenLine {
            spans: vec![
                Span::Ours("Allow this? ".into()),
                Span::Theirs("احذف الملف. ثم توقف.".into()),
                Span::Ours(" It cannot be undone.".into()),
            ],
        };
        let utterance = Utterance::new(Class::Request).words(&said, "en", Some(&"ar".into()));
        let parts: Vec<_> = utterance
            .parts
            .iter()
            .map(|part| (part.text.as_str(), part.language.as_deref(), part.from_agent))
            .collect();
        assert_eq!(
            parts,
            [
                ("Allow this?", Some("en"), false),
                ("احذف الملف.", Some("ar"), true),
                ("ثم توقف.", Some("ar"), true),
                ("It cannot be undone.", Some("en"), false),
            ]
        );
    }

    #[test]
    fn a_sign_of_ours_is_said_with_what_stands_before_it_and_one_of_the_agents_by_itself() {
        let spans = ["1: ", "By bus", ". ", "2: ", ".", ", "];
        let span = |(at, text): (usize, &&str)| match at {
            1 | 4 => Span::Theirs((*text).into()),
            _ => Span::Ours((*text).into()),
        };
        let said = SpokenLine { spans: spans.iter().enumerate().map(span).collect() };
        let parts = Utterance::new(Class::Request).words(&said, "en", None).parts;
        let parts: Vec<_> = parts.iter().map(|it| (it.text.as_str(), it.from_agent)).collect();
        assert_eq!(parts, [("1:", false), ("By bus.", true), ("2:", false), (".,", true)]);
    }

    #[test]
    fn a_sign_in_the_middle_of_a_sentence_does_not_cut_it() {
        let parts = |text| sentences(text).collect::<Vec<_>>();
        assert_eq!(parts("Press ? for help. Or wait."), ["Press ? for help.", "Or wait."]);
        assert_eq!(parts("没有人听见。你好。"), ["没有人听见。", "你好。"]);
    }

    #[test]
    fn a_text_of_sixteen_thousand_characters_keeps_every_character() {
        let text = "Emoji 👩‍🚀 and é. ".repeat(1000);
        let said = SpokenLine { spans: vec![Span::Theirs(text.clone())] };
        let spoken = Utterance::new(Class::Text).words(&said, "en", None).text();
        assert_eq!(spoken, text.trim());
    }
}
