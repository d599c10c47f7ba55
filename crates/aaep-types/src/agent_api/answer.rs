//! What a hub answers to agents.

use std::sync::Arc;

use crate::id::{EventId, OutputId, SessionId, ToolCallId};
use crate::json::{Members, Raw, Writer, elements};
use crate::time::Timestamp;

/// How deep an answer may nest.
const DEPTH: usize = 64;

fn members(bytes: &[u8]) -> Option<Members<'_>> {
    Members::whole(std::str::from_utf8(bytes).ok()?, DEPTH).ok()?
}

fn owned(members: &Members<'_>, name: &str) -> Option<String> {
    members.text(name).map(|text| text.into_owned())
}

fn raw_json(raw: Raw<'_>) -> String {
    let mut out = Writer::new();
    out.raw(raw);
    out.finish()
}

/// A session was opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionOpened {
    /// Its id.
    pub session_id: SessionId,
    /// What shows that it is its agent's, told once to an agent without a token.
    pub session_secret: Option<String>,
}

impl SessionOpened {
    /// The body of the answer.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        out.json("{\"session_id\":");
        out.string(self.session_id.as_str());
        if let Some(secret) = &self.session_secret {
            out.json(",\"session_secret\":");
            out.string(secret);
        }
        out.close('}');
        out.finish()
    }

    /// Reads an answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let members = members(bytes)?;
        let session_id = SessionId::parse(&members.text("session_id")?).ok()?;
        Some(Self { session_id, session_secret: owned(&members, "session_secret") })
    }
}

/// An event was emitted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EventPosted {
    /// Its id.
    pub event_id: EventId,
    /// Its place in the session.
    pub sequence_number: u64,
}

impl EventPosted {
    /// The body of the answer.
    pub fn to_json(&self) -> String {
        let Self { event_id, sequence_number } = self;
        format!(r#"{{"event_id":"{event_id}","sequence_number":{sequence_number}}}"#)
    }

    /// Reads an answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let members = members(bytes)?;
        let Raw::Number(number) = members.find("sequence_number")? else { return None };
        let event_id = EventId::parse(&members.text("event_id")?).ok()?;
        Some(Self { event_id, sequence_number: number.parse().ok()? })
    }
}

/// Where a request stands, as its agent sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RequestStatus {
    /// It waits for an answer.
    Pending,
    /// Somebody, or silence, said yes.
    Accepted,
    /// Somebody said no.
    Rejected,
    /// Nobody answered in time.
    TimedOut,
    /// It was withdrawn.
    Cancelled,
    /// Another event asks it now.
    Superseded,
    /// A question that nobody answered.
    Unanswered,
    /// It was approved, and the approval was not used in time.
    Expired,
    /// The approval was spent.
    Invoked,
    /// The action ended.
    Completed,
    /// The action was begun, and nobody knows how it ended.
    Unknown,
}

impl RequestStatus {
    const ALL: [Self; 11] = [
        Self::Pending,
        Self::Accepted,
        Self::Rejected,
        Self::TimedOut,
        Self::Cancelled,
        Self::Superseded,
        Self::Unanswered,
        Self::Expired,
        Self::Invoked,
        Self::Completed,
        Self::Unknown,
    ];

    /// As it is written.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Accepted => "accepted",
            Self::Rejected => "rejected",
            Self::TimedOut => "timed_out",
            Self::Cancelled => "cancelled",
            Self::Superseded => "superseded",
            Self::Unanswered => "unanswered",
            Self::Expired => "expired",
            Self::Invoked => "invoked",
            Self::Completed => "completed",
            Self::Unknown => "unknown",
        }
    }

    /// Reads one. What a later version may say counts as withdrawn: it is no approval.
    fn read(word: &str) -> Self {
        Self::ALL.into_iter().find(|known| known.as_str() == word).unwrap_or(Self::Cancelled)
    }
}

/// A request as its agent sees it; never with the reply token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestState {
    /// Its name.
    pub request_id: String,
    /// The event that asks.
    pub event_id: EventId,
    /// The session that asked.
    pub session_id: SessionId,
    /// What consent is bound to.
    pub digest: String,
    /// When the wait ends.
    pub deadline: Timestamp,
    /// Where it stands.
    pub status: RequestStatus,
    /// Who or what decided.
    pub decided_by: Option<Arc<str>>,
    /// The answer to a question, as JSON.
    pub response: Option<Arc<str>>,
    /// What the reply says of itself, as a JSON object; see [`ReplyClaims::read`].
    pub reply: Option<Arc<str>>,
}

impl RequestState {
    /// The body of the answer.
    pub fn to_json(&self) -> String {
        let mut out = Writer::with_capacity(512);
        // Nothing here needs an escape: identifiers, digits, words of ours.
        for (before, value) in [
            ("{\"request_id\":\"", &*self.request_id),
            ("\",\"event_id\":\"", self.event_id.as_str()),
            ("\",\"session_id\":\"", self.session_id.as_str()),
            ("\",\"digest\":\"", &self.digest),
            ("\",\"deadline\":\"", &self.deadline.to_string()),
            ("\",\"status\":\"", self.status.as_str()),
        ] {
            out.json(before);
            out.json(value);
        }
        out.json("\"");
        if let Some(by) = &self.decided_by {
            out.json(",\"decided_by\":");
            out.string(by);
        }
        if let Some(response) = &self.response {
            out.json(",\"response\":");
            out.json(response);
        }
        if let Some(reply) = &self.reply {
            out.json(",\"reply\":");
            out.json(reply);
        }
        out.close('}');
        out.finish()
    }

    /// Reads an answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let members = members(bytes)?;
        let json = |name| members.find(name).map(|raw| raw_json(raw).into());
        Some(Self {
            request_id: owned(&members, "request_id")?,
            event_id: EventId::parse(&members.text("event_id")?).ok()?,
            session_id: SessionId::parse(&members.text("session_id")?).ok()?,
            digest: owned(&members, "digest")?,
            deadline: Timestamp::parse(&members.text("deadline")?).ok()?,
            status: RequestStatus::read(&members.text("status")?),
            decided_by: members.text("decided_by").map(|by| by.into()),
            response: json("response"),
            reply: json("reply"),
        })
    }
}

/// What a reply says of itself (§6.3.2, §6.5.3): claims of the answering device, checked by nobody.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct ReplyClaims {
    /// Who decided.
    pub decided_by: Option<String>,
    /// Why.
    pub rationale: Option<String>,
    /// How sure the device is that it understood an answer, from 0 to 1.
    pub confidence: Option<f64>,
    /// Ties it to traces elsewhere.
    pub correlation_id: Option<String>,
}

impl ReplyClaims {
    // enforces: C9, C19
    /// Reads what stands in [`RequestState::reply`].
    pub fn read(json: &str) -> Self {
        let members = Members::whole(json, 8).ok().flatten().unwrap_or_default();
        let confidence = match members.find("confidence") {
            Some(Raw::Number(number)) => number.parse().ok(),
            _ => None,
        };
        Self {
            decided_by: owned(&members, "decided_by"),
            rationale: owned(&members, "decision_rationale"),
            confidence,
            correlation_id: owned(&members, "correlation_id"),
        }
    }
}

/// An approval was spent: run this, once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Granted {
    /// The call, to be completed.
    pub tool_call_id: ToolCallId,
    /// The arguments that were confirmed, as JSON, byte for byte.
    pub arguments: Option<Arc<str>>,
}

impl Granted {
    /// The body of the answer.
    pub fn to_json(&self) -> String {
        let arguments = self.arguments.as_deref().unwrap_or("null");
        format!(r#"{{"tool_call_id":"{}","arguments":{arguments}}}"#, self.tool_call_id)
    }

    /// Reads an answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let members = members(bytes)?;
        let arguments = members.find("arguments").filter(|raw| *raw != Raw::Null).map(raw_json);
        let tool_call_id = ToolCallId::parse(&members.text("tool_call_id")?).ok()?;
        Some(Self { tool_call_id, arguments: arguments.map(Into::into) })
    }
}

/// A call of a tool that has not come back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenTool {
    /// The call.
    pub tool_call_id: ToolCallId,
    /// The tool.
    pub tool: Arc<str>,
}

/// An output that is not complete.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenOutput {
    /// Its id, if it has one.
    pub output_id: Option<OutputId>,
    /// Where it goes on, in Unicode scalar values.
    pub position: u64,
}

/// Where an open session stands, as its agent sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionState {
    /// Its id.
    pub session_id: SessionId,
    /// The state it is in.
    pub state: String,
    /// Calls that have not come back.
    pub calls: Vec<OpenTool>,
    /// Outputs that are not complete.
    pub outputs: Vec<OpenOutput>,
}

impl SessionState {
    /// The body of the answer.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        out.open('{');
        out.name("session_id");
        out.string(self.session_id.as_str());
        out.comma();
        out.name("state");
        out.string(&self.state);
        out.comma();
        out.name("calls");
        out.open('[');
        for OpenTool { tool_call_id, tool } in &self.calls {
            out.json(&format!(r#"{{"tool_call_id":"{tool_call_id}","tool":"#));
            out.string(tool);
            out.json("},");
        }
        out.close(']');
        out.comma();
        out.name("outputs");
        out.open('[');
        for OpenOutput { output_id, position } in &self.outputs {
            out.open('{');
            if let Some(output) = output_id {
                out.json(&format!(r#""output_id":"{output}","#));
            }
            out.json(&format!(r#""position":{position}}},"#));
        }
        out.close(']');
        out.close('}');
        out.finish()
    }

    /// Reads an answer.
    pub fn parse(bytes: &[u8]) -> Option<Self> {
        let members = members(bytes)?;
        let tool = |call: &Members<'_>| {
            let tool_call_id = ToolCallId::parse(&call.text("tool_call_id")?).ok()?;
            Some(OpenTool { tool_call_id, tool: call.text("tool")?.into() })
        };
        let output = |output: &Members<'_>| {
            let id = output.text("output_id").and_then(|id| OutputId::parse(&id).ok());
            let Raw::Number(position) = output.find("position")? else { return None };
            Some(OpenOutput { output_id: id, position: position.parse().ok()? })
        };
        Some(Self {
            session_id: SessionId::parse(&members.text("session_id")?).ok()?,
            state: owned(&members, "state").unwrap_or_default(),
            calls: objects(&members, "calls", tool),
            outputs: objects(&members, "outputs", output),
        })
    }
}

/// What is read from each object of a list; others are left out.
fn objects<T>(
    members: &Members<'_>,
    name: &str,
    read: impl Fn(&Members<'_>) -> Option<T>,
) -> Vec<T> {
    let Some(Raw::Array(list)) = members.find(name) else { return Vec::new() };
    let object = |value| match value {
        Raw::Object(text) => Members::whole(text, DEPTH).ok().flatten(),
        _ => None,
    };
    elements(list).into_iter().filter_map(|value| read(&object(value)?)).collect()
}

/// Something that reaches an agent from people, or from the hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AgentInput {
    /// A user wants something.
    UserInput(Arc<str>),
    /// A session ended without its agent.
    SessionEnded(SessionId),
    /// Something that this version does not know, as JSON.
    Other(Box<str>),
}

impl AgentInput {
    /// As it is written.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        match self {
            Self::UserInput(text) => {
                out.json(r#"{"kind":"user_input","text":"#);
                out.string(text);
                out.close('}');
            }
            Self::SessionEnded(session) => {
                out.json(r#"{"kind":"session_ended","session_id":"#);
                out.string(session.as_str());
                out.close('}');
            }
            Self::Other(json) => out.json(json),
        }
        out.finish()
    }

    fn read(raw: Raw<'_>) -> Self {
        let known = || {
            let Raw::Object(object) = raw else { return None };
            let members = Members::whole(object, DEPTH).ok()??;
            match &*members.text("kind")? {
                "user_input" => Some(Self::UserInput(members.text("text")?.into())),
                "session_ended" => {
                    SessionId::parse(&members.text("session_id")?).ok().map(Self::SessionEnded)
                }
                _ => None,
            }
        };
        known().unwrap_or_else(|| Self::Other(raw_json(raw).into()))
    }
}

/// The body of the answer to an agent that asks what came for it.
pub fn inputs_json(inputs: &[AgentInput]) -> String {
    let all: Vec<String> = inputs.iter().map(AgentInput::to_json).collect();
    format!(r#"{{"inputs":[{}]}}"#, all.join(","))
}

/// Reads such an answer; empty if it is none.
pub fn read_inputs(bytes: &[u8]) -> Vec<AgentInput> {
    let Some(members) = members(bytes) else { return Vec::new() };
    let Some(Raw::Array(list)) = members.find("inputs") else { return Vec::new() };
    elements(list).into_iter().map(AgentInput::read).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_back_as_they_were_written() {
        let session_id = SessionId::from_bits(1);
        let opened = SessionOpened { session_id, session_secret: Some("aaeps_x".into()) };
        assert_eq!(SessionOpened::parse(opened.to_json().as_bytes()), Some(opened));
        let posted = EventPosted { event_id: EventId::from_bits(2), sequence_number: 3 };
        assert_eq!(EventPosted::parse(posted.to_json().as_bytes()), Some(posted));
        for status in RequestStatus::ALL {
            let state = RequestState {
                request_id: "req_1".into(),
                event_id: EventId::from_bits(2),
                session_id,
                digest: "ab".into(),
                deadline: Timestamp::from_millis(1_700_000_000_000).unwrap(),
                status,
                decided_by: Some("ann".into()),
                response: Some("[1.0]".into()),
                reply: Some(r#"{"confidence":0.5}"#.into()),
            };
            assert_eq!(RequestState::parse(state.to_json().as_bytes()), Some(state));
        }
        assert_eq!(RequestStatus::read("blessed"), RequestStatus::Cancelled);
        for arguments in [None, Some("{ \"a\":1.0 }".into())] {
            let granted = Granted { tool_call_id: ToolCallId::from_bits(4), arguments };
            assert_eq!(Granted::parse(granted.to_json().as_bytes()), Some(granted));
        }
        let state = SessionState {
            session_id,
            state: "thinking".into(),
            calls: vec![OpenTool { tool_call_id: ToolCallId::from_bits(4), tool: "a\"b".into() }],
            outputs: vec![OpenOutput { output_id: None, position: 7 }],
        };
        assert_eq!(SessionState::parse(state.to_json().as_bytes()), Some(state));
    }

    #[test]
    fn inputs_are_read_and_what_is_new_is_passed_on() {
        let answer = br#"{"inputs":[{"kind":"user_input","text":"hi"},
            {"kind":"session_ended","session_id":"sess_1"},{"kind":"wave"}]}"#;
        let inputs = read_inputs(answer);
        assert_eq!(inputs[0], AgentInput::UserInput("hi".into()));
        assert_eq!(inputs[1], AgentInput::SessionEnded(SessionId::parse("sess_1").unwrap()));
        assert_eq!(inputs[2], AgentInput::Other(r#"{"kind":"wave"}"#.into()));
        assert_eq!(read_inputs(inputs_json(&inputs).as_bytes()), inputs);
        assert!(read_inputs(b"nonsense").is_empty());
    }

    // covers: C9, C19
    #[test]
    fn what_a_reply_says_of_itself_is_read_and_nothing_else() {
        let json = r#"{"wrong_clock":true,"decided_by":"Ann","confidence":0.5,"correlation_id":7}"#;
        let read = ReplyClaims::read(json);
        assert_eq!((read.decided_by.as_deref(), read.confidence), (Some("Ann"), Some(0.5)));
        assert_eq!((read.rationale, read.correlation_id), (None, None));
        assert_eq!(ReplyClaims::read("null"), ReplyClaims::default());
    }
}
