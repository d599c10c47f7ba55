//! Storage and leases in memory, with faults to inject: what a store between machines does wrong.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::leases::{Lease, LeaseRefused, Leases};
use super::storage::{LogStorage, Put, Unavailable};

/// What happens to the next put or read of a shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryFault {
    /// The put takes effect, and its acknowledgement is lost.
    LostAcknowledgement,
    /// The put is on its way until [`MemoryStore::deliver`]; its author hears nothing.
    Delayed,
    /// The put is lost; its author hears nothing.
    Lost,
    /// The put takes effect, and a second copy of it stays on its way.
    Doubled,
    /// The store says that it is away. Nothing is sent.
    Away,
    /// The next reading sees only so many entries.
    StaleRead(u64),
}

#[derive(Debug, Default)]
struct Shard {
    /// `None` where somebody tore a hole.
    entries: Vec<Option<Vec<u8>>>,
    /// Puts that are on their way.
    in_flight: Vec<(u64, Vec<u8>)>,
    faults: VecDeque<MemoryFault>,
}

impl Shard {
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put {
        let next = self.entries.len() as u64 + 1;
        if place == next {
            self.entries.push(Some(bytes.to_vec()));
            return Put::Durable;
        }
        match self.at(place) {
            Some(found) if found == bytes => Put::Durable,
            _ => Put::Taken,
        }
    }

    fn at(&self, place: u64) -> Option<&[u8]> {
        let index = usize::try_from(place.checked_sub(1)?).ok()?;
        self.entries.get(index)?.as_deref()
    }

    fn fault(&mut self, is_read: bool) -> Option<MemoryFault> {
        let fits = |fault: &MemoryFault| {
            *fault == MemoryFault::Away || matches!(fault, MemoryFault::StaleRead(_)) == is_read
        };
        self.faults.front().is_some_and(fits).then(|| self.faults.pop_front()).flatten()
    }
}

#[derive(Debug, Default)]
struct Inside {
    shards: BTreeMap<String, Shard>,
    leases: BTreeMap<String, (String, u64, i64)>,
    revision: u64,
    /// The store's clock, in microseconds.
    now: i64,
}

/// A store in memory that any number of nodes share: clones are the same store.
#[derive(Clone, Debug, Default)]
pub struct MemoryStore(Arc<Mutex<Inside>>);

impl MemoryStore {
    /// How long a lease lasts, in microseconds.
    pub const LEASE_MICROS: i64 = 2_000_000;

    fn inside(&self) -> MutexGuard<'_, Inside> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, shard: &str, act: impl FnOnce(&mut Shard) -> T) -> T {
        act(self.inside().shards.entry(shard.to_owned()).or_default())
    }

    /// The places of a shard.
    pub fn storage(&self, shard: &str) -> MemoryStorage {
        MemoryStorage { store: self.clone(), shard: shard.to_owned() }
    }

    /// The leases.
    pub fn leases(&self) -> MemoryLeases {
        MemoryLeases(self.clone())
    }

    /// Lets the store's clock go on, or back.
    pub fn pass(&self, micros: i64) {
        self.inside().now += micros;
    }

    /// Lets this happen to the next put, or reading, of the shard; faults wait in a row.
    pub fn inject(&self, shard: &str, fault: MemoryFault) {
        self.with(shard, |shard| shard.faults.push_back(fault));
    }

    /// Forgets the faults that have not happened yet.
    pub fn spare(&self, shard: &str) {
        self.with(shard, |shard| shard.faults.clear());
    }

    /// How many puts are on their way.
    pub fn in_flight(&self, shard: &str) -> usize {
        self.with(shard, |shard| shard.in_flight.len())
    }

    /// Lets one of the puts that are on their way arrive; says whether it took its place now.
    pub fn deliver(&self, shard: &str, index: usize) -> bool {
        self.with(shard, |shard| {
            if index >= shard.in_flight.len() {
                return false;
            }
            let (place, bytes) = shard.in_flight.remove(index);
            let before = shard.entries.len();
            let put = shard.put(place, &bytes);
            put == Put::Durable && shard.entries.len() > before
        })
    }

    /// Forgets entries at the end, as a store does that was restored from an old copy.
    pub fn lose_tail(&self, shard: &str, count: usize) {
        self.with(shard, |shard| {
            let left = shard.entries.len().saturating_sub(count);
            shard.entries.truncate(left);
        });
    }

    /// Forgets one entry in the middle.
    pub fn tear_hole(&self, shard: &str, place: u64) {
        self.change(shard, place, |entry| *entry = None);
    }

    /// Turns one bit of an entry over.
    pub fn flip_bit(&self, shard: &str, place: u64, bit: usize) {
        self.change(shard, place, |entry| {
            if let Some(bytes) = entry.as_mut().filter(|bytes| !bytes.is_empty()) {
                let at = bit / 8 % bytes.len();
                bytes[at] ^= 1 << (bit % 8);
            }
        });
    }

    fn change(&self, shard: &str, place: u64, act: impl FnOnce(&mut Option<Vec<u8>>)) {
        self.with(shard, |shard| {
            let index = usize::try_from(place).unwrap_or(0).wrapping_sub(1);
            shard.entries.get_mut(index).map(act);
        });
    }
}

/// The places of one shard in memory.
#[derive(Clone, Debug)]
pub struct MemoryStorage {
    store: MemoryStore,
    shard: String,
}

impl LogStorage for MemoryStorage {
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put {
        self.store.with(&self.shard, |shard| match shard.fault(false) {
            None | Some(MemoryFault::StaleRead(_)) => shard.put(place, bytes),
            Some(MemoryFault::LostAcknowledgement) => {
                let _ = shard.put(place, bytes);
                Put::InDoubt
            }
            Some(MemoryFault::Delayed) => {
                shard.in_flight.push((place, bytes.to_vec()));
                Put::InDoubt
            }
            Some(MemoryFault::Lost) => Put::InDoubt,
            Some(MemoryFault::Doubled) => {
                shard.in_flight.push((place, bytes.to_vec()));
                shard.put(place, bytes)
            }
            Some(MemoryFault::Away) => Put::Refused(away()),
        })
    }

    fn get(&mut self, from: u64, at_most: usize) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.store.with(&self.shard, |shard| {
            let seen = match shard.fault(true) {
                Some(MemoryFault::Away) => return Err(away()),
                Some(MemoryFault::StaleRead(seen)) => seen,
                _ => u64::MAX,
            };
            let entries = (from..=seen).map_while(|place| shard.at(place).map(<[u8]>::to_vec));
            Ok(entries.take(at_most).collect())
        })
    }

    fn head(&mut self) -> Result<u64, Unavailable> {
        Ok(self.store.with(&self.shard, |shard| shard.entries.len() as u64))
    }
}

fn away() -> Unavailable {
    Unavailable::Away("the store in memory was told to be away".into())
}

/// Leases in memory.
#[derive(Clone, Debug)]
pub struct MemoryLeases(MemoryStore);

impl MemoryLeases {
    fn give(inside: &mut Inside, shard: &str, node: &str) -> Lease {
        inside.revision += 1;
        let (revision, store_time) = (inside.revision, inside.now);
        let held = (node.to_owned(), revision, store_time + MemoryStore::LEASE_MICROS);
        inside.leases.insert(shard.to_owned(), held);
        Lease { shard: shard.to_owned(), node: node.to_owned(), revision, store_time }
    }
}

impl Leases for MemoryLeases {
    fn take(&mut self, shard: &str, node: &str) -> Result<Lease, LeaseRefused> {
        let inside = &mut *self.0.inside();
        match inside.leases.get(shard) {
            Some((by, _, until)) if by != node && *until > inside.now => {
                Err(LeaseRefused::Held { by: by.clone() })
            }
            _ => Ok(Self::give(inside, shard, node)),
        }
    }

    fn renew(&mut self, lease: &Lease) -> Result<Lease, LeaseRefused> {
        let inside = &mut *self.0.inside();
        let now = inside.now;
        match inside.leases.get(&lease.shard) {
            Some((_, revision, until)) if *revision == lease.revision && *until > now => {
                Ok(Self::give(inside, &lease.shard, &lease.node))
            }
            _ => Err(LeaseRefused::Lost),
        }
    }

    fn holder(&mut self, shard: &str) -> Result<Option<String>, Unavailable> {
        let inside = &*self.0.inside();
        let held = inside.leases.get(shard).filter(|(_, _, until)| *until > inside.now);
        Ok(held.map(|(by, ..)| by.clone()))
    }

    fn give_back(&mut self, lease: &Lease) -> Result<(), LeaseRefused> {
        let inside = &mut *self.0.inside();
        let held = inside.leases.get(&lease.shard);
        if held.is_some_and(|(_, revision, _)| *revision == lease.revision) {
            inside.leases.remove(&lease.shard);
        }
        Ok(())
    }
}

#[cfg(all(test, feature = "test-util"))]
mod tests {
    use super::super::contract;
    use super::*;

    #[test]
    fn places_in_memory_keep_the_contract() {
        let store = MemoryStore::default();
        contract::storage_contract(|shard| store.storage(shard));
        contract::log_contract(|shard| store.storage(shard));
    }

    #[test]
    fn a_long_log_in_memory_is_read_back_in_order() {
        let store = MemoryStore::default();
        contract::long_log(20_000, |shard| store.storage(shard));
    }

    /// `cargo test --release -p aaep-store --features log million -- --ignored`
    #[test]
    #[ignore = "takes a minute"]
    fn a_million_entries_in_memory() {
        let store = MemoryStore::default();
        contract::long_log(1_000_000, |shard| store.storage(shard));
    }

    #[test]
    fn a_claimed_log_in_memory_is_a_log() {
        contract::single_log_contract(|| {
            let key = crate::ChainKey::new(&[1; 32]);
            let mut log =
                super::super::ShardLog::new(MemoryStore::default().storage("s"), "s", "a", key);
            assert_eq!(log.claim(0), super::super::Appended::Durable { head: 1 });
            log
        });
    }

    #[test]
    fn leases_in_memory_keep_the_contract() {
        let store = MemoryStore::default();
        let wait = || store.pass(MemoryStore::LEASE_MICROS);
        contract::leases_contract(|| store.leases(), wait);
    }

    #[test]
    fn a_log_keeps_its_promises_whatever_the_store_does() {
        contract::doubt_contract(&MemoryStore::default());
    }
}
