//! `aaep conformance`, the real command against producers and subscribers on real sockets; and our own
//! claim: the reports in `docs/conformance` are made here. With `AAEP_REPORTS=write` they are replaced.
#![cfg(unix)]
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "conformance/guests.rs"]
mod guests;
#[path = "../../../testing/skipped.rs"]
mod skipped;
#[path = "hub/support/mod.rs"]
mod support;

use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::sync::Arc;

use aaep_conformance::suite::reference::{
    OWNER, Producer, ProducerFault, STRANGER, Subscriber, SubscriberFault,
};
use support::{Hub, Setup};

/// Answers of the suite count, though it is the agent too.
const OWN_REPLIES: (&str, &str) = ("AAEP_DEVELOPMENT__OWN_REPLIES", "true");

fn conformance(side: &str, arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(["conformance", side]).args(arguments).stdin(Stdio::null()).output().unwrap()
}

fn file(directory: &Path, name: &str, content: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, format!("{content}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

/// A report without what differs from run to run.
fn lasting(text: &str, target: &str, named: &str) -> String {
    let mut kept = String::new();
    for line in text.replace(target, named).lines() {
        let line = line.split(", in this report of").next().unwrap_or(line);
        let line = line.split(" not exercised, in ").next().unwrap_or(line);
        kept.push_str(line);
        kept.push('\n');
    }
    kept
}

/// Compares a report with the one that is kept, or keeps it.
fn judge(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/conformance");
    let path = path.join(format!("{name}.txt"));
    if std::env::var("AAEP_REPORTS").is_ok_and(|value| value == "write") {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
    }
    let Ok(kept) = std::fs::read_to_string(&path) else {
        return skipped::skipped("no report is kept to compare with; AAEP_REPORTS=write keeps it");
    };
    assert_eq!(kept, text, "kept in {}", path.display());
}

/// Runs it at level 3, and finds that the level is granted and the report is the one that is kept.
fn granted(name: &str, side: &str, target: (&str, &str), arguments: &[&str]) {
    let mut all = vec![target.0, "--level", "3"];
    all.extend(arguments);
    let output = conformance(side, &all);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{name}: {text}");
    judge(name, &lasting(&text, target.0, target.1));
}

/// Two people and an agent of one of them.
struct Tokens {
    _directory: tempfile::TempDir,
    owner: String,
    stranger: String,
    agent: String,
}

fn tokens() -> Tokens {
    let directory = tempfile::tempdir().unwrap();
    let write = |name: &str| file(directory.path(), name, &support::token(name));
    let (owner, stranger, agent) = (write("reader0"), write("reader1"), write("agent0"));
    Tokens { _directory: directory, owner, stranger, agent }
}

impl Tokens {
    fn arguments(&self) -> [&str; 8] {
        [
            "--start",
            "agent",
            "--token-file",
            &self.owner,
            "--stranger-token-file",
            &self.stranger,
            "--agent-token-file",
            &self.agent,
        ]
    }
}

// covers: V3, H13, H14, H15, H16, H18
#[test]
fn the_hub_conforms_over_http_and_web_sockets() {
    let hub = Hub::start(Setup::default());
    let tokens = tokens();
    let base = hub.base();
    granted("hub-http", "producer", (&base, "http://127.0.0.1:8707/aaep/v1"), &tokens.arguments());
    let socket = format!("{}/ws", base.replacen("http", "ws", 1));
    granted(
        "hub-websocket",
        "producer",
        (&socket, "ws://127.0.0.1:8707/aaep/v1/ws"),
        &tokens.arguments(),
    );
}

// covers: V3, W10
#[test]
fn the_hub_keeps_everything_that_shows_over_its_unix_socket() {
    let hub = Hub::start(Setup::default());
    let url = format!("unix:{}", hub.socket().display());
    let output = conformance("producer", &[&url, "--level", "3", "--start", "agent"]);
    let text = String::from_utf8(output.stdout).unwrap();
    // There is nobody else on such a socket, so nobody can steal.
    assert_eq!(output.status.code(), Some(1), "{text}");
    judge("hub-socket", &lasting(&text, &url, "unix:/run/user/1000/aaep/aaep-hub.sock"));
}

/// A demo that knows two users beside everybody on this machine.
fn demo() -> Arc<Hub> {
    let directory = tempfile::tempdir().unwrap();
    let config = directory.path().join("demo.toml");
    std::fs::write(&config, Setup::default().config()).unwrap();
    Hub::start_by(directory, |usual| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(["demo", "--strict", "--ephemeral", "--listen", "127.0.0.1:0", "--config"]);
        command.arg(&config).env_clear();
        let kept = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(kept).env(OWN_REPLIES.0, OWN_REPLIES.1);
        command
    })
}

/// Its agent is written with the library, and is spoken with as a user would.
// covers: V3
#[test]
fn the_demo_and_its_agent_conform() {
    let demo = demo();
    let tokens = tokens();
    let base = demo.base();
    let stranger = ["--stranger-token-file", tokens.stranger.as_str()];
    granted("demo", "producer", (&base, "http://127.0.0.1:8707/aaep/v1"), &stranger);
}

// covers: V3, H24, C28, T30, E6
#[test]
fn listening_in_a_terminal_conforms() {
    let aaep = env!("CARGO_BIN_EXE_aaep");
    let home = tempfile::tempdir().unwrap();
    let home = home.path().to_str().unwrap();
    let run = format!("HOME={home}");
    let command = ["--", "env", "-i", run.as_str(), aaep, "listen", "--line", "{url}"];
    let shown = command[1..].join(" ");
    let mut all = vec!["http://127.0.0.1:0/aaep/v1", "--level", "3"];
    all.extend(command);
    let output = conformance("subscriber", &all);
    let text = String::from_utf8(output.stdout).unwrap();
    assert_eq!(output.status.code(), Some(0), "{text}");
    judge("listen", &lasting(&text, &shown, "aaep listen --line"));
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn a_correct_producer_is_granted_its_level_and_a_wrong_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let owner = file(directory.path(), "owner", OWNER);
    let stranger = file(directory.path(), "stranger", STRANGER);
    for (fault, status) in [(None, 0), (Some(ProducerFault::TakesForged), 1)] {
        let producer = Producer::start(fault).await.unwrap();
        let tokens = ["--token-file", owner.as_str(), "--stranger-token-file", stranger.as_str()];
        let mut arguments = vec![producer.base(), "--format", "json", "--patience", "3"];
        arguments.extend(tokens);
        let output = conformance("producer", &arguments);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{report:#}");
        assert_eq!(report["granted"], if status == 0 { 2 } else { 1 }, "{report:#}");
    }
}

/// Starts the command as a producer for a subscriber, and gives where it listens.
fn for_subscriber(level: &str) -> (std::process::Child, String) {
    use std::io::BufRead;
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(["conformance", "subscriber", "http://127.0.0.1:0/aaep/v1", "--level", level]);
    command.args(["--format", "json", "--quiet", "400", "--patience", "5"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut said = String::new();
    let errors = child.stderr.take().unwrap();
    std::io::BufReader::new(errors).read_line(&mut said).unwrap();
    let url = said.split_whitespace().find(|word| word.starts_with("http")).expect(&said);
    (child, url.to_owned())
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn a_subscriber_beside_the_command_is_judged_through_the_observer() {
    for (fault, granted) in [(None, Some(1)), (Some(SubscriberFault::SilentErrors), None)] {
        let (child, url) = for_subscriber("1");
        let _subscriber = Subscriber::start(&url, fault).unwrap();
        let output = tokio::task::spawn_blocking(|| child.wait_with_output()).await;
        let output = output.unwrap().unwrap();
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(report["granted"].as_u64(), granted, "{report:#}");
        assert_eq!(report["side"], "subscriber");
        assert_eq!(output.status.code(), Some(if granted.is_some() { 0 } else { 1 }));
    }
}

#[test]
fn nobody_there_is_a_sentence_and_status_2() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let socket = url.replacen("http", "ws", 1);
    for target in [url.as_str(), socket.as_str(), "unix:/nonexistent/aaep.sock"] {
        let output = conformance("producer", &[target, "--patience", "1", "--level", "3"]);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("The run was cut short: no stream of events:"), "{said}");
        assert!(said.contains("No claim can be made"), "{said}");
    }
    assert_eq!(conformance("producer", &["gopher://x"]).status.code(), Some(2));
    assert_eq!(conformance("producer", &[&url, "--text", "song=la"]).status.code(), Some(2));
    assert_eq!(conformance("producer", &[&url, "--level", "4"]).status.code(), Some(2));
    for command in [vec!["true"], vec!["/nonexistent/listener"], vec!["cat"]] {
        let mut all = vec!["http://127.0.0.1:0/aaep/v1", "--patience", "1", "--"];
        all.extend(command);
        let output = conformance("subscriber", &all);
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8(output.stdout).unwrap();
        assert!(said.contains("The run was cut short:"), "{said}");
    }
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = format!("http://{}", taken.local_addr().unwrap());
    let output = conformance("subscriber", &[&taken]);
    assert_eq!(output.status.code(), Some(2));
}

/// A profile that the suite checks besides.
// covers: X6
#[tokio::test(flavor = "multi_thread")]
async fn a_profile_is_checked_besides_and_named_in_the_claim() {
    let directory = tempfile::tempdir().unwrap();
    let profile = |least: u32| {
        let text = format!(
            r#"{{"profile":"https://example.org/profiles/patient/v1","version":"1.0.0","name":"Patient",
            "level":1,"rules":[{{"id":"P1","text":"Say how far it is.",
            "types":["aaep:agent.progress.updated"],"least":{{"progress.percent":{least}}}}}]}}"#
        );
        file(directory.path(), &format!("profile{least}"), &text)
    };
    for (least, status, words) in
        [(10, 0, "with the profile Patient"), (99, 1, "without a profile")]
    {
        let producer = Producer::start(None).await.unwrap();
        let profile = profile(least);
        let arguments =
            [producer.base(), "--level", "1", "--profile", profile.as_str(), "--patience", "3"];
        let output = conformance("producer", &arguments);
        let said = String::from_utf8(output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{said}");
        assert!(said.contains(words), "{said}");
    }
}
