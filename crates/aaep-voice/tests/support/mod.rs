//! A real Speech Dispatcher whose only output module speaks into a file.
#![allow(dead_code, missing_docs)] // every test binary uses its own part of it

pub mod brltty;

#[path = "../../../../testing/skipped.rs"]
mod skipped;

use skipped::skipped;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a test waits for what has to come.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Whether to try this program. Speech takes its time, so that is done where it is asked for
/// (`AAEP_VOICES=required`, as `cargo xtask voices` sets it); there its absence is a failure.
pub fn installed(program: &str) -> bool {
    if std::env::var("AAEP_VOICES").is_ok_and(|value| value == "required") {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
        assert!(found, "{program} is not installed");
        return true;
    }
    skipped(&format!("`cargo xtask voices` tries {program}."));
    false
}

/// What was heard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Milliseconds since 1970.
    pub at: u64,
    /// `begin`, `end` or `cut`.
    pub kind: String,
    pub language: String,
    pub pitch: String,
    pub rate: String,
    pub punctuation: String,
    /// The voice that was chosen; `NULL` is the language's own.
    pub voice: String,
    pub text: String,
}

/// The log of what was heard.
#[derive(Clone)]
pub struct Log(pub PathBuf);

impl Log {
    pub fn all(&self) -> Vec<LogEntry> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        // The last line may still be on its way.
        let whole = text.rfind('\n').map_or("", |end| &text[..end]);
        whole.lines().filter_map(heard).collect()
    }

    /// Waits until something is heard that fits.
    #[track_caller]
    pub fn wait(&self, what: &str, fits: impl Fn(&LogEntry) -> bool) -> LogEntry {
        let until = Instant::now() + PATIENCE;
        loop {
            let all = self.all();
            if let Some(found) = all.iter().find(|heard| fits(heard)) {
                return found.clone();
            }
            assert!(Instant::now() < until, "{what} was not heard, but {all:#?}");
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    #[track_caller]
    pub fn ends(&self, text: &str) -> LogEntry {
        self.wait(text, |heard| heard.kind == "end" && heard.text.contains(text))
    }

    #[track_caller]
    pub fn begins(&self, text: &str) -> LogEntry {
        self.wait(text, |heard| heard.kind == "begin" && heard.text.contains(text))
    }

    /// The texts of this kind, in order.
    pub fn texts(&self, kind: &str) -> Vec<String> {
        let of_kind = self.all().into_iter().filter(|heard| heard.kind == kind);
        of_kind.map(|heard| heard.text).collect()
    }
}

fn heard(line: &str) -> Option<LogEntry> {
    let mut fields = line.splitn(8, '\t');
    let mut next = || fields.next().map(str::to_owned);
    let (at, kind, language, pitch) = (next()?, next()?, next()?, next()?);
    let (rate, punctuation, voice, text) = (next()?, next()?, next()?, next()?);
    // Tags are the server's own: what was sent has its brackets escaped.
    let mut plain = String::new();
    for piece in text.split('<') {
        plain.push_str(piece.split_once('>').map_or(piece, |(_, after)| after));
    }
    let text = plain.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let at = at.parse().ok()?;
    Some(LogEntry { at, kind, language, pitch, rate, punctuation, voice, text })
}

/// Writes a program. Another process does: if we had the file open while another test starts a program,
/// that one would have it open too for a moment, and the system runs no file that is open for writing.
pub fn program(path: &Path, text: &str) {
    let mut command = Command::new("sh");
    command.args(["-c", "cat > \"$0\" && chmod 755 \"$0\""]).arg(path).stdin(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    assert!(child.wait().unwrap().success());
}

/// Writes the module and a configuration that has only this one.
pub fn configure(directory: &Path) {
    let module = directory.join("heard.sh");
    program(&module, include_str!("heard.sh"));
    let configuration = format!(
        "LogLevel 1\nDefaultLanguage en\nSymbolsPreproc \"char\"\n\
         AddModule \"heard\" \"{}\" \"\"\nDefaultModule heard\n",
        module.display()
    );
    std::fs::write(directory.join("speechd.conf"), configuration).unwrap();
}

/// A server of its own.
pub struct Dispatcher {
    child: Child,
    directory: PathBuf,
    words_a_minute: u32,
}

impl Dispatcher {
    pub fn start(directory: &Path, words_a_minute: u32) -> Self {
        configure(directory);
        let child = spawn(directory, words_a_minute);
        Self { child, directory: directory.to_owned(), words_a_minute }
    }

    pub fn address(&self) -> String {
        format!("unix_socket:{}", self.socket().display())
    }

    pub fn socket(&self) -> PathBuf {
        self.directory.join("speechd.sock")
    }

    pub fn log(&self) -> Log {
        Log(self.directory.join("heard.log"))
    }

    /// Kills the server in the middle of whatever it does.
    pub fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn restart(&mut self) {
        let _ = std::fs::remove_file(self.socket());
        self.child = spawn(&self.directory, self.words_a_minute);
    }
}

fn spawn(directory: &Path, words_a_minute: u32) -> Child {
    let socket = directory.join("speechd.sock");
    let mut command = Command::new("speech-dispatcher");
    command.args(["-s", "-t", "0", "-l", "1", "-c", "unix_socket"]);
    command.arg("-S").arg(&socket).arg("-L").arg(directory).arg("-C").arg(directory);
    command.arg("-P").arg(directory.join("speechd.pid"));
    command.env("HEARD_LOG", directory.join("heard.log"));
    command.env("HEARD_WPM", words_a_minute.to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let child = command.spawn().unwrap();
    let until = Instant::now() + PATIENCE;
    while std::os::unix::net::UnixStream::connect(&socket).is_err() {
        assert!(Instant::now() < until, "Speech Dispatcher does not start");
        std::thread::sleep(Duration::from_millis(10));
    }
    child
}

impl Drop for Dispatcher {
    fn drop(&mut self) {
        // It stops its module when it is asked to, and not when it is killed.
        let _ = Command::new("kill").arg(self.child.id().to_string()).status();
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(10));
        }
        self.kill();
    }
}
