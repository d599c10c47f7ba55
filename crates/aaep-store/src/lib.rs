//! The journal: what must survive a restart, kept in order.
//!
//! # The contract
//!
//! A [`Journal`] takes a batch of records and returns once all of them are durable, or says why not.
//! On [`Fault::Full`] nothing of the batch was kept, and the same batch may be offered again. On
//! [`Fault::Failed`] nobody knows what was kept: the only safe way on is to drop the engine, open
//! the journal again and recover from what is really there.
//!
//! # What is deliberately absent
//!
//! Clocks, threads, files. How records are encoded: that belongs to the engine.
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
//! # Ok::<(), aaep_store::Fault>(())
//! ```

pub mod contract;
mod journal;
mod memory;
mod tail;

pub use journal::{Entry, Fault, Journal};
pub use memory::Memory;
pub use tail::{Tail, longest_valid_prefix};
