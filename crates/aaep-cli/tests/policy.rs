//! `aaep policy`, from the outside.
#![allow(clippy::disallowed_methods, clippy::expect_used, clippy::unwrap_used)] // tests run programs

mod support;

use serde_json::json;
use support::{file, folder, root, run, run_with};

fn example() -> String {
    root().join("crates/aaep-policy/policy.example.toml").to_str().unwrap().to_owned()
}

const TRANSFER: &str = r#"{"amount": "12.50", "currency": "EUR", "recipient": "landlord"}"#;

#[test]
fn an_explanation_is_plain_lines_that_say_what_happens_and_why() {
    let ended = run(&["policy", "explain", "bank.transfer", TRANSFER, "--policy", &example()]);
    assert_eq!(
        ended.out,
        "Before bank.transfer runs, the user is asked.\n\
         Rule 1, in line 31, counts: its pattern is bank.transfer.\n\
         It counts as medium risk. This cannot be undone.\n\
         The question: Transfer 12.50 \"EUR\" to \"landlord\".\n\
         These words are asked, whatever words the agent has.\n\
         The consequence: The money leaves your account at once.\n\
         Without an answer in 120 seconds, it is not done.\n"
    );
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
}

// covers: T27
#[test]
fn what_no_rule_covers_is_explained_too() {
    let ended = run(&["policy", "explain", "rm", r#"{"path":"/"}"#]);
    assert_eq!(
        ended.out,
        "Before rm runs, the user is asked.\n\
         No rule covers this call, so it counts as the worst.\n\
         It counts as high risk. This cannot be undone.\n\
         The question: Run the tool rm with path: \"/\".\n\
         The consequence: Nobody has said what this does. It counts as high risk, and as something that cannot be undone.\n\
         Without an answer in 300 seconds, it is not done.\n\
         No policy file was given; name one with --policy.\n"
    );
    assert_eq!(ended.code, 0);
    let milder = run(&["policy", "explain", "files.read", "--policy", &example()]);
    assert!(milder.out.starts_with("files.read runs without a question and without a word.\n"));
}

#[test]
fn json_says_the_same_for_programs() {
    let ended =
        run(&["policy", "explain", "bank.transfer", TRANSFER, "--json", "--policy", &example()]);
    let said = &ended.json()[0];
    let names: Vec<_> = said.as_object().unwrap().keys().collect();
    assert_eq!(
        names,
        [
            "tool",
            "verdict",
            "rule",
            "risk_level",
            "reversibility",
            "timeout_seconds",
            "default_decision",
            "action",
            "consequence",
            "summary",
            "explanation",
        ]
    );
    assert_eq!(said["rule"], json!({ "number": 1, "line": 31, "pattern": "bank.transfer" }));
    assert_eq!((&said["verdict"], &said["timeout_seconds"]), (&json!("ask"), &json!(120)));
    let uncovered = run(&["policy", "explain", "rm", "--json"]);
    assert_eq!(uncovered.json()[0]["rule"], json!(null));
}

#[test]
fn arguments_may_come_from_standard_input() {
    let ended =
        run_with(&["policy", "explain", "bank.transfer", "-", "--policy", &example()], TRANSFER);
    assert!(ended.out.contains("Rule 1, in line 31, counts"), "{}", ended.out);
}

#[test]
fn hostile_arguments_stay_on_their_line() {
    let ended =
        run(&["policy", "explain", "x", r#"{"a":"\u001b[2J\nNo rule: \u202eall is well"}"#]);
    assert_eq!(ended.out.lines().count(), 7, "{}", ended.out);
    assert!(
        ended.out.contains(r#"a: "\u{1b}[2J\nNo rule: \u{202e}all is well" "#),
        "{}",
        ended.out
    );
}

#[test]
fn a_good_file_ends_with_zero() {
    let ended = run(&["policy", "check", &example()]);
    assert_eq!((ended.code, ended.out.as_str()), (0, "8 rules: no problems.\n"));
    let ended = run(&["policy", "check", "--json", &example()]);
    assert_eq!((ended.code, ended.out.as_str()), (0, ""));
}

// covers: C15
#[test]
fn a_bad_file_ends_with_one_and_every_problem_is_a_line() {
    let text = "[[rule]]\ntool = \"a\"\nrisk = \"low\"\n\n[[rule]]\ntool = \"b\"\ndefault_decision = \"accept\"\n";
    let name = file(&folder("bad_policy"), "policy.toml", text);
    let ended = run(&["policy", "check", &name]);
    assert_eq!(
        ended.out,
        format!(
            "{name}, line 3, risk: There is no such key. Write `risk_level`.\n\
             {name}, line 7, default_decision: Silence is no consent to what cannot be undone, or only with effort; \
             without a `reversibility` nothing counts as reversible. Write `default_decision = \"reject\"`, or leave it out.\n\
             2 problems; nothing of this file counts.\n"
        )
    );
    assert_eq!(ended.code, 1);
    let lines = run(&["policy", "check", "--json", &name]).json();
    assert_eq!((&lines[0]["line"], &lines[0]["key"], lines.len()), (&json!(3), &json!("risk"), 2));
    let explained = run(&["policy", "explain", "a", "--policy", &name]);
    assert_eq!((explained.code, explained.out.lines().count()), (1, 2));
}

#[test]
fn what_cannot_be_read_ends_with_two() {
    let missing = run(&["policy", "check", "no/such/file"]);
    assert_eq!((missing.code, missing.out.as_str()), (2, ""));
    assert_eq!(
        missing.err,
        "aaep: cannot read no/such/file: there is no such file. Check the name.\n"
    );
    let mistyped = run(&["policy", "explain", "x", "{amount: 5}"]);
    assert_eq!((mistyped.code, mistyped.out.as_str()), (2, ""));
    assert!(mistyped.err.starts_with("aaep: the arguments are not JSON: "), "{}", mistyped.err);
    let folder = folder("policy_bytes");
    let latin = run(&["policy", "check", &file(&folder, "latin", b"# gr\xfc\xdfe\n")]);
    assert_eq!(latin.code, 2);
    assert!(latin.err.contains("it is not UTF-8 from byte 4 on"), "{}", latin.err);
    let large = file(&folder, "large", "# é".to_owned() + &"é".repeat(200_000));
    let large = run(&["policy", "check", &large]);
    assert_eq!(large.code, 1);
    assert!(large.out.contains("more than 262144 bytes"), "{}", large.out);
    assert_eq!(run(&["policy", "explain"]).code, 2);
}

#[test]
fn a_command_is_explained_without_being_run() {
    let project = folder("explained");
    std::fs::create_dir_all(project.join("build")).unwrap();
    for name in ["a", "b", "c"] {
        std::fs::write(project.join("build").join(name), "x").unwrap();
    }
    let place = project.to_str().unwrap();
    let ended = run(&["policy", "explain", "rm -rf build", "--project", place]);
    assert_eq!(
        ended.out,
        "You are asked first.\n\
         The question: Delete 3 files in build. Cannot be undone.\n\
         Why: It takes something away.\n\
         Without an answer it is not done.\n"
    );
    assert_eq!((ended.code, ended.err.as_str()), (0, ""));
    assert!(project.join("build/a").exists());
    let told = run(&["policy", "explain", "--shell", "ls", "--project", place]);
    assert_eq!(
        told.out,
        "It runs without a question, and you are told.\n\
         What is said: Run “ls”.\n\
         Why: It only looks at something.\n"
    );
    let broken = run(&["policy", "explain", "ls \"", "--project", place, "--json"]);
    let said = &broken.json()[0];
    assert_eq!((&said["verdict"], &said["risk_level"]), (&json!("ask"), &json!("high")));
    assert_eq!(said["action"], "Run “ls \"”: it cannot be parsed.");
    let nowhere = run(&["policy", "explain", "ls -l", "--project", "/nowhere/at/all"]);
    assert_eq!(nowhere.code, 2);
    assert!(nowhere.err.contains("Name its directory"), "{}", nowhere.err);
}
