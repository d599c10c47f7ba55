//! `aaep demo`, `aaep ask`, and the published packages as guests: real processes on real sockets.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod ask;
mod capture;
mod guests;
mod inspect;
mod large;
mod page;
mod replay;
mod soak;
mod strangers;
mod words;

#[path = "../support/fake_hub.rs"]
mod fake_hub;
#[path = "../../../../testing/skipped.rs"]
mod skipped;

#[path = "../hub/support/mod.rs"]
mod support;

use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use support::*;

/// A demo with a directory of its own, on a free port.
fn demo(options: &[&str]) -> Arc<Hub> {
    let directory = tempfile::tempdir().unwrap();
    Hub::start_by(directory, |usual| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(["demo", "--listen", "127.0.0.1:0"]).args(options).env_clear();
        let kept = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(kept);
        command
    })
}

/// Says something to the demo.
async fn say(hub: &Hub, words: &str) {
    let input = json!({ "kind": "user_input", "text": words }).to_string();
    let answer = hub.anonymous().post("messages", input).await.unwrap();
    assert_eq!(answer.status.as_u16(), 202, "{answer:?}");
}

/// The command, with nothing around it.
fn aaep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(arguments).env_clear();
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// What a process printed, and how it ended.
#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

/// Waits for the end of a process, elsewhere.
async fn ended(child: Child) -> Ended {
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = soon("the end of a process", waiting).await.unwrap().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}
