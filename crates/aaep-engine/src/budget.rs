//! How often something may be done within a window: by one agent, and by all agents of one user.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::principal::Principal;

/// How many sessions' worth one agent may use, over all its sessions: a new session is no new budget.
pub(crate) const AGENT_SHARE: u32 = 10;

/// The same for one user, over all agents: a new agent is no new budget either.
pub(crate) const USER_SHARE: u32 = 20;

/// What was used in the current window.
#[derive(Debug, Default)]
pub(crate) struct Budget {
    window: u64,
    /// By user and account: those who come without a token share one.
    agents: BTreeMap<(Arc<str>, Box<str>), u32>,
    users: BTreeMap<Arc<str>, u32>,
}

impl Budget {
    /// Whether there is something left, if a session may do so much.
    pub(crate) fn has_left(&self, agent: &Principal, window: u64, per_session: u32) -> bool {
        let fits = |used: Option<&u32>, share: u32| {
            used.is_none_or(|used| *used < per_session.saturating_mul(share))
        };
        self.window != window
            || fits(self.agents.get(&account(agent)), AGENT_SHARE)
                && fits(self.users.get(&agent.user), USER_SHARE)
    }

    /// Uses some of it.
    pub(crate) fn spend(&mut self, agent: &Principal, window: u64) {
        if self.window != window {
            self.window = window;
            self.agents.clear();
            self.users.clear();
        }
        let of_agent = self.agents.entry(account(agent)).or_default();
        let of_user = self.users.entry(agent.user.clone()).or_default();
        for used in [of_agent, of_user] {
            *used = used.saturating_add(1);
        }
    }
}

fn account(agent: &Principal) -> (Arc<str>, Box<str>) {
    (agent.user.clone(), agent.account().into())
}
