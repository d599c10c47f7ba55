//! Programs that are found and started.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::host::Host;

/// How long a program may take to tell its version.
const VERSION_TAKES: Duration = Duration::from_secs(15);

/// The longest output that is kept, in bytes.
const MAX_OUTPUT: u64 = 1 << 20;

/// A program that is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Installed {
    /// Where it is.
    pub path: PathBuf,
    /// Its version, if it says one.
    pub version: Option<[u32; 3]>,
}

impl Installed {
    /// Its version for people.
    pub fn version_text(&self) -> String {
        self.version.map_or("of an unknown version".into(), |[a, b, c]| format!("{a}.{b}.{c}"))
    }
}

/// The program, if it is in one of these directories.
pub fn find(host: Host, path: &std::ffi::OsStr) -> Option<Installed> {
    let program = std::env::split_paths(path)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(host.id()))
        .find(|program| is_program(program))?;
    let mut command = Command::new(&program);
    command.arg("--version");
    let version = run(command, b"", VERSION_TAKES).ok().and_then(|ended| version(&ended.out));
    Some(Installed { path: program, version })
}

pub(super) fn is_program(path: &Path) -> bool {
    let Ok(found) = path.metadata() else { return false };
    #[cfg(unix)]
    let runs = std::os::unix::fs::PermissionsExt::mode(&found.permissions()) & 0o111 != 0;
    #[cfg(not(unix))]
    let runs = true;
    found.is_file() && runs
}

/// The first three numbers with dots between them.
fn version(text: &str) -> Option<[u32; 3]> {
    text.split(|c: char| !c.is_ascii_digit() && c != '.').find_map(|word| {
        let mut parts = word.split('.').map(|part| part.parse::<u32>().ok());
        Some([parts.next()??, parts.next()??, parts.next()??])
    })
}

/// How long a program may take to end once nobody talks with it.
const ENDS: Duration = Duration::from_secs(8);

/// A program that talks in lines of JSON.
pub(super) struct Lines {
    child: Child,
    to: Option<ChildStdin>,
    from: Receiver<Value>,
}

impl Lines {
    pub(super) fn start(mut command: Command) -> io::Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let (to, from) = (child.stdin.take(), child.stdout.take());
        let (send, receive) = mpsc::sync_channel(64);
        thread::spawn(move || {
            for line in from.into_iter().flat_map(|from| BufReader::new(from).lines()) {
                let Ok(line) = line else { return };
                let Ok(value) = serde_json::from_str(&line) else { continue };
                if send.send(value).is_err() {
                    return;
                }
            }
        });
        Ok(Self { child, to, from: receive })
    }

    pub(super) fn say(&mut self, message: &Value) -> io::Result<()> {
        match &mut self.to {
            Some(to) => to.write_all(format!("{message}\n").as_bytes()),
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    /// The next message; none if there is none until then.
    pub(super) fn hear(&self, until: Instant) -> Option<Value> {
        self.from.recv_timeout(until.saturating_duration_since(Instant::now())).ok()
    }
}

impl Drop for Lines {
    fn drop(&mut self) {
        // It may have started others, which it ends itself.
        self.to = None;
        let begun = Instant::now();
        while let Ok(None) = self.child.try_wait() {
            if begun.elapsed() > ENDS {
                let _ = self.child.kill();
                let _ = self.child.wait();
                return;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
}

pub(super) struct Ended {
    /// The exit status; none if it was killed, by us or by others.
    pub(super) code: Option<i32>,
    pub(super) out: String,
    pub(super) err: String,
}

/// Runs a program with this on its standard input, no longer than this.
pub(super) fn run(mut command: Command, input: &[u8], time: Duration) -> io::Result<Ended> {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    let (stdin, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let input = input.to_vec();
    thread::spawn(move || stdin.map(|mut stdin| stdin.write_all(&input)));
    let (out, err) = (collect(stdout), collect(stderr));
    let begun = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status);
        }
        if begun.elapsed() > time {
            let _ = child.kill();
            let _ = child.wait();
            break None;
        }
        thread::sleep(Duration::from_millis(5));
    };
    let text = |from: std::sync::mpsc::Receiver<String>| {
        from.recv_timeout(Duration::from_secs(2)).unwrap_or_default()
    };
    Ok(Ended { code: status.and_then(|status| status.code()), out: text(out), err: text(err) })
}

/// A helper that outlives its program may hold the pipe open: nobody waits for it.
fn collect(from: Option<impl Read + Send + 'static>) -> std::sync::mpsc::Receiver<String> {
    let (send, receive) = std::sync::mpsc::sync_channel(1);
    thread::spawn(move || {
        let mut bytes = Vec::new();
        if let Some(from) = from {
            let mut from = from.take(MAX_OUTPUT);
            let _ = from.read_to_end(&mut bytes);
            let _ = io::copy(&mut from.into_inner(), &mut io::sink());
        }
        let _ = send.send(String::from_utf8_lossy(&bytes).into_owned());
    });
    receive
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_programs_write_them() {
        for (text, expected) in [
            ("2.1.325 (Claude Code)", Some([2, 1, 325])),
            ("codex-cli 0.166.0\n", Some([0, 166, 0])),
            ("0.61.0", Some([0, 61, 0])),
            ("GitHub Copilot CLI 1.0.102.", Some([1, 0, 102])),
            ("v1.2", None),
            ("", None),
            ("99999999999.1.1", None),
        ] {
            assert_eq!(version(text), expected, "{text}");
        }
    }
}
