//! What subscribers send, read: owned and small, so that it can be read before the engine is reached.

use aaep_types::json::Writer;
use aaep_types::{
    Decision, EventKind, Message, ReplyToken, Response, SessionId, SubscriptionId, Timestamp, rule,
    secret,
};
use std::sync::Arc;

use crate::principal::Evidence;
use crate::refusal::{Blame, Refusal};

/// A message of a subscriber: a reply, or one of our extension messages.
#[derive(Clone, Debug)]
pub struct SubscriberMessage {
    pub(crate) kind: Kind,
    /// What the hub verified of it.
    pub(crate) evidence: Evidence,
}

#[derive(Clone, Debug)]
pub(crate) enum Kind {
    Reply(Reply),
    Stop { session: SessionId, subscription: SubscriptionId },
}

/// A reply, whichever kind.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) token: ReplyToken,
    pub(crate) subscription: SubscriptionId,
    pub(crate) stamp: Timestamp,
    pub(crate) content: Content,
    /// What it says of itself, as a JSON object.
    pub(crate) says: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Decision { decision: Decision, modified: bool },
    Answer(Response<'static>),
    MoreTime { seconds: u64 },
}

impl Content {
    /// The kind of request that it answers; more time can be had for both (decision D29).
    pub(crate) fn answers(&self) -> Option<EventKind> {
        match self {
            Content::Decision { .. } => Some(EventKind::AwaitingConfirmation),
            Content::Answer(_) => Some(EventKind::AwaitingClarification),
            Content::MoreTime { .. } => None,
        }
    }
}

impl Content {
    /// Whether it lets something go on: a yes, or an answer.
    pub(crate) fn consents(&self) -> bool {
        match self {
            Content::Decision { decision, .. } => *decision == Decision::Accept,
            Content::Answer(_) => true,
            Content::MoreTime { .. } => false,
        }
    }
}

impl SubscriberMessage {
    // enforces: I29
    /// Reads a message. The work is proportional to its length, so do this before the engine is
    /// taken; what comes out is the same to handle whatever its sender wrote.
    pub fn parse(bytes: &[u8]) -> Result<Self, Refusal> {
        Self::of(Message::parse(bytes)?)
    }

    /// Takes a message that was read, if it is one of a subscriber.
    pub fn of(message: Message<'_>) -> Result<Self, Refusal> {
        let mut says = None;
        let (token, subscription, stamp, content) = match message {
            Message::ConfirmationReply(reply) => {
                says = Says {
                    decided_by: reply.decided_by.as_deref(),
                    rationale: reply.decision_rationale.as_deref(),
                    correlation_id: reply.correlation_id.as_deref(),
                    confidence: None,
                }
                .to_json();
                let modified = reply.modified_action.is_some();
                let content = Content::Decision { decision: reply.decision, modified };
                (reply.reply_token, reply.subscription_id, reply.timestamp.0, content)
            }
            Message::ClarificationReply(reply) => {
                says = Says {
                    decided_by: reply.decided_by.as_deref(),
                    rationale: None,
                    correlation_id: reply.correlation_id.as_deref(),
                    confidence: reply.confidence.map(|confidence| confidence.get()),
                }
                .to_json();
                let content = Content::Answer(owned(reply.response));
                (reply.reply_token, reply.subscription_id, reply.timestamp.0, content)
            }
            Message::MoreTime(more) => {
                let content = Content::MoreTime { seconds: more.seconds.get() };
                (more.reply_token, more.subscription_id, more.timestamp.0, content)
            }
            Message::StopSession(stop) => {
                let (session, subscription) = (stop.session_id, stop.subscription_id);
                return Ok(Self::new(Kind::Stop { session, subscription }));
            }
            _ => return Err(Refusal::new(Blame::Malformed, rule::C9, "Send a reply here.")),
        };
        Ok(Self::new(Kind::Reply(Reply { token, subscription, stamp, content, says })))
    }

    fn new(kind: Kind) -> Self {
        Self { kind, evidence: Evidence::none() }
    }

    /// The same with what the hub verified of it; without, nothing was shown.
    pub fn with_evidence(mut self, evidence: Evidence) -> Self {
        self.evidence = evidence;
        self
    }

    /// The token of the request that it says yes to, if it does.
    pub fn accepts(&self) -> Option<&ReplyToken> {
        match &self.kind {
            Kind::Reply(Reply {
                token,
                content: Content::Decision { decision: Decision::Accept, .. },
                ..
            }) => Some(token),
            _ => None,
        }
    }

    /// The subscription on which it was sent, as it says.
    pub fn subscription(&self) -> SubscriptionId {
        match &self.kind {
            Kind::Reply(reply) => reply.subscription,
            Kind::Stop { subscription, .. } => *subscription,
        }
    }
}

/// The longest correlation id that is passed on, in bytes: half of one names nothing.
const CORRELATION_BYTES: usize = 256;

/// What a reply says of itself: it stands beside who sent it, never in its place.
struct Says<'a> {
    decided_by: Option<&'a str>,
    rationale: Option<&'a str>,
    correlation_id: Option<&'a str>,
    confidence: Option<f64>,
}

impl Says<'_> {
    // enforces: C9, C19, T14
    /// As a JSON object without secrets; none if nothing is said.
    fn to_json(&self) -> Option<Arc<str>> {
        let correlation_id = self.correlation_id.filter(|id| id.len() <= CORRELATION_BYTES);
        let mut out = Writer::new();
        out.open('{');
        for (name, text) in [
            ("decided_by", self.decided_by),
            ("decision_rationale", self.rationale),
            ("correlation_id", correlation_id),
        ] {
            if let Some(text) = text {
                out.name(name);
                out.string(&secret::redact(text));
                out.comma();
            }
        }
        if let Some(confidence) = self.confidence {
            out.name("confidence");
            out.display(confidence);
            out.comma();
        }
        out.close('}');
        let text = out.finish();
        (text != "{}").then(|| text.into())
    }
}

fn owned(response: Response<'_>) -> Response<'static> {
    match response {
        Response::Text(text) => Response::Text(text.into_owned()),
        Response::YesNo(value) => Response::YesNo(value),
        Response::Number(value) => Response::Number(value),
    }
}
