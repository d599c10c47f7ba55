//! Delivery: which subscription hears which event (§5.9, §6.7), what a newcomer is told (D28), and
//! what somebody who comes back has missed (§8.7).
//!
//! A machine of its own beside the engine: the engine decides what is said, this one who hears it.
//! It is given events only after they are durable where they must be, so nothing it repeats was
//! ever premature. The same contract: one mutation, then drain.

use aaep_shaping::{Delivery as Shaped, Mono, Overflow, Prepared, Preparer, Shaper, Terms};
use aaep_types::{EventKind, Invalid, SessionId, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clock::Boot;
use crate::io::Emitted;
use crate::limits::Limits;
use crate::principal::Principal;
use crate::recent::{Recent, to_offer};

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

/// A subscription as far as hearing is concerned.
struct Subscription {
    peer: Principal,
    shaper: Shaper,
    attached: bool,
    /// Its connection takes nothing for now; what is said waits in its shaper, which is bounded.
    paused: bool,
    /// Whether it is among the stirred.
    stirred: bool,
    /// When it has something to say by itself.
    due: Option<Mono>,
    /// Sessions of which it was sent a request: it hears their outcomes past any filter (D31).
    asked: BTreeSet<SessionId>,
}

/// Decides who hears what.
pub struct Delivery {
    preparer: Preparer,
    subscriptions: BTreeMap<SubscriptionId, Subscription>,
    recent: Recent,
    /// Subscriptions that may have something to say.
    stirred: VecDeque<SubscriptionId>,
    /// Those that will have something to say by themselves, by the time of it.
    due: BTreeSet<(Mono, SubscriptionId)>,
    ended: VecDeque<Deliver>,
}

fn mono(now: Boot) -> Mono {
    Mono::from_micros(now.0)
}

impl Delivery {
    /// Nobody listens yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            preparer: Preparer::new(),
            subscriptions: BTreeMap::new(),
            recent: Recent::new(limits.recent_events),
            stirred: VecDeque::new(),
            due: BTreeSet::new(),
            ended: VecDeque::new(),
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
        self.recent.remember(event, &prepared, now);
        let terminal = event.kind.is_some_and(EventKind::is_terminal);
        let outcome = resolves || terminal;
        let mut full = Vec::new();
        for (id, known) in &mut self.subscriptions {
            if known.attached && known.peer.may_hear(&event.user) {
                stir(&mut self.stirred, *id, known);
                if let Err(overflow) = known.take(&prepared, outcome, now) {
                    full.push((*id, overflow));
                }
            }
        }
        for (id, overflow) in full {
            self.give_up(id, &overflow);
        }
        Ok(())
    }

    /// Offers one event to one subscription.
    fn give(&mut self, id: SubscriptionId, event: &Arc<Prepared>, outcome: bool, now: Boot) {
        let Some(known) = self.subscriptions.get_mut(&id) else { return };
        stir(&mut self.stirred, id, known);
        if let Err(overflow) = known.take(event, outcome, now) {
            self.give_up(id, &overflow);
        }
    }

    // enforces: I4, I22
    /// A subscription that cannot take more is ended, not kept in the dark.
    fn give_up(&mut self, id: SubscriptionId, overflow: &Overflow) {
        self.close(id);
        self.ended.push_back(Deliver::End { subscription: id, reason: overflow.to_string() });
    }

    /// A subscription was agreed on, or an implicit one came to be; it hears nothing until it attaches.
    pub fn subscribe(&mut self, id: SubscriptionId, peer: &Principal, terms: Terms, now: Boot) {
        let shaper = Shaper::new(terms, mono(now));
        let known = Subscription {
            peer: peer.clone(),
            shaper,
            attached: false,
            paused: false,
            stirred: false,
            due: None,
            asked: BTreeSet::new(),
        };
        self.close(id);
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
        (known.attached, known.paused) = (true, false);
        stir(&mut self.stirred, id, known);
        let missed = last_event.and_then(|last| self.recent.since(peer, last));
        let (resumed, (again, events)) = match missed {
            Some(missed) => {
                let held = known.shaper.held().cloned().collect();
                (Resumed::All, to_offer(missed, held))
            }
            // How things stand is said in full, so what was held is said already.
            None => (Resumed::Snapshot, (true, self.recent.snapshot(peer))),
        };
        if again {
            known.shaper.forget_held();
        }
        for event in events {
            self.give(id, &event, event.is_resolution(), now);
        }
        Some(resumed)
    }

    /// A connection was lost; what is said from now on is missed.
    pub fn detach(&mut self, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.attached = false;
        }
    }

    /// A subscription is over (H19).
    pub fn close(&mut self, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.remove(&id) {
            known.due.map(|due| self.due.remove(&(due, id)));
        }
    }

    /// Its connection takes nothing more for now (W14): nothing is lost, and nobody else waits.
    pub fn pause(&mut self, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.paused = true;
        }
    }

    /// Its connection takes more.
    pub fn go_on(&mut self, id: SubscriptionId) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.paused = false;
            stir(&mut self.stirred, id, known);
        }
    }

    /// New terms (H18): what was held goes out under the old ones first, so drain before answering.
    pub fn renegotiate(&mut self, id: SubscriptionId, terms: Terms, now: Boot) {
        if let Some(known) = self.subscriptions.get_mut(&id) {
            known.shaper.renegotiate(terms, mono(now));
            stir(&mut self.stirred, id, known);
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
        while let Some(&id) = self.stirred.front() {
            let known = self.subscriptions.get_mut(&id);
            if let Some(known) = known.filter(|known| known.stirred) {
                let hears = known.attached && !known.paused;
                let next = if hears { known.shaper.poll_output(mono(now)) } else { None };
                if let Some(Shaped { event, bytes }) = next {
                    return Some(Deliver::Send { subscription: id, event, bytes });
                }
                known.stirred = false;
                let due = if hears { known.shaper.next_deadline() } else { None };
                if due != known.due {
                    known.due.map(|before| self.due.remove(&(before, id)));
                    due.map(|at| self.due.insert((at, id)));
                    known.due = due;
                }
            }
            self.stirred.pop_front();
        }
        None
    }

    /// Time passed: whatever is due may be polled now.
    pub fn tick(&mut self, now: Boot) {
        while let Some(&(at, id)) = self.due.first().filter(|(at, _)| *at <= mono(now)) {
            self.due.remove(&(at, id));
            if let Some(known) = self.subscriptions.get_mut(&id) {
                known.due = None;
                stir(&mut self.stirred, id, known);
            }
        }
    }

    /// When to come back with [`Self::tick`].
    pub fn next_deadline(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| Boot(at.as_micros()))
    }
}

impl Subscription {
    fn take(&mut self, event: &Arc<Prepared>, outcome: bool, now: Boot) -> Result<(), Overflow> {
        let session = event.session_id();
        if is_request(event) {
            self.asked.insert(session);
        }
        let past_filter = outcome && self.asked.contains(&session);
        if event.kind().is_some_and(EventKind::is_terminal) {
            self.asked.remove(&session);
        }
        if past_filter {
            self.shaper.offer_past_filter(event, mono(now))
        } else {
            self.shaper.offer(event, mono(now))
        }
    }
}

fn stir(stirred: &mut VecDeque<SubscriptionId>, id: SubscriptionId, known: &mut Subscription) {
    if !std::mem::replace(&mut known.stirred, true) {
        stirred.push_back(id);
    }
}

fn is_request(event: &Prepared) -> bool {
    matches!(event.kind(), Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification))
}
