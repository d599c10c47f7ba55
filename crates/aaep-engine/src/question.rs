//! What an agent asks, read once, before the engine is taken.

use aaep_types::action::ReadableArguments;
use aaep_types::agent_api::with_longer_wait;
use aaep_types::event::any_variant;
use aaep_types::json::{Canonical, Members, Writer, is_number};
use aaep_types::{
    Decision, Event, EventKind, Limits, Payload, Presence, ReplyToken, ResponseKind, RiskLevel,
    rule,
};
use std::borrow::Cow;
use std::sync::Arc;

use crate::agent_event::{EventContent, on_one_line};
use crate::draft::{Draft, payload_of};
use crate::hints::{Hints, is_sayable};
use crate::ids::{Digest, TokenNumber};
use crate::refusal::{Blame, Refusal};

/// A question for the user: consent to a call of a tool, or something that an agent has to know.
/// Reading it never fails: what is wrong with it is told once it is known whose session it is for.
#[derive(Clone, Debug)]
pub struct AgentQuestion {
    pub(crate) kind: EventKind,
    pub(crate) tool: Arc<str>,
    pub(crate) arguments: Arc<str>,
    /// What consent is bound to.
    pub(crate) digest: Result<Digest, Refusal>,
    /// The arguments as people read them.
    pub(crate) readable: ReadableArguments,
    asked: Result<QuestionText, Refusal>,
    /// The presence that a yes requires (I34).
    pub(crate) needs: Presence,
}

/// What is asked. All texts are members as JSON, without braces and without the reply token.
#[derive(Clone, Debug)]
pub(crate) struct QuestionText {
    /// Everything that its agent says, as it is recorded.
    pub(crate) head: String,
    /// The same without hints, if there are any.
    payload: Option<String>,
    hints: Option<Box<Hints>>,
    /// Whether any of its texts has a variant in another language.
    pub(crate) variants: bool,
    /// What the payload means, if it is valid.
    terms: Option<QuestionTerms>,
}

/// What a question means for its request.
#[derive(Clone, Debug)]
pub(crate) struct QuestionTerms {
    /// What is asked about, in the agent's words.
    pub(crate) action: Arc<str>,
    pub(crate) timeout_seconds: u64,
    /// Whether silence means yes.
    pub(crate) default_accept: bool,
    /// Whether the action cannot be taken back.
    pub(crate) irreversible: bool,
    pub(crate) risk: Option<RiskLevel>,
    /// What counts when a question is not answered.
    pub(crate) answer: Option<Arc<str>>,
}

impl AgentQuestion {
    // enforces: I29
    /// Reads a question of this kind: the tool that would run, empty for a question; its arguments as
    /// JSON text, whose very bytes are handed back at the invocation; and the payload of the event
    /// without the reply token, a JSON object. The work is proportional to their length, so do this
    /// before the engine is taken.
    pub fn read(kind: EventKind, tool: &str, arguments: &str, payload: &str) -> Self {
        let asked = QuestionText::read(kind, payload);
        Self::with_text(kind, (tool, arguments), payload, asked)
    }

    /// The same with a payload that was read before and has no [faults](Members::faults); `payload`
    /// is its text.
    pub fn of(
        kind: EventKind,
        (tool, arguments): (&str, &str),
        (payload, members): (&str, &Members<'_>),
    ) -> Self {
        let asked = match payload.contains(['\n', '\r']) {
            true => QuestionText::read(kind, payload),
            false => QuestionText::of(kind, payload.len(), members),
        };
        Self::with_text(kind, (tool, arguments), payload, asked)
    }

    fn with_text(
        kind: EventKind,
        (tool, arguments): (&str, &str),
        payload: &str,
        asked: Result<QuestionText, Refusal>,
    ) -> Self {
        let confirmation = kind == EventKind::AwaitingConfirmation;
        let canonical = canonical_ask(kind, arguments, payload);
        let name = if confirmation { tool } else { "" };
        Self {
            kind,
            tool: tool.into(),
            arguments: arguments.into(),
            digest: canonical.map(|canonical| Digest::of(name, &canonical)),
            readable: match confirmation {
                true => ReadableArguments::of(arguments),
                false => ReadableArguments::default(),
            },
            asked,
            needs: Presence::None,
        }
    }

    /// The same, to be answered by somebody at least this present.
    pub fn needing(mut self, presence: Presence) -> Self {
        self.needs = presence;
        self
    }

    /// Confirmation or clarification.
    pub fn kind(&self) -> EventKind {
        self.kind
    }

    /// What is asked, with so many times as long to answer (decision D32), unless something is wrong
    /// with it.
    pub(crate) fn asked(&self, time_factor: u64) -> Result<Cow<'_, QuestionText>, Refusal> {
        let asked = self.asked.as_ref().map_err(Clone::clone)?;
        if time_factor <= 1 {
            return Ok(Cow::Borrowed(asked));
        }
        let object = ["{", &asked.head, "}"].concat();
        let longer = with_longer_wait(&object, time_factor);
        Ok(match longer {
            Some(longer) => Cow::Owned(QuestionText::read(self.kind, &longer)?),
            None => Cow::Borrowed(asked),
        })
    }
}

impl QuestionText {
    fn read(kind: EventKind, payload: &str) -> Result<Self, Refusal> {
        on_one_line(payload, |members| Self::of(kind, payload.len(), members))
    }

    fn of(kind: EventKind, room: usize, members: &Members<'_>) -> Result<Self, Refusal> {
        let said = EventContent::of(members, room, Some(kind))?;
        let (head, payload) = match &said.hints {
            None => (said.payload, None),
            Some(_) => (written(members, room), Some(said.payload)),
        };
        Ok(Self {
            head,
            payload,
            hints: said.hints,
            variants: any_variant(kind, members),
            terms: QuestionTerms::read(kind, room, members),
        })
    }

    /// The event that asks, with its token.
    pub(crate) fn draft(&self, kind: EventKind, token: TokenNumber) -> Draft<'static> {
        let members = self.payload.as_ref().unwrap_or(&self.head);
        let mut draft = Draft::new(kind, with_token(members, token.spelled().as_str()));
        draft.urgency =
            self.hints.as_ref().and_then(|hints| hints.urgency).unwrap_or(draft.urgency);
        draft.hints = self.hints.clone();
        draft
    }

    /// What it means, once it stands in its event. Without hints the envelope is ours as well and
    /// needs no reading, unless something is wrong: then the whole event is read, which says what.
    pub(crate) fn terms(&self, event: &str) -> Result<QuestionTerms, Refusal> {
        let short = event.len() <= Limits::default().max_bytes;
        match &self.terms {
            Some(terms) if short && self.hints.is_none() => Ok(terms.clone()),
            _ => {
                let event = Event::parse_ours(event.as_bytes())?;
                QuestionTerms::of(event.payload()).ok_or_else(asks_nothing)
            }
        }
    }
}

impl QuestionTerms {
    /// What a question means that its agent says in these members, if it is valid.
    fn read(kind: EventKind, room: usize, members: &Members<'_>) -> Option<Self> {
        if room > Limits::default().max_bytes || !members.faults().is_empty() {
            return None;
        }
        // Another token stands for the real one, which the engine makes later.
        let token = ["{", &with_token("", ReplyToken::from_bits(0).as_str())[1..], "}"].concat();
        let members: &Members<'_> = members;
        let said = members.iter().filter(|member| !is_sayable(&member.name)).cloned();
        let payload = Payload::read_ours(kind, said.chain(Members::whole(&token, 1).ok()??))?;
        Self::of(&payload)
    }

    fn of(payload: &Payload<'_>) -> Option<Self> {
        let (action, timeout_seconds) = match payload {
            Payload::AwaitingConfirmation(confirmation) => {
                (confirmation.action.as_str(), confirmation.timeout_seconds)
            }
            Payload::AwaitingClarification(question) => {
                (question.question.as_str(), question.timeout_seconds)
            }
            _ => return None,
        };
        let (default_accept, irreversible) = consent_of(payload);
        Some(Self {
            action: action.into(),
            timeout_seconds: timeout_seconds.get(),
            default_accept,
            irreversible,
            risk: risk_of(payload),
            answer: default_answer(payload),
        })
    }
}

/// All members, hints among them, as JSON without braces.
fn written(members: &Members<'_>, room: usize) -> String {
    let mut out = Writer::with_capacity(room);
    for member in members.iter() {
        out.name(&member.name);
        out.raw(member.value);
        out.comma();
    }
    let mut text = out.finish();
    text.pop();
    text
}

/// Neither a confirmation nor a clarification.
pub(crate) fn asks_nothing() -> Refusal {
    let text = "Ask for a confirmation or a clarification.";
    Refusal::new(Blame::Malformed, rule::C1, text)
}

/// The canonical form of what is asked for, which its digest is taken over: the arguments of the
/// action, or the question itself but for how long it waits. The work is proportional to the length,
/// so do this before the engine is taken.
pub fn canonical_ask(
    kind: EventKind,
    arguments: &str,
    payload: &str,
) -> Result<Canonical, Refusal> {
    // enforces: D36
    let question;
    let (asked, what) = if kind == EventKind::AwaitingConfirmation {
        (arguments, "the arguments")
    } else {
        question = question_of(payload);
        (&*question, "the question")
    };
    Canonical::of(asked).map_err(|fault| {
        let text = format!("{} (byte {} of {what})", fault.kind, fault.offset);
        Refusal::new(Blame::Malformed, rule::D36, text)
    })
}

/// A question without its token and its timeout: asked with more time, it is the same.
pub(crate) fn question_of(payload: &str) -> String {
    let mut members = payload_of(payload, &["reply_token", "timeout_seconds"]);
    members.pop();
    ["{", &members, "}"].concat()
}

/// A request's payload, whose last member is its token.
pub(crate) fn with_token(head: &str, token: &str) -> String {
    [head, ",\"reply_token\":\"", token, "\""].concat()
}

/// The same members without their token.
pub(crate) fn without_token(members: &str) -> &str {
    members.strip_suffix(",\"reply_token\":\"\"").unwrap_or(members)
}

/// Whether silence means yes, and whether the action cannot be taken back.
fn consent_of(payload: &Payload<'_>) -> (bool, bool) {
    let Payload::AwaitingConfirmation(confirmation) = payload else { return (false, false) };
    // enforces: D10
    // What nobody calls reversible counts as irreversible.
    let says_nothing = confirmation.irreversible.is_none() && confirmation.reversibility.is_none();
    let accept = confirmation.default_decision == Decision::Accept;
    (accept, confirmation.is_irreversible() || says_nothing)
}

/// How much can go wrong; what does not say it counts as high (decision D10).
fn risk_of(payload: &Payload<'_>) -> Option<RiskLevel> {
    let Payload::AwaitingConfirmation(confirmation) = payload else { return None };
    Some(confirmation.risk_level.unwrap_or(RiskLevel::High))
}

// enforces: D17
/// What counts when a question is not answered, as JSON of the kind that was asked for.
pub(crate) fn default_answer(payload: &Payload<'_>) -> Option<Arc<str>> {
    let Payload::AwaitingClarification(question) = payload else { return None };
    let default = question.default_response.as_ref()?.as_str();
    let kinds = question.kinds();
    let as_it_is = kinds.contains(&ResponseKind::YesNo) && matches!(default, "true" | "false")
        || kinds.contains(&ResponseKind::Numeric) && is_number(default);
    if as_it_is {
        return Some(default.into());
    }
    let mut out = Writer::new();
    out.string(default);
    Some(out.finish().into())
}
