//! An event made ready once, to be offered to any number of subscriptions.

use aaep_types::{
    CoalesceBoundary, Event, EventId, EventKind, Invalid, OutputId, Payload, SessionId, ToolCallId,
    ToolStatus, Urgency,
};
use std::sync::{Arc, OnceLock};

use crate::cuts::{Cuts, apparent_end, scalars};
use crate::shapes::{Shapable, Shapes};

/// A piece of streamed text.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Part {
    pub chunk: Box<str>,
    pub position: u64,
    pub end: u64,
    pub complete: bool,
    pub output: Option<OutputId>,
    /// What its end is, as its producer said; or as far as one can tell.
    pub ends_at: CoalesceBoundary,
    pub hinted: bool,
    pub cuts: Cuts,
    /// Text of different sorts is never joined.
    pub sort: Sort,
}

/// Media type and language of a piece of text, where it names them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Sort {
    media_type: Option<Box<str>>,
    language: Option<Box<str>>,
}

/// One end of a tool call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Call {
    pub id: Option<ToolCallId>,
    pub tool: Box<str>,
    pub end: CallEnd,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CallEnd {
    /// It begins. One that says anything about its risk, as those do that were asked about, is always
    /// told by itself (T11, T24).
    Invoked {
        told_alone: bool,
    },
    Completed {
        failed: bool,
    },
}

/// What becomes of an event that has to wait.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Role {
    /// Never merged: starts, ends, requests, extensions.
    Whole,
    /// Merged with other calls once both of its ends are there.
    Tool(Call),
    /// Merged with other state changes.
    State { from: Box<str> },
    /// Replaced by later progress.
    Progress { percent: Option<f64> },
    /// Joined with other text of its output.
    Text(Part),
}

/// An event made ready once, to be offered to any number of subscriptions; made by a
/// [`Preparer`](crate::Preparer).
#[derive(Debug)]
pub struct Prepared {
    json: Arc<str>,
    event_id: EventId,
    session_id: SessionId,
    number: Option<u64>,
    kind: Option<EventKind>,
    type_name: Box<str>,
    critical: bool,
    resolution: bool,
    role: Role,
    /// Found out when it is needed.
    shapable: OnceLock<Shapable>,
    shapes: Shapes,
}

/// What shaping needs to know of an event, noted while it is a typed value, so that its bytes need
/// not be read again.
#[derive(Clone, Debug, PartialEq)]
pub struct ShapeInfo {
    /// Empty for a core type.
    type_name: Box<str>,
    critical: bool,
    role: Role,
    /// `None`: found out when it is needed.
    shapable: Option<Shapable>,
}

impl ShapeInfo {
    /// What this event says.
    pub fn of(event: &Event<'_>) -> Self {
        let kind = event.kind();
        let type_name = kind.map_or_else(|| event.envelope().type_name.to_string(), |_| "".into());
        Self {
            type_name: type_name.into(),
            // D13: the four critical types are critical whatever they say.
            critical: event.urgency() == Urgency::Critical
                || kind.is_some_and(EventKind::is_critical),
            role: role(event),
            shapable: Some(Shapable::of(event)),
        }
    }

    /// Of a state change that the producer makes by itself, with the usual urgency and a sentence in
    /// all three lengths.
    pub fn of_state(from_state: &str) -> Self {
        let role = Role::State { from: from_state.into() };
        Self { type_name: "".into(), critical: false, role, shapable: Some(Shapable::OURS) }
    }

    /// Of a confirmation or a clarification: critical, and never merged. `variants` says whether any
    /// of its texts has a variant in another language; `None` if that is to be found out when it is
    /// needed.
    pub fn of_question(variants: Option<bool>) -> Self {
        let shapable = variants.map(Shapable::of_question);
        Self { type_name: "".into(), critical: true, role: Role::Whole, shapable }
    }
}

/// An event whose envelope its producer knows.
#[derive(Clone, Debug)]
pub struct KnownEnvelope {
    /// The event as it is emitted.
    pub json: Arc<str>,
    /// Its id.
    pub event_id: EventId,
    /// The session it belongs to.
    pub session_id: SessionId,
    /// Its place in the session.
    pub number: Option<u64>,
    /// Which of the twelve it is.
    pub kind: Option<EventKind>,
    /// Whether it tells the outcome of a request.
    pub resolution: bool,
}

impl Prepared {
    /// Puts together what is known.
    fn new(known: KnownEnvelope, info: ShapeInfo) -> Self {
        let KnownEnvelope { json, event_id, session_id, number, kind, resolution } = known;
        let ShapeInfo { type_name, critical, role, shapable } = info;
        Self {
            json,
            event_id,
            session_id,
            number,
            kind,
            type_name,
            critical,
            resolution,
            role,
            shapable: shapable.map_or_else(OnceLock::new, OnceLock::from),
            shapes: Shapes::default(),
        }
    }

    /// The same; what is known has to be what reading would come to.
    pub(crate) fn known(known: KnownEnvelope, info: ShapeInfo) -> Self {
        let prepared = Self::new(known, info);
        debug_assert!(prepared.is_as_read(), "{prepared:?}");
        prepared
    }

    /// Whether reading it comes to the same.
    fn is_as_read(&self) -> bool {
        let Ok(read) = Self::read(self.json.clone(), self.resolution) else { return false };
        self.event_id == read.event_id
            && self.session_id == read.session_id
            && self.number == read.number
            && self.kind == read.kind
            && self.critical == read.critical
            && self.leaving() == read.leaving()
            && self.shapable() == read.shapable()
    }

    /// Reads the event as it was emitted. `resolution` marks the notice of a request's outcome,
    /// which is never held (decision D14).
    pub(crate) fn read(json: Arc<str>, resolution: bool) -> Result<Self, Invalid> {
        let event = Event::parse(json.as_bytes())?;
        let envelope = event.envelope();
        let info = ShapeInfo::of(&event);
        let known = KnownEnvelope {
            event_id: envelope.event_id,
            session_id: envelope.session_id,
            number: envelope.sequence_number.map(|number| number.get()),
            kind: event.kind(),
            resolution,
            json: json.clone(),
        };
        Ok(Self::new(known, info))
    }

    /// The event as it was emitted.
    pub fn json(&self) -> &Arc<str> {
        &self.json
    }

    /// Its id.
    pub fn event_id(&self) -> EventId {
        self.event_id
    }

    /// The session it belongs to.
    pub fn session_id(&self) -> SessionId {
        self.session_id
    }

    /// Its place in the session.
    pub fn sequence_number(&self) -> Option<u64> {
        self.number
    }

    /// Which of the twelve it is.
    pub fn kind(&self) -> Option<EventKind> {
        self.kind
    }

    /// Its type, a core type in its compact form.
    pub fn type_name(&self) -> &str {
        match self.kind {
            Some(kind) => kind.as_str(),
            None => &self.type_name,
        }
    }

    /// Whether it has to be heard at once.
    pub fn is_critical(&self) -> bool {
        self.critical
    }

    /// Whether it tells the outcome of a request.
    pub fn is_resolution(&self) -> bool {
        self.resolution
    }

    /// How many times it was serialised anew so far: once for each distinct result, however many
    /// subscriptions there are.
    pub fn serialisations(&self) -> usize {
        self.shapes.made()
    }

    /// Whether nothing but the filter, the rate and what is held already says when it goes.
    pub(crate) fn is_plain(&self) -> bool {
        let special = self.critical || self.resolution || self.is_terminal();
        !special && !matches!(self.role, Role::Text(_))
    }

    /// The state that it leaves, if it is a state change.
    pub(crate) fn leaving(&self) -> Option<&str> {
        match &self.role {
            Role::State { from } => Some(from),
            _ => None,
        }
    }

    pub(crate) fn is_terminal(&self) -> bool {
        self.kind.is_some_and(EventKind::is_terminal)
    }

    pub(crate) fn role(&self) -> &Role {
        &self.role
    }

    pub(crate) fn call(&self) -> Option<&Call> {
        match &self.role {
            Role::Tool(call) => Some(call),
            _ => None,
        }
    }

    pub(crate) fn part(&self) -> Option<&Part> {
        match &self.role {
            Role::Text(part) => Some(part),
            _ => None,
        }
    }

    pub(crate) fn part_mut(&mut self) -> Option<&mut Part> {
        match &mut self.role {
            Role::Text(part) => Some(part),
            _ => None,
        }
    }

    pub(crate) fn shapable(&self) -> &Shapable {
        self.shapable.get_or_init(|| {
            // It was valid when it was made.
            let event = Event::parse(self.json.as_bytes());
            event.map(|event| Shapable::of(&event)).unwrap_or_default()
        })
    }

    pub(crate) fn shapes(&self) -> &Shapes {
        &self.shapes
    }

    /// What it counts for against the bound.
    pub(crate) fn weight(&self) -> usize {
        self.json.len()
    }
}

fn role(event: &Event<'_>) -> Role {
    match event.payload() {
        Payload::StateChanged(state) => Role::State { from: state.from_state.as_str().into() },
        Payload::ProgressUpdated(update) => {
            Role::Progress { percent: update.progress.percent.as_ref().map(|p| p.get()) }
        }
        Payload::ToolInvoked(invoked) => {
            let told_alone = invoked.irreversible.is_some() || invoked.risk_level.is_some();
            let (id, tool) = (invoked.tool_call_id, invoked.tool.as_str().into());
            Role::Tool(Call { id, tool, end: CallEnd::Invoked { told_alone } })
        }
        Payload::ToolCompleted(completed) => {
            let failed = completed.status != ToolStatus::Success;
            let (id, tool) = (completed.tool_call_id, completed.tool.as_str().into());
            Role::Tool(Call { id, tool, end: CallEnd::Completed { failed } })
        }
        // Text that comes in several languages at once cannot be joined.
        Payload::OutputStreaming(output) if !event.has_variants() => {
            let chunk: Box<str> = output.chunk.as_str().into();
            let position = output.position.get();
            let media_type = output.content_type.as_ref().map(|kind| kind.as_str().into());
            // enforces: L9
            let language = output.language.as_ref().map(|tag| tag.as_str().into());
            Role::Text(Part {
                end: position.saturating_add(scalars(&chunk)),
                position,
                complete: output.complete,
                output: output.output_id,
                ends_at: match output.coalesce_hint {
                    _ if output.complete => CoalesceBoundary::Completion,
                    Some(hint) => hint.min(CoalesceBoundary::Paragraph),
                    None => apparent_end(&chunk),
                },
                hinted: output.complete
                    || output.coalesce_hint.is_some_and(|hint| hint != CoalesceBoundary::None),
                cuts: Cuts::default(),
                sort: Sort { media_type, language },
                chunk,
            })
        }
        _ => Role::Whole,
    }
}
