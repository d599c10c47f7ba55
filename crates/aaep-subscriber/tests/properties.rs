//! Whatever an agent sends, what is said is safe.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use std::sync::Arc;

use aaep_subscriber::words::{Manner, Span, SpokenLine, Words, look_alikes, safe};
use aaep_subscriber::{Agent, Asks, Choice, Notification, Request, RequestOutcome};
use aaep_types::{
    EventKind, Level, ReplyToken, ResponseKind, Reversibility, RiskLevel, Verbosity, deception,
};
use proptest::prelude::*;
use serde_json::json;

/// Text as an attacker would write it: everything that does something, between ordinary letters.
fn hostile() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(vec![
        '\u{0}',
        '\u{7}',
        '\u{1b}',
        '\u{7f}',
        '\u{85}',
        '\u{9b}',
        '\u{9d}',
        '\u{ad}',
        '\u{34f}',
        '\u{61c}',
        '\u{180b}',
        '\u{200b}',
        '\u{200c}',
        '\u{200d}',
        '\u{200e}',
        '\u{202a}',
        '\u{202b}',
        '\u{202c}',
        '\u{202d}',
        '\u{202e}',
        '\u{2028}',
        '\u{2060}',
        '\u{2066}',
        '\u{2067}',
        '\u{2068}',
        '\u{2069}',
        '\u{206f}',
        '\u{3164}',
        '\u{fe0f}',
        '\u{feff}',
        '\u{fff9}',
        '\u{e0001}',
        '\u{e0041}',
        '\u{e0100}',
        '\u{301}',
        '\r',
        '\n',
        '\t',
        '{',
        '}',
        'ا',
        'ی',
        'क',
        '्',
        '👩',
        '葛',
        'а',
        'о',
        'a',
        'o',
        ' ',
        '[',
        ']',
    ]);
    let one = prop_oneof![4 => nasty, 1 => any::<char>()];
    prop::collection::vec(one, 0..60).prop_map(|all| all.into_iter().collect())
}

fn manner() -> impl Strategy<Value = Manner> {
    let verbosity =
        prop::sample::select(vec![Verbosity::Terse, Verbosity::Normal, Verbosity::Detailed]);
    let load = prop::sample::select(vec![Level::Low, Level::Medium, Level::High]);
    (verbosity, load, any::<bool>()).prop_map(|(verbosity, load, name_agents)| Manner {
        verbosity,
        load,
        name_agents,
    })
}

fn language() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["en", "ar", "zh"])
}

fn agent(name: &str) -> Agent {
    Agent { id: "x".into(), name: name.into() }
}

fn request(name: &str, asks: Asks) -> Arc<Request> {
    Arc::new(Request {
        id: 1.into(),
        number: 1,
        agent: agent(name),
        event_id: "evt_1".into(),
        session_id: "sess_1".into(),
        reply_token: ReplyToken::parse("rpl_1").unwrap(),
        asks,
        account: None,
        agent_says: None,
        timeout_seconds: 60,
        deadline_ms: 60_000,
        continues: None,
        language: None,
        json: "{}".into(),
    })
}

fn consent(action: &str, consequence: &str) -> Asks {
    Asks::Consent {
        action: action.to_owned(),
        consequence: consequence.to_owned(),
        risk: RiskLevel::High,
        reversibility: Reversibility::Irreversible,
        silence_accepts: false,
    }
}

fn answer(question: &str, other: &str) -> Asks {
    Asks::Answer {
        question: question.to_owned(),
        context: Some(other.to_owned()),
        kinds: vec![ResponseKind::MultipleChoice, ResponseKind::Freetext],
        choices: vec![
            Choice { value: other.to_owned(), label: question.to_owned() },
            Choice { value: "b".to_owned(), label: other.to_owned() },
        ],
        default: Some(other.to_owned()),
    }
}

/// Every kind of notification with these texts in every place where an agent's text can stand.
fn notifications(first: &str, second: &str, name: &str) -> Vec<Notification> {
    let mut all = Vec::new();
    let kinds = EventKind::ALL.iter().map(|kind| kind.as_str()).chain(["x:y", second]);
    for kind in kinds {
        let event = json!({
            "type": kind, "event_id": "evt_1", "session_id": "sess_1",
            "summary_terse": first, "summary_normal": second, "summary_detailed": first,
            "tool": first, "args_summary": second, "status": second, "error_message": first,
            "error_category": second, "error_code": first, "remediation_hint": second,
            "cancelled_by": first, "partial_result": second, "to_state": first,
            "progress": {"percent": 3, "description": second}, "chunk": first, "reason": second,
            "target_kind": first, "action": second, "consequence": first, "question": second,
            "context": first, "output_summary": second, "irreversible": true,
        });
        for critical in [false, true] {
            let json = event.to_string().into();
            all.push(Notification::Event { agent: agent(name), json, critical });
        }
    }
    all.push(Notification::Event { agent: agent(name), json: first.into(), critical: true });
    for asks in [consent(first, second), answer(first, second)] {
        let request = request(name, asks);
        all.push(Notification::Asked(request.clone()));
        for outcome in [RequestOutcome::TimedOut, RequestOutcome::Gone] {
            all.push(Notification::Settled { request: request.clone(), outcome, announced: true });
        }
    }
    all.push(Notification::Text {
        agent: agent(name),
        session_id: "sess_1".into(),
        output_id: "".into(),
        text: first.to_owned(),
        ends: true,
        after_gap: true,
    });
    all.push(Notification::Lost { hub: first.into(), why: second.into() });
    all
}

fn is_safe(line: &SpokenLine) -> bool {
    line.spans.iter().all(|span| {
        let text = span.text();
        !text.is_empty()
            && !text.chars().any(|c| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'))
            && deception::first(text).is_none()
            && safe(text).text == text
    })
}

fn theirs(lines: &[SpokenLine]) -> Vec<&str> {
    let spans = lines.iter().flat_map(|line| &line.spans);
    spans
        .filter_map(|span| match span {
            Span::Theirs(text) => Some(text.as_str()),
            Span::Ours(_) => None,
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    // covers: D34, V2, E26
    #[test]
    fn nothing_that_is_said_holds_a_control_an_escape_an_override_or_something_hidden(
        first in hostile(), second in hostile(), name in hostile(),
        manner in manner(), language in language(),
    ) {
        let words = Words::new(&[language]);
        for notification in notifications(&first, &second, &name) {
            for line in words.say(&notification, &manner) {
                prop_assert!(is_safe(&line), "{line:?} of {notification:?}");
            }
        }
        for line in words.spell(&first) {
            prop_assert!(is_safe(&line), "{line:?}");
        }
    }

    // covers: S10
    #[test]
    fn a_request_is_never_shortened(
        action in hostile(), consequence in hostile(), manner in manner(), language in language(),
    ) {
        let words = Words::new(&[language]);
        let said = words.say(&Notification::Asked(request("", consent(&action, &consequence))), &manner);
        let undo = words.phrase("undo.irreversible", &[]).to_string();
        prop_assert!(said.iter().any(|line| line.to_string().contains(&undo)));
        for text in [action.trim(), consequence.trim()] {
            let whole = safe(text).text;
            prop_assert!(text.is_empty() || theirs(&said).contains(&&*whole));
        }
    }

    // covers: T5, T28, E6
    #[test]
    fn what_may_not_wait_is_never_silent(
        text in hostile(), type_name in "[a-z]{1,5}:[a-z.]{1,9}", manner in manner(),
    ) {
        let kinds = EventKind::ALL.iter().map(|kind| kind.as_str()).chain([type_name.as_str()]);
        for kind in kinds {
            let event = json!({"type": kind, "event_id": "evt_1", "session_id": "sess_1",
                "summary_normal": text, "chunk": text});
            let json = event.to_string().into();
            let notification = Notification::Event { agent: agent("x"), json, critical: true };
            prop_assert!(!Words::new(&[]).say(&notification, &manner).is_empty(), "{}", kind);
        }
    }

    // covers: D34
    #[test]
    fn text_that_was_made_safe_is_safe(text in hostile()) {
        let once = safe(&text);
        prop_assert_eq!(&safe(&once.text).text, &once.text);
        prop_assert_eq!(deception::first(&once.text), None);
        let _ = look_alikes(&[&text]);
    }
}

// covers: S10
#[test]
fn a_request_of_a_megabyte_is_said_in_full_and_a_summary_is_not() {
    let long = "p\u{430}y ".repeat(300_000); // beyond what is read by default
    let words = Words::new(&[]);
    let said = words.say(
        &Notification::Asked(request("x", consent(&long, "It is gone."))),
        &Manner { load: Level::High, verbosity: Verbosity::Terse, name_agents: true },
    );
    assert!(theirs(&said).contains(&long.trim()));
    let event = json!({"type": "x:y", "event_id": "evt_1", "session_id": "sess_1",
        "summary_normal": long});
    let notification =
        Notification::Event { agent: agent(&long), json: event.to_string().into(), critical: true };
    let said = words.say(&notification, &Manner { name_agents: true, ..Manner::default() });
    let size: usize = said.iter().map(|line| line.to_string().len()).sum();
    assert!(size < 40_000, "{size}");
    assert!(said.iter().any(|line| line.to_string().contains("more characters are left out")));
}
