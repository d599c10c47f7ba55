//! The servers behind `aaep mcp`: where they are, and how they are started.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use aaep_agent::Producer;
use aaep_bridge::mcp::{Proxy, listen, remote, several};
use aaep_policy::Policy;
use serde::Deserialize;
use tokio::io::{AsyncRead, AsyncWrite, BufReader, duplex};
use tokio::process::{Child, Command};

use super::McpOptions;
use crate::{discovery, hook, policy, stdio};

/// How long a hub that does not answer is waited for.
const HUB_ANSWERS: Duration = Duration::from_secs(20);

/// What may be on its way in one direction, in bytes.
const ROOM: usize = 64 * 1024;

/// Where a server is.
#[derive(Clone, Debug)]
enum Target {
    Command { command: Vec<String>, environment: BTreeMap<String, String>, place: Option<PathBuf> },
    Address { url: String, headers: Vec<(String, String)> },
}

/// A file with servers, as agents have them.
#[derive(Deserialize)]
struct Config {
    #[serde(rename = "mcpServers")]
    servers: serde_json::Map<String, serde_json::Value>,
}

#[derive(Deserialize)]
struct Entry {
    command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<PathBuf>,
    url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
}

fn read_config(path: &Path) -> Result<Vec<(String, Target)>, String> {
    let shown = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| format!("{shown}: {error}."))?;
    let config: Config = serde_json::from_str(&text)
        .map_err(|error| format!("{shown} has no mcpServers that can be read: {error}."))?;
    if config.servers.is_empty() {
        return Err(format!("{shown} names no server. Add one below mcpServers."));
    }
    let mut servers = Vec::new();
    for (name, entry) in config.servers {
        if !several::is_name(&name) {
            return Err(format!(
                "{shown}: {name:?} cannot be a server's name here. Use letters, digits, - and _, 32 at most, no two _ in a row."
            ));
        }
        let entry: Entry = serde_json::from_value(entry)
            .map_err(|error| format!("{shown}: the server {name} cannot be read: {error}."))?;
        let target = match (entry.command, entry.url) {
            (Some(command), None) => Target::Command {
                command: [command].into_iter().chain(entry.args).collect(),
                environment: entry.env,
                place: entry.cwd,
            },
            (None, Some(url)) => {
                Target::Address { url, headers: entry.headers.into_iter().collect() }
            }
            _ => return Err(format!("{shown}: the server {name} needs a command or a url.")),
        };
        servers.push((name, target));
    }
    Ok(servers)
}

/// What is between us and our servers.
pub(super) struct Upstream {
    pub(super) to: Box<dyn AsyncWrite + Send + Unpin>,
    pub(super) from: Box<dyn AsyncRead + Send + Unpin>,
    pub(super) children: Vec<Child>,
}

impl Target {
    fn start(&self) -> Result<Upstream, String> {
        match self {
            Self::Address { url, headers } => {
                let (to, from) = remote::connect(url, headers)?;
                Ok(Upstream { to: Box::new(to), from: Box::new(from), children: Vec::new() })
            }
            Self::Command { command, environment, place } => {
                let (program, arguments) = command.split_first().ok_or("no command was named")?;
                let mut started = Command::new(program);
                started.args(arguments).envs(environment).kill_on_drop(true);
                started.stdin(Stdio::piped()).stdout(Stdio::piped());
                if let Some(place) = place {
                    started.current_dir(place);
                }
                let mut child = started.spawn().map_err(|error| {
                    format!("cannot start {program}: {error}. Check the command behind --.")
                })?;
                let pipes = child.stdin.take().zip(child.stdout.take());
                let (to, from) = pipes.ok_or("the server has no pipes")?;
                Ok(Upstream { to: Box::new(to), from: Box::new(from), children: vec![child] })
            }
        }
    }
}

/// What stands behind a proxy, and how it asks.
#[derive(Clone)]
pub(super) struct Servers {
    name: String,
    all: Vec<(String, Target)>,
    /// Whether tools are named with their servers.
    are_several: bool,
    policy: Policy,
    timeout: Duration,
    hub: Option<String>,
}

impl Servers {
    pub(super) fn read(options: &McpOptions) -> Result<Self, String> {
        let policy = options.policy.as_deref().map_or(Ok(Policy::default()), policy::read)?;
        let (name, all) = match &options.config {
            Some(path) => {
                let all = read_config(path)?;
                let names: Vec<_> = all.iter().map(|(name, _)| name.as_str()).collect();
                (names.join(" and "), all)
            }
            None => {
                let (usual, target) = one(options);
                let name = options.name.clone().unwrap_or(usual);
                (name.clone(), vec![(name, target)])
            }
        };
        Ok(Self {
            name,
            all,
            are_several: options.config.is_some(),
            policy,
            timeout: Duration::from_secs(options.timeout),
            hub: options.hub.clone(),
        })
    }

    /// Starts them all, as one.
    pub(super) fn start(&self) -> Result<Upstream, String> {
        if let ([(_, target)], false) = (&self.all[..], self.are_several) {
            return target.start();
        }
        let (mut servers, mut children) = (Vec::new(), Vec::new());
        for (name, target) in &self.all {
            let started = target.start().map_err(|why| format!("{name}: {why}"))?;
            children.extend(started.children);
            let (name, from, to) = (name.clone(), started.from, started.to);
            servers.push(several::Server { name, from, to });
        }
        let (to, read) = duplex(ROOM);
        let (written, from) = duplex(ROOM);
        tokio::spawn(several::run(servers, BufReader::new(read), written));
        Ok(Upstream { to: Box::new(to), from: Box::new(from), children })
    }

    pub(super) fn proxy(&self) -> Proxy {
        let (hub, title) = (self.hub.clone(), format!("MCP server {}", self.name));
        let names = self.all.iter().filter(|_| self.are_several).map(|(name, _)| name.clone());
        Proxy {
            name: self.name.clone(),
            servers: names.collect(),
            policy: self.policy.clone(),
            timeout: self.timeout,
            connect: Arc::new(move || {
                let producer = Producer::new("mcp").name(title.clone());
                discovery::connect(hub.as_deref(), producer, HUB_ANSWERS)
            }),
            given: hook::given(),
        }
    }

    /// Starts them behind a proxy, for one client.
    pub(super) fn open(&self) -> io::Result<listen::Ends> {
        let Upstream { to, from, children } = self.start().map_err(io::Error::other)?;
        let (client_to, proxy_from) = duplex(ROOM);
        let (proxy_to, client_from) = duplex(ROOM);
        let proxy = self.proxy();
        tokio::spawn(async move {
            let _ = proxy.run(BufReader::new(proxy_from), proxy_to, BufReader::new(from), to).await;
            for child in children {
                stdio::ended(child).await;
            }
        });
        Ok((client_to, client_from))
    }
}

/// The server that the options name, and its usual name.
fn one(options: &McpOptions) -> (String, Target) {
    match &options.url {
        Some(url) => {
            let host = url.split("://").nth(1).unwrap_or(url);
            let host = host.split(['/', '?']).next().unwrap_or(host).to_owned();
            (host, Target::Address { url: url.clone(), headers: options.header.clone() })
        }
        None => {
            let (environment, place) = Default::default();
            let command = options.command.clone();
            let name = stdio::name(&command).to_owned();
            (name, Target::Command { command, environment, place })
        }
    }
}
