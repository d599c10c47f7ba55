//! The key that signs the manifest.

use std::path::Path;

use aaep_signature::{Algorithm, PublicKey, SigningKey};

use crate::config::Config;
use crate::{Fault, files};

/// The largest key file, in bytes.
const MAX_BYTES: u64 = 16 * 1024;

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
    let bytes = files::read_private(path, MAX_BYTES)?;
    SigningKey::from_pem(&bytes).map_err(|why| {
        Fault::file(path, why.to_string(), "Make a key with `aaep manifest keygen FILE`.")
    })
}
