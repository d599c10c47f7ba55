//! What a reply is worth: §6.3.4 and the decisions about it, read a second time.

use aaep_engine::Outcome;
use aaep_types::{ReplyToken, SubscriptionId, Timestamp};

use super::{Line, Oracle, Verdict};
use crate::cast::may_answer;

const FIVE_MINUTES_MICROS: i64 = 300_000_000;

/// What somebody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Said {
    Accept,
    Reject,
    /// Yes, but to something else.
    AcceptModified,
    Answer,
}

/// A reply on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) peer: usize,
    pub(crate) subscription: SubscriptionId,
    pub(crate) token: u128,
    pub(crate) said: Said,
    pub(crate) stamp: Timestamp,
}

impl Reply {
    /// The message as it goes over the wire.
    pub(crate) fn message(&self) -> String {
        let (kind, what) = match self.said {
            Said::Accept => ("confirmation", r#""decision":"accept""#),
            Said::Reject => ("confirmation", r#""decision":"reject""#),
            Said::AcceptModified => {
                ("confirmation", r#""decision":"accept","modified_action":{"amount":"9"}"#)
            }
            Said::Answer => ("clarification", r#""response":"The first.""#),
        };
        let Self { subscription, stamp, .. } = self;
        let token = ReplyToken::from_bits(self.token);
        format!(
            r#"{{"type":"{kind}.reply","reply_token":"{}",{what},"subscription_id":"{subscription}","timestamp":"{stamp}"}}"#,
            token.as_str()
        )
    }
}

fn ignored(request: Option<u128>, otherwise: &'static str) -> Verdict {
    Verdict { request, outcome: None, surely: true, otherwise }
}

impl Oracle {
    pub(crate) fn judge(&self, reply: &Reply, now: u64) -> Verdict {
        let Some(&number) = self.tokens.get(&reply.token) else { return ignored(None, "I6") };
        let about = Some(number);
        let Some(request) = self.requests.get(&number).filter(|request| request.asked > 0) else {
            return ignored(about, "I3");
        };
        let mut listeners = self.listeners.iter();
        let listener = listeners.find(|listener| {
            listener.id == reply.subscription && !matches!(listener.line, Line::Closed(_))
        });
        let Some(listener) = listener.filter(|listener| listener.principal == reply.peer) else {
            return ignored(about, "I15");
        };
        if !may_answer(reply.peer, request.user) {
            return ignored(about, "I15");
        }
        if request.resolved.is_some() {
            return ignored(about, "I2");
        }
        if now >= request.deadline {
            return ignored(about, "I7");
        }
        if request.question.confirmation == (reply.said == Said::Answer) {
            return ignored(about, "I6");
        }
        if !listener.supports(request) {
            return ignored(about, "I16");
        }
        let claimed = reply.stamp.as_micros();
        let until = request.stamp + request.question.timeout_millis as i64 * 1000;
        let plausible = (request.stamp - FIVE_MINUTES_MICROS..until).contains(&claimed);
        let outcome = match (reply.said, plausible) {
            (Said::Reject, true) | (Said::AcceptModified, true) => (Outcome::Rejected, false),
            // D9: a no is never lost; the question is withdrawn.
            (Said::Reject, false) => (Outcome::Cancelled, false),
            (Said::Accept, true) => (Outcome::Accepted, true),
            (Said::Answer, true) => (Outcome::Accepted, false),
            (_, false) => return ignored(about, "I8"),
        };
        // Over a lost line both readings of "live" are lawful; without a journal nothing counts.
        let surely = listener.line == Line::Live && !self.journal_down;
        let otherwise = if reply.said == Said::AcceptModified { "I17" } else { "I1" };
        Verdict { request: about, outcome: Some(outcome), surely, otherwise }
    }

    /// A message was handed over; what it leaves has the next record's number.
    pub(crate) fn sent(&mut self, call: u64) {
        self.messages.insert(call, (0, false));
    }

    /// The engine has taken it, and this is the last record it made.
    pub(crate) fn taken(&mut self, call: u64) {
        let record = self.last_record;
        if let Some(message) = self.messages.get_mut(&call) {
            message.0 = record;
        }
    }

    /// The answer to a message goes out.
    pub(crate) fn noted(&mut self, call: u64) {
        let durable = self.durable;
        match self.messages.get_mut(&call) {
            Some((record, noted)) if !*noted && *record > 0 && *record <= durable => *noted = true,
            Some((_, true)) | None => {
                self.violated("I6", "a message was answered twice".into());
            }
            Some(_) => self.violated("I6", "a message was answered before its record".into()),
        }
    }

    pub(crate) fn forget_messages(&mut self) {
        self.messages.clear();
    }
}
