//! The envelope that every event carries (§3).

use serde_json::{Value, json};
use std::borrow::Cow;

use crate::context::{Context, is_reserved_prefix};
use crate::id::{EventId, SessionId};
use crate::json::{Raw, Writer, elements};
use crate::language::LanguageTag;
use crate::limits::soft;
use crate::list::{List, Set};
use crate::number::Count;
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::text::{Name, Script, Text, UNBOUNDED};
use crate::time::Timestamp;
use crate::type_name::TypeName;
use crate::uri::Uri;
use crate::version::Version;
use crate::vocabulary::{TextDirection, Urgency, Verbosity};
use crate::wire::{Unknown, Wire, object};

/// The members of the envelope (§3.2 to §3.4), in the order in which they are written (§3.6). The
/// payload stands before the last one.
pub const ENVELOPE_MEMBERS: [&str; 13] = [
    "@context",
    "aaep_version",
    "type",
    "event_id",
    "session_id",
    "sequence_number",
    "timestamp",
    "producer",
    "verbosity",
    "urgency",
    "localization_hints",
    "correlation_id",
    "extensions",
];

object! {
    /// Who emits an event (§3.2.6).
    pub struct Producer, fields ProducerFields, unknown(Unknown::Refuse(rule::E11)) {
        /// Names the agent; unique in its deployment, the same across versions.
        required agent_id: Name<'a, 1, UNBOUNDED>, E11;
        /// The agent's own version.
        optional agent_version: Name<'a, 1, UNBOUNDED>, E25;
        /// What people call it.
        optional agent_name: Text<'a, 1, UNBOUNDED>, E25;
        /// The model it uses.
        optional model: Name<'a, 1, UNBOUNDED>, E25;
        /// Where its manifest is.
        optional manifest_uri: Uri<'a>, E11;
    }
}

impl<'a> Producer<'a> {
    /// A producer that says no more than its name.
    pub fn named(agent_id: Name<'a, 1, UNBOUNDED>) -> Self {
        Self {
            agent_id,
            agent_version: None,
            agent_name: None,
            model: None,
            manifest_uri: None,
            other: Vec::new(),
        }
    }
}

object! {
    /// Language and writing of an event's text (§11.1).
    pub struct LocalizationHints, fields LocalizationFields, unknown(Unknown::Refuse(rule::E14)), check(check_languages) {
        /// The language of the text.
        optional primary_language: LanguageTag<'a>, L1;
        /// Which way it runs; `ltr` when absent.
        optional text_direction: TextDirection, L10;
        /// Other languages that could be had.
        optional available_languages: Set<LanguageTag<'a>, 0, UNBOUNDED>, L1;
        /// What to try when the primary language is not available, in this order.
        optional fallback_chain: List<LanguageTag<'a>, 0, 16>, L1;
        /// The script, where the language leaves it open.
        optional script: Script<'a>, E14;
        /// The calendar that dates are written in.
        optional calendar: Name<'a, 0, UNBOUNDED>, E14;
    }
}

/// §3.7: more languages than recommended are no reason to refuse an event.
fn check_languages(fields: &LocalizationFields<'_>, report: &mut Report) {
    let count = fields.available_languages.good().map_or(0, |languages| languages.len());
    if count > soft::LANGUAGES {
        report.within("available_languages", |report| {
            report.refuse_at_source(
                rule::E21,
                format_args!("Name at most {} languages; there are {count}.", soft::LANGUAGES),
            );
        });
    }
}

impl<'a> LocalizationHints<'a> {
    /// Hints that name a language and leave the direction to the Unicode algorithm.
    pub fn language(primary_language: LanguageTag<'a>) -> Self {
        Self {
            primary_language: Some(primary_language),
            text_direction: Some(TextDirection::Auto),
            available_languages: None,
            fallback_chain: None,
            script: None,
            calendar: None,
            other: Vec::new(),
        }
    }
}

object! {
    /// What every event carries, whatever its type, but for `extensions`, which comes last (§3.6).
    pub struct Envelope, fields EnvelopeFields, unknown(Unknown::Keep) {
        /// The vocabularies in use; the protocol's own comes first.
        required context as "@context": Context<'a>, E3;
        /// The version of the protocol that the producer follows.
        optional aaep_version: Version<'a>, E18;
        /// What kind of event this is.
        required type_name as "type": TypeName<'a>, E4;
        /// Names this event.
        required event_id: EventId, E7;
        /// Names the session it belongs to.
        required session_id: SessionId, E8;
        /// Its place in the session: 0 on `session.started`, then one more each time.
        optional sequence_number: Count, E15;
        /// When it was emitted.
        required timestamp: Timestamp, E9;
        /// Who emitted it.
        required producer: Producer<'a>, E11;
        /// How much its texts say; `normal` when absent.
        optional verbosity: Verbosity, E12;
        /// How soon it has to be heard; `normal` when absent.
        optional urgency: Urgency, E13;
        /// Language and writing of its texts.
        optional localization_hints: LocalizationHints<'a>, E14;
        /// Ties it to traces elsewhere.
        optional correlation_id: Name<'a, 0, UNBOUNDED>, E16;
    }
}

/// The `extensions` member: an object of objects, one for each prefix (§3.4.3).
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extensions<'a>(Vec<(Cow<'a, str>, &'a str)>);

impl<'a> Extensions<'a> {
    /// The extension objects with their prefixes; each is JSON text, byte for byte as received.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &'a str)> {
        self.0.iter().map(|(prefix, json)| (prefix.as_ref(), *json))
    }

    /// The object of one extension.
    pub fn get(&self, prefix: &str) -> Option<&'a str> {
        self.iter().find(|(name, _)| *name == prefix).map(|(_, json)| json)
    }

    /// Adds or replaces the object of one extension; false if `json` is not the text of an object.
    pub fn set(&mut self, prefix: &'a str, json: &'a str) -> bool {
        if crate::wire::Opaque::parse(json).is_none() {
            return false;
        }
        self.0.retain(|(name, _)| name != prefix);
        self.0.push((prefix.into(), json));
        true
    }
}

/// §7.2, §7.3.2: extensions stay out of the protocol's own namespace and of those it rests on.
fn check_prefix(prefix: &str, report: &mut Report) {
    if !is_reserved_prefix(prefix) {
        return;
    }
    let rule = if prefix == "aaep" { rule::X1 } else { rule::X3 };
    report.within(prefix, |report| {
        report.error(rule, format_args!("Choose another prefix; this one is reserved."));
    });
}

impl<'a> Wire<'a> for Extensions<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let Raw::Object(text) = raw else {
            report.wrong_type(rule, "an object", raw);
            return None;
        };
        let mut extensions = Vec::new();
        let mut sound = true;
        for member in crate::json::Members::again(text) {
            check_prefix(&member.name, report);
            match member.value {
                Raw::Object(json) => extensions.push((member.name, json)),
                other => {
                    sound = false;
                    report
                        .within(&member.name, |report| report.wrong_type(rule, "an object", other));
                }
            }
        }
        sound.then_some(Self(extensions))
    }

    fn write(&self, out: &mut Writer) {
        out.open('{');
        for (prefix, json) in &self.0 {
            out.name(prefix);
            out.json(json);
            out.comma();
        }
        out.close('}');
    }

    fn schema() -> Value {
        json!({
            "type": "object",
            "propertyNames": { "not": { "pattern": "^(aaep|xsd|rdf|rdfs)$|^@" } },
            "additionalProperties": { "type": "object" },
        })
    }
}

object! {
    /// What closes an event (§3.6).
    pub struct Tail, fields TailFields, unknown(Unknown::Keep) {
        /// Members of extensions, keyed by prefix.
        optional extensions: Extensions<'a>, E17;
    }
}

/// The elements of an array member, for readers that look at foreign events.
pub(crate) fn array(raw: Raw<'_>) -> Vec<Raw<'_>> {
    match raw {
        Raw::Array(text) => elements(text),
        _ => Vec::new(),
    }
}
