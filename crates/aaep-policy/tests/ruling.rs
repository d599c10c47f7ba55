//! What a policy says of calls, and that the protocol takes it.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_policy::{Policy, Ruling, Verdict};
use aaep_types::{
    Decision, Event, Payload, Presence, Reversibility, RiskLevel, Severity, validate,
};
use serde_json::{Value, json};

const POLICY: &str = r#"
[[rule]]
tool = "bank.transfer"
where = { amount = { at_most = 10 } }
risk_level = "medium"
reversibility = "irreversible"
timeout_seconds = 60
action = "Transfer {amount} to {recipient}"
consequence = "The money leaves at once."
summary = "Transfer {amount}"

[[rule]]
tool = "bank.*"
where = { dry_run = true }
risk_level = "low"
reversibility = "reversible"
verdict = "announce"

[[rule]]
tool = "clock/*"
risk_level = "low"
reversibility = "reversible"
verdict = "silent"

[[rule]]
tool = "notes.add"
risk_level = "low"
reversibility = "reversible"
default_decision = "accept"
"#;

fn decide(tool: &str, arguments: &str) -> Ruling {
    Policy::parse(POLICY).unwrap().decide(tool, arguments)
}

/// An event of ours with these members, as the hub makes it.
fn event(kind: &str, payload: &str, more: Value) -> String {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1",
        "aaep_version": "1.0.0",
        "type": kind,
        "event_id": "evt_1",
        "session_id": "sess_1",
        "sequence_number": 3,
        "timestamp": "2026-05-24T14:22:11.342Z",
        "producer": { "agent_id": "helper" },
        "urgency": if kind.contains("awaiting") { "critical" } else { "normal" },
        "localization_hints": { "primary_language": "en" },
    });
    let members = event.as_object_mut().unwrap();
    members.extend(serde_json::from_str::<Value>(payload).unwrap().as_object().unwrap().clone());
    members.extend(more.as_object().unwrap().clone());
    event.to_string()
}

/// The request as the hub would send it; it has to be valid, without even a warning.
fn request(ruling: &Ruling) -> String {
    let token = json!({ "reply_token": "rpl_1" });
    let event = event("aaep:agent.awaiting.confirmation", &ruling.payload(), token);
    assert_eq!(validate(event.as_bytes()), [], "{event}");
    Event::parse_ours(event.as_bytes()).expect("an event that may leave");
    event
}

fn announced(ruling: &Ruling) {
    let more = json!({ "tool": "some_tool", "tool_call_id": "call_1" });
    let event = event("aaep:agent.tool.invoked", &ruling.announcement(), more);
    assert_eq!(validate(event.as_bytes()), [], "{event}");
    Event::parse_ours(event.as_bytes()).expect("an event that may leave");
}

// covers: T20, T35
#[test]
fn a_ruling_becomes_a_request_that_the_protocol_takes() {
    let ruling = decide("bank.transfer", r#"{"amount":"9.50","recipient":"bob"}"#);
    let event = request(&ruling);
    let event = Event::parse(event.as_bytes()).unwrap();
    let Payload::AwaitingConfirmation(asked) = event.payload() else { panic!("{event:?}") };
    assert_eq!(asked.action.as_str(), "Transfer 9.50 to \"bob\"");
    assert_eq!(asked.consequence.as_str(), "The money leaves at once.");
    assert_eq!(asked.timeout_seconds.get(), 60);
    assert_eq!(asked.default_decision, Decision::Reject);
    assert_eq!(asked.risk_level, Some(RiskLevel::Medium));
    assert_eq!(asked.reversibility, Some(Reversibility::Irreversible));
    assert!(asked.is_irreversible());
    let summary = |text: &Option<aaep_types::Summary<'_>>| text.as_ref().unwrap().to_string();
    assert_eq!(asked.summary_terse.as_ref().unwrap().as_str(), "Transfer 9.50");
    assert_eq!(summary(&asked.summary_normal), "Transfer 9.50 to \"bob\". This cannot be undone.");
    assert_eq!(
        summary(&asked.summary_detailed),
        "Transfer 9.50 to \"bob\". The money leaves at once. It counts as medium risk. This cannot \
         be undone. The tool is bank.transfer, with amount: 9.50, recipient: \"bob\"."
    );
}

// covers: T27
#[test]
fn what_no_rule_covers_is_asked_as_the_worst() {
    for (tool, arguments) in [
        ("rm", r#"{"path":"/","recursive":true}"#),
        ("bank.transfer", r#"{"amount":"10.01"}"#),
        ("", ""),
        ("clock/now", r#"{"a":1,"a":2}"#),
        ("clock/now", "not JSON"),
        ("a tool\u{202e} with \"tricks\"", "[]"),
    ] {
        let ruling = decide(tool, arguments);
        assert_eq!((ruling.rule.as_ref(), ruling.verdict), (None, Verdict::Ask), "{tool}");
        assert_eq!(
            (ruling.risk, ruling.reversibility),
            (RiskLevel::High, Reversibility::Irreversible)
        );
        assert_eq!((ruling.default, ruling.timeout.get()), (Decision::Reject, 300));
        request(&ruling);
        announced(&ruling);
    }
    let ruling = decide("rm", r#"{"path":"/","recursive":true}"#);
    assert_eq!(ruling.action, "Run the tool rm with path: \"/\", recursive: true");
    assert!(ruling.consequence.starts_with("Nobody has said what this does."));
}

#[test]
fn the_first_rule_that_matches_counts() {
    let dry = decide("bank.transfer", r#"{"amount":500,"dry_run":true}"#);
    assert_eq!((dry.rule.unwrap().number, dry.verdict), (2, Verdict::Announce));
    let small = decide("bank.transfer", r#"{"amount":5,"dry_run":true}"#);
    assert_eq!((small.rule.unwrap().number, small.verdict), (1, Verdict::Ask));
}

#[test]
fn a_condition_that_cannot_be_judged_never_lets_a_milder_rule_decide() {
    for arguments in [
        r#"{"amount":"five","dry_run":true}"#,
        r#"{"amount":[5],"dry_run":true}"#,
        r#"{"amount":"1,5","dry_run":true}"#,
    ] {
        let ruling = decide("bank.transfer", arguments);
        assert_eq!((ruling.rule.as_ref(), ruling.verdict), (None, Verdict::Ask), "{arguments}");
    }
    assert_eq!(decide("bank.pay", r#"{"dry_run":"true"}"#).verdict, Verdict::Ask);
}

// covers: C17
#[test]
fn the_more_is_at_stake_the_longer_is_waited() {
    let waits = |risk: &str, reversibility: &str| {
        let text = format!(
            "[[rule]]\ntool = \"t\"\nrisk_level = \"{risk}\"\nreversibility = \"{reversibility}\""
        );
        Policy::parse(&text).unwrap().decide("t", "").timeout.get()
    };
    assert!((180..=600).contains(&waits("high", "irreversible")));
    assert!((60..=180).contains(&waits("medium", "irreversible")));
    assert!((30..=90).contains(&waits("low", "reversible")));
}

#[test]
fn every_verdict_gives_events_that_the_protocol_takes() {
    for (tool, verdict) in
        [("bank.x", Verdict::Announce), ("clock/now", Verdict::Silent), ("notes.add", Verdict::Ask)]
    {
        let ruling = decide(tool, r#"{"dry_run":true,"note":"שלום and hello","e":"e\u0301"}"#);
        assert_eq!(ruling.verdict, verdict);
        request(&ruling);
        announced(&ruling);
    }
    assert_eq!(decide("notes.add", "").default, Decision::Accept);
}

#[test]
fn an_explanation_says_what_happens_and_why() {
    assert_eq!(
        decide("bank.transfer", r#"{"amount":"9.50","recipient":"bob"}"#).explain(),
        [
            "Before bank.transfer runs, the user is asked.",
            "Rule 1, in line 2, counts: its pattern is bank.transfer.",
            "It counts as medium risk. This cannot be undone.",
            "The question: Transfer 9.50 to \"bob\".",
            "These words are asked, whatever words the agent has.",
            "The consequence: The money leaves at once.",
            "Without an answer in 60 seconds, it is not done.",
        ]
    );
    assert_eq!(
        decide("bank.transfer", r#"{"amount":50}"#).explain()[..4],
        [
            "Before bank.transfer runs, the user is asked.",
            "Rule 1, in line 2, does not count: the argument `amount` is not at most 10.",
            "Rule 2, in line 12, does not count: the argument `dry_run` is missing.",
            "No rule covers this call, so it counts as the worst.",
        ]
    );
    assert_eq!(
        decide("clock/now", "").explain(),
        [
            "clock/now runs without a question and without a word.",
            "Rule 3, in line 19, counts: its pattern is clock/*.",
            "It counts as low risk. This can be undone.",
        ]
    );
    assert_eq!(
        decide("notes.add", "").explain().last().unwrap(),
        "Without an answer in 90 seconds, it is done."
    );
    assert!(decide("x", "{").explain()[1].starts_with("Nobody can say what the arguments mean: "));
}

// covers: T14
#[test]
fn no_secret_gets_into_any_text() {
    let arguments = r#"{"amount":1,"recipient":"4111 1111 1111 1111","password":"hunter2",
        "note":"token=a1b2c3d4","url":"https://u:drawer7@x.org","pin":4111111111111111}"#;
    for tool in ["bank.transfer", "other", "tool 4111 1111 1111 1111"] {
        let ruling = decide(tool, arguments);
        let all = [ruling.payload(), ruling.announcement(), ruling.explain().join("\n")].concat();
        for secret in ["4111 1111", "411111111111", "hunter2", "a1b2c3d4", "drawer7"] {
            assert!(!all.contains(secret), "{secret} in {all}");
        }
    }
}

#[test]
fn nothing_but_warnings_of_others_is_ever_said_of_our_requests() {
    // A right-to-left name inside of our words is set apart, in whatever direction they are shown.
    let ruling = decide("bank.transfer", r#"{"amount":1,"recipient":"שלום"}"#);
    let event = request(&ruling);
    assert!(event.contains("\u{2068}שלום\u{2069}"));
    assert!(validate(event.as_bytes()).iter().all(|problem| problem.severity != Severity::Error));
}

// covers: T27
#[test]
fn without_the_arguments_only_rules_without_conditions_can_be_judged() {
    let policy = Policy::parse(
        r#"
        [[rule]]
        tool = "files.delete"
        where = { recursive = { present = false } }
        risk_level = "low"
        reversibility = "reversible"
        verdict = "announce"

        [[rule]]
        tool = "files.*"
        risk_level = "low"
        reversibility = "reversible"
        verdict = "announce"
        "#,
    )
    .unwrap();
    let unseen = policy.decide_unseen("files.delete");
    assert_eq!((unseen.rule.as_ref(), unseen.verdict), (None, Verdict::Ask));
    assert!(unseen.explain()[1].contains("nobody said the arguments"), "{:?}", unseen.explain());
    assert_eq!(policy.decide_unseen("files.read").verdict, Verdict::Announce);
    assert_eq!(policy.decide("files.delete", "").verdict, Verdict::Announce);
}

// covers: L13
#[test]
fn words_in_another_language_stand_alone_and_are_labelled() {
    let rules = "language = \"de-AT\"\n[[rule]]\ntool = \"zahlen\"\naction = \"{betrag} Euro zahlen\"\nconsequence = \"Das Geld ist fort.\"\n[[rule]]\ntool = \"other\"\n";
    let policy = Policy::parse(rules).unwrap();
    let ruling = policy.decide("zahlen", r#"{"betrag":5}"#);
    let event = request(&ruling);
    announced(&ruling);
    assert_eq!(ruling.language, "de-AT");
    assert!(event.contains(r#""primary_language":"de-AT""#), "{event}");
    for english in ["This cannot", "It counts", "The tool is", "Run "] {
        assert!(!event.contains(english), "{english}: {event}");
    }
    let ruling = policy.decide("other", "{}");
    assert_eq!((ruling.language.as_str(), ruling.summary.as_str()), ("en", "Run other"));
    assert!(request(&ruling).contains(r#""primary_language":"en""#));
}

// covers: I34
#[test]
fn presence_is_said_by_rule_and_by_risk_and_never_with_silence() {
    let policy = Policy::parse(
        r#"
        [presence]
        high = "pin"
        low = "none"

        [[rule]]
        tool = "bank.*"
        presence = "passkey"

        [[rule]]
        tool = "notes.*"
        risk_level = "low"
        reversibility = "reversible"
        "#,
    )
    .unwrap();
    assert_eq!(policy.decide("bank.pay", "{}").presence, Some(Presence::Passkey));
    assert_eq!(policy.decide("notes.add", "{}").presence, None);
    assert_eq!(policy.presence_for(RiskLevel::High), Some(Presence::Pin));
    assert_eq!(policy.presence_for(RiskLevel::Medium), None);
    let problems = |text: &str| Policy::parse(text).unwrap_err()[0].to_string();
    assert!(problems("[presence]\nhigh = \"blood\"").contains("`none` `listener` `pin` `passkey`"));
    assert!(problems("[presence]\nhuge = \"pin\"").contains("no such risk"));
    assert!(problems("presence = 1").contains("table"));
    let rule = "[[rule]]\ntool = \"a\"\nrisk_level = \"low\"\nreversibility = \"reversible\"\n";
    let silent = format!("{rule}default_decision = \"accept\"\npresence = \"pin\"");
    assert!(problems(&silent).contains("present in silence"));
    let unasked = format!("{rule}verdict = \"silent\"\npresence = \"pin\"");
    assert!(problems(&unasked).contains("nobody is asked"));
}
