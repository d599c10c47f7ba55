//! Hostile input: large, deep, repetitive. It is refused or warned of, with its place, and never
//! costs more than it should.

use aaep_types::{
    Event, LenientEvent, Limits, MAX_PROBLEMS, Message, Problem, Severity, is_valid, soft_limits,
    validate,
};

const MIB: usize = 1 << 20;

/// An extension's event with this text among its members.
fn event(more: &str) -> String {
    format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","https://example.org/soil/v1"],
        "aaep_version":"1.0.0","type":"soil:measured","event_id":"evt_1","session_id":"sess_1",
        "timestamp":"2026-03-09T08:15:30Z","producer":{{"agent_id":"probe"}}{more}}}"#
    )
}

/// One of exactly this many bytes, filled with short strings.
fn of_size(size: usize) -> String {
    let frame = event(r#","fill":[""]"#).len();
    let mut fill = String::from("\"");
    while fill.len() + 1003 + frame - 2 <= size {
        fill.push_str(&"x".repeat(1000));
        fill.push_str("\",\"");
    }
    fill.push_str(&"y".repeat(size + 1 - frame - fill.len()));
    let text = event(&format!(r#","fill":[{fill}"]"#));
    assert_eq!(text.len(), size);
    text
}

fn errors(text: &str) -> Vec<Problem> {
    validate(text.as_bytes()).into_iter().filter(|p| p.severity == Severity::Error).collect()
}

fn warned(text: &str, words: &str) -> bool {
    validate(text.as_bytes()).iter().any(|problem| {
        problem.severity == Severity::Warning
            && problem.rule.id == "E21"
            && problem.text.contains(words)
    })
}

// covers: E21, W6
#[test]
fn a_message_of_one_mebibyte_works_and_a_larger_one_is_refused_with_the_reason() {
    let text = of_size(MIB);
    assert!(is_valid(text.as_bytes()) && Event::parse(text.as_bytes()).is_ok());
    assert!(LenientEvent::parse(text.as_bytes()).is_ok());
    let larger = of_size(MIB + 1);
    let problems = validate(larger.as_bytes());
    assert_eq!(problems.len(), 1);
    assert_eq!(problems[0].rule.id, "E21");
    assert!(problems[0].text.contains("byte 1048576"), "{}", problems[0]);
    assert!(!is_valid(larger.as_bytes()) && LenientEvent::parse(larger.as_bytes()).is_err());
    let limits = Limits { max_bytes: 2 * MIB, ..Limits::default() };
    assert!(Event::parse_with(larger.as_bytes(), &limits).is_ok());
}

// covers: E21
#[test]
fn a_hundred_thousand_brackets_are_refused_where_they_become_too_deep() {
    for bracket in ["[", "{\"a\":"] {
        let deep = bracket.repeat(100_000);
        for text in [deep.clone(), event(&format!(",\"nest\":{deep}"))] {
            let problems = errors(&text);
            assert_eq!(problems.len(), 1);
            assert_eq!(problems[0].rule.id, "E21");
            assert_eq!(problems[0].pointer.matches('/').count(), 64, "{}", problems[0].pointer);
            assert!(!is_valid(text.as_bytes()) && LenientEvent::parse(text.as_bytes()).is_err());
        }
    }
}

// covers: E21
#[test]
fn depth_is_accepted_up_to_the_limit() {
    let nested =
        |levels: usize| event(&format!(",\"n\":{}{}", "[".repeat(levels), "]".repeat(levels)));
    assert!(errors(&nested(63)).is_empty());
    assert_eq!(errors(&nested(64))[0].rule.id, "E21");
    assert!(!warned(&nested(soft_limits::DEPTH - 1), "deep"));
    assert!(warned(&nested(soft_limits::DEPTH), "deep"));
}

// covers: E21
#[test]
fn very_many_members_are_kept_with_a_warning() {
    let members: String = (0..60_000).map(|number| format!(",\"m{number}\":0")).collect();
    let text = event(&members);
    assert!(errors(&text).is_empty());
    assert!(warned(&text, "members at the top level"));
    let event = Event::parse(text.as_bytes()).unwrap();
    assert_eq!(event.other().len(), 60_000);
}

// covers: E21, E19, D21
#[test]
fn very_many_mistakes_are_explained_up_to_a_bound_and_no_error_hides_behind_warnings() {
    let mistakes: String = (0..60_000).map(|number| format!(",\"aaep_{number}\":0")).collect();
    assert_eq!(errors(&event(&mistakes)).len(), MAX_PROBLEMS);
    let newer = (0..60_000).map(|number| format!(",\"m{number}\":0")).collect::<String>();
    let text =
        event(&format!("{newer},\"summary_normal\":\"x\",\"from_state\":\"a\",\"to_state\":\"\""))
            .replace("1.0.0", "1.1.0")
            .replace("soil:measured", "aaep:agent.state.changed");
    let found = errors(&text);
    assert_eq!((found.len(), found[0].pointer.as_str()), (1, "/to_state"));
}

// covers: E1, E22
#[test]
fn very_many_faults_of_the_text_are_located_up_to_a_bound() {
    let twice = "\"a\":0,".repeat(150_000);
    let text = event(&format!(",\"n\":{{{}\"a\":0}}", twice));
    let found = errors(&text);
    assert_eq!(found.len(), MAX_PROBLEMS);
    assert!(found.iter().all(|problem| problem.rule.id == "E1" && problem.pointer == "/n/a"));
    let unsafe_numbers = event(&format!(",\"n\":[{}0]", "1e999,".repeat(150_000)));
    let found = errors(&unsafe_numbers);
    assert_eq!((found.len(), found[99].pointer.as_str()), (MAX_PROBLEMS, "/n/99"));
    let surrogates = event(&format!(",\"n\":\"{}\"", "\\ud800".repeat(150_000)));
    assert_eq!(errors(&surrogates).len(), MAX_PROBLEMS);
}

// covers: E21, T2
#[test]
fn strings_of_nearly_a_mebibyte_are_read_and_judged() {
    for letter in ["x", "é", "😀", "\\n", "\\u00e9", "\u{2066}", "\u{202e}", "e\u{301}", "א"] {
        let long = letter.repeat(1_000_000 / letter.len());
        let kept = event(&format!(",\"note\":\"{long}\""));
        assert!(errors(&kept).is_empty() && warned(&kept, "each string"), "{letter:?}");
        let refused = event(&format!(",\"summary_normal\":\"{long}\""));
        let found = errors(&refused);
        assert_eq!((found.len(), found[0].pointer.as_str()), (1, "/summary_normal"), "{letter:?}");
        let named = event(&format!(",\"{long}\":0"));
        assert!(errors(&named).is_empty() && Message::parse(named.as_bytes()).is_ok());
    }
}

// covers: E21
#[test]
fn every_soft_limit_warns_beyond_it_and_not_at_it() {
    assert!(!warned(&of_size(soft_limits::BYTES), "bytes"));
    assert!(warned(&of_size(soft_limits::BYTES + 1), "within 65536 bytes"));
    let string = |length| event(&format!(",\"deep\":{{\"s\":\"{}\"}}", "x".repeat(length)));
    assert!(!warned(&string(soft_limits::STRING_BYTES), "each string"));
    assert!(warned(&string(soft_limits::STRING_BYTES + 1), "each string"));
    let members =
        |count: usize| event(&(7..count).map(|n| format!(",\"m{n}\":0")).collect::<String>());
    assert!(!warned(&members(soft_limits::MEMBERS), "top level"));
    assert!(warned(&members(soft_limits::MEMBERS + 1), "top level"));
    let languages = |count: u8| {
        let tags: Vec<_> = (0..count)
            .map(|n| format!("\"q{}{}\"", char::from(b'a' + n / 26), char::from(b'a' + n % 26)))
            .collect();
        event(&format!(",\"localization_hints\":{{\"available_languages\":[{}]}}", tags.join(",")))
    };
    assert!(!warned(&languages(32), "languages"));
    assert!(warned(&languages(33), "languages"));
}

// covers: E21
#[test]
fn a_list_of_very_many_elements_is_refused_once() {
    let tags = vec!["\"en\""; 150_000].join(",");
    for list in ["fallback_chain", "available_languages"] {
        let text = event(&format!(",\"localization_hints\":{{\"{list}\":[{tags}]}}"));
        let found = errors(&text);
        assert_eq!(found.len(), 1, "{list}");
        assert!(found[0].pointer.starts_with(&format!("/localization_hints/{list}")));
    }
}
