//! `aaep conformance`, the real command against producers on real sockets.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, clippy::unwrap_used)]

use std::path::Path;
use std::process::{Command, Output};

use aaep_conformance::suite::reference::{Fault, OWNER, Producer, STRANGER};

fn conformance(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(["conformance", "producer"]).args(arguments).output().unwrap()
}

fn token(directory: &Path, name: &str, token: &str) -> String {
    let path = directory.join(name);
    std::fs::write(&path, format!("{token}\n")).unwrap();
    path.to_str().unwrap().to_owned()
}

// covers: V3
#[tokio::test(flavor = "multi_thread")]
async fn a_correct_producer_is_granted_its_level_and_a_wrong_one_is_not() {
    let directory = tempfile::tempdir().unwrap();
    let owner = token(directory.path(), "owner", OWNER);
    let stranger = token(directory.path(), "stranger", STRANGER);
    for (fault, status) in [(None, 0), (Some(Fault::TakesForged), 1)] {
        let producer = Producer::start(fault).await.unwrap();
        let output = conformance(&[
            producer.base(),
            "--token-file",
            &owner,
            "--stranger-token-file",
            &stranger,
            "--format",
            "json",
            "--patience",
            "3",
        ]);
        let report: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(output.status.code(), Some(status), "{report:#}");
        assert_eq!(report["granted"], if status == 0 { 2 } else { 1 }, "{report:#}");
    }
}

#[test]
fn nobody_there_is_a_sentence_and_status_2() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let output = conformance(&[&url, "--patience", "1"]);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(said.contains("The run was cut short: no stream of events:"), "{said}");
    assert!(said.contains("No claim can be made"), "{said}");
    assert_eq!(conformance(&[&url, "--text", "song=la"]).status.code(), Some(2));
    assert_eq!(conformance(&[&url, "--level", "3"]).status.code(), Some(2));
}
