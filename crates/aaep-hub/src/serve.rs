//! A running hub: its doors, its core, and how it comes to a good end.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use aaep_engine::{ClockTrust, Engine, Offer, Producer, Secrets};
use aaep_store::{JournalWriter, Report};
use aaep_transport::server::{Limits as DoorLimits, Server};
use aaep_transport::tls::for_http2;
use aaep_types::profile::Profile;
use arc_swap::{ArcSwap, ArcSwapOption};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::access::{Access, SharedAccess, Token};
use crate::codes::Codes;
use crate::config::Config;
use crate::core::{Core, Ended, Place, Recalled, Recovered, recover};
use crate::guard::Guard;
use crate::http::{GrpcDoor, HttpService, RefusalLog, RequestIds};
use crate::hub::{Hub, Phase, Shared};
use crate::inbox::Inbox;
use crate::manifest::{LocalFile, Manifests};
use crate::metrics::Metrics;
use crate::pace::Pace;
use crate::passkey::Passkeys;
use crate::presence::{KeptProcesses, PinFile, PresenceDesk};
use crate::reading::Turns;
use crate::redaction::Outputs;
use crate::retention::{Eraser, Retention};
use crate::roles::Roles;
use crate::sign_in::SignInDesk;
use crate::start::{self, Kept, Prepared, TokenKey};
use crate::waits::Waits;
use crate::{Fault, Tls, clock, manifest};

/// How long requests that run have when the hub stops.
const GRACE: Duration = Duration::from_secs(10);

/// What is said when the core panicked.
const BROKE_DOWN: &str = "The hub broke down in the middle of a step, and ends so that nothing half-done counts. What it had made durable is kept: start it again, and report the message above.";

/// A hub that runs until it is [stopped](Self::stop). Dropping it stops it too, without waiting for
/// anybody: its doors close, connections break, and what was recorded is still made durable as long as
/// the runtime lives.
#[must_use = "dropping it stops the hub"]
pub struct Running {
    hub: Hub,
    addresses: Vec<SocketAddr>,
    grpc: Vec<SocketAddr>,
    socket: Option<PathBuf>,
    tls: Option<Tls>,
    doors: JoinSet<()>,
    core: JoinHandle<Result<(), Ended>>,
    /// How the core ended, once it has.
    ended: Option<Result<(), Fault>>,
    news: Vec<String>,
    /// What was warned of at the start.
    warnings: Vec<String>,
    /// What is in force: what it was started with, and what was taken over since.
    in_force: Mutex<Config>,
    /// The manifest for programs on this machine.
    _manifest: Option<LocalFile>,
}

impl Running {
    /// Opens every door and begins to work.
    pub(crate) async fn start(prepared: Prepared) -> Result<Self, Fault> {
        let Prepared {
            config,
            mut access,
            policy,
            profile,
            manifest_key,
            tls,
            data,
            kept,
            token_key,
            warnings,
            trace_parent,
            config_file,
        } = prepared;
        access.keep_fresh(None);
        let (servers, addresses) = bind(&config.listen, "listen", &config).await?;
        let (grpc_servers, grpc) = bind(&config.grpc, "grpc", &config).await?;
        let all: Vec<SocketAddr> = addresses.iter().chain(&grpc).copied().collect();
        // Behind the doors of a cluster's nodes nobody knows which process calls.
        let on_log = kept.as_ref().is_some_and(|kept| kept.log.is_some());
        let ports = all.iter().filter(|_| !on_log).map(SocketAddr::port).collect();
        let directory = config.state.as_deref().or(config.data.as_deref());
        let keeps_processes = cfg!(target_os = "linux") && kept.is_some() && !on_log;
        let processes = directory.filter(|_| keeps_processes).map(KeptProcesses::open);
        let shared = Shared {
            presence: PresenceDesk::new(PinFile::of(&config), ports, processes),
            eraser: OnceLock::new(),
            passkeys: Passkeys::open(config.state.as_deref().or(config.data.as_deref()))?,
            inbox: Inbox::new(config.limits.messages),
            core: Place::default(),
            access: SharedAccess::new(access),
            policy: ArcSwap::from_pointee(policy),
            manifests: Manifests::new(&config, profile.as_ref()),
            guard: Guard::new(&config, &all),
            turns: Turns::new(config.limits.large_bodies_per_principal),
            waits: Waits::new(config.limits.open_waits()),
            calls: Waits::new(config.limits.open_calls()),
            pace: Pace::new(config.limits.processor_percent_per_user),
            offer: ArcSwap::from_pointee(offer(&config, profile.as_ref(), &addresses)),
            manifest_key: ArcSwapOption::from_pointee(manifest_key),
            profile,
            roles: Roles::new(&config.hearing),
            outputs: Outputs::default(),
            codes: Codes::new(config.limits),
            sign_in: SignInDesk::new(config.limits),
            metrics: Metrics::default(),
            phase: watch::Sender::new(Phase::Open),
            tls: tls.clone(),
            refusals: RefusalLog::default(),
            request_ids: RequestIds::default(),
            trace_parent,
            config_file,
            reload: Notify::default(),
            config,
        };
        let hub = Hub(Arc::new(shared));
        let (mut core, news, retention) = new_core(&hub, kept, &token_key)?;
        core.drain();
        let mut doors = JoinSet::new();
        doors.spawn(hub.clone().keep_manifest_fresh());
        doors.spawn(hub.clone().watch_pins());
        let socket = open_socket(&hub, &mut doors)?;
        let own = hub.0.manifests.own();
        let local = socket.as_ref().and_then(|socket| LocalFile::write(socket, &own));
        for server in servers {
            let server = match &tls {
                Some(tls) => server.with_tls(tls.server_config()),
                None => server,
            };
            let (doors_of, stop) = (HttpService(hub.clone()), hub.clone());
            doors.spawn(async move {
                server.serve(doors_of, async move { stop.stopping().await }).await
            });
        }
        for server in grpc_servers {
            let server = match &tls {
                Some(tls) => server.with_tls(for_http2(&tls.server_config())),
                None => server,
            };
            let (door, stop) = (GrpcDoor::new(hub.clone()), hub.clone());
            doors.spawn(async move {
                server.serve_http2(door, async move { stop.stopping().await }).await
            });
        }
        hub.0.core.put(core).await;
        hub.sign_manifest();
        // What the restart itself recorded is handed over with this: the journal's thread finds the
        // core in its place.
        hub.tell(|_| {});
        let core = tokio::spawn({
            let hub = hub.clone();
            async move {
                let ended = Core::run(hub).await;
                // Held against other hubs until nothing is written any more.
                drop(data);
                ended
            }
        });
        if let Some(retention) = retention {
            tokio::spawn(retention.run(hub.clone()));
        }
        let (ended, _manifest) = (None, local);
        let in_force = Mutex::new(hub.config().clone());
        Ok(Self {
            hub,
            addresses,
            grpc,
            socket,
            tls,
            doors,
            core,
            ended,
            news,
            warnings,
            in_force,
            _manifest,
        })
    }

    /// Where it listens.
    pub fn addresses(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// The base of its API at one of these addresses.
    pub fn url(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}{}", self.hub.config().base.as_str())
    }

    /// Where it listens for gRPC, as addresses such as `grpc://127.0.0.1:8708`.
    pub fn grpc_urls(&self) -> impl Iterator<Item = String> {
        let scheme = if self.tls.is_some() { "grpcs" } else { "grpc" };
        self.grpc.iter().map(move |address| format!("{scheme}://{address}"))
    }

    /// Where the page is at one of these addresses.
    pub fn page(&self, address: SocketAddr) -> String {
        let scheme = if self.tls.is_some() { "https" } else { "http" };
        format!("{scheme}://{address}/")
    }

    /// A code that the page can exchange for this token, once and soon. It goes behind the `#` of
    /// the page's address, which browsers send to nobody. The token is that of a principal of the
    /// configuration.
    pub fn page_code(&self, token: Token) -> Result<String, Fault> {
        self.hub.0.codes.offer(token)
    }

    /// The Unix socket, if there is one.
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// What was warned of at the start, in sentences for the operator.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What was found in the journal, in sentences.
    pub fn news(&self) -> &[String] {
        &self.news
    }

    /// A handle for this process.
    pub fn hub(&self) -> &Hub {
        &self.hub
    }

    /// Takes over who may come in, the policy, certificate and key, and the key of the manifest, from a
    /// configuration that was read again; peers that are no longer let in hear nothing more. The rest
    /// needs a new start. Gives sentences for the operator; on an error everything stays as it was. The
    /// level of the log is applied by the writer of the log.
    pub fn reload(&self, config: &Config) -> Result<Vec<String>, Fault> {
        // What is not taken over stays in force, and both together have to be safe.
        let own = self.hub.config().hub.clone();
        let own_log = self.hub.config().log.clone();
        let mixed = Config {
            tls: crate::config::Tls {
                client_crl: config.tls.client_crl.clone(),
                ..self.hub.config().tls.clone()
            },
            hub: crate::config::Hub { manifest_key: config.hub.manifest_key.clone(), ..own },
            loopback_without_credentials: config.loopback_without_credentials,
            development: config.development,
            principals: config.principals.clone(),
            issuers: config.issuers.clone(),
            denied: config.denied.clone(),
            policy: config.policy.clone(),
            log: crate::config::Log { level: config.log.level, ..own_log },
            ..self.hub.config().clone()
        };
        let mut warnings = start::check(&mixed)?;
        let mixed = self.with_certificate(mixed, config);
        let restart = mixed.changes(config)?;
        let taken = self.in_force().changes(&mixed)?;
        let mut access = Access::new(&mixed)?;
        let policy = start::policy(&mixed)?;
        let manifest_key = start::manifest_key(&mixed)?;
        if let (Some(tls), Some((certificate, key))) = (&self.tls, config.tls.files()) {
            tls.reload(certificate, key)?;
            tls.reload_clients(access.client_verifier());
        }
        access.keep_fresh(Some(&self.hub.0.access.current()));
        let changes = access.changes_since(&self.hub.0.access.current());
        self.hub.0.access.replace(access);
        self.hub.0.policy.store(Arc::new(policy));
        self.hub.0.manifest_key.store(manifest_key.map(Arc::new));
        self.hub.sign_manifest();
        *self.in_force() = mixed;
        warnings.push(match taken.is_empty() {
            true => "No key of the configuration that can be taken over has changed; the files that it names were read again.".into(),
            false => format!("Taken over: {}.", taken.join(", ")),
        });
        if !restart.is_empty() {
            let restart = restart.join(", ");
            warnings.push(format!("Changed, but in force only after a restart: {restart}."));
        }
        let access = self.hub.0.access.current();
        self.hub.tell(move |core| {
            core.recheck(&access);
            changes.iter().for_each(|(act, name)| core.note_change(act, name));
        });
        Ok(warnings)
    }

    /// What is in force with this configuration: certificate and key come from it, if there were any
    /// before.
    fn with_certificate(&self, mut mixed: Config, config: &Config) -> Config {
        if self.tls.is_some() && config.tls.files().is_some() {
            mixed.tls.certificate.clone_from(&config.tls.certificate);
            mixed.tls.key.clone_from(&config.tls.key);
        }
        mixed
    }

    fn in_force(&self) -> std::sync::MutexGuard<'_, Config> {
        self.in_force.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until an administrator has changed the configuration file, so that it is to be read again
    /// and taken over ([`reload`](Self::reload)).
    pub fn asked_to_reload(&self) -> impl Future<Output = ()> + Send + use<> {
        let hub = self.hub.clone();
        async move { hub.0.reload.notified().await }
    }

    // enforces: I23
    /// Stops: nothing new is taken, what runs comes to its end, what is recorded is durable.
    pub async fn stop(mut self) -> Result<(), Fault> {
        let _ = self.hub.call(Core::begin_to_stop).await;
        self.hub.0.phase.send_replace(Phase::Stopping);
        self.hub.tell(Core::end_streams);
        while self.doors.join_next().await.is_some() {}
        self.hub.0.phase.send_replace(Phase::Over);
        self.failed().await
    }

    // enforces: I28
    /// Waits until the hub ends by itself, which it does only if it cannot go on: the journal failed,
    /// or something panicked in the core. From then on everybody gets an error; the operator ends
    /// the process, or starts another hub.
    pub async fn failed(&mut self) -> Result<(), Fault> {
        if let Some(ended) = &self.ended {
            return ended.clone();
        }
        let how = ended((&mut self.core).await);
        self.ended = Some(how.clone());
        how
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // After `stop` nothing is left of it.
        self.doors.abort_all();
        self.hub.0.phase.send_replace(Phase::Over);
        self.hub.tell(Core::end_streams);
    }
}

fn ended(core: Result<Result<(), Ended>, tokio::task::JoinError>) -> Result<(), Fault> {
    let what = match core {
        Ok(Ok(())) => return Ok(()),
        Ok(Err(Ended::Journal(aaep_store::JournalFault::Fenced))) => return Err(Fault::Fenced),
        Ok(Err(Ended::Journal(fault))) => fault.to_string(),
        Ok(Err(Ended::Panicked)) => BROKE_DOWN.to_owned(),
        Err(error) => format!("{BROKE_DOWN} ({error})"),
    };
    Err(Fault::System { what })
}

fn new_core(
    hub: &Hub,
    kept: Option<Kept>,
    token_key: &TokenKey,
) -> Result<(Core, Vec<String>, Option<Retention>), Fault> {
    let config = hub.config();
    let mut seed = [0; 32];
    crate::access::fill(&mut seed)?;
    let secrets = || Secrets { seed, token_key: token_key.bytes() };
    let limits = config.limits.engine();
    let now = clock::now();
    let mut retention = None;
    let (engine, recalled, writer, news) = match kept {
        None => (Engine::new(secrets(), limits), Recalled::new(&config.limits), None, Vec::new()),
        Some(mut kept) => {
            let is_new = token_key.is_new();
            let recovered = recover(&mut kept, secrets(), &config.limits, is_new, now)?;
            let news = news_of(&recovered, &kept);
            let Recovered { engine, mut known, trust, to_compact } = recovered;
            if let Some(processes) = hub.0.presence.kept() {
                let open = known.recall_processes(|session| processes.of(session));
                processes.rewrite(&open, processes.length())?;
            }
            let eraser = Arc::new(Eraser {
                journal: kept.journal.path().to_owned(),
                key: kept.journal.key().clone(),
                trusted: trust.clock == ClockTrust::Trusted,
                busy: tokio::sync::Mutex::default(),
            });
            // A log keeps everything; erasing its copy would erase nothing.
            if kept.log.is_none() {
                let _ = hub.0.eraser.set(eraser.clone());
                retention = Some(Retention { eraser, to_compact });
            }
            (engine, known, Some(writer(hub, kept)?), news)
        }
    };
    let producer = Producer::new(engine, secrets(), limits, hub.0.offer.load_full(), now);
    Ok((Core::new(hub.clone(), producer, writer, recalled, now), news, retention))
}

/// The thread that keeps the journal; what it says comes to the core as a job.
fn writer(hub: &Hub, kept: Kept) -> Result<JournalWriter, Fault> {
    let hub = hub.clone();
    let mut told = 0;
    let report = move |report| {
        let reported = move |core: &mut Core| core.reported(report);
        let Report::Durable { units, .. } = report else { return hub.tell(reported) };
        // A caller that waits alone is told from here, which avoids a task switch. Many are told by the
        // core's own task while this thread is at the next.
        let alone = units == told + 1;
        told = units;
        if alone { hub.tell_here(reported) } else { hub.tell(reported) }
    };
    let Kept { journal, head, log, .. } = kept;
    let started = match log {
        Some(log) => JournalWriter::start_on(log, journal, report),
        None => JournalWriter::start(journal, head, report),
    };
    started.map_err(|error| Fault::System {
        what: format!("The thread of the journal cannot be started: {error}."),
    })
}

/// What was found, for the operator.
fn news_of(recovered: &Recovered, kept: &Kept) -> Vec<String> {
    let engine = &recovered.engine;
    let (sessions, requests) = (engine.open_sessions(), engine.pending_requests());
    let mut news = vec![format!("Journal: {}", kept.journal.path().display())];
    if let Some(before) = kept.held_before() {
        let text = format!(
            "This directory held another journal, {before}, when a hub worked here last. Nothing of that one is in this one."
        );
        tracing::warn!("{text}");
        news.push(text);
    }
    if sessions > 0 {
        news.push(format!("Going on: {sessions} sessions, {requests} requests that wait."));
    }
    if let Some(why) = recovered.trust.why {
        let what = match recovered.trust.clock {
            ClockTrust::OldCopy => {
                "Every request that waited was rejected, and every session was ended."
            }
            _ => "Every request that waited was withdrawn.",
        };
        tracing::warn!("{why} {what}");
        news.push(format!("{why} {what}"));
    }
    news
}

fn offer(config: &Config, profile: Option<&Profile>, addresses: &[SocketAddr]) -> Offer {
    Offer {
        producer: serde_json::json!({
            "agent_id": config.hub.agent_id.as_str(),
            "agent_name": config.hub.agent_name.as_str(),
            "agent_version": env!("CARGO_PKG_VERSION"),
        })
        .to_string(),
        languages: config.hub.languages.iter().filter_map(|tag| tag.parsed()).collect(),
        // enforces: X9
        extensions: profile.map(|profile| profile.extensions.clone()).unwrap_or_default(),
        manifest_uri: public_origin(config, addresses)
            .map(|origin| format!("{origin}{}", manifest::PATH)),
        signed_manifest: None,
    }
}

/// Where others reach the hub: scheme, host and port.
///
/// A proxy terminates TLS, and listens where its own configuration says: what `allowed_hosts` names
/// is what its clients write. Without one, clients reach the hub's own port.
fn public_origin(config: &Config, addresses: &[SocketAddr]) -> Option<String> {
    let proxied = !config.behind_proxy.is_empty();
    let (scheme, own_port) = match config.tls.files().is_some() || proxied {
        true => ("https", 443),
        false => ("http", 80),
    };
    let address = addresses.first()?;
    let host = match config.allowed_hosts.first() {
        None => address.to_string(),
        Some(host) if host.has_port() || proxied || address.port() == own_port => host.to_string(),
        Some(host) => format!("{host}:{}", address.port()),
    };
    Some(format!("{scheme}://{host}"))
}

fn door_limits(config: &Config) -> DoorLimits {
    DoorLimits {
        connections: config.limits.connections,
        connections_per_address: config.limits.connections_per_address,
        header_read: Duration::from_secs(config.limits.header_seconds),
        grace: GRACE,
        ..DoorLimits::default()
    }
}

/// Binds every address of one key, and says which ones they really are.
async fn bind(
    addresses: &[SocketAddr],
    flag: &str,
    config: &Config,
) -> Result<(Vec<Server>, Vec<SocketAddr>), Fault> {
    let (mut servers, mut bound) = (Vec::new(), Vec::new());
    for address in addresses {
        let server = Server::bind(address).await;
        let server = server.map_err(|error| cannot_listen(*address, flag, &error))?;
        bound.push(
            server.local_addr().map_err(|error| Fault::System {
                what: format!("The address is lost: {error}."),
            })?,
        );
        servers.push(server.with_limits(door_limits(config)));
    }
    Ok((servers, bound))
}

fn cannot_listen(address: SocketAddr, flag: &str, error: &io::Error) -> Fault {
    let remedy = match error.kind() {
        io::ErrorKind::AddrInUse => {
            "Another program listens there, perhaps another hub: stop it, or choose another address with"
        }
        io::ErrorKind::PermissionDenied => {
            "Ports below 1024 are the system's: choose another address with"
        }
        io::ErrorKind::AddrNotAvailable => {
            "This machine has no such address: choose one of its own with"
        }
        _ => "Choose another address with",
    };
    Fault::System { what: format!("Cannot listen on {address}: {error}. {remedy} --{flag}.") }
}

#[cfg(unix)]
fn open_socket(hub: &Hub, doors: &mut JoinSet<()>) -> Result<Option<PathBuf>, Fault> {
    use aaep_transport::unix::{Listener, path_for};

    let config = hub.config();
    if !config.unix_socket.enabled {
        return Ok(None);
    }
    let path =
        config.unix_socket.path.clone().unwrap_or_else(|| path_for(config.hub.agent_id.as_str()));
    let listener = Listener::bind(&path, crate::http::link_options(hub))
        .map_err(|error| Fault::System { what: format!("The socket: {error}") })?
        .with_connections(
            config.limits.socket_connections,
            config.limits.socket_connections_per_process,
        );
    let hub = hub.clone();
    doors.spawn(async move {
        let mut connections = JoinSet::new();
        loop {
            let connection = tokio::select! {
                connection = listener.accept_any() => connection,
                Some(_) = connections.join_next(), if !connections.is_empty() => continue,
                () = hub.stopping() => break,
            };
            connections.spawn(serve_local(hub.clone(), connection));
        }
        drop(listener);
        let all = async { while connections.join_next().await.is_some() {} };
        let _ = tokio::time::timeout(GRACE, all).await;
    });
    Ok(Some(path))
}

// enforces: W10
/// Serves a process of this user, in whichever of the two ways it speaks.
#[cfg(unix)]
async fn serve_local(hub: Hub, connection: aaep_transport::unix::Connection) {
    use crate::access::{ApiSurface, Via};
    use aaep_transport::server::serve_connection;
    use aaep_transport::unix::Spoken;

    let limits = door_limits(hub.config());
    match connection.spoken(limits.header_read).await {
        Some(Spoken::Http(stream, peer)) => {
            let stop = async { hub.stopping().await };
            serve_connection(stream, peer, &limits, HttpService(hub.clone()), stop).await;
        }
        Some(Spoken::Messages(link)) => {
            let Some(credentials) = link.peer().credentials() else { return };
            let via = Via::Socket { uid: credentials.uid };
            let known = hub.0.access.current().who(None, via, ApiSurface::Listener);
            match known {
                Ok(known) => {
                    let known = known.over(link.peer());
                    crate::http::serve_link(&hub, known, *link, true).await;
                }
                Err(denied) => crate::http::deny_link(*link, denied).await,
            }
        }
        None => {}
    }
}

#[cfg(not(unix))]
fn open_socket(_: &Hub, _: &mut JoinSet<()>) -> Result<Option<PathBuf>, Fault> {
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{HostName, ProxyNet};

    #[test]
    fn others_are_told_scheme_and_port_as_they_reach_the_hub() {
        let at = ["127.0.0.1:8707".parse().unwrap()];
        let origin = |change: &dyn Fn(&mut Config)| {
            let mut config = Config::default();
            change(&mut config);
            public_origin(&config, &at).unwrap()
        };
        let named = |config: &mut Config, host: &str| {
            config.allowed_hosts = vec![HostName::parse(host).unwrap()];
        };
        let with_tls = |config: &mut Config| {
            (config.tls.certificate, config.tls.key) = (Some("c".into()), Some("k".into()));
        };
        let behind = |config: &mut Config| {
            config.behind_proxy = vec![ProxyNet::parse("127.0.0.1").unwrap()];
        };
        assert_eq!(origin(&|_| {}), "http://127.0.0.1:8707");
        assert_eq!(origin(&|config| named(config, "hub.example")), "http://hub.example:8707");
        let tls = origin(&|config| (with_tls(config), named(config, "hub.example")).1);
        assert_eq!(tls, "https://hub.example:8707");
        let own = origin(&|config| (with_tls(config), named(config, "hub.example:8443")).1);
        assert_eq!(own, "https://hub.example:8443");
        // The proxy has a port of its own.
        let proxied = origin(&|config| (behind(config), named(config, "hub.example")).1);
        assert_eq!(proxied, "https://hub.example");
        let port = origin(&|config| (behind(config), named(config, "hub.example:8443")).1);
        assert_eq!(port, "https://hub.example:8443");
    }
}
