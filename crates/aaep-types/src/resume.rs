//! Where a listener left off: `urn:aaep-rs:resume:v1` (prefix `resume`).
//!
//! Server-sent events have `Last-Event-ID` for it (B.1.5); a WebSocket and a local socket have nothing
//! (§8.7). So a `subscription.request` may carry the capability `resume`, an object with the id of the
//! last event that was heard, and of the subscription on which it was. If what was missed since then
//! follows, the capability is among those that are honoured; otherwise the listener is told how things
//! stand.

use crate::handshake::Capabilities;
use crate::id::{EventId, SubscriptionId};
use crate::json::{Members, Raw};
use crate::wire::{Unknown, object};

/// The address of the extension.
pub const URI: &str = "urn:aaep-rs:resume:v1";
/// Its prefix.
pub const PREFIX: &str = "resume";

object! {
    /// Where a listener left off.
    pub struct Resume, fields ResumeFields, unknown(Unknown::Keep) {
        /// The last event that was heard.
        required last_event_id: EventId, X7;
        /// The subscription on which it was heard.
        optional subscription_id: SubscriptionId, X7;
    }
}

/// Where a subscriber left off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeftOff {
    /// The last event that it heard.
    pub last_event: EventId,
    /// The subscription on which it did.
    pub subscription: Option<SubscriptionId>,
}

/// Where a subscriber left off, if it says so and asks for the extension.
pub fn left_off(asked: &Capabilities<'_>) -> Option<LeftOff> {
    let extensions = asked.supported_extensions.as_deref().unwrap_or_default();
    extensions.iter().find(|uri| uri.as_str() == URI)?;
    let (_, Raw::Object(text)) = asked.other.iter().find(|(name, _)| name == PREFIX)? else {
        return None;
    };
    let members = Members::whole(text, 8).ok().flatten()?;
    let last_event = EventId::parse(&members.text("last_event_id")?).ok()?;
    let subscription = match members.text("subscription_id") {
        Some(id) => Some(SubscriptionId::parse(&id).ok()?),
        None => None,
    };
    Some(LeftOff { last_event, subscription })
}
