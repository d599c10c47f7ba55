//! `aaep status`: one line, from a real hub.

use std::process::{Command, Output};
use std::time::Instant;

use crate::support::{PATIENCE, Value};
use crate::{around, demo, say};

fn status(arguments: &[&str], variables: &[(String, String)]) -> (Option<i32>, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("status").args(arguments).env_clear();
    command.envs(variables.iter().map(|(name, value)| (name, value)));
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(stderr.is_empty(), "a prompt has one line: {}", String::from_utf8_lossy(&stderr));
    (status.code(), String::from_utf8(stdout).unwrap())
}

#[test]
fn one_line_says_what_waits() {
    let hub = demo();
    let around = around(&hub);
    assert_eq!(status(&[], &around), (Some(0), "Nothing waits.\n".into()));
    assert_eq!(status(&["--cell"], &around), (Some(0), ".\n".into()));
    say(&hub, "delete the record");
    let until = Instant::now() + PATIENCE;
    while status(&["--cell"], &around).1 != "1\n" {
        assert!(Instant::now() < until, "nothing waits");
    }
    assert_eq!(status(&[], &around), (Some(0), "1 request waits.\n".into()));
    let arabic = status(&["--language", "ar"], &around);
    assert_eq!(arabic, (Some(0), "طلب واحد ينتظر.\n".into()));
    let (code, json) = status(&["--json"], &around);
    let told: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &told["waiting"], &told["sessions"]), (Some(0), &1.into(), &1.into()));
    assert_eq!(told["hubs"][0]["name"], "AAEP demo", "{json}");
    assert!(!json.contains("record"), "no word of an agent's: {json}");
}

#[test]
fn a_hub_that_is_not_there_is_said_to_be_none() {
    let hub = demo();
    let mut around = around(&hub);
    around.push(("AAEP_URL".into(), "http://127.0.0.1:9/aaep/v1".into()));
    assert_eq!(status(&[], &around), (Some(2), "No hub.\n".into()));
    assert_eq!(status(&["--cell"], &around), (Some(2), "!\n".into()));
    let (code, line) = status(&["http://127.0.0.1:9/aaep/v1"], &around);
    assert_eq!(code, Some(2));
    assert!(line.starts_with("No answer from 127.0.0.1:9: "), "{line}");
    let (code, json) = status(&["--json"], &around);
    let told: Value = serde_json::from_str(&json).unwrap();
    assert_eq!((code, &told["waiting"]), (Some(2), &0.into()));
    assert!(told["hubs"][0]["error"].is_string(), "{json}");
}
