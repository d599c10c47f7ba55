//! What holds in every language, at every verbosity and under every load.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use std::collections::BTreeSet;
use std::sync::Arc;

use aaep_subscriber::words::{Argument, Manner, Span, SpokenLine, Words};
use aaep_subscriber::{Agent, Asks, Notification, Request, RequestOutcome};
use aaep_types::{Level, ReplyToken, Reversibility, RiskLevel, Verbosity};

/// Calls for each language and manner.
fn everywhere(check: impl Fn(&Words, &Manner)) {
    for (language, _) in Words::languages() {
        let words = Words::new(&[language]);
        assert_eq!(words.language(), language);
        for &verbosity in Verbosity::ALL {
            for &load in Level::ALL {
                for name_agents in [false, true] {
                    check(&words, &Manner { verbosity, load, name_agents });
                }
            }
        }
    }
}

fn agent() -> Agent {
    Agent { id: "tidy".into(), name: "Tidy".into() }
}

fn event(type_name: &str, members: &str) -> Notification {
    let json = format!(
        r#"{{"type":"{type_name}","event_id":"evt_1","session_id":"sess_1"{}{members}}}"#,
        if members.is_empty() { "" } else { "," }
    );
    Notification::Event { agent: agent(), json: json.into(), critical: false }
}

fn request(asks: Asks) -> Arc<Request> {
    Arc::new(Request {
        id: 7.into(),
        number: 7,
        agent: agent(),
        event_id: "evt_1".into(),
        session_id: "sess_1".into(),
        reply_token: ReplyToken::parse("rpl_1").unwrap(),
        asks,
        account: None,
        agent_says: None,
        timeout_seconds: 300,
        deadline_ms: 300_000,
        continues: None,
        language: None,
        json: "{}".into(),
    })
}

fn consent(reversibility: Reversibility, risk: RiskLevel) -> Asks {
    Asks::Consent {
        action: "ACTION".to_owned(),
        consequence: "CONSEQUENCE".to_owned(),
        risk,
        reversibility,
        silence_accepts: false,
    }
}

fn joined(lines: &[SpokenLine]) -> String {
    lines.iter().map(SpokenLine::to_string).collect::<Vec<_>>().join("\n")
}

fn phrase(words: &Words, key: &str) -> String {
    words.phrase(key, &[]).to_string()
}

// covers: T30, T36
#[test]
fn the_three_endings_can_be_told_apart_by_their_first_words() {
    everywhere(|words, manner| {
        let endings = ["completed", "errored", "cancelled"].map(|ending| {
            let notification =
                event(&format!("aaep:agent.session.{ending}"), r#""summary_normal":"SAME.""#);
            joined(&words.say(&notification, manner)).replace("SAME.", "")
        });
        assert_eq!(endings.iter().collect::<BTreeSet<_>>().len(), 3, "{endings:?}");
        assert!(endings[0].contains(&phrase(words, "completed")), "{endings:?}");
        assert!(endings.iter().all(|ending| !ending.trim().is_empty()));
    });
}

// covers: T5
#[test]
fn an_error_is_always_said_with_what_the_user_can_do() {
    everywhere(|words, manner| {
        let members = r#""summary_normal":"WRONG","remediation_hint":"HINT","error_category":"x""#;
        let said = joined(&words.say(&event("aaep:agent.session.errored", members), manner));
        assert!(said.contains("WRONG") && said.contains("HINT"), "{said}");
        assert!(said.find("WRONG") < said.find("HINT"), "{said}");
    });
}

// covers: T8, V2
#[test]
fn a_state_that_nobody_knows_is_said_by_its_name() {
    everywhere(|words, manner| {
        let said =
            words.say(&event("aaep:agent.state.changed", r#""to_state":"dreaming""#), manner);
        assert!(joined(&said).contains("dreaming"));
    });
}

// covers: E6, L11
#[test]
fn an_unknown_event_is_said_by_its_summary_whatever_its_language() {
    everywhere(|words, manner| {
        let members =
            r#""summary_normal":"Mo ń ronú","localization_hints":{"primary_language":"yo"}"#;
        for type_name in ["weather:storm", "aaep:agent.mood.changed"] {
            assert!(joined(&words.say(&event(type_name, members), manner)).contains("Mo ń ronú"));
        }
    });
}

// covers: E26
#[test]
fn events_without_any_optional_member_are_said() {
    let types = aaep_types::EventKind::ALL.map(aaep_types::EventKind::as_str);
    for type_name in types.iter().filter(|name| **name != "aaep:agent.output.streaming") {
        everywhere(|words, manner| {
            let said = words.say(&event(type_name, ""), manner);
            assert!(!joined(&said).trim().is_empty(), "{type_name}");
        });
    }
}

// covers: S10, T21
#[test]
fn a_request_says_action_undoing_consequence_and_risk_in_this_order() {
    for &reversibility in Reversibility::ALL {
        for &risk in RiskLevel::ALL {
            everywhere(|words, manner| {
                let notification = Notification::Asked(request(consent(reversibility, risk)));
                let said = joined(&words.say(&notification, manner));
                let undo = phrase(words, &format!("undo.{}", reversibility.as_str()));
                let risk = phrase(words, &format!("risk.{}", risk.as_str()));
                let time = words.duration(300).to_string();
                let places = ["ACTION", &undo, "CONSEQUENCE", &risk, &time]
                    .map(|part| said.find(part).unwrap_or_else(|| panic!("{part} in {said}")));
                assert!(places.is_sorted(), "{said}");
            });
        }
    }
}

// covers: C25, D30, D32
#[test]
fn every_outcome_is_said_as_what_it_is() {
    let outcomes = [
        RequestOutcome::Accepted,
        RequestOutcome::Rejected,
        RequestOutcome::Answered,
        RequestOutcome::AcceptedElsewhere,
        RequestOutcome::RejectedElsewhere,
        RequestOutcome::AnsweredElsewhere,
        RequestOutcome::TimedOut,
        RequestOutcome::Cancelled,
        RequestOutcome::Superseded,
        RequestOutcome::Gone,
    ];
    let request = request(consent(Reversibility::Irreversible, RiskLevel::High));
    everywhere(|words, manner| {
        let settled = |outcome, announced| {
            let request = request.clone();
            joined(&words.say(&Notification::Settled { request, outcome, announced }, manner))
        };
        let said: BTreeSet<String> = outcomes.map(|outcome| settled(outcome, true)).into();
        assert_eq!(said.len(), outcomes.len(), "{said:?}");
        assert!(said.iter().all(|said| said.contains('7')), "{said:?}");
        assert!(outcomes.iter().all(|outcome| settled(*outcome, false).is_empty()));
    });
}

#[test]
fn with_several_agents_the_first_line_begins_with_the_name() {
    everywhere(|words, manner| {
        let said = words.say(&event("aaep:agent.session.completed", ""), manner);
        let named = said[0].spans[0] == Span::Theirs("Tidy".to_owned());
        assert_eq!(named, manner.name_agents);
    });
}

#[test]
fn under_a_high_load_no_line_holds_two_sentences_of_ours() {
    everywhere(|words, manner| {
        let asks = consent(Reversibility::Irreversible, RiskLevel::High);
        let said = words.say(&Notification::Asked(request(asks)), manner);
        match manner.load {
            Level::Low => assert_eq!(said.len(), 1),
            Level::Medium => assert!(said.len() > 1),
            Level::High => assert_eq!(said.len(), 5),
        }
    });
}

#[test]
fn an_argument_is_never_read_as_a_message() {
    let words = Words::new(&["en"]);
    let said = words.phrase("started", &[("summary", Argument::Theirs("{count} {{summary}}"))]);
    assert_eq!(said.to_string(), "Started: {count} {{summary}}");
}

#[test]
fn an_unknown_key_is_said_as_it_stands() {
    assert_eq!(Words::new(&[]).phrase("no.such.key", &[]).to_string(), "no.such.key");
}

#[test]
fn the_first_language_that_there_is_is_taken() {
    assert_eq!(Words::new(&["xh", "zh-CN", "ar"]).language(), "zh");
    assert_eq!(Words::new(&["ar-EG"]).direction().as_str(), "rtl");
    assert_eq!(Words::new(&["xh", "not a tag"]).language(), "en");
    assert_eq!(Words::new(&["pt-BR"]).language(), "pt");
    let all: Vec<_> = Words::languages().map(|(tag, _)| tag).collect();
    assert_eq!(all, ["en", "ar", "zh", "fr", "de", "es", "pt", "hi", "yo", "ha", "ig"]);
}
