//! What subscribers send and hear, as JSON Schema: the protocol's own messages and events, from the
//! types that read them.

use aaep_types::{EventKind, schema};
use serde_json::{Map, Value, json};

use super::reference;
use super::schemas::{put, text};

/// The messages, by the name of their schema here and by their type.
const MESSAGES: [(&str, &str); 10] = [
    ("SubscriptionRequest", "subscription.request"),
    ("SubscriptionAccepted", "subscription.accepted"),
    ("SubscriptionRejected", "subscription.rejected"),
    ("SubscriptionRenegotiate", "subscription.renegotiate"),
    ("SubscriptionClose", "subscription.close"),
    ("ConfirmationReply", "confirmation.reply"),
    ("ClarificationReply", "clarification.reply"),
    ("MoreTime", "timing:extend"),
    ("StopSession", "control:cancel"),
    ("Manifest", "aaep:producer.manifest"),
];

/// What `replies` takes.
const REPLIES: [&str; 6] = [
    "ConfirmationReply",
    "ClarificationReply",
    "MoreTime",
    "StopSession",
    "SubscriptionRenegotiate",
    "SubscriptionClose",
];

/// Their schemas, by name.
pub(super) fn all() -> Map<String, Value> {
    let known = schema::all();
    let document = |path: &str| {
        let found = known.iter().find(|schema| schema.path == path);
        found.map_or(Value::Null, |schema| schema.document.clone())
    };
    let mut all = Map::new();
    for (name, type_name) in MESSAGES {
        let mut message = document(&schema::path_for(type_name));
        without_identity(&mut message);
        message["properties"]["type"] = json!({ "type": "string", "enum": [type_name] });
        if message["properties"]["@context"].is_object() {
            message["properties"]["@context"] = context();
        }
        all.insert(name.into(), message);
    }
    let envelope = document("envelope.schema.json");
    for kind in EventKind::ALL {
        all.insert(event_name(kind), event(&envelope, kind));
    }
    let about = "What the data of each server-sent event is, and each message over a WebSocket. Types of extensions have the same envelope.";
    let mut events = tagged(&EventKind::ALL.map(|kind| (event_name(kind), kind.as_str())));
    events["description"] = json!(about);
    all.insert("Event".into(), events);
    let type_of = |name: &str| MESSAGES.iter().find(|(known, _)| *known == name).map(|(_, t)| *t);
    let replies = REPLIES.map(|name| (name.to_owned(), type_of(name).unwrap_or_default()));
    all.insert("Reply".into(), tagged(&replies));
    let answers = ["SubscriptionAccepted", "SubscriptionRejected"];
    let answers = answers.map(|name| (name.to_owned(), type_of(name).unwrap_or_default()));
    all.insert("HandshakeAnswer".into(), tagged(&answers));
    let about = "A rejection with its reason, or a refusal that comes before any handshake.";
    let refused = json!({ "description": about, "anyOf": [reference("SubscriptionRejected"), reference("Problem")] });
    all.insert("HandshakeRefusal".into(), refused);
    let about = "Something that a person says to their agents.";
    let said = json!({ "description": about, "type": "object", "required": ["kind", "text"],
        "properties": { "kind": { "type": "string", "enum": ["user_input"] }, "text": text() } });
    all.insert("UserInput".into(), said);
    let about = "For clients without a handshake: a reply, in which `subscription_id` is filled in, a handshake, or something to say.";
    let parts = ["UserInput", "Reply", "SubscriptionRequest"].map(reference);
    all.insert("Message".into(), json!({ "description": about, "anyOf": parts }));
    all
}

/// A schema inside another document has no name of its own.
fn without_identity(document: &mut Value) {
    if let Some(members) = document.as_object_mut() {
        members.retain(|name, _| !matches!(name.as_str(), "$schema" | "$id" | "title"));
    }
}

/// One of several objects, told apart by their type.
fn tagged(parts: &[(String, &str)]) -> Value {
    let mapping: Map<String, Value> = parts
        .iter()
        .map(|(name, type_name)| ((*type_name).to_owned(), reference(name)["$ref"].clone()))
        .collect();
    json!({
        "oneOf": parts.iter().map(|(name, _)| reference(name)).collect::<Vec<_>>(),
        "discriminator": { "propertyName": "type", "mapping": mapping },
    })
}

/// The vocabularies in use, in a form that generators tell apart.
fn context() -> Value {
    json!({
        "description": "The protocol's own address, or a list of addresses that begins with it.",
        "oneOf": [text(), { "type": "array", "items": text(), "minItems": 1 }],
    })
}

/// `ToolInvokedEvent` for `aaep:agent.tool.invoked`.
fn event_name(kind: EventKind) -> String {
    format!("{}Event", super::schemas::capitals(kind))
}

/// An event as it is heard: the envelope and what it says.
fn event(envelope: &Value, kind: EventKind) -> Value {
    let mut event = schema::payload(kind);
    let members = envelope["properties"].as_object().cloned().unwrap_or_default();
    let required = envelope["required"].as_array().cloned().unwrap_or_default();
    for (name, member) in members {
        let needed = required.contains(&json!(name));
        let member = match name.as_str() {
            "type" => json!({ "type": "string", "enum": [kind.as_str()] }),
            "@context" => context(),
            "extensions" => json!({ "type": "object", "additionalProperties": { "type": "object" },
                "description": "Members of extensions, keyed by prefix." }),
            "urgency" if kind.is_critical() => json!({ "type": "string", "enum": ["critical"] }),
            _ => member,
        };
        // Generators make names of programs of both, and those of `@context` and `context` are the
        // same: beside the latter, the former is described by its pattern.
        if name == "@context" && event["properties"]["context"].is_object() {
            event["patternProperties"]["^@context$"] = member;
        } else {
            put(&mut event, &name, member, needed);
        }
    }
    event
}

/// Examples of what subscribers send, by name.
pub(super) fn examples(schema: &str) -> Value {
    let reply = json!({
        "type": "confirmation.reply",
        "reply_token": "rpl_0123456789abcdef0123456789abcdef",
        "decision": "accept",
        "subscription_id": "sub_0123456789abcdef",
        "timestamp": "2026-05-24T14:22:20.000Z",
    });
    match schema {
        "SubscriptionRequest" => json!({ "answers_and_hears_slowly": {
            "type": "subscription.request",
            "aaep_version": aaep_types::AAEP_VERSION,
            "subscriber_id": "my-screen-reader",
            "capabilities": {
                "languages": ["fr", "en"],
                "max_events_per_second": 2,
                "supports_confirmation_reply": true,
                "supports_clarification_reply": true,
            },
        }}),
        "Reply" => json!({
            "yes": reply,
            "answer": {
                "type": "clarification.reply",
                "reply_token": "rpl_0123456789abcdef0123456789abcdef",
                "response": "The savings account.",
                "subscription_id": "sub_0123456789abcdef",
                "timestamp": "2026-05-24T14:22:20.000Z",
            },
            "goodbye": {
                "type": "subscription.close",
                "subscription_id": "sub_0123456789abcdef",
            },
        }),
        "Message" => json!({
            "say": { "kind": "user_input", "text": "Transfer 20 euros to Ann." },
            "yes": reply,
        }),
        "PageCode" => json!({ "code": { "code": "the code of the page's address" } }),
        _ => Value::Null,
    }
}
