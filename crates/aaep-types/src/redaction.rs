//! What says that something was taken out of an event: `urn:aaep-rs:redaction:v1` (prefix `redaction`).
//!
//! Texts that give away a secret do not leave the hub (§4.3.1, §10 T5). Where something was taken out,
//! the text says so in its place, and this extension says so to programs. It changes neither the
//! urgency nor the order of the event that carries it.

use crate::json::Writer;
use crate::list::Set;
use crate::secret::Kind;
use crate::vocabulary::Removed;
use crate::wire::{Object, Unknown, object};

/// The address of the extension.
pub const URI: &str = "urn:aaep-rs:redaction:v1";
/// Its prefix.
pub const PREFIX: &str = "redaction";

object! {
    /// What was taken out of the texts of an event.
    pub struct Redaction, fields RedactionFields, unknown(Unknown::Keep) {
        /// What kinds of things, each once.
        required removed: Set<Removed, 1, 8>, X7;
    }
}

impl Redaction<'_> {
    /// Says that these were taken out; `None` if nothing was.
    pub fn of(kinds: impl IntoIterator<Item = Kind>) -> Option<Self> {
        let mut removed: Vec<Removed> = kinds.into_iter().map(Removed::from).collect();
        removed.sort_unstable();
        removed.dedup();
        Some(Self { removed: Set::new(removed).ok()?, other: Vec::new() })
    }

    /// As JSON.
    pub fn to_json(&self) -> String {
        let mut out = Writer::new();
        out.open('{');
        self.write_members(&mut out);
        out.close('}');
        out.finish()
    }
}

impl From<Kind> for Removed {
    fn from(kind: Kind) -> Self {
        match kind {
            Kind::CardNumber => Removed::CardNumber,
            Kind::Key => Removed::Key,
            Kind::Token => Removed::Token,
            Kind::PrivateKey => Removed::PrivateKey,
            Kind::Password => Removed::Password,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: T14
    #[test]
    fn each_kind_is_named_once() {
        assert_eq!(Redaction::of([]), None);
        let removed = Redaction::of([Kind::Password, Kind::CardNumber, Kind::Password]).unwrap();
        assert_eq!(removed.to_json(), r#"{"removed":["card_number","password"]}"#);
    }
}
