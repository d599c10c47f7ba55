//! Payloads, as JSON.

use aaep_types::EventKind;
use aaep_types::agent_api::PostEvent;
use aaep_types::json::{Raw, Writer};

use crate::words::{Words, without_secrets};

/// The longest terse summary, in characters. What stands in the place of a secret may be longer than
/// the secret.
pub(crate) const TERSE_CHARS: usize = 2000;

/// An object that is about to be sent.
pub(crate) struct Body(Writer);

impl Body {
    pub(crate) fn new() -> Self {
        let mut out = Writer::with_capacity(1024);
        out.open('{');
        Self(out)
    }

    /// A text for machines.
    pub(crate) fn text(mut self, name: &str, value: &str) -> Self {
        self.0.name(name);
        self.0.string(value);
        self.0.comma();
        self
    }

    /// A text for people: secrets are taken out.
    pub(crate) fn human(self, name: &str, value: &str) -> Self {
        self.text(name, &without_secrets(value))
    }

    pub(crate) fn human_if(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.human(name, value),
            None => self,
        }
    }

    // enforces: T35
    /// The summaries of an event, all three: where an author gave only a sentence, it stands for the
    /// others too.
    pub(crate) fn words(self, words: &Words) -> Self {
        let short = words.normal.chars().count() <= TERSE_CHARS;
        let terse = words.terse.as_deref().or(short.then_some(&*words.normal));
        self.in_language(words.language.as_deref())
            .human_if("summary_terse", terse)
            .human("summary_normal", &words.normal)
            .human("summary_detailed", words.detailed.as_deref().unwrap_or(&words.normal))
    }

    fn in_language(self, tag: Option<&str>) -> Self {
        match tag {
            Some(tag) => {
                let hints = Self::new().text("primary_language", tag).finish();
                self.json("localization_hints", &hints)
            }
            None => self,
        }
    }

    /// Something that is JSON already: a number, true, false, or what the caller made.
    pub(crate) fn json(mut self, name: &str, json: &str) -> Self {
        self.0.name(name);
        self.0.json(json);
        self.0.comma();
        self
    }

    pub(crate) fn number(self, name: &str, number: u64) -> Self {
        self.json(name, &number.to_string())
    }

    pub(crate) fn finish(self) -> String {
        let mut out = self.0;
        out.close('}');
        out.finish()
    }

    /// An event with this payload, without its envelope, which the hub fills.
    pub(crate) fn event(self, kind: EventKind) -> PostEvent {
        let (type_name, payload) = (kind.as_str().to_owned(), self.finish());
        PostEvent { type_name, payload, arguments: None }
    }
}

pub(crate) fn raw_json(raw: Raw<'_>) -> String {
    let mut out = Writer::new();
    out.raw(raw);
    out.finish()
}
