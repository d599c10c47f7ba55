//! The agent's answers: said as they come, or kept until somebody wants to read them.

use std::collections::VecDeque;
use std::sync::Arc;

use aaep_subscriber::words::Argument;
use aaep_subscriber::{Agent, Notification};
use aaep_voice::utterance::Class;
use icu_segmenter::SentenceSegmenter;
use icu_segmenter::options::SentenceBreakInvariantOptions;

use super::saying::About;
use super::{Output, Talk, Voice};

/// Answers that are kept, those that were read too.
const ANSWERS: usize = 16;

/// What is kept of one answer, in bytes; of a longer one, the end.
const ANSWER_BYTES: usize = 256 * 1024;

/// When the agent's text is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum By {
    /// Each sentence, as it comes.
    #[default]
    Sentence,
    /// Each paragraph.
    Paragraph,
    /// Not before somebody asks for it; that it is there is said.
    End,
}

/// One answer.
#[derive(Debug)]
struct Text {
    agent: Agent,
    session_id: Arc<str>,
    output_id: Arc<str>,
    text: String,
    /// Up to where it was said, in bytes.
    said: usize,
    gap: bool,
    ended: bool,
    /// The user does not want to hear the rest now.
    hushed: bool,
}

#[derive(Debug)]
pub(super) struct Reading {
    by: By,
    quiet: bool,
    texts: VecDeque<Text>,
}

impl Reading {
    pub(super) fn new(by: By, quiet: bool) -> Self {
        Self { by, quiet, texts: VecDeque::new() }
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.texts.iter().map(|text| text.text.capacity()).sum()
    }

    fn position(&self, session: &str, output: &str) -> Option<usize> {
        self.texts.iter().rposition(|text| {
            &*text.session_id == session && &*text.output_id == output && !text.ended
        })
    }
}

impl Text {
    /// What was not said yet, up to a boundary at which it can be.
    fn ready(&self, by: By) -> &str {
        let rest = &self.text[self.said..];
        match by {
            _ if self.hushed => "",
            // They come cut as they were asked for.
            By::Sentence | By::Paragraph => rest,
            By::End => "",
        }
    }

    fn add(&mut self, more: &str) {
        self.text.push_str(more);
        if self.text.len() > ANSWER_BYTES {
            let cut = self.text.ceil_char_boundary(self.text.len() - ANSWER_BYTES);
            self.text.drain(..cut);
            self.gap |= cut > self.said;
            self.said = self.said.saturating_sub(cut);
        }
    }

    /// As the words take it: each sentence on a line of its own, or as it was written.
    fn notification(&self, text: &str, by: By) -> Notification {
        let text = match by {
            By::Paragraph => text.to_owned(),
            By::Sentence | By::End => sentences(text).join("\n"),
        };
        Notification::Text {
            agent: self.agent.clone(),
            session_id: self.session_id.clone(),
            output_id: self.output_id.clone(),
            text,
            ends: self.ended,
            after_gap: self.gap,
        }
    }
}

/// The sentences of a text.
fn sentences(text: &str) -> Vec<&str> {
    let breaks = SentenceSegmenter::new(SentenceBreakInvariantOptions::default());
    let mut found = Vec::new();
    let mut from = 0;
    for to in breaks.segment_str(text) {
        found.extend(Some(text[from..to].trim()).filter(|sentence| !sentence.is_empty()));
        from = to;
    }
    found
}

impl Talk {
    // enforces: T19
    /// Text of an agent's answer has come.
    pub(super) fn text(&mut self, notification: &Notification) {
        let Notification::Text { agent, session_id, output_id, text, ends, after_gap } =
            notification
        else {
            return;
        };
        let reading = &mut self.reading;
        let at = reading.position(session_id, output_id).unwrap_or_else(|| {
            if reading.texts.len() >= ANSWERS {
                reading.texts.pop_front();
            }
            reading.texts.push_back(Text {
                agent: agent.clone(),
                session_id: session_id.clone(),
                output_id: output_id.clone(),
                text: String::new(),
                said: 0,
                gap: false,
                ended: false,
                hushed: reading.quiet,
            });
            reading.texts.len() - 1
        });
        let by = reading.by;
        let piece = &mut reading.texts[at];
        piece.add(text);
        piece.gap |= after_gap;
        piece.ended = *ends;
        let ready = piece.ready(by).to_owned();
        if !ready.is_empty() {
            piece.said += ready.len();
            let said = piece.notification(&ready, by);
            piece.gap = false;
            let lines = self.lines_of(&said);
            self.note_session(agent, session_id, &lines, false);
            let language = self.sessions.find(session_id).and_then(|live| live.language.clone());
            self.tell(&lines, &About::text(session_id, language));
        }
        if *ends {
            self.say_what_is_left(at);
        }
    }

    /// An answer is complete: if some of it was not said, that it is there.
    fn say_what_is_left(&mut self, at: usize) {
        let text = &self.reading.texts[at];
        let left = sentences(&text.text[text.said..]).len() as u64;
        if left == 0 || self.reading.quiet {
            return;
        }
        let key = match (text.said, text.hushed) {
            (0, _) => "answer_kept",
            _ => "rest_kept",
        };
        let name = text.agent.name.clone();
        let arguments = [("agent", Argument::Theirs(&name)), ("count", Argument::Count(left))];
        let about = About::session(Class::Result, &text.session_id.clone());
        self.say_about(self.by_mode(key), &arguments, &about);
    }

    /// The user wants silence: what is being said is kept instead.
    pub(super) fn hush(&mut self) {
        self.out.push_back(Output::Voice(Voice::Silence));
        let mut any = false;
        for text in self.reading.texts.iter_mut().filter(|text| !text.ended && !text.hushed) {
            text.hushed = true;
            any = true;
        }
        self.say(self.by_mode(if any { "hushed" } else { "nothing_to_hush" }), &[]);
    }

    /// Reads what was kept of the last answer; if all of it was said, the whole again.
    pub(super) fn play(&mut self) {
        let by = self.reading.by;
        let texts = &mut self.reading.texts;
        let unsaid = texts.iter().rposition(|text| text.said < text.text.len());
        let Some(at) = unsaid.or_else(|| texts.len().checked_sub(1)) else {
            self.say("nothing_to_play", &[]);
            return;
        };
        let text = &mut texts[at];
        text.hushed = false;
        if text.said == text.text.len() {
            text.said = 0;
        }
        let rest = text.text[text.said..].to_owned();
        text.said = text.text.len();
        let said = text.notification(&rest, by);
        text.gap = false;
        let lines = self.lines_of(&said);
        self.tell(&lines, &About::new(Class::Feedback));
    }
}

#[cfg(test)]
mod tests {
    use super::sentences;

    #[test]
    fn sentences_are_counted_as_they_are_read() {
        assert_eq!(sentences("One. Two! Is this three? "), ["One.", "Two!", "Is this three?"]);
        assert_eq!(sentences("没有人听见。你好。"), ["没有人听见。", "你好。"]);
        assert_eq!(sentences(" \n"), Vec::<&str>::new());
        assert_eq!(sentences("no end"), ["no end"]);
    }
}
