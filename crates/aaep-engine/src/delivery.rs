//! Delivery: which subscription hears which event (§5.9, §6.7), what a newcomer is told (D28), and
//! what somebody who comes back has missed (§8.7).
//!
//! A machine of its own beside the engine: the engine decides what is said, this one who hears it.
//! It is given events only after they are durable where they must be, so nothing it repeats was
//! ever premature. The same contract: one mutation, then drain.

use aaep_shaping::{Delivery as Shaped, HeldLimits, Mono, Prepared, Preparer, Shaper, Terms};
use aaep_types::{EventKind, Invalid, SessionId, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::clock::Boot;
use crate::io::Emitted;
use crate::limits::Limits;
use crate::principal::Principal;
use crate::rules::{Rules, Sound};

/// Something to do for a subscription.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Deliver {
    /// Send this.
    Send {
        /// To whom.
        subscription: SubscriptionId,
        /// The event, whose id goes with it.
        event: Arc<Prepared>,
        /// What to send.
        bytes: Arc<str>,
    },
    /// End the subscription: it cannot keep up, and dropping events in silence is worse (I4, I22).
    End {
        /// Which.
        subscription: SubscriptionId,
        /// Why, to be recorded and said.
        reason: String,
    },
}

/// How a subscription that comes back was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Everything it missed follows.
    All,
    /// Where it left off is no longer known; it is told how things stand.
    Snapshot,
}

/// How much is held for subscribers at the moment, to be watched (I22). Each has its bound in
/// [`Limits`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Subscriptions.
    pub subscriptions: usize,
    /// Events that wait for the subscription for which most do.
    pub most_events: usize,
    /// Bytes that wait for the subscription for which most do.
    pub most_bytes: usize,
    /// Recent events of the session of which most are kept.
    pub most_recent: usize,
}

/// A subscription as far as hearing is concerned.
struct Subscription {
    peer: Principal,
    shaper: Shaper,
    attached: bool,
    /// Sessions of which it was sent a request: it hears their outcomes past any filter (D31).
    asked: BTreeSet<SessionId>,
}

/// What is known of a live session.
struct Live {
    user: Arc<str>,
    started: Arc<Prepared>,
    state: Option<Arc<Prepared>>,
    /// Requests that wait, by the number of the event that asks.
    open: BTreeMap<u128, Arc<Prepared>>,
    recent: VecDeque<(u64, Arc<Prepared>)>,
}

/// Decides who hears what.
pub struct Delivery<R: Rules = Sound> {
    limits: Limits,
    preparer: Preparer,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    live: BTreeMap<SessionId, Live>,
    order: u64,
    /// Everything up to this place may have been forgotten by some session's ring.
    forgotten: u64,
    /// Subscriptions that may have something to say.
    stirred: BTreeSet<SubscriptionId>,
    ended: VecDeque<Deliver>,
    rules: PhantomData<R>,
}

fn mono(now: Boot) -> Mono {
    Mono::from_micros(now.0)
}

impl<R: Rules> Delivery<R> {
    /// Nobody listens yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            preparer: Preparer::new(),
            subscriptions: BTreeMap::new(),
            live: BTreeMap::new(),
            order: 0,
            forgotten: 0,
            stirred: BTreeSet::new(),
            ended: VecDeque::new(),
            rules: PhantomData,
        }
    }

    /// Offers an event to everybody who may hear it (C22, H16, H21).
    pub fn offer(&mut self, event: &Emitted, now: Boot) -> Result<(), Invalid> {
        // enforces: C21, C22, H16, D31
        let resolves = event.about.is_some();
        let prepared = if resolves {
            self.preparer.prepare_resolution(event.json.clone())?
        } else {
            self.preparer.prepare(event.json.clone())?
        };
        self.remember(event, &prepared);
        let terminal = event.kind.is_some_and(EventKind::is_terminal);
        let listeners: Vec<SubscriptionId> = self
            .subscriptions
            .iter()
            .filter(|(_, known)| known.attached && known.peer.may_hear(&event.user))
            .map(|(id, _)| *id)
            .collect();
        for id in listeners {
            self.give(id, &prepared, resolves || terminal, now);
        }
        Ok(())
    }

    /// Offers one event to one subscription; one that cannot take it is ended, not kept in the dark.
    fn give(&mut self, id: SubscriptionId, event: &Arc<Prepared>, outcome: bool, now: Boot) {
        let Some(known) = self.subscriptions.get_mut(&id) else { return };
        let session = event.session_id();
        if is_request(event) {
            known.asked.insert(session);
        }
        let past_filter = outcome && known.asked.contains(&session);
        let taken = if past_filter {
            known.shaper.offer_past_filter(event, mono(now))
        } else {
            known.shaper.offer(event, mono(now))
        };
        self.stirred.insert(id);
        if let Err(overflow) = taken {
            self.subscriptions.remove(&id);
            self.ended.push_back(Deliver::End { subscription: id, reason: overflow.to_string() });
        }
    }

    /// Keeps what newcomers and those who come back will need.
    fn remember(&mut self, event: &Emitted, prepared: &Arc<Prepared>) {
        self.order += 1;
        let (order, limit) = (self.order, self.limits.recent_events);
        if event.kind.is_some_and(EventKind::is_terminal) {
            self.live.remove(&event.session);
            self.forgotten = order;
            return;
        }
        let live = self.live.entry(event.session).or_insert_with(|| Live {
            user: event.user.clone(),
            started: prepared.clone(),
            state: None,
            open: BTreeMap::new(),
            recent: VecDeque::new(),
        });
        match event.kind {
            Some(EventKind::StateChanged) => live.state = Some(prepared.clone()),
            Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification) => {
                live.open.insert(event.event, prepared.clone());
            }
            _ => {}
        }
        if let Some(resolved) = event.resolves_event {
            live.open.remove(&resolved);
        }
        live.recent.push_back((order, prepared.clone()));
        let over = live.recent.len() > limit;
        if let Some((dropped, _)) = over.then(|| live.recent.pop_front()).flatten() {
            self.forgotten = self.forgotten.max(dropped);
        }
    }

    /// A subscription was agreed on, or an implicit one came to be; it hears nothing until it attaches.
    pub fn subscribe(&mut self, id: SubscriptionId, peer: &Principal, terms: Terms, now: Boot) {
        let Limits { held_events: max_events, held_bytes: max_bytes, .. } = self.limits;
        let held = HeldLimits { max_events, max_bytes };
        let shaper = Shaper::with_limits(terms, held, mono(now));
        let known =
            Subscription { peer: peer.clone(), shaper, attached: false, asked: BTreeSet::new() };
        self.subscriptions.insert(id, known);
    }

    /// A connection takes the stream of a subscription over. With the id of the last event that was
    /// heard, what was missed follows; otherwise, or when that is no longer known, how things stand.
    /// `None`: there is no such subscription of this principal.
    pub fn attach(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        last_event: Option<&str>,
        now: Boot,
    ) -> Option<Resumed> {
        // enforces: S4, W7, D28
        let known = self.subscriptions.get_mut(&id).filter(|known| known.peer == *peer)?;
        known.attached = true;
        let missed = last_event.and_then(|last| self.missed_since(peer, last));
        let (resumed, events) = match missed {
            Some(missed) => (Resumed::All, missed),
            None => (Resumed::Snapshot, self.snapshot(peer)),
        };
        for event in events {
            self.give(id, &event, event.is_resolution(), now);
        }
        Some(resumed)
    }

    /// Every event after that one which this principal may hear; `None` when that cannot be told.
    fn missed_since(&self, peer: &Principal, last: &str) -> Option<Vec<Arc<Prepared>>> {
        let visible = || self.live.values().filter(|live| peer.may_hear(&live.user));
        let mut recent = visible().flat_map(|live| &live.recent);
        let (place, _) = recent.find(|(_, event)| event.event_id().as_str() == last)?;
        if *place < self.forgotten {
            return None;
        }
        let mut missed: Vec<_> =
            visible().flat_map(|live| &live.recent).filter(|(order, _)| order > place).collect();
        missed.sort_by_key(|(order, _)| *order);
        Some(missed.into_iter().map(|(_, event)| event.clone()).collect())
    }

    /// D28: of each live session its start, its last state, and everything that waits for an answer.
    fn snapshot(&self, peer: &Principal) -> Vec<Arc<Prepared>> {
        let visible = self.live.values().filter(|live| peer.may_hear(&live.user));
        visible
            .flat_map(|live| {
                let first = [Some(&live.started), live.state.as_ref()];
                first.into_iter().flatten().chain(live.open.values()).cloned()
            })
            .collect()
    }

    /// A connection was lost; what is said from now on is missed.
    pub fn detach(&mut self, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.attached = false;
        }
    }

    /// A subscription is over (H19).
    pub fn close(&mut self, id: SubscriptionId) {
        self.subscriptions.remove(&id);
        self.stirred.remove(&id);
    }

    /// New terms (H18): what was held goes out under the old ones first, so drain before answering.
    pub fn renegotiate(&mut self, id: SubscriptionId, terms: Terms, now: Boot) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.shaper.renegotiate(terms, mono(now));
            self.stirred.insert(id);
        }
    }

    /// The terms of a subscription.
    pub fn terms(&self, id: SubscriptionId) -> Option<&Terms> {
        self.subscriptions.get(&id).map(|known| known.shaper.terms())
    }

    /// The next thing to do.
    pub fn poll_output(&mut self, now: Boot) -> Option<Deliver> {
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        while let Some(id) = self.stirred.first().copied() {
            let known = self.subscriptions.get_mut(&id).filter(|known| known.attached);
            match known.and_then(|known| known.shaper.poll_output(mono(now))) {
                Some(Shaped { event, bytes }) => {
                    return Some(Deliver::Send { subscription: id, event, bytes });
                }
                None => drop(self.stirred.remove(&id)),
            }
        }
        None
    }

    /// Time passed: whatever is due may be polled now.
    pub fn tick(&mut self, now: Boot) {
        let due =
            |known: &Subscription| known.shaper.next_deadline().is_some_and(|at| at <= mono(now));
        let stirred = self.subscriptions.iter().filter(|(_, known)| due(known)).map(|(id, _)| *id);
        self.stirred.extend(stirred);
    }

    /// When to come back with [`Self::tick`].
    pub fn next_deadline(&self) -> Option<Boot> {
        let attached = self.subscriptions.values().filter(|known| known.attached);
        let next = attached.filter_map(|known| known.shaper.next_deadline()).min()?;
        Some(Boot(next.as_micros()))
    }

    /// How much is held.
    pub fn load(&self) -> Load {
        let shapers = || self.subscriptions.values().map(|known| &known.shaper);
        Load {
            subscriptions: self.subscriptions.len(),
            most_events: shapers().map(Shaper::pending_events).max().unwrap_or(0),
            most_bytes: shapers().map(Shaper::pending_bytes).max().unwrap_or(0),
            most_recent: self.live.values().map(|live| live.recent.len()).max().unwrap_or(0),
        }
    }
}

fn is_request(event: &Prepared) -> bool {
    matches!(event.kind(), Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification))
}
