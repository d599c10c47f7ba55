//! The messages of our own extensions (§7): more time, and stopping the agent.
//!
//! `urn:aaep-rs:timing:v1` (prefix `timing`): a person asks for more time to answer. Urgency and
//! order: it may come at any time while the request waits, and has no effect afterwards.
//!
//! `urn:aaep-rs:control:v1` (prefix `control`): a person stops the agent. It may come at any time
//! while the session lives; its effect is `session.cancelled` by the user.

use crate::id::{EventId, ReplyToken, SessionId, SubscriptionId};
use crate::number::Whole;
use crate::reply::constant;
use crate::rule;
use crate::text::Name;
use crate::time::ReplyTimestamp;
use crate::wire::{Unknown, object};

constant! {
    /// The type of a [`MoreTime`].
    MoreTimeType, "timing:extend"
}
constant! {
    /// The type of a [`StopSession`].
    StopSessionType, "control:cancel"
}

object! {
    /// Which request a state change or an update resolves, and how (decision D30): what the prefix
    /// `outcome` of `urn:aaep-rs:outcome:v1` holds.
    pub struct OutcomeMember, fields OutcomeFields, unknown(Unknown::Keep) {
        /// The event that asked.
        required request_event_id: EventId, X7;
        /// What became of it: `accepted`, `rejected`, `timed_out`, `cancelled`, `superseded`,
        /// `expired`. Others may come; treat one that you do not know as "no longer asked".
        required outcome: Name<'a, 1, 64>, X7;
        /// Why: `wrong_clock` where a no came with a clock that cannot be right (decision D42).
        optional reason: Name<'a, 1, 64>, X7;
    }
}

object! {
    /// What a request that asks again with more time says (decision D32): what the prefix `timing` of
    /// `urn:aaep-rs:timing:v1` holds in an event.
    pub struct TimingMember, fields TimingFields, unknown(Unknown::Keep) {
        /// The event that asked before, in whose place this one stands.
        required supersedes: EventId, X7;
    }
}

object! {
    /// How much time a listener needs: the capability `timing` of a request for a subscription.
    pub struct TimingCapability, fields TimingCapabilityFields, unknown(Unknown::Keep) {
        /// How many times as long.
        required factor: Whole<1, 1000>, X7;
    }
}

object! {
    /// A person asks for more time to answer a request.
    pub struct MoreTime, fields MoreTimeFields, unknown(Unknown::RefuseAlways(rule::X7)) {
        /// `timing:extend`.
        required type_name as "type": MoreTimeType, X7;
        /// The token of the request, byte for byte.
        required reply_token: ReplyToken, X7;
        /// The subscription on which this is sent.
        required subscription_id: SubscriptionId, X7;
        /// When the user asked.
        required timestamp: ReplyTimestamp, X7;
        /// How long the request shall wait from now on.
        required seconds: Whole<1, 86_400>, X7;
    }
}

object! {
    /// A person stops the agent.
    pub struct StopSession, fields StopSessionFields, unknown(Unknown::RefuseAlways(rule::X7)) {
        /// `control:cancel`.
        required type_name as "type": StopSessionType, X7;
        /// The session to stop.
        required session_id: SessionId, X7;
        /// The subscription on which this is sent.
        required subscription_id: SubscriptionId, X7;
        /// When the user asked.
        required timestamp: ReplyTimestamp, X7;
    }
}

#[cfg(test)]
mod tests {
    use crate::Message;

    // covers: X7
    #[test]
    fn our_extension_messages_are_read_strictly() {
        let more = r#"{"type":"timing:extend","reply_token":"rpl_1","subscription_id":"sub_1","timestamp":"2026-05-24T14:22:11Z","seconds":600}"#;
        assert!(matches!(Message::parse(more.as_bytes()), Ok(Message::MoreTime(_))));
        assert!(Message::parse(more.replace("600", "0").as_bytes()).is_err());
        let stop = r#"{"type":"control:cancel","session_id":"sess_1","subscription_id":"sub_1","timestamp":"2026-05-24T14:22:11Z"}"#;
        assert!(matches!(Message::parse(stop.as_bytes()), Ok(Message::StopSession(_))));
        assert!(Message::parse(stop.replace("}", ",\"why\":\"\"}").as_bytes()).is_err());
    }
}
