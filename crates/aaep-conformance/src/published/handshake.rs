//! The messages of the handshake, and the two replies, which are published beside them.

use super::envelope::{
    BOUNDARY, DECISION, EXTENSIONS, LANGUAGE, LOW_TO_HIGH, NAME, PARAGRAPHS, PRODUCER, VERBOSITY,
};
use super::shapes::Shape;
use super::table::{
    ANY_TEXT, Kind, List, Member, Object, Others, between, optional, required, text_or_empty,
};

/// A message that is not an event: no envelope, and nothing beyond its own members.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HandshakeMessage {
    /// `subscription.request`
    SubscriptionRequest,
    /// `subscription.accepted`
    SubscriptionAccepted,
    /// `subscription.rejected`
    SubscriptionRejected,
    /// `confirmation.reply`
    ConfirmationReply,
    /// `clarification.reply`
    ClarificationReply,
}

impl HandshakeMessage {
    /// All five, in the order of the specification.
    pub const ALL: [Self; 5] = [
        Self::SubscriptionRequest,
        Self::SubscriptionAccepted,
        Self::SubscriptionRejected,
        Self::ConfirmationReply,
        Self::ClarificationReply,
    ];

    /// The value of `type` on such a message.
    pub fn type_name(self) -> &'static str {
        match self {
            Self::SubscriptionRequest => "subscription.request",
            Self::SubscriptionAccepted => "subscription.accepted",
            Self::SubscriptionRejected => "subscription.rejected",
            Self::ConfirmationReply => "confirmation.reply",
            Self::ClarificationReply => "clarification.reply",
        }
    }

    pub(super) fn path(self) -> &'static str {
        match self {
            Self::SubscriptionRequest => "handshake/subscription.request.schema.json",
            Self::SubscriptionAccepted => "handshake/subscription.accepted.schema.json",
            Self::SubscriptionRejected => "handshake/subscription.rejected.schema.json",
            Self::ConfirmationReply => "handshake/confirmation.reply.schema.json",
            Self::ClarificationReply => "handshake/clarification.reply.schema.json",
        }
    }

    pub(super) fn table(self) -> &'static Object {
        match self {
            Self::SubscriptionRequest => &SUBSCRIPTION_REQUEST,
            Self::SubscriptionAccepted => &SUBSCRIPTION_ACCEPTED,
            Self::SubscriptionRejected => &SUBSCRIPTION_REJECTED,
            Self::ConfirmationReply => &CONFIRMATION_REPLY,
            Self::ClarificationReply => &CLARIFICATION_REPLY,
        }
    }
}

/// An object that has these members and no others.
const fn closed(members: &'static [Member]) -> Object {
    Object { shared: &[], members, others: Others::Forbidden, rule: None }
}

const VERSION: Member = required("aaep_version", Kind::Shaped(Shape::Version));
const SUBSCRIPTION_ID: Member = required("subscription_id", Kind::Shaped(Shape::SubscriptionId));
const REPLY_TOKEN: Member = required("reply_token", Kind::Shaped(Shape::ReplyToken));
const TIMESTAMP: Member = required("timestamp", Kind::DateTime);

static SUBSCRIPTION_REQUEST: Object = closed(&[
    required("type", Kind::Exactly("subscription.request")),
    VERSION,
    required("subscriber_id", NAME),
    optional("subscriber_name", text_or_empty(256)),
    optional("subscriber_version", text_or_empty(64)),
    optional("subscriber_manifest_uri", Kind::Uri),
    optional("correlation_id", ANY_TEXT),
    required("capabilities", Kind::Object(&CAPABILITIES)),
    optional("extensions", EXTENSIONS),
]);

static SUBSCRIPTION_ACCEPTED: Object = closed(&[
    required("type", Kind::Exactly("subscription.accepted")),
    SUBSCRIPTION_ID,
    VERSION,
    required("producer", Kind::Object(&PRODUCER)),
    required("honored_capabilities", Kind::Object(&CAPABILITIES)),
    optional("manifest_uri", Kind::Uri),
    optional("signed_manifest", Kind::Shaped(Shape::CompactJws)),
    optional("negotiation_notes", text_or_empty(4_096)),
]);

/// Asked for and honoured in the same terms.
static CAPABILITIES: Object = Object {
    shared: &[],
    members: &[
        optional("max_events_per_second", between(1, 100_000)),
        optional("preferred_verbosity", VERBOSITY),
        optional("languages", Kind::List(&LANGUAGES)),
        optional("supports_confirmation_reply", Kind::Boolean),
        optional("supports_clarification_reply", Kind::Boolean),
        optional("coalesce_boundaries", Kind::List(&BOUNDARIES)),
        optional("event_filters", Kind::Object(&EVENT_FILTERS)),
        optional("supported_conformance_levels", Kind::List(&LEVELS)),
        optional("supported_extensions", Kind::List(&EXTENSION_URIS)),
        optional("cognitive_load", LOW_TO_HIGH),
        optional("pace_wpm", between(50, 1_000)),
        optional("accept_signed_manifests_only", Kind::Boolean),
    ],
    others: Others::Objects,
    rule: None,
};

static LANGUAGES: List = List { item: LANGUAGE, min: 1, max: Some(32), unique: true };
static BOUNDARIES: List = List { item: BOUNDARY, min: 1, max: Some(5), unique: true };
static LEVELS: List = List { item: between(1, 3), min: 1, max: Some(3), unique: true };
static EXTENSION_URIS: List = List { item: Kind::Uri, min: 0, max: Some(64), unique: true };
static TYPE_PATTERNS: List = List { item: NAME, min: 0, max: None, unique: true };

static EVENT_FILTERS: Object = closed(&[
    optional("include", Kind::List(&TYPE_PATTERNS)),
    optional("exclude", Kind::List(&TYPE_PATTERNS)),
]);

static SUBSCRIPTION_REJECTED: Object = closed(&[
    required("type", Kind::Exactly("subscription.rejected")),
    required(
        "reason_code",
        Kind::OneOf(&[
            "version_unsupported",
            "manifest_signature_required",
            "capabilities_incompatible",
            "rate_limit",
            "authentication_required",
            "authorization_denied",
            "transport_unavailable",
            "unknown",
        ]),
    ),
    required("reason_message", PARAGRAPHS),
    optional("retry_after_seconds", between(0, 86_400)),
    optional("alternative_manifest_uri", Kind::Uri),
]);

static CONFIRMATION_REPLY: Object = closed(&[
    required("type", Kind::Exactly("confirmation.reply")),
    REPLY_TOKEN,
    required("decision", DECISION),
    SUBSCRIPTION_ID,
    TIMESTAMP,
    optional("decided_by", NAME),
    optional("decision_rationale", PARAGRAPHS),
    optional("modified_action", Kind::AnyObject),
    optional("correlation_id", ANY_TEXT),
]);

static CLARIFICATION_REPLY: Object = closed(&[
    required("type", Kind::Exactly("clarification.reply")),
    REPLY_TOKEN,
    required("response", Kind::Response),
    SUBSCRIPTION_ID,
    TIMESTAMP,
    optional("decided_by", NAME),
    optional("confidence", Kind::Number { min: 0, max: 1 }),
    optional("correlation_id", ANY_TEXT),
]);
