//! What is looked at before the hub opens its doors: a hub that would not be safe does not start,
//! and says why and what to do.

mod check;
mod data;
mod erase;
pub(crate) mod journal;
mod keys;
mod migrate;
mod named_files;
mod open_files;

use aaep_policy::Policy;
use aaep_signature::SigningKey;
use aaep_types::profile::Profile;

use crate::access::Access;
use crate::config::Config;
use crate::{Fault, Running, Tls};

pub use check::check;
pub use data::DataDirectory;
pub(crate) use data::hub_at_work;
pub use erase::{Erase, Erased, copy_of, erase};
pub use journal::{HEADS_NAME, JOURNAL_NAME, Kept};
pub use keys::{TOKEN_KEY_BYTES, TokenKey};
pub use migrate::{Migrated, migrate};
pub use named_files::{make_manifest_key, manifest_key, policy, profile};
pub use open_files::allow_connections;

/// A configuration that was found safe, and what a hub needs before it opens its doors. It is made
/// only by the checks ([`Builder::prepare`](crate::Builder::prepare)), and cannot be changed.
#[derive(Debug)]
#[must_use = "no hub runs before `start`"]
pub struct Prepared {
    pub(crate) config: Config,
    pub(crate) access: Access,
    pub(crate) policy: Option<Policy>,
    pub(crate) profile: Option<Profile>,
    /// Signs the manifest.
    pub(crate) manifest_key: Option<SigningKey>,
    pub(crate) tls: Option<Tls>,
    /// Held against other hubs while this lives; `None` if ephemeral.
    pub(crate) data: Option<DataDirectory>,
    /// The journal in it.
    pub(crate) kept: Option<Kept>,
    pub(crate) token_key: TokenKey,
    pub(crate) warnings: Vec<String>,
    pub(crate) trace_parent: Option<crate::http::TraceParent>,
    pub(crate) config_file: Option<std::path::PathBuf>,
}

impl Prepared {
    /// Looks at everything and opens what must be open, or says why the hub cannot start.
    pub(crate) fn new(config: Config) -> Result<Self, Fault> {
        prepare(config)
    }

    /// Opens every door and begins to work. To be called inside a Tokio runtime.
    pub async fn start(self) -> Result<Running, Fault> {
        Running::start(self).await
    }

    /// Sentences for the operator: what is safe only under some condition.
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// Who may come in.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// TLS, if it is on.
    pub fn tls(&self) -> Option<&Tls> {
        self.tls.as_ref()
    }

    /// The data directory; `None` if nothing is kept.
    pub fn data(&self) -> Option<&DataDirectory> {
        self.data.as_ref()
    }

    /// The key from which reply tokens are made.
    pub fn token_key(&self) -> &TokenKey {
        &self.token_key
    }
}

fn prepare(config: Config) -> Result<Prepared, Fault> {
    let mut warnings = check(&config)?;
    let Ready { access, policy, profile, manifest_key, tls } = Ready::new(&config)?;
    warnings.extend(tls.as_ref().and_then(Tls::warning));
    let data = match &config.data {
        Some(path) if !config.ephemeral => Some(DataDirectory::open(path)?),
        _ => None,
    };
    let token_key = match &data {
        Some(data) => TokenKey::open(data)?,
        None => TokenKey::ephemeral()?,
    };
    let kept = match &data {
        Some(data) => Some(Kept::open(data, config.state.as_deref())?),
        None => None,
    };
    if data.is_some() && config.state.is_none() {
        warnings.push("Nothing is noted outside of the data directory, and the journal's key lies in it: an old copy of it would not be recognised, and whoever can write there can forge records. Set state to a directory outside of it.".into());
    }
    let ready = Ready { access, policy, profile, manifest_key, tls };
    Ok(Prepared::of(config, ready, data, kept, token_key, warnings))
}

/// What a configuration names, read and checked.
struct Ready {
    access: Access,
    policy: Option<Policy>,
    profile: Option<Profile>,
    manifest_key: Option<SigningKey>,
    tls: Option<Tls>,
}

impl Ready {
    fn new(config: &Config) -> Result<Self, Fault> {
        let access = Access::new(config)?;
        let policy = policy(config)?;
        let profile = profile(config)?;
        let manifest_key = manifest_key(config)?;
        let tls = match config.tls.files() {
            Some((certificate, key)) => {
                Some(Tls::load_with(certificate, key, access.client_verifier())?)
            }
            None => None,
        };
        Ok(Self { access, policy, profile, manifest_key, tls })
    }
}

impl Prepared {
    fn of(
        config: Config,
        ready: Ready,
        data: Option<DataDirectory>,
        kept: Option<Kept>,
        token_key: TokenKey,
        warnings: Vec<String>,
    ) -> Self {
        let Ready { access, policy, profile, manifest_key, tls } = ready;
        Self {
            config,
            access,
            policy,
            profile,
            manifest_key,
            tls,
            data,
            kept,
            token_key,
            warnings,
            trace_parent: None,
            config_file: None,
        }
    }

    /// Whether a node with this configuration could start a hub: its files are read, and nothing else is
    /// done.
    #[cfg(feature = "cluster")]
    pub(crate) fn check_on_log(config: &Config) -> Result<(), Fault> {
        Ready::new(config).map(drop)
    }

    /// For a node that owns a log: its hub listens at `address`, and callers name it as they name the
    /// node's own doors.
    #[cfg(feature = "cluster")]
    pub(crate) fn on_log(
        mut config: Config,
        address: std::net::SocketAddr,
        kept: Kept,
        token_key: TokenKey,
    ) -> Result<Self, Fault> {
        config.allowed_hosts.extend(crate::cluster::hosts(&config.listen));
        config.listen = vec![address];
        let ready = Ready::new(&config)?;
        Ok(Self::of(config, ready, None, Some(kept), token_key, Vec::new()))
    }
}
