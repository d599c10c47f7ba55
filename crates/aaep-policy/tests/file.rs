//! What may stand in a policy file, and what is said of what may not.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_policy::{MAX_FILE_BYTES, MAX_PROBLEMS, MAX_RULES, Policy, Verdict};

const EXAMPLE: &str = include_str!("../policy.example.toml");

/// Line and key of every problem.
fn wrong(text: &str) -> Vec<(usize, String)> {
    let problems = Policy::parse(text).expect_err("a file with problems");
    for problem in &problems {
        assert!(problem.what.ends_with('.') && problem.remedy.ends_with('.'), "{problem}");
    }
    problems.into_iter().map(|problem| (problem.line, problem.key)).collect()
}

/// A rule with these lines after the tool, which stands in line 2.
fn rule(lines: &str) -> String {
    format!("[[rule]]\ntool = \"t\"\n{lines}\n")
}

fn told(lines: &str) -> String {
    let problems = Policy::parse(&rule(lines)).expect_err("a rule with problems");
    problems.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_is_a_policy_that_does_what_it_says() {
    let policy = Policy::parse(EXAMPLE).unwrap();
    let verdict = |tool: &str, arguments: &str| {
        let ruling = policy.decide(tool, arguments);
        (ruling.rule.map_or(0, |rule| rule.number), ruling.verdict)
    };
    let small = r#"{"amount":"20.00","currency":"EUR","recipient":"grocer"}"#;
    assert_eq!(verdict("bank.transfer", small), (1, Verdict::Ask));
    assert_eq!(verdict("bank.transfer", &small.replace("20.00", "20.01")), (2, Verdict::Ask));
    assert_eq!(verdict("bank.transfer", &small.replace("grocer", "stranger")), (2, Verdict::Ask));
    assert_eq!(verdict("bank.transfer", &small.replace("20.00", "a few")), (0, Verdict::Ask));
    assert_eq!(verdict("files.read", r#"{"path":"x"}"#), (3, Verdict::Silent));
    assert_eq!(verdict("search/web", ""), (3, Verdict::Silent));
    assert_eq!(verdict("files.delete", r#"{"path":"/tmp/agent/x"}"#), (4, Verdict::Announce));
    assert_eq!(
        verdict("files.delete", r#"{"path":"/tmp/agent/x","recursive":true}"#),
        (5, Verdict::Ask)
    );
    assert_eq!(verdict("files.delete", r#"{"path":"/tmp/agent/../../etc"}"#), (0, Verdict::Ask));
    assert_eq!(verdict("mail/send", r#"{"to":["a@example.org"]}"#), (6, Verdict::Ask));
    assert_eq!(verdict("mail/send", r#"{"to":["a@example.org","b@x.net"]}"#), (0, Verdict::Ask));
    assert_eq!(verdict("calendar.add", "{}"), (7, Verdict::Ask));
    assert_eq!(verdict("mcp__server__run_command", "{}"), (8, Verdict::Ask));
    assert_eq!(verdict("unheard.of", "{}"), (0, Verdict::Ask));
}

#[test]
fn every_key_of_a_rule_is_in_the_example() {
    for key in [
        "tool",
        "where",
        "risk_level",
        "reversibility",
        "verdict",
        "timeout_seconds",
        "default_decision",
        "action",
        "consequence",
        "summary",
    ] {
        assert!(EXAMPLE.contains(&format!("\n{key} = ")), "{key}");
        assert!(EXAMPLE.contains(&format!("#   {key} ")), "{key} is not explained");
    }
    for test in ["greater_than", "at_most", "one_of", "matches", "present"] {
        assert!(EXAMPLE.contains(&format!("{test} = ")), "{test}");
    }
}

#[test]
fn an_empty_file_is_a_policy_without_rules() {
    assert!(Policy::parse("").unwrap().is_empty());
    assert!(Policy::parse("# nothing\n").unwrap().is_empty());
    assert!(Policy::default().is_empty());
    assert_eq!(Policy::parse(&rule("")).unwrap().len(), 1);
}

#[test]
fn every_problem_is_told_with_its_line_and_key() {
    let text = "\
colour = 1

[[rule]]
tool = \"a\"
risk = \"high\"
risk_level = \"extreme\"
timeout_seconds = 0
action = \"Do {\"

[[rule]]
tool = []
where = { x = { near = 3 }, y = { at_most = \"ten\" }, \"/a~\" = 1 }

[[rule]]
verdict = \"perhaps\"
reversibility = 3
";
    let keys = [
        (1, "colour"),
        (5, "risk"),
        (6, "risk_level"),
        (7, "timeout_seconds"),
        (8, "action"),
        (11, "tool"),
        (12, "where.x.near"),
        (12, "where.y.at_most"),
        (12, "where./a~"),
        (14, "tool"),
        (15, "verdict"),
        (16, "reversibility"),
    ];
    assert_eq!(wrong(text), keys.map(|(line, key)| (line, key.to_owned())));
}

#[test]
fn a_key_that_is_nearly_right_is_named() {
    assert_eq!(told("risk = \"low\""), "line 3, risk: There is no such key. Write `risk_level`.");
    assert!(told("colour = 1").contains("A rule has `tool`, `where`, "));
}

#[test]
fn broken_toml_is_told_by_its_line() {
    let problems =
        Policy::parse("[[rule]]\ntool = \n\n[[rule]]\ntool = \"a\nrisk_level = 1").unwrap_err();
    assert_eq!(problems[0].line, 2, "{problems:?}");
    assert!(problems.len() > 1, "{problems:?}");
    assert_eq!(wrong("rule = 3"), [(1, "rule".to_owned())]);
    assert_eq!(wrong("[rule]\ntool = \"a\""), [(1, "rule".to_owned())]);
    assert_eq!(wrong("rule = [1]"), [(1, "rule".to_owned())]);
    assert!(!Policy::parse(&rule("tool = \"again\"")).unwrap_err().is_empty());
}

// covers: T27, T31
#[test]
fn nothing_irreversible_or_of_high_risk_runs_without_a_question() {
    let quiet = |verdict: &str, risk: &str, reversibility: &str| {
        let lines = format!(
            "risk_level = \"{risk}\"\nreversibility = \"{reversibility}\"\nverdict = \"{verdict}\""
        );
        Policy::parse(&rule(&lines)).is_ok()
    };
    for risk in ["low", "medium", "high"] {
        assert!(!quiet("silent", risk, "irreversible"));
        assert!(!quiet("announce", risk, "irreversible"));
        assert!(!quiet("silent", risk, "reversible_with_effort"));
        assert!(quiet("announce", risk, "reversible_with_effort"));
        assert!(quiet("announce", risk, "reversible"));
        assert!(quiet("ask", risk, "irreversible"));
    }
    assert!(quiet("silent", "low", "reversible"));
    assert!(quiet("silent", "medium", "reversible"));
    assert!(!quiet("silent", "high", "reversible"));
    assert!(told("verdict = \"silent\"").contains("line 3, verdict: `silent` is not for what cannot be undone; without a `reversibility` nothing counts as reversible."));
    let unsaid = told("verdict = \"silent\"\nreversibility = \"reversible\"");
    assert!(unsaid.contains("`silent` is not for high risk; without a `risk_level`"), "{unsaid}");
}

// covers: C15, D10, D11
#[test]
fn silence_means_yes_only_where_that_is_safe() {
    let accepts = |risk: &str, reversibility: &str| {
        let lines = format!("{risk}\n{reversibility}\ndefault_decision = \"accept\"");
        Policy::parse(&rule(&lines)).is_ok()
    };
    let reversible = "reversibility = \"reversible\"";
    assert!(accepts("risk_level = \"low\"", reversible));
    assert!(accepts("risk_level = \"medium\"", reversible));
    assert!(!accepts("risk_level = \"high\"", reversible));
    assert!(!accepts("", reversible));
    for reversibility in
        ["", "reversibility = \"irreversible\"", "reversibility = \"reversible_with_effort\""]
    {
        for risk in ["low", "medium", "high"] {
            assert!(!accepts(&format!("risk_level = \"{risk}\""), reversibility));
        }
    }
    let text = told(
        "reversibility = \"irreversible\"\nrisk_level = \"low\"\ndefault_decision = \"accept\"",
    );
    assert_eq!(
        text,
        "line 5, default_decision: Silence is no consent to what cannot be undone, or only with effort. \
         Write `default_decision = \"reject\"`, or leave it out."
    );
}

#[test]
fn what_has_no_effect_and_what_covers_everything_is_refused() {
    let quiet = "risk_level = \"low\"\nreversibility = \"reversible\"\nverdict = \"announce\"\n";
    assert!(
        told(&format!("{quiet}timeout_seconds = 5"))
            .starts_with("line 6, timeout_seconds: It has no effect")
    );
    assert!(
        told(&format!("{quiet}default_decision = \"reject\""))
            .starts_with("line 6, default_decision: ")
    );
    for pattern in ["*", "?*", "**"] {
        let all = format!("[[rule]]\ntool = [\"a\", \"{pattern}\"]\n");
        assert!(Policy::parse(&all).is_ok());
        assert!(Policy::parse(&(all.clone() + quiet)).is_err(), "{pattern}");
        let accept =
            "risk_level = \"low\"\nreversibility = \"reversible\"\ndefault_decision = \"accept\"";
        assert!(Policy::parse(&(all + accept)).is_err(), "{pattern}");
    }
}

#[test]
fn a_rule_that_never_counts_is_told() {
    let text = "[[rule]]\ntool = \"bank.*\"\n\n[[rule]]\ntool = [\"bank.transfer\", \"bank.p*\"]\n";
    assert_eq!(
        Policy::parse(text).unwrap_err()[0].to_string(),
        "line 5, tool: This rule never counts: the one in line 1 covers its tools already. \
         Move it further up, or take it out."
    );
    assert!(Policy::parse(&text.replace("\"bank.p*\"", "\"shop.*\"")).is_ok());
    let conditional = text.replacen("\"bank.*\"", "\"bank.*\"\nwhere = { a = 1 }", 1);
    assert!(Policy::parse(&conditional).is_ok());
}

#[test]
fn everything_has_a_bound() {
    let large = format!("# {}", "x".repeat(MAX_FILE_BYTES));
    assert!(Policy::parse(&large).unwrap_err()[0].what.contains("more than 262144 bytes"));
    let many = |count: usize| -> String {
        (0..count).map(|number| format!("[[rule]]\ntool = \"t{number}\"\n")).collect()
    };
    assert_eq!(Policy::parse(&many(MAX_RULES)).unwrap().len(), MAX_RULES);
    assert_eq!(wrong(&many(MAX_RULES + 1)), [(1, "rule".to_owned())]);
    assert_eq!(wrong(&"a = 1\n".repeat(2)).len(), 1);
    let wrong: String = (0..500).map(|number| format!("k{number} = 1\n")).collect();
    assert_eq!(Policy::parse(&wrong).unwrap_err().len(), MAX_PROBLEMS);
    assert!(Policy::parse(&rule(&format!("where = {{ a = \"{}\" }}", "x".repeat(5000)))).is_err());
    assert!(Policy::parse(&format!("[[rule]]\ntool = \"{}\"", "x".repeat(300))).is_err());
    assert!(Policy::parse(&format!("x = {}1{}", "[".repeat(9000), "]".repeat(9000))).is_err());
}

// covers: L13
#[test]
fn a_language_is_one_and_words_in_it_are_whole() {
    for odd in ["7", "\"\"", "\"fr_FR!\"", "[\"fr\"]"] {
        assert_eq!(wrong(&format!("language = {odd}")), [(1, "language".into())], "{odd}");
    }
    let half = "action = \"Payer\"";
    assert!(Policy::parse(&rule(half)).is_ok());
    let (french, english) = ("language = \"fr\"\n", "language = \"en-GB\"\n");
    assert_eq!(wrong(&format!("{french}{}", rule(half))), [(3, "action".into())]);
    assert_eq!(wrong(&format!("{french}{}", rule("summary = \"Payer\""))), [(3, "action".into())]);
    assert!(Policy::parse(&format!("{english}{}", rule(half))).is_ok());
    let whole = rule("action = \"Payer\"\nconsequence = \"C’est payé.\"");
    assert!(Policy::parse(&format!("{french}{whole}")).is_ok());
}
