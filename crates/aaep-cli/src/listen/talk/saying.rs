//! How something is said: in which words, on which lines, and when it has to wait.

use std::sync::Arc;

use aaep_subscriber::words::{Argument, Manner, Said, Span};
use aaep_subscriber::{Happening, Request};

use super::{Output, Talk, answering};

/// Lines that wait while an answer is typed; beyond that they are said, whatever is typed.
const HELD_LINES: usize = 1000;

impl Talk {
    /// A question in full, with what can be pressed.
    pub(super) fn say_question(&mut self, request: &Arc<Request>) {
        let lines = self.again(request, self.settings.manner);
        self.tell(lines, true);
        self.say_keys(request);
        let now = self.now;
        if let Some(open) = self.find_mut(request.number) {
            open.said_at = now;
        }
    }

    /// A question in full, with the time that is left.
    pub(super) fn again(&self, request: &Request, manner: Manner) -> Vec<String> {
        let left = request.deadline_ms.saturating_sub(self.now).div_ceil(1000);
        let request = Request { continues: None, timeout_seconds: left, ..request.clone() };
        self.words.request(&request, &manner).iter().map(|said| self.line(said)).collect()
    }

    /// What can be pressed or typed for a question; always the last that is said of it.
    pub(super) fn say_keys(&mut self, request: &Request) {
        for key in answering::keys(&request.asks) {
            self.say(self.by_mode(key), &[], true);
        }
    }

    pub(super) fn lines_of(&self, happening: &Happening) -> Vec<String> {
        let said = self.words.say(happening, &self.settings.manner);
        said.iter().map(|said| self.line(said)).collect()
    }

    pub(super) fn tell_of(&mut self, happening: &Happening, urgent: bool) {
        let lines = self.lines_of(happening);
        if urgent || !self.settings.quiet {
            self.tell(lines, urgent);
        }
    }

    /// Says lines; while an answer is typed, what can wait does.
    pub(super) fn tell(&mut self, lines: Vec<String>, urgent: bool) {
        if lines.is_empty() {
            return;
        }
        if !urgent && self.is_typing() && !self.settings.lines && self.held.len() < HELD_LINES {
            self.held.extend(lines);
            return;
        }
        self.last.clone_from(&lines);
        self.out.extend(lines.into_iter().map(Output::Say));
    }

    /// Says what had to wait.
    pub(super) fn release(&mut self) {
        let held = std::mem::take(&mut self.held);
        self.out.extend(held.into_iter().map(Output::Say));
    }

    /// Says one of the terminal's own phrases.
    pub(super) fn say(
        &mut self,
        key: impl AsRef<str>,
        arguments: &[(&str, Argument<'_>)],
        urgent: bool,
    ) {
        let said = self.words.phrase(&format!("terminal.{}", key.as_ref()), arguments);
        let line = self.line(&said);
        if urgent || !self.is_typing() || self.settings.lines {
            self.out.push_back(Output::Say(line));
        } else {
            self.held.push_back(line);
        }
    }

    /// The key of a phrase that is another one where lines are typed.
    pub(super) fn by_mode(&self, key: &str) -> String {
        if self.settings.lines { format!("{key}.line") } else { key.to_owned() }
    }

    /// How long a request still waits.
    pub(super) fn left(&self, request: &Request) -> Said {
        let left = request.deadline_ms.saturating_sub(self.now);
        self.words.duration(left.div_ceil(1000))
    }

    /// A line for the terminal: what the agent wrote stands in quotes that it cannot close, and
    /// nothing in it moves the cursor.
    pub(super) fn line(&self, said: &Said) -> String {
        let (open, close) = &self.quotes;
        let mut line = String::new();
        for span in &said.spans {
            match span {
                Span::Ours(text) => line.push_str(text),
                Span::Theirs(text) => {
                    line.push_str(open);
                    let inner = text.replace(open.as_str(), "'").replace(close.as_str(), "'");
                    line.push_str(&inner);
                    line.push_str(close);
                }
            }
        }
        harmless(line)
    }
}

/// The words are safe already; this is the second lock on the same door.
fn harmless(line: String) -> String {
    if !line.contains(char::is_control) {
        return line;
    }
    line.chars().map(|sign| if sign.is_control() { '\u{FFFD}' } else { sign }).collect()
}
