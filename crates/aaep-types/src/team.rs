//! Who speaks in a session besides the agent that opened it: `urn:aaep-rs:team:v1` (prefix `team`).
//!
//! An orchestrator's session may carry events of its sub-agents (§2.2.5, A.9), each under its own
//! `producer`. Its `session.started` names them. Urgency and order are the event's; the numbers of all
//! of them are the session's.

use crate::json::{Members, Raw};
use crate::list::Set;
use crate::text::Name;
use crate::wire::{Unknown, object};

/// The address of the extension.
pub const URI: &str = "urn:aaep-rs:team:v1";
/// Its prefix.
pub const PREFIX: &str = "team";
/// Sub-agents of one session.
pub const MAX_AGENTS: usize = 32;

object! {
    /// The sub-agents that speak in a session.
    pub struct Team, fields TeamFields, unknown(Unknown::Keep) {
        /// Their `agent_id`s, each once.
        required agents: Set<Name<'a, 1, 256>, 1, 32>, X7;
    }
}

/// The `agent_id`s that a `session.started` names besides its producer's.
pub fn agents_of(started: &str) -> Vec<String> {
    let object = |text| Members::whole(text, 64).ok().flatten();
    let named = || {
        let Raw::Object(extensions) = object(started)?.find("extensions")? else { return None };
        let Raw::Object(team) = object(extensions)?.find(PREFIX)? else { return None };
        let Raw::Array(list) = object(team)?.find("agents")? else { return None };
        let ids = crate::json::elements(list).into_iter().filter_map(|id| match id {
            Raw::String(id) => Some(id.decode().into_owned()),
            _ => None,
        });
        Some(ids.take(MAX_AGENTS).collect())
    };
    named().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E28
    #[test]
    fn the_team_is_read_from_the_start() {
        let started = r#"{"extensions":{"team":{"agents":["cook","waiter"]}}}"#;
        assert_eq!(agents_of(started), ["cook", "waiter"]);
        for none in ["{}", r#"{"extensions":{"team":{"agents":"cook"}}}"#, "no json"] {
            assert!(agents_of(none).is_empty(), "{none}");
        }
    }
}
