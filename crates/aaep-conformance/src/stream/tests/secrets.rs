use serde_json::{Value, json};

use super::{Script, brief};
use crate::stream::Weight;

/// A stream in which a tool is called with these members.
fn invoked(more: Value) -> Script {
    let mut script = Script::new("sess_a");
    let mut payload =
        json!({ "tool": "shred", "tool_call_id": "call_1", "summary_normal": "Shredding." });
    super::merge(&mut payload, more);
    script.start().event("tool.invoked", payload);
    let completed = json!({ "tool": "shred", "tool_call_id": "call_1", "status": "success" });
    script.event("tool.completed", completed).end();
    script
}

fn output(chunks: &[&str]) -> Script {
    let mut script = Script::new("sess_a");
    script.start();
    let mut position = 0;
    for (index, chunk) in chunks.iter().enumerate() {
        let complete = index + 1 == chunks.len();
        let payload = json!({ "chunk": chunk, "position": position, "complete": complete });
        position += chunk.chars().count();
        script.event("output.streaming", payload);
    }
    script.end();
    script
}

// covers: T14, S9
#[test]
fn a_secret_is_found_in_every_text_and_never_repeated() {
    let secret = "sk-abcdefghijklmnop1234567890";
    for more in [
        json!({ "args_summary": format!("key {secret}") }),
        json!({ "summary_detailed": secret }),
        json!({ "summary_normal_yo": secret }),
        json!({ "extensions": { "outcome": { "request_event_id": "evt_1", "outcome": "x", "deep": [{ "er": secret }] } } }),
    ] {
        let found = invoked(more.clone()).check(true);
        assert_eq!(brief(&found), [("T14", Weight::Error)], "{more}");
        assert_eq!(found[0].line, 2);
        assert!(found[0].text.starts_with("There is what looks like a key in `"), "{}", found[0]);
        assert!(!found[0].text.contains("sk-"), "{}", found[0]);
    }
}

// covers: T14
#[test]
fn a_guess_is_a_warning() {
    let script = invoked(json!({ "args_summary": "password: hunter2" }));
    assert_eq!(brief(&script.check(true)), [("T14", Weight::Warning)]);
}

// covers: T14
#[test]
fn a_secret_is_found_across_chunks_and_told_once() {
    let script = output(&["It is sk-abc", "defghijkl", "mnop12345", "67890abcdef", " and more."]);
    let found = script.check(true);
    assert_eq!(brief(&found), [("T14", Weight::Error)]);
    assert_eq!(found[0].line, 6, "where it is sure that it is over");
    let script = output(&["The card: 4111 1111 1111 ", "1111"]);
    assert_eq!(brief(&script.check(true)), [("T14", Weight::Error)]);
    let script = output(&["The number 4111 1111 1111 1111", "22 is longer than a card's."]);
    assert_eq!(brief(&script.check(true)), []);
}

#[test]
fn what_ties_messages_together_is_no_secret() {
    let script = invoked(json!({ "correlation_id": "password=hunter2" }));
    assert_eq!(brief(&script.check(true)), []);
}

#[test]
fn many_secrets_in_one_event_are_told_within_bounds() {
    let many: Vec<String> = (0..500).map(|number| format!("password=x{number}y")).collect();
    let script = invoked(json!({ "extensions": {
        "outcome": { "request_event_id": "evt_1", "outcome": "x", "all": many },
    } }));
    assert_eq!(script.check(true).len(), 8);
}
