//! Logs and leases on a real PostgreSQL server, and what its faults do to them.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // real servers

mod proxy;
#[path = "../../../../testing/postgres.rs"]
mod server;
#[path = "../../../../testing/skipped.rs"]
mod skipped;

use std::thread;
use std::time::{Duration, Instant};

use aaep_store::contract::batch;
use aaep_store::log::postgres::{PostgresRefused, PostgresStorage, PostgresStore, Replication};
use aaep_store::log::{
    Appended, Body, CannotRead, Log, LogStorage, Put, ShardLog, Unavailable, contract,
};
use aaep_store::{ChainKey, Unit};
use proxy::{CUT_ANSWERS, CUT_REQUESTS, PASS, Proxy, SWALLOW_ANSWERS};
use server::Server;
use skipped::skipped;

fn server(settings: &str) -> Option<Server> {
    Server::start(settings).map_err(|why| skipped(&why)).ok()
}

fn unit(number: u64) -> [Unit; 1] {
    [Unit { entries: batch([number]), notes: Vec::new() }]
}

fn log(storage: PostgresStorage, node: &str) -> ShardLog<PostgresStorage> {
    ShardLog::new(storage, "s", node, ChainKey::new(&[7; 32]))
}

fn claimed(store: &PostgresStore, node: &str) -> ShardLog<PostgresStorage> {
    let mut log = log(store.storage("s"), node);
    log.catch_up(|_| {}).unwrap();
    assert!(matches!(log.claim(0), Appended::Durable { .. }));
    log
}

/// The numbers of the records in the log of the shard, in order.
fn numbers(store: &PostgresStore) -> Vec<u64> {
    let mut numbers = Vec::new();
    let mut log = log(store.storage("s"), "reader");
    log.catch_up(|entry| {
        if let Body::Units(units) = entry.body {
            numbers
                .extend(units.into_iter().flat_map(|unit| unit.entries).map(|entry| entry.number));
        }
    })
    .unwrap();
    numbers
}

/// Settles a doubt, however long the server is away.
fn settled(log: &mut ShardLog<PostgresStorage>) -> Appended {
    loop {
        match log.settle() {
            Appended::InDoubt => thread::sleep(Duration::from_millis(20)),
            other => return other,
        }
    }
}

#[test]
fn places_and_leases_on_postgresql_keep_the_contract() {
    let Some(server) = server("") else { return };
    let store = PostgresStore::open(&server.address()).unwrap();
    assert_eq!(*store.replication(), Replication::Asynchronous);
    contract::storage_contract(|shard| store.storage(shard));
    contract::log_contract(|shard| store.storage(shard));
    let wait = || thread::sleep(PostgresStore::LEASE + Duration::from_millis(100));
    contract::leases_contract(|| store.leases(), wait);
    contract::single_log_contract(|| claimed(&store, "a"));
}

#[test]
fn what_is_decided_once_stands_for_everybody() {
    let Some(server) = server("") else { return };
    let store = PostgresStore::open(&server.address()).unwrap();
    let other = PostgresStore::open(&server.address()).unwrap();
    assert_eq!(store.decide("shards", "16").unwrap(), "16");
    assert_eq!(other.decide("shards", "8").unwrap(), "16");
}

#[test]
fn settings_that_could_lose_entries_are_refused_with_what_to_change() {
    let Some(server) = server("fsync = off\nsynchronous_commit = off\nfull_page_writes = off")
    else {
        return;
    };
    let refused = PostgresStore::open(&server.address()).unwrap_err();
    let PostgresRefused::Unsafe(found) = &refused else { panic!("{refused}") };
    let names: Vec<&str> = found.iter().map(|one| one.setting).collect();
    assert_eq!(names, ["fsync", "full_page_writes", "synchronous_commit"]);
    let words = refused.to_string();
    assert!(words.contains("Set fsync = on in postgresql.conf"), "{words}");
}

#[test]
fn a_server_that_takes_no_writes_is_refused() {
    let Some(server) = server("default_transaction_read_only = on") else { return };
    let refused = PostgresStore::open(&server.address()).unwrap_err();
    assert!(refused.to_string().contains("give the address of the primary"), "{refused}");
}

/// A standby that is named and never comes: commits wait for it.
#[test]
fn nothing_is_durable_before_the_standby_has_it_also_if_it_can_be_seen() {
    let Some(server) = server("synchronous_standby_names = 'elsewhere'") else { return };
    let short = Duration::from_millis(1500);
    let refused = PostgresStore::open_within(&server.address(), short);
    // Making the tables waits as well.
    assert!(matches!(refused, Err(PostgresRefused::Unavailable(_))), "{refused:?}");
    let quick = PostgresStore::open_within(
        &format!("{}?options=-c%20synchronous_commit%3Dlocal", server.address()),
        short,
    );
    let refused = quick.unwrap_err().to_string();
    assert!(refused.contains("synchronous_commit is local"), "{refused}");
}

#[test]
fn an_interrupted_wait_for_a_standby_stays_in_doubt_also_where_the_entry_can_be_seen() {
    let Some(server) = server("") else { return };
    let store = PostgresStore::open_within(&server.address(), Duration::from_millis(800)).unwrap();
    let mut a = claimed(&store, "a");
    let admin = admin(&server);
    admin("ALTER SYSTEM SET synchronous_standby_names = 'elsewhere'");
    admin("SELECT pg_reload_conf()");
    // The server's processes learn of it one after the other; the first append that waits for the
    // standby says that all did.
    let patience = Instant::now() + Duration::from_secs(30);
    let last = (1..).find(|number| match a.append(*number, &unit(*number)) {
        Appended::InDoubt => true,
        Appended::Durable { .. } if Instant::now() < patience => false,
        other => panic!("append {number}: {other:?}"),
    });
    let last = last.unwrap();
    // The statement still waits in the server; an administrator ends its wait.
    admin(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'aaep' AND state = 'active'",
    );
    let mut seen = 0;
    for _ in 0..100 {
        seen = store.storage("s").head().unwrap();
        if seen > last {
            break;
        }
        thread::sleep(Duration::from_millis(20));
    }
    assert_eq!(seen, last + 1, "it can be seen");
    assert_eq!(a.settle(), Appended::InDoubt, "and no standby has it");
    admin("ALTER SYSTEM RESET synchronous_standby_names");
    admin("SELECT pg_reload_conf()");
    assert_eq!(settled(&mut a), Appended::Durable { head: last + 1 });
    assert_eq!(numbers(&store), (1..=last).collect::<Vec<_>>());
}

/// Runs statements as the administrator, without waiting for standbys.
fn admin(server: &Server) -> impl Fn(&str) {
    let port = server.port.to_string();
    move |statement| {
        let done = std::process::Command::new("psql")
            .args(["-q", "-X", "-h", "127.0.0.1", "-U", "aaep", "-d", "postgres", "-p", &port])
            .args(["-c", statement])
            .env("PGOPTIONS", "-c synchronous_commit=local")
            .output()
            .unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }
}

#[test]
fn an_answer_that_is_cut_off_is_doubt_and_is_settled_once() {
    let Some(server) = server("") else { return };
    let proxy = Proxy::start(server.port);
    let direct = PostgresStore::open(&server.address()).unwrap();
    let short = Duration::from_millis(500);
    let store = PostgresStore::open_within(&server::address(proxy.port), short).unwrap();
    let mut a = claimed(&store, "a");
    for (head, mode) in (1..).zip([CUT_ANSWERS, CUT_REQUESTS, SWALLOW_ANSWERS]) {
        proxy.set(mode);
        assert_eq!(a.append(head, &unit(head)), Appended::InDoubt, "mode {mode}");
        assert_eq!(a.append(head, &unit(99)), Appended::InDoubt, "nothing else is offered");
        proxy.set(PASS);
        assert_eq!(settled(&mut a), Appended::Durable { head: head + 1 }, "mode {mode}");
    }
    assert_eq!(numbers(&direct), [1, 2, 3]);
}

#[test]
fn a_doubt_that_another_node_overtook_ends_in_a_fence() {
    let Some(server) = server("") else { return };
    let proxy = Proxy::start(server.port);
    let direct = PostgresStore::open(&server.address()).unwrap();
    let store = PostgresStore::open(&server::address(proxy.port)).unwrap();
    let mut a = claimed(&store, "a");
    proxy.set(CUT_REQUESTS);
    assert_eq!(a.append(1, &unit(1)), Appended::InDoubt);
    let mut b = claimed(&direct, "b");
    assert_eq!(b.append(2, &unit(2)), Appended::Durable { head: 3 });
    proxy.set(PASS);
    assert_eq!(settled(&mut a), Appended::Fenced);
    assert_eq!(numbers(&direct), [2]);
}

/// Whatever was acknowledged is there after every crash, once and in order.
#[test]
fn a_server_that_is_killed_loses_nothing_that_it_acknowledged() {
    let Some(mut server) = server("") else { return };
    let store = PostgresStore::open_within(&server.address(), Duration::from_secs(2)).unwrap();
    let mut a = claimed(&store, "a");
    for round in 0..4 {
        thread::scope(|scope| {
            let appending = scope.spawn(|| {
                loop {
                    let head = a.known().place;
                    match a.append(head, &unit(head)) {
                        Appended::Durable { .. } => {}
                        Appended::InDoubt | Appended::Stuck(_) => break,
                        Appended::Fenced => panic!("nobody else is there"),
                    }
                }
            });
            thread::sleep(Duration::from_millis(150 + round * 70));
            server.kill();
            appending.join().unwrap();
        });
        assert!(matches!(a.head(), Err(CannotRead::Unavailable(Unavailable::Away(_)))));
        server.restart();
        assert!(matches!(settled(&mut a), Appended::Durable { .. }));
        let acknowledged = a.known().place;
        assert!(acknowledged > 2, "some were acknowledged before the server was killed");
        let there: Vec<u64> = (1..acknowledged).collect();
        assert_eq!(numbers(&store), there);
    }
}

#[test]
fn within_an_asynchronous_runtime_a_log_refuses_instead_of_blocking_it() {
    let Some(server) = server("") else { return };
    let store = PostgresStore::open(&server.address()).unwrap();
    let mut storage = store.storage("s");
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let refused = runtime.block_on(async { storage.put(1, b"one") });
    assert!(matches!(refused, Put::Refused(Unavailable::Misuse(_))), "{refused:?}");
    assert_eq!(storage.put(1, b"one"), Put::Durable);
    // Being dropped there is no reason to panic.
    runtime.block_on(async { drop(storage) });
}

/// A million entries, written and read. `cargo test --release -p aaep-store --features postgres,test-util
/// --test postgres -- --ignored --nocapture`.
#[test]
#[ignore = "takes minutes"]
fn a_million_entries() {
    let Some(server) = server("") else { return };
    let store = PostgresStore::open(&server.address()).unwrap();
    contract::long_log(1_000_000, |shard| store.storage(shard));
}
