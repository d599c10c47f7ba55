//! Subscriptions as far as replies are concerned: by their ids, and by the users they answer for.

use aaep_types::{EventKind, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::Boot;
use crate::principal::Principal;
use crate::work;

/// A subscription as far as replies are concerned.
#[derive(Clone, Debug)]
pub(crate) struct Listener {
    pub(crate) peer: Principal,
    pub(crate) confirms: bool,
    pub(crate) clarifies: bool,
    /// Since when its connection is lost.
    pub(crate) lost_at: Option<Boot>,
    /// How many times as long its user needs to answer (decision D32).
    pub(crate) time_factor: u64,
}

impl Listener {
    pub(crate) fn supports(&self, kind: EventKind) -> bool {
        match kind {
            EventKind::AwaitingConfirmation => self.confirms,
            EventKind::AwaitingClarification => self.clarifies,
            _ => false,
        }
    }
}

/// All of them. Whose a subscription is never changes.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    all: BTreeMap<SubscriptionId, Listener>,
    entitled: BTreeMap<Arc<str>, Entitled>,
}

/// Those who may answer for one user.
#[derive(Debug, Default)]
struct Entitled {
    count: usize,
    confirming: Able,
    clarifying: Able,
    /// How many need how many times as long.
    time_factors: BTreeMap<u64, usize>,
}

/// Those of them who answer requests of one kind.
#[derive(Debug, Default)]
struct Able {
    here: usize,
    /// Those whose connection is lost, by when it was.
    lost: BTreeSet<(Boot, SubscriptionId)>,
}

impl Able {
    fn add(&mut self, id: SubscriptionId, lost_at: Option<Boot>) {
        match lost_at {
            None => self.here += 1,
            Some(at) => drop(self.lost.insert((at, id))),
        }
    }

    fn remove(&mut self, id: SubscriptionId, lost_at: Option<Boot>) {
        match lost_at {
            None => self.here -= 1,
            Some(at) => drop(self.lost.remove(&(at, id))),
        }
    }
}

/// Whether somebody is there who could answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attendance {
    Here,
    /// The last one was there until then, and may come back.
    Lost(Boot),
    Nobody,
}

impl Entitled {
    fn add(&mut self, id: SubscriptionId, listener: &Listener) {
        self.count += 1;
        *self.time_factors.entry(listener.time_factor).or_default() += 1;
        if listener.confirms {
            self.confirming.add(id, listener.lost_at);
        }
        if listener.clarifies {
            self.clarifying.add(id, listener.lost_at);
        }
    }

    fn remove(&mut self, id: SubscriptionId, listener: &Listener) {
        self.count -= 1;
        if let Some(count) = self.time_factors.get_mut(&listener.time_factor) {
            *count -= 1;
            if *count == 0 {
                self.time_factors.remove(&listener.time_factor);
            }
        }
        if listener.confirms {
            self.confirming.remove(id, listener.lost_at);
        }
        if listener.clarifies {
            self.clarifying.remove(id, listener.lost_at);
        }
    }
}

impl Listeners {
    pub(crate) fn get(&self, id: &SubscriptionId) -> Option<&Listener> {
        self.all.get(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn insert(&mut self, id: SubscriptionId, listener: Listener) -> Option<Listener> {
        let before = self.remove(&id);
        if listener.peer.may_answer(&listener.peer.user) {
            self.entitled.entry(listener.peer.user.clone()).or_default().add(id, &listener);
        }
        self.all.insert(id, listener);
        before
    }

    pub(crate) fn remove(&mut self, id: &SubscriptionId) -> Option<Listener> {
        let gone = self.all.remove(id)?;
        if gone.peer.may_answer(&gone.peer.user)
            && let Some(entitled) = self.entitled.get_mut(&gone.peer.user)
        {
            entitled.remove(*id, &gone);
            if entitled.count == 0 {
                self.entitled.remove(&gone.peer.user);
            }
        }
        Some(gone)
    }

    /// Changes what is known of a listener.
    pub(crate) fn change(&mut self, id: SubscriptionId, change: impl FnOnce(&mut Listener)) {
        if let Some(mut listener) = self.remove(&id) {
            change(&mut listener);
            self.insert(id, listener);
        }
    }

    /// D32: the largest factor among those who may answer for this user.
    pub(crate) fn time_factor(&self, user: &str) -> u64 {
        work::count();
        let factors = self.entitled.get(user).map(|entitled| &entitled.time_factors);
        factors.and_then(|factors| factors.last_key_value()).map_or(1, |(factor, _)| *factor)
    }

    /// Whether somebody is there who could answer a request of this kind for a user.
    pub(crate) fn attendance(&self, user: &str, kind: EventKind) -> Attendance {
        work::count();
        let Some(entitled) = self.entitled.get(user) else { return Attendance::Nobody };
        let able = match kind {
            EventKind::AwaitingConfirmation => &entitled.confirming,
            EventKind::AwaitingClarification => &entitled.clarifying,
            _ => return Attendance::Nobody,
        };
        match able.lost.last() {
            _ if able.here > 0 => Attendance::Here,
            Some((at, _)) => Attendance::Lost(*at),
            None => Attendance::Nobody,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Role;

    // covers: D2, D32, I29
    #[test]
    fn who_is_there_and_how_long_they_need_is_known_without_looking_at_each() {
        let mut known = Listeners::default();
        let kind = EventKind::AwaitingConfirmation;
        let listener = |role, time_factor| Listener {
            peer: Principal::new("x", role, "ann"),
            confirms: true,
            clarifies: false,
            lost_at: None,
            time_factor,
        };
        let [first, second, third] = [1, 2, 3].map(SubscriptionId::from_bits);
        known.insert(first, listener(Role::AccessibilityConsumer, 4));
        known.insert(second, listener(Role::Admin, 2));
        known.insert(third, listener(Role::Auditor, 9));
        assert_eq!((known.time_factor("ann"), known.time_factor("bob")), (4, 1));
        assert_eq!(known.attendance("ann", kind), Attendance::Here);
        assert_eq!(known.attendance("ann", EventKind::AwaitingClarification), Attendance::Nobody);
        for (id, at) in [(first, 7), (second, 5)] {
            known.change(id, |listener| listener.lost_at = Some(Boot(at)));
        }
        assert_eq!(known.attendance("ann", kind), Attendance::Lost(Boot(7)));
        known.remove(&first);
        assert_eq!(known.attendance("ann", kind), Attendance::Lost(Boot(5)));
        assert_eq!(known.time_factor("ann"), 2);
        known.insert(second, listener(Role::Admin, 3));
        assert_eq!(known.attendance("ann", kind), Attendance::Here);
        known.remove(&second);
        assert_eq!(known.attendance("ann", kind), Attendance::Nobody);
        assert!(known.entitled.is_empty() && known.len() == 1);
    }
}
