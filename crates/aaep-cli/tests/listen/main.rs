//! `aaep listen`: the real command, in a real terminal or behind pipes, with honest and hostile
//! producers.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod bad_input;
mod comeback;
mod docs;
mod felt;
mod guests;
mod heard;
mod hostile;
#[cfg(target_os = "linux")]
mod notify;
mod pipes;
mod presence;
mod races;
mod stage;
mod status;
mod terminal;
mod tty;
mod voices;

#[path = "../../../aaep-voice/tests/support/mod.rs"]
mod speech;
#[path = "../hub/support/mod.rs"]
mod support;

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use support::*;

/// How long nothing follows a line that is over.
const OPEN: Duration = Duration::from_millis(50);

/// A demo with a directory of its own, on a free port. Strict: otherwise it lets any client that speaks
/// without a stream of their own wait for one.
fn demo() -> Arc<Hub> {
    let directory = tempfile::tempdir().unwrap();
    Hub::start_by(directory, |usual| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.args(["demo", "--strict", "--listen", "127.0.0.1:0"]).env_clear();
        let kept = usual.get_envs().filter_map(|(name, value)| Some((name, value?)));
        command.envs(kept);
        command
    })
}

/// Says something to the demo.
fn say(hub: &Hub, words: &str) {
    run(async {
        let input = json!({ "kind": "user_input", "text": words }).to_string();
        // Its agent may still be on its way.
        loop {
            let answer = hub.anonymous().post("messages", input.clone()).await.unwrap();
            if answer.status == 202 {
                return;
            }
            assert_eq!(answer.status, 409, "{answer:?}");
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
}

/// What a listener beside this hub finds around it: it has to find the hub by itself.
fn around(hub: &Hub) -> Vec<(String, String)> {
    let home = hub.home().to_str().unwrap().to_owned();
    vec![("XDG_RUNTIME_DIR".into(), format!("{home}/run")), ("HOME".into(), home)]
}

/// Bytes that a process has written so far, and whether that was all.
type Bytes = (Vec<u8>, bool);

/// What a process writes, to be waited for.
#[derive(Clone, Default)]
pub struct Written(Arc<(Mutex<Bytes>, Condvar)>);

impl Written {
    pub fn by(mut source: impl Read + Send + 'static) -> Self {
        let written = Self::default();
        let writes = written.clone();
        std::thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let count = source.read(&mut buffer).unwrap_or(0);
                let mut all = writes.0.0.lock().unwrap();
                all.0.extend_from_slice(&buffer[..count]);
                all.1 = count == 0;
                writes.0.1.notify_all();
                if count == 0 {
                    return;
                }
            }
        });
        written
    }

    /// Waits until this is written after so many bytes; gives everything up to the end of its line,
    /// and where that is.
    #[track_caller]
    pub fn find(&self, from: usize, wanted: &str) -> (String, usize) {
        self.find_line(from, wanted, false)
    }

    /// The same in a terminal, where the last line has no end: it is over when nothing follows.
    #[track_caller]
    pub fn find_open(&self, from: usize, wanted: &str) -> (String, usize) {
        self.find_line(from, wanted, true)
    }

    #[track_caller]
    fn find_line(&self, from: usize, wanted: &str, open: bool) -> (String, usize) {
        let until = Instant::now() + PATIENCE;
        let mut all = self.0.0.lock().unwrap();
        loop {
            let new = &all.0[from..];
            let found = new.windows(wanted.len()).position(|part| part == wanted.as_bytes());
            let end = found.and_then(|at| {
                let end = new[at..].iter().position(|byte| *byte == b'\n')?;
                Some(at + end + 1)
            });
            let length = all.0.len();
            if open && found.is_some() && end.is_none() && !all.1 {
                all = self.0.1.wait_timeout(all, OPEN).unwrap().0;
                if all.0.len() > length {
                    continue;
                }
                let text = String::from_utf8_lossy(&all.0[from..]).replace('\r', "");
                return (text, length);
            }
            if let Some(end) = end {
                return (String::from_utf8_lossy(&new[..end]).replace('\r', ""), from + end);
            }
            let left = until.saturating_duration_since(Instant::now());
            if all.1 || left.is_zero() {
                let text = String::from_utf8_lossy(&all.0).into_owned();
                drop(all);
                panic!("{wanted:?} does not come after:\n{text}");
            }
            all = self.0.1.wait_timeout(all, left).unwrap().0;
        }
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.0.0.lock().unwrap().0.clone()
    }

    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes()).replace('\r', "")
    }
}

/// `aaep listen` behind pipes.
pub struct Piped {
    child: Child,
    input: Option<ChildStdin>,
    out: Written,
    err: Written,
    looked: usize,
}

impl Piped {
    pub fn start(arguments: &[&str], variables: &[(String, String)]) -> Self {
        Self::start_with(Stdio::piped(), arguments, variables)
    }

    fn start_with(input: Stdio, arguments: &[&str], variables: &[(String, String)]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
        command.arg("listen").args(arguments).env_clear();
        command.envs(variables.iter().map(|(name, value)| (name, value)));
        command.stdin(input).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let out = Written::by(child.stdout.take().unwrap());
        let err = Written::by(child.stderr.take().unwrap());
        Self { input: child.stdin.take(), child, out, err, looked: 0 }
    }

    /// The same with nothing to read from: `</dev/null`.
    pub fn start_silent(arguments: &[&str], variables: &[(String, String)]) -> Self {
        Self::start_with(Stdio::null(), arguments, variables)
    }

    #[track_caller]
    pub fn sees(&mut self, wanted: &str) -> String {
        let (text, end) = self.out.find(self.looked, wanted);
        self.looked = end;
        text
    }

    pub fn types(&mut self, line: &str) {
        self.input.as_mut().unwrap().write_all(format!("{line}\n").as_bytes()).unwrap();
    }

    pub fn end_input(&mut self) {
        self.input = None;
    }

    pub fn signal(&self, name: &str) {
        signal(self.child.id(), name);
    }

    pub fn memory(&self) -> Option<u64> {
        memory(self.child.id())
    }

    /// Waits for its end: its exit status, and what it printed.
    pub fn ended(mut self) -> (i32, String, String) {
        let until = Instant::now() + PATIENCE;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                // The pipes may still hold something.
                for written in [&self.out, &self.err] {
                    while !written.0.0.lock().unwrap().1 {
                        std::thread::sleep(Duration::from_millis(5));
                    }
                }
                return (status.code().unwrap_or(-1), self.out.text(), self.err.text());
            }
            assert!(Instant::now() < until, "it does not end: {}", self.out.text());
            std::thread::sleep(Duration::from_millis(10));
        }
    }
}

impl Drop for Piped {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Sends a signal, such as `TERM`.
fn signal(process: u32, name: &str) {
    let mut kill = Command::new("kill");
    kill.arg(format!("-{name}")).arg(process.to_string());
    assert!(kill.status().unwrap().success());
}

/// Kilobytes of memory that are a process's own; `None` where nobody tells.
fn memory(process: u32) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse().ok()
}

/// Waits until a file has a text like this.
fn file_says(path: &Path, wanted: &str) -> String {
    let until = Instant::now() + PATIENCE;
    loop {
        let text = std::fs::read_to_string(path).unwrap_or_default();
        if text.contains(wanted) {
            return text;
        }
        assert!(Instant::now() < until, "{} has no {wanted:?}: {text}", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}
