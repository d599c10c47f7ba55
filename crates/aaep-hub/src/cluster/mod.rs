//! A hub on several machines: nodes that take turns in owning one log.
//!
//! Every node listens. The one that owns the log runs the hub; the others pass callers on to it. When
//! it dies, its lease ends, another node reads the log to its end, claims it, and goes on as after a
//! restart. Nobody is told anything before the cluster's store has acknowledged it, so a node that was
//! taken over from and does not know it lets nothing through. See `docs/cluster.md`.
#![allow(clippy::disallowed_methods)] // clocks, files, servers

mod front;
mod lease;
mod store;
mod takeover;

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use aaep_store::ChainKey;
use aaep_store::log::{Lease, LeaseRefused, SharedHead};
use tokio::time::{Instant, sleep};

use crate::config::{Config, Development, HostName, Records};
use crate::start::{self, DataDirectory, Kept, Prepared, TokenKey};
use crate::{Fault, Running, files};
use front::Front;
use lease::{Renewal, SameName};
use store::{AnyLeases, Store, on_thread};
use takeover::Watch;

/// The one shard of this version: everybody's.
const SHARD: &str = "shard-0";

/// How often a lease is renewed, or asked for.
const RENEW: Duration = Duration::from_millis(500);

/// How long a node that could not own the log leaves it to the others, at first: longer than a lease,
/// so that each of them gets its turn.
const REST: Duration = Duration::from_secs(3);

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
    /// What its leases say: its address, and what tells it from another hub with the same one.
    holder: String,
    /// Where it notes how far the log is.
    head: SharedHead,
    watch: Watch,
    same_name: SameName,
}

/// How owning the log came to its end.
enum Over {
    /// Another node has it, or nobody knows.
    Lost,
    /// This node cannot own it: something here is not as it should be.
    Cannot(Fault),
    /// Somebody wants this node to stop.
    Stopped(Result<(), Fault>),
}

impl Node {
    /// Checks everything, connects to the store and opens the doors. A node that would not be safe does
    /// not start, and says what to do.
    pub async fn open(config: Config, options: ClusterOptions) -> Result<Self, Fault> {
        let config = for_cluster(config, options.address)?;
        let mut warnings = start::check(&config)?;
        let (token_key, chain_key) = shared_key(&options.key)?;
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
        let (places, key) = (store.places(SHARD), chain_key.clone());
        on_thread(move || takeover::can_read(places, &key)).await??;
        can_listen(options.address).await?;
        let front = Front::open(&config.listen, CONNECTIONS, own_bound(&config)).await?;
        let holder = lease::holder_at(options.address)?;
        let (head, watch) = takeover::watch(&store, &data, &chain_key)?;
        let same_name = lease::SameName::default();
        Ok(Self {
            config,
            options,
            store,
            token_key,
            chain_key,
            front,
            data,
            warnings,
            holder,
            head,
            watch,
            same_name,
        })
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
        mut self,
        stop: impl Future<Output = ()>,
        say: impl FnMut(String),
    ) -> Result<(), Fault> {
        let mut stop = std::pin::pin!(stop);
        let mut leases = self.store.leases();
        let mut operator = Operator { say, told: String::new() };
        let mut rest = Rest::default();
        loop {
            let taken = if rest.is_over() {
                let taken;
                (leases, taken) = lease::take(leases, &self.holder).await?;
                taken
            } else {
                // After a fault of its own this node lets others try.
                let found;
                (leases, found) = lease::look(leases).await?;
                found
            };
            match taken {
                Ok(lease) if lease::is_off(&lease) => {
                    leases = lease::give_back(leases, lease).await?;
                    operator.tell("The clock of this machine is more than a second off the store's. Until it is set right, this node owns nothing.".into());
                }
                Ok(lease) => {
                    if rest.is_new() {
                        operator.tell("Taking over.".into());
                    }
                    let (over, back, lease) =
                        self.own(leases, lease, &mut stop, &mut operator).await;
                    leases = back;
                    if let Some(lease) = lease {
                        // Others need not wait for its end.
                        leases = lease::give_back(leases, lease).await?;
                    }
                    match over {
                        Over::Stopped(done) => return done,
                        Over::Lost => rest = Rest::default(),
                        Over::Cannot(fault) => {
                            operator.tell(format!("{fault} This node leaves the log to the others, and tries again later."));
                            rest.longer();
                        }
                    }
                }
                Err(LeaseRefused::Held { by }) => {
                    if let Some(news) = self.follow(&by).await? {
                        operator.tell(news);
                    }
                }
                Err(LeaseRefused::Unavailable(why)) => operator.tell(why.to_string()),
                Err(_) => {}
            }
            tokio::select! {
                () = &mut stop => return Ok(()),
                () = sleep(RENEW) => {}
            }
        }
    }

    /// Passes callers on to the hub of this holder, and notes how far its log is.
    async fn follow(&mut self, by: &str) -> Result<Option<String>, Fault> {
        let address = lease::address_of(by);
        if address == Some(self.options.address) {
            self.front.point_to(None);
            // One that ended a moment ago and was started again, more likely than not.
            return Ok((!self.same_name.is_new(by)).then(|| {
                format!(
                    "Another hub that is at work has the --cluster-address of this one, {}. Until that one ends, or this one has an address of its own, this node owns nothing.",
                    self.options.address
                )
            }));
        }
        self.front.point_to(address);
        let noted = self.watch.look(&self.head).await?;
        Ok(Some(noted.unwrap_or_else(|| {
            let by = address.map_or_else(|| by.to_owned(), |address| address.to_string());
            format!("The hub at {by} owns the log; callers are passed on to it.")
        })))
    }

    /// Owns the log until it is taken away, or somebody wants this node to stop. What is left of the
    /// lease is to be given back.
    async fn own<S: FnMut(String)>(
        &self,
        leases: AnyLeases,
        lease: Lease,
        stop: &mut (impl Future<Output = ()> + Unpin),
        operator: &mut Operator<S>,
    ) -> (Over, AnyLeases, Option<Lease>) {
        // The lease is kept while the log is read.
        let renewal = Renewal::start(&self.store, leases, lease, self.holder.clone());
        let running = tokio::select! {
            running = self.hub() => running,
            () = &mut *stop => {
                let (held, lease) = renewal.end().await;
                return (Over::Stopped(Ok(())), held, lease);
            }
        };
        let mut running = match running {
            Ok(running) => running,
            Err(fault) => {
                let (held, lease) = renewal.end().await;
                return (Over::Cannot(fault), held, lease);
            }
        };
        self.front.point_to(Some(self.options.address));
        for news in running.news() {
            operator.tell(news.clone());
        }
        operator.tell("This node owns the log.".into());
        let mut renewal = renewal;
        let over = tokio::select! {
            failed = running.failed() => {
                self.front.point_to(None);
                drop(running);
                match failed {
                    Err(fault @ Fault::Fenced) => {
                        operator.tell(fault.to_string());
                        Over::Lost
                    }
                    Ok(()) => Over::Lost,
                    Err(fault) => Over::Cannot(fault),
                }
            }
            () = renewal.lost() => {
                // Dropping what was not told is always safe.
                self.front.point_to(None);
                operator.tell("Another node owns the log, or this one's clock is off.".into());
                let _ = running.stop().await;
                Over::Lost
            }
            () = &mut *stop => Over::Stopped(running.stop().await),
        };
        let (held, lease) = renewal.end().await;
        (over, held, lease)
    }

    /// Reads the log, claims it, and starts a hub on it. What can be refused without the log is refused
    /// before it is claimed: a claim fences whoever serves.
    async fn hub(&self) -> Result<Running, Fault> {
        can_listen(self.options.address).await?;
        let mut config = Config { listen: self.front.addresses.clone(), ..self.config.clone() };
        // Whoever comes through a node has its address: they were counted at that node's door.
        config.limits.connections_per_address = config.limits.connections;
        Prepared::check_on_log(&config)?;
        let (store, key) = (self.store.clone(), self.chain_key.clone());
        let (name, place) = (self.holder.clone(), self.data.path().join("copy"));
        let head = self.head.clone();
        let taken = on_thread(move || takeover::take_over(&store, key, &name, &place, head));
        let (journal, keeper, check) = taken.await??;
        let kept = Kept::of_log(journal, Box::new(keeper), check);
        let token_key = self.token_key.clone();
        Prepared::on_log(config, self.options.address, kept, token_key)?.start().await
    }
}

/// What the operator is told, each thing once.
struct Operator<S> {
    say: S,
    told: String,
}

impl<S: FnMut(String)> Operator<S> {
    fn tell(&mut self, news: String) {
        if news != self.told {
            (self.say)(news.clone());
            self.told = news;
        }
    }
}

/// How long a node that could not own the log leaves it to the others.
#[derive(Debug, Default)]
struct Rest {
    until: Option<Instant>,
    faults: u32,
}

impl Rest {
    fn is_over(&self) -> bool {
        self.until.is_none_or(|until| Instant::now() >= until)
    }

    fn is_new(&self) -> bool {
        self.faults == 0
    }

    fn longer(&mut self) {
        let rest = REST.saturating_mul(1 << self.faults.min(3));
        self.until = Some(Instant::now() + rest);
        self.faults += 1;
    }
}

/// Whether this address can be listened on.
async fn can_listen(address: SocketAddr) -> Result<(), Fault> {
    match tokio::net::TcpListener::bind(address).await {
        Ok(_) => Ok(()),
        Err(error) => Err(Fault::System {
            what: format!(
                "Nobody can listen on {address}: {error}. End what listens there, or choose another address with --cluster-address."
            ),
        }),
    }
}

/// How many connections of one address a node's door lets in.
fn own_bound(config: &Config) -> front::OwnBound {
    let each = config.limits.connections_per_address;
    front::OwnBound { each, plain: config.tls.files().is_none() }
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
    if !config.behind_proxy.is_empty() {
        return Err(refused(
            "Callers come to the owner through the nodes, and what a proxy says of them would be believed of everybody.",
            "Leave behind_proxy out; a proxy in front of the nodes passes connections on as they are.",
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

/// The part of a cluster's key with which its log was written, from the file that every node is given.
pub fn chain_key(path: &Path) -> Result<ChainKey, Fault> {
    shared_key(path).map(|(_, chain)| chain)
}

/// Where a node keeps its copy of the log, in its data directory.
pub fn copy_in(data: &Path) -> PathBuf {
    data.join("copy").join(start::JOURNAL_NAME)
}

// enforces: I33
/// The key that every node is given. None is ever made here: two nodes with keys of their own would not
/// know each other's log.
fn shared_key(path: &Path) -> Result<(TokenKey, ChainKey), Fault> {
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
