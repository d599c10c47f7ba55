//! Bounded memory of what was heard before: digests in place of ids, the oldest forgotten first.

use std::collections::{BTreeSet, VecDeque};
use std::hash::{DefaultHasher, Hasher};

/// Stands for an event of a session in 16 bytes. The hash has fixed keys: every run agrees. An attacker who
/// finds two events with one digest can only hide an event of the very same session.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Digest(u64, u64);

impl Digest {
    fn of(session: &str, event: &str) -> Self {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            for part in [session, event] {
                // The length keeps ("ab", "c") and ("a", "bc") apart.
                hasher.write_usize(part.len());
                hasher.write(part.as_bytes());
            }
            hasher.finish()
        };
        Self(half(0), half(1))
    }
}

/// The events that came last.
#[derive(Debug)]
pub(super) struct Memory {
    capacity: usize,
    known: BTreeSet<Digest>,
    order: VecDeque<Digest>,
}

impl Memory {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), known: BTreeSet::new(), order: VecDeque::new() }
    }

    /// Whether an event is known.
    pub(super) fn knows(&self, session: &str, event: &str) -> bool {
        self.known.contains(&Digest::of(session, event))
    }

    // enforces: H24
    /// Remembers an event; false if it was known.
    pub(super) fn is_new(&mut self, session: &str, event: &str) -> bool {
        let digest = Digest::of(session, event);
        if !self.known.insert(digest) {
            return false;
        }
        self.order.push_back(digest);
        if self.order.len() > self.capacity
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.known.len().max(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: H24
    #[test]
    fn an_event_is_new_once_as_long_as_it_is_remembered() {
        let mut memory = Memory::new(2);
        assert!(memory.is_new("sess_1", "evt_1") && !memory.is_new("sess_1", "evt_1"));
        assert!(memory.is_new("sess_2", "evt_1"), "another session's is another event");
        assert!(memory.is_new("sess_1", "evt_2"));
        assert!(memory.is_new("sess_1", "evt_1"), "the oldest is forgotten");
        assert_eq!(memory.len(), 2);
    }
}
