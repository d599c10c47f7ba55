//! Delivery: which subscription hears which event (§5.9, §6.7), what a newcomer is told (D28), and
//! what somebody who comes back has missed (§8.7).
//!
//! A machine of its own beside the engine: the engine decides what is said, this one who hears it.
//! It is given events only after they are durable where they must be, so nothing it repeats was
//! ever premature. The same contract: one mutation, then drain.

use aaep_shaping::{Delivery as Shaped, Glance, Mono, Overflow, OwnState, Prepared, Preparer};
use aaep_shaping::{Shaper, Terms};
use aaep_types::{EventId, EventKind, Invalid, SubscriptionId};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clock::Boot;
use crate::hearers::{Subscription, Subscriptions, Wave, mono, stir};
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
        /// Where that one lies; see [`Delivery::place`].
        place: usize,
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

/// Decides who hears what.
pub struct Delivery {
    preparer: Preparer,
    subscriptions: Subscriptions,
    recent: Recent,
    /// Events that have not come to everybody.
    waves: VecDeque<Wave>,
    /// Places of subscriptions that may have something to say.
    stirred: VecDeque<usize>,
    /// Those that will have something to say by themselves, by the time of it.
    due: BTreeSet<(Mono, usize)>,
    ended: VecDeque<Deliver>,
}

impl Delivery {
    /// Nobody listens yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            preparer: Preparer::new(),
            subscriptions: Subscriptions::default(),
            recent: Recent::new(limits.recent_events),
            waves: VecDeque::new(),
            stirred: VecDeque::new(),
            due: BTreeSet::new(),
            ended: VecDeque::new(),
        }
    }

    /// Offers an event to everybody who may hear it (C22, H16, H21).
    pub fn offer(&mut self, event: &Emitted, now: Boot) -> Result<(), Invalid> {
        // enforces: C21, C22, H16, D31
        let resolves = event.about.is_some();
        let json = event.json.clone();
        let prepared = match &event.leaves {
            Some(from_state) => self.preparer.prepare_state(OwnState {
                json,
                event_id: EventId::from_bits(event.event),
                session_id: event.session,
                number: event.number,
                from_state,
                resolution: resolves,
            }),
            None if resolves => self.preparer.prepare_resolution(json)?,
            None => self.preparer.prepare(json)?,
        };
        self.recent.remember(event, &prepared, now);
        let terminal = event.kind.is_some_and(EventKind::is_terminal);
        self.waves.push_back(Wave {
            event: prepared,
            user: event.user.clone(),
            outcome: resolves || terminal,
            now,
            next: 0,
            left: false,
            bytes: Vec::new(),
        });
        Ok(())
    }

    /// Lets the events go on, from one subscription to the next, until one of them is to be sent.
    fn flow(&mut self) -> Option<Deliver> {
        while let Some(wave) = self.waves.front_mut() {
            while let Some(at) = self.subscriptions.at.get_mut(wave.next) {
                let place = wave.next;
                wave.next += 1;
                let Some(known) = at.as_mut().filter(|known| known.hears(&wave.user)) else {
                    continue;
                };
                let glance =
                    if wave.left { Glance::Offer } else { known.glance(&wave.event, wave.now) };
                match glance {
                    Glance::Unwanted => {}
                    Glance::Passes => {
                        let bytes = wave.bytes(&known.shaper.terms().shape);
                        let (subscription, event) = (known.id, wave.event.clone());
                        return Some(Deliver::Send { subscription, place, event, bytes });
                    }
                    Glance::Offer => {
                        stir(&mut self.stirred, place, known);
                        let id = known.id;
                        if let Err(overflow) = known.take(&wave.event, wave.outcome, wave.now) {
                            return Some(self.give_up(id, &overflow));
                        }
                    }
                }
            }
            self.waves.pop_front();
        }
        None
    }

    /// Whoever comes or changes now has no part in what was offered before, fetched or not.
    fn settle(&mut self) {
        self.waves.iter_mut().for_each(|wave| wave.left = true);
        while let Some(ended) = self.flow() {
            self.ended.push_back(ended);
        }
    }

    /// Offers one event to one subscription.
    fn give(&mut self, id: SubscriptionId, event: &Arc<Prepared>, outcome: bool, now: Boot) {
        let Some((place, known)) = self.subscriptions.find(id) else { return };
        stir(&mut self.stirred, place, known);
        if let Err(overflow) = known.take(event, outcome, now) {
            let ended = self.give_up(id, &overflow);
            self.ended.push_back(ended);
        }
    }

    // enforces: I4, I22
    /// A subscription that cannot take more is ended, not kept in the dark.
    fn give_up(&mut self, id: SubscriptionId, overflow: &Overflow) -> Deliver {
        self.close(id);
        Deliver::End { subscription: id, reason: overflow.to_string() }
    }

    /// A subscription was agreed on, or an implicit one came to be; it hears nothing until it attaches.
    pub fn subscribe(&mut self, id: SubscriptionId, peer: &Principal, mut terms: Terms, now: Boot) {
        self.settle();
        self.preparer.share(&mut terms);
        let shaper = Shaper::new(terms, mono(now));
        let known = Subscription {
            id,
            peer: peer.clone(),
            shaper,
            attached: false,
            paused: false,
            stirred: false,
            due: None,
            asked: BTreeSet::new(),
        };
        self.close(id);
        self.subscriptions.insert(known);
    }

    /// Where a subscription lies: a small number that no other open subscription has, for whoever
    /// keeps something beside it.
    pub fn place(&self, id: SubscriptionId) -> Option<usize> {
        self.subscriptions.places.get(&id).copied()
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
        self.settle();
        let known = self.subscriptions.find(id).filter(|(_, known)| known.peer == *peer);
        let (place, known) = known?;
        (known.attached, known.paused) = (true, false);
        stir(&mut self.stirred, place, known);
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
        self.settle();
        if let Some((_, known)) = self.subscriptions.find(id) {
            known.attached = false;
        }
    }

    /// A subscription is over (H19).
    pub fn close(&mut self, id: SubscriptionId) {
        if let Some((place, known)) = self.subscriptions.remove(id) {
            known.due.map(|due| self.due.remove(&(due, place)));
        }
    }

    /// Its connection takes nothing more for now (W14): nothing is lost, and nobody else waits.
    pub fn pause(&mut self, id: SubscriptionId) {
        if let Some((_, known)) = self.subscriptions.find(id) {
            known.paused = true;
        }
    }

    /// Its connection takes more.
    pub fn go_on(&mut self, id: SubscriptionId) {
        if let Some((place, known)) = self.subscriptions.find(id) {
            known.paused = false;
            stir(&mut self.stirred, place, known);
        }
    }

    /// New terms (H18): what was held goes out under the old ones first, so drain before answering.
    pub fn renegotiate(&mut self, id: SubscriptionId, mut terms: Terms, now: Boot) {
        self.settle();
        self.preparer.share(&mut terms);
        if let Some((place, known)) = self.subscriptions.find(id) {
            known.shaper.renegotiate(terms, mono(now));
            stir(&mut self.stirred, place, known);
        }
    }

    /// The terms of a subscription.
    pub fn terms(&self, id: SubscriptionId) -> Option<&Terms> {
        let known = self.subscriptions.at.get(self.place(id)?)?.as_ref();
        known.map(|known| known.shaper.terms())
    }

    /// The next thing to do.
    pub fn poll_output(&mut self, now: Boot) -> Option<Deliver> {
        if let Some(ended) = self.ended.pop_front() {
            return Some(ended);
        }
        if let Some(next) = self.flow() {
            return Some(next);
        }
        while let Some(&place) = self.stirred.front() {
            let known = self.subscriptions.at.get_mut(place).and_then(Option::as_mut);
            if let Some(known) = known.filter(|known| known.stirred) {
                let hears = known.attached && !known.paused;
                let next = if hears { known.shaper.poll_output(mono(now)) } else { None };
                if let Some(Shaped { event, bytes }) = next {
                    return Some(Deliver::Send { subscription: known.id, place, event, bytes });
                }
                known.stirred = false;
                let due = if hears { known.shaper.next_deadline() } else { None };
                if due != known.due {
                    known.due.map(|before| self.due.remove(&(before, place)));
                    due.map(|at| self.due.insert((at, place)));
                    known.due = due;
                }
            }
            self.stirred.pop_front();
        }
        None
    }

    /// Time passed: whatever is due may be polled now.
    pub fn tick(&mut self, now: Boot) {
        while let Some(&(at, place)) = self.due.first().filter(|(at, _)| *at <= mono(now)) {
            self.due.remove(&(at, place));
            if let Some(known) = self.subscriptions.at[place].as_mut() {
                known.due = None;
                stir(&mut self.stirred, place, known);
            }
        }
    }

    /// When to come back with [`Self::tick`].
    pub fn next_deadline(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| Boot(at.as_micros()))
    }
}
