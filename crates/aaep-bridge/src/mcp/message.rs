//! Messages of the Model Context Protocol, as far as a proxy has to understand them: one JSON-RPC
//! message on each line.

use serde_json::{Value, json};

use super::rewrite::{is_ambiguous, set};

/// Where a client of the newest version says in each request what it can do.
const CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// Where Claude Code says which of its calls this is.
const CALL_ID: &str = "claudecode/toolUseId";

/// How often a server may ask for more before one call is done.
pub(super) const ROUNDS: u32 = 8;

/// What a line from the client is.
#[allow(clippy::large_enum_variant)] // one at a time, read and taken apart at once
#[derive(Debug)]
pub(super) enum FromClient {
    /// A call of a tool: held until it is decided.
    Call(ToolCall),
    /// A call that the client gives up.
    Cancelled(String),
    /// Everything else passes.
    Other,
    /// Nobody can say what a server would make of it: it is answered with an error.
    Refused(&'static str, Vec<Value>),
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct ToolCall {
    pub(super) id: Value,
    pub(super) tool: String,
    pub(super) arguments: Value,
    pub(super) progress: Option<Value>,
    /// The program's own name of the call, where it tells: Claude Code does.
    pub(super) call_id: Option<String>,
    /// What the server gave the client to come back with.
    pub(super) state: Option<Value>,
}

impl ToolCall {
    /// What the person was asked about: the same call with what the server wanted to know is the
    /// same call.
    pub(super) fn what(&self) -> String {
        json!([self.tool, self.arguments]).to_string()
    }
}

/// What is known of an id: ids may be numbers or texts, which are not the same.
pub(super) fn key(id: &Value) -> String {
    id.to_string()
}

impl FromClient {
    pub(super) fn read(line: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(line) else {
            return Self::Refused("this is no JSON", vec![Value::Null]);
        };
        if let Some(batch) = value.as_array() {
            let ids = batch.iter().filter_map(|message| message.get("id").cloned()).collect();
            return Self::Refused(
                "several messages at once cannot be looked into; send them one by one",
                ids,
            );
        }
        // Two members of one name are read differently by different servers.
        if is_ambiguous(line) {
            return Self::Refused("this can be read in more than one way", vec![Value::Null]);
        }
        let params = value.get("params");
        match (value.get("method").and_then(Value::as_str), value.get("id")) {
            (Some("tools/call"), Some(id)) => match tool_call(id, params) {
                Some(call) => Self::Call(call),
                None => Self::Refused("a call of a tool needs a name", vec![id.clone()]),
            },
            // Nobody could be told what became of it.
            (Some("tools/call"), None) => Self::Refused("a call of a tool needs an id", Vec::new()),
            (Some("notifications/cancelled"), _) => match params.and_then(|it| it.get("requestId"))
            {
                Some(id) => Self::Cancelled(key(id)),
                None => Self::Other,
            },
            _ => Self::Other,
        }
    }
}

fn tool_call(id: &Value, params: Option<&Value>) -> Option<ToolCall> {
    let params = params?;
    Some(ToolCall {
        id: id.clone(),
        tool: params.get("name")?.as_str()?.to_owned(),
        arguments: params.get("arguments").cloned().unwrap_or_else(|| json!({})),
        progress: params.pointer("/_meta/progressToken").cloned(),
        call_id: params
            .get("_meta")
            .and_then(|meta| meta.get(CALL_ID)?.as_str().map(str::to_owned)),
        state: params.get("requestState").cloned(),
    })
}

/// Says for a client that the person can be asked, where it does not say so itself: the questions come
/// to us. None if nothing is to be changed.
pub(super) fn can_ask(line: &str) -> Option<String> {
    const ASKS: &str = r#"{"form":{},"url":{}}"#;
    let value: Value = serde_json::from_str(line).ok()?;
    let params = value.get("params")?;
    if value.get("method")? == "initialize" {
        let capabilities = params.get("capabilities")?.as_object()?;
        let says = capabilities.contains_key("elicitation");
        return (!says).then(|| set(line, &["params", "capabilities", "elicitation"], ASKS))?;
    }
    let says = params.get("_meta")?.get(CAPABILITIES)?.as_object()?.contains_key("elicitation");
    (!says).then(|| set(line, &["params", "_meta", CAPABILITIES, "elicitation"], ASKS))?
}

/// Whether a client says that it can ask the person itself.
pub(super) fn asks_itself(line: &str) -> bool {
    let value: Value = serde_json::from_str(line).unwrap_or_default();
    let params = value.get("params");
    let told = params.and_then(|params| params.get("capabilities"));
    let told = told.or_else(|| params?.get("_meta")?.get(CAPABILITIES));
    told.is_some_and(|told| told.get("elicitation").is_some())
}

/// What a line from the server is.
#[derive(Debug)]
pub(super) enum FromServer {
    /// The answer to this call, and whether it went well.
    Answer { id: String, well: bool },
    /// What it says of its tools, as the answer to a request: hints, which nobody has to believe.
    Tools(Vec<(String, Hint)>),
    /// It asks the person something.
    Asks { id: Value, params: Value },
    /// It takes a question back.
    TakesBack(String),
    /// To answer this call, it wants to know these things first, by their keys; and a text to come
    /// back with.
    Wants { id: String, asks: Vec<(String, Value)>, all_ours: bool, state: Option<Value> },
    /// Everything else passes.
    Other,
}

/// What a server says of a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Hint {
    /// It only looks.
    Looks,
    /// It adds, and destroys nothing.
    Adds,
    /// Nothing, or that it destroys.
    Destroys,
}

impl Hint {
    fn read(tool: &Value) -> Self {
        let hint = |name: &str| tool.get("annotations")?.get(name)?.as_bool();
        match (hint("readOnlyHint"), hint("destructiveHint")) {
            (Some(true), _) => Self::Looks,
            (_, Some(false)) => Self::Adds,
            // What is not said is as bad as it can be.
            _ => Self::Destroys,
        }
    }
}

impl FromServer {
    pub(super) fn read(line: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Self::Other };
        let params = || value.get("params").cloned().unwrap_or_default();
        match (value.get("method").and_then(Value::as_str), value.get("id")) {
            (Some("elicitation/create"), Some(id)) => {
                Self::Asks { id: id.clone(), params: params() }
            }
            (Some("notifications/cancelled"), _) => {
                Self::TakesBack(params().get("requestId").map(key).unwrap_or_default())
            }
            (None, Some(id)) => Self::answer(key(id), value.get("result")),
            _ => Self::Other,
        }
    }

    fn answer(id: String, result: Option<&Value>) -> Self {
        let Some(result) = result else { return Self::Answer { id, well: false } };
        if let Some(tools) = result.get("tools").and_then(Value::as_array) {
            let hint =
                |tool: &Value| Some((tool.get("name")?.as_str()?.to_owned(), Hint::read(tool)));
            return Self::Tools(tools.iter().filter_map(hint).take(10_000).collect());
        }
        if result.get("resultType").is_some_and(|kind| kind == "input_required") {
            let requests = result.get("inputRequests").and_then(Value::as_object);
            let requests: Vec<_> = requests.into_iter().flatten().collect();
            let is_ours = |asked: &Value| asked["method"] == "elicitation/create";
            let params = |asked: &Value| asked.get("params").cloned().unwrap_or_default();
            let all_ours = requests.iter().all(|(_, asked)| is_ours(asked));
            let asks = requests.iter().map(|(key, asked)| ((*key).clone(), params(asked)));
            let state = result.get("requestState").cloned();
            return Self::Wants { id, asks: asks.take(32).collect(), all_ours, state };
        }
        Self::Answer { id, well: result.get("isError").and_then(Value::as_bool) != Some(true) }
    }
}

/// The same call again, with what the server wanted to know.
pub(super) fn again(line: &str, answers: &Value, state: Option<&Value>) -> Option<String> {
    let told = set(line, &["params", "inputResponses"], &answers.to_string())?;
    match state {
        Some(state) => set(&told, &["params", "requestState"], &state.to_string()),
        None => Some(told),
    }
}

/// The answer to something that the server asked.
pub(super) fn told(id: &Value, result: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": result })
}

/// The answer to a call that is not made. The newest version wants to know that it is the whole one.
pub(super) fn not_done(id: &Value, reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {
        "resultType": "complete",
        "content": [{ "type": "text", "text": reason }], "isError": true } })
}

/// The answer to something that cannot be passed on.
pub(super) fn error(id: &Value, reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": format!("Not passed on: {reason}.") } })
}

/// That something still waits, for clients that would give up.
pub(super) fn waiting(token: &Value, count: u64) -> Value {
    json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": token, "progress": count, "message": "Waiting for a person to answer." } })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_is_seen_and_what_can_be_read_in_two_ways_is_refused() {
        let call = r#"{"jsonrpc":"2.0","id":0,"method":"tools/call","params":{"name":"echo","arguments":{"a":1},"_meta":{"progressToken":"p"}}}"#;
        let FromClient::Call(call) = FromClient::read(call) else { panic!() };
        assert_eq!(
            (call.tool.as_str(), key(&call.id).as_str(), call.progress),
            ("echo", "0", Some(json!("p")))
        );
        for line in [
            "garbage",
            "{\"jsonrpc\":\"2.0\",",
            r#"{"id":1,"method":"ping","method":"tools/call","params":{"name":"x"}}"#,
            r#"[{"id":1,"method":"tools/call","params":{"name":"x"}}]"#,
            r#"{"id":1,"method":"tools/call"}"#,
            r#"{"method":"tools/call","params":{"name":"x"}}"#,
            r#"{"id":1,"method":"tools/call","params":{"name":7}}"#,
        ] {
            assert!(matches!(FromClient::read(line), FromClient::Refused(..)), "{line}");
        }
        for line in [
            r#"{"id":1,"method":"tools/list"}"#,
            r#"{"method":"notifications/initialized"}"#,
            r#"{"id":2,"result":{}}"#,
        ] {
            assert!(matches!(FromClient::read(line), FromClient::Other), "{line}");
        }
    }
}
