use super::Capabilities;
use crate::envelope::Producer;
use crate::id::SubscriptionId;
use crate::reply::constant;
use crate::rule;
use crate::text::{CompactJws, Text};
use crate::uri::Uri;
use crate::version::Version;
use crate::wire::{Unknown, object};

constant! {
    /// The type of a [`SubscriptionAccepted`].
    AcceptedType, "subscription.accepted"
}

object! {
    /// The producer agrees, and says on what (§5.4).
    pub struct SubscriptionAccepted, fields SubscriptionAcceptedFields, unknown(Unknown::Refuse(rule::H13)) {
        /// `subscription.accepted`.
        required type_name as "type": AcceptedType, H13;
        /// Names the subscription.
        required subscription_id: SubscriptionId, H13;
        /// The version of the protocol that will be spoken.
        required aaep_version: Version<'a>, H13;
        /// Who will speak.
        required producer: Producer<'a>, H13;
        /// What is granted of what was asked.
        required honored_capabilities: Capabilities<'a>, H13;
        /// Where the producer's manifest is.
        optional manifest_uri: Uri<'a>, H13;
        /// The manifest itself, signed.
        optional signed_manifest: CompactJws<'a>, S11;
        /// What was not granted, and why.
        optional negotiation_notes: Text<'a, 0, 4096>, H13;
    }
}
