//! What is said: events, requests and connections in words.
//!
//! The fixed phrases are data: `messages/README.md` describes the files. [`Words::say`] turns a
//! [`Notification`] into lines. In each line our words and the agent's stay apart, and the agent's are
//! made safe ([`safe`]), so that a voice can show which is which and nothing an agent writes can
//! drive a terminal, hide, or pass for us.

mod asked;
mod confusables;
mod direction;
mod event;
mod messages;
mod numbers;
mod other;
mod safe;
mod speech;
mod spell;

use aaep_types::{LanguageTag, Level, PresenceWord, Verbosity, choose_language};
use std::fmt;

use crate::notification::Notification;
use crate::request::Request;
use messages::{Catalogue, Part, catalogues};
use numbers::Numbers;
use speech::Speech;

pub use confusables::{LookAlike, look_alikes, table as look_alike_table};
pub use direction::Direction;
pub use messages::files;
pub use safe::{MAX_MARKS, MAX_NESTING, Safe, code, safe};
pub use speech::{MAX_NAME, MAX_TEXT};
pub use spell::MAX_SPELLED;

/// How much is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Manner {
    /// Terse, normal or detailed.
    pub verbosity: Verbosity,
    /// How burdened the listener is: with `High`, one short idea per line and fewer details; with
    /// `Low`, everything in one line. Not the `cognitive_load` that is negotiated: there, low asks
    /// for less.
    pub load: Level,
    /// Whether it is said which agent something comes from: when more than one is heard.
    pub name_agents: bool,
}

impl Default for Manner {
    fn default() -> Self {
        Self { verbosity: Verbosity::Normal, load: Level::Medium, name_agents: false }
    }
}

/// A piece of what is said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Our own words.
    Ours(String),
    /// The agent's words, made safe.
    Theirs(String),
}

impl Span {
    /// Its text, ours or the agent's.
    pub fn text(&self) -> &str {
        match self {
            Span::Ours(text) | Span::Theirs(text) => text,
        }
    }
}

/// One line: what is said without a pause.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SpokenLine {
    /// Its pieces in order.
    pub spans: Vec<Span>,
}

impl SpokenLine {
    fn ours(&mut self, text: &str) {
        match self.spans.last_mut() {
            Some(Span::Ours(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => self.spans.push(Span::Ours(text.to_owned())),
        }
    }

    fn theirs(&mut self, text: &str) {
        let text = safe(text).text;
        if !text.is_empty() {
            self.spans.push(Span::Theirs(text.into_owned()));
        }
    }

    fn append(&mut self, other: &SpokenLine) {
        for span in &other.spans {
            match span {
                Span::Ours(text) => self.ours(text),
                Span::Theirs(_) => self.spans.push(span.clone()),
            }
        }
    }
}

/// The line as plain text, ours and theirs alike.
impl fmt::Display for SpokenLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.spans.iter().try_for_each(|span| f.write_str(span.text()))
    }
}

/// A value for a placeholder.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Argument<'a> {
    /// A number, in the digits of the listener's country; `count` chooses the plural.
    Count(u64),
    /// Our own words.
    Ours(&'a str),
    /// The agent's words as they were sent; they are made safe.
    Theirs(&'a str),
    /// Another phrase.
    Phrase(&'a SpokenLine),
}

/// The words of one language.
#[derive(Clone, Debug)]
pub struct Words {
    catalogue: Option<&'static Catalogue>,
    numbers: Numbers,
}

impl Words {
    /// The words in the first of these languages that there is, or in English. The country behind a
    /// language decides how numbers are written: `ar-EG` has other digits than `ar-MA`.
    pub fn new(languages: &[&str]) -> Self {
        let asked: Vec<_> =
            languages.iter().filter_map(|tag| LanguageTag::parse(*tag).ok()).collect();
        let offered: Vec<_> =
            catalogues().iter().filter_map(|one| LanguageTag::parse(one.language).ok()).collect();
        let chosen = choose_language(&asked, &offered, &[]).map(LanguageTag::as_str);
        let found = catalogues().iter().find(|one| Some(one.language) == chosen);
        let catalogue = found.or(catalogues().first());
        let numbers = Numbers::new(catalogue.map_or("en", |one| one.language), languages);
        Self { catalogue, numbers }
    }

    /// The languages that there are: tag, and name in the language itself. English is first.
    pub fn languages() -> impl Iterator<Item = (&'static str, &'static str)> {
        catalogues().iter().map(|one| (one.language, one.name.as_str()))
    }

    /// The tag of the language.
    pub fn language(&self) -> &'static str {
        self.catalogue.map_or("en", |one| one.language)
    }

    /// Whether a machine wrote these words, and nobody who speaks the language has read them yet.
    pub fn by_machine(&self) -> bool {
        self.catalogue.is_some_and(|one| one.by_machine)
    }

    /// The direction of the language.
    pub fn direction(&self) -> Direction {
        self.catalogue.map_or(Direction::LeftToRight, |one| one.direction)
    }

    /// What is said of something that happens; nothing when there is nothing to say.
    pub fn say(&self, notification: &Notification, manner: &Manner) -> Vec<SpokenLine> {
        let mut speech = Speech::new(self, *manner);
        let agent = match notification {
            Notification::Event { agent, json, critical } => {
                speech.event(json, *critical);
                Some(agent)
            }
            Notification::Asked(request) => {
                speech.asked(request);
                Some(&request.agent)
            }
            Notification::Settled { request, outcome, announced } => {
                // What was never announced need not be taken back.
                if *announced {
                    speech.settled(request, *outcome);
                }
                Some(&request.agent)
            }
            Notification::Text { agent, text, after_gap, .. } => {
                speech.text(text, *after_gap);
                Some(agent)
            }
            Notification::Silence { agent, why, count } => {
                speech.silence(*why, *count);
                Some(agent)
            }
            Notification::Over { agent, .. } => {
                speech.say("session.gone", &[]);
                Some(agent)
            }
            Notification::Connected { hub, again, may_reply, identity } => {
                speech.connected(hub, *again, *may_reply);
                if let Some(identity) = identity {
                    speech.identity(identity, *again);
                }
                None
            }
            Notification::Lost { hub, why } => {
                speech.lost(hub, why);
                None
            }
            Notification::Presence { state, failures, .. } => {
                match state {
                    PresenceWord::Tried => {
                        speech.say("presence.tried", &[("count", Argument::Count(*failures))]);
                    }
                    PresenceWord::Changed => speech.say("presence.changed", &[]),
                    PresenceWord::PasskeyAdded => speech.say("presence.passkey_added", &[]),
                    PresenceWord::PasskeyRemoved => speech.say("presence.passkey_removed", &[]),
                    // The person who typed it is told where it was typed.
                    _ => {}
                }
                None
            }
        };
        speech.finish(agent.filter(|_| manner.name_agents))
    }

    /// A request in full, as it is said when it is asked: to hear it again.
    pub fn request(&self, request: &Request, manner: &Manner) -> Vec<SpokenLine> {
        let mut speech = Speech::new(self, *manner);
        speech.asked(request);
        speech.finish(manner.name_agents.then_some(&request.agent))
    }

    /// What the hub itself says would run, where that is said unasked; nothing where it is not. For a
    /// voice that has short forms of its own for the rest of the question.
    pub fn account(&self, request: &Request) -> Vec<SpokenLine> {
        let mut speech = Speech::new(self, Manner::default());
        if let Some(account) = request.account.as_ref().filter(|_| request.says_account()) {
            speech.account(account);
        }
        speech.finish(None)
    }

    /// What can be told of a request beyond the question: what the hub itself says would run, and the
    /// agent's own words where the policy's were asked. Nothing when there is nothing to tell.
    pub fn details(&self, request: &Request, manner: &Manner) -> Vec<SpokenLine> {
        let mut speech = Speech::new(self, *manner);
        speech.details(request);
        speech.finish(None)
    }

    /// A number, in the digits of the listener's country.
    pub fn number(&self, number: u64) -> String {
        self.numbers.write(number)
    }

    /// One phrase of the message files, by its key. A key that there is not is said as it stands.
    pub fn phrase(&self, key: &str, arguments: &[(&str, Argument<'_>)]) -> SpokenLine {
        let argument = |name: &str| arguments.iter().find(|(given, _)| *given == name);
        let count = argument("count").and_then(|(_, value)| match value {
            Argument::Count(count) => Some(*count),
            _ => None,
        });
        let english = || catalogues().first().and_then(|english| english.find(key, count));
        let mut said = SpokenLine::default();
        let Some(parts) = self.catalogue.and_then(|one| one.find(key, count)).or_else(english)
        else {
            said.ours(key);
            return said;
        };
        for part in parts {
            match part {
                Part::Words(words) => said.ours(words),
                Part::Argument(name) => match argument(name).map(|(_, value)| value) {
                    Some(Argument::Count(count)) => said.ours(&self.number(*count)),
                    Some(Argument::Ours(text)) => said.ours(&safe(text).text),
                    Some(Argument::Theirs(text)) => said.theirs(text.trim()),
                    Some(Argument::Phrase(phrase)) => said.append(phrase),
                    None => {}
                },
            }
        }
        said
    }
}
