//! The envelope, and the rows that several schemas share.

use super::shapes::Shape;
use super::table::{
    ANY_TEXT, Kind, List, Member, Object, Others, SOME_TEXT, at_least, optional, required, text,
};

pub(super) static ENVELOPE: Object =
    Object { shared: &[], members: &ENVELOPE_ROWS, others: Others::Anything, rule: None };

pub(super) static ENVELOPE_ROWS: [Member; 13] = [
    required("@context", Kind::Context),
    optional("aaep_version", Kind::Shaped(Shape::Version)),
    required("type", SOME_TEXT),
    required("event_id", Kind::Shaped(Shape::EventId)),
    required("session_id", Kind::Shaped(Shape::SessionId)),
    optional("sequence_number", at_least(0)),
    required("timestamp", Kind::DateTime),
    required("producer", Kind::Object(&PRODUCER)),
    optional("verbosity", VERBOSITY),
    optional("urgency", Kind::OneOf(&["background", "normal", "critical"])),
    optional("localization_hints", Kind::Object(&LOCALIZATION_HINTS)),
    optional("correlation_id", ANY_TEXT),
    optional("extensions", EXTENSIONS),
];

pub(super) static PRODUCER: Object = Object {
    shared: &[],
    members: &[
        required("agent_id", SOME_TEXT),
        optional("agent_version", ANY_TEXT),
        optional("agent_name", ANY_TEXT),
        optional("model", ANY_TEXT),
        optional("manifest_uri", Kind::Uri),
    ],
    others: Others::Forbidden,
    rule: None,
};

static LOCALIZATION_HINTS: Object = Object {
    shared: &[],
    members: &[
        optional("primary_language", LANGUAGE),
        optional("text_direction", Kind::OneOf(&["ltr", "rtl", "auto"])),
        optional(
            "available_languages",
            Kind::List(&List { item: LANGUAGE, min: 0, max: Some(32), unique: true }),
        ),
        optional(
            "fallback_chain",
            Kind::List(&List { item: LANGUAGE, min: 0, max: Some(16), unique: false }),
        ),
        optional("script", Kind::Shaped(Shape::Script)),
        optional("calendar", ANY_TEXT),
    ],
    others: Others::Forbidden,
    rule: None,
};

/// Members keyed by an extension's prefix.
pub(super) const EXTENSIONS: Kind =
    Kind::Object(&Object { shared: &[], members: &[], others: Others::Objects, rule: None });

pub(super) const VERBOSITY: Kind = Kind::OneOf(&["terse", "normal", "detailed"]);

pub(super) const LANGUAGE: Kind = Kind::Shaped(Shape::Language);

/// Where streamed output may be cut.
pub(super) const BOUNDARY: Kind =
    Kind::OneOf(&["none", "word", "sentence", "paragraph", "completion"]);

/// Used for the risk of an action, the urgency of a handoff and cognitive load alike.
pub(super) const LOW_TO_HIGH: Kind = Kind::OneOf(&["low", "medium", "high"]);

pub(super) const DECISION: Kind = Kind::OneOf(&["accept", "reject"]);

/// The limit of a message, a hint or another text of a few paragraphs.
pub(super) const PARAGRAPHS: Kind = text(4_096);

/// The limit of a text that is read at length.
pub(super) const LONG_TEXT: Kind = text(16_384);

/// The limit of a name.
pub(super) const NAME: Kind = text(256);
