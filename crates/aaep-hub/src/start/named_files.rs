//! The files that a configuration names: policy, profile, and the key that signs the manifest. A hub
//! that was told to have one does not start without it.

use std::path::Path;

use aaep_policy::{MAX_FILE_BYTES, Policy};
use aaep_signature::{Algorithm, PublicKey, SigningKey};
use aaep_types::profile::{self, Profile};

use crate::config::Config;
use crate::{Fault, files};

/// The largest key file, in bytes.
const MAX_KEY_BYTES: u64 = 16 * 1024;

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

/// Reads the profile that a configuration names; a hub that was told to have one does not start
/// without it.
pub fn profile(config: &Config) -> Result<Option<Profile>, Fault> {
    let Some(path) = &config.profile else { return Ok(None) };
    let bytes = files::read_trusted(path, profile::MAX_BYTES as u64)?;
    Profile::parse(&bytes).map(Some).map_err(|why| {
        Fault::file(
            path,
            format!("It is no profile. {why}"),
            "docs/profiles.md says how one is written.",
        )
    })
}

/// Reads the key that a configuration names. A hub that was told to sign does not start without it.
pub fn manifest_key(config: &Config) -> Result<Option<SigningKey>, Fault> {
    config.hub.manifest_key.as_deref().map(read).transpose()
}

/// Makes a key for [`manifest_key`] in a new file that its owner alone can read.
pub fn make_manifest_key(path: &Path, algorithm: Algorithm) -> Result<PublicKey, Fault> {
    let kind = match algorithm {
        Algorithm::ES256 => &rcgen::PKCS_ECDSA_P256_SHA256,
        Algorithm::EdDSA => &rcgen::PKCS_ED25519,
        Algorithm::RS256 => {
            let what = "RS256 is verified and never signed with. Choose ES256 or EdDSA.";
            return Err(Fault::System { what: what.into() });
        }
    };
    let failed = |why: String| Fault::System { what: format!("No key could be made: {why}") };
    let pair = rcgen::KeyPair::generate_for(kind).map_err(|error| failed(format!("{error}.")))?;
    let pem = pair.serialize_pem();
    let key = SigningKey::from_pem(pem.as_bytes()).map_err(|error| failed(error.to_string()))?;
    files::write_private(path, pem.as_bytes())?;
    Ok(key.public().clone())
}

fn read(path: &Path) -> Result<SigningKey, Fault> {
    let bytes = files::read_private(path, MAX_KEY_BYTES)?;
    SigningKey::from_pem(&bytes).map_err(|why| {
        Fault::file(path, why.to_string(), "Make a key with `aaep manifest keygen FILE`.")
    })
}
