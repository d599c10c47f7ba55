//! What an agent without an editor asks of its client: files and commands, inside the working
//! directory only. What changes something is put to the person first.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_agent::{Agent, Confirmation, Error, NotApproved};
use aaep_bridge::acp::Allowed;
use aaep_bridge::{Judgment, Scene, consent, shell, tools};
use serde_json::{Value, json};
use tokio::time::Instant;

use super::terminals::{Terminals, Wanted};

/// The longest file that an agent is given, in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// The largest change of a file, and the longest command, that is asked about, in bytes.
const MAX_ASKED_BYTES: usize = 512 * 1024;

/// Reaches the hub, when something has to be asked.
pub(super) type Hub = Box<dyn Fn() -> Result<Agent, String> + Send + Sync>;

/// An answer, or an error's code and words.
pub(super) type RpcResult = Result<Value, (i32, String)>;

pub(super) struct Desk {
    /// Where the agent works. Nothing outside is read or written for it.
    pub(super) place: PathBuf,
    pub(super) home: Option<PathBuf>,
    pub(super) hub: Hub,
    /// How long an answer is waited for.
    pub(super) timeout: Duration,
    /// Commands that were allowed when the agent asked for them.
    pub(super) allowed: Allowed,
    pub(super) terminals: Terminals,
}

/// Something that needs a yes.
struct Step<'a> {
    about: &'a str,
    tool: &'a str,
    judgment: &'a Judgment,
    consequence: &'a str,
    arguments: String,
}

fn wrong(why: impl Into<String>) -> (i32, String) {
    (-32602, why.into())
}

fn failed(why: impl Into<String>) -> (i32, String) {
    (-32603, why.into())
}

impl Desk {
    /// The answer to a request of the agent; none if somebody else gives it.
    pub(super) async fn answer(&self, method: &str, params: &Value) -> Option<RpcResult> {
        Some(match method {
            // The person is asked through the hub.
            "session/request_permission" => return None,
            "fs/read_text_file" => match self.inside(params) {
                Ok(path) => read(&path, params).map_err(failed),
                Err(why) => Err(wrong(why)),
            },
            "fs/write_text_file" => match self.inside(params) {
                Ok(path) => self.write(&path, params).await.map_err(failed),
                Err(why) => Err(wrong(why)),
            },
            "terminal/create" => self.create(params).await,
            "terminal/output" | "terminal/wait_for_exit" | "terminal/kill" | "terminal/release" => {
                let id = params.get("terminalId").and_then(Value::as_str).unwrap_or_default();
                self.terminals.handle(method, id).await.map_err(wrong)
            }
            other => Err((-32601, format!("{other} is not offered"))),
        })
    }

    /// The file that is meant, if it is inside, wherever links lead.
    fn inside(&self, params: &Value) -> Result<PathBuf, String> {
        let path = params.get("path").and_then(Value::as_str).ok_or("no path was named")?;
        let path = self.place.join(path);
        let folder = path.parent().ok_or("this is no file")?;
        let folder = folder.canonicalize().map_err(|error| error.to_string())?;
        let name = path.file_name().ok_or("this is no file")?;
        let path = folder.join(name);
        // A link in the last place leads somewhere too, also one to nowhere.
        let path = if path.is_symlink() {
            path.canonicalize().map_err(|error| error.to_string())?
        } else {
            path
        };
        match path.starts_with(&self.place) {
            true => Ok(path),
            false => Err("this is outside the working directory".into()),
        }
    }

    fn scene(&self) -> Scene {
        Scene::new(&self.place, self.home.clone())
    }

    async fn write(&self, path: &Path, params: &Value) -> Result<Value, String> {
        let content =
            params.get("content").and_then(Value::as_str).ok_or("no content was given")?;
        if content.len() > MAX_ASKED_BYTES {
            return Err("this is too large to be asked about; make smaller steps".into());
        }
        let arguments = json!({ "file_path": path, "content": content });
        let judgment = tools::judge("Write", &arguments, &self.place, &self.scene());
        let step = Step {
            about: "The agent writes a file.",
            tool: "fs.write_text_file",
            judgment: &judgment,
            consequence: "What is in the file now is replaced.",
            arguments: arguments.to_string(),
        };
        let done = || match fs::write(path, content) {
            Ok(()) => Ok((json!({}), "The file is written.".to_owned())),
            Err(error) => Err(format!("The file could not be written: {error}.")),
        };
        self.after_yes(step, done).await
    }

    /// Starts a command, after a yes to it.
    async fn create(&self, params: &Value) -> RpcResult {
        let wanted = Wanted::read(params).map_err(wrong)?;
        let directory = match &wanted.directory {
            None => self.place.clone(),
            Some(named) => {
                let found = self.place.join(named).canonicalize();
                found.map_err(|error| wrong(format!("the directory: {error}")))?
            }
        };
        if !directory.starts_with(&self.place) {
            return Err(wrong("this is outside the working directory"));
        }
        let line = wanted.line();
        if line.len() > MAX_ASKED_BYTES {
            return Err(failed("this is too long to be asked about; make smaller steps"));
        }
        let started = || match self.terminals.start(&wanted, &directory) {
            Ok(id) => Ok((json!({ "terminalId": id }), "The command has begun.".to_owned())),
            Err(why) => Err(format!("The command could not be started: {why}.")),
        };
        // Asked about a moment ago, in the same words, at the same place, with nothing added.
        let as_allowed = directory == self.place
            && wanted.environment.is_empty()
            && wanted.spoken().iter().any(|line| self.allowed.take(line));
        if as_allowed {
            return started().map(|(result, _)| result).map_err(failed);
        }
        let judgment = shell::judge(&line, &directory, &self.scene());
        let step = Step {
            about: "The agent runs a command.",
            tool: "terminal.create",
            judgment: &judgment,
            consequence: judgment.consequence(),
            arguments: json!({ "command": line, "directory": directory }).to_string(),
        };
        self.after_yes(step, started).await.map_err(failed)
    }

    /// Does something once the person has said yes to it.
    async fn after_yes(
        &self,
        step: Step<'_>,
        work: impl FnOnce() -> Result<(Value, String), String>,
    ) -> Result<Value, String> {
        let unasked = |why: String| format!("Nobody could be asked, so it is not done: {why}");
        let agent = (self.hub)().map_err(unasked)?;
        let answer = async {
            let session = agent.session(step.about).open().await;
            let session = session.map_err(|error| unasked(error.to_string()))?;
            let seconds = u32::try_from(self.timeout.as_secs()).unwrap_or(u32::MAX);
            let seconds = seconds.clamp(1, 86_400);
            let action = step.judgment.action();
            let request = Confirmation::irreversible(step.tool, action, step.consequence);
            let request = request.risk(step.judgment.risk()).arguments_json(step.arguments);
            let until = Instant::now() + Duration::from_secs(seconds.into());
            let parked = session.park((), request.timeout_seconds(seconds)).await;
            let parked = parked.map_err(|error| unasked(error.to_string()))?;
            let decided = consent::decision(&parked, until).await;
            let approval = decided.map_err(|refusal| match refusal {
                Error::NotApproved(NotApproved::Rejected { .. }) => {
                    "The person said no.".to_owned()
                }
                Error::NotApproved(NotApproved::TimedOut) => {
                    "Nobody answered in time, so it is not done.".to_owned()
                }
                other => format!("It is not done: {other}"),
            })?;
            let invoked = session.invoke(parked, approval).await;
            let ((), running) = invoked.map_err(|error| unasked(error.to_string()))?;
            let done = work();
            let _ = match &done {
                Ok((_, words)) => running.succeed(words.as_str()).await,
                Err(why) => running.fail(why.as_str()).await,
            };
            let _ = session.complete("The agent goes on.").await;
            done.map(|(result, _)| result)
        }
        .await;
        agent.close().await;
        answer
    }
}

fn read(path: &Path, params: &Value) -> Result<Value, String> {
    let mut text = String::new();
    let file = fs::File::open(path).map_err(|error| error.to_string())?;
    file.take(MAX_FILE_BYTES + 1).read_to_string(&mut text).map_err(|error| error.to_string())?;
    if text.len() as u64 > MAX_FILE_BYTES {
        return Err("this file is longer than 10 MiB".into());
    }
    let number = |name: &str| params.get(name).and_then(Value::as_u64);
    let count = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
    let from = number("line").map_or(0, |line| count(line).saturating_sub(1));
    let most = number("limit").map_or(usize::MAX, count);
    let lines: String = text.split_inclusive('\n').skip(from).take(most).collect();
    Ok(json!({ "content": lines }))
}
