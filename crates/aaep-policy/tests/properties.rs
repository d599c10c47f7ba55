//! What holds for any policy text and any arguments.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_policy::{Policy, Ruling, Verdict};
use aaep_types::{Decision, Event, Reversibility, RiskLevel, secret};
use proptest::prelude::*;
use serde_json::{Value, json};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Text that tries to be taken for something else.
fn hostile() -> impl Strategy<Value = String> {
    let parts = [
        "\"",
        "\\",
        "\\\"",
        "”",
        "“",
        "«",
        "\u{202e}",
        "\u{2066}",
        "\u{200b}",
        "\u{301}",
        "\u{0}",
        "\n",
        "\u{1b}[2J",
        "(5 characters)",
        ". This can be undone.",
        "{amount}",
        "}",
        "…",
        "4111 1111 1111 1111",
        "password=hunter2",
        "שלום",
        "مرحبا",
        "👨‍👩‍👧",
        " ",
        "bob",
        "10",
        ", ",
        " is missing)",
        "\u{e0041}",
        "\u{fe0f}",
        "\u{f8ff}",
        "..",
        "/tmp/",
        "é",
        "e\u{301}",
    ];
    let part = prop_oneof![
        3 => prop::sample::select(parts.to_vec()).prop_map(str::to_owned),
        1 => any::<String>(),
    ];
    prop::collection::vec(part, 0..6).prop_map(|parts| parts.concat())
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        4 => hostile().prop_map(Value::from),
        1 => any::<i64>().prop_map(Value::from),
        1 => any::<f64>().prop_map(Value::from),
        1 => any::<bool>().prop_map(Value::from),
        1 => Just(Value::Null),
        1 => "[0-9]{1,3}(\\.[0-9]{1,2})?".prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 64, 8, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
            prop::collection::vec((hostile(), inner), 0..8)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// Arguments in which the names of the rules below stand.
fn arguments() -> impl Strategy<Value = String> {
    let named = (value(), value(), value()).prop_map(|(amount, recipient, other)| {
        json!({ "amount": amount, "recipient": recipient, "other": other }).to_string()
    });
    prop_oneof![4 => named, 1 => value().prop_map(|value| value.to_string()), 1 => any::<String>()]
}

fn pick(words: &'static [&'static str]) -> impl Strategy<Value = &'static str> {
    prop::sample::select(words)
}

/// Rules of every stance, good and bad.
fn rules() -> impl Strategy<Value = String> {
    let tool = pick(&["\"pay\"", "\"p*\"", "\"*\"", "[\"pay\", \"x/?\"]"]);
    let risk = pick(&[
        "",
        "risk_level = \"low\"\n",
        "risk_level = \"medium\"\n",
        "risk_level = \"high\"\n",
    ]);
    let undo = pick(&[
        "",
        "reversibility = \"reversible\"\n",
        "reversibility = \"reversible_with_effort\"\n",
        "reversibility = \"irreversible\"\n",
    ]);
    let verdict =
        pick(&["", "verdict = \"ask\"\n", "verdict = \"announce\"\n", "verdict = \"silent\"\n"]);
    let default = pick(&["", "default_decision = \"accept\"\n", "default_decision = \"reject\"\n"]);
    let condition = pick(&[
        "",
        "where = { amount = { at_most = 10 } }\n",
        "where = { recipient = { matches = \"*bob*\" } }\n",
        "where = { recipient = { matches = \"/tmp/*\" }, amount = { present = true } }\n",
        "where = { other = true }\n",
        "where = { \"/other/0\" = { one_of = [\"bob\", 10, false] } }\n",
    ]);
    let words = pick(&[
        "",
        "action = \"Pay {amount} to {recipient}\"\nconsequence = \"Then {other} follows.\"\n",
        "summary = \"{recipient}\"\naction = \"{/other/0}{other}\"\n",
    ]);
    (tool, risk, undo, verdict, default, condition, words).prop_map(
        |(tool, risk, undo, verdict, default, condition, words)| {
            format!("[[rule]]\ntool = {tool}\n{risk}{undo}{verdict}{default}{condition}{words}\n")
        },
    )
}

/// The request as the hub sends it.
fn leaves(ruling: &Ruling) -> Result<(), TestCaseError> {
    let envelope = r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.awaiting.confirmation","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"helper"},"urgency":"critical","localization_hints":{"primary_language":"en","text_direction":"auto"},"reply_token":"rpl_1","#;
    let payload = ruling.payload();
    let event = format!("{envelope}{}", &payload[1..]);
    Event::parse_ours(event.as_bytes())
        .map_err(|invalid| TestCaseError::fail(format!("{invalid}: {event}")))?;
    Ok(())
}

/// What must hold of every ruling, for any rules and arguments.
fn is_safe(ruling: &Ruling) -> Result<(), TestCaseError> {
    let grave =
        ruling.risk == RiskLevel::High || ruling.reversibility == Reversibility::Irreversible;
    if grave {
        prop_assert_ne!(ruling.verdict, Verdict::Silent);
        prop_assert_eq!(ruling.default, Decision::Reject);
    }
    if ruling.is_irreversible() {
        prop_assert_eq!(ruling.verdict, Verdict::Ask);
    }
    if ruling.rule.is_none() {
        prop_assert!(grave && ruling.verdict == Verdict::Ask);
    }
    for text in [&ruling.action, &ruling.consequence, &ruling.summary, &ruling.arguments] {
        prop_assert_eq!(secret::find(text), vec![], "{}", text);
        prop_assert!(!text.is_empty() && text.chars().count() < 8000);
    }
    for line in ruling.explain() {
        prop_assert!(!line.chars().any(char::is_control), "{line:?}");
    }
    Ok(())
}

/// What is left of a text when everything in quotes is taken out; `None` if a quote is left open.
fn outside(text: &str) -> Option<String> {
    let (mut out, mut inside) = (String::new(), false);
    let mut signs = text.chars();
    while let Some(sign) = signs.next() {
        match sign {
            '\\' if inside => {
                signs.next()?;
            }
            '"' => inside = !inside,
            _ if inside => {}
            _ => out.push(sign),
        }
    }
    (!inside).then_some(out)
}

/// Our own notes about an argument, which stand behind its quotes.
fn without_notes(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(" (") {
        let note = &rest[at + 2..];
        let end = note.find(" characters)").filter(|end| {
            note[..*end].bytes().all(|byte| byte.is_ascii_digit() || b"thefirsto ".contains(&byte))
        });
        match end {
            Some(end) => {
                out.push_str(&rest[..at]);
                rest = &note[end + " characters)".len()..];
            }
            None => {
                out.push_str(&rest[..at + 2]);
                rest = note;
            }
        }
    }
    out + rest
}

proptest! {
    #![proptest_config(config(1500))]

    #[test]
    fn any_text_is_read_without_a_stumble(text in any::<String>(), tool in any::<String>(), arguments in arguments()) {
        if let Ok(policy) = Policy::parse(&text) {
            is_safe(&policy.decide(&tool, &arguments))?;
        }
        let ruling = Policy::default().decide(&tool, &arguments);
        is_safe(&ruling)?;
        leaves(&ruling)?;
    }

    #[test]
    fn any_keys_and_values_are_read_without_a_stumble(
        lines in prop::collection::vec(
            ("(tool|where|verdict|action|risk_level|\"[^\"\\\\]{0,5}\"|[a-z]{1,4})", "[ -~]{0,20}"), 0..6)
    ) {
        let lines: Vec<String> = lines.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        let text = format!("[[rule]]\n{}", lines.join("\n"));
        if let Err(problems) = Policy::parse(&text) {
            prop_assert!(!problems.is_empty());
            for problem in problems {
                prop_assert!((1..=text.split('\n').count()).contains(&problem.line), "{problem} in {text}");
                prop_assert!(!problem.to_string().chars().any(char::is_control));
            }
        }
    }

    // covers: T27, I9, C15, D10, D11
    #[test]
    fn no_rule_lets_what_is_grave_run_in_silence_or_on_silence(
        rules in prop::collection::vec(rules(), 1..4),
        tool in pick(&["pay", "px", "x/y", "other"]),
        arguments in arguments(),
    ) {
        let readable: Vec<&String> = rules.iter().filter(|rule| Policy::parse(rule).is_ok()).collect();
        let text: String = readable.into_iter().map(String::as_str).collect();
        if let Ok(policy) = Policy::parse(&text) {
            let ruling = policy.decide(tool, &arguments);
            is_safe(&ruling)?;
            leaves(&ruling)?;
        }
    }

    // covers: D34
    #[test]
    fn an_argument_never_leaves_its_quotes(amount in hostile(), recipient in hostile()) {
        let policy = Policy::parse(
            "[[rule]]\ntool = \"pay\"\naction = \"Pay {amount} to {recipient} now\"\n"
        ).unwrap();
        let arguments = json!({ "amount": amount, "recipient": recipient }).to_string();
        let action = policy.decide("pay", &arguments).action;
        // Plain numbers need no quotes.
        let plain = |text: &str| text.parse::<f64>().is_ok();
        if plain(&amount) || plain(&recipient) {
            return Ok(());
        }
        let outside = outside(&action).expect("every quote is closed");
        let left = without_notes(&outside);
        // A secret is taken out together with its quotes; our words stay.
        let kinds = ["card number", "key", "token", "private key", "password"];
        let left = kinds.iter().fold(left, |left, kind| left.replace(&format!("[{kind} removed]"), ""));
        prop_assert_eq!(left, "Pay  to  now", "{}", action);
    }
}
