//! Requests as they stand on a braille display and on a desktop, and what routing keys answer.

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::words::{SpokenLine, look_alikes, safe};
use aaep_subscriber::{Asks, Request};
use aaep_types::{ResponseKind, Reversibility};
use aaep_voice::braille::{Event, Label, Pressed, Question, Reply};

use super::answering::Named;
use super::{Argument, Talk};

/// Choices that routing keys can give.
const CHOICES: usize = 20;

impl Talk {
    /// A request that waits, as it stands on a display.
    pub(crate) fn on_display(&self, number: u32) -> Option<Question> {
        let request = self.request(number)?;
        let answers = self.labels(&request.asks);
        let second_step = self.needs_second_step(&request.asks).then(|| {
            let Asks::Consent { reversibility, .. } = &request.asks else { return String::new() };
            format!("{} {}", self.short_undo(*reversibility), self.plain("terminal.braille.sure"))
        });
        Some(Question { number, text: self.short(&request), answers, second_step })
    }

    // enforces: I31
    /// The action, whether it can be undone, how much can go wrong, what the hub itself says would run,
    /// what happens. If there is something to beware of, everything is there in full.
    fn short(&self, request: &Request) -> String {
        let plain = |lines: Vec<SpokenLine>| {
            lines.iter().map(|said| self.line(said)).collect::<Vec<_>>().join(" ")
        };
        let full = || plain(self.again(request, self.settings.manner));
        let Asks::Consent { action, consequence, risk, reversibility, silence_accepts } =
            &request.asks
        else {
            return full();
        };
        let hidden = [action, consequence].iter().any(|text| safe(text).hidden > 0);
        if hidden || *silence_accepts || !look_alikes(&[action, consequence]).is_empty() {
            return full();
        }
        [
            self.quoted(action),
            self.short_undo(*reversibility),
            self.plain(&format!("risk.{}", risk.as_str())),
            plain(self.words.account(request)),
            self.quoted(consequence),
        ]
        .into_iter()
        .filter(|piece| !piece.is_empty())
        .collect::<Vec<_>>()
        .join(" ")
    }

    fn labels(&self, asks: &Asks) -> Vec<Label> {
        let label = |key: &str, reply| Label { text: self.plain(key), reply };
        let yes_no = || vec![label("no", Reply::No), label("yes", Reply::Yes)];
        match asks {
            Asks::Consent { .. } => yes_no(),
            Asks::Answer { kinds, choices, .. } => {
                let mut labels = Vec::new();
                if kinds.contains(&ResponseKind::MultipleChoice) && choices.len() <= CHOICES {
                    labels.extend(choices.iter().enumerate().map(|(at, choice)| Label {
                        text: format!(
                            "{} {}",
                            self.words.number(at as u64 + 1),
                            safe(choice.label.trim()).text
                        ),
                        reply: Reply::Choice(at),
                    }));
                }
                if kinds.contains(&ResponseKind::YesNo) {
                    labels.extend(yes_no());
                }
                labels
            }
        }
    }

    fn short_undo(&self, reversibility: Reversibility) -> String {
        self.plain(&format!("terminal.braille.undo.{}", reversibility.as_str()))
    }

    fn plain(&self, key: &str) -> String {
        self.words.phrase(key, &[]).to_string()
    }

    fn quoted(&self, text: &str) -> String {
        let (open, close) = &self.quotes;
        let inner = safe(text.trim()).text.replace(open, "'").replace(close, "'");
        format!("{open}{inner}{close}")
    }

    /// A request that waits, as it is shown on a desktop: a title, and everything that it asks.
    pub(crate) fn noted(&self, number: u32) -> Option<(String, String)> {
        let request = self.request(number)?;
        let arguments = [
            ("number", Argument::Count(number.into())),
            ("agent", Argument::Theirs(&request.agent.name)),
        ];
        let title = self.line(&self.words.phrase("terminal.notify.title", &arguments));
        let mut lines: Vec<String> =
            self.again(&request, self.settings.manner).iter().map(|it| self.line(it)).collect();
        lines.push(self.plain("terminal.notify.how"));
        Some((title, lines.join("\n")))
    }

    /// The desktop shows nothing any more.
    pub(crate) fn not_notified(&mut self, why: &str) {
        self.say("notify.lost", &[("why", Argument::Ours(why))]);
    }

    /// A display has something to tell.
    pub(crate) fn display(&mut self, event: &Event, now: u64) {
        match event {
            Event::Answer(pressed) => self.pressed(*pressed, now),
            Event::Lost(why) => {
                let why = format!("{}.", why.trim_end_matches('.'));
                self.say("braille.lost", &[("why", Argument::Ours(&why))]);
            }
            Event::Back => self.say("braille.back", &[]),
            _ => {}
        }
    }

    fn pressed(&mut self, pressed: Pressed, now: u64) {
        let Pressed { number, reply, certain } = pressed;
        let Some(request) = self.request(number) else { return };
        let answer = match (&request.asks, reply) {
            (Asks::Consent { .. }, Reply::Yes) => Some(Answer::Accept),
            (Asks::Consent { .. }, Reply::No) => Some(Answer::Reject),
            (Asks::Answer { .. }, Reply::Yes | Reply::No) => {
                Some(Answer::YesNo(reply == Reply::Yes))
            }
            (Asks::Answer { choices, .. }, Reply::Choice(at)) => {
                choices.get(at).map(|choice| Answer::Choice(choice.value.clone()))
            }
            (Asks::Consent { .. }, Reply::Choice(_)) => None,
        };
        if self.focus == Some(number) {
            // It replaces an answer that was being typed.
            self.mode = super::Mode::Free;
        }
        self.named(Named { number, answer, certain }, now);
    }
}
