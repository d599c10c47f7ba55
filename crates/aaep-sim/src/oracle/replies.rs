//! What a reply is worth: §6.3.4 and the decisions about it, read a second time.

use aaep_engine::{Outcome, RequestId};
use aaep_types::{Presence, ReplyToken, SubscriptionId, Timestamp};

use super::{Line, Oracle, Verdict};
use crate::cast::may_answer;

const FIVE_MINUTES_MICROS: i64 = 300_000_000;

/// What somebody says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReplyKind {
    Accept,
    Reject,
    /// Yes, but to something else.
    AcceptModified,
    Answer,
    /// Nothing yet: so many seconds more.
    MoreTime(u64),
}

/// A reply on its way.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    pub(crate) peer: usize,
    pub(crate) subscription: SubscriptionId,
    pub(crate) token: u128,
    pub(crate) said: ReplyKind,
    pub(crate) stamp: Timestamp,
    /// What the hub verified of it.
    pub(crate) shown: Presence,
    /// It comes from the processes of the agent that asked.
    pub(crate) own_tree: bool,
}

impl Reply {
    /// The message as it goes over the wire.
    pub(crate) fn message(&self) -> String {
        let (kind, what) = match self.said {
            ReplyKind::Accept => ("confirmation.reply", r#""decision":"accept""#.to_owned()),
            ReplyKind::Reject => ("confirmation.reply", r#""decision":"reject""#.to_owned()),
            ReplyKind::AcceptModified => {
                let what = r#""decision":"accept","modified_action":{"amount":"9"}"#;
                ("confirmation.reply", what.to_owned())
            }
            ReplyKind::Answer => ("clarification.reply", r#""response":"The first.""#.to_owned()),
            ReplyKind::MoreTime(seconds) => ("timing:extend", format!(r#""seconds":{seconds}"#)),
        };
        let Self { subscription, stamp, .. } = self;
        let token = ReplyToken::from_bits(self.token);
        format!(
            r#"{{"type":"{kind}","reply_token":"{}",{what},"subscription_id":"{subscription}","timestamp":"{stamp}"}}"#,
            token.as_str()
        )
    }
}

fn ignored(request: Option<RequestId>, otherwise: &'static str) -> Verdict {
    Verdict { request, outcome: None, more: None, surely: true, otherwise }
}

impl Oracle {
    pub(crate) fn judge(&self, reply: &Reply, now: u64) -> Verdict {
        let Some(&event) = self.tokens.get(&reply.token) else { return ignored(None, "I6") };
        let about = self.asks.get(&event).copied();
        let request = about.and_then(|number| self.requests.get(&number));
        let Some(request) = request.filter(|request| request.exists()) else {
            return ignored(about, "I3");
        };
        let listener = self.listener(reply.subscription);
        let listener = listener.filter(|listener| !matches!(listener.line, Line::Closed(_)));
        let Some(listener) = listener.filter(|listener| listener.principal == reply.peer) else {
            return ignored(about, "I15");
        };
        if !may_answer(reply.peer, request.user) {
            return ignored(about, "I15");
        }
        // A token that was superseded is as dead as one that was used.
        if request.resolved.is_some() || request.now().event != event {
            return ignored(about, "I2");
        }
        let asking = request.now();
        if now >= asking.deadline {
            return ignored(about, "I7");
        }
        let fits = match reply.said {
            ReplyKind::MoreTime(_) => true,
            ReplyKind::Answer => !request.question.confirmation,
            ReplyKind::Accept | ReplyKind::Reject | ReplyKind::AcceptModified => {
                request.question.confirmation
            }
        };
        if !fits {
            return ignored(about, "I6");
        }
        if !listener.supports(request) {
            return ignored(about, "I16");
        }
        if reply.own_tree {
            return ignored(about, "I30");
        }
        let consents = !matches!(reply.said, ReplyKind::Reject | ReplyKind::MoreTime(_));
        if consents && reply.shown < request.question.needs() {
            return ignored(about, "I34");
        }
        // Over a lost line both readings of "live" are lawful; without a journal nothing counts.
        let surely = listener.line == Line::Live && !self.journal_down;
        if let ReplyKind::MoreTime(seconds) = reply.said {
            if now + seconds * 1000 <= asking.deadline {
                return ignored(about, "I8");
            }
            let more = Some(seconds * 1000);
            return Verdict { request: about, outcome: None, more, surely, otherwise: "D32" };
        }
        let claimed = reply.stamp.as_micros();
        let until = asking.stamp + asking.timeout_millis as i64 * 1000;
        let plausible = (asking.stamp - FIVE_MINUTES_MICROS..until).contains(&claimed);
        let outcome = match (reply.said, plausible) {
            (ReplyKind::Reject, true) | (ReplyKind::AcceptModified, true) => {
                (Outcome::Rejected, false)
            }
            // D9: a no is never lost; the question is withdrawn.
            (ReplyKind::Reject, false) => (Outcome::Cancelled, false),
            (ReplyKind::Accept, true) => (Outcome::Accepted, true),
            (ReplyKind::Answer, true) => (Outcome::Accepted, false),
            (_, false) => return ignored(about, "I8"),
            (ReplyKind::MoreTime(_), _) => return ignored(about, "D32"),
        };
        let otherwise = if reply.said == ReplyKind::AcceptModified { "I17" } else { "I1" };
        Verdict { request: about, outcome: Some(outcome), more: None, surely, otherwise }
    }

    /// A message was handed over; what it leaves has the next record's number.
    pub(crate) fn sent(&mut self, call: u64) {
        self.messages.insert(call, (0, false));
    }

    /// The engine has taken it, and this is the last record it made.
    pub(crate) fn taken(&mut self, call: u64) {
        let record = self.last_record;
        let message = self.messages.get_mut(&call).filter(|_| !self.beyond);
        if let Some(message) = message {
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
        self.forget_paces();
    }
}
