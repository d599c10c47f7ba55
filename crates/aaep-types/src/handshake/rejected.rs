use crate::number::Whole;
use crate::reply::constant;
use crate::rule;
use crate::text::Text;
use crate::uri::Uri;
use crate::vocabulary::RejectionCode;
use crate::wire::{Unknown, object};

constant! {
    /// The type of a [`SubscriptionRejected`].
    RejectedType, "subscription.rejected"
}

object! {
    /// The producer refuses, and says why (§5.5).
    pub struct SubscriptionRejected, fields SubscriptionRejectedFields, unknown(Unknown::Refuse(rule::H15)) {
        /// `subscription.rejected`.
        required type_name as "type": RejectedType, H15;
        /// Why, for programs.
        required reason_code: RejectionCode, H15;
        /// Why, for people.
        required reason_message: Text<'a, 1, 4096>, H15;
        /// When to try again.
        optional retry_after_seconds: Whole<0, 86_400>, H15;
        /// Where else to try.
        optional alternative_manifest_uri: Uri<'a>, H15;
    }
}
