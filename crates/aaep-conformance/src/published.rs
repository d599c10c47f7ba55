//! The published JSON Schemas as tables, and a verdict that agrees with them.
//!
//! The meaning is that of JSON Schema 2020-12 with the formats `date-time` and `uri` asserted:
//! lengths count code points, `1.0` is an integer and equals `1`, and a pattern's `$` is the end
//! of the string, never the place before a trailing newline.
//!
//! The code map: `table` is the vocabulary the schemas are written in, `envelope`, `core_events`
//! and `handshake` are the schemas, `evaluate` walks a message, `shapes` and `formats` judge
//! strings, `uniqueness` finds repeated items.

mod core_events;
mod envelope;
mod evaluate;
mod formats;
mod handshake;
mod shapes;
mod table;
mod uniqueness;

use std::fmt;

use serde_json::Value;

pub use core_events::CoreEvent;
pub use handshake::HandshakeMessage;

/// One way in which a message departs from a published schema.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// A JSON Pointer (RFC 6901) to the value to change; empty for the message itself. A missing
    /// member is reported at the object that lacks it.
    pub pointer: String,
    /// One plain sentence saying what to change. It never repeats the message's own words.
    pub text: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.pointer.is_empty() {
            return write!(f, "The whole message: {}", self.text);
        }
        write!(f, "{}: {}", self.pointer, self.text)
    }
}

/// A published schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Schema {
    /// What every event has in common.
    Envelope,
    /// The envelope and the payload of a core event type.
    Core(CoreEvent),
    /// A message of the handshake, or a reply.
    Handshake(HandshakeMessage),
}

impl Schema {
    /// The schema's short name, such as `core/agent.tool.invoked`.
    pub fn name(self) -> &'static str {
        self.path().trim_end_matches(".schema.json")
    }

    /// Where the schema lies in the published layout, such as
    /// `core/agent.tool.invoked.schema.json`.
    pub fn path(self) -> &'static str {
        match self {
            Self::Envelope => "envelope.schema.json",
            Self::Core(event) => event.path(),
            Self::Handshake(message) => message.path(),
        }
    }
}

impl fmt::Display for Schema {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Every published schema, the envelope first.
pub fn all() -> impl Iterator<Item = Schema> {
    std::iter::once(Schema::Envelope)
        .chain(CoreEvent::ALL.into_iter().map(Schema::Core))
        .chain(HandshakeMessage::ALL.into_iter().map(Schema::Handshake))
}

/// Which published schema applies to a message: the one whose `type` it carries, exactly; the
/// envelope for every other type, and for what is no object at all.
pub fn schema_for(message: &Value) -> Schema {
    let Some(name) = message.get("type").and_then(Value::as_str) else {
        return Schema::Envelope;
    };
    let core = || CoreEvent::ALL.into_iter().find(|event| event.type_name() == name);
    let handshake = || HandshakeMessage::ALL.into_iter().find(|kind| kind.type_name() == name);
    core()
        .map(Schema::Core)
        .or_else(|| handshake().map(Schema::Handshake))
        .unwrap_or(Schema::Envelope)
}

/// Judges a message by the schema that applies to it; none means that it is accepted.
pub fn judge(message: &Value) -> Vec<Violation> {
    judge_against(schema_for(message), message)
}

/// Judges a message by the schema named, whatever its `type` says.
pub fn judge_against(schema: Schema, message: &Value) -> Vec<Violation> {
    match schema {
        Schema::Envelope => evaluate::object(&envelope::ENVELOPE, message),
        Schema::Core(event) => evaluate::object(&event.payload(), message),
        Schema::Handshake(kind) => evaluate::object(kind.table(), message),
    }
}

#[cfg(test)]
mod tests;
