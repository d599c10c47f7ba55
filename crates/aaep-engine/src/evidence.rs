//! What the hub verified of a reply, beyond who sent it.

use aaep_types::Presence;
use std::sync::Arc;

/// How sure the hub is that a person gave a reply. Only the hub fills it; nothing that a sender says
/// of itself goes in here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Evidence {
    /// What was shown.
    pub presence: Presence,
    /// The proof, as bytes that can be verified later without the hub; opaque to the engine, and
    /// empty for none.
    pub assertion: Arc<[u8]>,
    /// Whether the reply came from the asking agent's own process tree (I30).
    pub own_tree: bool,
}

impl Evidence {
    /// Nothing was shown, and nothing speaks against it.
    pub fn none() -> Self {
        Self::of(Presence::None)
    }

    /// This level was shown, without a proof that outlives it.
    pub fn of(presence: Presence) -> Self {
        Self { presence, assertion: Arc::default(), own_tree: false }
    }
}
