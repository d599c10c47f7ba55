//! Reading what is large: apart from the threads that serve everybody, and in turn.
//!
//! A body of a few kilobytes is read by the connection that brought it. Reading a megabyte takes
//! milliseconds, and enough of those would keep every worker of the runtime busy. So large ones are
//! read on the blocking pool: one at a time for each principal, and for all together no more than half
//! of the machine's processors. A principal holds a bounded number of large bodies at once (I29).

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread;
use std::time::Instant;

use aaep_engine::{Handshake, Principal};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::access::{AuthenticatedPeer, account_of};
use crate::core::held;
use crate::hub::{Hub, Stopped};
use crate::pace;

/// Bytes that are read by the connection itself.
pub(crate) const SMALL_BYTES: usize = 16 * 1024;

/// Principals that nobody waits for are forgotten when more than this many are known.
const KNOWN: usize = 64;

/// Who may read something large, and when.
pub(crate) struct Turns {
    /// As many as may be read at once, by all principals.
    readers: Arc<Semaphore>,
    /// Large bodies that one principal may hold.
    bodies: usize,
    shares: Mutex<BTreeMap<Arc<str>, Weak<ReadShare>>>,
}

/// One principal's share.
struct ReadShare {
    bodies: Arc<Semaphore>,
    turn: Arc<Semaphore>,
}

/// The right to read something large, or to hold its bytes.
pub(crate) struct Turn {
    _permits: [Option<OwnedSemaphorePermit>; 2],
    /// Kept, so that the next one finds the same share.
    _share: Arc<ReadShare>,
}

impl Turns {
    pub(crate) fn new(bodies: usize) -> Self {
        let processors = thread::available_parallelism().map_or(1, usize::from);
        Self {
            readers: Arc::new(Semaphore::new((processors / 2).max(1))),
            bodies: bodies.min(Semaphore::MAX_PERMITS),
            shares: Mutex::default(),
        }
    }

    fn share(&self, principal: &Principal) -> Arc<ReadShare> {
        // Agents without a token have one share together: each could have any number of secrets.
        let account = account_of(&principal.name);
        let mut shares = self.shares.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = shares.get(account).and_then(Weak::upgrade) {
            return share;
        }
        if shares.len() >= KNOWN {
            shares.retain(|_, share| share.strong_count() > 0);
        }
        let share = Arc::new(ReadShare {
            bodies: Arc::new(Semaphore::new(self.bodies)),
            turn: Arc::new(Semaphore::new(1)),
        });
        shares.insert(account.into(), Arc::downgrade(&share));
        share
    }

    // enforces: I22, I29
    /// Waits until this principal may hold another large body.
    pub(crate) async fn hold(&self, principal: &Principal) -> Result<Turn, Stopped> {
        let share = self.share(principal);
        let permit = share.bodies.clone().acquire_owned().await.map_err(|_| Stopped)?;
        Ok(Turn { _permits: [Some(permit), None], _share: share })
    }

    /// Waits until this principal may read something large. Its own come one after the other, so
    /// nobody else waits behind more than one of them.
    async fn read(&self, principal: &Principal) -> Result<Turn, Stopped> {
        let share = self.share(principal);
        let own = share.turn.clone().acquire_owned().await.map_err(|_| Stopped)?;
        let all = self.readers.clone().acquire_owned().await.map_err(|_| Stopped)?;
        Ok(Turn { _permits: [Some(own), Some(all)], _share: share })
    }
}

impl Hub {
    // enforces: I29
    /// Judges new terms together with what the subscription has, before the core is taken.
    pub(crate) async fn judge(
        &self,
        known: &AuthenticatedPeer,
        mut message: Handshake,
    ) -> Result<Handshake, Stopped> {
        let Some(id) = message.renegotiates() else { return Ok(message) };
        let peer = known.clone();
        if let Some(before) = self.look(move |core| core.asked(&peer, id)).await? {
            held::assert_free();
            message.judge(before, &known.principal, &self.0.offer.load());
        }
        Ok(message)
    }

    // enforces: I29
    /// Waits until this principal may send a handshake message: its own come one at a time, so nobody
    /// else waits behind more than one of them, and new terms rely on those before.
    pub(crate) async fn handshake_turn(&self, principal: &Principal) -> Result<Turn, Stopped> {
        let share = self.0.turns.share(principal);
        let own = share.turn.clone().acquire_owned().await.map_err(|_| Stopped)?;
        Ok(Turn { _permits: [Some(own), None], _share: share })
    }

    // enforces: I29
    /// Reads a body of so many bytes, before the core is taken. A large one is read elsewhere; its
    /// turn is to be kept until the core is done with it as well.
    pub(crate) async fn read_apart<T: Send + 'static>(
        &self,
        principal: &Principal,
        bytes: usize,
        read: impl FnOnce() -> T + Send + 'static,
    ) -> Result<(T, Option<Turn>), Stopped> {
        if bytes <= SMALL_BYTES {
            return Ok((read(), None));
        }
        let turn = self.0.turns.read(principal).await?;
        let timed = move || {
            let begun = Instant::now();
            (read(), begun.elapsed())
        };
        let (read, took) = tokio::task::spawn_blocking(timed).await.map_err(|_| Stopped)?;
        pace::done_elsewhere(took);
        Ok((read, Some(turn)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_engine::Role;
    use std::time::Duration;
    use tokio::time::timeout;

    const SOON: Duration = Duration::from_millis(50);

    fn principal(name: &str) -> Principal {
        Principal::new(name, Role::Agent, "ann")
    }

    // covers: I29
    #[tokio::test]
    async fn one_principal_reads_one_large_thing_at_a_time_and_others_only_wait_for_that() {
        let turns = Turns { readers: Arc::new(Semaphore::new(2)), ..Turns::new(2) };
        let first = turns.read(&principal("loud")).await.unwrap();
        for _ in 0..3 {
            assert!(timeout(SOON, turns.read(&principal("loud"))).await.is_err());
        }
        let other = timeout(SOON, turns.read(&principal("quiet"))).await;
        assert!(other.is_ok(), "somebody else's turn does not depend on how many wait");
        drop(first);
        assert!(timeout(SOON, turns.read(&principal("loud"))).await.is_ok());
    }

    // covers: I22, I29
    #[tokio::test]
    async fn one_principal_holds_so_many_large_bodies_and_no_more() {
        let turns = Turns::new(2);
        let loud = principal("loud");
        let held = [turns.hold(&loud).await.unwrap(), turns.hold(&loud).await.unwrap()];
        assert!(timeout(SOON, turns.hold(&loud)).await.is_err());
        assert!(timeout(SOON, turns.hold(&principal("quiet"))).await.is_ok());
        drop(held);
        assert!(timeout(SOON, turns.hold(&loud)).await.is_ok());
    }

    #[test]
    fn principals_that_nobody_waits_for_are_forgotten() {
        let turns = Turns::new(2);
        for number in 0..10 * KNOWN {
            drop(turns.share(&principal(&number.to_string())));
        }
        assert!(turns.shares.lock().unwrap().len() <= KNOWN);
    }
}
