//! The store of a cluster, whichever it is.

use std::thread;

use aaep_store::log::jetstream::{JetStreamLeases, JetStreamStorage, JetStreamStore};
use aaep_store::log::postgres::{PostgresLeases, PostgresStorage, PostgresStore};
use aaep_store::log::{Lease, LeaseRefused, Leases, LogStorage, Put, Unavailable};
use tokio::sync::oneshot;

use crate::Fault;

/// A store that was found safe.
#[derive(Clone, Debug)]
pub(super) enum Store {
    Postgres(Box<PostgresStore>),
    JetStream(JetStreamStore),
}

#[derive(Debug)]
pub(super) enum AnyStorage {
    Postgres(Box<PostgresStorage>),
    JetStream(JetStreamStorage),
}

#[derive(Debug)]
pub(super) enum AnyLeases {
    Postgres(Box<PostgresLeases>),
    JetStream(JetStreamLeases),
}

impl Store {
    /// Connects, and refuses a store that could lose what it has acknowledged.
    pub(super) fn open(address: &str) -> Result<(Self, Vec<String>), Fault> {
        let refused = |what: String| Fault::System { what };
        match address.split_once("://").map(|(scheme, _)| scheme) {
            Some("postgres" | "postgresql") => {
                let store = PostgresStore::open(address).map_err(|why| refused(why.to_string()))?;
                let said = store.replication().to_string();
                Ok((Self::Postgres(Box::new(store)), vec![said]))
            }
            Some("nats" | "tls") => {
                let store = JetStreamStore::open(address).map_err(|why| refused(why.to_string()))?;
                let said = format!("The log is kept by {}.", store.servers().join(", "));
                Ok((Self::JetStream(store), vec![said]))
            }
            _ => Err(refused(
                "The store of a cluster is a PostgreSQL server (postgres://…) or JetStream (nats://…). docs/cluster.md says how to write its address.".into(),
            )),
        }
    }

    pub(super) fn places(&self, shard: &str) -> AnyStorage {
        match self {
            Self::Postgres(store) => AnyStorage::Postgres(Box::new(store.storage(shard))),
            Self::JetStream(store) => AnyStorage::JetStream(store.storage(shard)),
        }
    }

    pub(super) fn leases(&self) -> AnyLeases {
        match self {
            Self::Postgres(store) => AnyLeases::Postgres(Box::new(store.leases())),
            Self::JetStream(store) => AnyLeases::JetStream(store.leases()),
        }
    }

    pub(super) fn decide(&self, name: &str, value: &str) -> Result<String, Unavailable> {
        match self {
            Self::Postgres(store) => store.decide(name, value),
            Self::JetStream(store) => store.decide(name, value),
        }
    }
}

impl AnyStorage {
    /// How many entries were missing on one replica and read from another.
    pub(super) fn mended(&self) -> u64 {
        match self {
            Self::Postgres(_) => 0,
            Self::JetStream(places) => places.mended(),
        }
    }
}

impl LogStorage for AnyStorage {
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put {
        match self {
            Self::Postgres(places) => places.put(place, bytes),
            Self::JetStream(places) => places.put(place, bytes),
        }
    }

    fn get(&mut self, from: u64, at_most: usize) -> Result<Vec<Vec<u8>>, Unavailable> {
        match self {
            Self::Postgres(places) => places.get(from, at_most),
            Self::JetStream(places) => places.get(from, at_most),
        }
    }

    fn head(&mut self) -> Result<u64, Unavailable> {
        match self {
            Self::Postgres(places) => places.head(),
            Self::JetStream(places) => places.head(),
        }
    }
}

impl Leases for AnyLeases {
    fn take(&mut self, shard: &str, node: &str) -> Result<Lease, LeaseRefused> {
        match self {
            Self::Postgres(leases) => leases.take(shard, node),
            Self::JetStream(leases) => leases.take(shard, node),
        }
    }

    fn renew(&mut self, lease: &Lease) -> Result<Lease, LeaseRefused> {
        match self {
            Self::Postgres(leases) => leases.renew(lease),
            Self::JetStream(leases) => leases.renew(lease),
        }
    }

    fn holder(&mut self, shard: &str) -> Result<Option<String>, Unavailable> {
        match self {
            Self::Postgres(leases) => leases.holder(shard),
            Self::JetStream(leases) => leases.holder(shard),
        }
    }

    fn give_back(&mut self, lease: &Lease) -> Result<(), LeaseRefused> {
        match self {
            Self::Postgres(leases) => leases.give_back(lease),
            Self::JetStream(leases) => leases.give_back(lease),
        }
    }
}

/// Does something that blocks on a thread that no runtime knows: a store refuses the runtime's own.
pub(super) async fn on_thread<T: Send + 'static>(
    act: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Fault> {
    let (sender, receiver) = oneshot::channel();
    let run = move || drop(sender.send(act()));
    let cannot = |what: String| Fault::System { what };
    thread::Builder::new()
        .name("aaep-cluster".into())
        .spawn(run)
        .map_err(|error| cannot(format!("A thread cannot be started: {error}.")))?;
    receiver.await.map_err(|_| cannot("Asking the cluster's store broke down.".into()))
}
