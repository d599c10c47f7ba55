//! What waits for a stream to open: handshake messages that came before theirs, and calls.

use std::collections::BTreeMap;

use aaep_engine::{Boot, Bound, Principal, Refusal, Shares};
use tokio::sync::oneshot;

/// How long a handshake message waits for its stream to open.
const HELD_SECONDS: u64 = 10;

/// Closed calls are looked for when there are this many, and twice as many as the last time.
const SWEPT: usize = 64;

pub(super) struct Opening<T> {
    /// Messages of each principal, in the order in which they came.
    messages: BTreeMap<Principal, BTreeMap<u64, T>>,
    /// Whose each of them is and until when it waits, in the same order.
    ages: BTreeMap<u64, (Boot, Principal)>,
    shares: Shares,
    last: u64,
    /// Calls that wait for a stream of this principal.
    calls: BTreeMap<Principal, Vec<oneshot::Sender<()>>>,
    /// How many calls there are, and how many there were after closed ones were dropped.
    called: (usize, usize),
}

impl<T> Default for Opening<T> {
    fn default() -> Self {
        Self {
            messages: BTreeMap::new(),
            ages: BTreeMap::new(),
            shares: Shares::default(),
            last: 0,
            calls: BTreeMap::new(),
            called: (0, 0),
        }
    }
}

impl<T> Opening<T> {
    // enforces: I22, I29
    /// Keeps a message until its stream opens, if there is room.
    pub(super) fn hold(
        &mut self,
        bound: &Bound,
        peer: &Principal,
        message: T,
        now: Boot,
    ) -> Result<(), Refusal> {
        self.shares.admit(bound, peer, 1)?;
        self.last += 1;
        self.shares.add(peer, 1);
        self.messages.entry(peer.clone()).or_default().insert(self.last, message);
        self.ages.insert(self.last, (now.after_seconds(HELD_SECONDS), peer.clone()));
        Ok(())
    }

    /// The messages of a principal whose stream is open now.
    pub(super) fn take(&mut self, peer: &Principal) -> Vec<T> {
        let messages = self.messages.remove(peer).unwrap_or_default();
        for number in messages.keys() {
            self.ages.remove(number);
        }
        self.shares.remove(peer, messages.len());
        messages.into_values().collect()
    }

    /// When the next message is to be forgotten.
    pub(super) fn next_deadline(&self) -> Option<Boot> {
        self.ages.first_key_value().map(|(_, (until, _))| *until)
    }

    /// Forgets messages that waited for too long.
    pub(super) fn forget_old(&mut self, now: Boot) {
        while let Some(oldest) = self.ages.first_entry()
            && oldest.get().0 <= now
        {
            let (number, (_, peer)) = oldest.remove_entry();
            self.shares.remove(&peer, 1);
            if let Some(messages) = self.messages.get_mut(&peer) {
                messages.remove(&number);
                if messages.is_empty() {
                    self.messages.remove(&peer);
                }
            }
        }
    }

    /// Tells when this principal has a stream.
    pub(super) fn when_open(&mut self, peer: &Principal) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        self.drop_closed();
        self.calls.entry(peer.clone()).or_default().push(sender);
        self.called.0 += 1;
        receiver
    }

    /// This principal has a stream now.
    pub(super) fn opened(&mut self, peer: &Principal) {
        let calls = self.calls.remove(peer).unwrap_or_default();
        self.called.0 -= calls.len();
        calls.into_iter().for_each(|told| told.send(()).unwrap_or_default());
    }

    /// Drops calls that nobody waits for any more; so seldom that each call pays for few.
    fn drop_closed(&mut self) {
        let (calls, last) = self.called;
        if calls < SWEPT.max(2 * last) {
            return;
        }
        self.calls.retain(|_, calls| {
            calls.retain(|call| !call.is_closed());
            !calls.is_empty()
        });
        let left = self.calls.values().map(Vec::len).sum();
        self.called = (left, left);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_engine::Role;

    fn principal(name: &str, user: &str) -> Principal {
        Principal::new(name, Role::Listener, user)
    }

    // covers: I22, I29
    #[test]
    fn messages_wait_within_their_principals_share_and_are_forgotten_in_time() {
        let mut opening = Opening::default();
        let limits = crate::config::Limits::default();
        let bound = limits.held_handshakes();
        let mut hold = |peer: &Principal, number, at| opening.hold(&bound, peer, number, Boot(at));
        let (eve, ann) = (principal("local:1", "eve"), principal("reader", "ann"));
        for number in 0..limits.early_handshakes_per_principal {
            assert!(hold(&eve, number, 0).is_ok());
        }
        let refused = hold(&eve, 99, 0).unwrap_err();
        assert!(refused.text.contains("(limits.early_handshakes_per_principal)"), "{refused:?}");
        assert!(hold(&principal("local:2", "eve"), 99, 0).is_err(), "it is one account");
        assert!(hold(&ann, 7, 1).is_ok() && hold(&ann, 8, 2).is_ok());
        assert_eq!(opening.take(&ann), [7, 8]);
        assert_eq!(opening.next_deadline(), Some(Boot(0).after_seconds(HELD_SECONDS)));
        opening.forget_old(Boot(0).after_seconds(HELD_SECONDS));
        assert!(opening.next_deadline().is_none() && opening.take(&eve).is_empty());
        assert_eq!(opening.shares.total(), 0);
    }

    // covers: I22
    #[test]
    fn calls_that_nobody_waits_for_are_dropped() {
        let mut opening = Opening::<()>::default();
        let ann = principal("reader", "ann");
        let waits = opening.when_open(&ann);
        for number in 0..100 * SWEPT {
            drop(opening.when_open(&principal(&number.to_string(), "eve")));
        }
        assert!(opening.calls.len() <= 2 * SWEPT, "{}", opening.calls.len());
        opening.opened(&ann);
        assert!(waits.blocking_recv().is_ok());
    }
}
