//! How present a person has to be to say yes, and how they show it: `urn:aaep-rs:presence:v1` (prefix
//! `presence`).
//!
//! An `awaiting.confirmation` whose yes needs more than a listener says so in `extensions`
//! ([`PresenceMember`]). A listener sends the person's PIN with [`Unlock`], and is told with
//! [`PresenceState`] what became of it. Urgency and order: an unlock may come at any time while the
//! subscription lives, and counts for that connection alone.

use serde_json::{Value, json};
use std::borrow::Cow;
use std::fmt;

use crate::Malformed;
use crate::id::SubscriptionId;
use crate::json::{Members, Raw, Writer};
use crate::number::Whole;
use crate::reply::constant;
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::time::ReplyTimestamp;
use crate::vocabulary::{Presence, PresenceWord};
use crate::wire::{Unknown, Wire, object, read_string};

/// The address of the extension.
pub const URI: &str = "urn:aaep-rs:presence:v1";
/// Its prefix.
pub const PREFIX: &str = "presence";
/// The longest PIN, in bytes of UTF-8.
pub const MAX_PIN_BYTES: usize = 256;

constant! {
    /// The type of an [`Unlock`].
    UnlockType, "presence:unlock"
}
constant! {
    /// The type of a [`PresenceState`].
    PresenceStateType, "presence:state"
}

object! {
    /// The presence that a yes to a request requires.
    pub struct PresenceMember, fields PresenceFields, unknown(Unknown::Keep) {
        /// The least that counts.
        required needs: Presence, X7;
    }
}

object! {
    /// A person types their PIN, once for this connection and a while.
    pub struct Unlock, fields UnlockFields, unknown(Unknown::RefuseAlways(rule::X7)) {
        /// `presence:unlock`.
        required type_name as "type": UnlockType, X7;
        /// The subscription that is unlocked; it is heard on this connection, or by this client.
        required subscription_id: SubscriptionId, X7;
        /// When it was typed.
        required timestamp: ReplyTimestamp, X7;
        /// What was typed.
        required pin: Pin<'a>, X7;
    }
}

object! {
    /// What became of an unlock, or that somebody tried one elsewhere; the hub says it.
    pub struct PresenceState, fields PresenceStateFields, unknown(Unknown::Keep) {
        /// `presence:state`.
        required type_name as "type": PresenceStateType, X7;
        /// The subscription that it is told on.
        required subscription_id: SubscriptionId, X7;
        /// What happened.
        required state: PresenceWord, X7;
        /// `unlocked`: for how long. `wrong` and `wait`: how long until another try is looked at.
        required seconds: Whole<0, 86_400>, X7;
        /// How many wrong PINs came since the last right one.
        optional failures: Whole<0, 1_000_000_000>, X7;
    }
}

/// A PIN as it was typed. It does not show itself in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct Pin<'a>(Cow<'a, str>);

impl<'a> Pin<'a> {
    /// Takes what was typed: something, and not too long.
    pub fn new(text: impl Into<Cow<'a, str>>) -> Result<Self, Malformed> {
        let text = text.into();
        if text.is_empty() || text.len() > MAX_PIN_BYTES {
            return Err(Malformed("A PIN has 1 to 256 bytes."));
        }
        Ok(Self(text))
    }

    /// What was typed. Keep it no longer than it takes to compare it.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Pin<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Pin(…)")
    }
}

impl<'a> Wire<'a> for Pin<'a> {
    fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
        read_string(raw, rule, report, Self::new)
    }

    fn write(&self, out: &mut Writer) {
        out.string(&self.0);
    }

    fn schema() -> Value {
        json!({ "type": "string", "minLength": 1, "maxLength": MAX_PIN_BYTES })
    }
}

/// The presence that an answer to this event requires; none if the event does not say.
pub fn needed(event: &str) -> Presence {
    let object = |text| Members::whole(text, 64).ok().flatten();
    let needs = || {
        let Raw::Object(extensions) = object(event)?.find("extensions")? else { return None };
        let Raw::Object(member) = object(extensions)?.find(PREFIX)? else { return None };
        Presence::parse(&object(member)?.text("needs")?).ok()
    };
    needs().unwrap_or(Presence::None)
}

/// The member that a request carries in `extensions`, as JSON.
pub fn member(needs: Presence) -> String {
    format!(r#"{{"needs":"{needs}"}}"#)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Message;

    // covers: X7
    #[test]
    fn a_pin_is_read_strictly_and_never_shown() {
        let unlock = r#"{"type":"presence:unlock","subscription_id":"sub_1","timestamp":"2026-05-24T14:22:11Z","pin":"céleri 7"}"#;
        let message = Message::parse(unlock.as_bytes()).unwrap();
        assert!(!format!("{message:?}").contains("leri"));
        let Message::Unlock(message) = message else { panic!("another message") };
        assert_eq!(message.pin.expose(), "céleri 7");
        for bad in ["\"\"", "7", &format!("\"{}\"", "x".repeat(257))] {
            let bad = unlock.replace("\"céleri 7\"", bad);
            assert!(Message::parse(bad.as_bytes()).is_err(), "{bad}");
        }
    }

    #[test]
    fn what_a_request_needs_is_read_from_its_event() {
        let event = |needs: &str| format!(r#"{{"extensions":{{"presence":{needs}}}}}"#);
        assert_eq!(needed(&event(&member(Presence::Pin))), Presence::Pin);
        assert_eq!(needed(&event(r#"{"needs":"blood"}"#)), Presence::None);
        assert_eq!(needed("no json"), Presence::None);
        assert!(Presence::None < Presence::Listener && Presence::Pin < Presence::Passkey);
    }
}
