//! Runs the real command.
#![allow(dead_code)] // each test file uses its own part of this

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub const STARTED: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.session.started","event_id":"evt_1","session_id":"sess_1","timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"tidy"},"localization_hints":{"primary_language":"en"},"summary_normal":"Tidying the desk."}"#;

pub const REPLY: &str = r#"{"type":"confirmation.reply","reply_token":"rpl_7Qm2","decision":"accept","subscription_id":"sub_41","timestamp":"2026-02-03T09:30:00.000Z"}"#;

/// A message with one error, at `/event_id`.
pub fn wrong() -> String {
    STARTED.replace("evt_1", "event 1")
}

/// A message of a newer version: warnings and no error.
pub fn newer() -> String {
    STARTED.replace("1.0.0", "1.9.0").replace("\"summary_normal\"", "\"mood\":1,\"summary_normal\"")
}

/// The root of the repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub struct Ended {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Ended {
    /// What was printed, as JSON, one value per line.
    pub fn json(&self) -> Vec<serde_json::Value> {
        self.out.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
    }
}

pub fn aaep(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

pub fn ended(child: Child) -> Ended {
    let output = child.wait_with_output().expect("the command ends");
    Ended {
        code: output.status.code().expect("no signal ended it"),
        out: String::from_utf8(output.stdout).expect("plain text"),
        err: String::from_utf8(output.stderr).expect("plain text"),
    }
}

pub fn run(arguments: &[&str]) -> Ended {
    ended(aaep(arguments).spawn().expect("the command starts"))
}

/// Runs it with this on its standard input, which has to fit into a pipe.
pub fn run_with(arguments: &[&str], input: impl AsRef<[u8]>) -> Ended {
    let mut child = aaep(arguments).stdin(Stdio::piped()).spawn().expect("the command starts");
    // A command that does not read its input closes it; what it prints is judged below.
    let _ = child.stdin.take().expect("piped").write_all(input.as_ref());
    ended(child)
}

/// An empty folder of this test's own.
pub fn folder(test: &str) -> PathBuf {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).expect("a folder for the test");
    path
}

/// A file in that folder, as an argument.
pub fn file(folder: &Path, name: &str, content: impl AsRef<[u8]>) -> String {
    let path = folder.join(name);
    std::fs::write(&path, content).expect("a file for the test");
    path.to_str().expect("a plain name").to_owned()
}
