//! Those who come back: what they missed, or how things stand (§8.7, decision D28).

use aaep_shaping::{Delivery as Shaped, Prepared, Terms};
use aaep_types::resume::LeftOff as Named;
use aaep_types::{EventKind, SubscriptionId};
use std::collections::VecDeque;
use std::sync::Arc;

use crate::clock::Boot;
use crate::delivery::{Delivery, mono};
use crate::hearers::mark_dirty;
use crate::principal::Principal;
use crate::rules::Rules;

/// How a subscription that comes back was served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed {
    /// Everything it missed follows.
    All,
    /// Where it left off is no longer known; it is told how things stand.
    Snapshot,
}

/// Where a subscription left off, so that it can go on exactly there. What is held or merged goes out
/// in another order than it was said in, so the place of one event says little about others.
pub(crate) struct LeftOff {
    /// After the first of these places and up to the second, everything was sent at once and in the
    /// order in which it was said.
    plain: (u64, u64),
    /// What was sent last otherwise, oldest first.
    sent: VecDeque<Shaped>,
    /// Whether that is all that was ever sent otherwise. Any other event was heard as it was said, here
    /// or on another subscription. Not under a rate: who has one now had one before, perhaps on a
    /// subscription that is gone, where something critical overtook what was held (I32).
    sent_is_all: bool,
    /// What it was told on coming back and may have now. It lies here and not in the shaper, where so
    /// much at once would be merged.
    pub(crate) ready: VecDeque<Shaped>,
    /// What it is told after that, as it was. Without a rate it is shaped only when it is sent, which a
    /// slow reader may never let happen.
    pub(crate) again: VecDeque<Arc<Prepared>>,
    /// Everything up to this place was offered to its shaper.
    pub(crate) offered: u64,
}

impl LeftOff {
    pub(crate) fn new(terms: &Terms) -> Self {
        let (sent, ready, again) = (VecDeque::new(), VecDeque::new(), VecDeque::new());
        let plain = (0, if terms.holds() { 0 } else { u64::MAX });
        Self { plain, sent, sent_is_all: terms.rate.is_none(), ready, again, offered: 0 }
    }

    /// Whether something is held or merged, so that the order is another one.
    fn holds(&self) -> bool {
        self.plain.1 != u64::MAX
    }

    /// New terms, after this place; what was held goes out under the old ones.
    pub(crate) fn renegotiate(&mut self, terms: &Terms, place: u64) {
        self.sent_is_all &= terms.rate.is_none();
        if terms.holds() {
            self.hold_after(place);
        } else if self.holds() {
            self.sent.clear();
            self.plain_only_after(place);
        }
    }

    /// From here on something may be held.
    pub(crate) fn hold_after(&mut self, place: u64) {
        self.plain.1 = self.plain.1.min(place);
    }

    /// What was sent up to here was sent in another order.
    fn plain_only_after(&mut self, place: u64) {
        (self.plain, self.sent_is_all) = ((place, u64::MAX), false);
    }

    /// Something was sent.
    pub(crate) fn note(&mut self, event: &Arc<Prepared>, bytes: &Arc<str>, at_most: usize) {
        if self.holds() {
            self.sent.push_back(Shaped { event: event.clone(), bytes: bytes.clone() });
            if self.sent.len() > at_most {
                self.sent.pop_front();
                self.sent_is_all = false;
            }
        }
    }

    /// Whether who heard the event at this place heard what was said before it, and nothing else.
    fn is_plain_at(&self, place: u64) -> bool {
        self.sent_is_all || self.plain.0 < place && place <= self.plain.1
    }

    /// Nothing that was sent or held until now is of use any more.
    pub(crate) fn forget(&mut self) {
        self.sent_is_all &= self.sent.is_empty();
        self.sent.clear();
        self.ready = VecDeque::new();
        self.again = VecDeque::new();
    }

    /// What was let go after this event; `None` if it is not known any more.
    fn let_go_after(&mut self, last: &str) -> Option<impl Iterator<Item = Shaped> + use<>> {
        let last = self.sent.iter().rposition(|sent| sent.event.event_id().as_str() == last)?;
        Some(self.sent.split_off(last + 1).into_iter().chain(std::mem::take(&mut self.ready)))
    }
}

impl<R: Rules> Delivery<R> {
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
        self.settle();
        // enforces: S4
        let known = self.subscriptions.find(id).filter(|(_, known)| known.peer == *peer);
        let (_, known) = known?;
        if known.attached {
            known.left_off.offered = self.recent.order();
        }
        (known.attached, known.paused) = (true, false);
        known.asked.retain(|session| self.recent.is_live(*session));
        // enforces: W7
        let missed = last_event.and_then(|last| self.missed_since(id, peer, last, now));
        let (resumed, events) = match missed {
            Some(missed) => (Resumed::All, missed),
            None => {
                self.begin_anew(id);
                let snapshot = self.recent.snapshot::<R>(peer);
                let order = self.recent.order();
                let (_, known) = self.subscriptions.find(id)?;
                if !snapshot.is_empty() && !known.left_off.holds() {
                    known.left_off.plain_only_after(order);
                }
                if known.shaper.terms().rate.is_none() {
                    known.tell_again(snapshot);
                    return Some(self.attached(id, Resumed::Snapshot));
                }
                (Resumed::Snapshot, snapshot)
            }
        };
        for event in events {
            let ends = event.kind().is_some_and(EventKind::is_terminal);
            match resumed {
                Resumed::All => self.give(id, &event, ends || event.is_resolution(), now),
                Resumed::Snapshot => self.retell(id, &event, now),
            }
            self.let_go(id, now);
        }
        self.let_go(id, now);
        Some(resumed)
    }

    /// There may be something to fetch.
    fn attached(&mut self, id: SubscriptionId, resumed: Resumed) -> Resumed {
        if let Some((place, known)) = self.subscriptions.find(id) {
            mark_dirty(&mut self.dirty, place, known);
        }
        resumed
    }

    // enforces: W7, I32
    /// Whether a new subscription can go on from there: everything that was said since is known, and
    /// where it was heard nothing was held back that was said before. The latter is known as long as
    /// that subscription is; it goes without saying if none is named.
    pub(crate) fn goes_on(&mut self, peer: &Principal, from: Named) -> bool {
        self.settle();
        let Some(place) = self.recent.place_of(peer, from.last_event.as_str()) else {
            return false;
        };
        let heard_in_order = from.subscription.is_none_or(|id| {
            let known = self.subscriptions.find(id).filter(|(_, known)| known.peer == *peer);
            known.is_some_and(|(_, known)| known.left_off.is_plain_at(place))
        });
        heard_in_order && self.recent.knows_since(peer, place)
    }

    /// Tells an event of before as it was.
    fn retell(&mut self, id: SubscriptionId, event: &Arc<Prepared>, now: Boot) {
        let Some((_, known)) = self.subscriptions.find(id) else { return };
        if event.is_critical() {
            known.asked.insert(event.session_id());
        }
        if let Err(overflow) = known.shaper.offer_again(event, mono(now)) {
            let ended = self.give_up(id, &overflow);
            self.ended.push_back(ended);
        }
    }

    /// Whatever may go now is ready.
    fn let_go(&mut self, id: SubscriptionId, now: Boot) {
        if let Some((place, known)) = self.subscriptions.find(id) {
            mark_dirty(&mut self.dirty, place, known);
            while let Some(next) = known.shaper.poll_output(mono(now)) {
                known.left_off.ready.push_back(next);
            }
        }
    }

    /// What has to be offered to this subscription after that event; `None` when that cannot be told.
    fn missed_since(
        &mut self,
        id: SubscriptionId,
        peer: &Principal,
        last: &str,
        now: Boot,
    ) -> Option<Vec<Arc<Prepared>>> {
        // enforces: I19
        let (_, known) = self.subscriptions.find(id)?;
        known.shape_again();
        if let Some(unheard) = known.left_off.let_go_after(last) {
            let unheard = unheard.filter(|sent| R::sends_again(&sent.event));
            let (resent, offered) =
                (known.shaper.resend(unheard, mono(now)), known.left_off.offered);
            let missed = self.recent.said_since(peer, offered)?;
            if let Err(overflow) = resent {
                let ended = self.give_up(id, &overflow);
                self.ended.push_back(ended);
            }
            return Some(missed);
        }
        // On another subscription, or with nothing held, the order is the one it was said in. What
        // waits for an answer is asked again in any case.
        let place = self.recent.place_of(peer, last)?;
        let (_, known) = self.subscriptions.find(id)?;
        if !known.left_off.is_plain_at(place) {
            return None;
        }
        let mut events = self.recent.asked_until(peer, place);
        events.extend(self.recent.said_since(peer, place)?);
        self.begin_anew(id);
        Some(events)
    }

    /// What was held for a subscription is no longer of use.
    fn begin_anew(&mut self, id: SubscriptionId) {
        if let Some((_, known)) = self.subscriptions.find(id) {
            known.shaper.forget_held();
            known.left_off.forget();
        }
    }
}
