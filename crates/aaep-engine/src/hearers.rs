//! Who hears: subscriptions, one beside the other, and events that go from one to the next.

use aaep_shaping::{Glance, Mono, Overflow, Prepared, Shape, Shaper};
use aaep_types::{EventKind, SessionId, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clock::Boot;
use crate::principal::Principal;

pub(crate) fn mono(now: Boot) -> Mono {
    Mono::from_micros(now.0)
}

/// A subscription as far as hearing is concerned.
pub(crate) struct Subscription {
    pub(crate) id: SubscriptionId,
    pub(crate) peer: Principal,
    pub(crate) shaper: Shaper,
    pub(crate) attached: bool,
    /// Its connection takes nothing for now; what is said waits in its shaper, which is bounded.
    pub(crate) paused: bool,
    /// Whether it is among the stirred.
    pub(crate) stirred: bool,
    /// When it has something to say by itself.
    pub(crate) due: Option<Mono>,
    /// Sessions of which it was sent a request: it hears their outcomes past any filter (D31).
    pub(crate) asked: BTreeSet<SessionId>,
}

/// Subscriptions, one beside the other, so that an event goes from one to the next.
#[derive(Default)]
pub(crate) struct Subscriptions {
    pub(crate) at: Vec<Option<Subscription>>,
    pub(crate) free: Vec<usize>,
    pub(crate) places: BTreeMap<SubscriptionId, usize>,
}

impl Subscriptions {
    pub(crate) fn find(&mut self, id: SubscriptionId) -> Option<(usize, &mut Subscription)> {
        let place = *self.places.get(&id)?;
        Some((place, self.at[place].as_mut()?))
    }

    pub(crate) fn insert(&mut self, known: Subscription) {
        let place = self.free.pop().unwrap_or(self.at.len());
        if place == self.at.len() {
            self.at.push(None);
        }
        self.places.insert(known.id, place);
        self.at[place] = Some(known);
    }

    pub(crate) fn remove(&mut self, id: SubscriptionId) -> Option<(usize, Subscription)> {
        let place = self.places.remove(&id)?;
        self.free.push(place);
        Some((place, self.at[place].take()?))
    }
}

/// An event on its way from one subscription to the next.
pub(crate) struct Wave {
    pub(crate) event: Arc<Prepared>,
    pub(crate) user: Arc<str>,
    /// Whether it tells what became of something (D31).
    pub(crate) outcome: bool,
    pub(crate) now: Boot,
    /// The place that it comes to next.
    pub(crate) next: usize,
    /// Whether it is left to the shapers, to be fetched later.
    pub(crate) left: bool,
    /// Its bytes for the shapes that it has met.
    pub(crate) bytes: Vec<(Shape, Arc<str>)>,
}

/// More shapes than this are not worth looking through.
const REMEMBERED_SHAPES: usize = 64;

impl Wave {
    /// The event's bytes for a shape, which is shared by all that are equal to it.
    pub(crate) fn bytes(&mut self, shape: &Shape) -> Arc<str> {
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

impl Subscription {
    pub(crate) fn hears(&self, user: &str) -> bool {
        self.attached && self.peer.may_hear(user)
    }

    pub(crate) fn glance(&mut self, event: &Prepared, now: Boot) -> Glance {
        // What waits to be fetched goes first.
        if self.paused || self.stirred {
            return Glance::Offer;
        }
        self.shaper.glance(event, mono(now))
    }

    pub(crate) fn take(
        &mut self,
        event: &Arc<Prepared>,
        outcome: bool,
        now: Boot,
    ) -> Result<(), Overflow> {
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

pub(crate) fn stir(stirred: &mut VecDeque<usize>, place: usize, known: &mut Subscription) {
    if !std::mem::replace(&mut known.stirred, true) {
        stirred.push_back(place);
    }
}

fn is_request(event: &Prepared) -> bool {
    matches!(event.kind(), Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification))
}
