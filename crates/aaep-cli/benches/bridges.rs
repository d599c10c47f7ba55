//! What the bridges add to the programs that they stand beside: `cargo xtask bench bridges`. The real
//! command and a real hub; calls as Claude Code makes them, and an agent that is `cat`.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a benchmark
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // it runs programs and clocks

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::json;

/// Calls of the hook, starts of the hub, and messages that are timed.
const CALLS: usize = 200;
const STARTS: usize = 30;
const MESSAGES: usize = 2000;

/// Updates of an agent over which the proxy's memory is watched, and those after which it is first read.
const UPDATES: usize = 100_000;
const FIRST: usize = 20_000;

/// A home of its own; its hub ends with it.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join("project")).unwrap();
        std::os::unix::fs::DirBuilderExt::mode(&mut std::fs::DirBuilder::new(), 0o700)
            .create(home.path().join("run"))
            .unwrap();
        Self(home)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(words).env_clear().env("HOME", self.0.path());
        command.env("XDG_RUNTIME_DIR", self.0.path().join("run"));
        command.env("PATH", std::env::var_os("PATH").unwrap());
        command
    }

    /// How long a call takes that nobody is asked about, from the start of the process to its end.
    fn call(&self, number: usize) -> Duration {
        let call = json!({ "session_id": "bench", "transcript_path": "/x/.claude/t.jsonl",
            "cwd": self.0.path().join("project"), "prompt_id": "p", "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": { "command": "git status" },
            "tool_use_id": format!("toolu_{number}") });
        timed(self.command(&["hook", "--host", "claude"]), call.to_string().as_bytes())
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        let ours = format!("HOME={}\0", self.0.path().display());
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let read = |name: &str| std::fs::read_to_string(entry.path().join(name));
            let is_hub = read("cmdline").is_ok_and(|line| line.ends_with("\0hub\0"));
            if is_hub && read("environ").is_ok_and(|all| all.contains(&ours)) {
                let _ = Command::new("kill").arg("-KILL").arg(entry.file_name()).status();
            }
        }
    }
}

/// From the start of a process to its end.
fn timed(mut command: Command, input: &[u8]) -> Duration {
    command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::inherit());
    let begun = Instant::now();
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    assert!(child.wait().unwrap().success());
    begun.elapsed()
}

/// The middle and the slowest hundredth, in milliseconds.
fn middle(times: &mut [Duration]) -> (f64, f64) {
    times.sort_unstable();
    let at = |part: f64| times[((times.len() - 1) as f64 * part) as usize].as_secs_f64() * 1e3;
    (at(0.5), at(0.99))
}

fn main() {
    // Another process beside it, which does nothing: what any hook costs.
    let mut nothing: Vec<_> = (0..CALLS).map(|_| timed(Command::new("true"), b"")).collect();
    let (bare, _) = middle(&mut nothing);

    let home = Home::new();
    home.call(0);
    let mut calls: Vec<_> = (1..=CALLS).map(|number| home.call(number)).collect();
    let (p50, p99) = middle(&mut calls);
    println!(
        "hook without a question: p50 {p50:.1} ms, p99 {p99:.1} ms (at most 15 ms p50); an empty process {bare:.1} ms"
    );

    let mut starts: Vec<_> = (0..STARTS).map(|_| Home::new().call(0)).collect();
    let (p50, p99) = middle(&mut starts);
    println!("hook that starts the hub: p50 {p50:.1} ms, p99 {p99:.1} ms (at most 30 ms p50)");

    let direct = echoes(Command::new("cat"));
    let proxied = echoes(home.command(&["acp", "--", "cat"]));
    // There and back are two messages.
    let added = (proxied.0 - direct.0) / 2.0;
    println!(
        "ACP proxy: {added:.3} ms for each message (at most 1 ms); there and back p50 {:.3} ms, p99 {:.3} ms, without it p50 {:.3} ms",
        proxied.0, proxied.1, direct.0
    );
    memory(&home);
}

fn start(mut command: Command) -> Child {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    command.spawn().unwrap()
}

/// How long a message takes there and back.
fn echoes(command: Command) -> (f64, f64) {
    let mut child = start(command);
    let mut to = child.stdin.take().unwrap();
    let mut from = BufReader::new(child.stdout.take().unwrap());
    let mut times = Vec::new();
    let mut line = String::new();
    for number in 0..MESSAGES + 100 {
        let said = json!({ "jsonrpc": "2.0", "id": number, "method": "x/echo", "params": { "text": "a few words" } });
        let said = format!("{said}\n");
        let begun = Instant::now();
        to.write_all(said.as_bytes()).unwrap();
        line.clear();
        from.read_line(&mut line).unwrap();
        times.push(begun.elapsed());
        assert_eq!(line, said);
    }
    drop(to);
    child.wait().unwrap();
    // The first ones warm up.
    middle(&mut times[100..])
}

/// What the proxy holds while an agent talks without an end.
fn memory(home: &Home) {
    let update = json!({ "jsonrpc": "2.0", "method": "session/update", "params": { "sessionId": "s1",
        "update": { "sessionUpdate": "agent_message_chunk", "content": { "type": "text", "text": "A few words more. " } } } });
    let script = format!("yes '{update}' | head -n {UPDATES}; cat");
    let mut child = start(home.command(&["acp", "--", "sh", "-c", &script]));
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let resident = || {
        let path = format!("/proc/{}/status", child.id());
        let status = std::fs::read_to_string(Path::new(&path)).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap().to_owned();
        line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap()
    };
    lines.by_ref().take(FIRST).for_each(drop);
    let first = resident();
    lines.by_ref().take(UPDATES - FIRST).for_each(drop);
    let last = resident();
    println!("ACP proxy's memory: {first} kB after {FIRST} updates, {last} kB after {UPDATES}");
    drop(child.stdin.take());
    let _ = child.wait();
}
