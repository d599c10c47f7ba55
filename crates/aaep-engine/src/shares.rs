//! How much of something each principal and each user holds, and how often each may do it, so that
//! one who takes all of a share leaves everybody else's untouched (I29).

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep_types::Rule;

use crate::principal::Principal;
use crate::refusal::{Blame, Refusal};

/// A bound on one kind of thing: for everybody together, for one user, for one principal.
#[derive(Clone, Copy, Debug)]
pub struct Bound {
    /// Its key in the configuration; those of the shares end in `_per_user` and `_per_principal`.
    pub name: &'static str,
    /// What is counted, in the plural.
    pub noun: &'static str,
    /// What to do when there is no room.
    pub remedy: &'static str,
    /// The rule that a refusal names.
    pub rule: Rule,
    /// At most, over all users.
    pub total: usize,
    /// At most, for one user.
    pub per_user: usize,
    /// At most, for one principal.
    pub per_principal: usize,
}

impl Bound {
    fn refusal(&self, most: usize, who: &str, suffix: &str) -> Refusal {
        let Self { name, noun, remedy, rule, .. } = self;
        let text =
            format!("At most {most} {noun} are held {who} (limits.{name}{suffix}). {remedy}");
        Refusal::new(Blame::Limit, *rule, text)
    }

    /// What somebody is told who has no room, because everybody together has too much.
    fn all_taken(&self) -> Refusal {
        self.refusal(self.total, "at once", "")
    }
}

/// Counts of one kind of thing. Holders of nothing are not remembered.
#[derive(Clone, Debug, Default)]
pub struct Shares {
    total: usize,
    users: BTreeMap<Arc<str>, OfUser>,
}

#[derive(Clone, Debug, Default)]
struct OfUser {
    total: usize,
    accounts: BTreeMap<Box<str>, usize>,
}

impl Shares {
    // enforces: I29
    /// Whether this principal may hold so much more. Its own share is looked at first: who has used
    /// it up is told so, whatever others hold.
    pub fn admit(&self, bound: &Bound, peer: &Principal, amount: usize) -> Result<(), Refusal> {
        let fits = |held: usize, most| held.saturating_add(amount) <= most;
        if !fits(self.of_principal(peer), bound.per_principal) {
            return Err(bound.refusal(bound.per_principal, "for one principal", "_per_principal"));
        }
        if !fits(self.of_user(&peer.user), bound.per_user) {
            return Err(bound.refusal(bound.per_user, "for one user", "_per_user"));
        }
        if !fits(self.total, bound.total) {
            return Err(bound.all_taken());
        }
        Ok(())
    }

    /// Notes that a principal holds more.
    pub fn add(&mut self, peer: &Principal, amount: usize) {
        if amount == 0 {
            return;
        }
        self.total += amount;
        if !self.users.contains_key(&peer.user) {
            self.users.insert(peer.user.clone(), OfUser::default());
        }
        let Some(user) = self.users.get_mut(&peer.user) else { return };
        user.total += amount;
        match user.accounts.get_mut(peer.account()) {
            Some(held) => *held += amount,
            None => drop(user.accounts.insert(peer.account().into(), amount)),
        }
    }

    /// Notes that a principal holds less.
    pub fn remove(&mut self, peer: &Principal, amount: usize) {
        self.total = self.total.saturating_sub(amount);
        let Some(user) = self.users.get_mut(&peer.user) else { return };
        user.total = user.total.saturating_sub(amount);
        if let Some(held) = user.accounts.get_mut(peer.account()) {
            *held = held.saturating_sub(amount);
            if *held == 0 {
                user.accounts.remove(peer.account());
            }
        }
        if user.total == 0 {
            self.users.remove(&peer.user);
        }
    }

    /// What everybody holds together.
    pub fn total(&self) -> usize {
        self.total
    }

    /// What a principal holds, with all others of its account.
    pub fn of_principal(&self, peer: &Principal) -> usize {
        let accounts = self.users.get(&peer.user).map(|user| &user.accounts);
        accounts.and_then(|accounts| accounts.get(peer.account())).copied().unwrap_or_default()
    }

    /// What all principals of a user hold together.
    pub fn of_user(&self, user: &str) -> usize {
        self.users.get(user).map(|user| user.total).unwrap_or_default()
    }
}

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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Role;

    const BOUND: Bound = Bound {
        name: "sessions",
        noun: "open sessions",
        remedy: "End some.",
        rule: aaep_types::rule::T1,
        total: 6,
        per_user: 4,
        per_principal: 3,
    };

    fn agent(name: &str, user: &str) -> Principal {
        Principal::new(name, Role::Agent, user)
    }

    // covers: I29
    #[test]
    fn one_who_takes_a_whole_share_leaves_the_others() {
        let mut shares = Shares::default();
        let (first, second, other) = (agent("a", "ann"), agent("b", "ann"), agent("c", "bob"));
        let take = |shares: &mut Shares, peer: &Principal| {
            let admitted = shares.admit(&BOUND, peer, 1).map_err(|refusal| refusal.text);
            admitted.map(|()| shares.add(peer, 1))
        };
        assert!((0..3).all(|_| take(&mut shares, &first).is_ok()));
        let full = take(&mut shares, &first).unwrap_err();
        assert!(full.contains("limits.sessions_per_principal") && full.contains("End some."));
        assert!(take(&mut shares, &second).is_ok());
        assert!(take(&mut shares, &second).unwrap_err().contains("limits.sessions_per_user"));
        assert!((0..2).all(|_| take(&mut shares, &other).is_ok()));
        assert!(take(&mut shares, &other).unwrap_err().contains("(limits.sessions)"));
        (0..3).for_each(|_| shares.remove(&first, 1));
        (0..2).for_each(|_| shares.remove(&other, 1));
        shares.remove(&second, 1);
        assert!(shares.total() == 0 && shares.users.is_empty());
    }

    // covers: I29
    #[test]
    fn those_who_come_under_many_names_of_one_account_have_one_share() {
        let mut shares = Shares::default();
        for number in 0..3 {
            shares.add(&agent(&format!("local-agent:{number}"), "local"), 1);
        }
        assert!(shares.admit(&BOUND, &agent("local-agent:9", "local"), 1).is_err());
        assert!(shares.admit(&BOUND, &agent("socket-agent:9", "local"), 1).is_ok());
        assert!(shares.admit(&BOUND, &agent("local-agent:9", "ann"), 1).is_ok());
    }
}
