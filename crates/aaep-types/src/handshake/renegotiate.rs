use super::Capabilities;
use crate::id::SubscriptionId;
use crate::reply::constant;
use crate::rule;
use crate::wire::{Unknown, object};

constant! {
    /// The type of a [`SubscriptionRenegotiate`].
    RenegotiateType, "subscription.renegotiate"
}

object! {
    /// A subscriber wants other terms; only the members it names change (§5.7, decision D26).
    pub struct SubscriptionRenegotiate, fields SubscriptionRenegotiateFields, unknown(Unknown::Refuse(rule::D26)) {
        /// `subscription.renegotiate`.
        required type_name as "type": RenegotiateType, D26;
        /// The subscription.
        required subscription_id: SubscriptionId, D26;
        /// What is to change.
        required capabilities: Capabilities<'a>, D26;
    }
}
