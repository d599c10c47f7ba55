//! `aaep capture`: the real command, at a demo.

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::*;
use aaep_types::captured;

/// Captures what the demo says until there are this many messages.
async fn captured(hub: &Hub, arguments: &[&str], words: &str) -> (Ended, Vec<String>) {
    let child = aaep(&[&["capture"], arguments].concat()).spawn().unwrap();
    let end = tokio::spawn(ended(child));
    let mut ear = Ear::subscribe(hub.anonymous()).await;
    while !end.is_finished() {
        say(hub, words).await;
        ear.event("session.completed").await;
    }
    let end = end.await.unwrap();
    let lines = end.out.lines().map(str::to_owned).collect();
    (end, lines)
}

fn messages(lines: &[String]) -> Vec<Value> {
    let message = |line: &String| {
        let read = captured::read(line.as_bytes()).unwrap();
        serde_json::from_str(read.message).unwrap()
    };
    lines.iter().map(message).collect()
}

fn check(file: &Path) -> std::process::Output {
    Command::new(env!("CARGO_BIN_EXE_aaep")).arg("check").arg(file).output().unwrap()
}

#[test]
fn every_transport_is_captured_with_a_handshake_and_without() {
    run(async {
        let hub = demo(&[]);
        let http = hub.base();
        let ws = http.replace("http://", "ws://");
        for (url, raw) in [(&http, false), (&http, true), (&ws, false), (&ws, true)] {
            let mut arguments = vec![url.as_str(), "--count", "6"];
            if raw {
                arguments.push("--raw");
            }
            let (end, lines) = captured(&hub, &arguments, "hello").await;
            assert_eq!(end.code, 0, "{}", end.err);
            assert_eq!(lines.len(), 6, "{url}: {}", end.out);
            assert!(end.err.contains("Captured 6 messages."), "{}", end.err);
            let offsets: Vec<f64> = lines
                .iter()
                .map(|line| captured::read(line.as_bytes()).unwrap().offset_ms)
                .collect();
            assert!(offsets.is_sorted() && offsets[0] > 0.0, "{offsets:?}");
        }
    });
}

#[test]
fn a_file_is_private_goes_on_where_it_ended_and_check_reads_it() {
    run(async {
        let hub = demo(&[]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("captured.jsonl");
        let name = file.to_str().unwrap();
        let base = hub.base();
        let arguments = [base.as_str(), "--out", name, "--count", "4", "--append"];
        let (end, _) = captured(&hub, &arguments, "hello").await;
        assert_eq!(end.code, 0, "{}", end.err);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        // A line that was cut short is taken out, and everything after the last event follows.
        let mut text = std::fs::read_to_string(&file).unwrap();
        let before = text.lines().count();
        text.push_str("{\"captured_at\":\"20");
        std::fs::write(&file, text).unwrap();
        let (end, _) = captured(&hub, &arguments, "hello").await;
        assert!(end.code == 0 && end.err.contains("cut short"), "{}", end.err);
        let lines: Vec<String> =
            std::fs::read_to_string(&file).unwrap().lines().map(str::to_owned).collect();
        assert_eq!(lines.len(), before + 4);
        let ids: std::collections::BTreeSet<String> = messages(&lines)
            .iter()
            .map(|message| message["event_id"].as_str().unwrap().to_owned())
            .collect();
        assert_eq!(ids.len(), lines.len(), "an event was written twice");
        let judged = check(&file);
        assert_eq!(judged.status.code(), Some(0), "{}", String::from_utf8_lossy(&judged.stdout));
        // A file that is there is not overwritten.
        let end = ended(aaep(&["capture", &base, "--out", name]).spawn().unwrap()).await;
        assert!(end.code == 2 && end.err.contains("stays as it is"), "{}", end.err);
    });
}

/// Captures the next confirmation that the demo asks for, and what a subscription that may answer
/// hears of it.
async fn asked(hub: &Hub, arguments: &[&str]) -> (Ended, String) {
    let child = aaep(&[&["capture"], arguments].concat()).spawn().unwrap();
    let end = tokio::spawn(ended(child));
    let mut ear = Ear::subscribe(hub.anonymous()).await;
    let mut tokens = Vec::new();
    while !end.is_finished() {
        say(hub, "transfer 20 euros to Ann").await;
        let event = ear.event("awaiting.confirmation").await;
        tokens.push(event["reply_token"].as_str().unwrap().to_owned());
    }
    let end = end.await.unwrap();
    let found = tokens.iter().find(|token| end.out.contains(token.as_str()));
    let found = found.cloned().unwrap_or_default();
    (end, found)
}

#[test]
fn the_token_of_a_real_confirmation_is_hidden_unless_it_is_wanted() {
    run(async {
        let hub = demo(&[]);
        let base = hub.base();
        let ws = base.replace("http://", "ws://");
        let only = ["--type", "awaiting.confirmation", "--count", "1"];
        for url in [&base, &ws] {
            for clear in [false, true] {
                let mut arguments = vec![url.as_str()];
                arguments.extend(only);
                if clear {
                    arguments.push("--with-tokens");
                }
                let (end, found) = asked(&hub, &arguments).await;
                assert_eq!(end.code, 0, "{}", end.err);
                let lines: Vec<String> = end.out.lines().map(str::to_owned).collect();
                let message = &messages(&lines)[0];
                assert_eq!(message["type"], "aaep:agent.awaiting.confirmation", "{url}");
                let token = message["reply_token"].as_str().unwrap_or_default();
                if clear {
                    assert!(
                        !token.is_empty() && !token.starts_with("rpl_hidden"),
                        "{url}: {token}"
                    );
                } else {
                    assert!(found.is_empty() && token.starts_with("rpl_hidden"), "{url}: {token}");
                }
            }
        }
    });
}

#[test]
fn filters_and_rotation_work_and_validate_reads_the_files() {
    run(async {
        let hub = demo(&[]);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("asked.jsonl");
        let base = hub.base();
        let mut command = aaep(&["capture", &base, "--rotate-bytes", "1", "--count", "2"]);
        command.args(["--type", "state.changed", "--type", "awaiting.confirmation", "--out"]);
        let child = command.arg(&file).spawn().unwrap();
        let end = tokio::spawn(ended(child));
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        while !end.is_finished() {
            say(&hub, "transfer 20 euros to Ann").await;
            ear.event("awaiting.confirmation").await;
        }
        let end = end.await.unwrap();
        assert_eq!(end.code, 0, "{}", end.err);
        let files: Vec<_> =
            std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(files.len(), 2, "each line has a file of its own");
        for file in &files {
            let text = std::fs::read_to_string(file).unwrap();
            assert!(!text.contains("session.started"), "{text}");
        }
        let mut validate = Command::new(env!("CARGO_BIN_EXE_aaep"));
        let judged = validate.arg("validate").args(&files).output().unwrap();
        assert_eq!(judged.status.code(), Some(0), "{}", String::from_utf8_lossy(&judged.stdout));
        // It judges what was captured, not the line around it.
        let text = std::fs::read_to_string(&files[0]).unwrap();
        std::fs::write(&files[0], text.replace("\"event_id\"", "\"even_id\"")).unwrap();
        let mut validate = Command::new(env!("CARGO_BIN_EXE_aaep"));
        let judged = validate.arg("validate").args(&files).output().unwrap();
        let said = String::from_utf8_lossy(&judged.stdout).into_owned();
        assert!(judged.status.code() == Some(1) && said.contains("event_id"), "{said}");
    });
}

/// Takes every connection, says this, and then nothing.
fn speaks(words: &'static [u8]) -> std::net::SocketAddr {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    std::thread::spawn(move || {
        let mut kept = Vec::new();
        for stream in listener.incoming().flatten() {
            let _ = std::io::Write::write_all(&mut &stream, words);
            kept.push(stream);
        }
    });
    address
}

#[test]
fn a_target_that_answers_garbage_or_nothing_ends_with_a_sentence() {
    run(async {
        let garbage = speaks(b"\x00\xffSSH-2.0-nonsense\r\n\r\n{]");
        let silent = speaks(b"");
        for address in [garbage, silent] {
            for scheme in ["http", "ws"] {
                for raw in [&[][..], &["--raw"]] {
                    let url = format!("{scheme}://{address}/");
                    let arguments = [&["capture", &url, "--timeout", "3"], raw].concat();
                    let end = ended(aaep(&arguments).spawn().unwrap()).await;
                    assert_eq!(end.code, 2, "{url}: {}", end.err);
                    assert!(end.err.contains("Nothing can be captured"), "{url}: {}", end.err);
                    assert!(!end.err.contains("panicked"), "{url}: {}", end.err);
                }
            }
        }
    });
}

#[test]
fn it_ends_well_when_interrupted_and_says_why_nobody_is_there() {
    run(async {
        let hub = demo(&[]);
        let base = hub.base();
        let end = ended(aaep(&["capture", &base, "--timeout", "5"]).spawn().unwrap()).await;
        assert!(end.code == 0 && end.err.contains("Captured "), "{}", end.err);
        let mut child = aaep(&["capture", &base]).spawn().unwrap();
        let pid = child.id().to_string();
        let mut out = BufReader::new(child.stdout.take().unwrap()).lines();
        let begun = tokio::task::spawn_blocking(move || (out.next().unwrap().unwrap(), out));
        let mut ear = Ear::subscribe(hub.anonymous()).await;
        while !begun.is_finished() {
            say(&hub, "hello").await;
            ear.event("session.completed").await;
        }
        let (first, _out) = begun.await.unwrap();
        assert!(first.contains("event_id"), "{first}");
        assert!(Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
        let end = ended(child).await;
        assert!(end.code == 0 && end.err.contains("Captured "), "{}", end.err);
        // Nobody listens there.
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let url = format!("http://{free}/");
        let end = ended(aaep(&["capture", &url]).spawn().unwrap()).await;
        assert!(end.code == 2 && end.err.contains("Nothing can be captured"), "{}", end.err);
    });
}
