//! What the API takes and gives, as JSON Schema. The members of events and requests come from the
//! types that read them, so that the description cannot fall behind.

use aaep_types::{CORE_CONTEXT, EventKind, schema};
use serde_json::{Map, Value, json};

use super::reference;

/// The kinds that an agent emits itself. The hub emits the others: a start when a session is opened,
/// a question when a request is made.
const EMITTED: [EventKind; 9] = [
    EventKind::StateChanged,
    EventKind::ToolInvoked,
    EventKind::ToolCompleted,
    EventKind::OutputStreaming,
    EventKind::ProgressUpdated,
    EventKind::HandoffRequested,
    EventKind::SessionCompleted,
    EventKind::SessionCancelled,
    EventKind::SessionErrored,
];

/// Every schema that the document refers to.
pub(super) fn all() -> Value {
    let mut schemas = fixed();
    if let Value::Object(schemas) = &mut schemas {
        schemas.insert("NewSession".into(), new_session());
        schemas.append(&mut super::messages::all());
        schemas.extend(sign_in());
        schemas.extend(administration());
        schemas.insert("NewEvent".into(), new_event());
        schemas.insert("NewExtensionEvent".into(), extension_event());
        for kind in EMITTED {
            schemas.insert(event_name(kind), event(kind));
        }
        schemas.insert("NewRequest".into(), new_request());
        schemas.insert("NewConfirmation".into(), confirmation());
        schemas.insert("NewClarification".into(), clarification());
    }
    schemas
}

/// `NewToolInvoked` for `aaep:agent.tool.invoked`.
fn event_name(kind: EventKind) -> String {
    format!("New{}", capitals(kind))
}

/// `ToolInvoked` for `aaep:agent.tool.invoked`.
pub(super) fn capitals(kind: EventKind) -> String {
    let words = kind.as_str().trim_start_matches("aaep:agent.").split('.');
    let capital = |word: &str| {
        let (first, rest) = word.split_at(1);
        first.to_uppercase() + rest
    };
    words.map(capital).collect()
}

fn new_event() -> Value {
    let mapping: Map<String, Value> = EMITTED
        .iter()
        .map(|kind| (kind.as_str().to_owned(), reference(&event_name(*kind))["$ref"].clone()))
        .collect();
    let mut parts = EMITTED.map(|kind| reference(&event_name(kind))).to_vec();
    parts.push(reference("NewExtensionEvent"));
    json!({
        "description": "An event: its type and what it says. The hub adds the envelope. A type that is not in the list is one of an extension.",
        "oneOf": parts,
        "discriminator": { "propertyName": "type", "mapping": mapping },
    })
}

/// An event of an extension's own type (§7.4): what else it says is the extension's.
fn extension_event() -> Value {
    let mut schema = json!({
        "description": "An event of a type that an extension defines. Its prefix needs an address in `@context`.",
        "type": "object",
        "properties": {
            "type": { "type": "string", "pattern": "^(?!aaep:)[A-Za-z_][A-Za-z0-9._-]*:", "example": "medai:patient.consulted" },
            "summary_terse": text(),
            "summary_normal": text(),
            "summary_detailed": text(),
        },
        "required": ["type"],
        "additionalProperties": true,
    });
    with_envelope(&mut schema);
    schema
}

fn event(kind: EventKind) -> Value {
    let mut schema = schema::payload(kind);
    put(&mut schema, "type", json!({ "type": "string", "enum": [kind.as_str()] }), true);
    match kind {
        // The hub knows where the agent comes from, and names calls itself.
        EventKind::StateChanged => optional(&mut schema, &["from_state"]),
        EventKind::ToolInvoked => {
            optional(&mut schema, &["tool_call_id"]);
            let about = "What the tool is called with; nobody hears it. The policy in force judges the call by it, and a call that equals one for which consent is asked, or was asked last and not given, is refused with 409. Without it, so is any call of such a tool.";
            put(&mut schema, "arguments", json!({ "description": about }), false);
        }
        _ => {}
    }
    with_envelope(&mut schema);
    schema
}

/// The members of the envelope that agents may fill.
fn with_envelope(schema: &mut Value) {
    let about = "The protocol's own address, then one for each extension that the event uses.";
    let context = json!({ "type": "array", "items": { "type": "string", "format": "uri" }, "minItems": 1, "maxItems": 9, "description": about, "example": [CORE_CONTEXT, "https://example.org/medai/context/v1"] });
    // Generators make names of programs of both, and those of `@context` and `context` are the same:
    // beside the latter, the former is described by its pattern.
    if schema["properties"]["context"].is_object() {
        schema["patternProperties"]["^@context$"] = context;
    } else {
        put(schema, "@context", context, false);
    }
    let members = [
        ("verbosity", json!({ "type": "string", "enum": ["terse", "normal", "detailed"] })),
        (
            "urgency",
            json!({ "type": "string", "enum": ["background", "normal", "critical"], "description": "Only errors, questions and handoffs are critical." }),
        ),
        (
            "localization_hints",
            json!({ "type": "object", "description": "The language of the texts, if it is not the session's." }),
        ),
        ("correlation_id", json!({ "type": "string", "maxLength": 512 })),
        (
            "extensions",
            json!({ "type": "object", "additionalProperties": { "type": "object" }, "description": "Members of extensions, keyed by prefix. Each prefix needs an address in `@context`, an array that begins with the protocol's own." }),
        ),
        (
            "producer",
            json!({ "type": "object", "required": ["agent_id"], "properties": { "agent_id": { "type": "string" } }, "description": "The sub-agent that speaks, one of the session's `sub_agents`." }),
        ),
    ];
    for (name, member) in members {
        put(schema, name, member, false);
    }
}

/// The first event of a session, and what the hub has to know besides.
fn new_session() -> Value {
    let mut schema = schema::payload(EventKind::SessionStarted);
    with_envelope(&mut schema);
    let producer = json!({ "type": "object", "required": ["agent_id"], "properties": { "agent_id": text(), "agent_name": text(), "agent_version": text(), "model": text(), "manifest_uri": text() } });
    put(&mut schema, "producer", producer, true);
    let about = "Other agents that speak in this session, by their `agent_id`.";
    for (name, member) in [
        ("language", json!({ "type": "string", "default": "en" })),
        (
            "lease_seconds",
            json!({ "type": "integer", "minimum": 15, "maximum": 86400, "default": 120 }),
        ),
        (
            "sub_agents",
            json!({ "type": "array", "items": text(), "minItems": 1, "maxItems": 32, "description": about }),
        ),
    ] {
        put(&mut schema, name, member, false);
    }
    schema
}

fn new_request() -> Value {
    json!({
        "description": "A question to the person: for consent to an action, or for an answer.",
        "oneOf": [reference("NewConfirmation"), reference("NewClarification")],
        "discriminator": {
            "propertyName": "kind",
            "mapping": {
                "confirmation": reference("NewConfirmation")["$ref"],
                "clarification": reference("NewClarification")["$ref"],
            },
        },
    })
}

fn confirmation() -> Value {
    let mut schema = request(EventKind::AwaitingConfirmation, "confirmation");
    schema["description"] = json!(
        "A question for consent to an action. A policy in force fills in what is missing, and makes it graver where it has to be; without one, `action`, `consequence`, `timeout_seconds` and `default_decision` are required. What cannot be undone never has the default `accept`."
    );
    let policy_fills = ["action", "consequence", "timeout_seconds", "default_decision"];
    optional(&mut schema, &policy_fills);
    let tool = json!({ "type": "string", "description": "What will run if the answer is yes." });
    put(&mut schema, "tool", tool, false);
    let about = "What it will be called with. Consent is bound to tool and arguments.";
    put(&mut schema, "arguments", json!({ "description": about }), false);
    schema
}

fn clarification() -> Value {
    request(EventKind::AwaitingClarification, "clarification")
}

/// The payload of the event, without the token, which is the hub's secret.
fn request(kind: EventKind, word: &str) -> Value {
    let mut schema = schema::payload(kind);
    if let Some(properties) = schema["properties"].as_object_mut() {
        properties.remove("reply_token");
    }
    optional(&mut schema, &["reply_token"]);
    put(&mut schema, "kind", json!({ "type": "string", "enum": [word] }), true);
    with_envelope(&mut schema);
    schema
}

pub(super) fn text() -> Value {
    json!({ "type": "string" })
}

pub(super) fn put(schema: &mut Value, name: &str, member: Value, required: bool) {
    schema["properties"][name] = member;
    if let Some(names) = schema["required"].as_array_mut().filter(|_| required) {
        names.push(json!(name));
    }
}

fn optional(schema: &mut Value, names: &[&str]) {
    if let Some(required) = schema["required"].as_array_mut() {
        required.retain(|name| !name.as_str().is_some_and(|name| names.contains(&name)));
    }
}

/// Examples of a body, by name.
pub(super) fn examples(schema: &str) -> Map<String, Value> {
    let examples = match schema {
        "AgentId" => json!({ "bank": { "agent_id": "bank-agent" } }),
        "ToErase" => json!({ "ann": { "user": "ann", "note": "request 7", "confirm": true } }),
        "NewPin" => {
            json!({ "first": { "pin": "a new one" }, "change": { "pin": "a new one", "old": "the old one" } })
        }
        "UserToReset" => json!({ "ann": { "user": "ann" } }),
        "PrincipalName" => json!({ "tablet": { "name": "tablet" } }),
        "BeginSignIn" => json!({ "begin": {
            "provider": "login", "state": "bG9naW4",
            "code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM",
        } }),
        "FinishSignIn" => json!({
            "code": {
                "provider": "login", "code": "SplxlOBeZQQYbYS6WxSbIA",
                "code_verifier": "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk",
            },
            "renew": { "provider": "login", "refresh_token": "tGzv3JOkF0XG5Qx2TlKWIA" },
        }),
        "PasskeyBegin" => {
            json!({ "begin": { "subscription_id": "sub_68fb7d317a1a42be0000000000000002" } })
        }
        "PasskeyRegistration" => json!({ "new": {
            "name": "My key",
            "registration": { "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uY3JlYXRlIn0", "attestationObject": "o2NmbXRkbm9uZQ" },
        }}),
        "PasskeyRemoval" => {
            json!({ "remove": { "subscription_id": "sub_68fb7d317a1a42be0000000000000002", "id": "a2V5" } })
        }
        "PasskeyQuestion" => json!({ "change": {} }),
        "PasskeyAssertion" => json!({ "change": { "assertion": {
            "credentialId": "a2V5", "clientDataJSON": "eyJ0eXBlIjoid2ViYXV0aG4uZ2V0In0",
            "authenticatorData": "SZYN5YgO", "signature": "MEUCIQ",
        } } }),
        "NewSession" => json!({ "start": {
            "producer": { "agent_id": "bank-agent", "agent_name": "Bank agent" },
            "summary_normal": "The bank agent pays your rent.",
            "language": "en",
        }}),
        "NewEvent" => json!({
            "progress": {
                "type": "aaep:agent.progress.updated",
                "progress": { "percent": 40, "description": "4 of 10 bills are read." },
                "summary_normal": "4 of 10 bills are read.",
            },
            "tool": {
                "type": "aaep:agent.tool.invoked",
                "tool": "read_bills",
                "summary_normal": "Reading your bills.",
                "arguments": { "month": "May" },
            },
            "end": { "type": "aaep:agent.session.completed", "summary_normal": "The rent is paid." },
        }),
        "NewRequest" => json!({
            "confirmation": {
                "kind": "confirmation",
                "tool": "transfer",
                "arguments": { "to": "Ann", "euros": "800" },
                "action": "Transfer 800 euros to Ann.",
                "consequence": "The money leaves your account at once.",
                "risk_level": "high",
                "irreversible": true,
                "timeout_seconds": 300,
                "default_decision": "reject",
            },
            "clarification": {
                "kind": "clarification",
                "question": "Which account?",
                "timeout_seconds": 120,
                "accepted_response_kinds": ["freetext"],
            },
        }),
        "Invocation" => json!({ "as_confirmed": {} }),
        other => super::messages::examples(other),
    };
    let Value::Object(examples) = examples else { return Map::new() };
    examples.into_iter().map(|(name, value)| (name, json!({ "value": value }))).collect()
}

fn fixed() -> Value {
    let statuses = [
        "pending",
        "accepted",
        "rejected",
        "timed_out",
        "cancelled",
        "superseded",
        "expired",
        "unanswered",
        "invoked",
        "completed",
        "unknown",
    ];
    json!({
        "Problem": {
            "type": "object",
            "required": ["error", "rule", "section", "text"],
            "properties": { "error": text(), "rule": text(), "section": text(), "text": text(), "request_id": text() },
        },
        "Session": {
            "type": "object",
            "required": ["session_id"],
            "properties": {
                "session_id": text(),
                "session_secret": {
                    "description": "Only for an agent that showed neither a token nor a secret: to be sent as AAEP-Session-Secret with every call about this session and its requests. It is told once.",
                    "type": "string",
                },
            },
        },
        "Standing": {
            "description": "Calls that have not come back, and outputs that go on at a position.",
            "type": "object",
            "required": ["session_id", "state", "calls", "outputs"],
            "properties": {
                "session_id": text(), "state": text(),
                "calls": { "type": "array", "items": { "type": "object", "properties": { "tool_call_id": text(), "tool": text() } } },
                "outputs": { "type": "array", "items": { "type": "object", "properties": { "output_id": text(), "position": { "type": "integer" } } } },
            },
        },
        "Emitted": {
            "type": "object",
            "required": ["event_id", "sequence_number"],
            "properties": { "event_id": text(), "sequence_number": { "type": "integer" } },
        },
        "Request": {
            "type": "object",
            "required": ["request_id", "event_id", "session_id", "digest", "deadline", "status"],
            "properties": {
                "request_id": text(), "event_id": text(), "session_id": text(), "digest": text(),
                "deadline": { "type": "string", "format": "date-time" },
                "status": { "enum": statuses },
                "decided_by": { "type": "string", "description": "Who or what decided, as the hub knows it." },
                "response": {},
                "reply": {
                    "type": "object",
                    "description": "What the reply says of itself; nobody has checked it, and secrets are taken out.",
                    "properties": {
                        "decided_by": text(), "decision_rationale": text(), "correlation_id": text(),
                        "confidence": { "type": "number", "minimum": 0, "maximum": 1 },
                        "wrong_clock": { "type": "boolean", "description": "It was a no whose clock cannot be right: the request is cancelled." },
                    },
                },
            },
        },
        "Invocation": { "type": "object", "properties": { "arguments": {} }, "additionalProperties": false },
        "Grant": {
            "type": "object",
            "required": ["tool_call_id", "arguments"],
            "properties": { "tool_call_id": text(), "arguments": {} },
        },
        "PageCode": { "type": "object", "required": ["code"], "properties": { "code": text() } },
        "PageToken": { "type": "object", "required": ["token"], "properties": { "token": text() } },
        "AgentId": {
            "type": "object",
            "required": ["agent_id"],
            "properties": { "agent_id": text(), "to": text(), "user": text() },
        },
        "ToErase": {
            "type": "object",
            "required": ["user"],
            "properties": { "user": text(), "note": text(), "confirm": { "type": "boolean" } },
        },
        "ErasedRecords": {
            "type": "object",
            "required": ["records", "sessions", "still_needed", "erased"],
            "properties": {
                "records": { "type": "integer", "minimum": 0 },
                "sessions": { "type": "integer", "minimum": 0 },
                "still_needed": { "type": "integer", "minimum": 0 },
                "erased": { "type": "boolean" },
            },
        },
        "HeldIds": {
            "type": "object",
            "required": ["agents"],
            "properties": { "agents": { "type": "array", "items": {
                "type": "object",
                "properties": {
                    "agent_id": text(), "principal": text(), "user": text(),
                    "sessions": { "type": "integer", "minimum": 0 },
                },
            } } },
        },
        "OpenSessions": {
            "type": "object",
            "required": ["sessions"],
            "properties": { "sessions": { "type": "array", "items": {
                "type": "object",
                "properties": { "session_id": text(), "principal": text(), "user": text() },
            } } },
        },
        "Passkey": {
            "type": "object",
            "required": ["id", "name", "domain"],
            "properties": { "id": text(), "name": text(), "domain": text() },
        },
        "Passkeys": {
            "type": "object",
            "required": ["passkeys"],
            "properties": { "passkeys": { "type": "array", "items": { "$ref": "#/components/schemas/Passkey" } } },
        },
        "PasskeyBegin": {
            "type": "object",
            "required": ["subscription_id"],
            "properties": { "subscription_id": text() },
            "additionalProperties": false,
        },
        "PasskeyRemoval": {
            "type": "object",
            "required": ["subscription_id", "id"],
            "properties": { "subscription_id": text(), "id": text() },
            "additionalProperties": false,
        },
        "PasskeyCreation": {
            "type": "object",
            "required": ["challenge", "domain", "userId", "algorithms", "exclude"],
            "properties": {
                "challenge": text(), "domain": text(), "userId": text(),
                "algorithms": { "type": "array", "items": { "type": "integer" } },
                "exclude": { "type": "array", "items": text() },
            },
        },
        "PasskeyRegistration": {
            "type": "object",
            "required": ["name", "registration"],
            "properties": { "name": text(), "registration": {
                "description": "What `navigator.credentials.create` gave, in base64url.",
                "type": "object",
                "required": ["clientDataJSON", "attestationObject"],
                "properties": { "clientDataJSON": text(), "attestationObject": text() },
            } },
            "additionalProperties": false,
        },
        "PasskeyQuestion": {
            "type": "object",
            "properties": { "reply_token": text() },
            "additionalProperties": false,
        },
        "PasskeyChallenge": {
            "type": "object",
            "required": ["challenge", "domain", "allow"],
            "properties": {
                "challenge": text(), "domain": text(),
                "allow": { "type": "array", "items": text() },
            },
        },
        "PasskeyAssertion": {
            "type": "object",
            "required": ["assertion"],
            "properties": { "reply_token": text(), "assertion": {
                "description": "What `navigator.credentials.get` gave, in base64url.",
                "type": "object",
                "required": ["credentialId", "clientDataJSON", "authenticatorData", "signature"],
                "properties": {
                    "credentialId": text(), "clientDataJSON": text(),
                    "authenticatorData": text(), "signature": text(),
                },
            } },
            "additionalProperties": false,
        },
        "Status": {
            "type": "object",
            "required": ["name", "waiting", "sessions"],
            "properties": {
                "name": text(),
                "waiting": { "type": "integer", "minimum": 0 },
                "sessions": { "type": "integer", "minimum": 0 },
            },
        },
        "Inputs": {
            "type": "object",
            "required": ["inputs"],
            "properties": { "inputs": { "type": "array", "items": {
                "description": "`user_input` with `text`, or `session_ended` with `session_id`; ignore other kinds.",
                "type": "object",
                "required": ["kind"],
                "properties": { "kind": text(), "text": text(), "session_id": text() },
            } } },
        },
    })
}

/// What is done about PINs, and about who may come in.
fn administration() -> Map<String, Value> {
    let schemas = json!({
        "NewPin": {
            "type": "object",
            "properties": { "pin": text(), "old": text() },
        },
        "UserToReset": {
            "type": "object",
            "required": ["user"],
            "properties": { "user": text() },
        },
        "PrincipalName": {
            "type": "object",
            "required": ["name"],
            "properties": { "name": text() },
        },
    });
    schemas.as_object().cloned().unwrap_or_default()
}

/// What goes to and fro when somebody signs in with an identity provider.
fn sign_in() -> Map<String, Value> {
    let schemas = json!({
        "SignInOffers": {
            "type": "object",
            "required": ["providers"],
            "properties": { "providers": { "type": "array", "items": {
                "type": "object",
                "required": ["name", "issuer", "client_id", "scopes"],
                "properties": {
                    "name": text(), "issuer": text(), "client_id": text(),
                    "scopes": { "type": "array", "items": text() },
                    "resource": text(), "audience": text(),
                },
            } } },
        },
        "BeginSignIn": {
            "type": "object",
            "required": ["provider", "state", "code_challenge"],
            "properties": { "provider": text(), "state": text(), "code_challenge": text() },
        },
        "SignInAddress": { "type": "object", "required": ["url"], "properties": { "url": text() } },
        "FinishSignIn": {
            "type": "object",
            "required": ["provider"],
            "properties": {
                "provider": text(), "code": text(), "code_verifier": text(), "refresh_token": text(),
            },
        },
        "SignInTokens": {
            "type": "object",
            "required": ["access_token"],
            "properties": {
                "access_token": text(), "refresh_token": text(),
                "expires_in": { "type": "integer", "minimum": 0 },
            },
        },
    });
    match schemas {
        Value::Object(schemas) => schemas,
        _ => Map::new(),
    }
}
