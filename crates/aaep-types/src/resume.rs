//! Where a listener left off: `urn:aaep-rs:resume:v1` (prefix `resume`).
//!
//! Server-sent events have `Last-Event-ID` for it (B.1.5); a WebSocket and a local socket have nothing
//! (§8.7). So a `subscription.request` may carry the capability `resume`, an object with the id of the
//! last event that was heard. What was missed since then follows; where that is no longer known, how
//! things stand.

use crate::handshake::Capabilities;
use crate::id::EventId;
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
    }
}

/// The last event that a subscriber heard, if it says so and asks for the extension.
pub fn last_event(asked: &Capabilities<'_>) -> Option<EventId> {
    let extensions = asked.supported_extensions.as_deref().unwrap_or_default();
    extensions.iter().find(|uri| uri.as_str() == URI)?;
    let (_, Raw::Object(text)) = asked.other.iter().find(|(name, _)| name == PREFIX)? else {
        return None;
    };
    let members = Members::whole(text, 8).ok().flatten()?;
    EventId::parse(&members.text("last_event_id")?).ok()
}
