//! What agents ask, made ready before the core is taken.
//!
//! Everything whose cost grows with the body happens here, on the sender's own time: UTF-8, JSON, the
//! policy, secrets, the canonical form and the account of an action, the hash of the body. What the
//! core is given is owned, checked and small to look at (I29).

use aaep_engine::{AgentEvent, AgentQuestion};
use aaep_policy::Policy;
use aaep_types::agent_api::{
    ApiError, ApiErrorKind, AskUser, InvokeAction, OpenSession, PostEvent, agent_id_of,
    producer_of, read_object, tool_of,
};
use aaep_types::json::{Canonical, Members, Writer};
use aaep_types::{DescribedBy, EventKind, LanguageTag, Presence, RiskLevel, SessionId, rule, team};
use sha2::{Digest as _, Sha256};

use super::policy;
use crate::core::held;
use crate::hub::Hub;
use crate::presence;
use crate::redaction::{Piece, look_through, look_through_text, telling, with_extension};

/// How long an agent may stay silent, in seconds: usual, least, most.
const LEASE_SECONDS: (u64, u64, u64) = (120, 15, 24 * 60 * 60);

/// Bytes of a producer object, and of the `agent_id` in it.
const PRODUCER_BYTES: usize = 4096;
const AGENT_ID_BYTES: usize = 256;

/// A request on its way in: as it came over the wire, or as an agent in this process made it.
pub(super) enum Request<T> {
    Bytes(bytes::Bytes),
    Typed(T),
}

/// A request of the agent API.
pub(super) trait Readable: Sized {
    fn read(bytes: &[u8]) -> Result<Self, ApiError>;
    fn written(&self) -> String;
    /// About how long it is written.
    fn room(&self) -> usize;
}

macro_rules! readable {
    ($($name:ident, |$it:ident| $room:expr;)+) => {$(
        impl Readable for $name {
            fn read(bytes: &[u8]) -> Result<Self, ApiError> {
                Self::parse(bytes)
            }

            fn written(&self) -> String {
                self.to_json()
            }

            fn room(&self) -> usize {
                let $it = self;
                $room
            }
        }
    )+};
}

readable! {
    OpenSession, |it| it.payload.len() + it.summary_normal.len() + it.producer.len();
    PostEvent, |it| it.payload.len() + it.arguments.as_ref().map_or(0, String::len);
    AskUser, |it| it.payload.len() + it.arguments.len();
    InvokeAction, |it| it.arguments.as_ref().map_or(0, String::len);
}

impl<T: Readable> Request<T> {
    pub(super) fn room(&self) -> usize {
        match self {
            Self::Bytes(bytes) => bytes.len(),
            Self::Typed(request) => request.room(),
        }
    }

    /// Reads it, and makes it ready; `keyed` says whether it carries an idempotency key.
    pub(super) fn prepare<P>(
        self,
        keyed: bool,
        prepare: impl FnOnce(T) -> Result<P, ApiError>,
    ) -> Prepared<P> {
        held::assert_free();
        let hash = |bytes: &[u8]| if keyed { Sha256::digest(bytes).into() } else { [0; 32] };
        match self {
            Self::Bytes(bytes) => {
                Prepared { hash: hash(&bytes), said: T::read(&bytes).and_then(prepare) }
            }
            Self::Typed(request) => {
                let written = if keyed { request.written() } else { String::new() };
                Prepared { hash: hash(written.as_bytes()), said: prepare(request) }
            }
        }
    }
}

/// A request that was made ready, and enough to recognise it.
pub(super) struct Prepared<P> {
    /// Kept apart from a repeated idempotency key, which is looked up first.
    pub(super) said: Result<P, ApiError>,
    pub(super) hash: [u8; 32],
}

/// A session that is about to be opened.
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

/// An event that is about to be emitted.
pub(super) struct Emission {
    pub(super) event: AgentEvent,
    /// What an announced tool is called with, if its agent says.
    pub(super) arguments: Option<Canonical>,
    /// The producer that it names, if it names one.
    pub(super) speaker: Option<String>,
    /// The output that it goes on with.
    pub(super) piece: Option<Piece>,
    /// Why a piece of an output is not said. It depends on what was said before, so only those who
    /// may speak in the session are told.
    pub(super) refused: Option<ApiError>,
    /// The rules of the profile by which something has to follow.
    pub(super) asks_to_follow: Vec<usize>,
}

/// A question that is about to be asked.
pub(super) struct Question {
    /// What is asked, to which consent is bound.
    pub(super) asked: AgentQuestion,
    pub(super) described_by: DescribedBy,
    /// The producer that it names, if it names one.
    pub(super) speaker: Option<String>,
    /// The rules of the profile by which something has to follow.
    pub(super) asks_to_follow: Vec<usize>,
}

pub(super) fn opening(hub: &Hub, request: OpenSession) -> Result<Opening, ApiError> {
    let OpenSession { producer, summary_normal, language, lease_seconds, sub_agents, payload } =
        request;
    check_producer(&producer)?;
    let secrets = hub.config().secrets;
    let (summary, removed) = look_through_text("summary_normal", summary_normal, secrets)?;
    let clean = look_through(&read_object(&payload)?, secrets)?;
    let payload = telling(&clean.unwrap_or(payload), removed);
    bounded(hub, &payload)?;
    let payload = match sub_agents {
        Some(ids) => with_extension(&payload, (team::URI, team::PREFIX), &team_of(&ids)?),
        None => payload,
    };
    let language =
        LanguageTag::parse(language.unwrap_or_else(|| "en".to_owned())).map_err(|_| {
            ApiError::malformed("`language` is a language tag such as `en` or `yo-NG`.")
        })?;
    let (usual, least, most) = LEASE_SECONDS;
    let lease_seconds = lease_seconds.unwrap_or(usual);
    if !(least..=most).contains(&lease_seconds) {
        let text = format!("`lease_seconds` is a whole number from {least} to {most}.");
        return Err(ApiError::malformed(text));
    }
    let started = with_member(&payload, "summary_normal", &summary);
    let asks_to_follow = keeps_profile(hub, EventKind::SessionStarted.as_str(), &started)?;
    Ok(Opening { producer, summary, language, lease_seconds, payload, asks_to_follow })
}

// enforces: E28
/// The extension that says who else speaks in a session.
fn team_of(ids: &[String]) -> Result<String, ApiError> {
    let sound = |id: &String| !id.is_empty() && id.len() <= AGENT_ID_BYTES;
    let once = |id: &String| ids.iter().filter(|other| *other == id).count() == 1;
    let few = (1..=team::MAX_AGENTS).contains(&ids.len());
    if !few || !ids.iter().all(|id| sound(id) && once(id)) {
        let text = format!(
            "`sub_agents` is a list of 1 to {} different `agent_id`s, each with at most {AGENT_ID_BYTES} bytes.",
            team::MAX_AGENTS
        );
        return Err(ApiError::malformed(text).under(rule::E28));
    }
    let mut out = Writer::new();
    out.open('{');
    out.name("agents");
    out.open('[');
    for id in ids {
        out.string(id);
        out.comma();
    }
    out.close(']');
    out.close('}');
    Ok(out.finish())
}

// enforces: I22, I29
/// It goes with every event of the session, and its id is remembered.
fn check_producer(producer: &str) -> Result<(), ApiError> {
    if producer.len() > PRODUCER_BYTES {
        let text = format!("`producer` has at most {PRODUCER_BYTES} bytes.");
        return Err(ApiError::malformed(text).under(rule::E11));
    }
    if agent_id_of(producer).is_some_and(|id| id.len() > AGENT_ID_BYTES) {
        let text = format!("`agent_id` has at most {AGENT_ID_BYTES} bytes; use a shorter one.");
        return Err(ApiError::malformed(text).under(rule::E11));
    }
    Ok(())
}

/// The producer object that an event or a request names.
fn speaker_of(members: &Members<'_>) -> Result<Option<String>, ApiError> {
    let Some(producer) = producer_of(members)? else { return Ok(None) };
    check_producer(producer)?;
    Ok(Some(producer.to_owned()))
}

pub(super) fn emission(
    hub: &Hub,
    session: SessionId,
    request: PostEvent,
) -> Result<Emission, ApiError> {
    let PostEvent { type_name, payload, arguments } = request;
    let kind = EventKind::named(&type_name);
    let members = read_object(&payload)?;
    let speaker = speaker_of(&members)?;
    let announced = match kind {
        Some(EventKind::ToolInvoked) => announced(hub, &members, arguments.as_deref())?,
        _ => None,
    };
    let arguments = arguments.as_deref().map(canonical).transpose()?;
    let (payload, members) = match &announced {
        Some(payload) => (payload, read_object(payload)?),
        None => (&payload, members),
    };
    let secrets = hub.config().secrets;
    let clean = look_through(&members, secrets)?;
    let (payload, members) = match &clean {
        Some(payload) => (payload, read_object(payload)?),
        None => (payload, members),
    };
    bounded(hub, payload)?;
    let judged = judge_piece(hub, session, (kind, &type_name), (payload, &members));
    let (piece_said, piece, asks_to_follow, refused) = match judged {
        Ok((said, piece, asks)) => (said, piece, asks, None),
        Err(refused) if kind == Some(EventKind::OutputStreaming) => {
            (None, None, Vec::new(), Some(refused))
        }
        Err(refused) => return Err(refused),
    };
    let event = match &piece_said {
        Some(payload) => AgentEvent::read(&type_name, payload),
        None => AgentEvent::of(&type_name, payload, &members),
    };
    Ok(Emission { event, arguments, speaker, piece, refused, asks_to_follow })
}

/// What is said of a piece, the output that it goes on with, and the rules that ask for more.
type JudgedPiece = (Option<String>, Option<Piece>, Vec<usize>);

/// What a piece of an output says once its secrets are taken out, the output that it goes on with, and
/// the rules of the profile by which something has to follow. Of other events only the last.
fn judge_piece(
    hub: &Hub,
    session: SessionId,
    (kind, type_name): (Option<EventKind>, &str),
    (payload, members): (&str, &Members<'_>),
) -> Result<JudgedPiece, ApiError> {
    let (said, piece) = match kind {
        Some(EventKind::OutputStreaming) => {
            hub.0.outputs.look_through(session, members, hub.config().secrets)?
        }
        _ => (None, None),
    };
    let asks_to_follow = keeps_profile(hub, type_name, said.as_deref().unwrap_or(payload))?;
    Ok((said, piece, asks_to_follow))
}

// enforces: I22, I29
/// What an event says is read once more when it has its envelope, while the core is held; so it is
/// shorter than a body may be.
fn bounded(hub: &Hub, payload: &str) -> Result<(), ApiError> {
    let most = hub.config().limits.event_bytes;
    if payload.len() <= most {
        return Ok(());
    }
    let text = format!(
        "An event has at most {most} bytes (limits.event_bytes), `arguments` aside. Send a long output in several pieces."
    );
    Err(ApiError::new(ApiErrorKind::TooLarge, text).under(rule::E21))
}

// enforces: X9
/// Whether an event keeps the rules of the profile in force, and those by which something has to follow.
fn keeps_profile(hub: &Hub, type_name: &str, payload: &str) -> Result<Vec<usize>, ApiError> {
    let Some(profile) = &hub.0.profile else { return Ok(Vec::new()) };
    let name = EventKind::named(type_name).map_or(type_name, |kind| kind.as_str());
    let event = with_member(payload, "type", name);
    match profile.broken_by(event.as_bytes()).first() {
        None => {
            let members = read_object(&event)?;
            Ok(profile.asks_to_follow(&members).map(|(place, _)| place).collect())
        }
        Some(rule) => {
            let text = format!("{} ({}, {})", rule.text, rule.id, profile.name);
            Err(ApiError::malformed(text).under(rule::X9))
        }
    }
}

// enforces: T14, T27
/// What a tool that runs without a question says of itself, if the policy says more than its agent.
fn announced(
    hub: &Hub,
    members: &Members<'_>,
    arguments: Option<&str>,
) -> Result<Option<String>, ApiError> {
    let Some(in_force) = &**hub.policy() else { return Ok(None) };
    let tool = tool_of(members)?.unwrap_or_default();
    let ruling = policy::permit(in_force, &tool, arguments)?;
    Ok(Some(policy::announce(&ruling, members)))
}

pub(super) fn question(
    hub: &Hub,
    user: &str,
    language: Option<&str>,
    request: AskUser,
) -> Result<Question, ApiError> {
    let AskUser { kind, tool, arguments, payload } = request;
    let members = read_object(&payload)?;
    let speaker = speaker_of(&members)?;
    let in_force = hub.policy();
    let mut ruled = None;
    let (strengthened, described_by) = match &**in_force {
        Some(in_force) if kind == EventKind::AwaitingConfirmation => {
            let ruling = in_force.decide(&tool, &arguments);
            ruled = ruling.presence;
            let strengthened = policy::strengthen(&ruling, &members, language.unwrap_or("en"));
            (Some(strengthened), policy::described_by(&ruling))
        }
        _ => (None, DescribedBy::Agent),
    };
    let members = match &strengthened {
        Some(payload) => read_object(payload)?,
        None => members,
    };
    // Secrets are taken out of texts only: what is weighed stays what it is.
    let gravity = policy::gravity(&members);
    let clean = look_through(&members, hub.config().secrets)?;
    let members = match &clean {
        Some(payload) => read_object(payload)?,
        None => members,
    };
    let payload = clean.as_ref().or(strengthened.as_ref()).unwrap_or(&payload);
    bounded(hub, payload)?;
    // enforces: I31
    let asked = AgentQuestion::of(kind, (&tool, &arguments), (payload, &members));
    let asked = match kind {
        EventKind::AwaitingConfirmation => {
            asked.needing(needed(hub, user, ruled, in_force.as_ref().as_ref(), gravity))
        }
        _ => asked,
    };
    let asks_to_follow = keeps_profile(hub, kind.as_str(), payload)?;
    Ok(Question { asked, described_by, speaker, asks_to_follow })
}

// enforces: I34
/// The presence that a yes requires: as the rule says, or the policy for this risk, or what is
/// usual.
fn needed(
    hub: &Hub,
    user: &str,
    ruled: Option<Presence>,
    in_force: Option<&Policy>,
    (risk, irreversible): (RiskLevel, bool),
) -> Presence {
    let said = ruled.or_else(|| in_force.and_then(|policy| policy.presence_for(risk)));
    // Looked at in any case: a changed PIN is announced.
    let has_any = hub.has_presence(user);
    said.unwrap_or_else(|| presence::usual(risk, irreversible, has_any))
}

/// The arguments with which an action is about to run, to be compared with those that were asked
/// about.
pub(super) fn invocation(request: InvokeAction) -> Result<Option<Canonical>, ApiError> {
    request.arguments.as_deref().map(canonical).transpose()
}

fn canonical(arguments: &str) -> Result<Canonical, ApiError> {
    Ok(aaep_engine::canonical_ask(EventKind::AwaitingConfirmation, arguments, "{}")?)
}

/// An object with one text more.
fn with_member(object: &str, name: &str, value: &str) -> String {
    let mut out = Writer::with_capacity(object.len() + name.len() + value.len() + 8);
    out.json(object.strip_suffix('}').unwrap_or(object));
    if object != "{}" {
        out.comma();
    }
    out.name(name);
    out.string(value);
    out.close('}');
    out.finish()
}
