//! Messages of the Model Context Protocol, as far as a proxy has to understand them: one JSON-RPC
//! message on each line.

use aaep_types::json::Members;
use serde_json::{Value, json};

/// How deep a message may be: what the JSON library reads, too.
const DEPTH: usize = 127;

/// What a line from the client is.
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
        let members = Members::whole(line, DEPTH).ok().flatten();
        if members.is_none_or(|members| members.ambiguity().is_some()) {
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
    })
}

/// What a server says of its tools: hints, which nobody has to believe.
#[derive(Debug, Default)]
pub(super) struct FromServer {
    /// The answer to this call, and whether it went well.
    pub(super) answer: Option<(String, bool)>,
    /// Tools that only look, as the server says, and all tools that it named.
    pub(super) tools: Vec<(String, bool)>,
}

impl FromServer {
    pub(super) fn read(line: &str) -> Self {
        let Ok(value) = serde_json::from_str::<Value>(line) else { return Self::default() };
        let (Some(id), None) = (value.get("id"), value.get("method")) else {
            return Self::default();
        };
        let result = value.get("result");
        let well = result
            .is_some_and(|result| result.get("isError").and_then(Value::as_bool) != Some(true));
        let tools = result.and_then(|result| result.get("tools")).and_then(Value::as_array);
        let tools = tools.into_iter().flatten().filter_map(|tool| {
            let reads = tool.pointer("/annotations/readOnlyHint").and_then(Value::as_bool);
            Some((tool.get("name")?.as_str()?.to_owned(), reads == Some(true)))
        });
        Self { answer: Some((key(id), well)), tools: tools.take(10_000).collect() }
    }
}

/// The answer to a call that is not made.
pub(super) fn not_done(id: &Value, reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {
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
