//! Our own JSON Schemas (2020-12), made from the types.
//!
//! A schema sees one message and cannot compute; what it cannot say is listed in [`BEYOND`].

use serde_json::{Map, Value, json};

use crate::action::{self, Account};
use crate::context::KNOWN_EXTENSIONS;
use crate::envelope::{Envelope, Extensions};
use crate::event::{EventKind, ExtensionPayload};
use crate::handshake::{
    SubscriptionAccepted, SubscriptionClose, SubscriptionRejected, SubscriptionRenegotiate,
    SubscriptionRequest,
};
use crate::manifest::Manifest;
use crate::ours::{MoreTime, OutcomeMember, StopSession, TimingCapability, TimingMember};
use crate::presence::{PresenceMember, PresenceState, Unlock};
use crate::redaction::{self, Redaction};
use crate::reply::{ClarificationReply, ConfirmationReply};
use crate::resume::Resume;
use crate::rule::{self, Rule};
use crate::team::{self, Team};
use crate::wire::{MemberInfo, Object, Wire, object_schema};

/// Where schemas are at home; their `$id`s begin with this.
pub const BASE: &str = "https://aaep-protocol.org/schemas/v1/";

/// Rules that no schema of ours expresses, and why.
pub const BEYOND: &[(Rule, &str)] = &[
    (
        rule::E1,
        "A schema is given a parsed document: duplicate names and lone surrogates are gone by then.",
    ),
    (rule::E17, "Which prefix an address declares is not written in the message."),
    (rule::E21, "Sizes of the whole message are not visible to a schema."),
    (rule::E22, "Numbers in members that nobody knows have no schema."),
    (rule::E24, "Which vocabulary an address declares is not written in the message."),
    (
        rule::L1,
        "The grammar of BCP 47 is larger than a readable pattern; a schema checks its outline.",
    ),
    (rule::L10, "The direction of text is a property of its characters."),
    (
        rule::D21,
        "Members of a newer minor version are let through with a warning; a schema is for one version.",
    ),
];

/// One schema.
#[derive(Clone, Debug, PartialEq)]
pub struct Schema {
    /// Its file in the published layout, such as `core/agent.tool.invoked.schema.json`.
    pub path: String,
    /// The schema itself.
    pub document: Value,
}

impl Schema {
    /// What a person calls it: its path without the ending.
    pub fn name(&self) -> &str {
        self.path.trim_end_matches(".schema.json").trim_end_matches(".jsonld")
    }
}

/// Every schema, the envelope first.
pub fn all() -> Vec<Schema> {
    let mut schemas = vec![envelope()];
    schemas.extend(EventKind::ALL.map(core));
    schemas.extend([
        message::<SubscriptionRequest<'_>>(
            "handshake/subscription.request",
            "A subscriber introduces itself.",
        ),
        message::<SubscriptionAccepted<'_>>(
            "handshake/subscription.accepted",
            "A producer agrees to a subscription.",
        ),
        message::<SubscriptionRejected<'_>>(
            "handshake/subscription.rejected",
            "A producer refuses a subscription.",
        ),
        message::<SubscriptionRenegotiate<'_>>(
            "handshake/subscription.renegotiate",
            "A subscriber wants other terms.",
        ),
        message::<SubscriptionClose<'_>>(
            "handshake/subscription.close",
            "One side ends a subscription.",
        ),
        message::<ConfirmationReply<'_>>("handshake/confirmation.reply", "The user decided."),
        message::<ClarificationReply<'_>>("handshake/clarification.reply", "The user answered."),
        message::<OutcomeMember<'_>>(
            "extensions/outcome",
            "Which request an event resolves, and how; it stands in `extensions`.",
        ),
        message::<MoreTime<'_>>("extensions/timing.extend", "The user asks for more time."),
        message::<TimingMember<'_>>(
            "extensions/timing",
            "Which event a request stands in the place of; it stands in `extensions`.",
        ),
        message::<TimingCapability<'_>>(
            "extensions/timing.capability",
            "How much time a listener needs; it stands in the capabilities of a request.",
        ),
        message::<StopSession<'_>>("extensions/control.cancel", "The user stops the agent."),
        message::<Account<'_>>(
            "extensions/action",
            "The hub's own account of an action that is asked about; it stands in `extensions`.",
        ),
        message::<Redaction<'_>>(
            "extensions/redaction",
            "What was taken out of the texts of an event; it stands in `extensions`.",
        ),
        message::<Resume<'_>>(
            "extensions/resume",
            "Where a listener left off; it stands in the capabilities of a request.",
        ),
        message::<Team<'_>>(
            "extensions/team",
            "Who else speaks in a session; it stands in `extensions` of its start.",
        ),
        message::<PresenceMember<'_>>(
            "extensions/presence",
            "The presence that a yes requires; it stands in `extensions`.",
        ),
        message::<Unlock<'_>>("extensions/presence.unlock", "The user types their PIN."),
        message::<PresenceState<'_>>(
            "extensions/presence.state",
            "The hub says what became of a PIN that was typed.",
        ),
        message::<Manifest<'_>>("producer.manifest", "A producer describes itself."),
    ]);
    schemas
}

/// The members that an event of this kind has beyond the envelope, as one schema of an object.
///
/// Unlike [`all`] it says only what each member is, and which must be there: rules that look at
/// several members at once are left out.
pub fn payload(kind: EventKind) -> Value {
    let whole = kind.payload_schema();
    json!({
        "description": kind.doc().trim(),
        "type": "object",
        "properties": whole["properties"],
        "required": whole["required"],
    })
}

/// Every schema, each complete in itself: none refers to another file.
///
/// For validators that do not resolve references. What they judge is the same.
pub fn bundled() -> Vec<Schema> {
    let mut schemas = all();
    let mut envelope = envelope().document;
    if let Some(members) = envelope.as_object_mut() {
        // An embedded `$id` would change the base of the schema around it.
        members.retain(|name, _| !matches!(name.as_str(), "$schema" | "$id"));
    }
    for schema in &mut schemas {
        if let Some(parts) = schema.document.get_mut("allOf") {
            *parts = json!([envelope]);
        }
    }
    schemas
}

/// The schema that a message is judged by, as [`crate::validate`] judges it.
pub fn path_for(message_type: &str) -> String {
    let core = crate::type_name::core_name(message_type)
        .and_then(|name| EventKind::parse(&name))
        .map(core_path);
    match (core, message_type) {
        (Some(path), _) => path,
        (None, "timing:extend") => "extensions/timing.extend.schema.json".to_owned(),
        (None, "control:cancel") => "extensions/control.cancel.schema.json".to_owned(),
        (None, "aaep:producer.manifest") => "producer.manifest.schema.json".to_owned(),
        (None, name) if HANDSHAKE.contains(&name) => format!("handshake/{name}.schema.json"),
        _ => "envelope.schema.json".to_owned(),
    }
}

/// The types of the messages that are no events.
const HANDSHAKE: [&str; 7] = [
    "subscription.request",
    "subscription.accepted",
    "subscription.rejected",
    "subscription.renegotiate",
    "subscription.close",
    "confirmation.reply",
    "clarification.reply",
];

fn core_path(kind: EventKind) -> String {
    format!("core/{}.schema.json", kind.as_str().trim_start_matches("aaep:"))
}

fn named(path: String, title: &str, description: &str, body: Value) -> Schema {
    let mut document = Map::new();
    document.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
    document.insert("$id".into(), json!(format!("{BASE}{path}")));
    document.insert("title".into(), json!(title));
    document.insert("description".into(), json!(description.trim()));
    if let Value::Object(body) = body {
        document.extend(body);
    }
    Schema { path, document: Value::Object(document) }
}

fn message<'a, T: Object<'a>>(name: &str, description: &str) -> Schema {
    let title = format!("AAEP message {}", name.trim_start_matches("handshake/"));
    named(format!("{name}.schema.json"), &title, description, object_schema::<T>())
}

fn envelope() -> Schema {
    let mut body = object_schema::<Envelope<'_>>();
    let mut extensions = Extensions::schema();
    extensions["description"] = json!("Members of extensions, keyed by prefix.");
    body["properties"]["extensions"] = extensions;
    // §3.5: reserved names, but for the two that are in use.
    body["propertyNames"] = json!({ "anyOf": [
        { "enum": ["aaep_version", "@context"] },
        { "not": { "pattern": "^(aaep_|@)" } },
    ] });
    // §7.4: an extension's own event is announced by its summaries, so these are checked.
    let core: Vec<String> = EventKind::ALL.iter().flat_map(|kind| kind.spellings()).collect();
    body["if"] = json!({ "properties": { "type": { "not": { "enum": core } } } });
    body["then"] = json!({
        "properties": object_schema::<ExtensionPayload<'_>>()["properties"],
        "patternProperties": language_variants(ExtensionPayload::MEMBERS),
    });
    // Our own extensions are checked where their addresses declare them.
    let ours = [
        (action::PREFIX, object_schema::<Account<'_>>()),
        ("outcome", object_schema::<OutcomeMember<'_>>()),
        (redaction::PREFIX, object_schema::<Redaction<'_>>()),
        (team::PREFIX, object_schema::<Team<'_>>()),
        ("timing", object_schema::<TimingMember<'_>>()),
    ];
    let declared = |(prefix, schema): (&str, Value)| {
        let known = KNOWN_EXTENSIONS.iter().find(|known| known.prefix == prefix);
        let uri = known.map(|known| known.uri);
        json!({
            "if": {
                "properties": { "@context": { "type": "array", "contains": { "const": uri } } },
                "required": ["@context"],
            },
            "then": { "properties": { "extensions": { "properties": { prefix: schema } } } },
        })
    };
    body["allOf"] = Value::Array(ours.into_iter().map(declared).collect());
    let description = "What every event carries. An extension's own event adds its payload to it.";
    named("envelope.schema.json".into(), "AAEP event envelope", description, body)
}

fn core(kind: EventKind) -> Schema {
    let mut body = kind.payload_schema();
    if let Some(map) = body.as_object_mut() {
        // The envelope's members are known too, so what is left over can only be judged together.
        map.remove("additionalProperties");
        map.insert("unevaluatedProperties".into(), json!(false));
        map.insert("allOf".into(), json!([{ "$ref": format!("{BASE}envelope.schema.json") }]));
        map.insert("patternProperties".into(), language_variants(kind.members()));
    }
    body["properties"]["type"] = json!({ "enum": kind.spellings() });
    body["properties"]["sequence_number"] = match kind {
        EventKind::SessionStarted => json!({ "const": 0 }),
        _ => json!({ "minimum": 1 }),
    };
    if kind.is_critical() {
        body["properties"]["urgency"] = json!({ "const": "critical" });
        if let Some(required) = body["required"].as_array_mut() {
            required.push(json!("urgency"));
        }
    }
    let title = format!("AAEP event {}", kind.as_str().trim_start_matches("aaep:"));
    named(core_path(kind), &title, kind.doc(), body)
}

/// §11.5.1: a text may also stand there in other languages, such as `summary_normal_yo`.
fn language_variants(members: &[MemberInfo]) -> Value {
    let variant = |name| format!("^{name}_[A-Za-z]{{2,3}}([_-][A-Za-z0-9]{{1,8}})*$");
    let human = members.iter().filter(|member| member.human);
    human.map(|member| (variant(member.name), (member.schema)())).collect::<Map<_, _>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_schema_has_its_place_and_address() {
        let schemas = all();
        assert_eq!(schemas.len(), 33);
        for schema in &schemas {
            assert_eq!(schema.document["$id"], format!("{BASE}{}", schema.path));
        }
    }

    #[test]
    fn a_bundled_schema_refers_to_nothing() {
        let bundled = bundled();
        assert_eq!(bundled.len(), all().len());
        for (whole, schema) in bundled.iter().zip(all()) {
            assert_eq!(whole.path, schema.path);
            assert!(!whole.document.to_string().contains("\"$ref\""), "{}", whole.path);
        }
    }

    #[test]
    fn every_message_type_has_its_schema() {
        let paths: Vec<_> = all().into_iter().map(|schema| schema.path).collect();
        for name in [
            "aaep:agent.tool.invoked",
            "subscription.close",
            "confirmation.reply",
            "aaep:producer.manifest",
            "medai:seen",
            "medai:doctor.reply",
            "subscription.unheard",
        ] {
            assert!(paths.contains(&path_for(name)), "{name}");
        }
    }
}
