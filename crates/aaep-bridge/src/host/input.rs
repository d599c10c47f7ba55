//! What a program tells a hook: who it is, and what happens.

use std::fmt;
use std::path::PathBuf;

use serde_json::Value;

use super::Host;

/// The longest input that is read, in bytes.
pub const MAX_INPUT_BYTES: usize = 16 << 20;

/// One call of a hook.
#[derive(Clone, Debug)]
pub struct Incoming {
    /// Who calls.
    pub host: Host,
    /// The program's own name of its session.
    pub session: String,
    /// Where it works.
    pub directory: PathBuf,
    /// What happens.
    pub event: Event,
}

/// What happens.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Event {
    /// A tool is about to run. The program waits for the answer.
    Before(Call),
    /// A tool has run.
    After {
        /// Which call it was.
        call: Call,
        /// Whether it went well.
        well: bool,
    },
    /// The person set the agent to work.
    Prompt(String),
    /// Something worth telling.
    Note(String),
    /// The agent is done with what it was asked, and says this.
    Stopped(String),
    /// The program starts.
    Started,
    /// The program ends.
    Ended,
    /// The program does something that needs no words.
    Nothing,
}

/// A call of a tool.
#[derive(Clone, Debug)]
pub struct Call {
    /// The tool, as the program names it.
    pub tool: String,
    /// Its arguments.
    pub arguments: Value,
    /// The program's own name of this call, if it has one.
    pub id: Option<String>,
    /// Whether the program itself wants permission: then it is always asked.
    pub wants_permission: bool,
}

/// Why an input is no call of a hook that we know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreadable {
    /// It is too long.
    TooLong,
    /// It is no JSON object.
    NoJson,
    /// Nobody can tell which program calls.
    UnknownHost,
    /// The program that calls is not the one that was named.
    OtherHost,
    /// The event is one that we do not know.
    UnknownEvent(String),
    /// Something that has to be there is not.
    Missing(&'static str),
}

impl fmt::Display for Unreadable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLong => f.write_str("the call is longer than 16 MiB"),
            Self::NoJson => f.write_str("the call is no JSON object"),
            Self::UnknownHost => f.write_str("nobody can tell which program calls"),
            Self::OtherHost => f.write_str("another program calls than the one that was set up"),
            Self::UnknownEvent(name) => {
                write!(
                    f,
                    "the event {} is not known; is the program newer?",
                    crate::act::shown(name)
                )
            }
            Self::Missing(name) => write!(f, "the call has no {name}; is the program newer?"),
        }
    }
}

impl std::error::Error for Unreadable {}

impl Incoming {
    /// Reads a call. If the program was named beforehand, it has to be that one.
    pub fn read(bytes: &[u8], named: Option<Host>) -> Result<Self, Unreadable> {
        if bytes.len() > MAX_INPUT_BYTES {
            return Err(Unreadable::TooLong);
        }
        let value: Value = serde_json::from_slice(bytes).map_err(|_| Unreadable::NoJson)?;
        if !value.is_object() {
            return Err(Unreadable::NoJson);
        }
        let host = match (recognise(&value), named) {
            (Some(found), Some(named)) if !same_family(found, named) => {
                return Err(Unreadable::OtherHost);
            }
            (_, Some(named)) => named,
            (Some(found), None) => found,
            (None, None) => return Err(Unreadable::UnknownHost),
        };
        let session = match host {
            Host::Copilot => text(&value, "sessionId"),
            Host::Cline => text(&value, "taskId"),
            Host::Opencode => value.get("input").and_then(|input| text(input, "sessionID")),
            _ => text(&value, "session_id"),
        };
        let directory = match host {
            Host::Cline => value.pointer("/workspaceRoots/0").and_then(Value::as_str),
            Host::Opencode => text(&value, "directory"),
            _ => text(&value, "cwd"),
        };
        let directory = PathBuf::from(directory.ok_or(Unreadable::Missing("directory"))?);
        if !directory.is_absolute() {
            return Err(Unreadable::Missing("directory that is a whole path"));
        }
        let session = session.ok_or(Unreadable::Missing("session"))?.to_owned();
        let event = event(host, &value)?;
        Ok(Self { host, session, directory, event })
    }
}

/// Programs that share their form cannot always be told apart.
fn same_family(found: Host, named: Host) -> bool {
    let family = |host| matches!(host, Host::Claude | Host::Codex | Host::Qwen);
    found == named || (family(found) && family(named))
}

/// Who calls, by what only it says.
fn recognise(value: &Value) -> Option<Host> {
    let has = |name: &str| value.get(name).is_some();
    if has("clineVersion") || has("workspaceRoots") {
        return Some(Host::Cline);
    }
    if text(value, "client_type") == Some("kimi_code_cli") {
        return Some(Host::Kimi);
    }
    if has("hook") && value.get("input").is_some_and(|input| input.get("sessionID").is_some()) {
        return Some(Host::Opencode);
    }
    if has("sessionId") && (has("toolName") || has("timestamp")) {
        return Some(Host::Copilot);
    }
    let event = text(value, "hook_event_name")?;
    let kept = text(value, "transcript_path").unwrap_or_default();
    for (place, host) in [
        ("/.claude/", Host::Claude),
        ("/.codex/", Host::Codex),
        ("/.gemini/", Host::Gemini),
        ("/.qwen/", Host::Qwen),
    ] {
        if kept.contains(place) {
            return Some(host);
        }
    }
    if event.starts_with("Before") || event.starts_with("After") {
        return Some(Host::Gemini);
    }
    match (has("turn_id") && has("model"), has("tool_call_id"), has("prompt_id")) {
        (true, _, _) => Some(Host::Codex),
        (_, true, true) => Some(Host::Qwen),
        (_, _, true) => Some(Host::Claude),
        _ => None,
    }
}

fn event(host: Host, value: &Value) -> Result<Event, Unreadable> {
    match host {
        Host::Copilot => return copilot(value),
        Host::Cline => return cline(value),
        Host::Opencode => return opencode(value),
        _ => {}
    }
    let name = text(value, "hook_event_name").ok_or(Unreadable::Missing("hook_event_name"))?;
    let call = |wants_permission| {
        Ok(Call {
            tool: text(value, "tool_name").ok_or(Unreadable::Missing("tool_name"))?.to_owned(),
            arguments: value.get("tool_input").cloned().ok_or(Unreadable::Missing("tool_input"))?,
            id: text(value, "tool_use_id")
                .or_else(|| text(value, "tool_call_id"))
                .map(str::to_owned),
            wants_permission,
        })
    };
    let said = |names: &[&str]| {
        names.iter().find_map(|name| text(value, name)).unwrap_or_default().to_owned()
    };
    let helper = |what: &str| {
        Event::Note(format!(
            "A helper agent {what}: {}.",
            crate::act::shown(&said(&["agent_type", "agent_name"]))
        ))
    };
    Ok(match name {
        "PreToolUse" | "BeforeTool" => Event::Before(call(false)?),
        "PermissionRequest" => Event::Before(call(true)?),
        "PostToolUse" | "AfterTool" => Event::After { call: call(false)?, well: is_well(value) },
        "PostToolUseFailure" => Event::After { call: call(false)?, well: false },
        "UserPromptSubmit" | "BeforeAgent" => Event::Prompt(prompt(value)),
        "Notification" => notification(value),
        "Elicitation" => Event::Note(format!(
            "{} wants to know: {}",
            server(value),
            crate::act::shown(&said(&["message"]))
        )),
        "ElicitationResult" => {
            let became = match text(value, "action") {
                Some("accept") => "was answered",
                Some("decline") => "was declined",
                _ => "was not answered",
            };
            Event::Note(format!("{}: its question {became}.", server(value)))
        }
        "SubagentStart" => helper("begins"),
        "SubagentStop" => helper("is done"),
        "Stop" | "AfterAgent" => {
            Event::Stopped(said(&["last_assistant_message", "prompt_response"]))
        }
        // It only makes room, and goes on.
        "SessionStart" if text(value, "source") == Some("compact") => Event::Nothing,
        "SessionStart" => Event::Started,
        "SessionEnd" => Event::Ended,
        "PreCompact" | "PreCompress" | "PostToolBatch" | "MessageDisplay" => Event::Nothing,
        other => return Err(Unreadable::UnknownEvent(other.to_owned())),
    })
}

/// What the person wants, in one text or in several.
fn prompt(value: &Value) -> String {
    match value.get("prompt") {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(parts)) => texts(parts),
        _ => String::new(),
    }
}

fn texts(parts: &[Value]) -> String {
    parts.iter().filter_map(|part| text(part, "text")).collect::<Vec<_>>().join("\n")
}

/// What became of a server's question has an event of its own.
fn notification(value: &Value) -> Event {
    match text(value, "notification_type") {
        Some(kind) if kind.starts_with("elicitation") => Event::Nothing,
        _ => Event::Note(text(value, "message").unwrap_or_default().to_owned()),
    }
}

/// The server of the Model Context Protocol that a program speaks of.
fn server(value: &Value) -> String {
    let name = text(value, "mcp_server_name").map(crate::act::shown);
    name.map_or_else(|| "A server".into(), |name| format!("The server {name}"))
}

fn is_well(value: &Value) -> bool {
    let response = value.get("tool_response");
    let says =
        |name: &str| response.and_then(|response| response.get(name)).and_then(Value::as_bool);
    says("is_error") != Some(true)
        && says("isError") != Some(true)
        && says("interrupted") != Some(true)
}

/// Copilot does not say which event it is; each has members of its own.
fn copilot(value: &Value) -> Result<Event, Unreadable> {
    let has = |name: &str| value.get(name).is_some();
    if !has("toolName") {
        return match () {
            () if text(value, "hook_event_name") == Some("Notification") => Ok(notification(value)),
            () if has("source") => Ok(Event::Started),
            () if has("prompt") => Ok(Event::Prompt(prompt(value))),
            // A helper agent stops too.
            () if has("stopReason") && has("agentName") => Ok(Event::Note(format!(
                "A helper agent is done: {}.",
                crate::act::shown(text(value, "agentName").unwrap_or_default())
            ))),
            () if has("stopReason") => Ok(Event::Stopped(String::new())),
            () if has("reason") => Ok(Event::Ended),
            () => Err(Unreadable::Missing("toolName")),
        };
    }
    let arguments = value.get("toolArgs").or_else(|| value.get("toolInput"));
    // Some versions write the arguments as text.
    let arguments = match arguments.ok_or(Unreadable::Missing("toolArgs"))? {
        Value::String(text) => {
            serde_json::from_str(text).map_err(|_| Unreadable::Missing("toolArgs"))?
        }
        other => other.clone(),
    };
    let call = Call {
        tool: text(value, "toolName").ok_or(Unreadable::Missing("toolName"))?.to_owned(),
        arguments,
        id: None,
        wants_permission: text(value, "hookName") == Some("permissionRequest"),
    };
    match value.get("toolResult") {
        Some(result) => {
            let well = text(result, "resultType").is_none_or(|end| end == "success");
            Ok(Event::After { call, well })
        }
        None => Ok(Event::Before(call)),
    }
}

fn cline(value: &Value) -> Result<Event, Unreadable> {
    let name = text(value, "hookName").unwrap_or_default();
    let call = value.get("tool_call").ok_or_else(|| Unreadable::UnknownEvent(name.to_owned()))?;
    let call = Call {
        tool: text(call, "name").ok_or(Unreadable::Missing("tool_call.name"))?.to_owned(),
        arguments: call.get("input").cloned().ok_or(Unreadable::Missing("tool_call.input"))?,
        id: text(call, "id").map(str::to_owned),
        wants_permission: false,
    };
    match name {
        "tool_call" if value.get("preToolUse").is_some() => Ok(Event::Before(call)),
        "tool_result" => Ok(Event::After { call, well: true }),
        other => Err(Unreadable::UnknownEvent(other.to_owned())),
    }
}

fn opencode(value: &Value) -> Result<Event, Unreadable> {
    let name = text(value, "hook").unwrap_or_default();
    let input = value.get("input").ok_or(Unreadable::Missing("input"))?;
    let call = |place: &str| {
        Ok(Call {
            tool: text(input, "tool").ok_or(Unreadable::Missing("tool"))?.to_owned(),
            arguments: value.pointer(place).cloned().ok_or(Unreadable::Missing("args"))?,
            id: text(input, "callID").map(str::to_owned),
            wants_permission: false,
        })
    };
    match name {
        "tool.execute.before" => Ok(Event::Before(call("/output/args")?)),
        "tool.execute.after" => Ok(Event::After { call: call("/input/args")?, well: true }),
        "chat.message" => {
            let parts = value.pointer("/output/parts").and_then(Value::as_array);
            Ok(Event::Prompt(parts.map(|parts| texts(parts)).unwrap_or_default()))
        }
        "session.idle" => Ok(Event::Stopped(String::new())),
        other => Err(Unreadable::UnknownEvent(other.to_owned())),
    }
}

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name).and_then(Value::as_str)
}
