//! Messages of the Agent Client Protocol, as far as a proxy has to understand them: one JSON-RPC
//! message on each line. What is not known here passes as it is.

use aaep_types::json::Members;
use serde_json::{Value, json};

/// How deep a message may be: what the JSON library reads, too.
const DEPTH: usize = 127;

/// What is known of an id: ids may be numbers or texts, which are not the same.
pub(super) fn key(id: &Value) -> String {
    id.to_string()
}

/// What a line is.
#[derive(Debug)]
pub(super) enum Line {
    /// Wants an answer.
    Request { id: Value, method: String, params: Value },
    /// Wants none.
    Notice { method: String, params: Value },
    /// An answer, with its result if it went well.
    Answer { id: Value, result: Option<Value> },
    /// Nothing that a proxy can read in one way only.
    Unclear,
}

impl Line {
    pub(super) fn read(line: &[u8]) -> Self {
        let Ok(text) = std::str::from_utf8(line) else { return Self::Unclear };
        let text = text.trim();
        let Ok(Value::Object(mut value)) = serde_json::from_str::<Value>(text) else {
            return Self::Unclear;
        };
        // Two members of one name are read differently by different programs.
        let members = Members::whole(text, DEPTH).ok().flatten();
        if members.is_none_or(|members| members.ambiguity().is_some()) {
            return Self::Unclear;
        }
        let params = value.remove("params").unwrap_or_default();
        match (value.remove("method"), value.remove("id")) {
            (Some(Value::String(method)), Some(id)) => Self::Request { id, method, params },
            (Some(Value::String(method)), None) => Self::Notice { method, params },
            (None, Some(id)) => Self::Answer { id, result: value.remove("result") },
            _ => Self::Unclear,
        }
    }
}

/// A question of the agent: may it use this tool?
#[derive(Clone, Debug)]
pub(super) struct Permission {
    pub(super) id: Value,
    pub(super) session: String,
    pub(super) call: Value,
    options: Vec<(String, String)>,
}

impl Permission {
    pub(super) fn read(id: &Value, params: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
        let options = params.get("options")?.as_array()?.iter();
        Some(Self {
            id: id.clone(),
            session: text(params, "sessionId")?,
            call: params.get("toolCall").cloned().unwrap_or_default(),
            options: options
                .filter_map(|option| Some((text(option, "optionId")?, text(option, "kind")?)))
                .take(32)
                .collect(),
        })
    }

    pub(super) fn call_id(&self) -> &str {
        self.call.get("toolCallId").and_then(Value::as_str).unwrap_or_default()
    }

    fn of_kind(&self, kind: &str) -> Option<&str> {
        self.options.iter().find(|(_, of)| of == kind).map(|(id, _)| id.as_str())
    }

    /// Whether a yes can be given that counts once.
    pub(super) fn has_yes(&self) -> bool {
        self.of_kind("allow_once").is_some()
    }

    /// Whether it offers to be asked no more.
    pub(super) fn offers_always(&self) -> bool {
        self.of_kind("allow_always").is_some()
    }

    /// The answer. What counts for longer than this once is nobody's to choose but the person's, where
    /// it is offered as such.
    pub(super) fn answer(&self, yes: bool) -> Value {
        let option = self.of_kind(if yes { "allow_once" } else { "reject_once" });
        let outcome = match option {
            Some(option) => json!({ "outcome": "selected", "optionId": option }),
            None => json!({ "outcome": "cancelled" }),
        };
        json!({ "jsonrpc": "2.0", "id": self.id, "result": { "outcome": outcome } })
    }
}

/// Whether a mode asks less than everything, by its id: all of it, or edits.
pub(super) fn skips_asking(mode: &str) -> Option<&'static str> {
    let plain: String = mode.chars().filter(char::is_ascii_alphanumeric).collect();
    match plain.to_ascii_lowercase().as_str() {
        "yolo" | "bypasspermissions" | "dontask" | "auto" | "autopilot" | "fullaccess"
        | "agentfullaccess" | "dangerfullaccess" | "fullauto" | "neverask" => {
            Some("the agent asks nothing")
        }
        "acceptedits" | "autoedit" | "autoaccept" | "autoacceptedits" => {
            Some("the agent changes files without asking")
        }
        _ => None,
    }
}

/// The mode that a request of the editor would set.
pub(super) fn mode_wanted<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    match method {
        "session/set_mode" => text("modeId"),
        "session/set_config_option" => {
            let option = text("configId").or_else(|| text("optionId"))?;
            let option = option.to_ascii_lowercase();
            let asks = option.ends_with("mode")
                || ["permission", "approval"].iter().any(|word| option.contains(word));
            asks.then(|| text("value")).flatten()
        }
        _ => None,
    }
}

/// Tells the editor that its question needs no answer any more.
pub(super) fn withdrawn(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "method": "$/cancel_request", "params": { "requestId": id } })
}

/// Asks the agent to stop what it does in this session.
pub(super) fn stop(session: &str) -> Value {
    json!({ "jsonrpc": "2.0", "method": "session/cancel", "params": { "sessionId": session } })
}

/// The answer to something that is not passed on.
pub(super) fn refused(id: &Value, reason: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": -32600, "message": reason } })
}

/// The text of a block of content, and what is not text in words.
pub(super) fn text_of(content: &Value) -> Option<String> {
    let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
    match content.get("type")?.as_str()? {
        "text" => text(content, "text"),
        "image" => Some("(An image.) ".into()),
        "audio" => Some("(A sound.) ".into()),
        "resource_link" => {
            Some(format!("(A link: {}.) ", crate::act::shown(&text(content, "uri")?)))
        }
        "resource" => {
            let uri = text(content.get("resource")?, "uri").unwrap_or_default();
            Some(format!("(A file: {}.) ", crate::act::shown(&uri)))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(options: &Value) -> Permission {
        let params = json!({ "sessionId": "s", "toolCall": {}, "options": options });
        Permission::read(&json!(0), &params).unwrap()
    }

    #[test]
    fn what_counts_for_longer_is_never_chosen() {
        // Gemini lists "always" first.
        let gemini = asked(&json!([
            { "optionId": "always", "name": "Allow for this session", "kind": "allow_always" },
            { "optionId": "once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "never", "name": "Never", "kind": "reject_always" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" }]));
        assert_eq!(gemini.answer(true)["result"]["outcome"]["optionId"], "once");
        assert_eq!(gemini.answer(false)["result"]["outcome"]["optionId"], "no");
        assert!(gemini.has_yes() && gemini.offers_always());
        let always = asked(&json!([{ "optionId": "a", "name": "", "kind": "allow_always" }]));
        assert!(!always.has_yes());
        for yes in [true, false] {
            assert_eq!(always.answer(yes)["result"]["outcome"], json!({ "outcome": "cancelled" }));
        }
    }

    #[test]
    fn lines_are_read_and_what_can_be_read_in_two_ways_is_not() {
        let read = |text: &str| Line::read(text.as_bytes());
        assert!(matches!(read(r#"{"id":0,"method":"m","params":{}}"#), Line::Request { .. }));
        assert!(matches!(read(r#"{"method":"m"}"#), Line::Notice { .. }));
        assert!(matches!(read(r#"{"id":"x","result":null}"#), Line::Answer { .. }));
        for text in
            ["", "x", "[]", "{}", r#"{"id":1,"id":2,"result":1}"#, "{\"method\":5}", "\u{1}"]
        {
            assert!(matches!(read(text), Line::Unclear), "{text}");
        }
        assert!(matches!(Line::read(b"\xff{}"), Line::Unclear));
    }

    #[test]
    fn modes_that_skip_asking_are_known() {
        for mode in ["yolo", "bypassPermissions", "auto", "full-access", "acceptEdits", "autoEdit"]
        {
            assert!(skips_asking(mode).is_some(), "{mode}");
        }
        for mode in ["default", "plan", "read-only", "ask", ""] {
            assert!(skips_asking(mode).is_none(), "{mode}");
        }
        let option = json!({ "sessionId": "s", "configId": "mode", "value": "yolo" });
        assert_eq!(mode_wanted("session/set_config_option", &option), Some("yolo"));
        let model = json!({ "sessionId": "s", "configId": "model", "value": "auto" });
        assert_eq!(mode_wanted("session/set_config_option", &model), None);
    }
}
