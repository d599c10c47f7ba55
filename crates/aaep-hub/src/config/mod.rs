//! What the hub is told: flags over `AAEP_*` environment over `aaep.toml`.
//!
//! `aaep.example.toml`, beside this crate, shows every key with its default and explains it.
//!
//! # Environment
//!
//! A key's variable is `AAEP_` and the key in capitals; a key in a section has two underscores
//! between section and key:
//!
//! | variable | key |
//! |---|---|
//! | `AAEP_LISTEN=127.0.0.1:8707,[::1]:8707` | `listen`; lists are separated by commas |
//! | `AAEP_DATA=/var/lib/aaep` | `data` |
//! | `AAEP_STATE=/var/lib/aaep-state` | `state` |
//! | `AAEP_EPHEMERAL=true` | `ephemeral` |
//! | `AAEP_TLS__KEY=/etc/aaep/key.pem` | `tls.key` |
//! | `AAEP_LIMITS__BODY_BYTES=2097152` | `limits.body_bytes` |
//!
//! Two names are short: `AAEP_CONFIG` is the configuration file itself, and `AAEP_LOG` is
//! `log.level`. `principals` can only be written in the file: a list of people is no place for an
//! environment variable, and hashes there would be seen by every child process. A name with two
//! underscores that is no key is refused, and so is one that is a key but for its underscores.
//! Others are none of the hub's business and are only mentioned.

mod changes;
mod check;
mod directories;
mod environment;
mod issuers;
mod limits;
mod load;
mod source;
mod values;

use std::net::{Ipv4Addr, SocketAddr};
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use aaep_engine::Role;
use serde::{Deserialize, Serialize};

use crate::Fault;
use crate::access::TokenHash;

pub use crate::redaction::Secrets;
pub use crate::roles::RoleRule;

pub use directories::System;
pub use environment::Surroundings;
pub use issuers::{IssuerEntry, RoleEntry, SignInEntry, SigningAlgorithm};
pub use limits::Limits;
pub use load::{FILE_NAME, Flags, Loaded, load, log_format};
pub use values::{BasePath, HostName, Label, Language, ProxyNet, WebOrigin};

/// The port of the hub when nobody says otherwise.
pub const DEFAULT_PORT: u16 = 8707;

/// Everything the hub can be told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Addresses to listen on.
    #[serde(deserialize_with = "values::addresses")]
    pub listen: Vec<SocketAddr>,
    /// Addresses to listen on for gRPC; none unless they are named.
    #[serde(deserialize_with = "values::addresses")]
    pub grpc: Vec<SocketAddr>,
    /// The path under which the protocol's paths live.
    pub base: BasePath,
    /// The data directory. After [`load`] it is there, unless the hub is `ephemeral`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data: Option<PathBuf>,
    /// Where the hub notes, outside its data directory, how far its journal is: so that an old copy
    /// of the data is recognised. `None`: nowhere.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<PathBuf>,
    /// Whether everything is forgotten at the end: nothing is written to disk.
    pub ephemeral: bool,
    /// What is asked before tools of agents run, whatever their authors think: a policy file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PathBuf>,
    /// What agents' events are held to besides the protocol: a profile file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile: Option<PathBuf>,
    /// What becomes of secrets in what agents say.
    pub secrets: Secrets,
    /// Whether loopback without a token is let in, as `local` or `local-agent`.
    pub loopback_without_credentials: bool,
    /// Proxies that terminate TLS before the hub; only their forwarded headers are believed.
    pub behind_proxy: Vec<ProxyNet>,
    /// Hosts that requests may name, besides the addresses listened on.
    pub allowed_hosts: Vec<HostName>,
    /// Origins of web pages that may use the hub, besides its own page.
    pub allowed_origins: Vec<WebOrigin>,
    /// Who the hub says it is.
    pub hub: Hub,
    /// The socket for programs of the same user.
    pub unix_socket: UnixSocket,
    /// Certificate and key.
    pub tls: Tls,
    /// How people show that it is really them who say yes.
    pub presence: Presence,
    /// What is only for trying out.
    pub development: Development,
    /// What is done only for others who do not follow the specification.
    pub compatibility: Compatibility,
    /// The bounds of everything.
    pub limits: Limits,
    /// How long records are kept, and how many.
    pub records: Records,
    /// What is logged, and how.
    pub log: Log,
    /// What roles are not to hear.
    pub hearing: Vec<RoleRule>,
    /// Who may come in, with which token.
    pub principals: Vec<PrincipalEntry>,
    /// Whose signed tokens are believed.
    pub issuers: Vec<IssuerEntry>,
    /// Principals that are not let in, whatever they show.
    pub denied: Vec<String>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: vec![SocketAddr::from((Ipv4Addr::LOCALHOST, DEFAULT_PORT))],
            grpc: Vec::new(),
            base: BasePath::default(),
            data: None,
            state: None,
            ephemeral: false,
            policy: None,
            profile: None,
            secrets: Secrets::default(),
            loopback_without_credentials: true,
            behind_proxy: Vec::new(),
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            hub: Hub::default(),
            unix_socket: UnixSocket::default(),
            tls: Tls::default(),
            presence: Presence::default(),
            development: Development::default(),
            compatibility: Compatibility::default(),
            limits: Limits::default(),
            records: Records::default(),
            log: Log::default(),
            hearing: Vec::new(),
            principals: Vec::new(),
            issuers: Vec::new(),
            denied: Vec::new(),
        }
    }
}

/// Who the hub says it is, in its manifest and when it accepts a subscription.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Hub {
    /// Its identity, stable across versions; also the Unix socket's name.
    pub agent_id: Label,
    /// Its name for people.
    pub agent_name: Label,
    /// The languages that the agents behind it speak.
    pub languages: Vec<Language>,
    /// The private key with which the manifest is signed; `None`: it is not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub manifest_key: Option<PathBuf>,
}

impl Default for Hub {
    fn default() -> Self {
        Self {
            agent_id: Label::fixed("aaep-hub"),
            agent_name: Label::fixed("AAEP hub"),
            languages: Language::parse("en").into_iter().collect(),
            manifest_key: None,
        }
    }
}

/// The Unix socket, for programs of the same user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UnixSocket {
    /// Whether there is one. On Windows there is none in any case.
    pub enabled: bool,
    /// Where; `None` is the place of W10, named after `hub.agent_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub path: Option<PathBuf>,
}

impl Default for UnixSocket {
    fn default() -> Self {
        Self { enabled: true, path: None }
    }
}

/// Certificate and key, both PEM files; both or neither.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tls {
    /// The certificate, followed by those that lead to its root.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub certificate: Option<PathBuf>,
    /// Its private key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<PathBuf>,
    /// Certificates that vouch for those of clients; with them, principals can come by certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_ca: Option<PathBuf>,
    /// Certificates of clients that were revoked: one or more CRLs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_crl: Option<PathBuf>,
}

impl Tls {
    /// Certificate and key, if TLS is on.
    pub fn files(&self) -> Option<(&Path, &Path)> {
        self.certificate.as_deref().zip(self.key.as_deref())
    }
}

/// What is only for trying out, and off unless somebody asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Development {
    /// Whether answers from loopback without credentials count (D4). Then any program on this
    /// machine can approve.
    pub local_replies: bool,
    /// Whether answers from an agent's own processes count (I30). Then an agent can approve what it
    /// asks for itself. `local_replies` means this, too.
    pub own_replies: bool,
}

/// How people show that it is really them who say yes (`docs/presence.md`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Presence {
    /// How long a listener stays unlocked after the PIN was typed, in seconds.
    pub unlock_seconds: u64,
}

impl Default for Presence {
    fn default() -> Self {
        Self { unlock_seconds: 900 }
    }
}

/// What is done only for others who do not follow the specification; off unless somebody asks for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Compatibility {
    /// For the published conformance suite, on streams without a handshake: the start of a session is
    /// sent twice, with the same event id; what a user says waits for their stream; events that are
    /// posted are taken and dropped.
    pub published_suite: bool,
}

/// How long records are kept, and how many (S13). What a restart needs is kept in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Records {
    /// The records of a session are erased so many days after its last one; `None`: never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keep_days: Option<NonZeroU32>,
    /// When the journal is larger than this, the oldest sessions that are over are erased; `None`: it
    /// grows.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_megabytes: Option<NonZeroU32>,
}

/// What is logged, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Log {
    /// How a record is written.
    pub format: LogFormat,
    /// The least important records that are written.
    pub level: LogLevel,
    /// Where spans of requests are sent too, by OTLP over HTTP; `None`: nowhere. A hub that another
    /// program embeds leaves this to that program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub otlp: Option<String>,
}

/// How a log record is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogFormat {
    /// A line for people.
    #[default]
    Text,
    /// A JSON object on a line.
    Json,
}

/// How important a log record is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LogLevel {
    /// Nothing is logged.
    Off,
    /// Something failed.
    Error,
    /// Something is not as it should be.
    Warn,
    /// What the hub does.
    #[default]
    Info,
    /// How it does it.
    Debug,
    /// Every step.
    Trace,
}

/// Somebody who may come in.
///
/// Two entries may have one name if they agree in everything but the token: so a token can be
/// changed without a moment in which neither is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrincipalEntry {
    /// Names the program or device.
    pub name: Label,
    /// What it may do.
    #[serde(with = "RoleName")]
    pub role: Role,
    /// On whose behalf.
    pub user: Label,
    /// The SHA-256 of its token. A principal has this or one of the next three.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_sha256: Option<TokenHash>,
    /// A file with its token, readable by the hub's user alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub token_file: Option<PathBuf>,
    /// The SHA-256 of its certificate, in hexadecimal digits; colons may stand between them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_sha256: Option<String>,
    /// A name in its certificate (SAN), with its kind: `dns:`, `email:` or `uri:` before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub certificate_name: Option<String>,
}

/// The names of roles in the configuration.
#[derive(Serialize, Deserialize)]
#[serde(remote = "Role", rename_all = "snake_case")]
pub(crate) enum RoleName {
    Agent,
    AccessibilityConsumer,
    /// What somebody is made to be whose replies do not count; nobody is told to be one.
    #[serde(skip)]
    Listener,
    Auditor,
    Admin,
    Metrics,
}

/// What stands for a secret in [`Config::to_toml`].
pub const HIDDEN: &str = "…";

impl Config {
    /// What is in force, as TOML that can be read back, but for the hashes of tokens: those are
    /// shown as `"…"`.
    pub fn to_toml(&self) -> Result<String, Fault> {
        // enforces: S8
        let mut table = self.to_table()?;
        if let Some(toml::Value::Array(principals)) = table.get_mut("principals") {
            for hash in principals.iter_mut().filter_map(|entry| entry.get_mut("token_sha256")) {
                *hash = toml::Value::from(HIDDEN);
            }
        }
        toml::to_string_pretty(&table).map_err(|error| cannot_write(&error))
    }

    fn to_table(&self) -> Result<toml::Table, Fault> {
        toml::Table::try_from(self).map_err(|error| cannot_write(&error))
    }

    /// Makes relative paths start at this directory.
    fn resolve(&mut self, directory: &Path) {
        let tokens = self.principals.iter_mut().map(|entry| &mut entry.token_file);
        let keys =
            self.issuers.iter_mut().flat_map(|entry| [&mut entry.keys_file, &mut entry.keys_ca]);
        let own = [
            &mut self.data,
            &mut self.state,
            &mut self.policy,
            &mut self.profile,
            &mut self.unix_socket.path,
            &mut self.hub.manifest_key,
            &mut self.tls.certificate,
            &mut self.tls.key,
            &mut self.tls.client_ca,
            &mut self.tls.client_crl,
        ];
        for path in own.into_iter().chain(tokens).chain(keys).flatten() {
            // Joining an absolute path gives that path.
            *path = directory.join(&*path);
        }
    }

    /// Every address that is listened on, whatever is spoken there.
    pub fn addresses(&self) -> impl Iterator<Item = &SocketAddr> {
        self.listen.iter().chain(&self.grpc)
    }

    /// Every key there is, each with some value: what the environment can set, and what the example
    /// must show. Written out, so that a new key does not compile until it is here.
    fn with_every_key() -> Self {
        let path = || Some(PathBuf::from("path"));
        let defaults = Self::default();
        Self {
            listen: defaults.listen,
            grpc: defaults.grpc,
            base: defaults.base,
            data: path(),
            state: path(),
            ephemeral: defaults.ephemeral,
            policy: path(),
            profile: path(),
            secrets: defaults.secrets,
            loopback_without_credentials: defaults.loopback_without_credentials,
            behind_proxy: defaults.behind_proxy,
            allowed_hosts: defaults.allowed_hosts,
            allowed_origins: defaults.allowed_origins,
            hub: Hub { manifest_key: path(), ..defaults.hub },
            unix_socket: UnixSocket { enabled: true, path: path() },
            tls: Tls { certificate: path(), key: path(), client_ca: path(), client_crl: path() },
            presence: defaults.presence,
            development: defaults.development,
            compatibility: defaults.compatibility,
            limits: defaults.limits,
            records: Records {
                keep_days: NonZeroU32::new(365),
                max_megabytes: NonZeroU32::new(1024),
            },
            log: Log { otlp: Some("http://127.0.0.1:4318".into()), ..defaults.log },
            hearing: vec![RoleRule {
                role: Role::Auditor,
                types: vec!["*".into()],
                leave_out: vec!["chunk".into()],
            }],
            principals: vec![PrincipalEntry {
                name: Label::fixed("name"),
                role: Role::Agent,
                user: Label::fixed("user"),
                token_sha256: TokenHash::parse(&"0".repeat(64)),
                token_file: path(),
                certificate_sha256: Some("0".repeat(64)),
                certificate_name: Some("dns:name".into()),
            }],
            issuers: vec![IssuerEntry::with_every_key()],
            denied: defaults.denied,
        }
    }
}

fn cannot_write(error: &toml::ser::Error) -> Fault {
    Fault::System { what: format!("The configuration cannot be written as TOML: {error}.") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_appears_in_the_example() {
        let mut section = String::new();
        let mut shown = std::collections::BTreeSet::new();
        for line in include_str!("../../aaep.example.toml").lines() {
            let line = line.strip_prefix('#').unwrap_or(line);
            if let Some(name) = line.strip_prefix('[') {
                section = format!("{}.", name.trim_matches(['[', ']']));
            } else if let Some((key, _)) = line.split_once(" = ") {
                shown.insert(format!("{section}{key}"));
            }
        }
        let mut keys = Vec::new();
        for (name, value) in Config::with_every_key().to_table().unwrap() {
            match value.as_table().or_else(|| value.get(0)?.as_table()) {
                Some(inner) => keys.extend(inner.keys().map(|key| format!("{name}.{key}"))),
                None => keys.push(name),
            }
        }
        assert!(keys.len() > 40, "{keys:?}");
        for key in keys {
            assert!(shown.contains(&key), "{key} is missing in aaep.example.toml");
        }
    }
}
