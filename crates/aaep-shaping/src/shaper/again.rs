//! Somebody comes back: what was sent and perhaps not heard is sent again, and then it goes on.

use std::mem;

use super::{Delivery, Shaper};
use crate::bounds::Overflow;
use crate::queue::{Item, Queue};
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
            self.again(delivery, now);
        }
        self.queue.append(held);
        self.check(self.pending_events(), self.pending_bytes())
    }

    fn again(&mut self, delivery: Delivery, now: Mono) {
        let session = delivery.event.session_id();
        if !delivery.event.is_critical() && !delivery.event.is_resolution() {
            return self.queue.push(session, Item::Again(delivery), now);
        }
        // D14: first what comes before it in its session; nothing is held here but what is sent again.
        for item in self.queue.take_session(session) {
            self.borrow(now);
            if let Some(before) = self.deliver(item) {
                self.push_urgent(before);
            }
        }
        self.push_urgent(delivery);
    }

    /// Drops everything that is held: whoever comes back is told how things stand instead. What was
    /// borrowed stays borrowed.
    pub fn forget_held(&mut self) {
        self.urgent.clear();
        self.urgent_bytes = 0;
        self.queue = Queue::default();
        self.texts.clear();
    }
}
