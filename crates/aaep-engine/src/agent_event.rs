//! An agent's event, read once, before the engine is taken.

use aaep_types::agent_api::tool_of;
use aaep_types::json::{Members, Writer};
use aaep_types::{ENVELOPE_MEMBERS, EventKind, rule};

use crate::draft;
use crate::hints::{Hints, is_sayable};
use crate::refusal::{Blame, Refusal};

/// How deep a payload may nest.
const DEPTH: usize = 64;

/// What an agent wants to say: its type, its payload, and what it may say of the envelope. Reading
/// it never fails: what is wrong with it is told once it is known whose session it is for.
#[derive(Clone, Debug)]
pub struct AgentEvent {
    type_name: Box<str>,
    kind: Option<EventKind>,
    said: Result<EventContent, Refusal>,
}

/// What was read.
#[derive(Clone, Debug, Default)]
pub(crate) struct EventContent {
    /// The payload's members as JSON, without braces.
    pub(crate) payload: String,
    pub(crate) hints: Option<Box<Hints>>,
    /// Whether it names its tool call.
    pub(crate) names_call: bool,
    /// Whether it names the state that the session leaves.
    names_from_state: bool,
}

impl AgentEvent {
    // enforces: E4, D23, I29
    /// Reads a payload, which is a JSON object. The work is proportional to its length, so do this
    /// before the engine is taken. However a core type is written, it is that type, and goes out in
    /// its compact form.
    pub fn read(type_name: &str, payload: &str) -> Self {
        let kind = EventKind::named(type_name);
        let type_name = kind.map_or(type_name, |kind| kind.as_str()).into();
        Self { type_name, kind, said: EventContent::read(payload, kind) }
    }

    /// The same with a payload that was read before; `payload` is its text.
    pub fn of(type_name: &str, payload: &str, members: &Members<'_>) -> Self {
        if payload.contains(['\n', '\r']) {
            return Self::read(type_name, payload);
        }
        let kind = EventKind::named(type_name);
        let type_name = kind.map_or(type_name, |kind| kind.as_str()).into();
        Self { type_name, kind, said: EventContent::of(members, payload.len(), kind) }
    }

    /// Its type, a core type in its compact form.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Which of the twelve it is.
    pub fn kind(&self) -> Option<EventKind> {
        self.kind
    }

    /// Whether it changes the state without saying which one the session leaves. An agent says where
    /// it goes; where it comes from, the hub knows better.
    pub fn lacks_from_state(&self) -> bool {
        self.kind == Some(EventKind::StateChanged)
            && self.said.as_ref().is_ok_and(|said| !said.names_from_state)
    }

    /// The same with one text more.
    pub fn with_text(mut self, name: &str, value: &str) -> Self {
        if let Ok(said) = &mut self.said {
            said.add(name, value);
        }
        self
    }

    /// What it says, unless something is wrong with it.
    pub(crate) fn said(&self) -> Result<EventContent, Refusal> {
        self.said.clone()
    }
}

impl EventContent {
    pub(crate) fn read(payload: &str, kind: Option<EventKind>) -> Result<Self, Refusal> {
        on_one_line(payload, |members| Self::of(members, payload.len(), kind))
    }

    pub(crate) fn of(
        members: &Members<'_>,
        room: usize,
        kind: Option<EventKind>,
    ) -> Result<Self, Refusal> {
        let mut said = Self::default();
        let mut hints = None;
        let mut out = Writer::with_capacity(room);
        for member in members.iter() {
            if is_sayable(&member.name) {
                let hints: &mut Box<Hints> = hints.get_or_insert_default();
                hints.take(&member.name, member.value, kind)?;
                continue;
            }
            if ENVELOPE_MEMBERS.contains(&&*member.name) {
                let text = format!("Leave `{}` out; the hub fills the envelope.", member.name);
                return Err(Refusal::new(Blame::Malformed, rule::E19, text));
            }
            said.names_call |= member.name == "tool_call_id";
            said.names_from_state |= member.name == "from_state";
            out.name(&member.name);
            out.raw(member.value);
            out.comma();
        }
        said.payload = out.finish();
        said.payload.pop();
        said.hints = hints;
        Ok(said)
    }

    /// The tool that it names.
    pub(crate) fn tool(&self) -> Option<String> {
        let object = ["{", &self.payload, "}"].concat();
        tool_of(&Members::whole(&object, DEPTH).ok()??).ok()?
    }

    /// Says one text more.
    pub(crate) fn add(&mut self, name: &str, value: &str) {
        let mut out = Writer::with_capacity(self.payload.len() + name.len() + value.len() + 6);
        out.json(&self.payload);
        if !self.payload.is_empty() {
            out.comma();
        }
        out.name(name);
        out.string(value);
        self.payload = out.finish();
    }
}

/// Reads an object, and hands on its members, in which there is no line end: in JSON that was read,
/// those stand only between values.
pub(crate) fn on_one_line<T>(
    payload: &str,
    then: impl FnOnce(&Members<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    let members = object(payload)?;
    if !payload.contains(['\n', '\r']) {
        return then(&members);
    }
    then(&object(&draft::on_one_line(payload.to_owned()))?)
}

fn object(payload: &str) -> Result<Members<'_>, Refusal> {
    let malformed = |text: String| Refusal::new(Blame::Malformed, rule::E1, text);
    Members::whole(payload, DEPTH)
        .map_err(|fault| malformed(format!("{} (byte {})", fault.kind, fault.offset)))?
        .ok_or_else(|| malformed("A payload is a JSON object.".into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(payload: &str) -> Result<EventContent, Refusal> {
        AgentEvent::read("state.changed", payload).said()
    }

    // covers: E4, D23
    #[test]
    fn a_core_type_goes_out_in_its_compact_form_however_it_is_written() {
        let event = AgentEvent::read("https://aaep-protocol.org/types/agent.state.changed", "{}");
        assert_eq!(event.kind(), Some(EventKind::StateChanged));
        assert_eq!(event.type_name(), EventKind::StateChanged.as_str());
        assert_eq!(AgentEvent::read("medai:scan", "{}").type_name(), "medai:scan");
    }

    // covers: E1, E19
    #[test]
    fn what_is_no_object_or_belongs_to_the_envelope_is_refused_when_it_is_its_turn() {
        assert_eq!(said("[]").unwrap_err().rule, rule::E1);
        assert_eq!(said("{\"a\":\"\n\"}").unwrap_err().rule, rule::E1);
        assert_eq!(said(r#"{"event_id":"evt_1"}"#).unwrap_err().rule, rule::E19);
    }

    #[test]
    fn hints_are_told_apart_and_everything_stays_on_one_line() {
        let read = said("{\"to_state\":\"thinking\",\n\"verbosity\":\"terse\",\"x\":{\n\"y\":1}}");
        let read = read.unwrap();
        assert_eq!(read.payload, r#""to_state":"thinking","x":{ "y":1}"#);
        assert!(read.hints.is_some_and(|hints| hints.verbosity.is_some()));
        let more = AgentEvent::read("state.changed", "{}").with_text("from_state", "idle");
        assert_eq!(more.said().unwrap().payload, r#""from_state":"idle""#);
    }
}
