//! Carries out what an [`Owner`] asks for: takes a shard over, and keeps units in its log.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::owner::{Owner, OwnerAction, OwnerEvent};
use super::parts::bodies;
use super::storage::{LogStorage, Unavailable};
use super::{Body, CannotRead, LogEntry, ShardLog};
use crate::head::Head;
use crate::journal::JournalFault;
use crate::unit::Unit;

/// How long a store that does not answer is waited for before it is asked again.
const PAUSE: Duration = Duration::from_millis(100);

/// Why a shard was not taken over.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotOwn {
    /// The store did not answer in time. What was claimed may be there; it claims nothing for long.
    Away,
    /// The log cannot be read.
    Log(CannotRead),
    /// What was read could not be taken in.
    Reader(JournalFault),
}

impl fmt::Display for CannotOwn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Away => f.write_str("The store did not answer while the shard was taken over."),
            Self::Log(why) => why.fmt(f),
            Self::Reader(why) => why.fmt(f),
        }
    }
}

impl std::error::Error for CannotOwn {}

/// Where a journal's thread keeps units before it keeps them in its own file.
pub trait UnitLog: Send + fmt::Debug {
    /// Makes units durable in the log, all of them or none. After [`JournalFault::Away`] nobody knows; then the
    /// same units are offered again, and no others. After [`JournalFault::Fenced`] nothing is ever kept again.
    fn keep(&mut self, units: &[Unit]) -> Result<(), JournalFault>;

    /// Notes outside of the store how far the log is. What the last units mean is durable by then.
    fn note(&mut self) -> Result<(), JournalFault>;

    /// Says in the log that its owner is done with it.
    fn release(&mut self);
}

/// A shard that this node owns until it is refused.
///
/// These calls block; call them on a thread of your own.
#[derive(Debug)]
pub struct ShardKeeper<P> {
    owner: Owner,
    log: ShardLog<P>,
    /// What the owner asks for and was not done yet.
    todo: Vec<OwnerAction>,
    /// So many parts of what is kept now are in the log.
    kept_parts: usize,
    /// Where this node notes how far the log is.
    head: Option<SharedHead>,
}

/// The note of how far a log is, which a node keeps while it owns the log and while it watches another
/// own it.
pub type SharedHead = Arc<Mutex<Head>>;

impl<P: LogStorage> ShardKeeper<P> {
    /// Takes a shard over: reads its log to the end, handing every entry to `each` in order, and claims
    /// it. `at` is the time in microseconds since 1970. Gives up when the store is away for so long.
    #[allow(clippy::disallowed_methods)] // it waits
    pub fn take_over(
        log: ShardLog<P>,
        at: i64,
        patience: Duration,
        mut each: impl FnMut(LogEntry) -> Result<(), JournalFault>,
    ) -> Result<Self, CannotOwn> {
        let end = Instant::now() + patience;
        let mut keeper =
            Self { owner: Owner::default(), log, todo: Vec::new(), kept_parts: 0, head: None };
        keeper.handle(OwnerEvent::LeaseTaken);
        loop {
            let event = match keeper.todo.pop() {
                Some(OwnerAction::ReadToEnd) => {
                    let mut refused = None;
                    let read = keeper.log.catch_up(|entry| {
                        if refused.is_none() {
                            refused = each(entry).err();
                        }
                    });
                    if let Some(fault) = refused {
                        return Err(CannotOwn::Reader(fault));
                    }
                    match read {
                        Ok(_) => OwnerEvent::ReadToEnd,
                        Err(CannotRead::Unavailable(_)) => OwnerEvent::CannotRead,
                        Err(why) => return Err(CannotOwn::Log(why)),
                    }
                }
                Some(OwnerAction::Claim) => OwnerEvent::Appended(keeper.log.claim(at)),
                Some(OwnerAction::Settle) => OwnerEvent::Appended(keeper.log.settle()),
                Some(OwnerAction::Pause) => {
                    if Instant::now() > end {
                        return Err(CannotOwn::Away);
                    }
                    thread::sleep(PAUSE);
                    OwnerEvent::PauseOver
                }
                Some(OwnerAction::Recover) => return Ok(keeper),
                _ => return Err(CannotOwn::Away),
            };
            keeper.handle(event);
        }
    }

    /// From now on how far the log is gets noted here.
    pub fn note_in(&mut self, head: SharedHead) {
        self.head = Some(head);
    }

    /// The log, as far as this node knows it.
    pub fn log(&self) -> &ShardLog<P> {
        &self.log
    }

    fn handle(&mut self, event: OwnerEvent) {
        let mut more = self.owner.handle(event);
        more.reverse();
        self.todo.extend(more);
    }
}

impl<P: LogStorage> ShardKeeper<P> {
    fn keep_body(&mut self, body: &Body) -> Result<(), JournalFault> {
        // The owner counts what is appended together as one. After a pause it goes on with the same.
        let event = match self.todo.pop() {
            Some(OwnerAction::Pause) => OwnerEvent::PauseOver,
            _ => OwnerEvent::Submitted,
        };
        self.handle(event);
        while let Some(action) = self.todo.pop() {
            let answer = match action {
                OwnerAction::Append { expected, .. } => {
                    self.log.append_body(expected, body.clone())
                }
                OwnerAction::Settle => self.log.settle(),
                // It stays to be done: the next call goes on from there.
                OwnerAction::Pause => {
                    self.todo.push(OwnerAction::Pause);
                    return Err(JournalFault::Away);
                }
                OwnerAction::Tell { .. } => return Ok(()),
                // Refused: the engine is to be dropped.
                _ => {
                    self.todo.clear();
                    return Err(JournalFault::Fenced);
                }
            };
            if let super::Appended::Stuck(Unavailable::Misuse(_)) = answer {
                return Err(JournalFault::Failed);
            }
            self.handle(OwnerEvent::Appended(answer));
        }
        Err(JournalFault::Fenced)
    }
}

impl<P: LogStorage + Send + fmt::Debug> UnitLog for ShardKeeper<P> {
    fn keep(&mut self, units: &[Unit]) -> Result<(), JournalFault> {
        if !self.owner.serves() {
            return Err(JournalFault::Fenced);
        }
        let bodies = bodies(units);
        while let Some(body) = bodies.get(self.kept_parts) {
            self.keep_body(body)?;
            self.kept_parts += 1;
        }
        self.kept_parts = 0;
        Ok(())
    }

    // enforces: I2
    fn note(&mut self) -> Result<(), JournalFault> {
        let Some(head) = &self.head else { return Ok(()) };
        let mut head = head.lock().unwrap_or_else(PoisonError::into_inner);
        head.note(self.log.position()).map_err(|_| JournalFault::Failed)
    }

    fn release(&mut self) {
        self.handle(OwnerEvent::Drain);
        while let Some(action) = self.todo.pop() {
            if action == OwnerAction::Release {
                let answer = self.log.release();
                // Whatever becomes of it: the lease ends soon.
                let _ = self.owner.handle(OwnerEvent::Appended(answer));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Log as _, MemoryFault, MemoryStorage, MemoryStore};
    use super::*;
    use crate::chain::ChainKey;
    use crate::journal::Entry;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn unit(number: u64) -> [Unit; 1] {
        [Unit { entries: vec![Entry { number, bytes: vec![1] }], notes: Vec::new() }]
    }

    fn take(store: &MemoryStore, node: &str) -> (ShardKeeper<MemoryStorage>, usize) {
        let log = ShardLog::new(store.storage("s"), "s", node, ChainKey::new(&[7; 32]));
        let mut seen = 0;
        let each = |_| {
            seen += 1;
            Ok(())
        };
        let keeper = ShardKeeper::take_over(log, 0, PATIENCE, each).unwrap();
        (keeper, seen)
    }

    // covers: I24
    #[test]
    fn a_node_keeps_units_until_another_takes_over_and_never_again() {
        let store = MemoryStore::default();
        let (mut a, seen) = take(&store, "a");
        assert_eq!(seen, 0);
        assert_eq!(a.keep(&unit(1)), Ok(()));
        assert_eq!(a.keep(&unit(2)), Ok(()));
        let (mut b, seen) = take(&store, "b");
        assert_eq!(seen, 3, "the claim and both units");
        assert_eq!(a.keep(&unit(3)), Err(JournalFault::Fenced));
        assert_eq!(a.keep(&unit(3)), Err(JournalFault::Fenced));
        assert_eq!(b.keep(&unit(3)), Ok(()));
        b.release();
        assert_eq!(b.keep(&unit(4)), Err(JournalFault::Fenced));
        assert_eq!(take(&store, "c").1, 6, "two claims, three units, a release");
    }

    #[test]
    fn while_the_store_is_away_or_in_doubt_the_same_is_offered_again_and_kept_once() {
        for fault in [
            MemoryFault::Away,
            MemoryFault::LostAcknowledgement,
            MemoryFault::Lost,
            MemoryFault::Delayed,
        ] {
            let store = MemoryStore::default();
            let (mut a, _) = take(&store, "a");
            store.inject("s", fault);
            store.inject("s", fault);
            assert_eq!(a.keep(&unit(1)), Err(JournalFault::Away), "{fault:?}");
            let _ = a.keep(&unit(1));
            let _ = a.keep(&unit(1));
            while store.in_flight("s") > 0 {
                store.deliver("s", 0);
            }
            assert_eq!(a.keep(&unit(2)), Ok(()), "{fault:?}");
            assert_eq!(take(&store, "b").1, 3, "{fault:?}: the claim and both units");
        }
    }

    /// A unit of three megabytes, which is too much for one entry.
    fn large(number: u64) -> [Unit; 1] {
        let entry = |number| Entry { number, bytes: vec![7; 1000] };
        [Unit { entries: (number..number + 3000).map(entry).collect(), notes: Vec::new() }]
    }

    /// The numbers that count in a log.
    fn numbers(store: &MemoryStore) -> Vec<u64> {
        let mut log = ShardLog::new(store.storage("s"), "s", "r", ChainKey::new(&[7; 32]));
        let mut numbers = Vec::new();
        let each = |_, units: Vec<Unit>| {
            let entries = units.into_iter().flat_map(|unit| unit.entries);
            numbers.extend(entries.map(|entry| entry.number));
        };
        log.read_from(0, &mut { each }).unwrap();
        numbers
    }

    // covers: I11
    #[test]
    fn a_step_that_is_too_much_for_one_entry_is_kept_whole_whatever_the_store_does() {
        use MemoryFault::{Away, Delayed, Lost, LostAcknowledgement};
        for fault in [None, Some(Away), Some(LostAcknowledgement), Some(Lost), Some(Delayed)] {
            let store = MemoryStore::default();
            let (mut a, _) = take(&store, "a");
            fault.into_iter().for_each(|fault| store.inject("s", fault));
            while a.keep(&large(1)) == Err(JournalFault::Away) {
                while store.in_flight("s") > 0 {
                    store.deliver("s", 0);
                }
            }
            assert_eq!(a.keep(&unit(3001)), Ok(()), "{fault:?}");
            assert_eq!(numbers(&store), (1..=3001).collect::<Vec<_>>(), "{fault:?}");
        }
    }

    // covers: I11, I24
    #[test]
    fn of_a_step_that_was_cut_off_nothing_counts_and_the_next_owner_goes_on() {
        let store = MemoryStore::default();
        let (mut a, _) = take(&store, "a");
        assert_eq!(a.keep(&unit(1)), Ok(()));
        // Its first part is there, and no other.
        let bodies = bodies(&large(2));
        assert!(bodies.len() > 2);
        assert_eq!(a.keep_body(&bodies[0]), Ok(()));
        let (mut b, seen) = take(&store, "b");
        assert_eq!(seen, 3, "the claim, the unit, and the part");
        assert_eq!(a.keep_body(&bodies[1]), Err(JournalFault::Fenced));
        assert_eq!(b.keep(&unit(2)), Ok(()));
        assert_eq!(numbers(&store), [1, 2]);
    }

    #[test]
    fn a_claim_in_doubt_is_settled_and_a_store_that_stays_away_is_given_up() {
        let store = MemoryStore::default();
        store.inject("s", MemoryFault::LostAcknowledgement);
        let (mut a, _) = take(&store, "a");
        assert_eq!(a.keep(&unit(1)), Ok(()));
        for _ in 0..100 {
            store.inject("s", MemoryFault::Away);
        }
        let log = ShardLog::new(store.storage("s"), "s", "b", ChainKey::new(&[7; 32]));
        let refused = ShardKeeper::take_over(log, 0, Duration::ZERO, |_| Ok(()));
        assert_eq!(refused.map(drop), Err(CannotOwn::Away));
    }
}
