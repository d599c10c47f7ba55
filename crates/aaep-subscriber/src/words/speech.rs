//! Sentences, and how they become lines.

use aaep_types::{Level, Verbosity};

use super::{Argument, Manner, SpokenLine, Words};
use crate::notification::Agent;

/// What is said of one thing, while it is put together.
pub(super) struct Speech<'w> {
    pub(super) words: &'w Words,
    pub(super) manner: Manner,
    /// Sentences, each with the line it belongs to under a medium load.
    sentences: Vec<(usize, SpokenLine)>,
    /// Lines that stay as they are: the agent's own answer.
    lines: Vec<SpokenLine>,
    line: usize,
}

impl<'w> Speech<'w> {
    pub(super) fn new(words: &'w Words, manner: Manner) -> Self {
        Self { words, manner, sentences: Vec::new(), lines: Vec::new(), line: 0 }
    }

    /// Whether details are wanted that nobody needs to follow what happens.
    pub(super) fn is_detailed(&self) -> bool {
        self.manner.verbosity == Verbosity::Detailed && self.manner.load != Level::High
    }

    /// Whether only what matters is wanted.
    pub(super) fn is_terse(&self) -> bool {
        let high = self.manner.load == Level::High && self.manner.verbosity != Verbosity::Detailed;
        self.manner.verbosity == Verbosity::Terse || high
    }

    /// Whether nothing is said so far.
    pub(super) fn is_silent(&self) -> bool {
        self.sentences.is_empty() && self.lines.is_empty()
    }

    /// What follows is a line of its own, unless everything is said in one.
    pub(super) fn new_line(&mut self) {
        self.line += 1;
    }

    /// A sentence of ours.
    pub(super) fn say(&mut self, key: &str, arguments: &[(&str, Argument<'_>)]) {
        let said = self.words.phrase(key, arguments);
        self.push(said);
    }

    /// A sentence of the agent's alone.
    pub(super) fn quote(&mut self, text: &str) {
        let mut said = SpokenLine::default();
        said.theirs(text.trim());
        self.push(said);
    }

    /// A sentence of ours around a text of the agent's, which may be too long; or the other
    /// sentence, when there is no text.
    pub(super) fn about(&mut self, key: &str, argument: &str, text: Option<&str>, bare: &str) {
        match text {
            Some(text) => self.bounded(text, |speech, text| {
                speech.say(key, &[(argument, Argument::Theirs(text))]);
            }),
            None if bare.is_empty() => {}
            None => self.say(bare, &[]),
        }
    }

    /// Says the beginning of a text that may be too long, and how much is left out.
    pub(super) fn bounded(&mut self, text: &str, say: impl FnOnce(&mut Self, &str)) {
        let (text, left_out) = cut(text, MAX_TEXT);
        say(self, text);
        self.left_out(left_out);
    }

    pub(super) fn left_out(&mut self, count: usize) {
        if count > 0 {
            self.say("left_out", &[("count", Argument::Count(count as u64))]);
        }
    }

    /// A line of the agent's answer, after everything else.
    pub(super) fn line_of_text(&mut self, text: &str) {
        let mut said = SpokenLine::default();
        said.theirs(text.trim_end());
        self.lines.push(said);
    }

    fn push(&mut self, mut said: SpokenLine) {
        if said.spans.is_empty() {
            return;
        }
        self.close(&mut said);
        self.sentences.push((self.line, said));
    }

    /// Ends a sentence with a full stop where the agent did not end it, so that the next one is
    /// not taken for a part of it.
    fn close(&self, said: &mut SpokenLine) {
        if said.spans.last().is_some_and(|last| !ends(last.text())) {
            said.append(&self.words.phrase("full_stop", &[]));
        }
    }

    /// The lines. With an agent, the first begins with its name.
    pub(super) fn finish(self, agent: Option<&Agent>) -> Vec<SpokenLine> {
        let between = self.words.phrase("between_sentences", &[]);
        let mut lines: Vec<(usize, SpokenLine)> = Vec::new();
        for (line, sentence) in &self.sentences {
            match lines.last_mut() {
                Some((last, said)) if self.joins(*last, *line) => {
                    said.append(&between);
                    said.append(sentence);
                }
                _ => lines.push((*line, sentence.clone())),
            }
        }
        let mut lines: Vec<SpokenLine> =
            lines.into_iter().map(|(_, said)| said).chain(self.lines).collect();
        if let (Some(agent), Some(first)) = (agent, lines.first_mut()) {
            let (name, _) = cut(&agent.name, MAX_NAME);
            let name = if name.trim().is_empty() { &agent.id } else { name };
            let both = [("agent", Argument::Theirs(name)), ("line", Argument::Phrase(first))];
            *first = self.words.phrase("named", &both);
        }
        lines
    }

    /// Whether two sentences that stand in these lines are said without a pause.
    fn joins(&self, first: usize, second: usize) -> bool {
        match self.manner.load {
            Level::Low => true,
            Level::Medium => first == second,
            Level::High => false,
        }
    }
}

/// Whether a text ends a sentence by itself, closing quotes and brackets aside.
fn ends(text: &str) -> bool {
    let closers = ['"', '\'', '”', '’', '»', ')', ']', '」', '』', '）'];
    let text = text.trim_end_matches(closers);
    text.ends_with(['.', '!', '?', '…', ':', ';', '。', '！', '？', '：', '；', '؟', '۔', '؛', '।'])
}

/// The longest text of an event that is said in full, in code points: as long as the protocol
/// lets a summary be. What is left out is counted aloud.
pub const MAX_TEXT: usize = 16_384;

/// The longest name that is said in full, in code points.
pub const MAX_NAME: usize = 256;

/// The beginning of a text, cut between characters as people see them (L6), and how many code
/// points are left out.
pub(crate) fn cut(text: &str, max: usize) -> (&str, usize) {
    // enforces: L6
    let said = aaep_types::cut(text, max);
    (said, text[said.len()..].chars().count())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: L6
    #[test]
    fn text_is_cut_between_characters_as_people_see_them() {
        assert_eq!(cut("abc", 3), ("abc", 0));
        assert_eq!(cut("abcd", 3), ("abc", 1));
        assert_eq!(cut("ab👩‍💻d", 3), ("ab", 4));
        assert_eq!(cut("e\u{301}e\u{301}", 3), ("e\u{301}", 2));
        assert_eq!(cut(&"\u{301}".repeat(9), 3).1, 6);
    }
}
