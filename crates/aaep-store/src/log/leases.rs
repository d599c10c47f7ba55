//! Who should own a shard, for a while. Nothing rests on it but how soon a shard is served again.

use super::storage::Unavailable;

/// A lease that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Of which shard.
    pub shard: String,
    /// By whom.
    pub node: String,
    /// What the store knows it by; another lease of the same shard has another one.
    pub revision: u64,
    /// The store's own time when it was given, in microseconds since 1970.
    pub store_time: i64,
}

/// Why a lease was not given or not renewed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LeaseRefused {
    /// Somebody else has it.
    Held {
        /// Who.
        by: String,
    },
    /// It ended, or was taken by somebody else since.
    Lost,
    /// The store does not answer.
    Unavailable(Unavailable),
}

impl From<Unavailable> for LeaseRefused {
    fn from(why: Unavailable) -> Self {
        LeaseRefused::Unavailable(why)
    }
}

/// Gives leases. They end by themselves on the store's clock.
pub trait Leases {
    /// Takes the lease of a shard, if nobody has it, or this node has.
    fn take(&mut self, shard: &str, node: &str) -> Result<Lease, LeaseRefused>;

    /// Renews it, if it is still this one.
    fn renew(&mut self, lease: &Lease) -> Result<Lease, LeaseRefused>;

    /// Who has it right now, if anybody. Takes nothing.
    fn holder(&mut self, shard: &str) -> Result<Option<String>, Unavailable>;

    /// Gives it back, so that others need not wait. A lease that is not this one is left alone.
    fn give_back(&mut self, lease: &Lease) -> Result<(), LeaseRefused>;
}
