//! Commands that run for an agent: started, read, waited for, ended.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{ExitStatus, Stdio};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt};
use tokio::process::Command;
use tokio::sync::watch;

/// Commands that may run at the same time.
const RUNNING: usize = 16;

/// What is kept of a command's output, in bytes: as much as the agent wants, and no more than this.
const MAX_OUTPUT_BYTES: usize = 4 << 20;

/// How much output is kept if the agent does not say.
const USUAL_OUTPUT_BYTES: usize = 1 << 20;

/// Shells that take a command line after `-c`.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash"];

/// A command that an agent wants.
#[derive(Debug)]
pub(super) struct Wanted {
    program: String,
    arguments: Vec<String>,
    pub(super) environment: Vec<(String, String)>,
    pub(super) directory: Option<String>,
    output_bytes: usize,
}

impl Wanted {
    pub(super) fn read(params: &Value) -> Result<Self, String> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let list = |name: &str| match params.get(name) {
            None | Some(Value::Null) => Ok(Vec::new()),
            Some(Value::Array(list)) => Ok(list.clone()),
            Some(_) => Err(format!("{name} is no list")),
        };
        let program = params.get("command").and_then(text).filter(|program| !program.is_empty());
        let arguments: Option<Vec<_>> = list("args")?.iter().map(text).collect();
        let environment: Option<Vec<_>> = list("env")?
            .iter()
            .map(|entry| Some((text(entry.get("name")?)?, text(entry.get("value")?)?)))
            .collect();
        let wanted = Self {
            program: program.ok_or("no command was named")?,
            arguments: arguments.ok_or("an argument is no text")?,
            environment: environment.ok_or("a variable has no name or no value")?,
            directory: params.get("cwd").and_then(text),
            output_bytes: params
                .get("outputByteLimit")
                .and_then(Value::as_u64)
                .map_or(USUAL_OUTPUT_BYTES, |most| usize::try_from(most).unwrap_or(usize::MAX))
                .min(MAX_OUTPUT_BYTES),
        };
        let set = wanted.environment.iter().flat_map(|(name, value)| [name, value]);
        let has_zero = |text: &String| text.contains('\0');
        if set.chain(&wanted.arguments).chain([&wanted.program]).any(has_zero) {
            return Err("a text has a zero character in it".into());
        }
        let sound = |name: &str| !name.is_empty() && !name.contains(['=', '\'', ' ', '\n']);
        if !wanted.environment.iter().all(|(name, _)| sound(name)) {
            return Err("a variable has no proper name".into());
        }
        Ok(wanted)
    }

    /// The command as one line of a shell, with everything that is set for it.
    pub(super) fn line(&self) -> String {
        let set = self.environment.iter().map(|(name, value)| format!("{name}={}", quoted(value)));
        let words = [&self.program].into_iter().chain(&self.arguments).map(|word| quoted(word));
        set.chain(words).collect::<Vec<_>>().join(" ")
    }

    /// The ways in which an agent may have named this command when it asked for it.
    pub(super) fn spoken(&self) -> Vec<String> {
        let mut ways = vec![self.line()];
        let plain: Vec<_> = [&self.program].into_iter().chain(&self.arguments).cloned().collect();
        if plain.iter().all(|word| *word == quoted(word)) {
            ways.push(plain.join(" "));
        }
        let shell = self.program.rsplit('/').next().unwrap_or_default();
        if let [flag, line] = &self.arguments[..]
            && SHELLS.contains(&shell)
            && matches!(flag.as_str(), "-c" | "-lc")
        {
            ways.push(line.clone());
        }
        ways.dedup();
        ways
    }
}

/// A word as a shell reads it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@%+,".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', r"'\''")),
    }
}

/// The end of what a command wrote.
#[derive(Debug, Default)]
struct Tail {
    bytes: Vec<u8>,
    is_cut: bool,
}

impl Tail {
    fn push(&mut self, more: &[u8], most: usize) {
        self.bytes.extend_from_slice(more);
        let mut surplus = self.bytes.len().saturating_sub(most);
        if surplus == 0 {
            return;
        }
        // Not in the middle of a character.
        while self.bytes.get(surplus).is_some_and(|byte| byte & 0xc0 == 0x80) {
            surplus += 1;
        }
        self.bytes.drain(..surplus.min(self.bytes.len()));
        self.is_cut = true;
    }
}

/// How a command ended; none while it runs.
type Ended = Option<Value>;

#[derive(Debug)]
struct Terminal {
    output: Arc<Mutex<Tail>>,
    ended: watch::Receiver<Ended>,
    process: Option<u32>,
}

/// The commands of one agent. Those that still run are ended with it.
#[derive(Debug, Default)]
pub(super) struct Terminals {
    all: Mutex<(u64, BTreeMap<String, Terminal>)>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Terminals {
    /// Starts a command in this directory, and names its terminal.
    pub(super) fn start(&self, wanted: &Wanted, directory: &Path) -> Result<String, String> {
        let mut all = lock(&self.all);
        if all.1.len() >= RUNNING {
            return Err("too many commands run; release some".into());
        }
        let mut command = Command::new(&wanted.program);
        command.args(&wanted.arguments).current_dir(directory).stdin(Stdio::null());
        command.envs(wanted.environment.iter().map(|(name, value)| (name, value)));
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        // What it starts ends with it.
        #[cfg(unix)]
        command.process_group(0);
        let mut child = command.spawn().map_err(|error| error.to_string())?;
        let process = child.id();
        let output = Arc::new(Mutex::new(Tail::default()));
        let (say, ended) = watch::channel(None);
        let most = wanted.output_bytes;
        let out = child.stdout.take().map(|pipe| tokio::spawn(drain(pipe, output.clone(), most)));
        let err = child.stderr.take().map(|pipe| tokio::spawn(drain(pipe, output.clone(), most)));
        tokio::spawn(async move {
            let status = child.wait().await;
            // What was written before the end is read first, unless somebody else keeps it open.
            for reader in [out, err].into_iter().flatten() {
                let _ = tokio::time::timeout(std::time::Duration::from_secs(1), reader).await;
            }
            say.send_replace(Some(status.map_or(Value::Null, how)));
        });
        all.0 += 1;
        let id = format!("terminal-{}", all.0);
        all.1.insert(id.clone(), Terminal { output, ended, process });
        Ok(id)
    }

    /// Answers a request about a terminal.
    pub(super) async fn handle(&self, method: &str, id: &str) -> Result<Value, String> {
        let unknown = || "there is no such terminal".to_owned();
        match method {
            "terminal/output" => {
                let all = lock(&self.all);
                let terminal = all.1.get(id).ok_or_else(unknown)?;
                let output = lock(&terminal.output);
                let mut answer = json!({ "output": String::from_utf8_lossy(&output.bytes),
                    "truncated": output.is_cut });
                if let Some(status) = &*terminal.ended.borrow() {
                    answer["exitStatus"] = status.clone();
                }
                Ok(answer)
            }
            "terminal/wait_for_exit" => {
                let found = lock(&self.all).1.get(id).map(|terminal| terminal.ended.clone());
                let mut ended = found.ok_or_else(unknown)?;
                let status = ended.wait_for(Option::is_some).await.map_err(|_| unknown())?;
                Ok(status.clone().unwrap_or_default())
            }
            "terminal/kill" => {
                lock(&self.all).1.get(id).ok_or_else(unknown)?.kill();
                Ok(json!({}))
            }
            _ => {
                lock(&self.all).1.remove(id).ok_or_else(unknown)?;
                Ok(json!({}))
            }
        }
    }
}

impl Terminal {
    /// Ends the command and what it started.
    fn kill(&self) {
        if self.ended.borrow().is_some() {
            return;
        }
        #[cfg(unix)]
        if let Some(group) = self
            .process
            .and_then(|process| i32::try_from(process).ok())
            .and_then(rustix::process::Pid::from_raw)
        {
            let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.kill();
    }
}

async fn drain(mut pipe: impl AsyncRead + Unpin, output: Arc<Mutex<Tail>>, most: usize) {
    let mut buffer = vec![0; 16 * 1024];
    while let Ok(read @ 1..) = pipe.read(&mut buffer).await {
        lock(&output).push(&buffer[..read], most);
    }
}

fn how(status: ExitStatus) -> Value {
    #[cfg(unix)]
    let signal = std::os::unix::process::ExitStatusExt::signal(&status);
    #[cfg(not(unix))]
    let signal: Option<i32> = None;
    json!({ "exitCode": status.code(), "signal": signal.map(|signal| signal.to_string()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(params: Value) -> Result<Wanted, String> {
        Wanted::read(&params)
    }

    #[test]
    fn a_command_is_named_with_everything_that_is_set_for_it() {
        let touch = json!({ "command": "touch", "args": ["a b", "it's"],
            "env": [{ "name": "LD_PRELOAD", "value": "/tmp/x.so" }] });
        assert_eq!(wanted(touch).unwrap().line(), r"LD_PRELOAD=/tmp/x.so touch 'a b' 'it'\''s'");
        let shell = wanted(json!({ "command": "/bin/bash", "args": ["-lc", "rm -r x"] })).unwrap();
        assert!(shell.spoken().contains(&"rm -r x".to_owned()));
        let odd = wanted(json!({ "command": "echo", "args": ["a; rm -r x"] })).unwrap();
        assert!(!odd.spoken().contains(&"echo a; rm -r x".to_owned()), "{:?}", odd.spoken());
        for bad in [
            json!({}),
            json!({ "command": "" }),
            json!({ "command": "x", "args": "y" }),
            json!({ "command": "x", "args": [1] }),
            json!({ "command": "x\0y" }),
            json!({ "command": "x", "env": [{ "name": "A'B", "value": "" }] }),
        ] {
            assert!(wanted(bad.clone()).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_end_of_the_output_is_kept_in_whole_characters() {
        let mut tail = Tail::default();
        for _ in 0..100 {
            tail.push("äö".as_bytes(), 7);
        }
        assert!(tail.is_cut && tail.bytes.len() <= 7);
        assert_eq!(std::str::from_utf8(&tail.bytes).unwrap(), "öäö");
    }
}
