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
    by_user: BTreeMap<Arc<str>, BTreeSet<SubscriptionId>>,
}

impl Listeners {
    pub(crate) fn get(&self, id: &SubscriptionId) -> Option<&Listener> {
        self.all.get(id)
    }

    pub(crate) fn get_mut(&mut self, id: &SubscriptionId) -> Option<&mut Listener> {
        self.all.get_mut(id)
    }

    pub(crate) fn len(&self) -> usize {
        self.all.len()
    }

    pub(crate) fn insert(&mut self, id: SubscriptionId, listener: Listener) -> Option<Listener> {
        let before = self.remove(&id);
        self.by_user.entry(listener.peer.user.clone()).or_default().insert(id);
        self.all.insert(id, listener);
        before
    }

    pub(crate) fn remove(&mut self, id: &SubscriptionId) -> Option<Listener> {
        let gone = self.all.remove(id)?;
        if let Some(own) = self.by_user.get_mut(&gone.peer.user) {
            own.remove(id);
            if own.is_empty() {
                self.by_user.remove(&gone.peer.user);
            }
        }
        Some(gone)
    }

    /// Those who may answer for a user.
    pub(crate) fn entitled(&self, user: &str) -> impl Iterator<Item = &Listener> {
        let own = self.by_user.get(user).into_iter().flatten();
        own.inspect(|_| work::count())
            .filter_map(|id| self.all.get(id))
            .filter(move |listener| listener.peer.may_answer(user))
    }
}
