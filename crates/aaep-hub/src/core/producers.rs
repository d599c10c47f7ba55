//! Which agent speaks under which `agent_id`.
//!
//! An id belongs to the agent that used it first (S5). It is freed when it is no longer needed, so
//! that nobody can take all of them for good: an agent without a token holds its ids while it has
//! sessions under them; one with a token keeps them, but no more than its share, and its own oldest
//! unused one gives way to a new one (I29).

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep_engine::{Blame, Bound, Principal, Refusal, Shares};
use aaep_types::{SessionId, rule};

use super::administer::{Held, in_use, nobodys};
use crate::access::BUILT_IN_NAMES;

struct Binding {
    agent: Principal,
    /// Open sessions under it.
    sessions: usize,
    /// Since when it has none; a number that grows.
    idle_since: u64,
}

/// All ids that belong to somebody.
pub(super) struct Producers {
    bound: Bound,
    bindings: BTreeMap<Arc<str>, Binding>,
    /// The same ids by the users of their agents.
    of_user: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    in_use: BTreeMap<SessionId, Arc<str>>,
    /// Ids without sessions, by the name of their principal; the oldest first.
    idle: BTreeMap<Arc<str>, BTreeMap<u64, Arc<str>>>,
    shares: Shares,
    moments: u64,
}

impl Producers {
    pub(super) fn new(bound: Bound) -> Self {
        Self {
            bound,
            bindings: BTreeMap::new(),
            of_user: BTreeMap::new(),
            in_use: BTreeMap::new(),
            idle: BTreeMap::new(),
            shares: Shares::default(),
            moments: 0,
        }
    }

    // enforces: S4, S5, E25, I29
    /// Whether an agent may open a session under this id.
    pub(super) fn admit(&mut self, agent: &Principal, id: &str) -> Result<(), Refusal> {
        match self.bindings.get(id) {
            Some(binding) if binding.agent == *agent => return Ok(()),
            Some(_) => return Err(somebody_elses(id)),
            None => {}
        }
        loop {
            let full = match self.shares.admit(&self.bound, agent, 1) {
                Ok(()) => return Ok(()),
                Err(full) => full,
            };
            if !self.forget_oldest_of(agent) {
                return Err(full);
            }
        }
    }

    /// Whether this id is the agent's own, or still nobody's.
    pub(super) fn is_open_to(&self, agent: &Principal, id: &str) -> bool {
        self.bindings.get(id).is_none_or(|binding| binding.agent == *agent)
    }

    /// A session began under this id.
    pub(super) fn opened(&mut self, session: SessionId, agent: &Principal, id: &str) {
        let id: Arc<str> = id.into();
        if let Some(binding) = self.bindings.get_mut(&id) {
            if binding.agent != *agent {
                return;
            }
            if binding.sessions == 0 {
                let since = binding.idle_since;
                self.idle.get_mut(&agent.name).map(|idle| idle.remove(&since));
            }
        } else {
            while self.shares.of_principal(agent) >= self.bound.per_principal
                && self.forget_oldest_of(agent)
            {}
            self.shares.add(agent, 1);
            let binding = Binding { agent: agent.clone(), sessions: 0, idle_since: 0 };
            self.bindings.insert(id.clone(), binding);
            self.of_user.entry(agent.user.clone()).or_default().insert(id.clone());
        }
        self.bindings.get_mut(&id).into_iter().for_each(|binding| binding.sessions += 1);
        self.in_use.insert(session, id);
    }

    /// Whether speaking under this id would make it the agent's own.
    pub(super) fn is_new_to(&self, agent: &Principal, id: &str) -> bool {
        !has_no_token(agent) && !self.bindings.contains_key(id)
    }

    /// An agent spoke under this id in a session that another agent may have opened. From then on the id
    /// is its own.
    pub(super) fn claimed(&mut self, agent: &Principal, id: &str) {
        if !self.is_new_to(agent, id) {
            return;
        }
        let id: Arc<str> = id.into();
        while self.shares.of_principal(agent) >= self.bound.per_principal
            && self.forget_oldest_of(agent)
        {}
        self.shares.add(agent, 1);
        self.moments += 1;
        let binding = Binding { agent: agent.clone(), sessions: 0, idle_since: self.moments };
        self.bindings.insert(id.clone(), binding);
        self.of_user.entry(agent.user.clone()).or_default().insert(id.clone());
        self.idle.entry(agent.name.clone()).or_default().insert(self.moments, id);
    }

    /// A session ended.
    pub(super) fn ended(&mut self, session: SessionId) {
        let Some(id) = self.in_use.remove(&session) else { return };
        let Some(binding) = self.bindings.get_mut(&id) else { return };
        binding.sessions = binding.sessions.saturating_sub(1);
        if binding.sessions > 0 {
            return;
        }
        if has_no_token(&binding.agent) {
            self.forget(&id);
        } else {
            self.moments += 1;
            binding.idle_since = self.moments;
            let idle = self.idle.entry(binding.agent.name.clone()).or_default();
            idle.insert(self.moments, id);
        }
    }

    /// Frees the id that this agent has not used for longest; false if it uses all of them.
    fn forget_oldest_of(&mut self, agent: &Principal) -> bool {
        let Some(idle) = self.idle.get_mut(&agent.name) else { return false };
        let oldest = idle.pop_first();
        if idle.is_empty() {
            self.idle.remove(&agent.name);
        }
        oldest.inspect(|(_, id)| self.forget(id)).is_some()
    }

    fn forget(&mut self, id: &str) {
        let Some(Binding { agent, .. }) = self.bindings.remove(id) else { return };
        self.shares.remove(&agent, 1);
        if let Some(ids) = self.of_user.get_mut(&agent.user) {
            ids.remove(id);
            if ids.is_empty() {
                self.of_user.remove(&agent.user);
            }
        }
    }

    /// Every id that nobody uses now and its agent, the oldest first.
    pub(super) fn unused(&self) -> Vec<(Principal, Arc<str>)> {
        let mut unused: Vec<(u64, &Arc<str>)> =
            self.idle.values().flatten().map(|(since, id)| (*since, id)).collect();
        unused.sort_unstable();
        let bound = |id: &Arc<str>| Some((self.bindings.get(id)?.agent.clone(), id.clone()));
        unused.into_iter().filter_map(|(_, id)| bound(id)).collect()
    }

    /// Every id, and whose it is.
    pub(super) fn held(&self) -> impl Iterator<Item = Held> {
        self.bindings.iter().map(|(id, binding)| Held {
            id: id.clone(),
            agent: binding.agent.clone(),
            sessions: binding.sessions,
        })
    }

    /// Whether an id can be taken from its owner: not while sessions run under it, or two agents
    /// would speak under one name.
    pub(super) fn may_change(&self, id: &str) -> Result<(), Refusal> {
        match self.bindings.get(id) {
            None => Err(nobodys(id)),
            Some(binding) if binding.sessions > 0 => Err(in_use(id)),
            Some(_) => Ok(()),
        }
    }

    /// Frees an id without sessions.
    pub(super) fn release(&mut self, id: &str) {
        let Some(binding) = self.bindings.get(id).filter(|binding| binding.sessions == 0) else {
            return;
        };
        let (name, since) = (binding.agent.name.clone(), binding.idle_since);
        if let Some(idle) = self.idle.get_mut(&name) {
            idle.remove(&since);
            if idle.is_empty() {
                self.idle.remove(&name);
            }
        }
        self.forget(id);
    }

    /// Gives an id without sessions to another agent.
    pub(super) fn hand_over(&mut self, id: &str, to: &Principal) {
        self.release(id);
        self.claimed(to, id);
        if let Some(binding) = self.bindings.get(id) {
            let user = binding.agent.user.clone();
            self.of_user.entry(user).or_default().insert(id.into());
        }
    }

    /// Every id that belongs to an agent of this user, or to anybody.
    pub(super) fn ids(&self, user: Option<&str>) -> impl Iterator<Item = &str> {
        let all = user.is_none().then(|| self.bindings.keys()).into_iter().flatten();
        let own = user.and_then(|user| self.of_user.get(user)).into_iter().flatten();
        all.chain(own).map(|id| &**id)
    }
}

/// Anybody on this machine can be it, so what it did before says nothing about who comes next.
fn has_no_token(agent: &Principal) -> bool {
    BUILT_IN_NAMES.contains(&&*agent.name)
}

pub(super) fn somebody_elses(id: &str) -> Refusal {
    Refusal {
        blame: Blame::NotYours,
        rule: rule::S5,
        text: format!("The producer {id} belongs to somebody else; use one of your own."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Limits;
    use aaep_engine::Role;

    fn producers(per_principal: usize) -> Producers {
        let limits = Limits { producers_per_principal: per_principal, ..Limits::default() };
        Producers::new(limits.known_producers())
    }

    fn agent(name: &str) -> Principal {
        Principal::new(name, Role::Agent, "someone")
    }

    // covers: I29, S5
    #[test]
    fn an_id_of_an_agent_without_a_token_is_freed_with_its_last_session() {
        let mut known = producers(2);
        let (local, other) = (agent("local-agent"), agent("other"));
        let sessions = [1, 2].map(SessionId::from_bits);
        for session in sessions {
            known.admit(&local, "cook").unwrap();
            known.opened(session, &local, "cook");
        }
        known.ended(sessions[0]);
        assert_eq!(known.admit(&other, "cook").unwrap_err().blame, Blame::NotYours);
        known.ended(sessions[1]);
        assert!(known.admit(&other, "cook").is_ok());
        assert_eq!((known.ids(None).count(), known.shares.total()), (0, 0));
    }

    // covers: S13, S5
    #[test]
    fn ids_that_are_claimed_again_are_known_as_before() {
        let mut known = producers(3);
        for (number, (name, id)) in
            [("ours", "b"), ("other", "x"), ("ours", "a")].into_iter().enumerate()
        {
            let session = SessionId::from_bits(number as u128);
            known.opened(session, &agent(name), id);
            known.ended(session);
        }
        known.opened(SessionId::from_bits(9), &agent("ours"), "used");
        let mut again = producers(3);
        for (agent, id) in known.unused() {
            again.claimed(&agent, &id);
        }
        assert_eq!(again.unused(), known.unused());
        assert_eq!(again.ids(Some("someone")).collect::<Vec<_>>(), ["a", "b", "x"]);
        assert!(again.admit(&agent("third"), "a").is_err());
    }

    // covers: I29, S5
    #[test]
    fn an_agent_with_a_token_keeps_its_ids_and_its_oldest_unused_one_gives_way() {
        let mut known = producers(2);
        let (ours, other) = (agent("ours"), agent("other"));
        for (number, id) in ["a", "b"].into_iter().enumerate() {
            let session = SessionId::from_bits(number as u128);
            known.admit(&ours, id).unwrap();
            known.opened(session, &ours, id);
            known.ended(session);
        }
        assert!(known.admit(&other, "a").is_err() && known.admit(&other, "b").is_err());
        // Used again, `a` is no longer the oldest; a third one takes the place of `b`.
        let session = SessionId::from_bits(7);
        known.admit(&ours, "a").unwrap();
        known.opened(session, &ours, "a");
        known.admit(&ours, "c").unwrap();
        known.opened(SessionId::from_bits(8), &ours, "c");
        assert_eq!(known.ids(None).collect::<Vec<_>>(), ["a", "c"]);
        let full = known.admit(&ours, "d").unwrap_err();
        assert!(full.text.contains("limits.producers_per_principal"), "{full}");
        assert!(known.admit(&other, "d").is_ok(), "another principal has a share of its own");
    }
}
