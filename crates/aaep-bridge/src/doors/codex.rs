//! Codex over its app-server: JSON-RPC lines without the name of the protocol in them.

use std::collections::BTreeMap;
use std::io;

use serde_json::{Value, json};

use super::client::{Answered, Program, Wires, prompt};
use crate::act::shown;

/// Changes of files that are remembered, for the questions about them.
const ITEMS: usize = 256;

/// Codex asks before everything that it does not know to be harmless.
const ASKS: &str = "untrusted";

/// What it may do without a question: nothing outside the project.
const SANDBOX: &str = "workspace-write";

pub(super) struct Codex {
    wires: Wires,
    /// What is waited for: our request's number, the client's, and what it wants.
    waits: BTreeMap<u64, (Value, Wants)>,
    thread: String,
    turn: String,
    /// Calls as they were told, by their ids.
    items: BTreeMap<String, Value>,
}

enum Wants {
    Introduction,
    Session,
    Sessions,
    Turn,
}

fn text<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// A call as the Agent Client Protocol tells it; none for what is no call.
fn call(item: &Value) -> Option<Value> {
    let id = text(item, "id");
    match text(item, "type") {
        "commandExecution" => {
            let command = text(item, "command");
            let input = json!({ "command": command, "cwd": text(item, "cwd") });
            Some(
                json!({ "toolCallId": id, "title": command, "kind": "execute", "rawInput": input }),
            )
        }
        "fileChange" => {
            let changes = item.get("changes").and_then(Value::as_array);
            let changes: Vec<_> = changes.into_iter().flatten().collect();
            let places: Vec<_> =
                changes.iter().map(|it| json!({ "path": text(it, "path") })).collect();
            let content: Vec<_> = changes.iter().filter_map(|change| difference(change)).collect();
            let deletes = changes.iter().any(|change| change["kind"]["type"] == "delete");
            let names: Vec<_> = changes.iter().map(|change| shown(text(change, "path"))).collect();
            let kind = if deletes { "delete" } else { "edit" };
            // What is deleted has no difference to be told by.
            let content = if deletes { Vec::new() } else { content };
            Some(json!({ "toolCallId": id, "title": names.join(", "), "kind": kind,
                "locations": places, "content": content }))
        }
        "mcpToolCall" => {
            let name = format!("mcp__{}__{}", text(item, "server"), text(item, "tool"));
            let input = item.get("arguments").cloned().unwrap_or_default();
            Some(json!({ "toolCallId": id, "title": name, "name": name, "kind": "other",
                "rawInput": input }))
        }
        "webSearch" => {
            Some(json!({ "toolCallId": id, "title": text(item, "query"), "kind": "fetch" }))
        }
        _ => None,
    }
}

/// A change of a file, with what it was and what it will be as far as Codex shows it.
fn difference(change: &Value) -> Option<Value> {
    let (path, diff) = (text(change, "path"), text(change, "diff"));
    let (old, new) = match change["kind"]["type"].as_str()? {
        "add" => (Value::Null, diff.to_owned()),
        _ => {
            let lines = |signs: [char; 2]| -> String {
                let of = diff.lines().filter(|line| {
                    !line.starts_with("+++") && !line.starts_with("---") && line.starts_with(signs)
                });
                of.map(|line| format!("{}\n", line.get(1..).unwrap_or_default())).collect()
            };
            (json!(lines([' ', '-'])), lines([' ', '+']))
        }
    };
    Some(json!({ "type": "diff", "path": path, "oldText": old, "newText": new }))
}

/// Whether an item ended, and how.
fn status(item: &Value) -> &'static str {
    match text(item, "status") {
        "completed" => "completed",
        _ => "failed",
    }
}

impl Codex {
    pub(super) fn new(wires: Wires) -> Self {
        let (waits, thread, turn, items) = Default::default();
        Self { wires, waits, thread, turn, items }
    }

    async fn call(
        &mut self,
        id: Value,
        wants: Wants,
        method: &str,
        params: Value,
    ) -> io::Result<()> {
        let number = self.wires.number();
        self.waits.insert(number, (id, wants));
        self.wires.tell(&json!({ "id": number, "method": method, "params": params })).await
    }

    async fn returned(&mut self, message: &Value) -> io::Result<()> {
        let number = message.get("id").and_then(Value::as_u64).unwrap_or_default();
        let Some((id, wants)) = self.waits.remove(&number) else { return Ok(()) };
        let Some(result) = message.get("result") else {
            let why = message.pointer("/error/message").and_then(Value::as_str);
            let why = why.unwrap_or("Codex gave no reason.").to_owned();
            if matches!(wants, Wants::Turn) {
                return self.wires.turn_ends(Err(&why)).await;
            }
            return self.wires.error(&id, -32603, &why).await;
        };
        match wants {
            Wants::Introduction => {
                self.wires.tell(&json!({ "method": "initialized", "params": {} })).await?;
                let answer = json!({ "protocolVersion": 1, "authMethods": [],
                    "agentInfo": { "name": "codex", "title": "Codex", "version": "" },
                    "agentCapabilities": { "sessionCapabilities": { "list": {}, "resume": {} } } });
                self.wires.result(&id, answer).await
            }
            Wants::Session => {
                self.thread = result["thread"]["id"].as_str().unwrap_or_default().to_owned();
                let thread = json!({ "sessionId": self.thread });
                self.wires.result(&id, thread).await
            }
            Wants::Sessions => {
                let threads = result.get("data").and_then(Value::as_array).into_iter().flatten();
                let threads = threads.map(|thread| {
                    json!({ "sessionId": thread["id"], "title": thread["preview"], "cwd": thread["cwd"] })
                });
                let sessions = Value::Array(threads.collect());
                let mut answer = json!({ "sessions": sessions });
                if let Some(next) = result.get("nextCursor").filter(|next| next.is_string()) {
                    answer["nextCursor"] = next.clone();
                }
                self.wires.result(&id, answer).await
            }
            Wants::Turn => {
                self.turn = result["turn"]["id"].as_str().unwrap_or_default().to_owned();
                Ok(())
            }
        }
    }

    /// Codex asks.
    async fn asked(&mut self, message: &Value) -> io::Result<()> {
        let id = message.get("id").cloned().unwrap_or_default();
        let params = message.get("params").cloned().unwrap_or_default();
        let item = text(&params, "itemId").to_owned();
        let known = self.items.get(&item).cloned();
        let call = match text(message, "method") {
            "item/commandExecution/requestApproval" => {
                let command = text(&params, "command");
                let input = json!({ "command": command, "cwd": text(&params, "cwd") });
                let told = json!({ "toolCallId": item, "title": command, "kind": "execute", "rawInput": input });
                // Without a command it is about something else, such as the network.
                if command.is_empty() { known } else { Some(told) }
            }
            // It says nothing of the change; that was told before.
            "item/fileChange/requestApproval" => known,
            other => {
                let error = json!({ "code": -32601, "message": format!("{other} is not offered") });
                return self.wires.tell(&json!({ "id": id, "error": error })).await;
            }
        };
        let Some(call) = call else {
            // What nobody can be told about is a no.
            return self
                .wires
                .tell(&json!({ "id": id, "result": { "decision": "decline" } }))
                .await;
        };
        let mut options = vec![
            json!({ "optionId": "accept", "name": "Yes", "kind": "allow_once" }),
            json!({ "optionId": "decline", "name": "No", "kind": "reject_once" }),
        ];
        let offered = params.get("availableDecisions").and_then(Value::as_array);
        let lasting = offered
            .into_iter()
            .flatten()
            .find(|it| it.get("acceptWithExecpolicyAmendment").is_some());
        if let Some(lasting) = lasting {
            let words = lasting.pointer("/acceptWithExecpolicyAmendment/execpolicy_amendment");
            let words =
                words.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
            let words = shown(&words.collect::<Vec<_>>().join(" "));
            let name = format!("Yes, and ask no more about commands that begin with {words}");
            options.push(json!({ "optionId": "amend", "name": name, "kind": "allow_always" }));
        }
        let question = json!([id, lasting]);
        let (thread, options) = (self.thread.clone(), Value::Array(options));
        if self.wires.ask(&thread, question.clone(), &call, &options).await? {
            return Ok(());
        }
        self.answered(question, Answered::Not).await
    }

    async fn told(&mut self, method: &str, params: &Value) -> io::Result<()> {
        let thread = self.thread.clone();
        let item = params.get("item").cloned().unwrap_or_default();
        match method {
            "item/agentMessage/delta" => {
                self.wires.text(&thread, "agent_message_chunk", text(params, "delta")).await
            }
            "item/reasoning/summaryTextDelta" => {
                self.wires.text(&thread, "agent_thought_chunk", text(params, "delta")).await
            }
            "item/started" => {
                let Some(mut update) = call(&item) else { return Ok(()) };
                if self.items.len() >= ITEMS {
                    self.items.pop_first();
                }
                self.items.insert(text(&item, "id").to_owned(), update.clone());
                update["sessionUpdate"] = json!("tool_call");
                update["status"] = json!("in_progress");
                self.wires.update(&thread, update).await
            }
            "item/completed" => {
                let Some(mut update) = call(&item) else { return Ok(()) };
                self.items.remove(text(&item, "id"));
                update["sessionUpdate"] = json!("tool_call_update");
                update["status"] = json!(status(&item));
                self.wires.update(&thread, update).await
            }
            "turn/plan/updated" => {
                let plan = params.get("plan").and_then(Value::as_array).into_iter().flatten();
                let entries = plan.map(|step| {
                    let status = match text(step, "status") {
                        "inProgress" => "in_progress",
                        other => other,
                    };
                    json!({ "content": text(step, "step"), "status": status, "priority": "medium" })
                });
                let entries = Value::Array(entries.collect());
                let update = json!({ "sessionUpdate": "plan", "entries": entries });
                self.wires.update(&thread, update).await
            }
            "serverRequest/resolved" => {
                let id = params.get("requestId").cloned().unwrap_or_default();
                self.wires.withdraw_first(&id).await
            }
            "turn/completed" => {
                let turn = params.get("turn").cloned().unwrap_or_default();
                let why = turn.pointer("/error/message").and_then(Value::as_str);
                match text(&turn, "status") {
                    "completed" => self.wires.turn_ends(Ok("end_turn")).await,
                    "interrupted" => self.wires.turn_ends(Ok("cancelled")).await,
                    _ => self.wires.turn_ends(Err(why.unwrap_or("Codex failed."))).await,
                }
            }
            _ => Ok(()),
        }
    }
}

impl Program for Codex {
    fn wires(&mut self) -> &mut Wires {
        &mut self.wires
    }

    async fn requested(&mut self, id: Value, method: &str, params: &Value) -> io::Result<()> {
        let place = params.get("cwd").cloned().unwrap_or_default();
        match method {
            "initialize" => {
                let info = json!({ "name": "aaep", "title": "aaep", "version": env!("CARGO_PKG_VERSION") });
                let params = json!({ "clientInfo": info });
                self.call(id, Wants::Introduction, "initialize", params).await
            }
            "session/new" => {
                let params = json!({ "cwd": place, "approvalPolicy": ASKS, "sandbox": SANDBOX });
                self.call(id, Wants::Session, "thread/start", params).await
            }
            "session/resume" => {
                let params = json!({ "threadId": params["sessionId"], "cwd": place,
                    "approvalPolicy": ASKS, "sandbox": SANDBOX });
                self.call(id, Wants::Session, "thread/resume", params).await
            }
            "session/list" => {
                let mut wanted = json!({ "limit": 50 });
                if let Some(cursor) = params.get("cursor") {
                    wanted["cursor"] = cursor.clone();
                }
                self.call(id, Wants::Sessions, "thread/list", wanted).await
            }
            "session/prompt" if self.wires.turn.is_some() => {
                self.wires.error(&id, -32600, "The agent is still at work.").await
            }
            "session/prompt" => {
                self.wires.turn = Some(id.clone());
                let input = json!([{ "type": "text", "text": prompt(params) }]);
                let params = json!({ "threadId": self.thread, "input": input });
                self.call(id, Wants::Turn, "turn/start", params).await
            }
            other => self.wires.error(&id, -32601, &format!("{other} is not offered")).await,
        }
    }

    async fn cancelled(&mut self) -> io::Result<()> {
        for question in self.wires.withdraw_all().await? {
            self.answered(question, Answered::Not).await?;
        }
        let number = self.wires.number();
        let params = json!({ "threadId": self.thread, "turnId": self.turn });
        self.wires
            .tell(&json!({ "id": number, "method": "turn/interrupt", "params": params }))
            .await
    }

    async fn answered(&mut self, question: Value, answer: Answered) -> io::Result<()> {
        let decision = match answer {
            Answered::Chosen(chosen) if chosen == "accept" => json!("accept"),
            Answered::Chosen(chosen) if chosen == "amend" => question[1].clone(),
            _ => json!("decline"),
        };
        self.wires.tell(&json!({ "id": question[0], "result": { "decision": decision } })).await
    }

    async fn said(&mut self, message: &Value) -> io::Result<()> {
        let params = message.get("params").cloned().unwrap_or_default();
        match (message.get("method").and_then(Value::as_str), message.get("id")) {
            (Some(_), Some(_)) => self.asked(message).await,
            (Some(method), None) => self.told(method, &params).await,
            (None, Some(_)) => self.returned(message).await,
            (None, None) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changes_of_files_are_told_with_their_lines() {
        let item = json!({ "type": "fileChange", "id": "c", "changes": [
            { "path": "/p/a", "kind": { "type": "update" }, "diff": "@@ -1,3 +1,3 @@\n a\n-b\n+x\n c\n" },
            { "path": "/p/n", "kind": { "type": "add" }, "diff": "hello\n" }] });
        let told = call(&item).unwrap();
        assert_eq!(told["kind"], "edit");
        assert_eq!(told["content"][0]["oldText"], "a\nb\nc\n");
        assert_eq!(told["content"][0]["newText"], "a\nx\nc\n");
        assert_eq!(
            told["content"][1],
            json!({ "type": "diff", "path": "/p/n", "oldText": null, "newText": "hello\n" })
        );
        let item = json!({ "type": "fileChange", "id": "c", "changes": [
            { "path": "/p/a", "kind": { "type": "delete" }, "diff": "a\n" }] });
        assert_eq!(call(&item).unwrap()["kind"], "delete");
    }
}
