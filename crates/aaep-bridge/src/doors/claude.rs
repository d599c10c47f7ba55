//! Claude Code over standard input and output: JSON lines, and questions as control requests.
//!
//! Claude Code asks by its own rules, and lets pass what the settings allow. A hook that lives in this
//! conversation makes it ask about everything that we would: `ask` there overrides the settings.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::client::{Answered, Program, Wires, options, prompt};
use crate::place::Scene;
use crate::tools;

/// The one session of a process, unless it goes on with an earlier one.
const SESSION: &str = "claude";

/// What is answered to a question that nobody said yes to.
const NO: &str = "The person said no. Do not try it in another way; ask what they want instead.";

pub(super) struct Claude {
    wires: Wires,
    home: Option<PathBuf>,
    place: PathBuf,
    session: String,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A call as the Agent Client Protocol tells it.
fn call(id: &str, tool: &str, input: &Value) -> Value {
    let kind = match tool {
        "Bash" => "execute",
        "Read" | "Glob" | "Grep" | "LS" => "read",
        "Edit" | "Write" | "MultiEdit" | "NotebookEdit" => "edit",
        "WebFetch" | "WebSearch" => "fetch",
        _ => "other",
    };
    json!({ "toolCallId": id, "name": tool, "title": tool, "kind": kind, "rawInput": input })
}

impl Claude {
    pub(super) fn new(wires: Wires, home: Option<PathBuf>) -> Self {
        Self { wires, home, place: PathBuf::from("/"), session: SESSION.to_owned() }
    }

    async fn answer(&mut self, request: &Value, response: Value) -> io::Result<()> {
        let response = json!({ "subtype": "success", "request_id": request, "response": response });
        self.wires.tell(&json!({ "type": "control_response", "response": response })).await
    }

    /// Whether we would ask about this.
    fn is_asked(&self, input: &Value) -> bool {
        let place =
            input.get("cwd").and_then(Value::as_str).map_or(self.place.as_path(), Path::new);
        let scene = Scene::new(&self.place, self.home.clone());
        let arguments = input.get("tool_input").cloned().unwrap_or_default();
        tools::judge(text(input, "tool_name"), &arguments, place, &scene).is_asked()
    }

    async fn controlled(&mut self, message: &Value) -> io::Result<()> {
        let id = message.get("request_id").cloned().unwrap_or_default();
        let request = message.get("request").cloned().unwrap_or_default();
        match text(&request, "subtype") {
            "hook_callback" => {
                let input = request.get("input").cloned().unwrap_or_default();
                let answer = match self.is_asked(&input) {
                    true => json!({ "hookSpecificOutput": { "hookEventName": "PreToolUse",
                        "permissionDecision": "ask",
                        "permissionDecisionReason": "aaep asks before this." } }),
                    false => json!({}),
                };
                self.answer(&id, answer).await
            }
            "can_use_tool" => {
                let input = request.get("input").cloned().unwrap_or_default();
                let call = call(text(&request, "tool_use_id"), text(&request, "tool_name"), &input);
                let options =
                    options(&[("allow", "Yes", "allow_once"), ("deny", "No", "reject_once")]);
                let question = json!([id, input]);
                if self.wires.ask(&self.session, question.clone(), &call, &options).await? {
                    return Ok(());
                }
                self.answered(question, Answered::Not).await
            }
            other => {
                let error = format!("{other} is not offered");
                let response = json!({ "subtype": "error", "request_id": id, "error": error });
                self.wires.tell(&json!({ "type": "control_response", "response": response })).await
            }
        }
    }

    /// What the model says and does.
    async fn assistant(&mut self, message: &Value) -> io::Result<()> {
        let parts = message.pointer("/message/content").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            match text(part, "type") {
                "text" => {
                    self.wires
                        .text(&self.session, "agent_message_chunk", text(part, "text"))
                        .await?;
                }
                "thinking" => {
                    let thought = text(part, "thinking");
                    self.wires.text(&self.session, "agent_thought_chunk", thought).await?;
                }
                "tool_use" => {
                    let input = part.get("input").cloned().unwrap_or_default();
                    let mut update = call(text(part, "id"), text(part, "name"), &input);
                    update["sessionUpdate"] = json!("tool_call");
                    update["status"] = json!("pending");
                    self.wires.update(&self.session, update).await?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// What came of its tools.
    async fn results(&mut self, message: &Value) -> io::Result<()> {
        let parts = message.pointer("/message/content").and_then(Value::as_array);
        for part in parts.into_iter().flatten() {
            if text(part, "type") != "tool_result" {
                continue;
            }
            let failed = part.get("is_error").and_then(Value::as_bool) == Some(true);
            let status = if failed { "failed" } else { "completed" };
            let id = text(part, "tool_use_id");
            let update =
                json!({ "sessionUpdate": "tool_call_update", "toolCallId": id, "status": status });
            self.wires.update(&self.session, update).await?;
        }
        Ok(())
    }
}

impl Program for Claude {
    fn wires(&mut self) -> &mut Wires {
        &mut self.wires
    }

    async fn requested(&mut self, id: Value, method: &str, params: &Value) -> io::Result<()> {
        match method {
            "initialize" => {
                let hooks =
                    json!({ "PreToolUse": [{ "matcher": "*", "hookCallbackIds": ["aaep"] }] });
                let request = json!({ "subtype": "initialize", "hooks": hooks });
                let begin = json!({ "type": "control_request", "request_id": "aaep-begin", "request": request });
                self.wires.tell(&begin).await?;
                let result = json!({ "protocolVersion": 1, "authMethods": [],
                    "agentInfo": { "name": "claude", "title": "Claude Code", "version": "" },
                    "agentCapabilities": { "sessionCapabilities": { "resume": {} } } });
                self.wires.result(&id, result).await
            }
            "session/new" | "session/resume" => {
                self.place = params.get("cwd").and_then(Value::as_str).unwrap_or("/").into();
                if let Some(earlier) = params.get("sessionId").and_then(Value::as_str) {
                    self.session = earlier.to_owned();
                }
                self.wires.result(&id, json!({ "sessionId": self.session })).await
            }
            "session/prompt" if self.wires.turn.is_some() => {
                self.wires.error(&id, -32600, "The agent is still at work.").await
            }
            "session/prompt" => {
                self.wires.turn = Some(id);
                let content = prompt(params);
                let message = json!({ "role": "user", "content": content });
                let said = json!({ "type": "user", "message": message, "parent_tool_use_id": null,
                    "session_id": "" });
                self.wires.tell(&said).await
            }
            other => self.wires.error(&id, -32601, &format!("{other} is not offered")).await,
        }
    }

    async fn cancelled(&mut self) -> io::Result<()> {
        for question in self.wires.withdraw_all().await? {
            self.answered(question, Answered::Not).await?;
        }
        let id = format!("aaep-stop-{}", self.wires.number());
        let request = json!({ "subtype": "interrupt" });
        let stop = json!({ "type": "control_request", "request_id": id, "request": request });
        self.wires.tell(&stop).await
    }

    async fn answered(&mut self, question: Value, answer: Answered) -> io::Result<()> {
        let (id, input) = (question[0].clone(), question[1].clone());
        let response = match answer {
            // What runs is what was asked about.
            Answered::Chosen(chosen) if chosen == "allow" => {
                json!({ "behavior": "allow", "updatedInput": input })
            }
            _ => json!({ "behavior": "deny", "message": NO }),
        };
        self.answer(&id, response).await
    }

    async fn said(&mut self, message: &Value) -> io::Result<()> {
        match text(message, "type") {
            "control_request" => self.controlled(message).await,
            "control_cancel_request" => {
                let id = message.get("request_id").cloned().unwrap_or_default();
                self.wires.withdraw_first(&id).await
            }
            "assistant" => self.assistant(message).await,
            "user" => self.results(message).await,
            "result" => {
                let failed = message.get("is_error").and_then(Value::as_bool) == Some(true);
                let why = text(message, "result").to_owned();
                match (failed, text(message, "subtype")) {
                    (false, _) => self.wires.turn_ends(Ok("end_turn")).await,
                    (true, "error_max_turns") => {
                        self.wires.turn_ends(Ok("max_turn_requests")).await
                    }
                    (true, "error_during_execution") => self.wires.turn_ends(Ok("cancelled")).await,
                    (true, _) => self.wires.turn_ends(Err(&why)).await,
                }
            }
            _ => Ok(()),
        }
    }
}
