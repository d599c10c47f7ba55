//! The tests that every store of logs has to pass. They panic at the first broken promise; they are
//! meant for the tests of a store and for nothing else.
#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)] // a failing test panics
#![allow(clippy::missing_panics_doc)]

use std::collections::BTreeSet;
use std::thread;

use super::{
    Appended, CannotRead, EntryDamage, LeaseRefused, Leases, Log, LogStorage, MAX_ENTRY_BYTES,
    MemoryFault, MemoryStore, Put, ShardLog, Unavailable,
};
use crate::chain::ChainKey;
use crate::contract::batch;
use crate::unit::Unit;

/// How many entries the long part of [`log_contract`] appends.
const MANY: u64 = 2_000;

fn key() -> ChainKey {
    ChainKey::new(&[7; 32])
}

fn unit(number: u64) -> Vec<Unit> {
    vec![Unit { entries: batch([number]), notes: Vec::new() }]
}

fn log<P: LogStorage>(storage: P, shard: &str, node: &str) -> ShardLog<P> {
    ShardLog::new(storage, shard, node, key())
}

/// A log that this node has claimed.
fn claimed<P: LogStorage>(storage: P, shard: &str, node: &str) -> ShardLog<P> {
    let mut log = log(storage, shard, node);
    log.catch_up(|_| {}).unwrap();
    assert!(matches!(log.claim(1), Appended::Durable { .. }));
    log
}

/// What every store promises of its places. `open` gives a node's connection to the places of a shard;
/// shards are empty at first.
pub fn storage_contract<P: LogStorage + Send>(open: impl Fn(&str) -> P + Sync) {
    places_are_taken_in_order_and_once(&mut open("order"));
    the_same_put_again_is_the_same_put(&mut open("again"), &mut open("again"));
    large_entries_come_back_whole(&mut open("large"));
    shards_have_nothing_to_do_with_each_other(&mut open("one"), &mut open("two"));
    one_wins_each_race(&open);
}

fn places_are_taken_in_order_and_once(storage: &mut impl LogStorage) {
    assert_eq!(storage.head(), Ok(0));
    assert_eq!(storage.get(1, 10), Ok(vec![]));
    assert_eq!(storage.put(2, b"too early"), Put::Taken, "place 1 is empty");
    assert_eq!(storage.put(1, b"one"), Put::Durable);
    assert_eq!(storage.put(1, b"other"), Put::Taken);
    assert_eq!(storage.put(3, b"too early"), Put::Taken);
    assert_eq!(storage.put(2, b"two"), Put::Durable);
    assert_eq!(storage.put(1, b"other"), Put::Taken);
    assert_eq!(storage.head(), Ok(2));
    assert_eq!(storage.get(1, 10), Ok(vec![b"one".to_vec(), b"two".to_vec()]));
    assert_eq!(storage.get(2, 1), Ok(vec![b"two".to_vec()]));
    assert_eq!(storage.get(3, 1), Ok(vec![]));
}

fn the_same_put_again_is_the_same_put(one: &mut impl LogStorage, other: &mut impl LogStorage) {
    assert_eq!(one.put(1, b"one"), Put::Durable);
    assert_eq!(one.put(1, b"one"), Put::Durable);
    assert_eq!(other.put(1, b"one"), Put::Durable);
    assert_eq!(other.put(2, b"two"), Put::Durable);
    assert_eq!(one.put(1, b"one"), Put::Durable, "also after others");
    assert_eq!(one.head(), Ok(2), "nothing was doubled");
}

fn large_entries_come_back_whole(storage: &mut impl LogStorage) {
    let entry = |fill: u8| vec![fill; MAX_ENTRY_BYTES];
    for place in 1..=12 {
        assert_eq!(storage.put(place, &entry(place as u8)), Put::Durable);
    }
    let mut seen = 0;
    while seen < 12 {
        let more = storage.get(seen + 1, 100).unwrap();
        assert!(!more.is_empty());
        for bytes in more {
            seen += 1;
            assert_eq!(bytes, entry(seen as u8));
        }
    }
}

fn shards_have_nothing_to_do_with_each_other(one: &mut impl LogStorage, two: &mut impl LogStorage) {
    assert_eq!(one.put(1, b"one"), Put::Durable);
    assert_eq!(two.head(), Ok(0));
    assert_eq!(two.put(1, b"two"), Put::Durable);
    assert_eq!(one.get(1, 10), Ok(vec![b"one".to_vec()]));
}

fn one_wins_each_race<P: LogStorage + Send>(open: &(impl Fn(&str) -> P + Sync)) {
    const RACERS: u8 = 4;
    const ROUNDS: u64 = 50;
    let won: Vec<BTreeSet<u64>> = thread::scope(|scope| {
        let racers: Vec<_> = (0..RACERS)
            .map(|racer| {
                scope.spawn(move || {
                    let (mut storage, mut won) = (open("race"), BTreeSet::new());
                    for place in 1..=ROUNDS {
                        match storage.put(place, &[racer]) {
                            Put::Durable => assert!(won.insert(place)),
                            Put::Taken => {}
                            other => panic!("place {place}: {other:?}"),
                        }
                        // A place too early is refused like one that is taken.
                        while storage.head().unwrap() < place {}
                    }
                    won
                })
            })
            .collect();
        racers.into_iter().map(|racer| racer.join().unwrap()).collect()
    });
    let entries = open("race").get(1, 1000).unwrap();
    assert_eq!(entries.len() as u64, ROUNDS);
    for (place, entry) in (1..).zip(entries) {
        for (racer, won) in won.iter().enumerate() {
            let theirs = entry == [racer as u8];
            assert_eq!(won.contains(&place), theirs, "place {place}, racer {racer}");
        }
    }
}

/// What a log on such places promises.
pub fn log_contract<P: LogStorage>(open: impl Fn(&str) -> P) {
    a_node_without_a_claim_appends_nothing(&open);
    a_takeover_fences_the_node_before(&open);
    a_claim_before_the_end_was_read_is_refused(&open);
    a_released_shard_says_so(&open);
    another_key_reads_and_claims_nothing(&open);
    what_is_too_large_is_refused_before_it_is_sent(&open);
    long_log(MANY, &open);
}

fn a_node_without_a_claim_appends_nothing<P: LogStorage>(open: &impl Fn(&str) -> P) {
    let mut a = log(open("unclaimed"), "unclaimed", "a");
    assert_eq!(a.append(0, &unit(1)), Appended::Fenced);
    assert_eq!(a.head(), Ok(0));
}

fn a_takeover_fences_the_node_before<P: LogStorage>(open: &impl Fn(&str) -> P) {
    let mut a = claimed(open("fence"), "fence", "a");
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 });
    let mut b = claimed(open("fence"), "fence", "b");
    assert_eq!(a.append(2, &unit(2)), Appended::Fenced);
    assert_eq!(a.epoch(), None);
    assert_eq!(a.append(2, &unit(2)), Appended::Fenced, "and stays so");
    assert_eq!(b.append(3, &unit(2)), Appended::Durable { head: 4 });
    let mut seen = Vec::new();
    assert_eq!(a.catch_up(|entry| seen.push((entry.epoch, entry.node))), Ok(4));
    assert_eq!(seen, [(2, "b".to_owned()), (2, "b".to_owned())]);
    assert_eq!(a.append(4, &unit(3)), Appended::Fenced, "reading is not claiming");
    assert_eq!(a.claim(2), Appended::Durable { head: 5 });
    assert_eq!(b.append(4, &unit(3)), Appended::Fenced);
}

fn a_claim_before_the_end_was_read_is_refused<P: LogStorage>(open: &impl Fn(&str) -> P) {
    let mut late = log(open("claim"), "claim", "late");
    late.catch_up(|_| {}).unwrap();
    claimed(open("claim"), "claim", "quick");
    assert_eq!(late.claim(1), Appended::Fenced);
    late.catch_up(|_| {}).unwrap();
    assert_eq!(late.claim(1), Appended::Durable { head: 2 });
    assert_eq!(late.epoch(), Some(2));
}

fn a_released_shard_says_so<P: LogStorage>(open: &impl Fn(&str) -> P) {
    let mut a = claimed(open("release"), "release", "a");
    assert_eq!(a.release(), Appended::Durable { head: 2 });
    assert_eq!(a.append(2, &unit(1)), Appended::Fenced);
    let mut b = log(open("release"), "release", "b");
    b.catch_up(|_| {}).unwrap();
    assert!(b.known().released);
}

fn another_key_reads_and_claims_nothing<P: LogStorage>(open: &impl Fn(&str) -> P) {
    claimed(open("key"), "key", "a");
    let mut other = ShardLog::new(open("key"), "key", "b", ChainKey::new(&[8; 32]));
    let Err(CannotRead::Damaged(damage)) = other.catch_up(|_| {}) else { panic!("it was read") };
    assert!(matches!(damage.why, EntryDamage::OtherKey { .. }), "{damage}");
    assert_eq!(damage.place, 1);
    assert_eq!(other.claim(1), Appended::Fenced);
}

fn what_is_too_large_is_refused_before_it_is_sent<P: LogStorage>(open: &impl Fn(&str) -> P) {
    let mut a = claimed(open("bound"), "bound", "a");
    let mut large = unit(1);
    large[0].entries[0].bytes = vec![0; MAX_ENTRY_BYTES];
    assert!(matches!(a.append(1, &large), Appended::Stuck(Unavailable::Misuse(_))));
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 });
}

/// So many entries are read back in order, from the middle on as well. Part of [`log_contract`] with
/// two thousand; a store should be tried with a million once.
pub fn long_log<P: LogStorage>(many: u64, open: impl Fn(&str) -> P) {
    let mut a = claimed(open("many"), "many", "a");
    for number in 1..=many {
        assert_eq!(a.append(number, &unit(number)), Appended::Durable { head: number + 1 });
    }
    let mut next = 1001;
    let mut b = log(open("many"), "many", "b");
    let read = b.read_from(1001, &mut |place, units| {
        assert_eq!((place, units), (next + 1, unit(next)));
        next += 1;
    });
    assert_eq!((read, next), (Ok(many + 1), many + 1));
    assert_eq!(a.head(), Ok(many + 1));
}

/// What a log promises while the store loses, delays, doubles and forgets.
pub fn doubt_contract(store: &MemoryStore) {
    for fault in [MemoryFault::LostAcknowledgement, MemoryFault::Delayed, MemoryFault::Lost] {
        doubt_is_settled_once(store, fault);
        doubt_ends_in_a_fence(store, fault);
    }
    a_late_double_takes_no_second_place(store);
    nothing_else_is_sent_while_in_doubt(store);
    a_store_that_is_away_keeps_nothing(store);
    holes_and_flipped_bits_are_named(store);
    a_lost_tail_is_an_old_copy(store);
    stale_reads_claim_nothing(store);
    a_stale_read_is_no_damage(store);
}

fn settled(log: &mut ShardLog<super::MemoryStorage>) -> Appended {
    (0..3).map(|_| log.settle()).find(|answer| *answer != Appended::InDoubt).unwrap()
}

fn doubt_is_settled_once(store: &MemoryStore, fault: MemoryFault) {
    let shard = &format!("settle {fault:?}");
    let mut a = claimed(store.storage(shard), shard, "a");
    store.inject(shard, fault);
    assert_eq!(a.append(1, &unit(1)), Appended::InDoubt);
    assert_eq!(settled(&mut a), Appended::Durable { head: 2 });
    assert_eq!(a.append(2, &unit(2)), Appended::Durable { head: 3 });
    // Whatever still flies takes no place any more.
    assert!(!store.deliver(shard, 0));
    assert_eq!(a.head(), Ok(3));
}

fn doubt_ends_in_a_fence(store: &MemoryStore, fault: MemoryFault) {
    let shard = &format!("doubt and fence {fault:?}");
    let mut a = claimed(store.storage(shard), shard, "a");
    store.inject(shard, fault);
    assert_eq!(a.append(1, &unit(1)), Appended::InDoubt);
    let landed = fault == MemoryFault::LostAcknowledgement;
    let mut b = claimed(store.storage(shard), shard, "b");
    let expected = if landed { Appended::Durable { head: 2 } } else { Appended::Fenced };
    assert_eq!(settled(&mut a), expected);
    assert!(!store.deliver(shard, 0), "it arrives when its place is taken");
    let head = b.known().place;
    assert_eq!(a.append(a.known().place, &unit(2)), Appended::Fenced);
    assert_eq!(b.append(head, &unit(2)), Appended::Durable { head: head + 1 });
}

fn a_late_double_takes_no_second_place(store: &MemoryStore) {
    let mut a = claimed(store.storage("double"), "double", "a");
    store.inject("double", MemoryFault::Doubled);
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 });
    assert_eq!(store.in_flight("double"), 1);
    assert!(!store.deliver("double", 0));
    assert_eq!(a.append(2, &unit(2)), Appended::Durable { head: 3 });
    assert_eq!(log(store.storage("double"), "double", "b").catch_up(|_| {}), Ok(3));
}

fn nothing_else_is_sent_while_in_doubt(store: &MemoryStore) {
    let mut a = claimed(store.storage("else"), "else", "a");
    store.inject("else", MemoryFault::Delayed);
    assert_eq!(a.append(1, &unit(1)), Appended::InDoubt);
    assert_eq!(a.append(1, &unit(9)), Appended::InDoubt, "other bytes for the same place");
    assert_eq!(a.head(), Ok(1));
    assert!(store.deliver("else", 0));
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 }, "the same bytes settle it");
}

fn a_store_that_is_away_keeps_nothing(store: &MemoryStore) {
    let mut a = claimed(store.storage("away"), "away", "a");
    store.inject("away", MemoryFault::Away);
    assert!(matches!(a.append(1, &unit(1)), Appended::Stuck(Unavailable::Away(_))));
    assert_eq!(a.head(), Ok(1));
    assert_eq!(a.append(1, &unit(2)), Appended::Durable { head: 2 }, "and other units may follow");
}

fn holes_and_flipped_bits_are_named(store: &MemoryStore) {
    let mut a = claimed(store.storage("hole"), "hole", "a");
    for number in 1..=8 {
        assert_eq!(a.append(number, &unit(number)), Appended::Durable { head: number + 1 });
    }
    let read = || log(store.storage("hole"), "hole", "b").catch_up(|_| {}).unwrap_err();
    let damage = || match read() {
        CannotRead::Damaged(damage) => (damage.place, damage.why),
        other => panic!("{other:?}"),
    };
    store.flip_bit("hole", 6, 180);
    assert_eq!(damage(), (6, EntryDamage::NotSealed));
    store.tear_hole("hole", 4);
    assert_eq!(damage(), (4, EntryDamage::Missing));
}

fn a_lost_tail_is_an_old_copy(store: &MemoryStore) {
    let mut a = claimed(store.storage("tail"), "tail", "a");
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 });
    assert_eq!(a.append(2, &unit(2)), Appended::Durable { head: 3 });
    store.lose_tail("tail", 2);
    assert_eq!(a.append(3, &unit(3)), Appended::Fenced);
    assert_eq!(a.catch_up(|_| {}), Err(CannotRead::OldCopy { known: 3, found: 1 }));
    claimed(store.storage("tail"), "tail", "b");
    let mut other = claimed(store.storage("tail"), "tail", "c");
    assert_eq!(other.append(3, &unit(9)), Appended::Durable { head: 4 });
    // As long as before and longer, but another history.
    let Err(CannotRead::Damaged(damage)) = a.catch_up(|_| {}) else { panic!("it was believed") };
    assert_eq!(damage.why, EntryDamage::NotLinked);
}

fn stale_reads_claim_nothing(store: &MemoryStore) {
    let mut a = claimed(store.storage("stale"), "stale", "a");
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 });
    let mut b = log(store.storage("stale"), "stale", "b");
    for _ in 0..5 {
        store.inject("stale", MemoryFault::StaleRead(1));
    }
    let read = b.catch_up(|_| {});
    assert!(matches!(read, Err(CannotRead::Damaged(_))), "{read:?}");
    assert_eq!(b.claim(1), Appended::Fenced);
    assert_eq!(a.append(2, &unit(2)), Appended::Durable { head: 3 });
}

fn a_stale_read_is_no_damage(store: &MemoryStore) {
    let mut a = claimed(store.storage("behind"), "behind", "a");
    assert_eq!(a.append(1, &unit(1)), Appended::Durable { head: 2 });
    for _ in 0..3 {
        store.inject("behind", MemoryFault::StaleRead(1));
    }
    let mut b = log(store.storage("behind"), "behind", "b");
    assert_eq!(b.catch_up(|_| {}), Ok(2), "it was asked for again");
}

/// What leases promise. `wait` lets a lease end.
pub fn leases_contract<L: Leases>(open: impl Fn() -> L, wait: impl Fn()) {
    let (mut a, mut b) = (open(), open());
    let first = a.take("lease", "a").unwrap();
    let held = LeaseRefused::Held { by: "a".into() };
    assert_eq!(b.take("lease", "b"), Err(held.clone()));
    b.take("another", "b").unwrap();
    let renewed = a.renew(&first).unwrap();
    assert_ne!(renewed.revision, first.revision);
    assert!(renewed.store_time >= first.store_time);
    assert_eq!(a.renew(&first), Err(LeaseRefused::Lost), "it was renewed since");
    b.give_back(&first).unwrap();
    assert_eq!(b.take("lease", "b"), Err(held), "an old lease gives nothing back");
    wait();
    let taken = b.take("lease", "b").unwrap();
    assert_eq!(a.renew(&renewed), Err(LeaseRefused::Lost));
    a.give_back(&renewed).unwrap();
    assert_eq!(a.take("lease", "a"), Err(LeaseRefused::Held { by: "b".into() }));
    b.give_back(&taken).unwrap();
    a.take("lease", "a").unwrap();
}

/// What every log promises to its only node, also the embedded journal. `open` gives an empty one.
pub fn single_log_contract<L: Log>(mut open: impl FnMut() -> L) {
    let mut log = open();
    let start = log.head().unwrap();
    assert_eq!(log.append(start + 1, &unit(1)), Appended::Fenced, "it is not that long");
    let Appended::Durable { head } = log.append(start, &unit(1)) else { panic!("not kept") };
    assert_eq!(log.append(start, &unit(2)), Appended::Fenced, "it is longer");
    let two = Unit { entries: batch(2..=3), notes: Vec::new() };
    let Appended::Durable { head: end } = log.append(head, &[two]) else { panic!("not kept") };
    assert_eq!(log.head(), Ok(end));
    let mut read = |after| {
        let mut entries = Vec::new();
        let mut each = |_, units: Vec<Unit>| {
            entries.extend(units.into_iter().flat_map(|unit| unit.entries));
        };
        assert_eq!(log.read_from(after, &mut each), Ok(end));
        entries
    };
    assert_eq!(read(0), batch(1..=3));
    assert_eq!(read(head), batch(2..=3));
    assert_eq!(read(end), []);
}
