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
    /// Its place among all questions: agents use the same id for one after the other.
    pub(super) serial: u64,
    pub(super) session: String,
    pub(super) call: Value,
    options: Vec<Choice>,
}

/// One of the answers that an agent offers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Choice {
    id: String,
    kind: String,
    /// What the agent calls it.
    pub(super) name: String,
}

/// How a question is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Reply {
    /// This time.
    Once(bool),
    /// For longer: only ever chosen by a person to whom it was offered as such.
    Lasting(Choice),
}

impl Permission {
    pub(super) fn read(id: &Value, serial: u64, params: &Value) -> Option<Self> {
        let text = |value: &Value, name: &str| value.get(name)?.as_str().map(str::to_owned);
        let options = params.get("options")?.as_array()?.iter();
        let choice = |option: &Value| {
            let name = text(option, "name").unwrap_or_default();
            Some(Choice { id: text(option, "optionId")?, kind: text(option, "kind")?, name })
        };
        Some(Self {
            id: id.clone(),
            serial,
            session: text(params, "sessionId")?,
            call: params.get("toolCall").cloned().unwrap_or_default(),
            options: options.filter_map(choice).take(32).collect(),
        })
    }

    pub(super) fn call_id(&self) -> &str {
        self.call.get("toolCallId").and_then(Value::as_str).unwrap_or_default()
    }

    fn of_kind(&self, kind: &str) -> Option<&Choice> {
        self.options.iter().find(|choice| choice.kind == kind)
    }

    /// Whether a yes can be given that counts once.
    pub(super) fn has_yes(&self) -> bool {
        self.of_kind("allow_once").is_some()
    }

    /// The answers that count for longer.
    pub(super) fn lasting(&self, yes: bool) -> Vec<Choice> {
        let kind = if yes { "allow_always" } else { "reject_always" };
        self.options.iter().filter(|choice| choice.kind == kind).cloned().collect()
    }

    /// The answer, in the agent's form. What it does not offer is no answer: the call is cancelled.
    pub(super) fn answer(&self, reply: &Reply) -> Value {
        let option = match reply {
            Reply::Once(yes) => self.of_kind(if *yes { "allow_once" } else { "reject_once" }),
            Reply::Lasting(choice) => self.options.iter().find(|offered| *offered == choice),
        };
        let outcome = match option {
            Some(choice) => json!({ "outcome": "selected", "optionId": choice.id }),
            None => json!({ "outcome": "cancelled" }),
        };
        json!({ "jsonrpc": "2.0", "id": self.id, "result": { "outcome": outcome } })
    }
}

/// The name of a mode. Copilot gives its modes addresses.
pub(super) fn mode_name(mode: &str) -> &str {
    mode.rsplit_once(ADDRESS).map_or(mode, |(_, name)| name)
}

const ADDRESS: &str = "/session-modes#";

/// Whether a mode, or an option that is on, asks less than everything, by its id: all of it, or edits.
pub(super) fn skips_asking(mode: &str) -> Option<&'static str> {
    match plain(mode_name(mode)).as_str() {
        "yolo" | "allowall" | "bypasspermissions" | "dontask" | "auto" | "autopilot"
        | "fullaccess" | "agentfullaccess" | "dangerfullaccess" | "fullauto" | "neverask" => {
            Some("the agent asks nothing")
        }
        "acceptedits" | "autoedit" | "autoaccept" | "autoacceptedits" | "workspacewrite" => {
            Some("the agent changes files without asking")
        }
        // Copilot's, with an address, asks.
        "agent" if mode.contains(ADDRESS) => None,
        "agent" | "autoreview" => Some("the agent asks only what it finds unsafe itself"),
        _ => None,
    }
}

fn plain(name: &str) -> String {
    let plain = name.chars().filter(char::is_ascii_alphanumeric);
    plain.map(|c| c.to_ascii_lowercase()).collect()
}

/// Whether an option is on.
fn is_on(value: Option<&Value>) -> bool {
    value.is_some_and(|value| *value == true || *value == "on" || *value == "true")
}

/// The mode that a request of the editor would set.
pub(super) fn mode_wanted<'a>(method: &str, params: &'a Value) -> Option<&'a str> {
    let text = |name: &str| params.get(name).and_then(Value::as_str);
    match method {
        "session/set_mode" => text("modeId"),
        "session/set_config_option" => {
            let option = text("configId").or_else(|| text("optionId"))?;
            if skips_asking(option).is_some() && is_on(params.get("value")) {
                return Some(option);
            }
            let option = option.to_ascii_lowercase();
            let asks = option.ends_with("mode")
                || ["permission", "approval"].iter().any(|word| option.contains(word));
            asks.then(|| text("value")).flatten()
        }
        _ => None,
    }
}

/// The mode in which a session is, as its beginning, or an update of it, says. An option that has the
/// agent ask nothing counts as one while it is on.
pub(super) fn mode_of(said: &Value) -> Option<&str> {
    let options = || said.get("configOptions").and_then(Value::as_array).into_iter().flatten();
    let on = options().filter(|option| is_on(option.get("currentValue")));
    let mut on = on.filter_map(|option| option.get("id")?.as_str());
    if let Some(option) = on.find(|option| skips_asking(option).is_some()) {
        return Some(option);
    }
    let named = said.pointer("/modes/currentModeId").or_else(|| said.get("currentModeId"));
    named.and_then(Value::as_str).or_else(|| {
        let mode = options().find(|option| option["id"] == "mode")?;
        mode.get("currentValue")?.as_str()
    })
}

/// Of the modes that the beginning of a session lists, one in which the agent asks: the usual one if
/// it does.
pub(super) fn asking_mode(said: &Value) -> Option<String> {
    let list = |at: &str| said.pointer(at).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut modes: Vec<String> = list("/modes/availableModes")
        .iter()
        .filter_map(|mode| mode.get("id")?.as_str().map(str::to_owned))
        .collect();
    if modes.is_empty() {
        let options = list("/configOptions");
        let mode = options.iter().find(|option| option["id"] == "mode");
        let values = mode.and_then(|mode| mode["options"].as_array()).into_iter().flatten();
        modes.extend(values.filter_map(|value| value.get("value")?.as_str().map(str::to_owned)));
    }
    modes.retain(|mode| skips_asking(mode).is_none());
    let best = modes.iter().find(|mode| mode.as_str() == "default");
    let best = best.or_else(|| modes.iter().find(|mode| mode_name(mode) != "plan"));
    best.or(modes.first()).cloned()
}

/// Sets a mode.
pub(super) fn set_mode(id: &str, session: &str, mode: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/set_mode",
        "params": { "sessionId": session, "modeId": mode } })
}

/// Switches an option off.
pub(super) fn set_off(id: &str, session: &str, option: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "method": "session/set_config_option",
        "params": { "sessionId": session, "configId": option, "value": "off" } })
}

/// Whether this is an option, and no mode.
pub(super) fn is_option(mode: &str) -> bool {
    plain(mode) == "allowall"
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
        "image" => Some(format!("({}.) ", picture(content))),
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

/// A picture in words: its kind, its size, and its name if it has one. What it shows only the agent
/// can say.
pub(super) fn picture(content: &Value) -> String {
    let text = |name: &str| content.get(name).and_then(Value::as_str);
    let kind = text("mimeType").and_then(|kind| kind.strip_prefix("image/")).unwrap_or_default();
    let kind: String = kind.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let kilobytes = text("data").map_or(0, |data| (data.len() * 3 / 4).div_ceil(1000));
    let name = text("uri").and_then(|uri| uri.rsplit('/').next()).map(crate::act::shown);
    let mut words = "An image".to_owned();
    if let Some(name) = name.filter(|name| !name.is_empty()) {
        words += &format!(" {name}");
    }
    if !kind.is_empty() {
        words += &format!(", {}", kind.to_ascii_uppercase());
    }
    if kilobytes > 0 {
        words += &format!(", {kilobytes} kilobytes");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(options: &Value) -> Permission {
        let params = json!({ "sessionId": "s", "toolCall": {}, "options": options });
        Permission::read(&json!(0), 0, &params).unwrap()
    }

    #[test]
    fn what_counts_for_longer_is_chosen_only_as_such() {
        // Gemini lists "always" first.
        let gemini = asked(&json!([
            { "optionId": "always", "name": "Allow for this session", "kind": "allow_always" },
            { "optionId": "once", "name": "Allow", "kind": "allow_once" },
            { "optionId": "never", "name": "Never", "kind": "reject_always" },
            { "optionId": "no", "name": "Reject", "kind": "reject_once" }]));
        let chosen = |reply: Reply| gemini.answer(&reply)["result"]["outcome"]["optionId"].clone();
        assert_eq!(chosen(Reply::Once(true)), "once");
        assert_eq!(chosen(Reply::Once(false)), "no");
        assert!(gemini.has_yes());
        let [always] = &gemini.lasting(true)[..] else { panic!() };
        assert_eq!(always.name, "Allow for this session");
        assert_eq!(chosen(Reply::Lasting(always.clone())), "always");
        assert_eq!(chosen(Reply::Lasting(gemini.lasting(false)[0].clone())), "never");
        let only = asked(&json!([{ "optionId": "a", "name": "", "kind": "allow_always" }]));
        assert!(!only.has_yes());
        for reply in [Reply::Once(true), Reply::Once(false), Reply::Lasting(always.clone())] {
            let outcome = only.answer(&reply)["result"]["outcome"].clone();
            assert_eq!(outcome, json!({ "outcome": "cancelled" }), "{reply:?}");
        }
    }

    #[test]
    fn images_are_put_into_words() {
        let image = json!({ "type": "image", "mimeType": "image/png", "data": "A".repeat(4000),
            "uri": "file:///home/ada/\u{202e}chart.png" });
        assert_eq!(text_of(&image).unwrap(), "(An image \u{fffd}chart.png, PNG, 3 kilobytes.) ");
        assert_eq!(text_of(&json!({ "type": "image" })).unwrap(), "(An image.) ");
    }

    #[test]
    fn a_mode_in_which_the_agent_asks_is_found() {
        let modes = |ids: &[&str]| {
            let ids: Vec<_> = ids.iter().map(|id| json!({ "id": id })).collect();
            json!({ "modes": { "currentModeId": "auto", "availableModes": ids } })
        };
        let qwen = modes(&["plan", "default", "auto-edit", "auto", "yolo"]);
        assert_eq!(
            (mode_of(&qwen), asking_mode(&qwen).as_deref()),
            (Some("auto"), Some("default"))
        );
        let codex = modes(&["read-only", "workspace-write", "agent", "agent-full-access"]);
        assert_eq!(asking_mode(&codex).as_deref(), Some("read-only"));
        assert_eq!(asking_mode(&modes(&["yolo"])), None);
        let options = json!({ "configOptions": [{ "id": "mode", "currentValue": "yolo",
            "options": [{ "value": "yolo" }, { "value": "ask" }] }] });
        assert_eq!(
            (mode_of(&options), asking_mode(&options).as_deref()),
            (Some("yolo"), Some("ask"))
        );
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

    #[test]
    fn modes_with_addresses_and_options_that_skip_asking_are_known() {
        let mode = |name: &str| format!("https://example.org/protocol/session-modes#{name}");
        assert!(skips_asking(&mode("agent")).is_none() && skips_asking("agent").is_some());
        assert!(skips_asking(&mode("autopilot")).is_some());
        assert_eq!(mode_name(&mode("agent")), "agent");
        let began = |value: Value| {
            json!({ "modes": { "currentModeId": mode("agent"), "availableModes":
                [{ "id": mode("plan") }, { "id": mode("agent") }, { "id": mode("autopilot") }] },
                "configOptions": [{ "id": "allow_all", "category": "permissions", "currentValue": value }] })
        };
        assert_eq!(mode_of(&began(json!("off"))), Some(mode("agent").as_str()));
        assert_eq!(asking_mode(&began(json!("off"))), Some(mode("agent")));
        for on in [json!("on"), json!(true)] {
            assert_eq!(mode_of(&began(on.clone())), Some("allow_all"));
            let set = json!({ "sessionId": "s", "configId": "allow_all", "value": on });
            assert_eq!(mode_wanted("session/set_config_option", &set), Some("allow_all"));
        }
        let off = json!({ "sessionId": "s", "configId": "allow_all", "value": "off" });
        assert_eq!(mode_wanted("session/set_config_option", &off), None);
        assert!(skips_asking("allow_all").is_some() && is_option("allow_all"));
        assert!(!is_option("yolo"));
    }
}
