use super::Capabilities;
use crate::envelope::Extensions;
use crate::reply::constant;
use crate::rule;
use crate::text::{Name, UNBOUNDED};
use crate::uri::Uri;
use crate::version::Version;
use crate::wire::{Unknown, object};

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
