//! Three nodes that own one shard in turn, on a store that loses acknowledgements, delays and doubles
//! requests, answers with old readings and is restored from an old copy.
//!
//! The owners, the logs and the store are the real ones of `aaep-store`. What runs on them is a small
//! ledger of requests, not the engine: asking, answering in time, silence, running once. Each node has
//! a clock of its own, may stop for any time or crash at any step, and wakes up as a zombie. An oracle
//! knows the true time and what every person was told, and reads the one log after every step.

mod ledger;
mod node;
mod oracle;
mod store;
mod world;

pub use oracle::ClusterViolation;
pub use world::{Report, run};

/// Rules that can be broken, each by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// The store takes an append at whatever length the log has.
    AppendsAnywhere,
    /// The claim goes to the true end, which was not read.
    ClaimsUnread,
    /// Goes on after the store refused.
    ServesFenced,
    /// Tells before the store acknowledged.
    TellsEarly,
    /// Sends a second append behind one that was not answered.
    TwoInFlight,
    /// Offers for another place what is in doubt.
    NewPlaceAfterDoubt,
    /// Appends without asking how long the log is while it believes in its lease.
    TrustsLease,
    /// Owns a shard although its clock is off.
    IgnoresSkew,
    /// Believes a log that is shorter than what it noted.
    IgnoresHeads,
    /// Claims a log that was written with another key.
    ClaimsWithOtherKey,
    /// Uses numbers that the owner before may have told.
    SkipsNoNumbers,
    /// Passes replies on under its own name.
    ForwardsAsNode,
}

/// All of them.
pub const BROKEN: [Broken; 12] = [
    Broken::AppendsAnywhere,
    Broken::ClaimsUnread,
    Broken::ServesFenced,
    Broken::TellsEarly,
    Broken::TwoInFlight,
    Broken::NewPlaceAfterDoubt,
    Broken::TrustsLease,
    Broken::IgnoresSkew,
    Broken::IgnoresHeads,
    Broken::ClaimsWithOtherKey,
    Broken::SkipsNoNumbers,
    Broken::ForwardsAsNode,
];

/// Runs schedules from this seed on until one finds the broken rule out; gives how many it took.
pub fn hunt(broken: Broken, seed: u64, at_most: u64) -> Option<(u64, ClusterViolation)> {
    (0..at_most).find_map(|index| {
        let found = run(seed.wrapping_add(index), Some(broken)).found?;
        Some((index + 1, found))
    })
}
