//! Logs and leases on three real NATS servers, and what their faults do to them.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers

#[path = "../../../../testing/nats.rs"]
mod nats;
#[path = "../postgres/proxy.rs"]
mod proxy;
#[path = "../../../../testing/skipped.rs"]
mod skipped;

use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use aaep_store::contract::batch;
use aaep_store::log::jetstream::{
    JetStreamRefused, JetStreamStorage, JetStreamStore, UnsafeCluster,
};
use aaep_store::log::{
    Appended, Body, Log, LogStorage, MAX_ENTRY_BYTES, Put, ShardLog, Unavailable, contract,
};
use aaep_store::{ChainKey, Unit};
use nats::Cluster;
use proxy::{CUT_ANSWERS, CUT_REQUESTS, PASS, Proxy};
use skipped::skipped;

/// Short enough that a lost answer does not hold a test up.
const LIMIT: Duration = Duration::from_secs(2);

fn cluster(count: usize, syncs_always: bool) -> Option<Cluster> {
    Cluster::start(count, syncs_always).map_err(|why| skipped(&why)).ok()
}

fn unit(number: u64) -> [Unit; 1] {
    [Unit { entries: batch([number]), notes: Vec::new() }]
}

fn log(storage: JetStreamStorage, node: &str) -> ShardLog<JetStreamStorage> {
    ShardLog::new(storage, "s", node, ChainKey::new(&[7; 32]))
}

fn claimed(store: &JetStreamStore, node: &str) -> ShardLog<JetStreamStorage> {
    let mut log = log(store.storage("s"), node);
    log.catch_up(|_| {}).unwrap();
    assert!(matches!(log.claim(0), Appended::Durable { .. }));
    log
}

/// The numbers of the records in the log of the shard, in order.
fn numbers(store: &JetStreamStore) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut log = log(store.storage("s"), "reader");
    log.catch_up(|entry| {
        if let Body::Units(units) = entry.body {
            numbers.extend(units.into_iter().flat_map(|unit| unit.entries).map(|one| one.number));
        }
    })
    .unwrap();
    numbers
}

/// Settles a doubt, however long the servers take to find a leader.
fn settled(log: &mut ShardLog<JetStreamStorage>) -> Appended {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match log.settle() {
            Appended::InDoubt if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
            answer => return answer,
        }
    }
}

/// Appends until it is durable, whatever the servers go through.
fn append(log: &mut ShardLog<JetStreamStorage>, number: u64) {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match log.append(log.known().place, &unit(number)) {
            Appended::Durable { .. } => return,
            Appended::InDoubt => {
                assert!(matches!(settled(log), Appended::Durable { .. }));
                return;
            }
            Appended::Stuck(_) if Instant::now() < end => thread::sleep(Duration::from_millis(50)),
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn three_servers_that_sync_always_keep_the_contract() {
    let Some(cluster) = cluster(3, true) else { return };
    let store = JetStreamStore::open(&cluster.address()).unwrap();
    assert_eq!(store.servers(), ["n0", "n1", "n2"]);
    contract::storage_contract(|shard| store.storage(shard));
    contract::log_contract(|shard| store.storage(shard));
    let wait = || thread::sleep(JetStreamStore::LEASE + Duration::from_millis(500));
    contract::leases_contract(|| store.leases(), wait);
    assert_eq!(store.decide("shards", "16").unwrap(), "16");
    let again = JetStreamStore::open(&cluster.address()).unwrap();
    assert_eq!(again.decide("shards", "64").unwrap(), "16", "the first value stands");
    within_an_asynchronous_runtime_it_refuses(&store);
    a_replica_with_a_damaged_disk_is_read_around(cluster);
}

fn within_an_asynchronous_runtime_it_refuses(store: &JetStreamStore) {
    let mut storage = store.storage("within");
    assert_eq!(storage.put(1, b"one"), Put::Durable);
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let refused = runtime.block_on(async { storage.put(2, b"two") });
    assert!(matches!(refused, Put::Refused(Unavailable::Misuse(_))), "{refused:?}");
    assert_eq!(storage.put(2, b"two"), Put::Durable);
}

/// The contract has left a shard of several blocks. In one of them on one disk a bit is turned over.
fn a_replica_with_a_damaged_disk_is_read_around(mut cluster: Cluster) {
    cluster.kill(2);
    let mut blocks = Vec::new();
    find_blocks(&cluster.store(2), &mut blocks);
    blocks.retain(|path| path.to_string_lossy().contains("aaep-log-large"));
    blocks.sort();
    assert!(blocks.len() > 1, "{blocks:?}");
    let mut bytes = fs::read(&blocks[0]).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&blocks[0], bytes).unwrap();
    cluster.restart(2);
    cluster.wait();
    // A server answers from its own replica where it has one: so this asks the damaged one. Whether that
    // one has mended itself from the others by then is its own affair; what is read has to be whole.
    let its = nats::address(&format!("127.0.0.1:{}", cluster.port(2)));
    let mut storage = JetStreamStore::open(&its).unwrap().storage("large");
    for _ in 0..12 {
        let mut seen = 0;
        while seen < 12 {
            let more = storage.get(seen + 1, 100).unwrap();
            assert!(!more.is_empty(), "entry {} was not found on any replica", seen + 1);
            for entry in more {
                seen += 1;
                assert!(entry == vec![seen as u8; MAX_ENTRY_BYTES], "entry {seen}");
            }
        }
    }
    println!("{} entries were read from another replica", storage.mended());
}

fn find_blocks(place: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(place).unwrap().flatten() {
        let path = entry.path();
        if path.is_dir() {
            find_blocks(&path, found);
        } else if path.extension().is_some_and(|ending| ending == "blk") {
            found.push(path);
        }
    }
}

/// Whatever was acknowledged is there after every crash, once and in order.
// covers: I24
#[test]
fn servers_that_are_killed_lose_nothing_and_a_minority_keeps_nothing() {
    let Some(mut cluster) = cluster(3, true) else { return };
    let store = JetStreamStore::open_within(&cluster.address(), LIMIT).unwrap();
    let mut a = claimed(&store, "a");
    let mut next = 0;
    let mut several = |a: &mut ShardLog<_>| {
        for _ in 0..20 {
            next += 1;
            append(a, next);
        }
    };
    // One of them is the leader.
    for index in 0..3 {
        several(&mut a);
        cluster.kill(index);
        several(&mut a);
        cluster.restart(index);
        cluster.wait();
    }
    assert_eq!(numbers(&store), (1..=120).collect::<Vec<_>>());
    let mut zombie = claimed(&store, "b");
    cluster.kill(0);
    cluster.kill(1);
    let alone = zombie.append(zombie.known().place, &unit(121));
    assert!(matches!(alone, Appended::InDoubt | Appended::Stuck(_)), "{alone:?}");
    cluster.restart(0);
    cluster.restart(1);
    cluster.wait();
    if alone == Appended::InDoubt {
        assert!(matches!(settled(&mut zombie), Appended::Durable { .. }));
    } else {
        append(&mut zombie, 121);
    }
    assert_eq!(a.append(a.known().place, &unit(122)), Appended::Fenced, "b took over");
    assert_eq!(numbers(&store), (1..=121).collect::<Vec<_>>());
}

#[test]
fn an_answer_that_is_cut_off_is_doubt_and_is_settled_once() {
    let Some(cluster) = cluster(3, true) else { return };
    let direct = JetStreamStore::open(&cluster.address()).unwrap();
    for (number, (mode, overtaken)) in (1..).zip([
        (CUT_ANSWERS, false),
        (CUT_REQUESTS, false),
        (CUT_ANSWERS, true),
        (CUT_REQUESTS, true),
    ]) {
        // The client finds the other servers by itself once this way is cut.
        let proxy = Proxy::start(cluster.port(0));
        let through = nats::address(&format!("127.0.0.1:{}", proxy.port));
        let store = JetStreamStore::open_within(&through, LIMIT).unwrap();
        let (mut a, before) = (claimed(&store, "a"), numbers(&direct));
        let head = a.known().place;
        proxy.set(mode);
        assert_eq!(a.append(head, &unit(number)), Appended::InDoubt, "mode {mode}");
        assert_eq!(a.append(head, &unit(99)), Appended::InDoubt, "nothing else is offered");
        let b = overtaken.then(|| claimed(&direct, "b"));
        proxy.set(PASS);
        let answer = settled(&mut a);
        let there = numbers(&direct);
        let landed = there == [&before[..], &[number]].concat();
        assert!(landed || there == before, "mode {mode}: {there:?}");
        if let Some(mut b) = b {
            assert_eq!(matches!(answer, Appended::Durable { .. }), landed, "mode {mode}");
            assert_eq!(a.append(a.known().place, &unit(98)), Appended::Fenced);
            assert!(matches!(b.append(b.known().place, &unit(50)), Appended::Durable { .. }));
        } else {
            assert_eq!(answer, Appended::Durable { head: head + 1 }, "mode {mode}");
            assert!(landed);
        }
    }
}

#[test]
fn fewer_than_three_servers_or_late_syncs_are_refused_with_what_to_change() {
    let Some(one) = cluster(1, true) else { return };
    let refused = JetStreamStore::open(&one.address()).unwrap_err();
    let JetStreamRefused::Unsafe(found) = &refused else { panic!("{refused}") };
    assert_eq!(found[..], [UnsafeCluster::Servers { found: vec!["n0".into()] }]);
    assert!(refused.to_string().contains("Three are needed"), "{refused}");
    let wrong = one.address().replace("password=watch", "password=guess");
    let refused = JetStreamStore::open(&wrong).unwrap_err();
    assert!(matches!(refused, JetStreamRefused::System(_)), "{refused}");
    assert!(!refused.to_string().contains("guess"), "{refused}");
    drop(one);
    let late = cluster(3, false).unwrap();
    let refused = JetStreamStore::open(&late.address()).unwrap_err();
    let JetStreamRefused::Unsafe(found) = &refused else { panic!("{refused}") };
    assert_eq!(found.len(), 3, "{refused}");
    assert!(refused.to_string().contains("sync_interval: always"), "{refused}");
}
