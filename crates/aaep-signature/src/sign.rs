//! Signing a manifest.

use std::fmt;

use aaep_types::Message;
use jsonwebtoken::{Header, encode};
use serde_json::{Map, Value};

use crate::SigningKey;
use crate::verify::MAX_LIFE_SECONDS;

/// What a header says that it is.
pub(crate) const TYPE: &str = "aaep-manifest+jws";

/// Why something was not signed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotSigned {
    /// It is no valid manifest; and what is wrong with it.
    NoManifest(String),
    /// It would be good for no time at all, or for too long.
    Time,
    /// The key cannot sign.
    Key,
}

impl fmt::Display for NotSigned {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoManifest(why) => write!(f, "It is no valid manifest: {why}"),
            Self::Time => {
                let days = MAX_LIFE_SECONDS / 86_400;
                write!(f, "A signature is good for at least a second and at most {days} days.")
            }
            Self::Key => f.write_str("The key cannot sign."),
        }
    }
}

impl std::error::Error for NotSigned {}

impl SigningKey {
    // enforces: S7
    /// Signs a manifest: good from `now`, in seconds of Unix time, for so many seconds. An older
    /// `iat` and `exp` in it are replaced.
    pub fn sign(&self, manifest: &str, now: i64, seconds: u32) -> Result<String, NotSigned> {
        match Message::parse(manifest.as_bytes()) {
            Ok(Message::Manifest(_)) => {}
            Ok(_) => return Err(NotSigned::NoManifest("it is another message.".into())),
            Err(problems) => return Err(NotSigned::NoManifest(problems.to_string())),
        }
        let seconds = i64::from(seconds);
        if !(1..=MAX_LIFE_SECONDS).contains(&seconds) {
            return Err(NotSigned::Time);
        }
        let mut claims: Map<String, Value> = serde_json::from_str(manifest)
            .map_err(|error| NotSigned::NoManifest(error.to_string()))?;
        claims.insert("iat".into(), now.into());
        claims.insert("exp".into(), now.saturating_add(seconds).into());
        let public = self.public();
        let mut header = Header::new(public.algorithm().named());
        header.typ = Some(TYPE.into());
        header.kid = Some(public.fingerprint().to_owned());
        header.jwk = Some(public.bare());
        encode(&header, &claims, &self.key).map_err(|_| NotSigned::Key)
    }
}
