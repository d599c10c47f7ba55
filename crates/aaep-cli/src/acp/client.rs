//! Our own client of the Agent Client Protocol: words go in, and everything that comes of them is told
//! through the hub. It shows nothing itself, and answers only what is about files.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use aaep_agent::{Agent, Confirmation};
use aaep_bridge::{Scene, tools};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};

/// The longest file that an agent is given, in bytes.
const MAX_FILE_BYTES: u64 = 10 << 20;

/// The largest change of a file that is asked about, in bytes.
const MAX_ASKED_BYTES: usize = 512 * 1024;

/// Asks the hub, when something has to be asked.
pub(super) type Hub = Box<dyn Fn() -> Result<Agent, String> + Send + Sync>;

pub(super) struct Client {
    pub(super) to: DuplexStream,
    pub(super) from: BufReader<DuplexStream>,
    /// Where the agent works. Nothing outside is read or written for it.
    pub(super) place: PathBuf,
    pub(super) home: Option<PathBuf>,
    pub(super) hub: Hub,
    pub(super) last: u64,
    /// What was read of a line so far.
    pub(super) partial: Vec<u8>,
}

/// Why a request came to nothing.
#[derive(Debug)]
pub(super) enum Failed {
    /// The agent said no, in these words.
    Refused(String),
    /// The agent is gone.
    Gone,
}

/// What an agent said of itself.
#[derive(Debug)]
pub(super) struct Introduction {
    abilities: Value,
    /// How one can log in.
    pub(super) logins: Vec<String>,
}

impl Introduction {
    fn can(&self, pointer: &str) -> bool {
        self.abilities.pointer(pointer).is_some_and(|value| value != &json!(false))
    }
}

/// A session that an agent remembers.
#[derive(Debug)]
pub(super) struct Remembered {
    pub(super) id: String,
    pub(super) title: String,
}

impl Client {
    pub(super) async fn introduce(&mut self) -> Result<Introduction, Failed> {
        // Agents that are not offered writing do it themselves, after they asked.
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": false }, "terminal": false },
            "clientInfo": { "name": "aaep", "title": "aaep", "version": env!("CARGO_PKG_VERSION") },
        });
        let said = self.call("initialize", &params).await?;
        let logins = said.get("authMethods").and_then(Value::as_array).into_iter().flatten();
        let logins = logins.filter_map(|way| way.get("name")?.as_str().map(str::to_owned));
        Ok(Introduction {
            logins: logins.take(16).collect(),
            abilities: said.get("agentCapabilities").cloned().unwrap_or_default(),
        })
    }

    /// Sessions that the agent remembers of this place; none if it cannot list them.
    pub(super) async fn sessions(
        &mut self,
        agent: &Introduction,
    ) -> Result<Option<Vec<Remembered>>, Failed> {
        if !agent.can("/sessionCapabilities/list") {
            return Ok(None);
        }
        let said = self.call("session/list", &json!({ "cwd": self.place })).await?;
        let sessions = said.get("sessions").and_then(Value::as_array).into_iter().flatten();
        let read = |session: &Value| {
            let text = |name: &str| session.get(name).and_then(Value::as_str);
            let title = text("title").unwrap_or("without a name").to_owned();
            Some(Remembered { id: text("sessionId")?.to_owned(), title })
        };
        Ok(Some(sessions.filter_map(read).take(1000).collect()))
    }

    /// A new session, or an earlier one taken up again.
    pub(super) async fn session(
        &mut self,
        agent: &Introduction,
        earlier: Option<&str>,
    ) -> Result<String, Failed> {
        let mut params = json!({ "cwd": self.place, "mcpServers": [] });
        let Some(earlier) = earlier else {
            let said = self.call("session/new", &params).await?;
            let id = said.get("sessionId").and_then(Value::as_str);
            return id
                .map(str::to_owned)
                .ok_or_else(|| Failed::Refused("it named no session".into()));
        };
        params["sessionId"] = json!(earlier);
        let method = if agent.can("/sessionCapabilities/resume") {
            "session/resume"
        } else if agent.can("/loadSession") {
            "session/load"
        } else {
            return Err(Failed::Refused("it cannot take sessions up again".into()));
        };
        self.call(method, &params).await?;
        Ok(earlier.to_owned())
    }

    pub(super) async fn prompt(&mut self, session: &str, text: &str) -> Result<(), Failed> {
        let prompt = json!([{ "type": "text", "text": text }]);
        let params = json!({ "sessionId": session, "prompt": prompt });
        self.call("session/prompt", &params).await.map(drop)
    }

    /// Asks, and answers what it is asked meanwhile.
    async fn call(&mut self, method: &str, params: &Value) -> Result<Value, Failed> {
        self.last += 1;
        let id = json!(self.last);
        self.say(&json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params }))
            .await?;
        loop {
            let said = self.hear().await?;
            let is_answer = said.get("method").is_none() && said.get("id") == Some(&id);
            if !is_answer {
                self.heard(&said).await?;
                continue;
            }
            return match said.get("result") {
                Some(result) => Ok(result.clone()),
                None => {
                    let why = said.pointer("/error/message").and_then(Value::as_str);
                    Err(Failed::Refused(why.unwrap_or("it gave no reason").to_owned()))
                }
            };
        }
    }

    /// Answers a request of the agent; everything else is told by others.
    pub(super) async fn heard(&mut self, said: &Value) -> Result<(), Failed> {
        let (Some(method), Some(id)) = (said.get("method").and_then(Value::as_str), said.get("id"))
        else {
            return Ok(());
        };
        let params = said.get("params").cloned().unwrap_or_default();
        let Some(answer) = self.answer(method, &params).await else { return Ok(()) };
        let (name, value) = match answer {
            Ok(result) => ("result", result),
            Err((code, why)) => ("error", json!({ "code": code, "message": why })),
        };
        self.say(&json!({ "jsonrpc": "2.0", "id": id, name: value })).await
    }

    async fn say(&mut self, message: &Value) -> Result<(), Failed> {
        let line = format!("{message}\n");
        self.to.write_all(line.as_bytes()).await.map_err(|_| Failed::Gone)
    }

    /// The next message. What is none is passed over. May be given up and called again.
    pub(super) async fn hear(&mut self) -> Result<Value, Failed> {
        loop {
            let read = self.from.read_until(b'\n', &mut self.partial).await;
            let line = std::mem::take(&mut self.partial);
            if read.is_err() || line.is_empty() {
                return Err(Failed::Gone);
            }
            if let Ok(message) = serde_json::from_slice(&line) {
                return Ok(message);
            }
        }
    }

    /// The answer to a request of the agent; none if somebody else gives it.
    async fn answer(
        &mut self,
        method: &str,
        params: &Value,
    ) -> Option<Result<Value, (i32, String)>> {
        let wrong = |why: String| Err((-32602, why));
        match method {
            // The person is asked through the hub.
            "session/request_permission" => None,
            "fs/read_text_file" => Some(match self.inside(params) {
                Ok(path) => read(&path, params).map_err(|why| (-32603, why)),
                Err(why) => wrong(why),
            }),
            "fs/write_text_file" => Some(match self.inside(params) {
                Ok(path) => self.write(&path, params).await.map_err(|why| (-32603, why)),
                Err(why) => wrong(why),
            }),
            other => Some(Err((-32601, format!("{other} is not offered")))),
        }
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

    async fn write(&self, path: &Path, params: &Value) -> Result<Value, String> {
        let content =
            params.get("content").and_then(Value::as_str).ok_or("no content was given")?;
        if content.len() > MAX_ASKED_BYTES {
            return Err("this is too large to be asked about; make smaller steps".into());
        }
        let arguments = json!({ "file_path": path, "content": content });
        let scene = Scene::new(&self.place, self.home.clone());
        let judgment = tools::judge("Write", &arguments, &self.place, &scene);
        let unasked = |why: String| format!("Nobody could be asked, so it is not done: {why}");
        let agent = (self.hub)().map_err(unasked)?;
        let answer = async {
            let session = agent.session("The agent writes a file.").open().await;
            let session = session.map_err(|error| unasked(error.report()))?;
            let request = Confirmation::irreversible(
                "fs.write_text_file",
                judgment.action(),
                "What is in the file now is replaced.",
            );
            let request = request.risk(judgment.risk()).arguments_json(arguments.to_string());
            let parked = session.park((), request).await;
            let parked = parked.map_err(|error| unasked(error.report()))?;
            let approval = parked.decision().await.map_err(|_| "The person said no.".to_owned())?;
            let invoked = session.invoke(parked, approval).await;
            let ((), running) = invoked.map_err(|error| unasked(error.report()))?;
            let done = fs::write(path, content).map_err(|error| error.to_string());
            let _ = match &done {
                Ok(()) => running.succeed("The file is written.").await,
                Err(why) => running.fail(format!("The file could not be written: {why}.")).await,
            };
            let _ = session.complete("The agent has written a file.").await;
            done.map(|()| json!({}))
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
