//! A hub on several machines: nodes that take turns in owning one log.
//!
//! Every node listens. The one that owns the log runs the hub; the others pass callers on to it. When
//! it dies, its lease ends, another node reads the log to its end, claims it, and goes on as after a
//! restart. Nobody is told anything before the cluster's store has acknowledged it, so a node that was
//! taken over from and does not know it lets nothing through. See `docs/cluster.md`.
#![allow(clippy::disallowed_methods)] // clocks, files, servers

mod front;
mod store;

use std::fmt;
use std::fs;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aaep_store::log::{CannotOwn, Lease, LeaseRefused, Leases as _, ShardKeeper, ShardLog, copy};
use aaep_store::{CannotOpen, ChainKey, Options, Sqlite};
use tokio::time::sleep;
use tracing::{info, warn};

use crate::config::{Config, Development, HostName, Records};
use crate::start::{self, DataDirectory, Kept, Prepared, TokenKey};
use crate::{Fault, Running, files};
use front::Front;
use store::{AnyLeases, AnyStorage, Store, on_thread};

/// The one shard of this version: everybody's.
const SHARD: &str = "shard-0";

/// How often a lease is renewed, or asked for.
const RENEW: Duration = Duration::from_millis(500);

/// A node whose clock is further off the store's owns nothing, in microseconds.
const MAX_OFF: i64 = 1_000_000;

/// How long a store may be away in the middle of a takeover.
const PATIENCE: Duration = Duration::from_secs(20);

/// Callers that are passed on at the same time.
const CONNECTIONS: usize = 16_384;

/// How long the shared key is: 32 bytes for reply tokens, and 32 for the log's chain.
const KEY_BYTES: usize = 64;

/// What makes a hub a node of a cluster.
#[derive(Clone)]
pub struct ClusterOptions {
    /// The store's address: `postgres://…` or `nats://…`.
    pub store: String,
    /// The file with the cluster's key, the same on every node.
    pub key: PathBuf,
    /// Where the hub of this node listens while it owns the log; other nodes reach it there.
    pub address: SocketAddr,
}

impl fmt::Debug for ClusterOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The store's address may hold a password.
        f.debug_struct("ClusterOptions").field("address", &self.address).finish_non_exhaustive()
    }
}

/// A node that listens.
#[derive(Debug)]
#[must_use = "it owns nothing before `run`"]
pub struct Node {
    config: Config,
    options: ClusterOptions,
    store: Store,
    token_key: TokenKey,
    chain_key: ChainKey,
    front: Front,
    data: DataDirectory,
    warnings: Vec<String>,
}

/// How owning the log came to its end.
enum Over {
    /// Another node has it, or nobody knows.
    Lost,
    /// Somebody wants this node to stop.
    Stopped(Result<(), Fault>),
}

impl Node {
    /// Checks everything, connects to the store and opens the doors. A node that would not be safe does
    /// not start, and says what to do.
    pub async fn open(config: Config, options: ClusterOptions) -> Result<Self, Fault> {
        let config = for_cluster(config, options.address)?;
        let mut warnings = start::check(&config)?;
        let (token_key, chain_key) = shared_key(&options)?;
        let Some(path) = &config.data else {
            return Err(refused(
                "A node keeps a copy of the log, and has no data directory.",
                "Name one with --data.",
            ));
        };
        let data = DataDirectory::open(path)?;
        let address = options.store.clone();
        let (store, said) = on_thread(move || Store::open(&address)).await??;
        warnings.extend(said);
        let asked = store.clone();
        let shards = on_thread(move || asked.decide("shards", "1")).await?;
        match shards.as_deref() {
            Ok("1") => {}
            Ok(other) => {
                return Err(refused(
                    &format!(
                        "This cluster has {other} shards, and this version knows clusters of one."
                    ),
                    "Start a version that knows more, or use another database.",
                ));
            }
            Err(why) => return Err(Fault::System { what: why.to_string() }),
        }
        let front = Front::open(&config.listen, CONNECTIONS).await?;
        Ok(Self { config, options, store, token_key, chain_key, front, data, warnings })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.front.addresses
    }

    /// The base of its API at one of these addresses.
    pub fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.config.tls.files().is_some() { "https" } else { "http" };
        format!("{scheme}://{address}{}", self.config.base.as_str())
    }

    /// Sentences for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Takes its turns in owning the log until somebody wants it to stop, or it cannot go on. `say` tells
    /// the operator what it does.
    pub async fn run(
        self,
        stop: impl Future<Output = ()>,
        mut say: impl FnMut(String),
    ) -> Result<(), Fault> {
        let mut stop = std::pin::pin!(stop);
        let mut leases = self.store.leases();
        let mut told = String::new();
        loop {
            let (back, taken) = take(leases, self.options.address).await?;
            leases = back;
            let news = match taken {
                Ok(lease) if is_off(&lease) => {
                    leases = give_back(leases, lease).await?;
                    "The clock of this machine is more than a second off the store's. Until it is set right, this node owns nothing.".to_owned()
                }
                Ok(lease) => {
                    say("Taking over.".into());
                    match self.own(leases, lease, &mut stop, &mut say).await {
                        (Over::Stopped(done), _) => return done,
                        (Over::Lost, Some(back)) => leases = back,
                        (Over::Lost, None) => leases = self.store.leases(),
                    }
                    String::new()
                }
                Err(LeaseRefused::Held { by }) => {
                    self.front.point_to(by.parse().ok());
                    format!("The hub at {by} owns the log; callers are passed on to it.")
                }
                Err(LeaseRefused::Unavailable(why)) => why.to_string(),
                Err(_) => String::new(),
            };
            if !news.is_empty() && news != told {
                say(news.clone());
                told = news;
            }
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = sleep(RENEW) => {}
            }
        }
    }

    /// Owns the log until it is taken away, or somebody wants this node to stop.
    async fn own(
        &self,
        leases: AnyLeases,
        lease: Lease,
        stop: &mut (impl Future<Output = ()> + Unpin),
        say: &mut impl FnMut(String),
    ) -> (Over, Option<AnyLeases>) {
        // The lease is kept while the log is read.
        let renewing = tokio::spawn(renew(leases, lease, self.options.address));
        let running = match self.hub().await {
            Ok(running) => running,
            Err(fault) => {
                say(fault.to_string());
                renewing.abort();
                return (Over::Lost, None);
            }
        };
        for news in running.news() {
            say(news.clone());
        }
        say("This node owns the log.".into());
        self.front.point_to(Some(self.options.address));
        let mut running = running;
        let mut renewing = renewing;
        tokio::select! {
            failed = running.failed() => {
                self.front.point_to(None);
                say(failed.err().map_or_else(|| "The hub has ended.".into(), |why| why.to_string()));
                drop(running);
                renewing.abort();
                (Over::Lost, None)
            }
            lost = &mut renewing => {
                // Dropping what was not told is always safe.
                self.front.point_to(None);
                say("Another node owns the log, or this one's clock is off.".into());
                let _ = running.stop().await;
                (Over::Lost, lost.ok())
            }
            () = stop => {
                let done = running.stop().await;
                renewing.abort();
                // What was released needs no lease to end; others wait for this one's at most.
                (Over::Stopped(done), None)
            }
        }
    }

    /// Reads the log, claims it, and starts a hub on it.
    async fn hub(&self) -> Result<Running, Fault> {
        let (store, key) = (self.store.clone(), self.chain_key.clone());
        let (name, place) = (self.options.address.to_string(), self.data.path().join("copy"));
        let (journal, keeper) = on_thread(move || take_over(&store, key, &name, &place)).await??;
        let kept = Kept::of_log(journal, Box::new(keeper));
        let token_key = self.token_key.clone();
        let config = Config { listen: self.front.addresses.clone(), ..self.config.clone() };
        Prepared::on_log(config, self.options.address, kept, token_key)?.start().await
    }
}

/// What a cluster needs to be otherwise, or refuses.
fn for_cluster(mut config: Config, address: SocketAddr) -> Result<Config, Fault> {
    if config.ephemeral {
        return Err(refused(
            "A node of a cluster keeps a copy of the log.",
            "Leave --ephemeral out.",
        ));
    }
    if config.principals.is_empty() && config.issuers.is_empty() {
        return Err(refused(
            "In a cluster nobody comes in without credentials, and nobody has any.",
            "Add principals with tokens (`aaep hub init` makes one for each role), the same on every node.",
        ));
    }
    if config.allowed_hosts.is_empty() {
        return Err(refused(
            "Callers name any node of a cluster, whichever owns the log, and allowed_hosts is empty.",
            "List every node there as callers name it, with its port, the same on every node.",
        ));
    }
    if config.development != Development::default() {
        return Err(refused(
            "In a cluster no answer counts for trying out.",
            "Turn development off.",
        ));
    }
    if !config.grpc.is_empty() {
        return Err(refused(
            "The nodes of a cluster do not pass gRPC on yet.",
            "Leave grpc out; callers use HTTP.",
        ));
    }
    if config.records != Records::default() {
        return Err(refused(
            "Records of a cluster's log cannot be erased yet.",
            "Leave keep_days and max_megabytes out, or run one hub.",
        ));
    }
    if config.tls.files().is_none() && !address.ip().is_loopback() {
        return Err(refused(
            &format!("{address} can be reached from other machines, and there is no TLS."),
            "Set tls.certificate and tls.key, the same on every node.",
        ));
    }
    config.loopback_without_credentials = false;
    config.unix_socket.enabled = false;
    Ok(config)
}

fn refused(what: &str, remedy: &str) -> Fault {
    Fault::unsafely(what, remedy)
}

// enforces: I33
/// The key that every node is given. None is ever made here: two nodes with keys of their own would not
/// know each other's log.
fn shared_key(options: &ClusterOptions) -> Result<(TokenKey, ChainKey), Fault> {
    let path = &options.key;
    let bytes = files::read_private(path, KEY_BYTES as u64)?;
    let bytes = <[u8; KEY_BYTES]>::try_from(bytes).map_err(|bytes| {
        Fault::file(
            path,
            format!("It holds {} bytes, and a cluster's key has {KEY_BYTES}.", bytes.len()),
            format!("Make one, once, and copy it to every node: (umask 077; head -c {KEY_BYTES} /dev/urandom > {})", path.display()),
        )
    })?;
    let (mut tokens, mut chain) = ([0; 32], [0; 32]);
    tokens.copy_from_slice(&bytes[..32]);
    chain.copy_from_slice(&bytes[32..]);
    if tokens == chain {
        return Err(Fault::file(path, "Its two halves are the same.", "Make a random one."));
    }
    Ok((TokenKey::given(tokens), ChainKey::new(&chain)))
}

fn wall_micros() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_micros()).unwrap_or(i64::MAX)
}

// enforces: I8
fn is_off(lease: &Lease) -> bool {
    (lease.store_time - wall_micros()).abs() > MAX_OFF
}

async fn take(
    mut leases: AnyLeases,
    node: SocketAddr,
) -> Result<(AnyLeases, Result<Lease, LeaseRefused>), Fault> {
    on_thread(move || {
        let taken = leases.take(SHARD, &node.to_string());
        (leases, taken)
    })
    .await
}

async fn give_back(mut leases: AnyLeases, lease: Lease) -> Result<AnyLeases, Fault> {
    on_thread(move || {
        let _ = leases.give_back(&lease);
        leases
    })
    .await
}

/// Renews a lease until another node has it, or this machine's clock is off. While the store is away
/// nobody can take it.
async fn renew(mut leases: AnyLeases, mut lease: Lease, node: SocketAddr) -> AnyLeases {
    loop {
        sleep(RENEW).await;
        let held = lease.clone();
        let asked = on_thread(move || {
            let renewed = match leases.renew(&held) {
                // It ended meanwhile; perhaps nobody took it.
                Err(LeaseRefused::Lost) => leases.take(SHARD, &node.to_string()),
                other => other,
            };
            (leases, renewed)
        });
        let Ok((back, renewed)) = asked.await else {
            loop {
                sleep(RENEW).await;
            }
        };
        leases = back;
        match renewed {
            Ok(renewed) if is_off(&renewed) => {
                warn!("the clock of this machine is more than a second off the store's");
                return leases;
            }
            Ok(renewed) => lease = renewed,
            Err(LeaseRefused::Held { .. }) => return leases,
            Err(_) => {}
        }
    }
}

/// Reads the log into a copy of its own, and claims it.
fn take_over(
    store: &Store,
    key: ChainKey,
    name: &str,
    place: &std::path::Path,
) -> Result<(Sqlite, ShardKeeper<AnyStorage>), Fault> {
    // The log is what counts: the copy is made anew each time.
    if place.exists() {
        fs::remove_dir_all(place).map_err(|error| files::cannot_write(place, &error))?;
    }
    files::create_private_directory(place)?;
    let path = place.join(start::JOURNAL_NAME);
    let failed = |fault: CannotOpen| start::journal::cannot_open(&path, &fault);
    let mut journal = Sqlite::open(&path, Options::default(), &key).map_err(failed)?;
    let log = ShardLog::new(store.places(SHARD), SHARD, name, key);
    let mut entries = 0_u64;
    let each = |entry| {
        entries += 1;
        copy(&entry, &mut journal)
    };
    let keeper = ShardKeeper::take_over(log, wall_micros(), PATIENCE, each)
        .map_err(|why: CannotOwn| Fault::System { what: why.to_string() })?;
    info!(entries, "the log was read to its end and claimed");
    Ok((journal, keeper))
}

/// The hosts by which callers name a node: its own doors.
pub(crate) fn hosts(listen: &[SocketAddr]) -> Vec<HostName> {
    let mut hosts = Vec::new();
    for address in listen {
        let ip = address.ip().to_canonical();
        let mut names = Vec::new();
        if !ip.is_unspecified() {
            names.push(address.to_string());
        }
        if ip.is_loopback() || ip.is_unspecified() {
            names.extend(
                ["localhost", "127.0.0.1", "[::1]"]
                    .map(|name| format!("{name}:{}", address.port())),
            );
        }
        hosts.extend(names.iter().filter_map(|name| HostName::parse(name).ok()));
    }
    hosts
}
