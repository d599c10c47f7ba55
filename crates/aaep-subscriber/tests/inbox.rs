//! The vectors of the inbox, which the page's script runs as well.
//!
//! `AAEP_WRITE_VECTORS=1` writes what is told and sent into the file anew.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)]

use std::time::Duration;

use aaep_subscriber::inbox::{
    Answer, Bounds, Connection, Inbox, InboxError, InboxInput, Settings, TextBy,
};
use aaep_subscriber::{Agent, Asks, Notification, Request, Silence};
use serde_json::{Map, Value, json};

/// 2026-05-24T14:00:00Z.
const START: i64 = 1_779_631_200_000;

fn agent(agent: &Agent) -> Value {
    json!({ "id": *agent.id, "name": *agent.name })
}

fn request(request: &Request) -> Value {
    let asks = match &request.asks {
        Asks::Consent { action, consequence, risk, reversibility, silence_accepts } => json!({
            "kind": "consent", "action": action, "consequence": consequence,
            "risk": risk.as_str(), "reversibility": reversibility.as_str(),
            "silence_accepts": silence_accepts,
        }),
        Asks::Answer { question, context, kinds, choices, default } => {
            let kinds: Vec<_> = kinds.iter().map(|kind| kind.as_str()).collect();
            let choice = |choice: &aaep_subscriber::Choice| json!({ "value": choice.value, "label": choice.label });
            let choices: Vec<_> = choices.iter().map(choice).collect();
            let mut asks = json!({ "kind": "answer", "question": question, "kinds": kinds, "choices": choices });
            for (name, value) in [("context", context), ("default", default)] {
                if let Some(value) = value {
                    asks[name] = json!(value);
                }
            }
            asks
        }
    };
    let mut out = json!({
        "number": request.number, "agent": agent(&request.agent), "event_id": *request.event_id,
        "session_id": *request.session_id, "asks": asks,
        "timeout_seconds": request.timeout_seconds, "deadline_ms": request.deadline_ms,
    });
    if let Some(continues) = request.continues {
        out["continues"] = json!(continues);
    }
    out
}

/// A notification as the vectors write it; of an event its id, since it is as it came.
fn written(notification: &Notification) -> Value {
    match notification {
        Notification::Event { agent: whose, json, critical } => {
            let event: Value = serde_json::from_str(json).unwrap();
            json!({ "kind": "event", "agent": agent(whose), "event_id": event["event_id"], "critical": critical })
        }
        Notification::Asked(asked) => json!({ "kind": "asked", "request": request(asked) }),
        Notification::Settled { request, outcome: became, announced } => json!({
            "kind": "settled", "request": { "number": request.number },
            "outcome": became.as_str(), "announced": announced,
        }),
        Notification::Text { agent: whose, session_id, output_id, text, ends, after_gap } => {
            json!({
                "kind": "text", "agent": agent(whose), "session_id": **session_id,
                "output_id": **output_id, "text": text, "ends": ends, "after_gap": after_gap,
            })
        }
        Notification::Silence { agent: whose, why, count } => {
            let why = match why {
                Silence::Missing => "missing",
                Silence::TooMuch => "too_much",
                _ => "unreadable",
            };
            json!({ "kind": "silence", "agent": agent(whose), "why": why, "count": count })
        }
        Notification::Connected { hub, again, may_reply, .. } => {
            json!({ "kind": "connected", "hub": **hub, "again": again, "may_reply": may_reply })
        }
        Notification::Lost { hub, why } => json!({ "kind": "lost", "hub": **hub, "why": **why }),
        other => panic!("{other:?}"),
    }
}

fn answer(value: &Value) -> Answer {
    match value {
        Value::String(word) if word == "accept" => Answer::Accept,
        Value::String(word) if word == "reject" => Answer::Reject,
        value => {
            let text = |name: &str| value[name].as_str().map(str::to_owned);
            if let Some(choice) = text("choice") {
                Answer::Choice(choice)
            } else if let Some(text) = text("text") {
                Answer::Text(text)
            } else if let Some(yes) = value["yes_no"].as_bool() {
                Answer::YesNo(yes)
            } else {
                Answer::Number(value["number"].as_f64().unwrap())
            }
        }
    }
}

/// Does one step; what the hub is to be sent at once, and whether the user was refused.
fn act(
    inbox: &mut Inbox,
    hub: Connection,
    step: &Value,
    now: u64,
) -> (Option<String>, Result<(), InboxError>) {
    let mut comes = |text: &str| {
        inbox.handle(InboxInput::Message { connection: hub, bytes: text.as_bytes() }, now)
    };
    if let Some(raw) = step["raw"].as_str() {
        comes(raw);
    } else if let Some(several) = step["message"].as_array() {
        several.iter().for_each(|message| comes(&message.to_string()));
    } else if step["message"].is_object() {
        comes(&step["message"].to_string());
    } else if step.get("attached").is_some() {
        inbox.handle(InboxInput::Attached { connection: hub }, now);
    } else if let Some(why) = step["lost"].as_str() {
        inbox.handle(InboxInput::Lost { connection: hub, why }, now);
    } else if step.get("begin").is_some() {
        return (Some(inbox.begin(hub, now)), Ok(()));
    } else if let Some(said) = step.get("answer") {
        let number = u32::try_from(said["number"].as_u64().unwrap()).unwrap();
        return (None, inbox.answer(number.into(), answer(&said["answer"]), now));
    } else if let Some(more) = step.get("more_time") {
        let number = u32::try_from(more["number"].as_u64().unwrap()).unwrap();
        let time = Duration::from_secs(more["seconds"].as_u64().unwrap());
        return (None, inbox.more_time(number.into(), time, now));
    } else {
        inbox.handle(InboxInput::Time, now);
    }
    (None, Ok(()))
}

/// Runs a vector, and gives it back with what really happened.
fn run(vector: &Value) -> Value {
    let text = match vector["text"].as_str() {
        Some("end") => TextBy::End,
        Some("paragraph") => TextBy::Paragraph,
        _ => TextBy::Sentence,
    };
    let settings = Settings { text, subscriber_version: String::new(), ..Settings::default() };
    let mut inbox = Inbox::new(settings, Bounds::default(), START);
    let hub = inbox.add("hub", 0);
    inbox.begin(hub, 0);
    let mut ran = vector.clone();
    for step in ran["steps"].as_array_mut().unwrap() {
        let now = step["at"].as_u64().unwrap();
        let (request, refused) = act(&mut inbox, hub, step, now);
        let told = std::iter::from_fn(|| inbox.poll_notification(now));
        let told: Vec<Value> = told.map(|notification| written(&notification)).collect();
        let mut sent = Vec::new();
        while let Some(send) = inbox.poll_send() {
            sent.push(serde_json::from_str::<Value>(&send.json).unwrap());
            inbox.handle(InboxInput::Sent(send.ticket), now);
        }
        sent.extend(request.map(|text| serde_json::from_str::<Value>(&text).unwrap()));
        let step: &mut Map<String, Value> = step.as_object_mut().unwrap();
        for name in ["refused", "told", "sent"] {
            step.shift_remove(name);
        }
        if refused.is_err() {
            step.insert("refused".into(), json!(true));
        }
        for (name, list) in [("told", told), ("sent", sent)] {
            if !list.is_empty() {
                step.insert(name.into(), json!(list));
            }
        }
    }
    ran
}

// covers: H24, C25, C28, D15, D30, D32, T19, T28, E6, E27, X8
#[test]
fn every_vector_of_the_inbox_happens_as_written() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/vectors/inbox.json");
    let file = std::fs::read_to_string(path).unwrap();
    let vectors: Vec<Value> = serde_json::from_str(&file).unwrap();
    let ran: Vec<Value> = vectors.iter().map(run).collect();
    if std::env::var_os("AAEP_WRITE_VECTORS").is_some() {
        let lines: Vec<String> = ran.iter().map(|vector| format!("  {vector}")).collect();
        std::fs::write(path, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
        return;
    }
    for (wanted, found) in vectors.iter().zip(&ran) {
        assert_eq!(wanted, found, "{}", wanted["name"]);
    }
}
