//! The hub on this machine: where it listens, and what to show it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use aaep_agent::{Agent, Producer, Remote};
use aaep_hub::config::{Config, Flags, Surroundings, load};
use aaep_transport::client::{ClientError, ClientIdentity, HttpClient, Options};

/// Names the hub, for commands that talk with one.
pub(crate) const HUB_VARIABLE: &str = "AAEP_URL";

/// A token, and a file with one.
pub(crate) const TOKEN_VARIABLES: (&str, &str) = ("AAEP_TOKEN", "AAEP_TOKEN_FILE");

/// The longest token file, in bytes.
const TOKEN_BYTES: u64 = 16 << 10;

/// A hub, and the certificate that it made itself, if it did.
pub(crate) struct DiscoveredHub {
    pub(crate) url: String,
    pub(crate) certificate: Option<Vec<u8>>,
}

/// The hub that was named, else the one of the environment, else the one that listens on a socket of
/// this user (the demo's at last), else the address of the configuration.
pub(crate) fn hub(named: Option<&str>) -> Result<DiscoveredHub, String> {
    let variable = || std::env::var(HUB_VARIABLE).ok().filter(|url| !url.is_empty());
    if let Some(url) = named.map(str::to_owned).or_else(variable) {
        return Ok(DiscoveredHub {
            url,
            certificate: certificate(&configuration().unwrap_or_default()),
        });
    }
    let config = configuration()?;
    if let Some(url) = socket(&config) {
        return Ok(DiscoveredHub { url, certificate: None });
    }
    let Some(address) = config.listen.first() else {
        return Err(
            "The configuration names no address to listen on; name a hub with --hub.".into()
        );
    };
    let scheme = if config.tls.files().is_some() { "https" } else { "http" };
    let url = format!("{scheme}://{}{}", reached(*address), config.base.as_str());
    Ok(DiscoveredHub { url, certificate: certificate(&config) })
}

/// How long a hub may take to start.
#[cfg(unix)]
const STARTS: Duration = Duration::from_secs(10);

/// The hub that was named or runs; if none is named and none runs, one is started, on the socket of this
/// user alone.
#[cfg(unix)]
pub(crate) fn running(named: Option<&str>) -> Result<DiscoveredHub, String> {
    use std::thread::sleep;
    use std::time::Instant;
    let variable = std::env::var_os(HUB_VARIABLE).is_some_and(|url| !url.is_empty());
    if named.is_some() || variable {
        return hub(named);
    }
    let config = configuration()?;
    let found = |url| DiscoveredHub { url, certificate: None };
    if let Some(url) = own_socket(&config) {
        return Ok(found(url));
    }
    if !config.unix_socket.enabled || config.base != Config::default().base {
        return hub(None);
    }
    let mut child = start()?;
    let begun = Instant::now();
    loop {
        if let Some(url) = own_socket(&config) {
            return Ok(found(url));
        }
        // Another call may have started one at the same time; then this one gives way.
        let ended = child.try_wait().ok().flatten().is_some();
        if begun.elapsed() > STARTS || (ended && begun.elapsed() > STARTS / 2) {
            return Err("No hub runs, and none could be started. Start one with `aaep hub`, which says why.".into());
        }
        sleep(Duration::from_millis(2));
    }
}

/// An agent of the hub that [`running`] finds or starts.
pub(crate) fn connect(
    named: Option<&str>,
    producer: Producer,
    patience: Duration,
) -> Result<Agent, String> {
    agent(running(named)?, producer, patience)
}

/// An agent of the hub that runs, if one does.
pub(crate) fn connect_to(producer: Producer, patience: Duration) -> Option<Agent> {
    agent(hub(None).ok()?, producer, patience).ok()
}

fn agent(found: DiscoveredHub, producer: Producer, patience: Duration) -> Result<Agent, String> {
    let mut remote = Remote::at(found.url);
    if let Some(certificate) = found.certificate {
        remote = remote.trust_pem(certificate);
    }
    if let Some(token) = token(None)? {
        remote = remote.token(token);
    }
    let agent = Agent::connect(remote, producer).map_err(|error| error.to_string())?;
    Ok(agent.patience(patience))
}

#[cfg(not(unix))]
pub(crate) fn running(named: Option<&str>) -> Result<DiscoveredHub, String> {
    hub(named)
}

/// What of an agent's environment a hub gets that outlives it: where things are, and the hub's own
/// settings. Tokens are the agent's, and the options for trying out are not for an agent to set: they
/// would let it answer for the person.
#[cfg(unix)]
fn is_for_hub(name: &str) -> bool {
    let place = matches!(
        name,
        "HOME"
            | "PATH"
            | "USER"
            | "LOGNAME"
            | "LANG"
            | "TMPDIR"
            | "XDG_RUNTIME_DIR"
            | "XDG_STATE_HOME"
            | "XDG_DATA_HOME"
            | "XDG_CONFIG_HOME"
    );
    let kept_back = ["AAEP_TOKEN", "AAEP_DEVELOPMENT"];
    let is_kept_back = kept_back.iter().any(|prefix| name.starts_with(prefix));
    place || name.starts_with("AAEP_") && !is_kept_back
}

// enforces: I30
/// Starts a hub that outlives this process. It gets nothing of the environment but where things are:
/// agents hand their keys to their hooks.
#[cfg(unix)]
fn start() -> Result<std::process::Child, String> {
    use std::os::unix::process::CommandExt;
    use std::process::{Command, Stdio};
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let kept = std::env::vars_os().filter(|(name, _)| name.to_str().is_some_and(is_for_hub));
    let mut command = Command::new(program);
    command.arg("hub").env_clear().envs(kept);
    if std::env::var_os("AAEP_LISTEN").is_none() {
        command.env("AAEP_LISTEN", "");
    }
    // A group of its own: what ends the agent does not end the hub.
    command.process_group(0).current_dir("/");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.spawn().map_err(|error| format!("No hub runs, and none could be started: {error}."))
}

/// The socket of a demo that runs, else of a hub, as an address.
#[cfg(unix)]
pub(crate) fn demo_socket() -> Option<String> {
    use aaep_transport::{discovery, unix::path_for};
    let hub = Config::default().hub.agent_id;
    let path = discovery::first_alive([path_for(crate::demo::NAME), path_for(hub.as_str())])?;
    path.to_str().map(|path| format!("unix:{path}"))
}

#[cfg(not(unix))]
pub(crate) fn demo_socket() -> Option<String> {
    None
}

/// A client for an address, which may be a socket's.
pub(crate) fn client(url: &str, options: Options) -> Result<HttpClient, ClientError> {
    #[cfg(unix)]
    if let Some(path) = url.strip_prefix("unix:") {
        return Ok(HttpClient::over_socket(path, Config::default().base.as_str(), options));
    }
    HttpClient::new(url, options)
}

/// The socket of a hub that runs, as an address. Over it, the kernel says whose the hub is.
#[cfg(unix)]
fn socket(config: &Config) -> Option<String> {
    let demo = aaep_transport::unix::path_for(crate::demo::NAME);
    own_socket(config).or_else(|| alive(config, demo))
}

/// The same without the demo, in which anybody on this machine can say yes.
#[cfg(unix)]
fn own_socket(config: &Config) -> Option<String> {
    use aaep_transport::unix::path_for;
    let own = config.unix_socket.path.clone();
    alive(config, own.unwrap_or_else(|| path_for(config.hub.agent_id.as_str())))
}

#[cfg(unix)]
fn alive(config: &Config, path: std::path::PathBuf) -> Option<String> {
    // Clients look for the usual paths there.
    if config.base != Config::default().base {
        return None;
    }
    let path = aaep_transport::discovery::first_alive([path])?;
    path.to_str().map(|path| format!("unix:{path}"))
}

#[cfg(not(unix))]
fn socket(_: &Config) -> Option<String> {
    None
}

fn configuration() -> Result<Config, String> {
    let surroundings = Surroundings::of_process().map_err(|fault| fault.to_string())?;
    // Where the data would be does not matter here.
    let flags = Flags { ephemeral: true, ..Flags::default() };
    load(&flags, &surroundings).map(|loaded| loaded.config).map_err(|fault| fault.to_string())
}

/// A hub that listens everywhere is here as well.
fn reached(address: SocketAddr) -> SocketAddr {
    let ip = match address.ip() {
        ip if !ip.is_unspecified() => ip,
        IpAddr::V4(_) => Ipv4Addr::LOCALHOST.into(),
        IpAddr::V6(_) => Ipv6Addr::LOCALHOST.into(),
    };
    SocketAddr::new(ip, address.port())
}

fn certificate(config: &Config) -> Option<Vec<u8>> {
    let (certificate, _) = config.tls.files()?;
    std::fs::read(certificate).ok()
}

/// Certificates to trust, from the file that was named.
pub(crate) fn certificates(file: Option<&Path>) -> Result<Option<Vec<u8>>, String> {
    let Some(file) = file else { return Ok(None) };
    let read = std::fs::read(file).map(Some);
    read.map_err(|error| {
        format!("cannot read the certificates in {}: {error}. Check the path.", file.display())
    })
}

/// The certificate to show, with its key, from the files that were named.
pub(crate) fn identity(
    certificate: Option<&Path>,
    key: Option<&Path>,
) -> Result<Option<ClientIdentity>, String> {
    let (Some(certificate), Some(key)) = (certificate, key) else { return Ok(None) };
    let read = |file: &Path, what: &str| {
        std::fs::read(file).map_err(|error| {
            format!("cannot read the {what} in {}: {error}. Check the path.", file.display())
        })
    };
    let chain_pem = read(certificate, "certificate")?;
    Ok(Some(ClientIdentity { chain_pem, key_pem: read(key, "key")? }))
}

/// The token to show: from the file that was named, or from the environment; none is fine on
/// loopback.
pub(crate) fn token(file: Option<&Path>) -> Result<Option<String>, String> {
    let (token, token_file) = TOKEN_VARIABLES;
    if let Some(file) = file {
        return read(file).map(Some);
    }
    if let Some(token) = std::env::var(token).ok().filter(|token| !token.is_empty()) {
        return Ok(Some(token));
    }
    std::env::var_os(token_file)
        .filter(|path| !path.is_empty())
        .map(|path| read(Path::new(&path)))
        .transpose()
}

fn read(file: &Path) -> Result<String, String> {
    use std::io::Read;
    let mut text = String::new();
    let opened = std::fs::File::open(file);
    opened.and_then(|file| file.take(TOKEN_BYTES).read_to_string(&mut text)).map_err(|error| {
        format!("cannot read the token in {}: {error}. Check the path.", file.display())
    })?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I30
    #[cfg(unix)]
    #[test]
    fn an_agents_environment_does_not_disarm_the_hub_that_its_hook_starts() {
        for kept in ["HOME", "XDG_RUNTIME_DIR", "AAEP_CONFIG", "AAEP_UNIX_SOCKET__PATH"] {
            assert!(is_for_hub(kept), "{kept}");
        }
        let kept_back = [
            "AAEP_DEVELOPMENT__OWN_REPLIES",
            "AAEP_DEVELOPMENT__LOCAL_REPLIES",
            "AAEP_TOKEN",
            "KEY",
        ];
        assert!(!kept_back.into_iter().any(is_for_hub));
    }

    #[test]
    fn a_hub_that_listens_everywhere_is_reached_here() {
        assert_eq!(reached("0.0.0.0:1".parse().unwrap()).to_string(), "127.0.0.1:1");
        assert_eq!(reached("[::]:1".parse().unwrap()).to_string(), "[::1]:1");
        assert_eq!(reached("10.0.0.1:1".parse().unwrap()).to_string(), "10.0.0.1:1");
    }
}
