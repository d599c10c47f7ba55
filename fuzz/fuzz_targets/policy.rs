//! Whatever a policy and a call say: what is grave is asked, silence never means yes to it, and the
//! request may leave. The input is a policy, a tool and its arguments, with zero bytes between them.
#![no_main]

use aaep_policy::{Policy, Verdict};
use aaep_types::{Decision, Event, RiskLevel};

const ENVELOPE: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.awaiting.confirmation","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"helper"},"urgency":"critical","reply_token":"rpl_1","#;

libfuzzer_sys::fuzz_target!(|text: &str| {
    let mut parts = text.splitn(3, '\0');
    let mut next = || parts.next().unwrap_or_default();
    let (file, tool, arguments) = (next(), next(), next());
    let policy = Policy::parse(file).unwrap_or_else(|problems| {
        assert!(!problems.is_empty());
        Policy::default()
    });
    let ruling = policy.decide(tool, arguments);
    if ruling.is_irreversible() || ruling.risk == RiskLevel::High {
        assert_ne!(ruling.verdict, Verdict::Silent);
        assert_eq!(ruling.default, Decision::Reject);
    }
    assert!(!ruling.is_irreversible() || ruling.verdict == Verdict::Ask);
    assert!(ruling.explain().iter().all(|line| !line.contains(char::is_control)));
    let event = format!("{ENVELOPE}{}", &ruling.payload()[1..]);
    assert!(Event::parse_ours(event.as_bytes()).is_ok(), "{event}");
});
