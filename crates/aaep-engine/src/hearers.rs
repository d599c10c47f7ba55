//! Subscriptions as far as hearing is concerned, and how an event is offered to one of them.

use aaep_shaping::{Delivery as Shaped, Glance, Mono, Overflow, Prepared, Shaper};
use aaep_types::{EventKind, ReplyToken, SessionId, SubscriptionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clock::Boot;
use crate::delivery::mono;
use crate::ids::{event_number, token_number};
use crate::principal::Principal;
use crate::resume::LeftOff;
use crate::rules::Rules;
use crate::work;

/// A subscription as far as hearing is concerned.
pub(crate) struct Subscription {
    pub(crate) id: SubscriptionId,
    pub(crate) peer: Principal,
    pub(crate) shaper: Shaper,
    pub(crate) attached: bool,
    /// Its connection takes nothing for now; what is said waits in its shaper, which is bounded.
    pub(crate) paused: bool,
    /// Whether it is among the stirred.
    pub(crate) dirty: bool,
    /// When it has something to say by itself.
    pub(crate) due: Option<Mono>,
    /// Sessions of which it was sent a request: it hears their outcomes past any filter (D31).
    pub(crate) asked: BTreeSet<SessionId>,
    /// For when it comes back.
    pub(crate) left_off: LeftOff,
}

/// Subscriptions, one beside the other, so that an event goes from one to the next.
#[derive(Default)]
pub(crate) struct Subscriptions {
    /// Boxed, so that the list's spare room costs little.
    pub(crate) at: Vec<Option<Box<Subscription>>>,
    free: Vec<usize>,
    pub(crate) places: BTreeMap<SubscriptionId, usize>,
    /// The places of each user's own subscriptions, in order.
    audiences: BTreeMap<Arc<str>, Vec<usize>>,
    /// The places of those who may hear every user's sessions, in order.
    everywhere: Vec<usize>,
    /// Changes whenever one comes or goes; 0 before the first.
    version: u64,
}

/// How far an event has come among the subscriptions that may hear it.
#[derive(Clone, Copy, Default)]
pub(crate) struct Cursor {
    /// The place to go on at.
    pub(crate) next: usize,
    /// Where that is in the two lists, while nobody comes or goes.
    lists: (usize, usize),
    version: u64,
}

impl Subscriptions {
    pub(crate) fn find(&mut self, id: SubscriptionId) -> Option<(usize, &mut Subscription)> {
        let place = *self.places.get(&id)?;
        Some((place, self.at[place].as_deref_mut()?))
    }

    pub(crate) fn insert<R: Rules>(&mut self, known: Subscription) {
        let place = self.free.pop().unwrap_or(self.at.len());
        if place == self.at.len() {
            self.at.push(None);
        }
        self.places.insert(known.id, place);
        let list = self.list_of::<R>(&known.peer);
        if let Err(at) = list.binary_search(&place) {
            list.insert(at, place);
        }
        self.version += 1;
        self.at[place] = Some(Box::new(known));
    }

    fn list_of<R: Rules>(&mut self, peer: &Principal) -> &mut Vec<usize> {
        if R::hears_everyone(peer.role) {
            return &mut self.everywhere;
        }
        self.audiences.entry(peer.user.clone()).or_default()
    }

    /// The next place, from the cursor's on, of one who may hear sessions of this user.
    pub(crate) fn next(&self, user: &str, cursor: &mut Cursor) -> Option<usize> {
        let own = self.audiences.get(user).map_or(&[][..], Vec::as_slice);
        if cursor.version != self.version {
            let from = |list: &[usize]| list.partition_point(|place| *place < cursor.next);
            cursor.lists = (from(own), from(&self.everywhere));
            cursor.version = self.version;
        }
        let (first, second) = (own.get(cursor.lists.0), self.everywhere.get(cursor.lists.1));
        work::count();
        let place = match (first, second) {
            (Some(first), Some(second)) => *first.min(second),
            (first, second) => *first.or(second)?,
        };
        if first == Some(&place) {
            cursor.lists.0 += 1;
        } else {
            cursor.lists.1 += 1;
        }
        cursor.next = place + 1;
        Some(place)
    }

    pub(crate) fn remove<R: Rules>(&mut self, id: SubscriptionId) -> Option<(usize, Subscription)> {
        let place = self.places.remove(&id)?;
        self.free.push(place);
        let known = self.at[place].take()?;
        let list = self.list_of::<R>(&known.peer);
        if let Ok(at) = list.binary_search(&place) {
            list.remove(at);
        }
        if self.audiences.get(&known.peer.user).is_some_and(Vec::is_empty) {
            self.audiences.remove(&known.peer.user);
        }
        self.version += 1;
        Some((place, *known))
    }
}

impl Subscription {
    pub(crate) fn hears<R: Rules>(&self, user: &str, agent: &str) -> bool {
        self.attached && R::may_hear(&self.peer, user, agent)
    }

    // enforces: S6
    /// What is sent of an event. An agent does not get the reply token of a request: the one in its place
    /// follows from the event's id, so that the event stays valid, and no reply with it counts.
    pub(crate) fn to_send<R: Rules>(&self, event: &Prepared, bytes: Arc<str>) -> Arc<str> {
        if !event.kind().is_some_and(asks) || R::may_have_tokens(&self.peer) {
            return bytes;
        }
        event_number(&event.event_id()).map_or_else(
            || Arc::from(""),
            |event| without_token(&bytes, &ReplyToken::from_bits(event.bits())).into(),
        )
    }

    pub(crate) fn glance(&mut self, event: &Prepared, now: Boot) -> Glance {
        // What waits to be fetched goes first.
        if self.paused || self.dirty {
            return Glance::Offer;
        }
        self.shaper.glance(event, mono(now))
    }

    pub(crate) fn next(&mut self, now: Boot) -> Option<Shaped> {
        if let Some(ready) = self.left_off.ready.pop_front() {
            return Some(ready);
        }
        while let Some(event) = self.left_off.again.pop_front() {
            if let Some(told) = self.shaper.as_it_was(&event) {
                return Some(told);
            }
        }
        self.shaper.poll_output(mono(now))
    }

    /// Tells events of before as they were, when they can be sent.
    pub(crate) fn tell_again(&mut self, events: Vec<Arc<Prepared>>) {
        let asking = events.iter().filter(|event| event.is_critical());
        self.asked.extend(asking.map(|event| event.session_id()));
        self.left_off.again = events.into();
    }

    /// Makes ready what is still to be told again, before the terms change or the order matters.
    pub(crate) fn shape_again(&mut self) {
        for event in std::mem::take(&mut self.left_off.again) {
            self.left_off.ready.extend(self.shaper.as_it_was(&event));
        }
    }

    pub(crate) fn take(
        &mut self,
        event: &Arc<Prepared>,
        outcome: bool,
        now: Boot,
    ) -> Result<(), Overflow> {
        let session = event.session_id();
        if event.kind().is_some_and(asks) {
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

pub(crate) fn mark_dirty(dirty: &mut VecDeque<usize>, place: usize, known: &mut Subscription) {
    if !std::mem::replace(&mut known.dirty, true) {
        dirty.push_back(place);
    }
}

/// Whether it is one of the two that wait for an answer.
pub(crate) fn asks(kind: EventKind) -> bool {
    matches!(kind, EventKind::AwaitingConfirmation | EventKind::AwaitingClarification)
}

/// A request with another reply token. Tokens of ours have one form, and nothing but a member's name
/// looks like this in JSON that we wrote.
fn without_token(json: &str, worthless: &ReplyToken) -> String {
    const BEFORE: &str = "\"reply_token\":\"";
    let mut out = String::with_capacity(json.len());
    let mut rest = json;
    while let Some(at) = rest.find(BEFORE) {
        let (before, after) = rest.split_at(at + BEFORE.len());
        out.push_str(before);
        let length = worthless.as_str().len();
        let token = after.get(..length).and_then(|token| ReplyToken::parse(token).ok());
        rest = match token.and_then(|token| token_number(&token)) {
            Some(_) => {
                out.push_str(worthless.as_str());
                &after[length..]
            }
            None => after,
        };
    }
    out.push_str(rest);
    out
}
