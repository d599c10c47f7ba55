//! A subscriber reconnects: what was sent and perhaps not received is sent again, then delivery goes
//! on.

use std::mem;
use std::sync::Arc;

use super::{Delivery, Shaper};
use crate::prepared::Prepared;
use crate::queue::Overflow;
use crate::queue::{Item, Queue};
use crate::shapes::Cast;
use crate::time::Mono;

impl Shaper {
    /// Sends these once more, as they were and in their order, before everything that is held. They
    /// keep to the rate like anything else, and what is critical among them does not wait.
    pub fn resend(
        &mut self,
        deliveries: impl IntoIterator<Item = Delivery>,
        now: Mono,
    ) -> Result<(), Overflow> {
        // enforces: W2, I19, I20
        let (urgent, held) = (mem::take(&mut self.urgent), mem::take(&mut self.queue));
        self.urgent_bytes = 0;
        for delivery in deliveries.into_iter().chain(urgent) {
            self.resend_one(delivery, now);
        }
        self.queue.append(held);
        self.check(self.pending_events(), self.pending_bytes())
    }

    /// Offers an event that this subscription may have heard before, to tell it how things stand: it
    /// is told as it was, so it is not merged with what came after it (D28). Otherwise it is like any
    /// other.
    pub fn offer_again(&mut self, event: &Arc<Prepared>, now: Mono) -> Result<(), Overflow> {
        if event.is_critical() || !self.admits(event) {
            return self.offer(event, now);
        }
        let (session, bytes) = (event.session_id(), event.bytes(&self.terms.shape));
        self.queue.push(session, Item::Resent(Delivery { event: event.clone(), bytes }), now);
        self.relieve(now)
    }

    /// What comes of [`Self::offer_again`] where there is no rate and nothing is held: the event as it
    /// was, if this subscription wants it. It follows from the terms alone, so there is no hurry to ask.
    pub fn as_it_was(&self, event: &Arc<Prepared>) -> Option<Delivery> {
        let bytes = match event.is_critical() {
            true => event.cast(&self.terms.shape, Cast::Plain, String::new),
            false if self.admits(event) => event.bytes(&self.terms.shape),
            false => return None,
        };
        Some(Delivery { event: event.clone(), bytes })
    }

    fn resend_one(&mut self, delivery: Delivery, now: Mono) {
        let session = delivery.event.session_id();
        if !delivery.event.is_critical() && !delivery.event.is_resolution() {
            return self.queue.push(session, Item::Resent(delivery), now);
        }
        // D14: first what comes before it in its session; nothing is held here but what is sent again.
        for item in self.queue.take_session(session) {
            self.borrow(now);
            if let Some(before) = self.deliver(item) {
                self.push_urgent(before);
            }
        }
        if !delivery.event.is_critical() {
            self.borrow(now);
        }
        self.push_urgent(delivery);
    }

    /// Drops everything that is held; the subscriber gets a snapshot instead. Borrowed rate stays
    /// borrowed.
    pub fn forget_held(&mut self) {
        self.urgent.clear();
        self.urgent_bytes = 0;
        self.queue = Queue::default();
        self.texts.clear();
    }
}
