//! What agents send, read before the core is taken.
//!
//! Everything whose cost grows with the body happens here, on the sender's own time: UTF-8, JSON, the
//! policy, the canonical form and the account of an action, the hash of the body. What the core is given is owned, checked and small to look at (I29).

use aaep_engine::AgentEvent;
use aaep_types::action::ReadableArguments;
use aaep_types::json::{Canonical, Members, Raw, Writer, elements};
use aaep_types::{DescribedBy, EventKind, LanguageTag, SessionId, rule, team};
use http::StatusCode;
use sha2::{Digest as _, Sha256};

use super::super::route::Route;
use super::super::{Problem, policy};
use super::with_member;
use crate::core::held;
use crate::discretion::{Piece, look_through, look_through_text, telling, with_extension};
use crate::hub::Hub;

/// How long an agent may stay silent, in seconds: usual, least, most.
const LEASE_SECONDS: (u64, u64, u64) = (120, 15, 24 * 60 * 60);

/// Bytes of a producer object, and of the `agent_id` in it.
const PRODUCER_BYTES: usize = 4096;
const AGENT_ID_BYTES: usize = 256;

/// How deep a body may nest.
const DEPTH: usize = 64;

/// A body that was read: what it says, and enough to recognise it.
pub(super) struct Body<T> {
    /// Kept apart from a repeated idempotency key, which is looked up first.
    pub(super) said: Result<T, Problem>,
    pub(super) hash: [u8; 32],
}

impl<T> Body<T> {
    fn of(bytes: &[u8], keyed: bool, read: impl FnOnce(&[u8]) -> Result<T, Problem>) -> Self {
        held::assert_free();
        let hash = if keyed { Sha256::digest(bytes).into() } else { [0; 32] };
        Self { said: read(bytes), hash }
    }
}

/// A call that may carry an idempotency key.
pub(super) enum Prepared {
    Open(Opening),
    Emit(Emission),
    Ask(Question),
}

/// `POST agent/sessions`.
pub(super) struct Opening {
    pub(super) producer: String,
    pub(super) summary: String,
    pub(super) language: LanguageTag<'static>,
    pub(super) lease_seconds: u64,
    /// What else its first event says.
    pub(super) payload: String,
    /// The rules of the profile by which something has to follow.
    pub(super) asks_to_follow: Vec<usize>,
}

/// `POST agent/sessions/{id}/events`.
pub(super) struct Emission {
    pub(super) event: AgentEvent,
    /// What an announced tool is called with, if its agent says.
    pub(super) arguments: Option<Canonical>,
    /// Whether the hub has to say which state the session leaves.
    pub(super) needs_from_state: bool,
    /// The producer that it names, if it names one.
    pub(super) speaker: Option<String>,
    /// The output that it goes on with.
    pub(super) piece: Option<Piece>,
    /// The rules of the profile by which something has to follow.
    pub(super) asks_to_follow: Vec<usize>,
}

/// `POST agent/sessions/{id}/requests`.
pub(super) struct Question {
    pub(super) kind: EventKind,
    pub(super) tool: String,
    /// As they came, to be handed back.
    pub(super) arguments: String,
    pub(super) payload: String,
    /// What is asked for, to which consent is bound.
    pub(super) canonical: Canonical,
    /// The arguments as people read them.
    pub(super) readable: ReadableArguments,
    pub(super) described_by: DescribedBy,
    /// The producer that it names, if it names one.
    pub(super) speaker: Option<String>,
    /// The rules of the profile by which something has to follow.
    pub(super) asks_to_follow: Vec<usize>,
}

/// Reads the body of a call for this route; `keyed` says whether it carries an idempotency key.
pub(super) fn prepare(hub: &Hub, route: &Route, bytes: &[u8], keyed: bool) -> Body<Prepared> {
    Body::of(bytes, keyed, |bytes| {
        let object = Object::read(bytes)?;
        match route {
            Route::OpenSession => opening(hub, &object).map(Prepared::Open),
            Route::Emit(session) => emission(hub, *session, &object).map(Prepared::Emit),
            Route::Ask(_) => question(hub, &object).map(Prepared::Ask),
            _ => Err(Problem::not_found("There is nothing here.")),
        }
    })
}

/// Reads the body of `POST agent/requests/{id}/invoke`: the arguments, if they were sent.
pub(super) fn prepare_invoke(bytes: &[u8], keyed: bool) -> Body<Option<Canonical>> {
    Body::of(bytes, keyed, |bytes| {
        let object = Object::read(if bytes.is_empty() { b"{}" } else { bytes })?;
        if let Some(other) = object.0.iter().find(|member| member.name != "arguments") {
            let text = format!("`{}` is not known here; `arguments` is.", other.name);
            return Err(Problem::malformed(text));
        }
        object.0.find("arguments").map(canonical).transpose()
    })
}

/// The members of a body, and how long it is.
struct Object<'a>(Members<'a>, usize);

impl<'a> Object<'a> {
    // enforces: E21
    fn read(bytes: &'a [u8]) -> Result<Self, Problem> {
        let text = std::str::from_utf8(bytes)
            .map_err(|_| Problem::malformed("The body is JSON in UTF-8."))?;
        let fault = |kind: &dyn std::fmt::Display, offset: usize| {
            Problem::malformed(format!("{kind} (byte {offset})"))
        };
        let members = Members::whole(text, DEPTH)
            .map_err(|found| fault(&found.kind, found.offset))?
            .ok_or_else(|| Problem::malformed("The body is a JSON object."))?;
        if let Some(found) = members.faults().first() {
            return Err(fault(&found.kind, found.offset));
        }
        if let Some(name) = members.repeated() {
            return Err(Problem::malformed(format!("`{name}` stands twice; say it once.")));
        }
        Ok(Self(members, bytes.len()))
    }

    fn text(&self, name: &str) -> Result<Option<String>, Problem> {
        match self.0.find(name) {
            None => Ok(None),
            Some(Raw::String(text)) => Ok(Some(text.decode().into_owned())),
            Some(_) => Err(Problem::malformed(format!("`{name}` is a text."))),
        }
    }

    fn needed(&self, name: &str) -> Result<String, Problem> {
        self.text(name)?.ok_or_else(|| Problem::malformed(format!("`{name}` is missing.")))
    }

    /// Everything but what the hub reads itself, as JSON.
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

fn opening(hub: &Hub, object: &Object<'_>) -> Result<Opening, Problem> {
    let Some(Raw::Object(producer)) = object.0.find("producer") else {
        return Err(Problem::malformed("`producer` is an object with an `agent_id`."));
    };
    check_producer(producer)?;
    let secrets = hub.config().secrets;
    let summary = object.needed("summary_normal")?;
    let (summary, removed) = look_through_text("summary_normal", summary, secrets)?;
    // Whatever else the first event of a session may say; the engine knows what that is.
    let ours = ["producer", "summary_normal", "language", "lease_seconds", "sub_agents"];
    let payload = telling(&look_through(object.without(&ours), secrets)?, removed);
    bounded(hub, &payload)?;
    let payload = match object.0.find("sub_agents") {
        Some(named) => with_extension(&payload, (team::URI, team::PREFIX), &team_of(named)?),
        None => payload,
    };
    let language = object.text("language")?.unwrap_or_else(|| "en".to_owned());
    let language = LanguageTag::parse(language)
        .map_err(|_| Problem::malformed("`language` is a language tag such as `en` or `yo-NG`."))?;
    let (usual, least, most) = LEASE_SECONDS;
    let lease_seconds = match object.0.find("lease_seconds") {
        None => usual,
        Some(Raw::Number(text)) => text.parse().unwrap_or_default(),
        Some(_) => 0,
    };
    if !(least..=most).contains(&lease_seconds) {
        let text = format!("`lease_seconds` is a whole number from {least} to {most}.");
        return Err(Problem::malformed(text));
    }
    let started = with_member(&payload, "summary_normal", &summary);
    let asks_to_follow = keeps_profile(hub, EventKind::SessionStarted.as_str(), &started)?;
    let producer = producer.to_owned();
    Ok(Opening { producer, summary, language, lease_seconds, payload, asks_to_follow })
}

// enforces: E28
/// The extension that says who else speaks in a session.
fn team_of(named: Raw<'_>) -> Result<String, Problem> {
    let expected = format!(
        "`sub_agents` is a list of 1 to {} different `agent_id`s, each with at most {AGENT_ID_BYTES} bytes.",
        team::MAX_AGENTS
    );
    let wrong = || Problem::malformed(expected.clone()).under(rule::E28);
    let Raw::Array(list) = named else { return Err(wrong()) };
    let mut ids: Vec<String> = Vec::new();
    for id in elements(list) {
        let Raw::String(id) = id else { return Err(wrong()) };
        let id = id.decode().into_owned();
        if id.is_empty() || id.len() > AGENT_ID_BYTES || ids.contains(&id) {
            return Err(wrong());
        }
        ids.push(id);
    }
    if !(1..=team::MAX_AGENTS).contains(&ids.len()) {
        return Err(wrong());
    }
    let mut out = Writer::new();
    out.open('{');
    out.name("agents");
    out.open('[');
    for id in &ids {
        out.string(id);
        out.comma();
    }
    out.close(']');
    out.close('}');
    Ok(out.finish())
}

// enforces: I22, I29
/// It goes with every event of the session, and its id is remembered.
fn check_producer(producer: &str) -> Result<(), Problem> {
    if producer.len() > PRODUCER_BYTES {
        let text = format!("`producer` has at most {PRODUCER_BYTES} bytes.");
        return Err(Problem::malformed(text).under(rule::E11));
    }
    let members = Members::whole(producer, DEPTH).ok().flatten().unwrap_or_default();
    if members.text("agent_id").is_some_and(|id| id.len() > AGENT_ID_BYTES) {
        let text = format!("`agent_id` has at most {AGENT_ID_BYTES} bytes; use a shorter one.");
        return Err(Problem::malformed(text).under(rule::E11));
    }
    Ok(())
}

fn emission(hub: &Hub, session: SessionId, object: &Object<'_>) -> Result<Emission, Problem> {
    let type_name = object.needed("type")?;
    let speaker = speaker_of(object)?;
    let (payload, arguments) = match EventKind::named(&type_name) {
        Some(EventKind::ToolInvoked) => announcement(hub, object)?,
        _ => (object.without(&["type"]), None),
    };
    let secrets = hub.config().secrets;
    let payload = look_through(payload, secrets)?;
    bounded(hub, &payload)?;
    let (payload, piece) = match EventKind::named(&type_name) {
        Some(EventKind::OutputStreaming) => {
            hub.0.outputs.look_through(session, payload, secrets)?
        }
        _ => (payload, None),
    };
    let asks_to_follow = keeps_profile(hub, &type_name, &payload)?;
    // An agent says where it goes; where it comes from, the hub knows better.
    let moves = EventKind::parse(&type_name) == Some(EventKind::StateChanged);
    let needs_from_state = moves && object.0.find("from_state").is_none();
    let event = AgentEvent::read(&type_name, &payload);
    Ok(Emission { event, arguments, needs_from_state, speaker, piece, asks_to_follow })
}

// enforces: I22, I29
/// What an event says is read once more when it has its envelope, while the core is held; so it is
/// shorter than a body may be.
fn bounded(hub: &Hub, payload: &str) -> Result<(), Problem> {
    let most = hub.config().limits.event_bytes;
    if payload.len() <= most {
        return Ok(());
    }
    let text = format!(
        "An event has at most {most} bytes (limits.event_bytes), `arguments` aside. Send a long output in several pieces."
    );
    Err(Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", text).under(rule::E21))
}

// enforces: X9
/// Whether an event keeps the rules of the profile in force, and those by which something has to follow.
fn keeps_profile(hub: &Hub, type_name: &str, payload: &str) -> Result<Vec<usize>, Problem> {
    let Some(profile) = &hub.0.profile else { return Ok(Vec::new()) };
    let name = EventKind::named(type_name).map_or(type_name, |kind| kind.as_str());
    let event = with_member(payload, "type", name);
    match profile.broken_by(event.as_bytes()).first() {
        None => {
            let members = Members::whole(&event, 64).ok().flatten().unwrap_or_default();
            Ok(profile.asks_to_follow(&members).map(|(place, _)| place).collect())
        }
        Some(rule) => {
            let text = format!("{} ({}, {})", rule.text, rule.id, profile.name);
            Err(Problem::malformed(text).under(rule::X9))
        }
    }
}

/// The producer object that an event or a request names.
fn speaker_of(object: &Object<'_>) -> Result<Option<String>, Problem> {
    match object.0.find("producer") {
        None => Ok(None),
        Some(Raw::Object(producer)) => {
            check_producer(producer)?;
            Ok(Some(producer.to_owned()))
        }
        Some(_) => Err(Problem::malformed("`producer` is an object with an `agent_id`.")),
    }
}

/// What a tool that runs without a question says of itself, and its `arguments`, by which the policy
/// and the engine judge it: nobody hears them (T14).
// enforces: T14, T27
fn announcement(hub: &Hub, object: &Object<'_>) -> Result<(String, Option<Canonical>), Problem> {
    let ours = ["type", "arguments"];
    let given = object.0.find("arguments");
    let arguments = given.map(canonical).transpose()?;
    let Some(in_force) = &**hub.policy() else { return Ok((object.without(&ours), arguments)) };
    let tool = object.text("tool")?.unwrap_or_default();
    let ruling = policy::permit(in_force, &tool, given.map(raw_text).as_deref())?;
    Ok((policy::announce(&ruling, &object.0, &ours), arguments))
}

fn question(hub: &Hub, object: &Object<'_>) -> Result<Question, Problem> {
    let kind = match object.needed("kind")?.as_str() {
        "confirmation" => EventKind::AwaitingConfirmation,
        "clarification" => EventKind::AwaitingClarification,
        _ => return Err(Problem::malformed("`kind` is confirmation or clarification.")),
    };
    let speaker = speaker_of(object)?;
    let tool = object.text("tool")?.unwrap_or_default();
    let arguments = object.0.find("arguments").map(raw_text).unwrap_or_default();
    let ours = ["kind", "tool", "arguments"];
    let in_force = hub.policy();
    let (payload, described_by) = match &**in_force {
        Some(in_force) if kind == EventKind::AwaitingConfirmation => {
            let ruling = in_force.decide(&tool, &arguments);
            (policy::strengthen(&ruling, &object.0, &ours), policy::described_by(&ruling))
        }
        _ => (object.without(&ours), DescribedBy::Agent),
    };
    let payload = look_through(payload, hub.config().secrets)?;
    bounded(hub, &payload)?;
    let canonical = aaep_engine::canonical_ask(kind, &arguments, &payload)?;
    let asks_to_follow = keeps_profile(hub, kind.as_str(), &payload)?;
    // enforces: I31
    let readable = ReadableArguments::of(&arguments);
    Ok(Question {
        kind,
        tool,
        arguments,
        payload,
        canonical,
        readable,
        described_by,
        speaker,
        asks_to_follow,
    })
}

/// The arguments of a call, to be compared with those that were asked about.
fn canonical(arguments: Raw<'_>) -> Result<Canonical, Problem> {
    let text = raw_text(arguments);
    Ok(aaep_engine::canonical_ask(EventKind::AwaitingConfirmation, &text, "{}")?)
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
