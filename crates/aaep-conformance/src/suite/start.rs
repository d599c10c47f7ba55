//! How sessions are begun, and the agent that the suite plays when it begins them itself.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::time::Duration;

use aaep_transport::client::{HttpClient, Options, SessionSecret, Token};
use serde_json::{Value, json};
use tokio::time::sleep;

use super::ear::is;
use super::target::{Script, Start, Target};
use super::wire::{Line, Wire};

/// Seconds that a short request waits.
const SHORT: u64 = 2;
/// Pieces of text in a flood.
const PIECES: usize = 40;

pub(super) struct Starter {
    start: Start,
    /// For requests beside the stream; each session has a connection of its own at a time. Nothing is said
    /// to a target that is only waited for.
    client: Option<Arc<HttpClient>>,
    /// A hub lets nobody take the name of somebody else's agent, so every run has its own.
    agent_id: String,
}

impl Starter {
    pub(super) fn new(target: &Target, wire: &Wire) -> Result<Self, String> {
        let mut options = wire.options();
        if let Start::AgentApi { token } = &target.start {
            options = Options { token: None, session_secret: None, ..options };
            match token {
                Some(token) => {
                    let token = Token::parse(token).map_err(|error| error.to_string())?;
                    options.token = Some(token);
                }
                None => {
                    let secret = SessionSecret::generate().map_err(|error| error.to_string())?;
                    options.session_secret = Some(secret);
                }
            }
            // A wait for a decision is longer than one for anything else.
            options.answer = Duration::from_secs(75);
        }
        let agent_id = format!("conformance-{:016x}", RandomState::new().hash_one(0));
        let client = match target.start {
            Start::Wait => None,
            _ => Some(Arc::new(wire.client_with(options)?)),
        };
        Ok(Self { start: target.start.clone(), client, agent_id })
    }

    /// Begins a session, and gives its id and the place after its start.
    pub(super) async fn begin(
        &self,
        target: &Target,
        line: &Line,
        script: Script,
    ) -> Result<Option<(String, usize)>, String> {
        let from = line.ear.len();
        let text = target.texts.of(script);
        let wanted = match &self.start {
            Start::UserInput => {
                let said = json!({ "kind": "user_input", "text": text });
                self.post("messages", &said).await.map(|_| None)
            }
            Start::Sessions => {
                let answer = self.post("sessions", &json!({ "user_message": text })).await;
                answer.map(|answer| answer["session_id"].as_str().map(str::to_owned))
            }
            Start::AgentApi { .. } => self.play(script).await.map(Some),
            Start::Wait => Ok(None),
        }?;
        let starts = |event: &Value| {
            is(event, "session.started")
                && wanted.as_ref().is_none_or(|id| event["session_id"] == id.as_str())
        };
        let found = line.ear.wait(from, target.patience, starts).await;
        Ok(found.and_then(|(at, event)| Some((event["session_id"].as_str()?.to_owned(), at))))
    }

    async fn post(&self, path: &str, body: &Value) -> Result<Value, String> {
        post(self.client()?, path, body).await
    }

    fn client(&self) -> Result<&Arc<HttpClient>, String> {
        self.client.as_ref().ok_or_else(|| "nothing is said to it".to_owned())
    }

    /// Opens a session and goes on with it in a task of its own.
    async fn play(&self, script: Script) -> Result<String, String> {
        let opening = json!({
            "producer": { "agent_id": self.agent_id }, "language": "en",
            "summary_normal": "Trying something.",
        });
        let opened = self.post("agent/sessions", &opening).await?;
        let id = opened["session_id"].as_str().ok_or("a session was opened without an id")?;
        let puppet = Puppet { client: Arc::clone(self.client()?), session: id.to_owned() };
        tokio::spawn(async move {
            // What goes wrong here is seen by the checks: the session does not do what it should.
            let _ = puppet.act(script).await;
        });
        Ok(id.to_owned())
    }
}

async fn post(client: &HttpClient, path: &str, body: &Value) -> Result<Value, String> {
    let answer = client.post(path, body.to_string()).await;
    let answer = answer.map_err(|error| format!("nothing can be said to it: {error}"))?;
    if !answer.status.is_success() {
        return Err(format!("it answered {} to {path}.", answer.status));
    }
    Ok(serde_json::from_slice(&answer.body).unwrap_or_default())
}

/// An agent of one session, over the agent API.
struct Puppet {
    client: Arc<HttpClient>,
    session: String,
}

impl Puppet {
    async fn act(&self, script: Script) -> Result<(), String> {
        match script {
            Script::Tool => {
                let call = json!({ "tool": "bank.balance", "tool_call_id": "call_1",
                    "summary_normal": "Asking the bank." });
                self.emit("tool.invoked", call).await?;
                self.completed("bank.balance", "call_1").await?;
            }
            Script::Confirm => self.consented(300).await?,
            Script::Short => self.consented(SHORT).await?,
            Script::Withdraw => self.taken_back().await?,
            Script::Clarify => self.question().await?,
            Script::Stream => self.stream(["One. ", "Two. ", "Three."].map(String::from)).await?,
            Script::Flood => {
                let pieces = (0..PIECES).map(|n| format!("Sentence number {n} of many. "));
                self.stream(pieces.collect::<Vec<_>>()).await?;
            }
            Script::Progress => {
                for percent in [20, 60, 90] {
                    let far = json!({ "progress": { "percent": percent },
                        "summary_normal": format!("{percent} percent are done.") });
                    self.emit("progress.updated", far).await?;
                }
            }
            Script::Fail => {
                let error =
                    json!({ "error_category": "permanent", "summary_normal": "It failed." });
                return self.emit("session.errored", error).await;
            }
            Script::Cancel => {
                let given = json!({ "cancelled_by": "producer", "summary_normal": "Given up." });
                return self.emit("session.cancelled", given).await;
            }
        }
        self.emit("session.completed", json!({ "summary_normal": "Done." })).await
    }

    async fn emit(&self, kind: &str, mut members: Value) -> Result<(), String> {
        members["type"] = json!(format!("aaep:agent.{kind}"));
        let path = format!("agent/sessions/{}/events", self.session);
        post(&self.client, &path, &members).await.map(drop)
    }

    async fn completed(&self, tool: &str, call: &str) -> Result<(), String> {
        let done = json!({ "tool": tool, "tool_call_id": call, "status": "success",
            "summary_normal": "It worked." });
        self.emit("tool.completed", done).await
    }

    async fn stream(&self, pieces: impl AsRef<[String]>) -> Result<(), String> {
        let (mut position, pieces) = (0, pieces.as_ref());
        for (place, piece) in (1..).zip(pieces) {
            let chunk = json!({ "chunk": piece, "position": position, "output_id": "out_1",
                "complete": place == pieces.len() });
            position += piece.chars().count();
            self.emit("output.streaming", chunk).await?;
        }
        Ok(())
    }

    async fn request(&self, body: &Value) -> Result<String, String> {
        let path = format!("agent/sessions/{}/requests", self.session);
        let asked = post(&self.client, &path, body).await?;
        let id = asked["request_id"].as_str().ok_or("a request has no id")?;
        Ok(format!("agent/requests/{id}"))
    }

    async fn ask(&self, seconds: u64) -> Result<String, String> {
        self.request(&json!({
            "kind": "confirmation", "tool": "bank.transfer",
            "arguments": { "euros": "20", "to": "Ann" }, "action": "Transfer 20 euros to Ann.",
            "consequence": "The money is gone.", "summary_normal": "Transfer 20 euros to Ann?",
            "timeout_seconds": seconds, "default_decision": "reject", "risk_level": "high",
            "irreversible": true,
        }))
        .await
    }

    /// What became of a request.
    async fn outcome(&self, request: &str) -> Result<String, String> {
        loop {
            let answer = self.client.get(&format!("{request}?wait=60")).await;
            let answer = answer.map_err(|error| error.to_string())?;
            let state: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
            match state["status"].as_str() {
                Some("pending") => {}
                Some(status) => return Ok(status.to_owned()),
                None => return Err("a request has no status".into()),
            }
        }
    }

    async fn consented(&self, seconds: u64) -> Result<(), String> {
        let request = self.ask(seconds).await?;
        if self.outcome(&request).await? == "accepted" {
            let call = post(&self.client, &format!("{request}/invoke"), &json!({})).await?;
            let call = call["tool_call_id"].as_str().unwrap_or_default().to_owned();
            self.completed("bank.transfer", &call).await?;
        }
        Ok(())
    }

    async fn taken_back(&self) -> Result<(), String> {
        let request = self.ask(300).await?;
        sleep(Duration::from_millis(300)).await;
        let body = bytes::Bytes::new();
        let gone =
            self.client.request(http::Method::DELETE, &request, http::HeaderMap::new(), body);
        gone.await.map_err(|error| error.to_string())?;
        // Long enough for an answer that comes too late.
        sleep(Duration::from_secs(1)).await;
        Ok(())
    }

    async fn question(&self) -> Result<(), String> {
        let request = self
            .request(&json!({
                "kind": "clarification", "question": "Where are you?", "timeout_seconds": 300,
                "accepted_response_kinds": ["freetext"], "summary_normal": "Where are you?",
            }))
            .await?;
        self.outcome(&request).await.map(drop)
    }
}
