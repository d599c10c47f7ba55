//! The profile file.

use aaep_types::profile::{MAX_BYTES, Profile};

use crate::config::Config;
use crate::{Fault, files};

/// Reads the profile that a configuration names; a hub that was told to have one does not start
/// without it.
pub fn profile(config: &Config) -> Result<Option<Profile>, Fault> {
    let Some(path) = &config.profile else { return Ok(None) };
    let bytes = files::read_trusted(path, MAX_BYTES as u64)?;
    Profile::parse(&bytes).map(Some).map_err(|why| {
        Fault::file(
            path,
            format!("It is no profile. {why}"),
            "docs/profiles.md says how one is written.",
        )
    })
}
