//! How a subscription is agreed on (§5).

mod capabilities;

use crate::envelope::{Extensions, Producer};
use crate::id::SubscriptionId;
use crate::number::Whole;
use crate::reply::constant;
use crate::rule;
use crate::text::{CompactJws, Name, Text, UNBOUNDED};
use crate::uri::Uri;
use crate::version::Version;
use crate::vocabulary::RejectionCode;
use crate::wire::{Unknown, object};

pub use capabilities::{Capabilities, EventFilters};

constant! {
    /// The type of a [`SubscriptionRequest`].
    RequestType, "subscription.request"
}

object! {
    /// A subscriber introduces itself (§5.2).
    pub struct SubscriptionRequest, fields SubscriptionRequestFields, unknown(Unknown::Refuse(rule::H1)) {
        /// `subscription.request`.
        required type_name as "type": RequestType, H1;
        /// The version of the protocol that it speaks.
        required aaep_version: Version<'a>, H1;
        /// Its name for programs.
        required subscriber_id: Name<'a, 1, 256>, H1;
        /// Its name for people.
        optional subscriber_name: Name<'a, 0, 256>, H1;
        /// Its own version.
        optional subscriber_version: Name<'a, 0, 64>, H1;
        /// Where it describes itself.
        optional subscriber_manifest_uri: Uri<'a>, H1;
        /// Ties it to traces elsewhere.
        optional correlation_id: Name<'a, 0, UNBOUNDED>, H1;
        /// What it can do and wants; may be empty.
        required capabilities: Capabilities<'a>, H1;
        /// Members of extensions, keyed by prefix.
        optional extensions: Extensions<'a>, H1;
    }
}

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
