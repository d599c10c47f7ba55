//! A seeded world around the engine: clocks, a disk, lines that break, people, agents, attackers,
//! crashes between any two steps. What must hold is checked after every step by an oracle that
//! keeps its own ledger and does not trust the engine.
//!
//! The same seed is the same world, so a failure is one command:
//!
//! ```text
//! aaep-sim --seed 4711 --schedules 1 --trace
//! ```
//!
//! # What is deliberately absent
//!
//! The operating system: no clock, no files, no threads, no randomness but the seed.
//!
//! # Example
//!
//! ```
//! let report = aaep_sim::run::<aaep_engine::Sound>(1, false);
//! assert_eq!(report.violation, None);
//! ```

mod agents;
mod cast;
mod client;
mod clocks;
pub mod cluster;
pub mod crash_points;
mod devices;
pub mod disk;
mod forger;
mod hub;
mod mishaps;
pub mod mutants;
mod mutation;
mod oracle;
mod people;
mod picture;
mod power;
mod prose;
pub mod random;
mod schedule;
mod twins;
mod wants;
mod witness;
mod world;

pub use oracle::Violation;
pub use schedule::{Report, Totals, run, run_many};

/// Traces go to standard output, line by line.
#[allow(clippy::print_stdout)]
pub(crate) fn say(line: &str) {
    println!("{line}");
}
