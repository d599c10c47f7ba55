//! The policy file.

use aaep_policy::{MAX_FILE_BYTES, Policy};

use crate::config::Config;
use crate::{Fault, files};

/// Reads the policy that a configuration names. A file with a problem is no policy, and a hub that
/// was told to have one does not start without it.
pub fn policy(config: &Config) -> Result<Option<Policy>, Fault> {
    let Some(path) = &config.policy else { return Ok(None) };
    let bytes = files::read_trusted(path, MAX_FILE_BYTES as u64)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Fault::file(path, "It is not UTF-8.", "Save it as UTF-8."))?;
    Policy::parse(&text).map(Some).map_err(|problems| {
        let first = problems.first().map(ToString::to_string).unwrap_or_default();
        let remedy = format!("To see everything: aaep policy check {}", path.display());
        Fault::file(path, format!("It is no policy. {first}"), remedy)
    })
}
