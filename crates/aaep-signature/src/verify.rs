//! Verifying a signed manifest: everything that does not depend on the past.

use std::fmt;

use aaep_types::Message;
use jsonwebtoken::{Validation, decode, decode_header};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::key::{Algorithm, BadKey, PublicKey};
use crate::sign::TYPE;

/// The longest signed manifest that is looked at, in bytes.
pub const MAX_BYTES: usize = 256 << 10;

/// How far the clocks of signer and verifier may be apart, in seconds.
pub const SKEW_SECONDS: i64 = 300;

/// The longest time for which a signature may be good, in seconds: 400 days.
pub const MAX_LIFE_SECONDS: i64 = 400 * 86_400;

/// How many keys a list may have.
const MAX_KEYS: usize = 1024;

/// Whose signatures count.
#[derive(Clone, Copy, Debug)]
pub enum Signers<'a> {
    /// Any key: it is remembered at first sight ([`KnownAgents`](crate::KnownAgents)).
    Anybody,
    /// Those of a list alone.
    Listed(&'a KeyList),
}

/// Keys that are trusted from the start.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KeyList(Vec<ListedKey>);

/// A key, and whose it is if the list says so.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ListedKey {
    key: PublicKey,
    agent_id: Option<String>,
}

/// A JWK set; a key may say whose it is.
#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

impl KeyList {
    /// Reads a JWK set (RFC 7517). A key with a member `agent_id` counts for that agent alone. All of
    /// them must be keys that can verify: one that is left out in silence would be missed later.
    pub fn from_json(json: &str) -> Result<Self, BadKey> {
        let set: Set = serde_json::from_str(json).map_err(|_| BadKey::NotPublic)?;
        if set.keys.is_empty() || set.keys.len() > MAX_KEYS {
            return Err(BadKey::NotPublic);
        }
        let read = |value: Value| {
            let agent_id = match value.get("agent_id") {
                None => None,
                Some(Value::String(id)) => Some(id.clone()),
                Some(_) => return Err(BadKey::NotPublic),
            };
            let jwk = serde_json::from_value(value).map_err(|_| BadKey::NotPublic)?;
            Ok(ListedKey { key: PublicKey::of(jwk)?, agent_id })
        };
        set.keys.into_iter().map(read).collect::<Result<_, _>>().map(Self)
    }

    /// The one key that can have signed this, whatever other keys claim the same id.
    fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&ListedKey> {
        let is_named = |key: &PublicKey| match id {
            None => true,
            Some(id) => key.fingerprint() == id || key.id() == Some(id),
        };
        let fits =
            |listed: &&ListedKey| listed.key.algorithm() == algorithm && is_named(&listed.key);
        let mut fitting = self.0.iter().filter(fits);
        let first = fitting.next()?;
        fitting.next().is_none().then_some(first)
    }
}

/// A manifest whose signature holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verified {
    /// Whose it is.
    pub agent_id: String,
    /// The manifest, as it was signed.
    pub manifest: String,
    /// The key that signed it.
    pub key: PublicKey,
    /// When it was signed, in seconds of Unix time.
    pub issued: i64,
    /// Until when it is good, in seconds of Unix time.
    pub expires: i64,
}

/// Why a signed manifest does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unverified {
    /// It is no JWS in compact form, or too long.
    Malformed,
    /// Its algorithm is not one of [`Algorithm`]: `none` and shared secrets among them.
    Algorithm,
    /// Nobody can tell which key has signed it, or that key is not in the list.
    UnknownKey,
    /// The key that it shows is not the one that it names.
    SwappedKey,
    /// The signature is not that of the key.
    Signature,
    /// What was signed is no manifest.
    NoManifest,
    /// It does not say from when and until when it is good, or for too long.
    NoTime,
    /// Its time is over.
    Stale,
    /// Its time has not begun.
    Early,
    /// It is the manifest of somebody else.
    OtherAgent {
        /// Whose.
        signed: String,
        /// Who was expected.
        expected: String,
    },
    /// The key is that of somebody else, as the list says.
    OthersKey {
        /// Whose manifest it was to sign.
        agent_id: String,
    },
}

impl fmt::Display for Unverified {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Malformed => f.write_str("it is no signed manifest"),
            Self::Algorithm => f.write_str("its algorithm is not one of ES256, EdDSA and RS256"),
            Self::UnknownKey => f.write_str("it was signed with a key that is not known"),
            Self::SwappedKey => f.write_str("the key that it shows is not the one that it names"),
            Self::Signature => f.write_str("its signature is not that of its key"),
            Self::NoManifest => f.write_str("what was signed is no manifest"),
            Self::NoTime => f.write_str("it does not say how long it is good, or for too long"),
            Self::Stale => f.write_str("its time is over"),
            Self::Early => f.write_str("its time has not begun; are the clocks right?"),
            Self::OtherAgent { signed, expected } => write!(
                f,
                "it is the manifest of {}, not of {}",
                signed.escape_debug(),
                expected.escape_debug()
            ),
            Self::OthersKey { agent_id } => {
                write!(f, "its key is not that of {}", agent_id.escape_debug())
            }
        }
    }
}

impl std::error::Error for Unverified {}

/// What is read of the payload besides the manifest.
#[derive(Deserialize)]
struct Times {
    iat: i64,
    exp: i64,
}

// enforces: S7
/// Verifies a signed manifest at a time, in seconds of Unix time. `agent_id` is that of the agent
/// that showed it, if there is one.
pub fn verify(
    signed: &str,
    agent_id: Option<&str>,
    signers: &Signers<'_>,
    now: i64,
) -> Result<Verified, Unverified> {
    if signed.len() > MAX_BYTES || signed.split('.').count() != 3 {
        return Err(Unverified::Malformed);
    }
    // An algorithm that the library does not know either, such as `none`, is no header to it.
    let header = decode_header(signed).map_err(|_| Unverified::Algorithm)?;
    let algorithm = Algorithm::of(header.alg).ok_or(Unverified::Algorithm)?;
    // What was signed for another purpose is no manifest, and nothing of ours needs an extension.
    let typ = header.typ.as_deref().unwrap_or(TYPE);
    let is_manifest = [TYPE, "jose", "jwt"].iter().any(|known| typ.eq_ignore_ascii_case(known));
    if !is_manifest || header.crit.is_some() || header.zip.is_some() || header.enc.is_some() {
        return Err(Unverified::Malformed);
    }
    let shown = match header.jwk {
        None => None,
        Some(jwk) => Some(PublicKey::of(jwk).map_err(|_| Unverified::UnknownKey)?),
    };
    let named = header.kid.as_deref();
    let listed = match signers {
        Signers::Anybody => None,
        Signers::Listed(list) => {
            let by_key = shown.as_ref().map(PublicKey::fingerprint);
            Some(list.find(named.or(by_key), algorithm).ok_or(Unverified::UnknownKey)?)
        }
    };
    let key = match (listed, shown) {
        (Some(listed), Some(shown)) if shown.fingerprint() != listed.key.fingerprint() => {
            return Err(Unverified::SwappedKey);
        }
        (Some(listed), _) => listed.key.clone(),
        (None, Some(shown)) if named.is_some_and(|named| named != shown.fingerprint()) => {
            return Err(Unverified::SwappedKey);
        }
        (None, Some(shown)) => shown,
        (None, None) => return Err(Unverified::UnknownKey),
    };
    if key.algorithm() != algorithm {
        return Err(Unverified::Algorithm);
    }
    let manifest = payload(signed, &key)?;
    let times: Times = serde_json::from_str(&manifest).map_err(|_| Unverified::NoTime)?;
    let life = times.exp.checked_sub(times.iat).ok_or(Unverified::NoTime)?;
    if !(1..=MAX_LIFE_SECONDS).contains(&life) {
        return Err(Unverified::NoTime);
    }
    if now > times.exp.saturating_add(SKEW_SECONDS) {
        return Err(Unverified::Stale);
    }
    if now < times.iat.saturating_sub(SKEW_SECONDS) {
        return Err(Unverified::Early);
    }
    let signed_id = match Message::parse(manifest.as_bytes()) {
        Ok(Message::Manifest(manifest)) => manifest.agent_id.as_str().to_owned(),
        _ => return Err(Unverified::NoManifest),
    };
    if let Some(expected) = agent_id.filter(|expected| *expected != signed_id) {
        return Err(Unverified::OtherAgent { signed: signed_id, expected: expected.to_owned() });
    }
    let owner = listed.and_then(|listed| listed.agent_id.as_deref());
    if owner.is_some_and(|owner| owner != signed_id) {
        return Err(Unverified::OthersKey { agent_id: signed_id });
    }
    Ok(Verified { agent_id: signed_id, manifest, key, issued: times.iat, expires: times.exp })
}

/// The payload, as it was signed.
fn payload(signed: &str, key: &PublicKey) -> Result<String, Unverified> {
    let mut validation = Validation::new(key.algorithm().named());
    // A manifest is no token: its times are looked at here, by the caller's clock.
    (validation.validate_exp, validation.validate_aud) = (false, false);
    validation.required_spec_claims.clear();
    let decoding = key.decoding_key().ok_or(Unverified::UnknownKey)?;
    match decode::<Box<RawValue>>(signed, &decoding, &validation) {
        Ok(decoded) => Ok(decoded.claims.get().to_owned()),
        Err(error) => Err(match error.kind() {
            jsonwebtoken::errors::ErrorKind::Json(_) | jsonwebtoken::errors::ErrorKind::Utf8(_) => {
                Unverified::NoManifest
            }
            _ => Unverified::Signature,
        }),
    }
}
