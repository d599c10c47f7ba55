//! Who is at the other end, as the transport found out, and what the hub verified of their reply.

use aaep_types::Presence;
use std::sync::Arc;

/// What somebody may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Role {
    /// Runs sessions and asks for consent; never answers.
    Agent,
    /// Hears and answers for its user.
    AccessibilityConsumer,
    /// Hears for its user, never answers: somebody whose identity nobody has proven (D4).
    Listener,
    /// Hears everything, never answers.
    Auditor,
    /// Hears everything, and answers for its own user only.
    Admin,
    /// Reads figures, and hears nothing at all.
    Metrics,
}

/// Somebody whom the transport authenticated.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Principal {
    /// Names the program or device.
    pub name: Arc<str>,
    /// What it may do.
    pub role: Role,
    /// On whose behalf.
    pub user: Arc<str>,
}

impl Principal {
    /// Puts one together; only for those who authenticate peers.
    pub fn new(name: &str, role: Role, user: &str) -> Self {
        Self { name: name.into(), role, user: user.into() }
    }

    /// Under which name its share is counted: up to a colon. What follows tells apart those who came
    /// without a token, and each of them can come as many; together they have one share.
    pub fn account(&self) -> &str {
        self.name.split_once(':').map_or(&self.name, |(account, _)| account)
    }

    // enforces: S6
    /// Whether it may hear a session that this agent opened for this user. An agent hears only its
    /// own: what other agents do for the same user is not its business.
    pub fn may_hear(&self, user: &str, agent: &str) -> bool {
        match self.role {
            Role::Auditor | Role::Admin => true,
            Role::AccessibilityConsumer | Role::Listener => &*self.user == user,
            Role::Agent => &*self.user == user && &*self.name == agent,
            Role::Metrics => false,
        }
    }

    // enforces: I15
    /// Whether it may answer for this user (decision D3): having been sent a request is not enough.
    pub fn may_answer(&self, user: &str) -> bool {
        matches!(self.role, Role::AccessibilityConsumer | Role::Admin) && &*self.user == user
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S6, S1, D3
    #[test]
    fn only_the_users_own_consumers_may_answer() {
        let who = |role, user| Principal::new("x", role, user);
        assert!(who(Role::AccessibilityConsumer, "ann").may_answer("ann"));
        assert!(!who(Role::AccessibilityConsumer, "bob").may_answer("ann"));
        assert!(!who(Role::Auditor, "ann").may_answer("ann"));
        assert!(!who(Role::Agent, "ann").may_answer("ann"));
        assert!(!who(Role::Listener, "ann").may_answer("ann"));
        assert!(who(Role::Listener, "ann").may_hear("ann", "bank"));
        assert!(!who(Role::Listener, "bob").may_hear("ann", "bank"));
        assert!(who(Role::Auditor, "bob").may_hear("ann", "bank"));
        assert!(!who(Role::AccessibilityConsumer, "bob").may_hear("ann", "bank"));
        assert!(who(Role::Agent, "ann").may_hear("ann", "x"));
        assert!(!who(Role::Agent, "ann").may_hear("ann", "bank"));
        assert!(!who(Role::Agent, "bob").may_hear("ann", "x"));
        assert!(!who(Role::Metrics, "ann").may_hear("ann", "x"));
        assert!(!who(Role::Metrics, "ann").may_answer("ann"));
    }
}
