use crate::id::SubscriptionId;
use crate::reply::constant;
use crate::text::{Name, UNBOUNDED};
use crate::wire::{Unknown, object};

constant! {
    /// The type of a [`SubscriptionClose`].
    CloseType, "subscription.close"
}

object! {
    /// One side ends a subscription (§5.8, decision D26). Whatever else it says is tolerated.
    pub struct SubscriptionClose, fields SubscriptionCloseFields, unknown(Unknown::Keep) {
        /// `subscription.close`.
        required type_name as "type": CloseType, D26;
        /// The subscription.
        required subscription_id: SubscriptionId, D26;
        /// Why, for programs.
        optional reason_code: Name<'a, 0, UNBOUNDED>, D26;
        /// Why, for people.
        optional reason_message: Name<'a, 0, UNBOUNDED>, D26;
    }
}
