//! Events that are about to be: what they say, and how they are written.

use aaep_shaping::ShapeInfo;
use aaep_types::action::{self, Account, ReadableArguments};
use aaep_types::json::{Members, Writer};
use aaep_types::{
    DescribedBy, ENVELOPE_MEMBERS, Event, EventKind, Presence, Timestamp, Urgency, presence,
    recorded,
};
use std::borrow::Cow;
use std::sync::Arc;

use crate::agent_event::{AgentEvent, EventContent};
use crate::hints::Hints;
use crate::ids::{Digest, EventNumber, RequestId};
use crate::record::Outcome;
use crate::refusal::Refusal;
use crate::session::Session;
use crate::words::Words;

/// Room for what stands around a name and a value: four quotes, a colon, a comma.
const ROOM: usize = 6;

/// An event that is about to be: everything but its envelope.
pub(crate) struct Draft<'a> {
    pub(crate) type_name: &'a str,
    pub(crate) urgency: Urgency,
    /// The payload's members as JSON, without braces.
    pub(crate) payload: String,
    /// What one of our extensions adds.
    pub(crate) extension: Option<Extension>,
    /// The account of the action that is asked about, as JSON.
    pub(crate) account: Option<Arc<str>>,
    /// The presence that a yes requires.
    pub(crate) needs: Presence,
    /// What its agent says of it besides the payload.
    pub(crate) hints: Option<Box<Hints>>,
    /// The states that it leaves and enters, if it is a state change of ours.
    pub(crate) moves: Option<(Cow<'static, str>, &'static str)>,
}

/// An event that only has to be let go.
pub(crate) struct Ready {
    pub(crate) event: EventNumber,
    pub(crate) kind: Option<EventKind>,
    pub(crate) urgency: Urgency,
    /// The request that it resolves.
    pub(crate) about: Option<RequestId>,
    /// The event that asked.
    pub(crate) resolves_event: Option<EventNumber>,
    /// What shaping needs to know of it.
    pub(crate) shape: Option<Box<ShapeInfo>>,
    pub(crate) json: Arc<str>,
}

impl Ready {
    /// Whether it asks somebody something, and so holds a reply token.
    pub(crate) fn asks(&self) -> bool {
        use EventKind::{AwaitingClarification, AwaitingConfirmation};
        matches!(self.kind, Some(AwaitingConfirmation | AwaitingClarification))
    }
}

/// What one of our extensions says about a request.
#[derive(Clone, Copy)]
pub(crate) enum Extension {
    /// It is resolved (decision D30).
    Outcome {
        /// The number that others know the request by.
        request: RequestId,
        /// The event that asked.
        event: EventNumber,
        /// What became of it.
        outcome: Outcome,
        /// It was withdrawn for a no with a clock that cannot be right (decision D42).
        wrong_clock: bool,
    },
    /// It was approved, and the approval was not used in time (decision D41).
    Expired {
        /// The number that others know the request by.
        request: RequestId,
        /// The event that asked.
        event: EventNumber,
    },
    /// It asks again, in place of another event, with more time (decision D32).
    Supersedes(EventNumber),
}

impl Extension {
    fn uri(self) -> &'static str {
        match self {
            Extension::Outcome { .. } | Extension::Expired { .. } => "urn:aaep-rs:outcome:v1",
            Extension::Supersedes(_) => "urn:aaep-rs:timing:v1",
        }
    }

    fn write(self, out: &mut Writer) {
        match self {
            Extension::Outcome { event, outcome, wrong_clock, .. } => {
                write_outcome(event, outcome.as_str(), out);
                if wrong_clock {
                    out.json("\",\"reason\":\"wrong_clock");
                }
            }
            Extension::Expired { event, .. } => write_outcome(event, "expired", out),
            Extension::Supersedes(event) => {
                out.json("\"timing\":{\"supersedes\":\"");
                out.json(event.id().as_str());
            }
        }
        out.json("\"}");
    }
}

fn write_outcome(event: EventNumber, word: &str, out: &mut Writer) {
    out.json("\"outcome\":{\"request_event_id\":\"");
    out.json(event.id().as_str());
    out.json("\",\"outcome\":\"");
    out.json(word);
}

impl<'a> Draft<'a> {
    pub(crate) fn new(kind: EventKind, payload: String) -> Draft<'static> {
        Draft {
            type_name: kind.as_str(),
            urgency: kind.usual_urgency(),
            payload,
            extension: None,
            account: None,
            needs: Presence::None,
            hints: None,
            moves: None,
        }
    }

    /// An agent's event. `members` may hold hints, which are taken out of them.
    pub(crate) fn of_agent(
        type_name: &'a str,
        kind: Option<EventKind>,
        members: String,
    ) -> Result<Self, Refusal> {
        let (payload, hints) = Hints::split(members, kind)?;
        let usual = kind.map_or(Urgency::Normal, EventKind::usual_urgency);
        let urgency = hints.as_ref().and_then(|hints| hints.urgency).unwrap_or(usual);
        let (extension, account, moves) = (None, None, None);
        let needs = Presence::None;
        Ok(Draft { type_name, urgency, payload, extension, account, needs, hints, moves })
    }

    /// An agent's event, which was read before.
    pub(crate) fn of_event(event: &'a AgentEvent, said: EventContent) -> Self {
        let usual = event.kind().map_or(Urgency::Normal, EventKind::usual_urgency);
        let urgency = said.hints.as_ref().and_then(|hints| hints.urgency).unwrap_or(usual);
        let (type_name, payload, hints) = (event.type_name(), said.payload, said.hints);
        let (extension, account, moves) = (None, None, None);
        let needs = Presence::None;
        Draft { type_name, urgency, payload, extension, account, needs, hints, moves }
    }

    /// A state change with a sentence of ours that can be announced.
    pub(crate) fn state(
        from: Cow<'static, str>,
        to: &'static str,
        words: &Words,
        session: &Session,
    ) -> Draft<'static> {
        let mut payload = members(&[("from_state", &from), ("to_state", to)]);
        payload.push(',');
        // enforces: T29, T35
        payload.push_str(&members(&words.members()));
        let mut draft = Draft::new(EventKind::StateChanged, payload);
        draft.urgency = Urgency::Normal;
        draft.moves = Some((from, to));
        draft.hints = words.hints(&session.language);
        draft
    }

    /// Another event of ours: what it says besides the sentence stands first, if anything does.
    pub(crate) fn ours(
        kind: EventKind,
        payload: &str,
        words: &Words,
        session: &Session,
    ) -> Draft<'static> {
        let comma = if payload.is_empty() { "" } else { "," };
        let mut draft = Draft::new(kind, [payload, comma, &members(&words.members())].concat());
        draft.hints = words.hints(&session.language);
        draft
    }

    /// The event with its JSON, which was read once, unless it is a state change of ours.
    pub(crate) fn ready(
        &self,
        event: EventNumber,
        json: Arc<str>,
        read: Option<&Event<'_>>,
    ) -> Ready {
        let (about, resolves_event) = match self.extension {
            Some(
                Extension::Outcome { request, event, .. } | Extension::Expired { request, event },
            ) => (Some(request), Some(event)),
            _ => (None, None),
        };
        let kind = EventKind::parse(self.type_name);
        let shape = match &self.moves {
            Some((from, _)) => Some(ShapeInfo::of_state(from)),
            None => read.map(ShapeInfo::of),
        };
        let shape = shape.map(Box::new);
        Ready { event, kind, urgency: self.urgency, about, resolves_event, shape, json }
    }

    pub(crate) fn json(
        &self,
        event: EventNumber,
        number: u64,
        stamp: Timestamp,
        session: &Session,
    ) -> String {
        let account = self.account.as_ref().map_or(0, |account| account.len());
        let room = self.payload.len() + session.producer.len() + account + 512;
        let mut out = Writer::with_capacity(room);
        let hints = self.hints.as_deref();
        self.write_context(&mut out, hints);
        out.json(",\"aaep_version\":\"");
        out.json(aaep_types::AAEP_VERSION);
        out.json("\",\"type\":");
        out.string(self.type_name);
        // Nothing here needs an escape: identifiers, numbers, tags, and JSON that was checked.
        for (before, value) in [
            (",\"event_id\":\"", event.id().as_str()),
            ("\",\"session_id\":\"", session.id().as_str()),
        ] {
            out.json(before);
            out.json(value);
        }
        out.json("\",\"sequence_number\":");
        out.display(number);
        out.json(",\"timestamp\":\"");
        out.display(stamp);
        out.json("\",\"producer\":");
        let speaker = hints.and_then(|hints| hints.producer.as_deref());
        out.json(speaker.unwrap_or(&session.producer));
        if let Some(verbosity) = hints.and_then(|hints| hints.verbosity) {
            out.json(",\"verbosity\":\"");
            out.json(verbosity.as_str());
            out.json("\"");
        }
        out.json(",\"urgency\":\"");
        out.json(self.urgency.as_str());
        out.json("\",\"localization_hints\":");
        write_localization(&mut out, hints, &session.language);
        out.comma();
        if let Some(id) = hints.and_then(|hints| hints.correlation_id.as_deref()) {
            out.name("correlation_id");
            out.string(id);
            out.comma();
        }
        out.json(&self.payload);
        self.write_extensions(&mut out, hints);
        out.close('}');
        out.finish()
    }

    fn write_context(&self, out: &mut Writer, hints: Option<&Hints>) {
        let ours = [
            self.extension.map(Extension::uri),
            self.account.as_ref().map(|_| action::URI),
            (self.needs != Presence::None).then_some(presence::URI),
        ];
        let theirs = hints.map_or(&[][..], |hints| &hints.contexts);
        out.json("{\"@context\":");
        if ours.iter().all(Option::is_none) && theirs.is_empty() {
            return out.string(aaep_types::CORE_CONTEXT);
        }
        out.open('[');
        out.string(aaep_types::CORE_CONTEXT);
        let fresh = theirs.iter().map(String::as_str).filter(|uri| !ours.contains(&Some(uri)));
        for uri in ours.into_iter().flatten().chain(fresh) {
            out.comma();
            out.string(uri);
        }
        out.close(']');
    }

    fn write_extensions(&self, out: &mut Writer, hints: Option<&Hints>) {
        let theirs = hints.and_then(|hints| hints.extensions.as_deref());
        let needs = Some(self.needs).filter(|needs| *needs != Presence::None);
        if self.extension.is_none() && self.account.is_none() && needs.is_none() && theirs.is_none()
        {
            return;
        }
        out.json(",\"extensions\":");
        out.open('{');
        if let Some(extension) = self.extension {
            extension.write(out);
            out.comma();
        }
        if let Some(account) = &self.account {
            out.name(action::PREFIX);
            out.json(account);
            out.comma();
        }
        if let Some(needs) = needs {
            out.name(presence::PREFIX);
            out.json(&presence::member(needs));
            out.comma();
        }
        if let Some(theirs) = theirs {
            out.json(theirs);
        }
        out.close('}');
    }
}

/// The members of `localization_hints`: the agent's, and what it leaves out.
fn write_localization(out: &mut Writer, hints: Option<&Hints>, language: &str) {
    let theirs = hints.and_then(|hints| hints.localization.as_deref()).unwrap_or_default();
    out.open('{');
    if theirs.is_empty() {
        out.name("primary_language");
        out.string(language);
        out.json(",\"text_direction\":\"auto\"}");
        return;
    }
    let object = ["{", theirs, "}"].concat();
    if !has_member(&object, "primary_language") {
        out.name("primary_language");
        out.string(language);
        out.comma();
    }
    if !has_member(&object, "text_direction") {
        out.name("text_direction");
        out.string("auto");
        out.comma();
    }
    out.json(theirs);
    out.close('}');
}

// enforces: I31, L12
/// The account of an action: what people are told of it apart from the agent's words. Amounts and dates
/// stand in it as they are, beside the sentence that formats them (§11.7).
pub(crate) fn account_of(
    tool: &str,
    readable: &ReadableArguments,
    digest: &Digest,
    described_by: DescribedBy,
) -> Option<Arc<str>> {
    let digest = digest.to_string();
    let account = Account::new(tool, readable, &digest, described_by)?;
    Some(account.to_json().into())
}

/// The account that an event of ours carries.
pub(crate) fn account_in(event: &str) -> Option<Arc<str>> {
    recorded::account(event).map(Into::into)
}

/// Members with text values, as JSON without braces.
pub(crate) fn members(list: &[(&str, &str)]) -> String {
    let length = list.iter().map(|(name, value)| name.len() + value.len() + ROOM).sum();
    let mut out = Writer::with_capacity(length);
    for (index, (name, value)) in list.iter().enumerate() {
        if index > 0 {
            out.comma();
        }
        out.name(name);
        out.string(value);
    }
    out.finish()
}

/// The payload of an event of ours as members without braces, but for those named.
pub(crate) fn payload_of(event: &str, without: &[&str]) -> String {
    let members = Members::whole(event, 64).ok().flatten().unwrap_or_default();
    let mut out = Writer::new();
    let payload = members.iter().filter(|member| {
        !ENVELOPE_MEMBERS.contains(&member.name.as_ref())
            && !without.contains(&member.name.as_ref())
    });
    for member in payload {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    out.finish()
}

pub(crate) fn has_member(object: &str, name: &str) -> bool {
    let members = Members::whole(object, 64).ok().flatten().unwrap_or_default();
    members.find(name).is_some()
}

/// An event stays on one line, however a reader splits a stream into lines. In JSON that was checked, raw
/// line ends stand only between values, where a space does as well.
pub(crate) fn on_one_line(json: String) -> String {
    let is_end = |byte: &u8| matches!(byte, b'\n' | b'\r');
    if json.as_bytes().iter().any(is_end) { json.replace(['\n', '\r'], " ") } else { json }
}
