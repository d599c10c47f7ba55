//! What is looked at before the hub opens its doors: a hub that would not be safe does not start,
//! and says why and what to do.

mod check;
mod data;
mod files;
pub(crate) mod journal;
mod keys;
mod migrate;
mod policy;
mod profile;

use aaep_policy::Policy;
use aaep_types::profile::Profile;

use crate::access::Access;
use crate::config::Config;
use crate::{Fault, Tls};

pub use check::check;
pub use data::DataDirectory;
pub use files::allow_connections;
pub use journal::{HEADS_NAME, JOURNAL_NAME, Kept};
pub use keys::{TOKEN_KEY_BYTES, TokenKey};
pub use migrate::{Migrated, migrate};
pub use policy::policy;
pub use profile::profile;

/// What a hub needs before it opens its doors.
#[derive(Debug)]
pub struct Prepared {
    /// Who may come in.
    pub access: Access,
    /// What is asked before tools run, if anybody said so.
    pub policy: Option<Policy>,
    /// What agents' events are held to besides the protocol.
    pub profile: Option<Profile>,
    /// TLS, if it is on.
    pub tls: Option<Tls>,
    /// The data directory, held against other hubs while this lives; `None` if ephemeral.
    pub data: Option<DataDirectory>,
    /// The journal in it.
    pub kept: Option<Kept>,
    /// The key from which reply tokens are made.
    pub token_key: TokenKey,
    /// Sentences for whoever starts the hub.
    pub warnings: Vec<String>,
}

/// Looks at everything and opens what must be open, or says why the hub cannot start.
pub fn prepare(config: &Config) -> Result<Prepared, Fault> {
    let mut warnings = check(config)?;
    let access = Access::new(config)?;
    let policy = policy(config)?;
    let profile = profile(config)?;
    let tls = match config.tls.files() {
        Some((certificate, key)) => Some(Tls::load(certificate, key)?),
        None => None,
    };
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
    Ok(Prepared { access, policy, profile, tls, data, kept, token_key, warnings })
}
