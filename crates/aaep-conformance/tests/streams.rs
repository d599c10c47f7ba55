//! Every stream vector, judged as a complete stream: a good one shows no error, a bad one shows
//! errors of the rule that its name begins with, and of no other.
// A test reads files, and fails by panicking; the library does neither.
#![allow(clippy::disallowed_methods, clippy::panic, clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use aaep_conformance::stream::{Checker, Finding, Options, Weight};

/// Every vector of a folder, by name; an empty folder is a mistake, not a success.
fn vectors(folder: &str) -> Vec<(String, String)> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors/streams").join(folder);
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&root)
        .unwrap_or_else(|error| panic!("{}: {error}", root.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "jsonl"))
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "{} holds no vectors", root.display());
    let name = |path: &Path| path.file_name().unwrap().to_string_lossy().into_owned();
    paths.iter().map(|path| (name(path), std::fs::read_to_string(path).unwrap())).collect()
}

fn check(text: &str, complete: bool) -> Vec<Finding> {
    let mut checker = Checker::new(Options { complete, ..Options::default() });
    let mut found = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        checker.message(number, line.as_bytes(), &mut found);
    }
    checker.finish(&mut found);
    found
}

fn errors(found: &[Finding]) -> BTreeSet<&'static str> {
    let errors = found.iter().filter(|finding| finding.weight == Weight::Error);
    errors.map(|finding| finding.rule.id).collect()
}

fn told(found: &[Finding]) -> String {
    found.iter().map(|finding| format!("\n  {finding}")).collect()
}

// covers: T1, T7, T12, T15, T16, T18, T24, E10, E15, C1, C2, C14, C24, D15, D19, D20, D30, D35
#[test]
fn a_good_stream_shows_no_error() {
    for (name, text) in vectors("good") {
        let found = check(&text, true);
        assert!(errors(&found).is_empty(), "{name}:{}", told(&found));
    }
}

// covers: T1, T7, T12, T13, T15, T16, T17, T18, T24, T27, T33, E7, E8, E10, E15, E27
// covers: C1, C2, C4, C6, C14, C24, T14, S9
#[test]
fn a_bad_stream_shows_errors_of_its_rule_and_of_no_other() {
    for (name, text) in vectors("bad") {
        let found = check(&text, true);
        let rule = name.split('.').next().unwrap();
        assert_eq!(errors(&found), BTreeSet::from([rule]), "{name}:{}", told(&found));
    }
}

// covers: D15
#[test]
fn a_good_stream_shows_no_error_when_its_beginning_or_its_end_is_cut_off() {
    for (name, text) in vectors("good") {
        let lines: Vec<&str> = text.lines().collect();
        for cut in 0..lines.len() {
            for part in [&lines[cut..], &lines[..cut]] {
                let found = check(&part.join("\n"), false);
                assert!(errors(&found).is_empty(), "{name}, cut at {cut}:{}", told(&found));
            }
        }
    }
}

// covers: D15
#[test]
fn a_good_stream_with_numbers_shows_no_error_when_one_event_is_lost() {
    for (name, text) in vectors("good") {
        let lines: Vec<&str> = text.lines().collect();
        let replies = lines.iter().filter(|line| !line.contains("event_id")).count();
        if replies > 0 || !text.contains("sequence_number") {
            continue; // A lost reply shows no hole.
        }
        for lost in 0..lines.len() {
            let mut rest = lines.clone();
            rest.remove(lost);
            let found = check(&rest.join("\n"), false);
            assert!(errors(&found).is_empty(), "{name} without line {}:{}", lost + 1, told(&found));
        }
    }
}

// covers: E27
#[test]
fn every_line_of_the_vectors_is_a_valid_message_of_its_own() {
    for folder in ["good", "bad"] {
        for (name, text) in vectors(folder) {
            if name.starts_with("C15.") {
                continue; // The one rule here that a single message breaks.
            }
            for line in text.lines() {
                assert!(aaep_types::is_valid(line.as_bytes()), "{name}: {line}");
            }
        }
    }
}

#[test]
fn no_finding_repeats_a_reply_token() {
    for folder in ["good", "bad"] {
        for (name, text) in vectors(folder) {
            for complete in [true, false] {
                for finding in check(&text, complete) {
                    assert!(!finding.text.contains("rpl_"), "{name}: {finding}");
                }
            }
        }
    }
}
