//! What agents ask of a hub.

use std::borrow::Cow;

use super::ApiError;
use crate::event::EventKind;
use crate::id::OutputId;
use crate::json::{Members, Raw, Writer, elements};

/// How deep a body, and a payload in it, may nest.
const PAYLOAD_DEPTH: usize = 64;

/// `POST agent/sessions`: a session to open.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenSession {
    /// The producer object, as JSON.
    pub producer: String,
    /// What the session is about.
    pub summary_normal: String,
    /// The language of everything that it says.
    pub language: Option<String>,
    /// How long its agent may stay silent; 0 if what was sent is no number of seconds.
    pub lease_seconds: Option<u64>,
    /// The `agent_id`s of those who speak in it besides; empty if what was sent is no list of texts.
    pub sub_agents: Option<Vec<String>>,
    /// What else its first event says, as a JSON object.
    pub payload: String,
}

/// `POST agent/sessions/{id}/events`: an event, without its envelope.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PostEvent {
    /// Its type.
    pub type_name: String,
    /// Its payload as a JSON object, with what its agent may say of the envelope.
    pub payload: String,
    /// What an announced tool is called with, as JSON. Nobody hears it.
    pub arguments: Option<String>,
}

/// `POST agent/sessions/{id}/requests`: a question to the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AskUser {
    /// `AwaitingConfirmation` or `AwaitingClarification`.
    pub kind: EventKind,
    /// The tool that would run.
    pub tool: String,
    /// With what, as JSON, to be handed back as it stands; empty if nothing was sent.
    pub arguments: String,
    /// The payload of the event that asks, as a JSON object.
    pub payload: String,
}

/// `POST agent/requests/{id}/invoke`: an action that was approved is about to run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct InvokeAction {
    /// With what, as JSON, to be compared with what was asked about.
    pub arguments: Option<String>,
}

/// The members of a body.
struct Object<'a>(Members<'a>, usize);

impl<'a> Object<'a> {
    // enforces: E21
    fn read(bytes: &'a [u8]) -> Result<Self, ApiError> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| ApiError::malformed("The body is JSON in UTF-8."))?;
        Ok(Self(read_object(text)?, bytes.len()))
    }

    fn text(&self, name: &str) -> Result<Option<String>, ApiError> {
        text_in(&self.0, name)
    }

    fn needed(&self, name: &str) -> Result<String, ApiError> {
        self.text(name)?.ok_or_else(|| ApiError::malformed(format!("`{name}` is missing.")))
    }

    /// Everything but these.
    fn without(&self, names: &[&str]) -> String {
        let mut out = Writer::with_capacity(self.1);
        out.open('{');
        for member in self.0.iter().filter(|member| !names.contains(&&*member.name)) {
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
        out.close('}');
        out.finish()
    }
}

/// The members of an object that an agent wrote, each of which stands once.
pub fn read_object(text: &str) -> Result<Members<'_>, ApiError> {
    let fault = |kind: &dyn std::fmt::Display, offset: usize| {
        ApiError::malformed(format!("{kind} (byte {offset})"))
    };
    let members = Members::whole(text, PAYLOAD_DEPTH)
        .map_err(|found| fault(&found.kind, found.offset))?
        .ok_or_else(|| ApiError::malformed("The body is a JSON object."))?;
    if let Some(found) = members.faults().first() {
        return Err(fault(&found.kind, found.offset));
    }
    match members.repeated() {
        Some(name) => Err(ApiError::malformed(format!("`{name}` stands twice; say it once."))),
        None => Ok(members),
    }
}

/// The tool that an event names.
pub fn tool_of(members: &Members<'_>) -> Result<Option<String>, ApiError> {
    text_in(members, "tool")
}

/// The `agent_id` in a producer object.
pub fn agent_id_of(producer: &str) -> Option<String> {
    let members = Members::whole(producer, PAYLOAD_DEPTH).ok().flatten()?;
    members.text("agent_id").map(|id| id.into_owned())
}

fn text_in(members: &Members<'_>, name: &str) -> Result<Option<String>, ApiError> {
    match members.find(name) {
        None => Ok(None),
        Some(Raw::String(text)) => Ok(Some(text.decode().into_owned())),
        Some(_) => Err(ApiError::malformed(format!("`{name}` is a text."))),
    }
}

/// The producer object that an event or a request names, as JSON.
pub fn producer_of<'a>(members: &Members<'a>) -> Result<Option<&'a str>, ApiError> {
    match members.find("producer") {
        None => Ok(None),
        Some(Raw::Object(producer)) => Ok(Some(producer)),
        Some(_) => Err(no_producer()),
    }
}

fn no_producer() -> ApiError {
    ApiError::malformed("`producer` is an object with an `agent_id`.")
}

/// A value as it stands in the text.
fn raw_text(raw: Raw<'_>) -> String {
    match raw {
        Raw::Object(text) | Raw::Array(text) | Raw::Number(text) => text.to_owned(),
        other => {
            let mut out = Writer::new();
            out.raw(other);
            out.finish()
        }
    }
}

/// A payload whose wait is so many times as long, a day at most (D32); `None` if it has none.
pub fn with_longer_wait(payload: &str, factor: u64) -> Option<String> {
    let members = Members::whole(payload, PAYLOAD_DEPTH).ok()??;
    let Raw::Number(seconds) = members.find("timeout_seconds")? else { return None };
    let longer = seconds.parse::<u64>().ok()?.saturating_mul(factor).min(86_400);
    let mut out = Writer::with_capacity(payload.len() + 8);
    out.open('{');
    for member in members.iter().filter(|member| member.name != "timeout_seconds") {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    out.name("timeout_seconds");
    out.display(longer);
    out.close('}');
    Some(out.finish())
}

/// A piece of an output, as its agent sends it.
pub struct OutputChunk<'a> {
    /// Its text.
    pub text: Cow<'a, str>,
    /// The output that it belongs to.
    pub output: Option<OutputId>,
    /// Whether it is the last.
    pub complete: bool,
}

impl<'a> OutputChunk<'a> {
    /// Reads one from the payload of an event.
    pub fn read(members: &Members<'a>) -> Option<Self> {
        let Raw::String(chunk) = members.find("chunk")? else { return None };
        let output = members.text("output_id").and_then(|id| OutputId::parse(&id).ok());
        let complete = members.find("complete") == Some(Raw::Bool(true));
        Some(Self { text: chunk.decode(), output, complete })
    }

    /// The payload with another text, so many characters further on.
    pub fn replaced(members: &Members<'_>, text: &str, shift: i64) -> String {
        let mut out = Writer::new();
        out.open('{');
        for member in members.iter() {
            out.name(&member.name);
            match (&*member.name, member.value) {
                ("chunk", _) => out.string(text),
                ("position", Raw::Number(number)) => match number.parse::<i64>() {
                    Ok(position) => out.display(position.saturating_add(shift).max(0)),
                    Err(_) => out.raw(member.value),
                },
                (_, value) => out.raw(value),
            }
            out.comma();
        }
        out.close('}');
        out.finish()
    }
}

/// An object that is about to be sent.
struct Body(Writer);

impl Body {
    fn new(room: usize) -> Self {
        let mut out = Writer::with_capacity(room + 256);
        out.open('{');
        Self(out)
    }

    fn text(&mut self, name: &str, value: &str) {
        self.0.name(name);
        self.0.string(value);
        self.0.comma();
    }

    fn json(&mut self, name: &str, value: &str) {
        self.0.name(name);
        self.0.json(value);
        self.0.comma();
    }

    /// The same, with the members of an object.
    fn finish(mut self, object: &str) -> String {
        let members = object.trim().strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
        self.0.json(members.unwrap_or_default());
        self.0.close('}');
        self.0.finish()
    }
}

impl OpenSession {
    /// Reads a body.
    pub fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let object = Object::read(bytes)?;
        let producer = producer_of(&object.0)?.ok_or_else(no_producer)?.to_owned();
        let summary_normal = object.needed("summary_normal")?;
        let language = object.text("language")?;
        let lease_seconds = object.0.find("lease_seconds").map(|seconds| match seconds {
            Raw::Number(text) => text.parse().unwrap_or_default(),
            _ => 0,
        });
        let sub_agents = object.0.find("sub_agents").map(texts);
        let ours = ["producer", "summary_normal", "language", "lease_seconds", "sub_agents"];
        let payload = object.without(&ours);
        Ok(Self { producer, summary_normal, language, lease_seconds, sub_agents, payload })
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let mut body =
            Body::new(self.payload.len() + self.producer.len() + self.summary_normal.len());
        body.json("producer", &self.producer);
        body.text("summary_normal", &self.summary_normal);
        if let Some(language) = &self.language {
            body.text("language", language);
        }
        if let Some(seconds) = self.lease_seconds {
            body.json("lease_seconds", &seconds.to_string());
        }
        if let Some(agents) = &self.sub_agents {
            let mut list = Writer::new();
            list.open('[');
            for agent in agents {
                list.string(agent);
                list.comma();
            }
            list.close(']');
            body.json("sub_agents", &list.finish());
        }
        body.finish(&self.payload)
    }
}

/// A list of texts; empty if it is none.
fn texts(list: Raw<'_>) -> Vec<String> {
    let Raw::Array(list) = list else { return Vec::new() };
    let text = |value| match value {
        Raw::String(text) => Some(text.decode().into_owned()),
        _ => None,
    };
    elements(list).into_iter().map(text).collect::<Option<_>>().unwrap_or_default()
}

impl PostEvent {
    /// Reads a body.
    pub fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let object = Object::read(bytes)?;
        let type_name = object.needed("type")?;
        let announces = EventKind::named(&type_name) == Some(EventKind::ToolInvoked);
        let arguments = object.0.find("arguments").filter(|_| announces).map(raw_text);
        let ours: &[&str] = if announces { &["type", "arguments"] } else { &["type"] };
        Ok(Self { payload: object.without(ours), type_name, arguments })
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let room = self.payload.len() + self.arguments.as_ref().map_or(0, String::len);
        let mut body = Body::new(room);
        body.text("type", &self.type_name);
        if let Some(arguments) = &self.arguments {
            body.json("arguments", arguments);
        }
        body.finish(&self.payload)
    }
}

impl AskUser {
    /// Reads a body.
    pub fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let object = Object::read(bytes)?;
        let kind = match object.needed("kind")?.as_str() {
            "confirmation" => EventKind::AwaitingConfirmation,
            "clarification" => EventKind::AwaitingClarification,
            _ => return Err(ApiError::malformed("`kind` is confirmation or clarification.")),
        };
        let tool = object.text("tool")?.unwrap_or_default();
        let arguments = object.0.find("arguments").map(raw_text).unwrap_or_default();
        Ok(Self { kind, tool, arguments, payload: object.without(&["kind", "tool", "arguments"]) })
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let confirms = self.kind == EventKind::AwaitingConfirmation;
        let mut body = Body::new(self.payload.len() + self.arguments.len());
        body.text("kind", if confirms { "confirmation" } else { "clarification" });
        if !self.tool.is_empty() {
            body.text("tool", &self.tool);
        }
        if !self.arguments.is_empty() {
            body.json("arguments", &self.arguments);
        }
        body.finish(&self.payload)
    }
}

impl InvokeAction {
    /// Reads a body, which may be empty.
    pub fn parse(bytes: &[u8]) -> Result<Self, ApiError> {
        let object = Object::read(if bytes.is_empty() { b"{}" } else { bytes })?;
        if let Some(other) = object.0.iter().find(|member| member.name != "arguments") {
            let text = format!("`{}` is not known here; `arguments` is.", other.name);
            return Err(ApiError::malformed(text));
        }
        Ok(Self { arguments: object.0.find("arguments").map(raw_text) })
    }

    /// The body.
    pub fn to_json(&self) -> String {
        let mut body = Body::new(self.arguments.as_ref().map_or(0, String::len));
        if let Some(arguments) = &self.arguments {
            body.json("arguments", arguments);
        }
        body.finish("")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_read_back_as_they_were_written() {
        let open = OpenSession {
            producer: r#"{"agent_id":"cook"}"#.into(),
            summary_normal: "Cooking.".into(),
            language: Some("en".into()),
            lease_seconds: Some(60),
            sub_agents: Some(vec!["waiter".into()]),
            payload: r#"{"x":1}"#.into(),
        };
        assert_eq!(OpenSession::parse(open.to_json().as_bytes()), Ok(open));
        let event = PostEvent {
            type_name: EventKind::ToolInvoked.as_str().into(),
            payload: r#"{"tool":"rm","summary_normal":"Deleting."}"#.into(),
            arguments: Some(r#"{ "path":1.0 }"#.into()),
        };
        assert_eq!(PostEvent::parse(event.to_json().as_bytes()), Ok(event));
        let ask = AskUser {
            kind: EventKind::AwaitingConfirmation,
            tool: "rm".into(),
            arguments: "[1]".into(),
            payload: "{}".into(),
        };
        assert_eq!(ask.to_json(), r#"{"kind":"confirmation","tool":"rm","arguments":[1]}"#);
        assert_eq!(AskUser::parse(ask.to_json().as_bytes()), Ok(ask));
        for arguments in [None, Some("\"x\"".to_owned())] {
            let invoke = InvokeAction { arguments };
            assert_eq!(InvokeAction::parse(invoke.to_json().as_bytes()), Ok(invoke));
        }
        assert_eq!(InvokeAction::parse(b""), Ok(InvokeAction::default()));
    }

    // covers: E21
    #[test]
    fn what_is_no_request_is_refused_with_the_reason() {
        let text = |bytes: &[u8]| PostEvent::parse(bytes).unwrap_err().text;
        assert!(text(b"\xff").contains("UTF-8"));
        assert!(text(b"[]").contains("object"));
        assert!(text(br#"{"type":"x","a":1,"a":2}"#).contains("twice"));
        assert!(text(br#"{"type":1}"#).contains("text"));
        assert!(text(b"{}").contains("missing"));
        assert!(InvokeAction::parse(br#"{"argument":1}"#).is_err());
        assert!(AskUser::parse(br#"{"kind":"order"}"#).is_err());
    }
}
