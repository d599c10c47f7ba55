//! Delivery: which subscription hears which event (§5.9, §6.7), what a newcomer is told (D28), and
//! what somebody who comes back has missed (§8.7).
//!
//! A machine of its own beside the engine: the engine decides what is said, this one who hears it.
//! It is given events only after they are durable where they must be, so nothing it repeats was
//! ever premature. The same contract: one mutation, then drain.

use aaep_shaping::{
    Delivery as Shaped, Glance, KnownEnvelope, Mono, Overflow, Prepared, Preparer, Shape, Shaper,
    Terms,
};
use aaep_types::{EventKind, Invalid, SubscriptionId};
use std::collections::{BTreeSet, VecDeque};
use std::marker::PhantomData;
use std::sync::Arc;

use crate::before::Reminder;
use crate::clock::Boot;
use crate::hearers::{Cursor, Subscription, Subscriptions, mark_dirty};
use crate::io::Emitted;
use crate::limits::Limits;
use crate::principal::Principal;
use crate::recent::Recent;
use crate::resume::LeftOff;
use crate::rules::{Rules, Sound};

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
    /// Events that are ready to be told again to the subscription for which most are.
    pub most_ready: usize,
    /// Recent events of the session of which most are kept.
    pub most_recent: usize,
    /// Bytes of all recent events.
    pub recent_bytes: usize,
    /// Bytes of the recent events of the user of whom most are kept.
    pub most_recent_bytes: usize,
    /// Sessions that ended and are still known.
    pub ended_sessions: usize,
}

/// An event on its way from one subscription to the next.
struct FanOut {
    event: Arc<Prepared>,
    user: Arc<str>,
    agent: Arc<str>,
    /// Whether it tells what became of something, which no filter hides (D31).
    past_filters: bool,
    now: Boot,
    /// How far it has come.
    cursor: Cursor,
    /// Whether it is left to the shapers, to be fetched later.
    left: bool,
    /// Its bytes for the shapes that it has met.
    bytes: Vec<(Shape, Arc<str>)>,
}

/// More shapes than this are not worth looking through.
const REMEMBERED_SHAPES: usize = 64;

/// Decides who hears what.
pub struct Delivery<R: Rules = Sound> {
    pub(crate) limits: Limits,
    preparer: Preparer,
    pub(crate) subscriptions: Subscriptions,
    pub(crate) recent: Recent,
    /// Events that have not come to everybody.
    fan_outs: VecDeque<FanOut>,
    /// Places of subscriptions that may have something to say.
    pub(crate) dirty: VecDeque<usize>,
    /// Those that will have something to say by themselves, by the time of it.
    due: BTreeSet<(Mono, usize)>,
    pub(crate) ended: VecDeque<Deliver>,
    rules: PhantomData<R>,
}

pub(crate) fn mono(now: Boot) -> Mono {
    Mono::from_micros(now.0)
}

impl<R: Rules> Delivery<R> {
    /// Nobody listens yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            preparer: Preparer::new(),
            subscriptions: Subscriptions::default(),
            recent: Recent::default(),
            fan_outs: VecDeque::new(),
            dirty: VecDeque::new(),
            due: BTreeSet::new(),
            ended: VecDeque::new(),
            rules: PhantomData,
        }
    }

    /// After a restart, before anything else: what was said before.
    pub fn remind(&mut self, reminder: Reminder, now: Boot) {
        match reminder {
            // It was valid when it was first sent.
            Reminder::Emitted(event) => drop(self.offer(&event, now)),
            Reminder::Gap { user } => self.recent.note_gap(user),
        }
    }

    /// Offers an event to everybody who may hear it (C22, H16, H21).
    pub fn offer(&mut self, event: &Emitted, now: Boot) -> Result<(), Invalid> {
        // enforces: D31
        let resolves = event.about.is_some();
        let json = event.json.clone();
        let prepared = match &event.shape {
            Some(info) => {
                let known = KnownEnvelope {
                    json,
                    event_id: event.event.id(),
                    session_id: event.session,
                    number: Some(event.number),
                    kind: event.kind,
                    resolution: resolves,
                };
                self.preparer.prepare_known(known, (**info).clone())
            }
            None if resolves => self.preparer.prepare_resolution(json)?,
            None => self.preparer.prepare(json)?,
        };
        self.recent.remember(event, &prepared, &self.limits);
        if self.subscriptions.places.is_empty() {
            return Ok(());
        }
        let terminal = event.kind.is_some_and(EventKind::is_terminal);
        self.fan_outs.push_back(FanOut {
            event: prepared,
            user: event.user.clone(),
            agent: event.agent.clone(),
            past_filters: R::passes_any_filter(resolves, terminal),
            now,
            cursor: Cursor::default(),
            left: false,
            bytes: Vec::new(),
        });
        Ok(())
    }

    // enforces: C21, C22, H16
    /// Lets the events go on, from one subscription to the next, until one of them is to be sent.
    fn flow(&mut self) -> Option<Deliver> {
        while let Some(fan_out) = self.fan_outs.front_mut() {
            loop {
                let (before, place) =
                    (fan_out.cursor, self.subscriptions.next(&fan_out.user, &mut fan_out.cursor));
                let Some(place) = place else { break };
                let at = &mut self.subscriptions.at[place];
                let hears =
                    |known: &&mut Subscription| known.hears::<R>(&fan_out.user, &fan_out.agent);
                let Some(known) = at.as_deref_mut().filter(hears) else { continue };
                if R::holds_up_others(known.paused) {
                    fan_out.cursor = before;
                    return None;
                }
                if !R::passes_filter(&fan_out.event, &known.shaper.terms().filter) {
                    continue;
                }
                let glance = if fan_out.left {
                    Glance::Offer
                } else {
                    known.glance(&fan_out.event, fan_out.now)
                };
                match glance {
                    Glance::Unwanted => {}
                    Glance::Passes => {
                        let bytes = fan_out.bytes(&known.shaper.terms().shape);
                        let bytes = known.to_send::<R>(&fan_out.event, bytes);
                        let (subscription, event) = (known.id, fan_out.event.clone());
                        known.left_off.note(&event, &bytes, self.limits.resent_deliveries);
                        return Some(Deliver::Send { subscription, place, event, bytes });
                    }
                    Glance::Offer => {
                        if R::polls_at_once(known.shaper.pending_events()) {
                            mark_dirty(&mut self.dirty, place, known);
                        }
                        let id = known.id;
                        let taken = known.take(&fan_out.event, fan_out.past_filters, fan_out.now);
                        if let Err(overflow) = taken
                            && R::ends_subscription(&overflow)
                        {
                            return Some(self.give_up(id, &overflow));
                        }
                    }
                }
            }
            self.fan_outs.pop_front();
        }
        None
    }

    /// A subscription that joins or changes now gets nothing of what was offered before, fetched or not.
    pub(crate) fn settle(&mut self) {
        self.fan_outs.iter_mut().for_each(|fan_out| fan_out.left = true);
        while let Some(ended) = self.flow() {
            self.ended.push_back(ended);
        }
    }

    /// Offers one event to one subscription.
    pub(crate) fn give(
        &mut self,
        id: SubscriptionId,
        event: &Arc<Prepared>,
        outcome: bool,
        now: Boot,
    ) {
        let Some((place, known)) = self.subscriptions.find(id) else { return };
        mark_dirty(&mut self.dirty, place, known);
        if let Err(overflow) = known.take(event, outcome, now) {
            let ended = self.give_up(id, &overflow);
            self.ended.push_back(ended);
        }
    }

    // enforces: I4, I22
    /// A subscription that cannot take more is ended, not kept in the dark.
    pub(crate) fn give_up(&mut self, id: SubscriptionId, overflow: &Overflow) -> Deliver {
        self.close(id);
        Deliver::End { subscription: id, reason: overflow.to_string() }
    }

    /// A subscription was agreed on, or an implicit one came to be; it hears nothing until it attaches.
    pub fn subscribe(&mut self, id: SubscriptionId, peer: &Principal, mut terms: Terms, now: Boot) {
        self.settle();
        terms.rate = R::rate(terms.rate);
        let terms = self.preparer.share(terms);
        let known = Subscription {
            id,
            peer: peer.clone(),
            shaper: Shaper::with_limits(terms.clone(), R::held_limits(&self.limits), mono(now)),
            attached: false,
            paused: false,
            dirty: false,
            due: None,
            asked: BTreeSet::new(),
            left_off: LeftOff::new(&terms),
        };
        self.close(id);
        self.subscriptions.insert::<R>(known);
    }

    /// Where a subscription lies: a small number that no other open subscription has, for callers that
    /// keep something beside it.
    pub fn place(&self, id: SubscriptionId) -> Option<usize> {
        self.subscriptions.places.get(&id).copied()
    }

    /// A connection was lost; what is said from now on is missed.
    pub fn detach(&mut self, id: SubscriptionId) {
        self.settle();
        if let Some((_, known)) = self.subscriptions.find(id) {
            known.attached = false;
            known.left_off.offered = self.recent.order();
            // enforces: I22
            // Who did not even take how things stand is told anew on coming back; nothing else was sent.
            if !known.left_off.again.is_empty() {
                known.left_off.forget();
            }
        }
    }

    /// A subscription is over (H19).
    pub fn close(&mut self, id: SubscriptionId) {
        if let Some((place, known)) = self.subscriptions.remove::<R>(id) {
            known.due.map(|due| self.due.remove(&(due, place)));
        }
    }

    /// Its connection takes nothing more for now (W14): nothing is lost, and nobody else waits.
    pub fn pause(&mut self, id: SubscriptionId) {
        let before = self.recent.order().saturating_sub(1);
        if let Some((_, known)) = self.subscriptions.find(id) {
            known.paused = true;
            // What is critical goes before what waits now.
            known.left_off.hold_after(before);
        }
    }

    /// Its connection takes more.
    pub fn go_on(&mut self, id: SubscriptionId) {
        if let Some((place, known)) = self.subscriptions.find(id) {
            known.paused = false;
            mark_dirty(&mut self.dirty, place, known);
        }
    }

    /// New terms (H18): what was held goes out under the old ones first, so drain before answering.
    pub fn renegotiate(&mut self, id: SubscriptionId, terms: Terms, now: Boot) {
        self.settle();
        let terms = self.preparer.share(terms);
        let order = self.recent.order();
        if let Some((place, known)) = self.subscriptions.find(id) {
            known.shape_again();
            known.left_off.renegotiate(&terms, order);
            known.shaper.renegotiate(terms, mono(now));
            mark_dirty(&mut self.dirty, place, known);
        }
    }

    /// The terms of a subscription.
    pub fn terms(&self, id: SubscriptionId) -> Option<&Terms> {
        let known = self.subscriptions.at.get(self.place(id)?)?.as_deref();
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
        while let Some(&place) = self.dirty.front() {
            let known = self.subscriptions.at.get_mut(place).and_then(Option::as_deref_mut);
            if let Some(known) = known.filter(|known| known.dirty) {
                let hears = known.attached && !known.paused;
                let next = if hears { known.next(now) } else { None };
                if let Some(Shaped { event, bytes }) = next {
                    let bytes = known.to_send::<R>(&event, bytes);
                    known.left_off.note(&event, &bytes, self.limits.resent_deliveries);
                    return Some(Deliver::Send { subscription: known.id, place, event, bytes });
                }
                known.dirty = false;
                let due = if hears { known.shaper.next_deadline() } else { None };
                if due != known.due {
                    known.due.map(|before| self.due.remove(&(before, place)));
                    due.map(|at| self.due.insert((at, place)));
                    known.due = due;
                }
            }
            self.dirty.pop_front();
        }
        None
    }

    /// Time passed: whatever is due may be polled now.
    pub fn tick(&mut self, now: Boot) {
        while let Some(&(at, place)) = self.due.first().filter(|(at, _)| *at <= mono(now)) {
            self.due.remove(&(at, place));
            if let Some(known) = self.subscriptions.at[place].as_deref_mut() {
                known.due = None;
                mark_dirty(&mut self.dirty, place, known);
            }
        }
    }

    /// When to come back with [`Self::tick`].
    pub fn next_deadline(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| Boot(at.as_micros()))
    }

    /// How much is held.
    pub fn load(&self) -> Load {
        let known = || self.subscriptions.at.iter().flatten();
        let shapers = || known().map(|known| &known.shaper);
        let (ended_sessions, most_recent) = self.recent.sizes();
        let (recent_bytes, most_recent_bytes) = self.recent.byte_sizes();
        Load {
            subscriptions: known().count(),
            most_events: shapers().map(Shaper::pending_events).max().unwrap_or(0),
            most_bytes: shapers().map(Shaper::pending_bytes).max().unwrap_or(0),
            most_ready: known().map(|known| known.left_off.ready.len()).max().unwrap_or(0),
            most_recent,
            recent_bytes,
            most_recent_bytes,
            ended_sessions,
        }
    }
}

impl FanOut {
    /// The event's bytes for a shape, which is shared by all that are equal to it.
    fn bytes(&mut self, shape: &Shape) -> Arc<str> {
        if let Some((_, bytes)) = self.bytes.iter().find(|(known, _)| known.is(shape)) {
            return bytes.clone();
        }
        let bytes = self.event.bytes(shape);
        if self.bytes.len() < REMEMBERED_SHAPES {
            self.bytes.push((shape.clone(), bytes.clone()));
        }
        bytes
    }
}
