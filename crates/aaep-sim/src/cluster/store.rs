//! The store as one node sees it, and what breaks in it when a rule is broken.

use aaep_store::log::{LogStorage, MemoryStorage, Put, Unavailable};

use super::Broken;

#[derive(Clone, Debug)]
pub(super) struct Store {
    pub(super) inner: MemoryStorage,
    pub(super) broken: Option<Broken>,
    /// What is put now is a claim.
    pub(super) claims: bool,
    /// The node believes that its lease lasts.
    pub(super) has_lease: bool,
}

impl LogStorage for Store {
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put {
        let anywhere = match self.broken {
            Some(Broken::AppendsAnywhere) => true,
            Some(Broken::ClaimsUnread) => self.claims,
            Some(Broken::TrustsLease) => self.has_lease,
            _ => false,
        };
        match self.inner.put(place, bytes) {
            Put::Taken if anywhere => {
                let end = self.inner.head().unwrap_or_default();
                self.inner.put(end + 1, bytes)
            }
            other => other,
        }
    }

    fn get(&mut self, from: u64, at_most: usize) -> Result<Vec<Vec<u8>>, Unavailable> {
        self.inner.get(from, at_most)
    }

    fn head(&mut self) -> Result<u64, Unavailable> {
        self.inner.head()
    }
}
