//! What an event says that matters to the rest of the stream. Members are looked for by name here
//! and nowhere else in this module; what is missing or malformed is `None`, since the message
//! itself was judged already.

use std::borrow::Cow;

use aaep_types::json::{Members, Raw, elements};
use aaep_types::{
    Decision, ENVELOPE_MEMBERS, EventKind, LenientEvent, Payload, ReplyToken, Reversibility,
    Timestamp,
};

use super::memory::Digest;

/// How deep the objects of an extension may nest before we do not look into them.
const MAX_EXTENSION_DEPTH: usize = 64;

/// The part of an event that other events depend on.
#[derive(Debug)]
pub(super) enum Observed<'a> {
    Started,
    Ended(EventKind),
    State { from: Option<Cow<'a, str>>, to: Option<Cow<'a, str>>, outcome: Option<ToldOutcome> },
    Invoked { tool: Digest, call: Option<Digest>, irreversible: bool },
    Completed { tool: Digest, call: Option<Digest> },
    Output(Piece<'a>),
    Asked(Ask),
    Handoff,
    Other,
}

/// A chunk of an output.
#[derive(Debug)]
pub(super) struct Piece<'a> {
    /// What it says.
    pub(super) text: Cow<'a, str>,
    /// The output it belongs to; one without a name belongs to the session's own.
    pub(super) output: Digest,
    pub(super) position: Option<u64>,
    /// How many Unicode scalar values it holds (decision D19).
    pub(super) length: Option<u64>,
    pub(super) complete: bool,
}

/// Whether a request said that its action can be taken back (decision D10: either field counts).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Nature {
    Irreversible,
    Unsaid,
    Reversible,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestKind {
    Confirmation,
    Clarification,
}

/// A request for consent or for an answer.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) kind: RequestKind,
    pub(super) event: Digest,
    pub(super) token: Option<ReplyToken>,
    /// Action and consequence: what makes two requests the same (§6.1).
    pub(super) action: Digest,
    /// The tool that would run, where our extension names it.
    pub(super) tool: Option<Digest>,
    pub(super) nature: Nature,
    pub(super) default_accept: bool,
    pub(super) allows_accept: bool,
    /// In microseconds, as [`Timestamp::as_micros`] counts them.
    pub(super) asked_at: Option<i64>,
    pub(super) deadline: Option<i64>,
}

/// What our extension says became of a request (decision D30).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ToldOutcome {
    pub(super) request: Digest,
    pub(super) fate: Option<Fate>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fate {
    Accepted,
    Rejected,
    TimedOut,
    Cancelled,
}

impl<'a> Observed<'a> {
    pub(super) fn read(heard: &LenientEvent<'a>) -> Self {
        let digest = |name| heard.text(name).map(|text| Digest::of(&[&text]));
        let named = |name| digest(name).unwrap_or_else(|| Digest::of(&[]));
        match heard.kind() {
            Some(EventKind::SessionStarted) => Observed::Started,
            Some(kind) if kind.is_terminal() => Observed::Ended(kind),
            Some(EventKind::StateChanged) => Observed::State {
                from: heard.text("from_state"),
                to: heard.text("to_state"),
                outcome: outcome(heard),
            },
            Some(EventKind::ToolInvoked) => Observed::Invoked {
                tool: named("tool"),
                call: digest("tool_call_id"),
                irreversible: heard.flag("irreversible") == Some(true),
            },
            Some(EventKind::ToolCompleted) => {
                Observed::Completed { tool: named("tool"), call: digest("tool_call_id") }
            }
            Some(EventKind::OutputStreaming) => Observed::Output(Piece {
                text: heard.text("chunk").unwrap_or_default(),
                output: named("output_id"),
                position: heard.number("position"),
                // enforces: D19
                length: heard.text("chunk").map(|chunk| chunk.chars().count() as u64),
                complete: heard.flag("complete") == Some(true),
            }),
            Some(EventKind::AwaitingConfirmation) => {
                Observed::Asked(ask(heard, RequestKind::Confirmation))
            }
            Some(EventKind::AwaitingClarification) => {
                Observed::Asked(ask(heard, RequestKind::Clarification))
            }
            Some(EventKind::HandoffRequested) => Observed::Handoff,
            _ => Observed::Other,
        }
    }
}

fn ask(heard: &LenientEvent<'_>, kind: RequestKind) -> Ask {
    let text = |name| heard.text(name).unwrap_or_default();
    let account = extension(heard, "action");
    let told = |name| account.as_ref().and_then(|account| account.text(name));
    Ask {
        kind,
        event: Digest::of(&[heard.event_id()]),
        token: heard.reply_token(),
        // The digest of tool and arguments, where the producer tells it, knows better than the words.
        action: match told("digest") {
            Some(digest) => Digest::of(&[&digest]),
            None => Digest::of(&[&text("action"), &text("consequence")]),
        },
        tool: told("tool").map(|tool| Digest::of(&[&tool])),
        nature: nature(heard),
        default_accept: text("default_decision") == Decision::Accept.as_str(),
        allows_accept: allows_accept(heard),
        asked_at: heard.timestamp().map(|time| time.as_micros()),
        deadline: heard.timestamp().and_then(|from| deadline(from, heard)),
    }
}

/// §6.4: measured from the timestamp of the request.
fn deadline(from: Timestamp, heard: &LenientEvent<'_>) -> Option<i64> {
    let seconds = i64::try_from(heard.number("timeout_seconds")?).ok()?;
    from.as_micros().checked_add(seconds.checked_mul(1_000_000)?)
}

fn nature(heard: &LenientEvent<'_>) -> Nature {
    // enforces: D10
    let (flag, shade) = (heard.flag("irreversible"), heard.text("reversibility"));
    let shade = shade.and_then(|shade| Reversibility::parse(&shade).ok());
    if flag == Some(true) || shade == Some(Reversibility::Irreversible) {
        Nature::Irreversible
    } else if flag.is_none() && shade.is_none() {
        Nature::Unsaid
    } else {
        Nature::Reversible
    }
}

/// §6.3.4: only a decision that the request lists can count; absent means both.
fn allows_accept(heard: &LenientEvent<'_>) -> bool {
    let Some(event) = heard.strict() else { return true };
    let Payload::AwaitingConfirmation(request) = event.payload() else { return true };
    let Some(allowed) = &request.allowed_replies else { return true };
    allowed.iter().any(|reply| reply.as_str() == Decision::Accept.as_str())
}

/// What an extension says, if it says an object.
fn extension<'a>(heard: &LenientEvent<'a>, prefix: &str) -> Option<Members<'a>> {
    let Raw::Object(text) = heard.object("extensions")?.find(prefix)? else { return None };
    Members::whole(text, MAX_EXTENSION_DEPTH).ok()?
}

fn outcome(heard: &LenientEvent<'_>) -> Option<ToldOutcome> {
    let members = extension(heard, "outcome")?;
    let any = |names: &[&str]| names.iter().find_map(|name| members.text(name));
    let request = any(&["request_event_id", "request", "event_id"])?;
    let fate = match any(&["outcome", "result"]).as_deref() {
        Some("accepted") => Some(Fate::Accepted),
        Some("rejected") => Some(Fate::Rejected),
        Some("timed_out") => Some(Fate::TimedOut),
        Some("cancelled" | "superseded") => Some(Fate::Cancelled),
        _ => None,
    };
    Some(ToldOutcome { request: Digest::of(&[&request]), fate })
}

/// What two deliveries of one event have in common: all but its texts (decision D28), and but for the
/// state that a change leaves. One that was merged with those before it leaves the state that the
/// first of them left (T7, §5.6.1), and may be told once more as it was said.
pub(super) fn identity(heard: &LenientEvent<'_>) -> Digest {
    let text = |name| heard.text(name).unwrap_or_default();
    let number = heard.sequence_number().map(|number| number.to_string()).unwrap_or_default();
    Digest::of(&[heard.type_name(), heard.session_id(), &number, &text("to_state")])
}

/// Who emitted it.
pub(super) fn agent(heard: &LenientEvent<'_>) -> Option<Digest> {
    heard.object("producer")?.text("agent_id").map(|agent| Digest::of(&[&agent]))
}

/// The event's number: `None` if it has none, `Some(None)` if it has one that cannot be read.
pub(super) fn number(heard: &LenientEvent<'_>) -> Option<Option<u64>> {
    heard.member("sequence_number").map(|_| heard.sequence_number())
}

/// Whether people do not hear this member: the envelope, and what ties messages together.
fn is_not_heard(name: &str) -> bool {
    let envelope = ENVELOPE_MEMBERS.contains(&name) && name != "extensions";
    envelope || matches!(name, "reply_token" | "tool_call_id" | "output_id")
}

/// Hands out every text of an event that somebody may hear or read, with its member's name. The
/// chunks of an output are not among them: only together they are a text.
pub(super) fn texts(heard: &LenientEvent<'_>, mut take: impl FnMut(&str, &str)) {
    let streams = heard.kind() == Some(EventKind::OutputStreaming);
    for member in heard.members().iter() {
        let apart = streams && member.name == "chunk";
        if !apart && !is_not_heard(&member.name) {
            strings(member.value, &mut |text| take(&member.name, text));
        }
    }
}

/// The strings in a value, however deep. The message was read, so the depth has a bound.
fn strings(value: Raw<'_>, take: &mut dyn FnMut(&str)) {
    match value {
        Raw::String(string) => take(&string.decode()),
        Raw::Array(text) => elements(text).into_iter().for_each(|value| strings(value, take)),
        Raw::Object(text) => {
            let members = Members::whole(text, MAX_EXTENSION_DEPTH).ok().flatten();
            for member in members.unwrap_or_default().iter() {
                strings(member.value, take);
            }
        }
        Raw::Null | Raw::Bool(_) | Raw::Number(_) => {}
    }
}
