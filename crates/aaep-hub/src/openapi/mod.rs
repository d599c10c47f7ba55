//! The API's description (OpenAPI 3.1), made from the table of paths.

mod messages;
mod schemas;

use http::Method;
use serde_json::{Map, Value, json};

use crate::http::route::PATHS;

/// What a path is for, what it takes, and what it answers.
struct About {
    summary: &'static str,
    /// The schema of the body.
    takes: Option<&'static str>,
    /// Statuses and the schemas of their bodies; empty for none.
    gives: &'static [(&'static str, &'static str, &'static str)],
    /// Parameters of query and head.
    with: &'static [&'static str],
}

const PROBLEMS: [(&str, &str); 9] = [
    ("400", "The message is malformed; nothing was changed."),
    ("401", "Send a valid token."),
    ("403", "This principal may not do that, or the page may not."),
    ("404", "There is no such thing of yours."),
    ("408", "The body took too long."),
    ("409", "The order or the lack of consent forbids it; nothing was changed."),
    ("413", "The body is too long."),
    ("429", "Too much at once."),
    ("503", "It cannot be made durable now, or the hub is about to stop."),
];

fn about(method: &Method, path: &str) -> Option<About> {
    let about = |summary, takes, gives, with| Some(About { summary, takes, gives, with });
    match (method.as_str(), path) {
        ("POST", "subscriptions") => about(
            "Subscribe: what to hear, and how.",
            Some("SubscriptionRequest"),
            &[
                ("201", "Accepted; the stream is at Location.", "SubscriptionAccepted"),
                ("401", "Send a valid token.", "HandshakeRefusal"),
                ("403", "This principal may not listen.", "HandshakeRefusal"),
                ("422", "Rejected.", "SubscriptionRejected"),
                ("429", "Too much at once.", "HandshakeRefusal"),
                ("503", "It cannot be had now.", "HandshakeRefusal"),
            ],
            &[],
        ),
        ("GET", "events") => about(
            "Hear a subscription; without one, everything in the default terms.",
            None,
            &[(
                "200",
                "Server-sent events: `id` is the event's id, `data` an `Event` of the components.",
                "text/event-stream",
            )],
            &["subscription_id", "Last-Event-ID"],
        ),
        ("POST", "replies") => about(
            "Answer, ask for more time, stop the agent, change the terms, or say goodbye.",
            Some("Reply"),
            &[
                ("204", "Taken; what became of it is heard on the stream.", ""),
                ("200", "The new terms, or why they cannot be had.", "HandshakeAnswer"),
            ],
            &[],
        ),
        ("GET", "ws") => about(
            "Both ways over a WebSocket, subprotocol aaep.v1.",
            None,
            &[("101", "The connection is a WebSocket now.", "")],
            &[],
        ),
        ("POST", "messages") => about(
            "For clients without a handshake: answers, and things to say to the agent.",
            Some("Message"),
            &[("202", "Taken.", "")],
            &[],
        ),
        ("POST", "agent/sessions") => about(
            "Begin a session.",
            Some("NewSession"),
            &[
                ("201", "It began.", "Session"),
                ("422", "The key was used with another body.", "Problem"),
            ],
            &["Idempotency-Key", "AAEP-Session-Secret"],
        ),
        ("GET", "agent/sessions/{session_id}") => about(
            "Where an open session stands; a sign of life. Waits for its end if asked to.",
            None,
            &[("200", "It is open.", "Standing")],
            &["wait", "AAEP-Session-Secret"],
        ),
        ("POST", "agent/sessions/{session_id}/events") => about(
            "Emit an event: its type and its payload, without the envelope.",
            Some("NewEvent"),
            &[
                ("201", "It was emitted.", "Emitted"),
                ("422", "The key was used with another body.", "Problem"),
            ],
            &["Idempotency-Key", "AAEP-Session-Secret"],
        ),
        ("POST", "agent/sessions/{session_id}/requests") => about(
            "Ask for consent to an action, or for an answer.",
            Some("NewRequest"),
            &[
                ("201", "It waits for an answer.", "Request"),
                ("200", "The same was asked before and still waits.", "Request"),
                ("422", "The key was used with another body.", "Problem"),
            ],
            &["Idempotency-Key", "AAEP-Session-Secret"],
        ),
        ("GET", "agent/requests/{request_id}") => about(
            "Where a request stands; waits for an outcome if asked to.",
            None,
            &[("200", "Where it stands.", "Request")],
            &["wait", "AAEP-Session-Secret"],
        ),
        ("DELETE", "agent/requests/{request_id}") => about(
            "Withdraw a request.",
            None,
            &[("204", "It no longer waits.", "")],
            &["AAEP-Session-Secret"],
        ),
        ("POST", "agent/requests/{request_id}/invoke") => about(
            "Spend the approval, once: run the arguments that come back.",
            Some("Invocation"),
            &[
                ("200", "Run this.", "Grant"),
                ("422", "The key was used with another body.", "Problem"),
            ],
            &["Idempotency-Key", "AAEP-Session-Secret"],
        ),
        ("GET", "agent/inputs") => about(
            "What people said to this agent, and sessions that ended without it.",
            None,
            &[("200", "Nothing, or some.", "Inputs")],
            &["wait", "AAEP-Session-Secret"],
        ),
        ("GET", "status") => about(
            "How many requests wait for you, and how many sessions run for you.",
            None,
            &[("200", "So many.", "Status")],
            &[],
        ),
        ("GET", "admin/agents") => about(
            "For administrators: every agent id that belongs to somebody.",
            None,
            &[("200", "Them.", "HeldIds")],
            &[],
        ),
        ("POST", "admin/agents/release") => about(
            "For administrators: free an agent id without open sessions.",
            Some("AgentId"),
            &[("204", "Whoever speaks under it next has it.", "")],
            &[],
        ),
        ("POST", "admin/agents/hand-over") => about(
            "For administrators: give an agent id without open sessions to another agent.",
            Some("AgentId"),
            &[("204", "It is theirs.", "")],
            &[],
        ),
        ("POST", "admin/erase") => about(
            "For administrators: erase what is kept about a person, or say what that would be.",
            Some("ToErase"),
            &[("200", "What was found, and whether it was erased.", "ErasedRecords")],
            &[],
        ),
        ("POST", "admin/presence/reset") => about(
            "For administrators: remove the PIN and the passkeys of somebody who lost them. Everybody who listens for them hears it.",
            Some("UserToReset"),
            &[("204", "There are none any more.", "")],
            &[],
        ),
        ("POST", "admin/deny") => about(
            "For administrators: shut a principal out at once, whatever it shows.",
            Some("PrincipalName"),
            &[("204", "It is shut out.", "")],
            &[],
        ),
        ("POST", "admin/allow") => about(
            "For administrators: let a principal in again that was shut out.",
            Some("PrincipalName"),
            &[("204", "It is let in.", "")],
            &[],
        ),
        ("GET", "admin/sessions") => about(
            "For administrators: every open session.",
            None,
            &[("200", "Them.", "OpenSessions")],
            &[],
        ),
        ("POST", "admin/sessions/{session_id}/end") => about(
            "For administrators: end a session.",
            None,
            &[("204", "It was cancelled, and what it asked for with it.", "")],
            &[],
        ),
        ("POST", "presence/pin") => about(
            "Set, change or remove your PIN; the one that you have is shown, or a passkey.",
            Some("NewPin"),
            &[("204", "It is as you say.", "")],
            &[],
        ),
        ("GET", "presence/passkeys") => {
            about("Your passkeys.", None, &[("200", "Them.", "Passkeys")], &[])
        }
        ("POST", "presence/passkeys/options") => about(
            "Begin to register a passkey; who has one, or a PIN, shows it first.",
            Some("PasskeyBegin"),
            &[("200", "What the browser makes it from.", "PasskeyCreation")],
            &[],
        ),
        ("POST", "presence/passkeys") => about(
            "Register the passkey that the browser made.",
            Some("PasskeyRegistration"),
            &[("201", "It is yours.", "Passkey")],
            &[],
        ),
        ("POST", "presence/passkeys/remove") => about(
            "Remove a passkey; sign for it first, or type your PIN.",
            Some("PasskeyRemoval"),
            &[("204", "It is gone.", "")],
            &[],
        ),
        ("POST", "presence/passkeys/challenge") => about(
            "Ask what is to be signed for a yes; without a token, for a change of passkeys.",
            Some("PasskeyQuestion"),
            &[("200", "What the browser signs.", "PasskeyChallenge")],
            &[],
        ),
        ("POST", "presence/passkeys/assertion") => about(
            "Show what was signed; the yes that follows counts as signed.",
            Some("PasskeyAssertion"),
            &[("204", "It was verified.", "")],
            &[],
        ),
        ("GET", "/.well-known/aaep-manifest.json") => {
            about("What this hub is.", None, &[("200", "The manifest.", "Manifest")], &[])
        }
        ("GET", "/healthz") => {
            about("Whether it runs.", None, &[("200", "It does.", "text/plain")], &[])
        }
        ("GET", "/readyz") => {
            about("Whether it takes new requests.", None, &[("200", "It does.", "text/plain")], &[])
        }
        ("GET", "/metrics") => {
            about("Figures for Prometheus.", None, &[("200", "Figures.", "text/plain")], &[])
        }
        ("GET", "/openapi.json") => {
            about("This description.", None, &[("200", "It.", "OpenApi")], &[])
        }
        ("POST", "page/token") => about(
            "Exchange the one-time code of the page's address for a token.",
            Some("PageCode"),
            &[("200", "The token; the code is spent.", "PageToken")],
            &[],
        ),
        ("GET", "sign-in") => about(
            "With which identity providers people sign in here.",
            None,
            &[("200", "The providers; none is secret.", "SignInOffers")],
            &[],
        ),
        ("POST", "sign-in/begin") => about(
            "Where a page of the hub sends somebody who signs in with a provider (PKCE, S256).",
            Some("BeginSignIn"),
            &[
                ("200", "The address.", "SignInAddress"),
                ("404", "Nobody signs in with a provider of that name.", "Problem"),
                ("502", "The provider cannot be reached, or understood.", "Problem"),
            ],
            &[],
        ),
        ("POST", "sign-in/token") => about(
            "Exchange the code that somebody came back with, or a refresh token, for tokens.",
            Some("FinishSignIn"),
            &[
                ("200", "The provider's tokens.", "SignInTokens"),
                ("401", "The provider said no.", "Problem"),
                ("502", "The provider cannot be reached, or understood.", "Problem"),
            ],
            &[],
        ),
        ("GET", "/") => about("A page for people.", None, &[("200", "It.", "text/html")], &[]),
        ("GET", "/page/{file}") => about(
            "A file of the page; sites of any origin may load it.",
            None,
            &[("200", "It.", "text/javascript"), ("304", "You have it.", "")],
            &[],
        ),
        _ => None,
    }
}

/// The whole document, for a hub with this base path.
pub(crate) fn document(base: &str) -> Value {
    let mut paths = Map::new();
    for known in PATHS {
        let Some(about) = about(&known.method, known.path) else { continue };
        let full = if known.path.starts_with('/') {
            known.path.to_owned()
        } else {
            format!("{base}/{}", known.path)
        };
        let operation = operation(&known.method, known.path, &about);
        let entry = paths.entry(full).or_insert_with(|| json!({}));
        if let Value::Object(entry) = entry {
            entry.insert(known.method.as_str().to_lowercase(), operation);
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "AAEP hub",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Agents ask, people with assistive technology hear and answer.",
            "license": { "name": "MIT OR Apache-2.0" },
        },
        "security": [{ "token": [] }],
        "paths": paths,
        "components": { "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } }, "schemas": schemas::all() },
    })
}

fn operation(method: &Method, path: &str, about: &About) -> Value {
    let mut responses = Map::new();
    for (status, text, schema) in about.gives {
        responses.insert((*status).to_owned(), response(text, schema));
    }
    let open = path.starts_with('/') && path != "/metrics";
    for (status, text) in PROBLEMS {
        let of_body = about.takes.is_some() || !matches!(status, "400" | "408" | "413");
        if !open && of_body && !about.gives.iter().any(|(given, ..)| *given == status) {
            responses.insert(status.to_owned(), response(text, "Problem"));
        }
    }
    let ids = ["session_id", "request_id", "file"];
    let ids = ids.iter().filter(|id| path.contains(&format!("{{{id}}}")));
    let mut parameters: Vec<Value> = ids
        .map(|id| json!({ "name": id, "in": "path", "required": true, "schema": { "type": "string" } }))
        .collect();
    parameters.extend(about.with.iter().map(|name| {
        let place = if name.starts_with(|c: char| c.is_uppercase()) { "header" } else { "query" };
        json!({ "name": name, "in": place, "schema": { "type": if *name == "wait" { "integer" } else { "string" } } })
    }));
    let mut operation = json!({
        "operationId": operation_id(method, path),
        "summary": about.summary,
        "responses": responses,
    });
    if !parameters.is_empty() {
        operation["parameters"] = json!(parameters);
    }
    if let Some(schema) = about.takes {
        let mut content = json!({ "schema": reference(schema) });
        let examples = schemas::examples(schema);
        if !examples.is_empty() {
            content["examples"] = Value::Object(examples);
        }
        operation["requestBody"] =
            json!({ "required": true, "content": { "application/json": content } });
    }
    if open || path == "page/token" || path.starts_with("sign-in") {
        operation["security"] = json!([]);
    }
    operation
}

/// The name of an operation, for generated clients: `post_agent_sessions_events`.
fn operation_id(method: &Method, path: &str) -> String {
    let is_word = |word: &&str| !word.is_empty() && !word.starts_with('{');
    let words: Vec<_> = path.split(['/', '.', '-']).filter(is_word).collect();
    let name = if words.is_empty() { "index".to_owned() } else { words.join("_") };
    let one = if path.ends_with('}') { "_one" } else { "" };
    format!("{}_{name}{one}", method.as_str().to_lowercase())
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

fn response(text: &str, schema: &str) -> Value {
    match schema {
        "" => json!({ "description": text }),
        media if media.contains('/') => {
            json!({ "description": text, "content": { media: { "schema": { "type": "string" } } } })
        }
        "OpenApi" => {
            json!({ "description": text, "content": { "application/json": { "schema": { "type": "object" } } } })
        }
        name => {
            json!({ "description": text, "content": { "application/json": { "schema": reference(name) } } })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_path_is_described_and_every_reference_leads_somewhere() {
        for known in PATHS {
            assert!(about(&known.method, known.path).is_some(), "{} {}", known.method, known.path);
        }
        let ids: std::collections::BTreeSet<_> =
            PATHS.iter().map(|known| operation_id(&known.method, known.path)).collect();
        assert_eq!(ids.len(), PATHS.len(), "{ids:?}");
        let document = document("/aaep/v1");
        let text = document.to_string();
        for found in text.match_indices("#/components/schemas/") {
            let name = text[found.0 + found.1.len()..].split('"').next().unwrap();
            assert!(document["components"]["schemas"][name].is_object(), "{name}");
        }
    }

    #[test]
    fn every_message_and_every_event_that_is_heard_is_described_with_an_example_of_what_is_sent() {
        let document = document("/aaep/v1");
        let schemas = &document["components"]["schemas"];
        let parts = |name: &str| {
            let parts = schemas[name]["oneOf"].as_array().unwrap().iter();
            let name = |part: &Value| {
                part["$ref"].as_str().unwrap().rsplit('/').next().unwrap().to_owned()
            };
            parts.map(name).collect::<Vec<_>>()
        };
        assert_eq!((parts("Event").len(), parts("Reply").len()), (12, 6));
        for event in parts("Event") {
            let schema = &schemas[&event];
            for member in
                ["event_id", "session_id", "timestamp", "producer", "localization_hints", "type"]
            {
                assert!(schema["properties"][member].is_object(), "{event}: {member}");
            }
            for member in ["event_id", "session_id", "timestamp", "producer", "type"] {
                assert!(
                    schema["required"].as_array().unwrap().contains(&json!(member)),
                    "{event}: {member}"
                );
            }
        }
        assert!(schemas["AwaitingConfirmationEvent"]["properties"]["reply_token"].is_object());
        assert!(schemas["ConfirmationReply"]["properties"]["modified_action"].is_object());
        let asked = &schemas["SubscriptionRequest"]["properties"]["capabilities"];
        assert!(asked["properties"]["event_filters"].is_object(), "{asked}");
        // Every message that a client sends has an example, and those of the protocol are valid.
        for operation in document["paths"].as_object().unwrap().values() {
            for (method, operation) in operation.as_object().unwrap() {
                let Some(body) = operation.get("requestBody") else { continue };
                let examples = body["content"]["application/json"]["examples"].as_object();
                let examples = examples.unwrap_or_else(|| panic!("{method} {operation}"));
                for example in examples.values().map(|example| &example["value"]) {
                    let spoken = example["type"].as_str().is_some_and(|t| !t.starts_with("aaep:"));
                    if spoken {
                        let text = example.to_string();
                        let problems = aaep_types::validate(text.as_bytes());
                        assert!(problems.is_empty(), "{problems:?} {text}");
                    }
                }
            }
        }
    }

    #[test]
    fn every_member_of_every_event_and_request_is_described() {
        let document = document("/aaep/v1");
        let schemas = &document["components"]["schemas"];
        for name in ["NewEvent", "NewRequest"] {
            for part in schemas[name]["oneOf"].as_array().unwrap() {
                let part = part["$ref"].as_str().unwrap().rsplit('/').next().unwrap();
                let members = schemas[part]["properties"].as_object().unwrap();
                assert!(members.len() >= 3, "{part}: {members:?}");
                assert!(!members.contains_key("reply_token"), "{part}");
                let beside = &schemas[part]["patternProperties"]["^@context$"];
                assert!(members.contains_key("@context") || beside.is_object(), "{part}");
                for hint in ["extensions", "urgency", "verbosity", "producer"] {
                    assert!(members.contains_key(hint), "{part}: {hint}");
                }
                for required in schemas[part]["required"].as_array().unwrap() {
                    assert!(members.contains_key(required.as_str().unwrap()), "{part}: {required}");
                }
            }
        }
        let session = &schemas["NewSession"];
        assert_eq!(session["required"], json!(["summary_normal", "producer"]));
        for member in ["@context", "extensions", "language", "sub_agents", "summary_terse"] {
            assert!(session["properties"][member].is_object(), "{member}");
        }
        assert!(schemas["NewConfirmation"]["properties"]["risk_level"]["enum"].is_array());
        assert!(schemas["NewToolInvoked"]["properties"]["arguments"].is_object());
    }
}
