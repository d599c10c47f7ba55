//! The log of a shard, for hubs on many machines.
//!
//! A cluster keeps one log for each shard of its users. The owner of the shard appends to it, and an
//! append succeeds only if the log is exactly as long as its author believes: so a node that was
//! taken over from, and does not know it yet, is refused by the store itself ([`Appended::Fenced`]).
//! No clock, lease or read is part of that argument. [`Leases`] only say who should try.
//!
//! | part | what it does |
//! |---|---|
//! | [`LogStorage`] | what a store has to offer: bytes at numbered places, taken once each |
//! | [`ShardLog`] | a log on such places: the keyed chain, epochs, doubt |
//! | [`Log`] | what a hub needs of a log; also the embedded journal is one ([`SqliteLog`]) |
//! | [`Owner`] | owning a shard, as a state machine: claim, serve, drain |
//! | [`ShardKeeper`] | carries out what an owner asks for, on a thread |
//! | [`Leases`] | who should own a shard, for a while |
//! | [`jetstream`] | places and leases on NATS JetStream |
//! | [`postgres`] | places and leases on PostgreSQL |
//! | [`MemoryStore`] | places and leases in memory, with faults to inject |
//!
//! # Doubt
//!
//! When no answer comes, nobody knows whether the append has landed or still will.
//! [`Appended::InDoubt`] is the honest answer; until it is settled ([`ShardLog::settle`]), nothing
//! else may be appended, and no other bytes are ever offered for that place.
//!
//! # Example
//!
//! ```
//! use aaep_store::log::{Appended, Log, MemoryStore, ShardLog};
//! use aaep_store::{ChainKey, Unit};
//!
//! let store = MemoryStore::default();
//! let key = ChainKey::new(&[7; 32]);
//! let mut a = ShardLog::new(store.storage("shard-0"), "shard-0", "a", key.clone());
//! let mut b = ShardLog::new(store.storage("shard-0"), "shard-0", "b", key);
//!
//! a.catch_up(|_| {})?;
//! assert_eq!(a.claim(0), Appended::Durable { head: 1 });
//! b.catch_up(|_| {})?;
//! assert_eq!(b.claim(0), Appended::Durable { head: 2 });
//! // Node a was taken over from, and is told when it tries to go on.
//! assert_eq!(a.append(1, &[Unit::default()]), Appended::Fenced);
//! # Ok::<(), aaep_store::log::CannotRead>(())
//! ```

#[cfg(feature = "test-util")]
pub mod contract;
#[cfg(feature = "sqlite")]
mod copy;
mod entry;
#[cfg(feature = "jetstream")]
pub mod jetstream;
#[cfg(feature = "sqlite")]
mod keeper;
mod leases;
mod memory;
#[cfg(feature = "sqlite")]
mod noted;
mod owner;
pub(crate) mod parts;
#[cfg(feature = "postgres")]
pub mod postgres;
#[cfg(any(feature = "jetstream", feature = "postgres"))]
mod remote;
mod shard;
#[cfg(feature = "sqlite")]
mod sqlite;
mod storage;
mod wire;

use std::fmt;

use crate::unit::Unit;

#[cfg(feature = "sqlite")]
pub use copy::CopyOfLog;
pub use entry::{
    Body, ChainHead, DamagedEntry, EntryDamage, KeyFingerprint, LogEntry, MAX_ENTRY_BYTES,
    MAX_NODE_BYTES, decode, encode, fingerprint,
};
#[cfg(feature = "sqlite")]
pub use keeper::{CannotOwn, ShardKeeper, SharedHead, UnitLog};
pub use leases::{Lease, LeaseRefused, Leases};
pub use memory::{MemoryFault, MemoryLeases, MemoryStorage, MemoryStore};
pub use owner::{Owner, OwnerAction, OwnerEvent, Stage};
pub use parts::{NotWhole, Parts};
pub use shard::ShardLog;
#[cfg(feature = "sqlite")]
pub use sqlite::SqliteLog;
pub use storage::{LogStorage, Put, Unavailable};

/// What became of an append.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub enum Appended {
    /// It is there for ever. Callers that wait for it may be told.
    Durable {
        /// The place of the last entry now.
        head: u64,
    },
    /// The log is not as long as expected: somebody else went on with it, or it is an old copy.
    /// Nothing was kept. Drop the engine; the log says who owns the shard.
    Fenced,
    /// No answer came. It may be there, it may come to be there later, or never. Settle this before
    /// anything else; callers that wait for it must not be told.
    InDoubt,
    /// Nothing was kept and nothing is on its way; the same may be offered again.
    Stuck(Unavailable),
}

/// Why a log cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotRead {
    /// The store does not answer.
    Unavailable(Unavailable),
    /// An entry cannot be believed. The shard stays closed.
    Damaged(DamagedEntry),
    /// The log is shorter than it was, or another one: an old copy.
    OldCopy {
        /// The place up to which it was known.
        known: u64,
        /// How long it is now.
        found: u64,
    },
}

impl fmt::Display for CannotRead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CannotRead::Unavailable(why) => why.fmt(f),
            CannotRead::Damaged(why) => why.fmt(f),
            CannotRead::OldCopy { known, found } => write!(
                f,
                "The log has {found} entries and had {known}: it is an old copy. The shard stays closed; restore the newest log, or decide that what came later is lost.",
            ),
        }
    }
}

impl std::error::Error for CannotRead {}

impl From<Unavailable> for CannotRead {
    fn from(why: Unavailable) -> Self {
        CannotRead::Unavailable(why)
    }
}

impl From<DamagedEntry> for CannotRead {
    fn from(why: DamagedEntry) -> Self {
        CannotRead::Damaged(why)
    }
}

/// A log of units: what a hub needs of it. One append at a time, which `&mut` enforces: with two on
/// their way, a zombie's second append could match after its first was refused.
pub trait Log {
    /// Makes units durable, all of them or none, if the log is exactly `expected` long.
    fn append(&mut self, expected: u64, units: &[Unit]) -> Appended;

    /// Hands the units after this place to `each`, in order, with the place after which they are
    /// complete. Nothing is handed on before its place in the chain was verified.
    fn read_from(
        &mut self,
        after: u64,
        each: &mut dyn FnMut(u64, Vec<Unit>),
    ) -> Result<u64, CannotRead>;

    /// How long the log is, as far as the store says right now. A hint: another node may be ahead.
    fn head(&mut self) -> Result<u64, CannotRead>;
}
