//! The journal: what must survive a restart, kept in order.
//!
//! # The contract
//!
//! A [`Journal`] takes a batch of records and returns once all of them are durable, or says why not.
//! On [`JournalFault::Full`] nothing of the batch was kept, and the same batch may be offered again. On
//! [`JournalFault::Failed`] the state on disk is unknown: the only safe way on is to drop the engine, open
//! the journal again and recover from it.
//!
//! # The embedded journal
//!
//! With the feature `sqlite`: [`Sqlite`] keeps records in one file that people can read with the
//! ordinary `sqlite3`, [`JournalWriter`] does so on its own thread, [`Head`] notes outside the data
//! directory how far it is, and [`audit`] verifies and exports what was kept. Every record is linked to
//! those before it with a [`ChainKey`] that lies outside the data directory. Records can be erased:
//! [`audit::plan`] finds those that no restart needs, a record of the chain says that they are gone, and
//! a [`Compaction`] takes their bytes away while the journal is written to.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `chain` | off | [`chain`]: the keyed chain alone |
//! | `jetstream` | off | logs and leases on NATS JetStream; implies `log` |
//! | `log` | off | [`log`]: the logs of a cluster, leases, and both in memory; implies `chain` |
//! | `postgres` | off | logs and leases on PostgreSQL; implies `log` |
//! | `sqlite` | off | the embedded journal; implies `log` |
//! | `test-util` | off | `contract`, the tests that every store has to pass |
//!
//! # What is deliberately absent
//!
//! How records are encoded: that belongs to the engine. Without the features `sqlite`,
//! `postgres` and `jetstream` also clocks, threads, files and sockets.
//!
//! # Example
//!
//! ```
//! use aaep_engine::Record;
//! use aaep_store::{Entry, Journal, Memory};
//!
//! let mut journal = Memory::default();
//! let record = Record::Ended { session: "sess_1".into(), said: Default::default() };
//! journal.append(&[Entry { number: 1, bytes: record.encode(1) }])?;
//! assert_eq!(journal.read()?, [record.encode(1)]);
//! # Ok::<(), aaep_store::JournalFault>(())
//! ```

// This page links to what only some features have.
#![cfg_attr(
    not(all(feature = "sqlite", feature = "postgres", feature = "jetstream")),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(feature = "sqlite")]
pub mod audit;
#[cfg(feature = "chain")]
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))] // seals are for rows of a table
pub mod chain;
#[cfg(feature = "test-util")]
pub mod contract;
#[cfg(feature = "sqlite")]
mod head;
mod journal;
#[cfg(feature = "sqlite")]
mod key;
mod lock;
#[cfg(feature = "log")]
pub mod log;
mod memory;
#[cfg(feature = "sqlite")]
mod sqlite;
mod tail;
#[cfg(feature = "log")]
mod unit;
#[cfg(feature = "sqlite")]
mod writer;

#[cfg(feature = "chain")]
pub use chain::ChainKey;
#[cfg(feature = "sqlite")]
pub use head::{Head, HeadCheck, Noted};
pub use journal::{Entry, Journal, JournalFault};
#[cfg(feature = "sqlite")]
pub use key::JournalMarker;
pub use lock::Lock;
pub use memory::Memory;
#[cfg(feature = "sqlite")]
pub use sqlite::{
    CannotOpen, Compaction, Damage, JournalFile, KINDS, Migration, OLD_COPY, Options, Reader,
    Replayed, Sqlite, Start, VERSION,
};
pub use tail::{Tail, longest_valid_prefix};
#[cfg(feature = "log")]
pub use unit::{KeptCall, Note, Unit};
#[cfg(feature = "sqlite")]
pub use writer::{InlineCommit, JournalWriter, Report};
