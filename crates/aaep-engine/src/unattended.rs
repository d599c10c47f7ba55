//! Requests that end when nobody is there who could answer (decision D2).
//!
//! Somebody who leaves costs the same however much waits: only the moment is noted, as the last number
//! that had been given. Whatever was asked before it had been heard by somebody who could answer.

use aaep_types::EventKind;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::Boot;
use crate::ids::RequestId;
use crate::work;

/// The two kinds that wait for an answer.
pub(crate) const KINDS: [EventKind; 2] =
    [EventKind::AwaitingConfirmation, EventKind::AwaitingClarification];

#[derive(Debug, Default)]
pub(crate) struct Unattended {
    users: BTreeMap<Arc<str>, OfUser>,
    /// When to look whether somebody has come back.
    due: BTreeSet<(Boot, Arc<str>)>,
}

/// Requests of one user's agents.
#[derive(Debug, Default)]
struct OfUser {
    confirmations: OfKind,
    clarifications: OfKind,
    due: Option<Boot>,
}

#[derive(Debug, Default)]
struct OfKind {
    /// Asked before the last restart; their numbers come before all others.
    recovered: BTreeSet<RequestId>,
    /// Asked since then.
    asked: BTreeSet<RequestId>,
    /// The last number given when somebody who could answer left.
    left: Option<RequestId>,
}

impl OfUser {
    fn kind(&mut self, kind: EventKind) -> &mut OfKind {
        match kind {
            EventKind::AwaitingConfirmation => &mut self.confirmations,
            _ => &mut self.clarifications,
        }
    }

    fn is_empty(&self) -> bool {
        let is_empty = |kind: &OfKind| kind.recovered.is_empty() && kind.asked.is_empty();
        is_empty(&self.confirmations) && is_empty(&self.clarifications)
    }
}

impl Unattended {
    /// A request waits from now on.
    pub(crate) fn insert(
        &mut self,
        user: &Arc<str>,
        kind: EventKind,
        number: RequestId,
        recovered: bool,
    ) {
        if !self.users.contains_key(user) {
            self.users.insert(user.clone(), OfUser::default());
        }
        let Some(known) = self.users.get_mut(user) else { return };
        let known = known.kind(kind);
        if recovered { &mut known.recovered } else { &mut known.asked }.insert(number);
    }

    /// A request waits no more.
    pub(crate) fn remove(&mut self, user: &Arc<str>, kind: EventKind, number: RequestId) {
        let Some(known) = self.users.get_mut(user) else { return };
        let of_kind = known.kind(kind);
        if !of_kind.asked.remove(&number) {
            of_kind.recovered.remove(&number);
        }
        if known.is_empty() {
            let due = known.due;
            self.users.remove(user);
            due.map(|due| self.due.remove(&(due, user.clone())));
        }
    }

    /// Somebody who could answer requests of this kind left, when this was the last number given.
    pub(crate) fn somebody_left(&mut self, user: &str, kind: EventKind, last: RequestId) {
        work::count();
        if let Some(known) = self.users.get_mut(user) {
            known.kind(kind).left = Some(last);
        }
    }

    /// At this time it is to be looked whether somebody is there; at once if that is due already.
    pub(crate) fn look_at(&mut self, user: &Arc<str>, at: Boot) {
        let Some(known) = self.users.get_mut(user) else { return };
        if known.due.is_none_or(|due| at < due) {
            known.due.replace(at).map(|before| self.due.remove(&(before, user.clone())));
            self.due.insert((at, user.clone()));
        }
    }

    pub(crate) fn next_due(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The user for whom it is to be looked first.
    pub(crate) fn take_due(&mut self) -> Option<Arc<str>> {
        let (_, user) = self.due.pop_first()?;
        self.users.get_mut(&user)?.due = None;
        Some(user)
    }

    /// The requests that somebody who could answer has heard, and left.
    pub(crate) fn heard(&self, user: &str, kind: EventKind) -> Vec<RequestId> {
        let Some(known) = self.users.get(user) else { return Vec::new() };
        let known = match kind {
            EventKind::AwaitingConfirmation => &known.confirmations,
            _ => &known.clarifications,
        };
        let Some(left) = known.left else { return Vec::new() };
        let heard = known.recovered.iter().chain(known.asked.range(..=left));
        heard.inspect(|_| work::count()).copied().collect()
    }

    /// How many timers are set.
    pub(crate) fn timers(&self) -> usize {
        self.due.len()
    }
}
