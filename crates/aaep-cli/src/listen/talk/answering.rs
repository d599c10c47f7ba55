//! From what was typed to an answer.

use std::sync::Arc;

use aaep_bridge::hook::FOR_THIS_SESSION;
use aaep_subscriber::inbox::{Answer, InboxError};
use aaep_subscriber::words::{Argument, SpokenLine};
use aaep_subscriber::{Asks, Choice, Request};
use aaep_types::{Presence, ResponseKind, Reversibility, RiskLevel};
use aaep_voice::utterance::Class;

use super::saying::About;
use super::vocabulary::{self, Command};
use super::{Mode, Output, Talk, count};

/// The longest answer, in characters (§6.5.2).
const ANSWER_CHARACTERS: usize = 16_384;

/// Choices that one key can name.
const KEYS: usize = 9;

/// Which yes needs a second step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum SecondStep {
    /// Every yes to an action.
    Always,
    /// A yes to what cannot be undone and is of high risk.
    #[default]
    Risky,
    Never,
}

/// An answer of a program, which names its request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Named {
    pub(crate) number: u32,
    /// `None` if what was sent cannot be one.
    pub(crate) answer: Option<Answer>,
    /// The second step, where one is needed.
    pub(crate) certain: bool,
}

/// Why what was typed is no answer: the key of a phrase.
type Misfit = &'static str;

/// The phrases that say what can be pressed for a question.
pub(super) fn keys(asks: &Asks) -> Vec<&'static str> {
    let Asks::Answer { kinds, choices, .. } = asks else { return vec!["keys.consent"] };
    let mut keys = Vec::new();
    if kinds.contains(&ResponseKind::YesNo) {
        keys.push("keys.yes_no");
    }
    if kinds.contains(&ResponseKind::MultipleChoice) {
        keys.push(if choices.len() > KEYS { "keys.many_choices" } else { "keys.choices" });
    }
    if kinds.contains(&ResponseKind::Numeric) {
        keys.push("keys.numeric");
    }
    if kinds.contains(&ResponseKind::Freetext) || keys.is_empty() {
        keys.push("keys.freetext");
    }
    keys.push("keys.more");
    keys
}

/// Whether a yes to this could do harm that stays; what is not known counts as the worst.
pub(super) fn is_grave(asks: &Asks) -> bool {
    matches!(
        asks,
        Asks::Consent { risk: RiskLevel::High, reversibility: Reversibility::Irreversible, .. }
    )
}

/// Whether yes and no answer this.
pub(super) fn takes_yes_no(asks: &Asks) -> bool {
    match asks {
        Asks::Consent { .. } => true,
        Asks::Answer { kinds, .. } => kinds.contains(&ResponseKind::YesNo),
    }
}

/// The choice that was named by its number, its value, its label, or the beginning of only one.
fn chosen<'c>(choices: &'c [Choice], text: &str) -> Option<&'c Choice> {
    if let Some(number) = vocabulary::whole(text) {
        return choices.get((number as usize).checked_sub(1)?);
    }
    let text = text.to_lowercase();
    let same = |choice: &&Choice| {
        choice.value.to_lowercase() == text || choice.label.to_lowercase() == text
    };
    if let Some(choice) = choices.iter().find(same) {
        return Some(choice);
    }
    let mut like = choices.iter().filter(|choice| choice.label.to_lowercase().starts_with(&text));
    like.next().filter(|_| like.next().is_none())
}

// enforces: C28
/// What was typed, as one of the kinds that the question takes.
fn fit(asks: &Asks, text: &str, word: Option<Command>) -> Result<Answer, Misfit> {
    let Asks::Answer { kinds, choices, .. } = asks else { return Err("misfit.yes_no") };
    let text = text.trim();
    let takes = |kind| kinds.contains(&kind);
    if takes(ResponseKind::MultipleChoice)
        && let Some(choice) = chosen(choices, text)
    {
        return Ok(Answer::Choice(choice.value.clone()));
    }
    if takes(ResponseKind::YesNo) && matches!(word, Some(Command::Yes | Command::No)) {
        return Ok(Answer::YesNo(word == Some(Command::Yes)));
    }
    if takes(ResponseKind::Numeric)
        && let Some(number) = vocabulary::number(text)
    {
        return Ok(Answer::Number(number));
    }
    if takes(ResponseKind::Freetext) || kinds.is_empty() {
        return match text.chars().count() {
            0..=ANSWER_CHARACTERS => Ok(Answer::Text(text.to_owned())),
            _ => Err("misfit.long"),
        };
    }
    Err(match kinds[0] {
        ResponseKind::MultipleChoice => "misfit.choice",
        ResponseKind::YesNo => "misfit.yes_no",
        ResponseKind::Numeric => "misfit.number",
        _ => "misfit.text",
    })
}

impl Talk {
    // enforces: T21, S10
    /// Whether an answer may be taken for a question: not if it was typed before anybody can have
    /// heard it.
    pub(super) fn too_soon(&mut self, number: u32) -> bool {
        let said_at = self.find(number).map_or(0, |open| open.said_at);
        let soon = self.now < said_at.saturating_add(self.settings.pause_ms);
        if soon {
            self.say(self.by_mode("too_soon"), &[("number", count(number))]);
        }
        soon
    }

    /// Yes or no, for the question in focus.
    pub(super) fn yes_or_no(&mut self, yes: bool) {
        let Some(request) = self.focused() else {
            self.say("nothing_waits", &[]);
            return;
        };
        if !takes_yes_no(&request.asks) {
            self.say_keys(&request);
        } else if self.too_soon(request.number) {
        } else if matches!(request.asks, Asks::Answer { .. }) {
            self.send(&request, Answer::YesNo(yes));
        } else if !yes {
            self.send(&request, Answer::Reject);
        } else if self.needs_second_step(&request.asks) {
            self.mode = Mode::Certain(request.number);
            let key = match is_grave(&request.asks) {
                _ if self.settings.dictation => "second_step.spoken",
                true => "second_step.grave",
                false => "second_step",
            };
            self.say(key, &[("number", count(request.number))]);
        } else {
            self.send(&request, Answer::Accept);
        }
    }

    pub(super) fn needs_second_step(&self, asks: &Asks) -> bool {
        // What a microphone picks up is not always meant.
        if self.settings.dictation {
            return matches!(asks, Asks::Consent { .. });
        }
        match self.settings.second_step {
            SecondStep::Always => matches!(asks, Asks::Consent { .. }),
            SecondStep::Risky => is_grave(asks),
            SecondStep::Never => false,
        }
    }

    /// The second step: the word itself, so that no single key is enough.
    pub(super) fn certain(&mut self, number: u32, text: &str) {
        let text = text.trim();
        let request = self.find(number).map(|open| open.request.clone());
        self.mode = Mode::Free;
        // Spoken answers include the number: nobody says that by chance.
        let (word, certain) = match self.vocabulary.read(text) {
            Some((word, rest)) if self.settings.dictation => {
                (Some(word), vocabulary::whole(rest) == Some(number))
            }
            _ => (self.vocabulary.find(text), text.len() > 1),
        };
        match (request, word) {
            (Some(request), Some(Command::Yes)) if certain => self.send(&request, Answer::Accept),
            (Some(request), Some(Command::No)) => self.send(&request, Answer::Reject),
            (Some(request), _) => {
                self.say("not_certain", &[("number", count(number))]);
                self.say_keys(&request);
            }
            (None, _) => self.say("no_longer_needed", &[]),
        }
    }

    /// The user wants to type an answer, or has typed it in the same line.
    pub(super) fn begin_answer(&mut self, rest: &str) {
        let Some(request) = self.focused() else {
            self.say("nothing_waits", &[]);
            return;
        };
        if matches!(request.asks, Asks::Consent { .. }) {
            self.say_keys(&request);
        } else if !rest.is_empty() {
            self.answer(&request, rest);
        } else {
            self.mode = Mode::Answering(request.number);
            self.say("type_answer", &[("number", count(request.number))]);
        }
    }

    /// A line that was typed as an answer.
    pub(super) fn typed_answer(&mut self, number: u32, text: &str) {
        self.mode = Mode::Free;
        match self.find(number).map(|open| open.request.clone()) {
            None => self.say("no_longer_needed", &[]),
            Some(request) if text.trim().is_empty() => {
                self.say("nothing_sent", &[("number", count(number))]);
                self.say_keys(&request);
            }
            Some(request) => self.answer(&request, text),
        }
    }

    /// Sends it if it fits; otherwise says what would, and lets the user try again.
    pub(super) fn answer(&mut self, request: &Arc<Request>, text: &str) {
        if self.too_soon(request.number) {
            return;
        }
        match fit(&request.asks, text, self.vocabulary.find(text.trim())) {
            Ok(answer) => self.send(request, answer),
            Err(misfit) => {
                self.say(misfit, &[]);
                if !self.settings.lines {
                    self.mode = Mode::Answering(request.number);
                }
            }
        }
    }

    /// A number, typed alone: a choice, an answer, or another question's number.
    pub(super) fn number(&mut self, number: u32) {
        let focused = self.focused();
        if let Some(request) = &focused
            && let Asks::Answer { kinds, choices, .. } = &request.asks
        {
            let chooses = kinds.contains(&ResponseKind::MultipleChoice);
            if chooses && (self.settings.lines || choices.len() <= KEYS) {
                return self.answer(request, &number.to_string());
            }
            if self.settings.lines && kinds.contains(&ResponseKind::Numeric) {
                return self.answer(request, &number.to_string());
            }
            // One key cannot say a number of several digits.
            if chooses || kinds.contains(&ResponseKind::Numeric) {
                return self.say_keys(request);
            }
        }
        self.go_to(number);
    }

    /// Text that is no command: an answer in the user's own words, perhaps; it is asked back for.
    pub(super) fn unknown(&mut self, text: &str) {
        if let Some(request) = self.focused().filter(|_| self.settings.lines)
            && let Ok(answer) = fit(&request.asks, text, None)
        {
            let number = request.number;
            match answer {
                // Somebody talks, perhaps with somebody else.
                Answer::Text(_) if self.settings.dictation => {}
                // A number or a choice cannot be meant otherwise.
                Answer::Text(typed) => {
                    let arguments =
                        [("number", count(number)), ("answer", Argument::Ours(typed.as_str()))];
                    self.say("really_send", &arguments);
                    self.mode = Mode::Sending(number, typed);
                }
                _ => self.answer(&request, text),
            }
            return;
        }
        // Chatter is not answered: the answer would be heard, and perhaps written down again.
        if !self.settings.dictation {
            self.say(self.by_mode("unknown"), &[]);
        }
    }

    /// Whether the text that was asked back for is the answer.
    pub(super) fn really_send(&mut self, number: u32, text: &str, word: Option<Command>) {
        self.mode = Mode::Free;
        match self.find(number).map(|open| open.request.clone()) {
            Some(request) if word == Some(Command::Yes) => self.answer(&request, text),
            Some(request) => {
                self.say("nothing_sent", &[("number", count(number))]);
                self.say_keys(&request);
            }
            None => self.say("no_longer_needed", &[]),
        }
    }

    /// An answer of a program.
    pub(crate) fn named(&mut self, named: Named, now: u64) {
        self.now = self.now.max(now);
        let number = named.number;
        let Some(request) = self.find(number).map(|open| open.request.clone()) else {
            self.say("no_such_request", &[("number", count(number))]);
            return;
        };
        let rejects = named.answer.as_ref().is_some_and(Answer::rejects);
        // A yes that waits for the PIN can still be taken back.
        if self.find(number).is_some_and(|open| open.sent && !(open.unproven && rejects)) {
            return self.say("refused.answered", &[("number", count(number))]);
        }
        let accepts = named.answer.as_ref().is_some_and(Answer::accepts);
        if accepts && self.needs_second_step(&request.asks) && !named.certain {
            return self.say("second_step.named", &[("number", count(number))]);
        }
        match named.answer.filter(|answer| fits(&request.asks, answer)) {
            Some(answer) => self.send(&request, answer),
            None => self.say("misfit.named", &[("number", count(number))]),
        }
        self.after_answer();
    }

    /// A yes or no to the question in focus, with what was typed behind it. A yes takes nothing but
    /// [`FOR_THIS_SESSION`]; a no can say anything.
    pub(super) fn because(&mut self, yes: bool, why: &str) -> bool {
        let consent = self.focused().filter(|request| matches!(request.asks, Asks::Consent { .. }));
        // Somebody talks, perhaps with somebody else.
        let Some(request) = consent.filter(|_| self.settings.lines && !self.settings.dictation)
        else {
            return false;
        };
        if yes && !why.eq_ignore_ascii_case(FOR_THIS_SESSION) {
            return false;
        }
        let why = if yes { FOR_THIS_SESSION.to_owned() } else { why.to_owned() };
        self.reason = Some((request.number, why));
        self.yes_or_no(yes);
        true
    }

    /// The answer with the reason that was typed with it.
    fn with_reason(&mut self, number: u32, answer: Answer) -> Answer {
        let reason = self.reason.take().filter(|(of, _)| *of == number).map(|(_, why)| why);
        match (answer, reason) {
            (Answer::Accept, Some(why)) if why == FOR_THIS_SESSION => Answer::AcceptBecause(why),
            (Answer::Reject, Some(why)) if why != FOR_THIS_SESSION => Answer::RejectBecause(why),
            (answer, _) => answer,
        }
    }

    // enforces: C28
    /// An answer leaves. The question stays until it is settled; the next one comes into focus.
    pub(super) fn send(&mut self, request: &Arc<Request>, answer: Answer) {
        let answer = self.with_reason(request.number, answer);
        let Some(open) = self.find_mut(request.number) else { return };
        open.sent = true;
        // A yes that may have to wait for the PIN leaves when that was right: until then the request
        // waits as before.
        open.unproven = answer.accepts() && request.needs() >= Presence::Pin;
        let (id, unproven) = (open.request.id, open.unproven);
        if !unproven {
            self.leaves(request.number, &answer);
        }
        self.out.push_back(Output::Reply { id, request: request.clone(), answer });
        if !unproven {
            self.closes(request.number);
        }
    }

    fn leaves(&mut self, number: u32, answer: &Answer) {
        let key = match answer {
            Answer::Accept | Answer::AcceptBecause(_) | Answer::YesNo(true) => "sent.yes",
            Answer::Reject | Answer::RejectBecause(_) | Answer::YesNo(false) => "sent.no",
            Answer::Text(_) | Answer::Number(_) | Answer::Choice(_) => "sent.answer",
        };
        self.say(key, &[("number", count(number))]);
        if self.focus == Some(number) {
            self.focus = None;
        }
    }

    /// A yes that may have had to wait for the PIN was sent.
    pub(crate) fn was_sent(&mut self, number: u32, answer: &Answer) {
        let Some(open) = self.find_mut(number) else { return };
        if std::mem::take(&mut open.unproven) {
            self.leaves(number, answer);
            self.closes(number);
            self.after_answer();
        }
    }

    /// An answer, or a wish for more time, was not taken: the question waits, unless it is over.
    pub(crate) fn refused(&mut self, number: u32, why: &InboxError) {
        let key = match why {
            InboxError::NotWaiting => "refused.over",
            InboxError::AlreadyAnswered => "refused.answered",
            InboxError::MayNotReply => "refused.may_not",
            InboxError::NotAllowed => "refused.not_allowed",
            InboxError::NotOffered => "refused.not_offered",
            _ => "refused.not_sent",
        };
        self.say(key, &[("number", count(number))]);
        self.find_mut(number).into_iter().for_each(|open| open.unproven = false);
        match why {
            InboxError::AlreadyAnswered => {}
            InboxError::NotWaiting => {
                self.open.retain(|open| open.request.number != number);
                self.closes(number);
            }
            // It can be heard again, but asking anew would change nothing.
            InboxError::MayNotReply => {
                self.focus = Some(number);
                self.find_mut(number).into_iter().for_each(|open| open.sent = false);
            }
            _ => {
                self.find_mut(number).into_iter().for_each(|open| open.sent = false);
                self.opens(number);
                self.focus_next();
            }
        }
    }

    // enforces: T21
    /// Answers by a standing rule of the user, if there is one for this, and says so.
    pub(super) fn settle_by_rule(&mut self, request: &Arc<Request>, lines: &[SpokenLine]) -> bool {
        let Some(standing) = &self.settings.standing else { return false };
        let Some((rule, accept)) = standing.judge(request) else { return false };
        self.tell(lines, &About::request(Class::Request, request));
        let key = if accept { "by_rule.yes" } else { "by_rule.no" };
        let line = u64::try_from(rule).unwrap_or(u64::MAX);
        self.say(key, &[("line", Argument::Count(line))]);
        self.send(request, if accept { Answer::Accept } else { Answer::Reject });
        true
    }
}

/// Whether an answer is of a kind that the request takes.
fn fits(asks: &Asks, answer: &Answer) -> bool {
    match (asks, answer) {
        (Asks::Consent { .. }, answer) => answer.accepts() || answer.rejects(),
        (Asks::Answer { kinds, choices, .. }, answer) => match answer {
            Answer::YesNo(_) => kinds.contains(&ResponseKind::YesNo),
            Answer::Number(_) => kinds.contains(&ResponseKind::Numeric),
            Answer::Choice(value) => {
                kinds.contains(&ResponseKind::MultipleChoice)
                    && choices.iter().any(|choice| choice.value == *value)
            }
            Answer::Text(_) => kinds.is_empty() || kinds.contains(&ResponseKind::Freetext),
            _ => false,
        },
    }
}
