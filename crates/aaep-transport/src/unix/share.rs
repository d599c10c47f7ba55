//! How many connections one process has: a program that takes all it can get leaves room for others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The connections of a listener.
pub(super) struct ConnectionSlots {
    all: Arc<Semaphore>,
    most_of_one: usize,
    by_process: Arc<Mutex<BTreeMap<i32, usize>>>,
}

/// The place that a connection takes.
pub(super) struct ConnectionSlot {
    process: Option<i32>,
    by_process: Arc<Mutex<BTreeMap<i32, usize>>>,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionSlots {
    pub(super) fn new(most: usize, most_of_one: usize) -> Self {
        Self {
            all: Arc::new(Semaphore::new(most.min(Semaphore::MAX_PERMITS))),
            most_of_one,
            by_process: Arc::default(),
        }
    }

    // enforces: I29
    /// A place for a connection of this process; the error says which bound is reached.
    pub(super) fn take(&self, process: Option<i32>) -> Result<ConnectionSlot, &'static str> {
        let permit = Arc::clone(&self.all).try_acquire_owned();
        let permit = permit.map_err(|_| "all connections are taken (socket_connections)")?;
        if let Some(process) = process {
            let mut taken = self.by_process.lock().unwrap_or_else(PoisonError::into_inner);
            let count = taken.entry(process).or_default();
            if *count >= self.most_of_one {
                return Err(
                    "one process has its share of the connections (socket_connections_per_process)",
                );
            }
            *count += 1;
        }
        Ok(ConnectionSlot { process, by_process: Arc::clone(&self.by_process), _permit: permit })
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let Some(process) = self.process else { return };
        let mut taken = self.by_process.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = taken.get_mut(&process) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&process);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I29
    #[test]
    fn one_process_cannot_take_every_place() {
        let places = ConnectionSlots::new(80, 20);
        let take = |process| places.take(Some(process)).ok();
        let loud: Vec<_> = (0..20).map(|_| take(1).unwrap()).collect();
        assert!(take(1).is_none());
        let quiet = take(2).unwrap();
        drop(loud);
        assert_eq!(places.by_process.lock().unwrap().len(), 1, "who has left is forgotten");
        assert!(take(1).is_some());
        drop(quiet);
        // The bound of all holds as well.
        let all: Vec<_> = (0..80).map(|process| take(process).unwrap()).collect();
        assert!(take(100).is_none());
        drop(all);
    }
}
