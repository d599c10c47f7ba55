//! How assistive technology reads an event: whatever can be understood is, and what deviates is
//! noted (§9.3.2, §12.6.1). Nothing that a person might need to hear is lost to a formality.

use std::borrow::Cow;
use std::fmt;

use crate::event::{Event, EventKind};
use crate::id::ReplyToken;
use crate::json::{JsonFault, JsonFaultKind, Members, Raw};
use crate::limits::Limits;
use crate::message::validate_with;
use crate::report::{Problem, Severity};
use crate::time::Timestamp;
use crate::type_name::core_name;
use crate::vocabulary::Urgency;

/// An event as a subscriber hears it.
#[derive(Clone, Debug)]
pub struct LenientEvent<'a> {
    text: &'a str,
    members: Members<'a>,
    type_name: Cow<'a, str>,
    event_id: Cow<'a, str>,
    session_id: Cow<'a, str>,
    deviations: Vec<Problem>,
}

/// Why a message cannot even be heard.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LenientError {
    /// It is not valid JSON, or is ambiguous.
    Json(JsonFault),
    /// This member stands there twice.
    Repeated(String),
    /// It is no object.
    NotAnObject,
    /// This member is missing or is not a string.
    Missing(&'static str),
}

impl fmt::Display for LenientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LenientError::Json(fault) => write!(f, "{} (byte {})", fault.kind, fault.offset),
            LenientError::Repeated(name) => {
                write!(f, "{} (`{}`)", JsonFaultKind::DuplicateName, name.escape_debug())
            }
            LenientError::NotAnObject => {
                f.write_str("A message is one JSON object; this is something else.")
            }
            LenientError::Missing(name) => {
                write!(f, "An event needs `{name}`, a string that is not empty.")
            }
        }
    }
}

impl std::error::Error for LenientError {}

impl<'a> LenientEvent<'a> {
    /// Reads an event that has at least a type, an event id and a session id.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, LenientError> {
        Self::parse_with(bytes, &Limits::default())
    }

    /// The same with other limits.
    pub fn parse_with(bytes: &'a [u8], limits: &Limits) -> Result<Self, LenientError> {
        // enforces: E26, E27
        let fault = |offset, kind| LenientError::Json(JsonFault { offset, kind });
        if bytes.len() > limits.max_bytes {
            return Err(fault(limits.max_bytes, JsonFaultKind::TooLarge));
        }
        let text = std::str::from_utf8(bytes)
            .map_err(|error| fault(error.valid_up_to(), JsonFaultKind::Utf8))?;
        let members = Members::whole(text, limits.max_depth)
            .map_err(|fault| LenientError::Json(*fault))?
            .ok_or(LenientError::NotAnObject)?;
        if let Some(name) = members.repeated() {
            return Err(LenientError::Repeated(name.to_owned()));
        }
        if let Some(fault) = members.ambiguity() {
            return Err(LenientError::Json(fault));
        }
        let needed = |name| {
            members.text(name).filter(|text| !text.is_empty()).ok_or(LenientError::Missing(name))
        };
        let type_name = match needed("type")? {
            name if core_name(&name).is_some() => {
                Cow::Owned(core_name(&name).unwrap_or_default().into_owned())
            }
            name => name,
        };
        let (event_id, session_id) = (needed("event_id")?, needed("session_id")?);
        let mut deviations = validate_with(bytes, limits);
        deviations.retain(|problem| problem.severity == Severity::Error);
        Ok(Self { text, members, type_name, event_id, session_id, deviations })
    }

    /// The type, core types in their compact form.
    pub fn type_name(&self) -> &str {
        &self.type_name
    }

    /// Which of the twelve it is; `None` for anything else, a newer core type too.
    pub fn kind(&self) -> Option<EventKind> {
        EventKind::parse(&self.type_name)
    }

    /// The event's id as it was sent.
    pub fn event_id(&self) -> &str {
        &self.event_id
    }

    /// The session's id as it was sent.
    pub fn session_id(&self) -> &str {
        &self.session_id
    }

    /// How soon it has to be heard. The four critical types are critical whatever they say
    /// (decision D13), and an urgency that we do not know counts as normal.
    pub fn urgency(&self) -> Urgency {
        // enforces: D13
        if self.kind().is_some_and(EventKind::is_critical) {
            return Urgency::Critical;
        }
        let urgency = self.text("urgency").and_then(|urgency| Urgency::parse(&urgency).ok());
        urgency.unwrap_or(Urgency::Normal)
    }

    /// How long a request waits for an answer.
    pub fn timeout_seconds(&self) -> Option<u64> {
        self.number("timeout_seconds")
    }

    /// The agent that emitted it, as it names itself.
    pub fn agent_id(&self) -> Option<String> {
        self.object("producer")?.text("agent_id").map(Cow::into_owned)
    }

    /// When it was emitted, however many fraction digits were written.
    pub fn timestamp(&self) -> Option<Timestamp> {
        Timestamp::parse_loose(&self.text("timestamp")?).ok()
    }

    /// Its place in the session.
    pub fn sequence_number(&self) -> Option<u64> {
        self.number("sequence_number")
    }

    /// The token to echo in a reply.
    pub fn reply_token(&self) -> Option<ReplyToken> {
        ReplyToken::parse(&self.text("reply_token")?).ok()
    }

    /// A member that is a string.
    pub fn text(&self, name: &str) -> Option<Cow<'a, str>> {
        self.members.text(name)
    }

    /// A member that is a whole number of 0 or more.
    pub fn number(&self, name: &str) -> Option<u64> {
        match self.members.find(name)? {
            Raw::Number(text) => {
                let value = text.parse::<f64>().ok()?;
                (value.fract() == 0.0 && (0.0..=crate::MAX_SAFE as f64).contains(&value))
                    .then_some(value as u64)
            }
            _ => None,
        }
    }

    /// A member that is true or false.
    pub fn flag(&self, name: &str) -> Option<bool> {
        match self.members.find(name)? {
            Raw::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// Any member, as it stands in the text.
    pub fn member(&self, name: &str) -> Option<Raw<'a>> {
        self.members.find(name)
    }

    /// All members in their order.
    pub fn members(&self) -> &Members<'a> {
        &self.members
    }

    /// The members of a member that is an object.
    pub fn object(&self, name: &str) -> Option<Members<'a>> {
        match self.members.find(name)? {
            Raw::Object(text) => Some(Members::again(text)),
            _ => None,
        }
    }

    /// What is wrong with it, for the log (§3.11).
    pub fn deviations(&self) -> &[Problem] {
        &self.deviations
    }

    /// The strict reading, when nothing is wrong with it.
    pub fn strict(&self) -> Option<Event<'a>> {
        if self.deviations.is_empty() { Event::parse(self.text.as_bytes()).ok() } else { None }
    }

    /// The event exactly as it was received.
    pub fn as_json(&self) -> &'a str {
        self.text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: D13
    #[test]
    fn a_question_is_critical_whatever_it_says_and_an_unknown_urgency_is_normal() {
        let urgency = |name: &str, says: &str| {
            let event = format!(
                r#"{{"type":"aaep:agent.{name}","event_id":"evt_1","session_id":"sess_1"{says}}}"#
            );
            LenientEvent::parse(event.as_bytes()).unwrap().urgency()
        };
        for critical in ["awaiting.confirmation", "session.errored", "handoff.requested"] {
            assert_eq!(urgency(critical, ""), Urgency::Critical);
            assert_eq!(urgency(critical, r#","urgency":"background""#), Urgency::Critical);
        }
        assert_eq!(urgency("progress.updated", r#","urgency":"critical""#), Urgency::Critical);
        assert_eq!(urgency("progress.updated", r#","urgency":"shouting""#), Urgency::Normal);
    }
}
