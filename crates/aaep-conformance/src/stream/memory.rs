//! Bounded memory: digests in place of texts, and the oldest is forgotten first.

use std::collections::{BTreeMap, VecDeque};
use std::hash::{DefaultHasher, Hasher};

/// Stands for a text of any length in 16 bytes. The hash has fixed keys: every run agrees.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Digest(u64, u64);

impl Digest {
    pub(super) fn of(parts: &[&str]) -> Self {
        let half = |salt: u8| {
            let mut hasher = DefaultHasher::new();
            hasher.write_u8(salt);
            for part in parts {
                // The length keeps ("ab", "c") and ("a", "bc") apart.
                hasher.write_usize(part.len());
                hasher.write(part.as_bytes());
            }
            hasher.finish()
        };
        Self(half(0), half(1))
    }
}

/// The longest identifier that is kept as it is; a valid one has 69 bytes at most.
const MAX_ID_BYTES: usize = 80;

/// An identifier to keep or show; one that is absurdly long is cut and told apart by its digest.
pub(super) fn short(id: &str) -> String {
    if id.len() <= MAX_ID_BYTES {
        return id.to_owned();
    }
    let Digest(half, _) = Digest::of(&[id]);
    let head: String = id.chars().take(32).filter(|c| !c.is_control()).collect();
    format!("{head}…{half:016x}")
}

/// The latest entries, up to a capacity.
#[derive(Debug)]
pub(super) struct Memory<V> {
    capacity: usize,
    entries: BTreeMap<Digest, V>,
    order: VecDeque<Digest>,
}

impl<V> Memory<V> {
    pub(super) fn new(capacity: usize) -> Self {
        Self { capacity, entries: BTreeMap::new(), order: VecDeque::new() }
    }

    pub(super) fn find(&self, key: &Digest) -> Option<&V> {
        self.entries.get(key)
    }

    /// Adds or replaces an entry; true if another had to be forgotten for it.
    pub(super) fn insert(&mut self, key: Digest, value: V) -> bool {
        if self.entries.insert(key, value).is_some() {
            return false;
        }
        self.order.push_back(key);
        if self.order.len() <= self.capacity {
            return false;
        }
        if let Some(oldest) = self.order.pop_front() {
            self.entries.remove(&oldest);
        }
        true
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.entries.len().max(self.order.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_entry_is_forgotten_first() {
        let mut memory = Memory::new(2);
        let key = |text| Digest::of(&[text]);
        assert!(!memory.insert(key("a"), 1) && !memory.insert(key("b"), 2));
        assert!(!memory.insert(key("a"), 3), "replacing forgets nothing");
        assert!(memory.insert(key("c"), 4));
        assert_eq!((memory.find(&key("a")), memory.find(&key("b"))), (None, Some(&2)));
        assert_eq!(memory.len(), 2);
    }

    #[test]
    fn a_memory_of_nothing_stays_empty() {
        let mut memory = Memory::new(0);
        assert!(memory.insert(Digest::of(&["a"]), ()));
        assert_eq!(memory.len(), 0);
    }

    #[test]
    fn texts_that_are_cut_elsewhere_have_other_digests() {
        assert_ne!(Digest::of(&["ab", "c"]), Digest::of(&["a", "bc"]));
        let (a, b) = ("x".repeat(200), "x".repeat(201));
        assert_ne!(short(&a), short(&b));
        assert!(short(&a).len() <= MAX_ID_BYTES);
        assert!(short(&"é".repeat(999)).len() <= 32 * 4 + 19);
    }
}
