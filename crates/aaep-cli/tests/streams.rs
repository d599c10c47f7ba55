//! `aaep check`, from the outside.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use serde_json::json;
use support::{REPLY, STARTED, file, folder, root, run, run_with, wrong};

/// Every stream of a folder of vectors.
fn vectors(kind: &str) -> Vec<String> {
    let folder = root().join("vectors/streams").join(kind);
    let mut files: Vec<_> = folder
        .read_dir()
        .expect("vectors of streams")
        .map(|entry| entry.unwrap().path().to_str().unwrap().to_owned())
        .filter(|path| path.ends_with(".jsonl"))
        .collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

#[test]
fn good_streams_end_with_zero() {
    for name in vectors("good") {
        let ended = run(&["check", &name]);
        assert_eq!(ended.code, 0, "{}", ended.out);
    }
}

#[test]
fn bad_streams_end_with_one_and_name_the_rule_of_the_vector() {
    for name in vectors("bad") {
        let rule = name.rsplit('/').next().unwrap().split('.').next().unwrap();
        let ended = run(&["check", "--complete", &name]);
        assert_eq!(ended.code, 1, "{name}: {}", ended.out);
        assert!(ended.out.contains(&format!(" ({rule}, §")), "{name}: {}", ended.out);
    }
}

// covers: T12
#[test]
fn a_finding_is_one_line_with_its_event_and_rule() {
    let name = root().join("vectors/streams/bad/T12.nobody-was-asked.jsonl");
    let name = name.to_str().unwrap();
    let ended = run(&["check", name]);
    let lines: Vec<_> = ended.out.lines().collect();
    assert!(lines[0].starts_with(&format!("{name}:3: error in event evt_")), "{}", lines[0]);
    assert!(lines[0].ends_with(" (T12, §4.3.1)"), "{}", lines[0]);
    assert_eq!(lines[1..], ["1 stream, 5 messages: 1 error, 0 warnings, 0 notes"]);
}

#[test]
fn json_says_the_same_for_programs() {
    let name = root().join("vectors/streams/bad/T12.nobody-was-asked.jsonl");
    let ended = run(&["check", "--json", name.to_str().unwrap()]);
    let lines = ended.json();
    let names: Vec<_> = lines[0].as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        ["file", "line", "weight", "event_id", "session_id", "rule", "section", "text"]
    );
    assert_eq!(
        (lines.len(), &lines[0]["weight"], &lines[0]["line"]),
        (1, &json!("error"), &json!(3))
    );
    assert_eq!((&lines[0]["rule"], ended.code), (&json!("T12"), 1));
}

// covers: T1
#[test]
fn what_is_missing_is_a_note_unless_nothing_was_left_out() {
    let ended = run_with(&["check"], STARTED);
    assert!(ended.out.starts_with("standard input:1: note in session sess_1: "), "{}", ended.out);
    assert!(ended.out.ends_with("1 stream, 1 message: 0 errors, 0 warnings, 1 note\n"));
    assert_eq!(ended.code, 0);
    let complete = run_with(&["check", "--complete"], STARTED);
    assert!(complete.out.starts_with("standard input:1: error in session sess_1: "));
    assert_eq!(complete.code, 1);
}

#[test]
fn each_file_is_a_stream_of_its_own() {
    let folder = folder("streams_of_their_own");
    let (one, two) = (file(&folder, "1", STARTED), file(&folder, "2", STARTED));
    let ended = run(&["check", &one, &two]);
    assert!(ended.out.ends_with("2 streams, 2 messages: 0 errors, 0 warnings, 2 notes\n"));
}

// covers: E27
#[test]
fn invalid_and_broken_messages_are_findings_too() {
    let input = format!("[{},\n{REPLY},\n{{\"a\":\"{}\"}},\n]", wrong(), "x".repeat(2 << 20));
    let folder = folder("invalid_in_stream");
    let ended = run(&["check", "--json", &file(&folder, "stream.json", input)]);
    let errors: Vec<_> = ended
        .json()
        .into_iter()
        .filter(|finding| finding["weight"] == "error")
        .map(|finding| json!([finding["line"], finding["rule"]]))
        .collect();
    assert_eq!(json!(errors), json!([[1, "E7"], [3, "E21"], [4, "E1"]]));
}

#[test]
fn streams_that_are_empty_or_missing_end_with_two() {
    let empty = run_with(&["check"], "");
    assert_eq!((empty.code, empty.out.as_str()), (2, ""));
    assert!(empty.err.starts_with("aaep: there is nothing to check in standard input. "));
    let missing = run(&["check", "no/such/file"]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert_eq!(
        missing.err,
        "aaep: cannot read no/such/file: there is no such file. Check the name.\n"
    );
}

/// Every stream of a profile's vectors.
fn under_profile(name: &str, kind: &str) -> Vec<String> {
    let folder = root().join("vectors/profiles").join(name).join(kind);
    let entries = folder.read_dir().expect("vectors of profiles");
    let mut files: Vec<_> =
        entries.map(|entry| entry.unwrap().path().to_str().unwrap().to_owned()).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

// covers: X6, X9
#[test]
fn a_profiles_rules_are_checked_like_the_protocols_own() {
    for name in ["medical", "finance"] {
        let profile = root().join("vectors/profiles").join(format!("{name}.json"));
        let profile = profile.to_str().unwrap();
        for stream in under_profile(name, "good") {
            let ended = run(&["check", "--complete", "--profile", profile, &stream]);
            assert_eq!(ended.code, 0, "{stream}: {}", ended.out);
        }
        for stream in under_profile(name, "bad") {
            let ended = run(&["check", "--json", "--profile", profile, &stream]);
            let file = stream.rsplit('/').next().unwrap();
            let id = file.split('.').next().unwrap();
            assert_eq!(ended.code, 1, "{stream}: {}", ended.out);
            assert!(
                ended.out.contains("\"X9\"") && ended.out.contains(id),
                "{stream}: {}",
                ended.out
            );
            // Without the profile there is nothing wrong with it.
            assert_eq!(run(&["check", &stream]).code, 0, "{stream}");
        }
    }
}

// covers: X9
#[test]
fn what_is_no_profile_ends_with_two_and_says_what_to_do() {
    let folder = folder("profiles");
    let stream = &vectors("good")[0];
    for (text, says) in [("{", "no profile"), ("{}", "`version`"), ("[]", "one JSON object")] {
        let path = file(&folder, "bad.json", text);
        let ended = run(&["check", "--profile", &path, stream]);
        assert_eq!(ended.code, 2, "{text}");
        assert!(ended.err.contains(says), "{text}: {}", ended.err);
    }
    assert_eq!(run(&["check", "--profile", "no-such-file", stream]).code, 2);
}
