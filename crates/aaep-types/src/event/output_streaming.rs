use serde_json::Value;

use crate::deception::{self, Deception};
use crate::id::OutputId;
use crate::json::{Raw, Writer};
use crate::language::LanguageTag;
use crate::number::Count;
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::text::{ContentType, Name};
use crate::vocabulary::CoalesceBoundary;
use crate::wire::{Unknown, Wire, object};

object! {
    /// A piece of the answer (§4.3.3).
    pub struct OutputStreaming, fields OutputStreamingFields, unknown(Unknown::Refuse(rule::E19)) {
        /// The text; an empty one may close an output.
        required chunk: Chunk<'a>, T17;
        /// Where it begins, in Unicode scalar values from the start of its output.
        required position: Count, T17;
        /// Whether it is the last of its output.
        required complete: bool, T17;
        /// Where it may be cut.
        optional coalesce_hint: CoalesceBoundary, T17;
        /// The output it belongs to, when a session has several.
        optional output_id: OutputId, T17;
        /// Its media type; plain text when absent.
        optional content_type: ContentType<'a>, T17;
        /// Its language, where that is not the envelope's (§11.5.3).
        optional language: LanguageTag<'a>, L9;
    }
}

/// Streamed text. A chunk may begin or end anywhere, so it is not judged as a whole text is: an
/// isolate may close in the next chunk, and what looks odd is warned of but never refused, since
/// refusing would lose part of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chunk<'a>(Name<'a, 0, 16384>);

impl<'a> Chunk<'a> {
    /// Takes a piece of text.
    pub fn new(text: impl Into<std::borrow::Cow<'a, str>>) -> Result<Self, crate::Malformed> {
        Name::new(text).map(Self)
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// How far it moves `position` on: its Unicode scalar values (decision D19).
    pub fn length(&self) -> u64 {
        // enforces: D19
        self.0.chars().count() as u64
    }
}

impl<'a> Wire<'a> for Chunk<'a> {
    const HUMAN: bool = true;

    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        let text = Name::read(raw, rule, report)?;
        let plain = matches!(raw, Raw::String(string) if string.is_plain());
        if !plain {
            let found = deception::first(&text);
            if let Some(found) = found.filter(|found| found.kind != Deception::Unbalanced) {
                report.warning(rule::D34, format_args!("{}", found.kind));
            }
            if deception::runs_both_ways(&text) {
                report.note_mixed_direction();
            }
        }
        Some(Self(text))
    }

    fn write(&self, out: &mut Writer) {
        self.0.write(out);
    }

    fn schema() -> Value {
        Name::<'a, 0, 16384>::schema()
    }
}
