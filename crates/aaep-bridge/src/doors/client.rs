//! The side of a door that speaks the Agent Client Protocol.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};
use tokio::io::{AsyncBufRead, AsyncWrite, AsyncWriteExt};

/// Questions of the program that wait at the same time; further ones are refused.
const ASKED: usize = 64;

/// One side that is written to.
type Sink = Box<dyn AsyncWrite + Unpin + Send>;

/// Both sides, and the questions that are on their way.
pub(super) struct Wires {
    client: Sink,
    /// None once the client is gone.
    program: Option<Sink>,
    count: u64,
    /// Questions, by our id: what the program calls them.
    asked: BTreeMap<String, Value>,
    /// The request of the client that the program works on.
    pub(super) turn: Option<Value>,
}

/// How a question was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Answered {
    /// One of the options.
    Chosen(String),
    /// None of them.
    Not,
}

/// A program behind a door.
pub(super) trait Program {
    fn wires(&mut self) -> &mut Wires;

    /// A request of the client.
    async fn requested(&mut self, id: Value, method: &str, params: &Value) -> io::Result<()>;

    /// The client wants it to stop.
    async fn cancelled(&mut self) -> io::Result<()>;

    /// A question, as the program calls it, was answered.
    async fn answered(&mut self, question: Value, answer: Answered) -> io::Result<()>;

    /// The program said something.
    async fn said(&mut self, message: &Value) -> io::Result<()>;
}

/// Carries everything until one side goes away.
pub(super) async fn carry<P: Program>(
    mut program: P,
    mut from_client: impl AsyncBufRead + Unpin,
    mut from_program: impl AsyncBufRead + Unpin,
) -> io::Result<()> {
    let mut client_is_there = true;
    // Lines are read whole before the next choice: reading must not be given up halfway.
    let (mut client_line, mut program_line) = (Vec::new(), Vec::new());
    loop {
        tokio::select! {
            read = read_line(&mut from_client, &mut client_line), if client_is_there => {
                read?;
                let line = std::mem::take(&mut client_line);
                if line.is_empty() {
                    client_is_there = false;
                    // It notices that nobody is left.
                    program.wires().program = None;
                    continue;
                }
                heard(&mut program, &line).await?;
            }
            read = read_line(&mut from_program, &mut program_line) => {
                read?;
                let line = std::mem::take(&mut program_line);
                if line.is_empty() {
                    return Ok(());
                }
                // What is no message is nothing to pass on.
                if let Ok(message) = serde_json::from_slice::<Value>(&line) {
                    program.said(&message).await?;
                }
            }
        }
    }
}

/// Reads into the line; what was read stays there if this is given up.
async fn read_line(from: &mut (impl AsyncBufRead + Unpin), line: &mut Vec<u8>) -> io::Result<()> {
    use tokio::io::AsyncBufReadExt;
    loop {
        let buffer = from.fill_buf().await?;
        if buffer.is_empty() {
            return Ok(());
        }
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let used = end.map_or(buffer.len(), |at| at + 1);
        line.extend_from_slice(&buffer[..used]);
        from.consume(used);
        if line.len() > crate::acp::MAX_LINE_BYTES {
            let text = "A message is longer than 64 MiB, and was not passed on.";
            return Err(io::Error::new(io::ErrorKind::InvalidData, text));
        }
        if end.is_some() {
            return Ok(());
        }
    }
}

async fn heard<P: Program>(program: &mut P, line: &[u8]) -> io::Result<()> {
    let Ok(message) = serde_json::from_slice::<Value>(line) else { return Ok(()) };
    let params = message.get("params").cloned().unwrap_or_default();
    match (message.get("method").and_then(Value::as_str), message.get("id")) {
        (Some(method), Some(id)) => program.requested(id.clone(), method, &params).await,
        (Some("session/cancel"), None) => program.cancelled().await,
        (None, Some(id)) => {
            let id = id.as_str().unwrap_or_default();
            let Some(question) = program.wires().asked.remove(id) else { return Ok(()) };
            let chosen = message.pointer("/result/outcome/optionId").and_then(Value::as_str);
            let selected = message.pointer("/result/outcome/outcome");
            let answer = match chosen.filter(|_| selected.is_some_and(|it| it == "selected")) {
                Some(chosen) => Answered::Chosen(chosen.to_owned()),
                None => Answered::Not,
            };
            program.answered(question, answer).await
        }
        _ => Ok(()),
    }
}

/// The options of a question: their ids, names and kinds.
pub(super) fn options(all: &[(&str, &str, &str)]) -> Value {
    let option = |(id, name, kind): &(&str, &str, &str)| json!({ "optionId": id, "name": name, "kind": kind });
    Value::Array(all.iter().map(option).collect())
}

impl Wires {
    pub(super) fn new(
        client: impl AsyncWrite + Unpin + Send + 'static,
        program: impl AsyncWrite + Unpin + Send + 'static,
    ) -> Self {
        Self {
            client: Box::new(client),
            program: Some(Box::new(program)),
            count: 0,
            asked: BTreeMap::new(),
            turn: None,
        }
    }

    /// A number that nobody had yet.
    pub(super) fn number(&mut self) -> u64 {
        self.count += 1;
        self.count
    }

    async fn send(&mut self, message: &Value) -> io::Result<()> {
        self.client.write_all(format!("{message}\n").as_bytes()).await?;
        self.client.flush().await
    }

    /// Says something to the program. Without a client there is nobody to speak for.
    pub(super) async fn tell(&mut self, message: &Value) -> io::Result<()> {
        let Some(program) = &mut self.program else { return Ok(()) };
        program.write_all(format!("{message}\n").as_bytes()).await?;
        program.flush().await
    }

    pub(super) async fn result(&mut self, id: &Value, result: Value) -> io::Result<()> {
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "result": result })).await
    }

    pub(super) async fn error(&mut self, id: &Value, code: i32, words: &str) -> io::Result<()> {
        let error = json!({ "code": code, "message": words });
        self.send(&json!({ "jsonrpc": "2.0", "id": id, "error": error })).await
    }

    pub(super) async fn update(&mut self, session: &str, update: Value) -> io::Result<()> {
        let params = json!({ "sessionId": session, "update": update });
        let message = json!({ "jsonrpc": "2.0", "method": "session/update", "params": params });
        self.send(&message).await
    }

    pub(super) async fn text(&mut self, session: &str, kind: &str, text: &str) -> io::Result<()> {
        let content = json!({ "type": "text", "text": text });
        self.update(session, json!({ "sessionUpdate": kind, "content": content })).await
    }

    /// Puts a question of the program to the client. False if too many wait.
    pub(super) async fn ask(
        &mut self,
        session: &str,
        question: Value,
        call: &Value,
        options: &Value,
    ) -> io::Result<bool> {
        if self.asked.len() >= ASKED {
            return Ok(false);
        }
        let id = format!("ask-{}", self.number());
        self.asked.insert(id.clone(), question);
        let params = json!({ "sessionId": session, "toolCall": call, "options": options });
        let method = "session/request_permission";
        let message = json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params });
        self.send(&message).await?;
        Ok(true)
    }

    /// Takes a question back.
    pub(super) async fn withdraw(&mut self, question: &Value) -> io::Result<()> {
        let found = self.asked.iter().find(|(_, of)| *of == question).map(|(id, _)| id.clone());
        let Some(id) = found else { return Ok(()) };
        self.asked.remove(&id);
        let params = json!({ "requestId": id });
        let message = json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": params });
        self.send(&message).await
    }

    /// Takes the question back whose name begins with this.
    pub(super) async fn withdraw_first(&mut self, first: &Value) -> io::Result<()> {
        match self.asked.values().find(|question| question[0] == *first).cloned() {
            Some(question) => self.withdraw(&question).await,
            None => Ok(()),
        }
    }

    /// All questions that wait, which are then no longer waited for.
    pub(super) async fn withdraw_all(&mut self) -> io::Result<Vec<Value>> {
        let all: Vec<_> = self.asked.values().cloned().collect();
        for question in &all {
            self.withdraw(question).await?;
        }
        Ok(all)
    }

    /// Ends the turn, if there is one.
    pub(super) async fn turn_ends(&mut self, end: Result<&str, &str>) -> io::Result<()> {
        let Some(id) = self.turn.take() else { return Ok(()) };
        match end {
            Ok(reason) => self.result(&id, json!({ "stopReason": reason })).await,
            Err(why) => self.error(&id, -32603, why).await,
        }
    }
}

/// The text of a prompt.
pub(super) fn prompt(params: &Value) -> String {
    let blocks = params.get("prompt").and_then(Value::as_array).into_iter().flatten();
    let texts = blocks.filter_map(|block| block.get("text").and_then(Value::as_str));
    texts.collect::<Vec<_>>().join("\n")
}
