//! Runs the vectors: each file is judged as its folder says, by the rule that its name begins with.

mod support;

use aaep_types::{Problem, Severity, rule, validate};
use support::{Vector, vectors};

fn problems(vector: &Vector, severity: Severity) -> Vec<Problem> {
    let mut problems = validate(&vector.bytes);
    problems.retain(|problem| problem.severity == severity);
    problems
}

/// Runs every file of a folder and says of each what is wrong with it.
fn run(folder: &str, wrong: impl Fn(&Vector) -> Option<String>) {
    let vectors = vectors(folder);
    assert!(!vectors.is_empty(), "vectors/{folder} holds nothing");
    let failed: Vec<String> = vectors
        .iter()
        .filter_map(|vector| wrong(vector).map(|why| format!("{}: {why}", vector.name)))
        .collect();
    assert!(failed.is_empty(), "vectors/{folder}:\n{}", failed.join("\n"));
}

fn listed(problems: &[Problem]) -> String {
    problems.iter().map(|problem| format!("\n    {problem}")).collect()
}

// covers: E1, E2, T29
#[test]
fn every_valid_vector_is_accepted_without_a_word() {
    run("valid", |vector| {
        let problems = validate(&vector.bytes);
        (!problems.is_empty()).then(|| listed(&problems))
    });
}

// covers: D33, T29, T35
#[test]
fn every_warning_vector_is_accepted_with_a_warning_of_its_rule() {
    run("warning", |vector| {
        let errors = problems(vector, Severity::Error);
        if !errors.is_empty() {
            return Some(format!("there is an error: {}", listed(&errors)));
        }
        let warnings = problems(vector, Severity::Warning);
        let warned = warnings.iter().any(|problem| problem.rule.id == vector.rule);
        (!warned).then(|| format!("no such warning: {}", listed(&warnings)))
    });
}

// covers: E1, E2, E5, E19
#[test]
fn every_invalid_vector_is_refused_by_its_rule_and_by_no_other() {
    run("invalid", |vector| {
        let errors = problems(vector, Severity::Error);
        let right = !errors.is_empty() && errors.iter().all(|error| error.rule.id == vector.rule);
        (!right).then(|| listed(&errors))
    });
}

#[test]
fn every_vector_is_named_by_its_rule_and_what_it_shows() {
    for folder in ["valid", "warning", "invalid"] {
        for vector in vectors(folder) {
            assert!(is_named_well(&vector.name), "vectors/{folder}/{}", vector.name);
        }
    }
}

/// `E7.too-long.json`: a rule, what the file shows in words with dashes between them.
fn is_named_well(name: &str) -> bool {
    let Some((id, shows)) = name.strip_suffix(".json").and_then(|name| name.split_once('.')) else {
        return false;
    };
    let words = shows.split('-').all(|word| {
        !word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit())
    });
    words && rule::ALL.iter().any(|rule| rule.id == id)
}

#[test]
fn a_file_of_another_name_would_be_noticed() {
    assert!(is_named_well("E7.too-long.json"));
    for name in
        ["too-long.json", "E7.json", "E7.too long.json", "E7.Too.json", "E99.x.json", "E7.x"]
    {
        assert!(!is_named_well(name), "{name}");
    }
}

// covers: E23
#[test]
fn problems_are_told_in_the_order_of_the_specification() {
    let message = br#"{"@context":"https://schema.org","type":"aaep:agent.tool.invoked",
        "event_id":"7","session_id":4,"timestamp":"today","tool":"two words","summary_normal":"",
        "extensions":{"xsd":{}},"tool_call_id":9007199254740993}"#;
    let errors: Vec<_> = validate(message)
        .into_iter()
        .filter(|problem| problem.severity == Severity::Error)
        .map(|problem| (problem.rule.id, problem.pointer))
        .collect();
    let ids: Vec<_> = errors.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids, ["E22", "E2", "E8", "E3", "E7", "E9", "T11", "T11", "T13", "X3"], "{errors:?}");
}
