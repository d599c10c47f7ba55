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

/// A capture of a hub with a token, into a file if one is named.
fn captures(token: &str, arguments: &[&str]) -> Child {
    let mut command = aaep(&[&["capture"], arguments].concat());
    command.env("AAEP_TOKEN", token).spawn().unwrap()
}

fn lines_of(file: &Path) -> Vec<String> {
    std::fs::read_to_string(file).unwrap_or_default().lines().map(str::to_owned).collect()
}

/// Waits until a file holds this.
async fn holds(file: &Path, wanted: &str) {
    let looking = async {
        while !std::fs::read_to_string(file).unwrap_or_default().contains(wanted) {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    soon(wanted, looking).await;
}

fn signal(child: &Child, name: &str) {
    let pid = child.id().to_string();
    assert!(Command::new("kill").args([&format!("-{name}"), &pid]).status().unwrap().success());
}

fn ids(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["event_id"].as_str()).collect()
}

// covers: W7
#[test]
fn a_hub_that_is_killed_and_comes_back_is_captured_with_each_event_once() {
    run(async {
        let hub = Hub::start(Setup::durable());
        let person = hub.person();
        let agent = person.agent();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("captured.jsonl");
        let at = format!("unix:{}", hub.socket().display());
        let child = captures(&person.token("reader"), &[&at, "--out", file.to_str().unwrap()]);
        // A capture cannot answer: somebody else has to be there.
        let mut ear = person.reader().await;
        let session = agent.open().await;
        let asked = agent.ask(&session).await;
        ear.event("awaiting.confirmation").await;
        holds(&file, "awaiting.confirmation").await;
        hub.kill();
        let hub = Hub::start_in(Setup::durable(), hub.shared_directory());
        let person = person.at(&hub);
        let mut ear = person.reader().await;
        let question = ear.event("awaiting.confirmation").await;
        ear.decide(&question, "reject").await;
        let agent = person.agent();
        assert_eq!(agent.outcome(&asked).await, "rejected");
        agent.complete(&session).await;
        holds(&file, "session.completed").await;
        signal(&child, "TERM");
        let end = ended(child).await;
        assert_eq!(end.code, 0, "{}", end.err);
        assert!(end.err.contains("The stream broke"), "{}", end.err);
        let messages = messages(&lines_of(&file));
        let all = ids(&messages);
        let each: std::collections::BTreeSet<&str> = all.iter().copied().collect();
        assert_eq!(each.len(), all.len(), "an event was written twice: {all:?}");
        for kind in ["session.started", "awaiting.confirmation", "session.completed"] {
            let wanted = format!("aaep:agent.{kind}");
            let found = messages.iter().filter(|message| message["type"] == *wanted).count();
            assert_eq!(found, 1, "{kind}: {messages:#?}");
        }
        let outcome = |message: &&Value| message["extensions"]["outcome"]["outcome"] == "rejected";
        assert_eq!(messages.iter().filter(outcome).count(), 1, "{messages:#?}");
    });
}

#[test]
fn a_new_file_begins_after_so_many_seconds_and_sigterm_ends_it_well() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let agent = person.agent();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("captured.jsonl");
        let (base, name) = (hub.base(), file.to_str().unwrap());
        let arguments = [base.as_str(), "--out", name, "--rotate-seconds", "1"];
        let child = captures(&person.token("reader"), &arguments);
        // What is said before somebody listens is heard as well, for it still goes on.
        let session = agent.open().await;
        holds(&file, "session.started").await;
        tokio::time::sleep(std::time::Duration::from_millis(1100)).await;
        agent.progress(&session, 10).await;
        holds(&file, "progress.updated").await;
        signal(&child, "TERM");
        let end = ended(child).await;
        assert_eq!(end.code, 0, "{}", end.err);
        let first = messages(&lines_of(&folder.path().join("captured.jsonl.1")));
        let second = messages(&lines_of(&file));
        assert!(first.iter().any(|message| message["type"] == "aaep:agent.session.started"));
        assert!(second.iter().all(|message| message["type"] != "aaep:agent.session.started"));
        let said = format!("Captured {} messages", first.len() + second.len());
        assert!(end.err.contains(&said), "{}", end.err);
        for entry in std::fs::read_dir(folder.path()).unwrap() {
            let mode = entry.unwrap().metadata().unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o600);
        }
    });
}

#[test]
fn only_the_session_or_the_agent_that_is_named_is_kept() {
    run(async {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let (agent, helper) = (person.agent(), person.helper());
        let (wanted, other) = (agent.open().await, helper.open().await);
        for (option, name) in [("--session", &wanted), ("--agent", &agent.id)] {
            let child =
                captures(&person.token("reader"), &[&hub.base(), option, name, "--count", "4"]);
            let end = tokio::spawn(ended(child));
            let mut percent = 0;
            while !end.is_finished() {
                percent = (percent + 1) % 100;
                helper.progress(&other, percent).await;
                agent.progress(&wanted, percent).await;
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
            }
            let end = end.await.unwrap();
            assert_eq!(end.code, 0, "{}", end.err);
            let lines: Vec<String> = end.out.lines().map(str::to_owned).collect();
            assert_eq!(lines.len(), 4);
            for message in messages(&lines) {
                assert_eq!(message["session_id"], *wanted, "{option}: {message}");
                assert_eq!(message["producer"]["agent_id"], *agent.id, "{option}: {message}");
            }
        }
    });
}

// covers: W11, W12
#[test]
fn a_real_hub_is_captured_over_its_socket_over_grpc_and_over_stdio() {
    run(async {
        let hub = Hub::start(Setup::default().set("AAEP_GRPC", "127.0.0.1:0"));
        let person = hub.person();
        let _present = (person.phone().await, Ear::unix(&hub).await);
        let unix = format!("unix:{}", hub.socket().display());
        let stdio = format!("stdio:'{}' stdio '{unix}'", env!("CARGO_BIN_EXE_aaep"));
        // A message link over the socket speaks for the local user, whatever token is set.
        let (theirs, local) = (person.agent(), hub.local_agent());
        for (url, agent) in [(&unix, &theirs), (&hub.grpc(), &theirs), (&stdio, &local)] {
            let types = ["--type", "awaiting.confirmation", "--type", "session.completed"];
            let arguments = [&[url.as_str(), "--count", "2"], &types[..]].concat();
            let end = tokio::spawn(ended(captures(&person.token("reader"), &arguments)));
            // Until it listens, and then until it has heard one that it was there for.
            while !end.is_finished() {
                let session = agent.open().await;
                let asked = agent.ask(&session).await;
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                agent.withdraw(&asked).await;
                agent.complete(&session).await;
            }
            let end = end.await.unwrap();
            assert_eq!(end.code, 0, "{url}: {}", end.err);
            let lines: Vec<String> = end.out.lines().map(str::to_owned).collect();
            let messages = messages(&lines);
            assert_eq!(messages.len(), 2, "{url}: {}", end.out);
            for message in &messages {
                let kind = text(message, "type");
                assert!(kind.ends_with("confirmation") || kind.ends_with("completed"), "{message}");
                // What lets somebody answer is hidden.
                let token = message["reply_token"].as_str().unwrap_or("rpl_hidden");
                assert!(token.starts_with("rpl_hidden"), "{message}");
            }
        }
    });
}
