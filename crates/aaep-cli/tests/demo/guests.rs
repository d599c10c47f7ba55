//! The published packages, as guests of the demo. They are installed by `cargo xtask test --only
//! guests`, which also says where: `AAEP_GUESTS`. docs/guests.md says what each result means.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::support::*;
use crate::{Ended, demo, ended, say};

/// A program of theirs, in the virtual environment.
fn guest(program: &str) -> Command {
    let home = std::env::var_os("AAEP_GUESTS").expect("AAEP_GUESTS names their environment");
    let mut command = Command::new(Path::new(&home).join("bin").join(program));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

async fn ended_by(mut command: Command) -> Ended {
    ended(command.spawn().unwrap()).await
}

/// Where the suite looks for schemas: beside `site-packages`.
fn schema_folder() -> PathBuf {
    let home = std::env::var_os("AAEP_GUESTS").unwrap();
    let mut found = std::fs::read_dir(Path::new(&home).join("lib")).unwrap();
    found.next().unwrap().unwrap().path().join("schemas")
}

/// The suite brings no schemas, so it gets ours. Its resolver does not follow a reference beside
/// `unevaluatedProperties`, so each is complete in itself.
fn lend_schemas() {
    static ONCE: std::sync::Once = std::sync::Once::new();
    ONCE.call_once(|| {
        let mut schema = Command::new(env!("CARGO_BIN_EXE_aaep"));
        schema.args(["schema", "--bundle", "--out"]).arg(schema_folder()).stdout(Stdio::null());
        assert!(schema.status().unwrap().success());
    });
}

/// Runs the suite at level 3 and gives its report.
async fn suite(mode: &str, option: &str, place: &str) -> (Ended, Value) {
    lend_schemas();
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.json");
    let mut command = guest("aaep-conformance");
    command.args([mode, option, place, "--level", "3", "--report-json"]).arg(&report);
    command.arg("--report-html").arg(folder.path().join("report.html"));
    let ended = ended_by(command).await;
    let text = std::fs::read(&report).unwrap_or_else(|_| panic!("{}{}", ended.out, ended.err));
    (ended, serde_json::from_slice(&text).unwrap())
}

/// What did not pass, by its id.
fn not_passed(report: &Value) -> Vec<&str> {
    let results = report["test_results"].as_array().unwrap().iter();
    let failed = results.filter(|result| result["passed"] == false);
    failed.map(|result| text(result, "test_id")).collect()
}

fn passes(ended: &Ended, report: &Value) {
    // There is no action to confirm, so the suite skips what it would judge by its own replies.
    assert_eq!(not_passed(report), ["L2-CONF-DUPL-001"], "{report:#}");
    assert_eq!((ended.code, &report["tests_failed"]), (0, &json!(0)), "{}{}", ended.out, ended.err);
    println!("{} passed, {} skipped", report["tests_passed"], report["tests_skipped"]);
    assert!(report["tests_passed"].as_u64().unwrap() >= 50, "{report:#}");
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_suite_finds_no_failure_over_http_at_level_3() {
    run(async {
        let hub = demo(&[]);
        let (ended, report) = suite("producer", "--endpoint", &hub.base()).await;
        passes(&ended, &report);
    });
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_suite_finds_no_failure_over_a_web_socket_at_level_3() {
    run(async {
        let hub = demo(&[]);
        let place = format!("{}/ws", hub.base().replace("http", "ws"));
        let (ended, report) = suite("producer", "--endpoint", &place).await;
        passes(&ended, &report);
    });
}

/// As docs/guests.md says: this is all that the option is for.
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn without_the_option_exactly_what_the_suite_gets_wrong_fails() {
    run(async {
        let hub = demo(&["--strict"]);
        let (ended, report) = suite("producer", "--endpoint", &hub.base()).await;
        assert_eq!(not_passed(&report), ["L1-LIFE-004", "L2-CONF-DUPL-001"], "{report:#}");
        assert_eq!(ended.code, 1);
        let (_, report) = suite("subscriber", "--connect", &hub.base()).await;
        assert_eq!(not_passed(&report), ["L1-SUB-001", "L1-SUB-002"], "{report:#}");
    });
}

#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn the_suite_finds_no_failure_in_subscriber_mode() {
    run(async {
        let hub = demo(&[]);
        let web_socket = format!("{}/ws", hub.base().replace("http", "ws"));
        for place in [hub.base(), web_socket] {
            let (ended, report) = suite("subscriber", "--connect", &place).await;
            assert_eq!(not_passed(&report), Vec::<&str>::new(), "{report:#}");
            assert_eq!((ended.code, &report["tests_passed"]), (0, &json!(2)), "{}", ended.err);
        }
    });
}

/// Captures what the demo says about these words, with the published tool.
async fn capture(hub: &Hub, file: &Path, words: &[&str]) -> Vec<String> {
    let mut command = guest("aaep-capture");
    command.args(["--endpoint", &hub.base(), "--quiet", "--output"]).arg(file);
    // Comments keep the stream moving, so the tool looks at its time every fifteen seconds.
    command.args(["--filter-type", "session.completed", "--filter-type", "session.started"]);
    command.args(["--filter-type", "output.streaming", "--filter-type", "tool.invoked"]);
    command.args(["--filter-type", "tool.completed", "--filter-type", "state.changed"]);
    command.args(["--max-events", "24"]);
    let child = command.spawn().unwrap();
    let mut ear = Ear::subscribe(hub.anonymous()).await;
    let captured = tokio::spawn(ended(child));
    let mut said = 0;
    while !captured.is_finished() {
        say(hub, words[said % words.len()]).await;
        ear.event("session.completed").await;
        said += 1;
        assert!(said < 100, "the tool captures nothing");
    }
    let captured = captured.await.unwrap();
    assert_eq!(captured.code, 0, "{}{}", captured.out, captured.err);
    let text = std::fs::read_to_string(file).unwrap();
    text.lines().map(str::to_owned).collect()
}

// covers: W4, D27
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn what_their_tool_captures_is_lawful_and_what_it_plays_back_is_the_same() {
    run(async {
        let hub = demo(&[]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("captured.jsonl");
        let captured = capture(&hub, &file, &["hello", "balance", "three sentences"]).await;
        assert_eq!(captured.len(), 24);
        lawful(&captured);
        let check =
            Command::new(env!("CARGO_BIN_EXE_aaep")).arg("check").arg(&file).output().unwrap();
        assert_eq!(check.status.code(), Some(0), "{}", String::from_utf8_lossy(&check.stdout));

        // It plays to nobody from the start on, so it plays again and again, and we hear one round.
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let mut replay = guest("aaep-replay");
        replay.arg("--file").arg(&file).args([
            "--loop",
            "--speed",
            "20",
            "--port",
            &port.to_string(),
        ]);
        let mut replay = replay.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let client = client(&format!("http://127.0.0.1:{port}"), None);
        let heard = soon("what is played back", async {
            loop {
                if let Ok(mut stream) = client.events("events", None).await {
                    let mut heard = Vec::new();
                    while heard.len() < 2 * captured.len() {
                        let frame = stream.next().await.unwrap().unwrap();
                        heard.push(serde_json::from_str::<Value>(&frame.data).unwrap());
                    }
                    return heard;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
            }
        })
        .await;
        let _ = replay.kill();
        let _ = replay.wait();
        let captured: Vec<Value> =
            captured.iter().map(|line| serde_json::from_str(line).unwrap()).collect();
        let round = heard.windows(captured.len()).any(|round| round == captured);
        assert!(round, "{heard:#?}");
    });
}

/// Their listener answers by itself; gives what the demo did.
async fn answered_by_their_listener(option: &str) -> (Vec<Value>, Vec<String>) {
    let hub = demo(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("heard.jsonl");
    let mut command = guest("aaep-listen");
    command.args(["--endpoint", &hub.base(), "--no-color", option, "--save"]).arg(&file);
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let mut ear = Ear::subscribe(hub.anonymous()).await;
    let saved = || std::fs::read_to_string(&file).unwrap_or_default();
    // It says nothing when it is there, so it is told things until it has heard one.
    let there = async {
        while !saved().contains("session.completed") {
            say(&hub, "hello").await;
            ear.event("session.completed").await;
        }
    };
    soon("their listener", there).await;
    say(&hub, "transfer").await;
    let mut heard = vec![ear.event("awaiting.confirmation").await];
    loop {
        heard.push(ear.next().await);
        if heard.last().unwrap()["type"] == "aaep:agent.session.completed" {
            break;
        }
    }
    let ends = || saved().matches("session.completed").count();
    let all =
        ear.heard.iter().filter(|line| line.contains("\"aaep:agent.session.completed\"")).count();
    soon("their file", async {
        while ends() < all.min(2) {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
    })
    .await;
    let _ = child.kill();
    let _ = child.wait();
    ear.is_lawful();
    (heard, saved().lines().map(str::to_owned).collect())
}

// covers: D4, D27, C12
#[test]
#[ignore = "needs the published packages: cargo xtask test --only guests"]
fn their_listener_hears_and_answers() {
    run(async {
        let (yes, saved) = answered_by_their_listener("--auto-accept").await;
        assert!(yes.iter().any(|event| event["type"] == "aaep:agent.tool.invoked"), "{yes:#?}");
        lawful(&saved);
        let (no, _) = answered_by_their_listener("--auto-reject").await;
        assert!(!no.iter().any(|event| event["type"] == "aaep:agent.tool.invoked"), "{no:#?}");
    });
}
