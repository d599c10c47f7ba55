//! What subscribers send, read: owned and small, so that it can be read before the engine is reached.

use aaep_types::{
    Decision, EventKind, Message, ReplyToken, Response, SessionId, SubscriptionId, Timestamp, rule,
};

use crate::refusal::{Blame, Refusal};

/// A message of a subscriber: a reply, or one of our extension messages.
#[derive(Clone, Debug)]
pub struct SubscriberMessage(pub(crate) Kind);

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
}

#[derive(Clone, Debug)]
pub(crate) enum Content {
    Decision { decision: Decision, modified: bool },
    Answer(Response<'static>),
    MoreTime { seconds: u64 },
}

impl Content {
    /// Whether it can concern a request of this kind (decision D29).
    pub(crate) fn fits(&self, kind: EventKind) -> bool {
        match self {
            Content::Decision { .. } => kind == EventKind::AwaitingConfirmation,
            Content::Answer(_) => kind == EventKind::AwaitingClarification,
            Content::MoreTime { .. } => true,
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
        let (token, subscription, stamp, content) = match message {
            Message::ConfirmationReply(reply) => {
                let modified = reply.modified_action.is_some();
                let content = Content::Decision { decision: reply.decision, modified };
                (reply.reply_token, reply.subscription_id, reply.timestamp.0, content)
            }
            Message::ClarificationReply(reply) => {
                let content = Content::Answer(owned(reply.response));
                (reply.reply_token, reply.subscription_id, reply.timestamp.0, content)
            }
            Message::MoreTime(more) => {
                let content = Content::MoreTime { seconds: more.seconds.get() };
                (more.reply_token, more.subscription_id, more.timestamp.0, content)
            }
            Message::StopSession(stop) => {
                let (session, subscription) = (stop.session_id, stop.subscription_id);
                return Ok(Self(Kind::Stop { session, subscription }));
            }
            _ => return Err(Refusal::new(Blame::Malformed, rule::C9, "Send a reply here.")),
        };
        Ok(Self(Kind::Reply(Reply { token, subscription, stamp, content })))
    }
}

fn owned(response: Response<'_>) -> Response<'static> {
    match response {
        Response::Text(text) => Response::Text(text.into_owned()),
        Response::YesNo(value) => Response::YesNo(value),
        Response::Number(value) => Response::Number(value),
    }
}
