//! `aaep hook`: real processes, a real hub, and the forms that coding agents use.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod acp;
mod acp_more;
mod allowed;
mod answers;
mod doubt;
mod guard;
mod guard_door;
mod heard;
mod matrix;
mod mcp;
mod mcp_more;
mod mcp_remote;
mod once;
mod programs;
mod real;
mod real_acp;
mod real_doors;
mod real_mcp;
mod sessions;

#[path = "../hub/support/mod.rs"]
mod support;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use support::*;

/// What an agent's program has in its environment, and nobody should find again.
const CANARY: &str = "sk-ant-canary-3c1f9a7e5b2d4860";

/// Where agents work in these tests.
fn project(home: &Path) -> PathBuf {
    let project = home.join("project");
    std::fs::create_dir_all(project.join("build")).unwrap();
    std::fs::write(project.join("notes.txt"), "a\nb\n").unwrap();
    std::fs::write(project.join("build/a.o"), "x").unwrap();
    project
}

/// Calls the hook as an agent does, in this home.
fn call(home: &Path, input: impl AsRef<[u8]>, options: &[&str]) -> Child {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.arg("hook").args(options).env_clear().env("HOME", home);
    command.env("XDG_RUNTIME_DIR", home.join("run")).env("ANTHROPIC_API_KEY", CANARY);
    // An agent could set it so that its own answers count.
    command.env("AAEP_DEVELOPMENT__OWN_REPLIES", "true");
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let bytes = input.as_ref().to_vec();
    std::thread::spawn(move || stdin.write_all(&bytes));
    child
}

#[derive(Debug)]
struct Ended {
    code: i32,
    out: String,
    err: String,
}

impl Ended {
    fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("{self:?}"))
    }

    /// A "no" that holds with every program: JSON, words, status 2.
    fn is_no(&self) {
        assert_eq!(self.code, 2, "{self:?}");
        assert!(self.json().is_object() && self.err.trim().len() > 10, "{self:?}");
    }
}

async fn ended(child: Child) -> Ended {
    let waiting = tokio::task::spawn_blocking(move || child.wait_with_output());
    let output = soon("the end of a hook", waiting).await.unwrap().unwrap();
    Ended {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

/// A call before a tool, as Claude Code makes it.
fn claude(home: &Path, tool: &str, arguments: Value) -> Value {
    event(
        home,
        "PreToolUse",
        json!({ "tool_name": tool, "tool_input": arguments, "tool_use_id": "toolu_1" }),
    )
}

/// Something that Claude Code says.
fn event(home: &Path, name: &str, members: Value) -> Value {
    let mut said = json!({
        "session_id": "f0c02ac0", "transcript_path": "/home/ada/.claude/projects/p/f0c02ac0.jsonl",
        "cwd": project(home), "prompt_id": "b7b807af", "permission_mode": "default",
        "hook_event_name": name,
    });
    for (name, value) in members.as_object().unwrap() {
        said[name] = value.clone();
    }
    said
}

/// A command before which every program asks.
fn bash(home: &Path, command: &str) -> String {
    claude(home, "Bash", json!({ "command": command })).to_string()
}
