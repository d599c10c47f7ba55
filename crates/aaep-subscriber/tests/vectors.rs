//! The shared vectors: what is said of each notification, and what becomes of text. `vectors/README.md`
//! describes them. The page's script runs the same files.
//!
//! `AAEP_WRITE_VECTORS=1 cargo test -p aaep-subscriber --test vectors` writes what is said now. Read
//! the difference as a listener would hear it before you keep it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // a test may read and write the source directory

use std::sync::Arc;

use aaep_subscriber::words::{Manner, Span, SpokenLine, Words, safe};
use aaep_subscriber::{
    Account, Agent, Asks, Choice, Identity, Notification, Request, RequestOutcome, Silence,
};
use aaep_types::{
    DescribedBy, Level, ReplyToken, ResponseKind, Reversibility, RiskLevel, Verbosity,
};
use serde_json::{Value, json};

fn text(of: &Value, name: &str) -> String {
    of[name].as_str().unwrap_or_default().to_owned()
}

fn flag(of: &Value, name: &str) -> bool {
    of[name].as_bool().unwrap_or(false)
}

fn agent(of: &Value) -> Agent {
    let agent = &of["agent"];
    let id = agent["id"].as_str().unwrap_or("tidy");
    Agent { id: id.into(), name: agent["name"].as_str().unwrap_or(id).into() }
}

fn asks(of: &Value) -> Asks {
    if of["kind"] == "consent" {
        return Asks::Consent {
            action: text(of, "action"),
            consequence: text(of, "consequence"),
            risk: RiskLevel::parse(&text(of, "risk")).unwrap(),
            reversibility: Reversibility::parse(&text(of, "reversibility")).unwrap(),
            silence_accepts: flag(of, "silence_accepts"),
        };
    }
    let optional = |name: &str| of[name].as_str().map(str::to_owned);
    let list = |name: &str| of[name].as_array().cloned().unwrap_or_default();
    Asks::Answer {
        question: text(of, "question"),
        context: optional("context"),
        kinds: list("kinds")
            .iter()
            .map(|kind| ResponseKind::parse(kind.as_str().unwrap()).unwrap())
            .collect(),
        choices: list("choices")
            .iter()
            .map(|choice| Choice { value: text(choice, "value"), label: text(choice, "label") })
            .collect(),
        default: optional("default"),
    }
}

fn account(of: &Value) -> Option<Account> {
    of.as_object()?;
    Some(Account {
        tool: text(of, "tool"),
        arguments: text(of, "arguments"),
        digest: text(of, "digest"),
        described_by: DescribedBy::parse(&text(of, "described_by")).unwrap(),
        shortened: flag(of, "shortened"),
        redacted: flag(of, "redacted"),
    })
}

fn request(of: &Value) -> Arc<Request> {
    let timeout_seconds = of["timeout_seconds"].as_u64().unwrap();
    Arc::new(Request {
        id: (of["number"].as_u64().unwrap() as u32).into(),
        number: of["number"].as_u64().unwrap() as u32,
        agent: agent(of),
        event_id: "evt_1".into(),
        session_id: "sess_1".into(),
        reply_token: ReplyToken::parse("rpl_1").unwrap(),
        asks: asks(&of["asks"]),
        account: account(&of["account"]),
        agent_says: of["agent_says"].as_str().map(str::to_owned),
        timeout_seconds,
        deadline_ms: timeout_seconds * 1000,
        continues: of["continues"].as_u64().map(|number| number as u32),
        language: None,
        json: "{}".into(),
    })
}

fn outcome(name: &str) -> RequestOutcome {
    match name {
        "accepted" => RequestOutcome::Accepted,
        "rejected" => RequestOutcome::Rejected,
        "answered" => RequestOutcome::Answered,
        "accepted_elsewhere" => RequestOutcome::AcceptedElsewhere,
        "rejected_elsewhere" => RequestOutcome::RejectedElsewhere,
        "answered_elsewhere" => RequestOutcome::AnsweredElsewhere,
        "timed_out" => RequestOutcome::TimedOut,
        "cancelled" => RequestOutcome::Cancelled,
        "superseded" => RequestOutcome::Superseded,
        "gone" => RequestOutcome::Gone,
        other => panic!("{other} is no outcome"),
    }
}

fn identity(of: &Value) -> Option<Identity> {
    let names = || (text(of, "agent_id").into(), text(of, "key").into());
    match of["is"].as_str()? {
        "unsigned" => Some(Identity::Unsigned),
        "new" => {
            let (agent_id, key) = names();
            Some(Identity::New { agent_id, key })
        }
        "verified" => {
            let (agent_id, key) = names();
            Some(Identity::Verified { agent_id, key })
        }
        other => panic!("{other} is no identity"),
    }
}

fn notification(of: &Value) -> Notification {
    match of["kind"].as_str().unwrap() {
        "event" => Notification::Event {
            agent: agent(of),
            json: of["json"].as_str().map_or_else(|| of["event"].to_string(), str::to_owned).into(),
            critical: flag(of, "critical"),
        },
        "asked" => Notification::Asked(request(&of["request"])),
        "settled" => Notification::Settled {
            request: request(&of["request"]),
            outcome: outcome(of["outcome"].as_str().unwrap()),
            announced: of["announced"].as_bool().unwrap_or(true),
        },
        "text" => Notification::Text {
            agent: agent(of),
            session_id: "sess_1".into(),
            output_id: "".into(),
            text: text(of, "text"),
            ends: flag(of, "ends"),
            after_gap: flag(of, "after_gap"),
        },
        "silence" => Notification::Silence {
            agent: agent(of),
            why: match of["why"].as_str().unwrap() {
                "missing" => Silence::Missing,
                "too_much" => Silence::TooMuch,
                "unreadable" => Silence::Unreadable,
                other => panic!("{other} is no reason for silence"),
            },
            count: of["count"].as_u64().unwrap(),
        },
        "connected" => Notification::Connected {
            hub: text(of, "hub").into(),
            again: flag(of, "again"),
            may_reply: flag(of, "may_reply"),
            identity: identity(&of["identity"]),
        },
        "lost" => Notification::Lost { hub: text(of, "hub").into(), why: text(of, "why").into() },
        other => panic!("{other} does not happen"),
    }
}

fn lines(said: &[SpokenLine]) -> Value {
    let span = |span: &Span| match span {
        Span::Ours(text) => json!(text),
        Span::Theirs(text) => json!({ "theirs": text }),
    };
    said.iter().map(|line| line.spans.iter().map(span).collect::<Value>()).collect()
}

/// JSON in which every character is visible to a reader.
fn visible(json: &str) -> String {
    let mut text = String::new();
    for character in json.chars() {
        let marks = matches!(character,
            '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202c}' | '\u{2066}'..='\u{2069}');
        if marks || safe(&character.to_string()).hidden > 0 || character == '\u{a0}' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                text.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Runs the vectors of a file: `find` gives what is found now for `member`.
fn run(file: &str, member: &str, find: impl Fn(&Value) -> Value) {
    let path = format!("{}/vectors/{file}", env!("CARGO_MANIFEST_DIR"));
    let mut vectors: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    let write = std::env::var_os("AAEP_WRITE_VECTORS").is_some();
    let mut wrong = Vec::new();
    for vector in &mut vectors {
        let found = find(vector);
        if write {
            vector[member] = found;
        } else if vector[member] != found {
            wrong
                .push(format!("{}\n  wanted {}\n  found  {found}", vector["name"], vector[member]));
        }
    }
    if write {
        let lines: Vec<String> =
            vectors.iter().map(|vector| format!("  {}", visible(&vector.to_string()))).collect();
        std::fs::write(&path, format!("[\n{}\n]\n", lines.join(",\n"))).unwrap();
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

// covers: T5, T8, T30, T36, E6, E26, L11, V2, S10, C25, D34
#[test]
fn every_happening_is_said_as_the_vectors_say() {
    run("words.json", "said", |vector| {
        let manner = Manner {
            verbosity: Verbosity::parse(vector["verbosity"].as_str().unwrap_or("normal")).unwrap(),
            load: Level::parse(vector["load"].as_str().unwrap_or("medium")).unwrap(),
            name_agents: flag(vector, "name_agents"),
        };
        let words = Words::new(&[vector["language"].as_str().unwrap_or("en")]);
        lines(&words.say(&notification(&vector["happening"]), &manner))
    });
}

// covers: I31, D34
#[test]
fn the_hubs_account_is_said_as_the_vectors_say() {
    run("account.json", "said", |vector| {
        let words = Words::new(&[vector["language"].as_str().unwrap_or("en")]);
        lines(&words.details(&request(&vector["request"]), &Manner::default()))
    });
}

// covers: D34
#[test]
fn text_is_made_safe_as_the_vectors_say() {
    run("safe.json", "safe", |vector| json!(safe(vector["text"].as_str().unwrap()).text));
}

// covers: D34
#[test]
fn text_is_spelled_as_the_vectors_say() {
    run("spell.json", "spelled", |vector| {
        let words = Words::new(&[vector["language"].as_str().unwrap()]);
        lines(&words.spell(vector["text"].as_str().unwrap()))
    });
}
