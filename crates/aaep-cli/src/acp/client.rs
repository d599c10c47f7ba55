//! Our own client of the Agent Client Protocol: words go in, and everything that comes of them is told
//! through the hub. It shows nothing itself; what the agent asks of it is answered at the desk.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream};
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use super::desk::Desk;

/// Requests of the agent that are answered at the same time.
const ANSWERED: usize = 64;

pub(super) struct Client {
    pub(super) to: Arc<Mutex<DuplexStream>>,
    pub(super) from: BufReader<DuplexStream>,
    pub(super) desk: Arc<Desk>,
    /// Answers that are being found.
    pub(super) tasks: JoinSet<()>,
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
    /// Agents that are not offered writing, or terminals, do it themselves, after they asked. What they
    /// asked before they run it in a terminal is not asked again.
    pub(super) async fn introduce(&mut self, terminals: bool) -> Result<Introduction, Failed> {
        let params = json!({
            "protocolVersion": 1,
            "clientCapabilities": { "fs": { "readTextFile": true, "writeTextFile": false }, "terminal": terminals },
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
        let mut listed = Vec::new();
        let mut params = json!({ "cwd": self.desk.place });
        loop {
            let said = self.call("session/list", &params).await?;
            let sessions = said.get("sessions").and_then(Value::as_array).into_iter().flatten();
            let read = |session: &Value| {
                let text = |name: &str| session.get(name).and_then(Value::as_str);
                let title = text("title").unwrap_or("without a name").to_owned();
                Some(Remembered { id: text("sessionId")?.to_owned(), title })
            };
            let before = listed.len();
            listed.extend(sessions.filter_map(read).take(1000 - before));
            // A page without sessions is the last one, whatever it says.
            match said.get("nextCursor").filter(|next| next.is_string()) {
                Some(next) if listed.len() > before && listed.len() < 1000 => {
                    params["cursor"] = next.clone();
                }
                _ => return Ok(Some(listed)),
            }
        }
    }

    /// A new session, or an earlier one taken up again.
    pub(super) async fn session(
        &mut self,
        agent: &Introduction,
        earlier: Option<&str>,
    ) -> Result<String, Failed> {
        let mut params = json!({ "cwd": self.desk.place, "mcpServers": [] });
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

    /// Answers a request of the agent, beside everything else; what is no request is told by others.
    pub(super) async fn heard(&mut self, said: &Value) -> Result<(), Failed> {
        let (Some(method), Some(id)) = (said.get("method").and_then(Value::as_str), said.get("id"))
        else {
            return Ok(());
        };
        while self.tasks.try_join_next().is_some() {}
        if self.tasks.len() >= ANSWERED {
            let error = json!({ "code": -32603, "message": "too much is asked at once" });
            return self.say(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await;
        }
        let (method, id) = (method.to_owned(), id.clone());
        let params = said.get("params").cloned().unwrap_or_default();
        let (desk, to) = (self.desk.clone(), self.to.clone());
        self.tasks.spawn(async move {
            let Some(answer) = desk.answer(&method, &params).await else { return };
            let (name, value) = match answer {
                Ok(result) => ("result", result),
                Err((code, why)) => ("error", json!({ "code": code, "message": why })),
            };
            let line = format!("{}\n", json!({ "jsonrpc": "2.0", "id": id, name: value }));
            let _ = to.lock().await.write_all(line.as_bytes()).await;
        });
        Ok(())
    }

    async fn say(&mut self, message: &Value) -> Result<(), Failed> {
        let line = format!("{message}\n");
        self.to.lock().await.write_all(line.as_bytes()).await.map_err(|_| Failed::Gone)
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
}
