//! Passkeys (Web Authentication): a yes that is signed over exactly one action.
//!
//! The challenge that an authenticator signs is a hash of the request's id and of the digest of
//! what would run, so a signature is good for no other action. Everything that shows it is kept
//! ([`SignedYes`]), and [`SignedYes::verify`] judges it again without the hub.
//!
//! Attestation is not asked for: which maker an authenticator has says nothing about consent. The
//! signatures are checked by `aws-lc-rs`; this module reads the formats and compares.

mod assertion;
mod key;
mod registration;
mod store;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::Fault;
use crate::config::Config;

pub use assertion::{Assertion, SignedYes};
pub use key::PublicKey;
pub use registration::Registration;
pub(crate) use store::Passkeys;

/// The longest id of a credential (WebAuthn, section 4).
pub const CREDENTIAL_ID_BYTES: usize = 1023;

/// The longest part of an authenticator's answer. None of the algorithms we take needs a tenth of it.
const PART_BYTES: usize = 16 * 1024;

/// How many random bytes go into a challenge.
const NONCE_BYTES: usize = 16;

/// The bits of the authenticator's flags.
const USER_PRESENT: u8 = 0x01;
const USER_VERIFIED: u8 = 0x04;
const HAS_CREDENTIAL: u8 = 0x40;

/// Bytes that stand as base64url without padding in JSON.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Base64(pub Vec<u8>);

impl Serialize for Base64 {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

impl<'de> Deserialize<'de> for Base64 {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.len() > PART_BYTES * 4 / 3 {
            return Err(serde::de::Error::custom("the value is too long"));
        }
        URL_SAFE_NO_PAD
            .decode(text.as_bytes())
            .map(Self)
            .map_err(|_| serde::de::Error::custom("the value is not base64url without padding"))
    }
}

impl fmt::Debug for Base64 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&URL_SAFE_NO_PAD.encode(&self.0))
    }
}

/// Whether anybody has registered a passkey with this hub, as far as it keeps them.
pub fn is_any_registered(config: &Config) -> Result<bool, Fault> {
    let state = config.state.as_deref().or(config.data.as_deref());
    Ok(Passkeys::open(state)?.has_any())
}

/// What a user calls the passkeys that they registered with this hub, and the domain of each.
pub fn registered(config: &Config, user: &str) -> Result<Vec<(String, String)>, Fault> {
    let state = config.state.as_deref().or(config.data.as_deref());
    let own = Passkeys::open(state)?.list(user);
    Ok(own.into_iter().map(|passkey| (passkey.name, passkey.domain)).collect())
}

/// Where a passkey is good: the domain, and the origins that may ask for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelyingParty {
    /// The domain, such as `localhost`. Never an IP address: browsers refuse those.
    pub id: String,
    /// The origins whose pages may use it, such as `http://localhost:8707`.
    pub origins: Vec<String>,
}

impl RelyingParty {
    fn hash(&self) -> [u8; 32] {
        Sha256::digest(self.id.as_bytes()).into()
    }
}

/// What an authenticator signs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Challenge([u8; 32]);

impl Challenge {
    /// The challenge for a yes to one action: no other request and no other action has the same.
    pub fn for_action(nonce: &Nonce, request_id: &str, digest: &str) -> Self {
        let mut hash = Sha256::new();
        hash.update(b"aaep-rs passkey v1\0");
        for part in [nonce.0.as_slice(), request_id.as_bytes(), digest.as_bytes()] {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        Self(hash.finalize().into())
    }

    /// The challenge for a new passkey, which is good for nothing else.
    pub fn for_registration(nonce: &Nonce) -> Self {
        Self::for_action(nonce, "", "")
    }

    /// As it goes to the browser.
    pub fn to_base64(&self) -> Base64 {
        Base64(self.0.to_vec())
    }
}

/// The random part of a challenge, so that no signature can be made in advance.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Base64", into = "Base64")]
pub struct Nonce([u8; NONCE_BYTES]);

impl Nonce {
    /// Takes random bytes.
    pub fn new(random: [u8; NONCE_BYTES]) -> Self {
        Self(random)
    }
}

impl TryFrom<Base64> for Nonce {
    type Error = &'static str;

    fn try_from(bytes: Base64) -> Result<Self, Self::Error> {
        bytes.0.try_into().map(Self).map_err(|_| "a nonce has 16 bytes")
    }
}

impl From<Nonce> for Base64 {
    fn from(nonce: Nonce) -> Self {
        Self(nonce.0.to_vec())
    }
}

/// A passkey that somebody registered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passkey {
    /// The id by which the authenticator finds it.
    pub id: Base64,
    /// What its signatures are checked with.
    pub key: PublicKey,
    /// How often it has signed, as far as the authenticator counts; 0 if it does not.
    pub counter: u32,
    /// What the person calls it.
    pub name: String,
    /// The domain that it is good for.
    pub domain: String,
}

/// Why an answer of an authenticator does not count. For the audit and the log; the sender of a reply
/// learns nothing of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum PasskeyError {
    /// Not in the format of Web Authentication.
    Malformed,
    /// For another challenge: another action, another request, or an earlier one.
    OtherChallenge,
    /// From a page of another origin, or inside a frame of one.
    OtherOrigin,
    /// For another domain.
    OtherDomain,
    /// Nobody touched the authenticator.
    NobodyPresent,
    /// The authenticator did not verify who touched it.
    NotVerified,
    /// Another passkey's.
    OtherCredential,
    /// The counter did not grow: there are two copies of this passkey.
    Cloned,
    /// An algorithm that we do not take.
    Algorithm,
    /// The signature is not of this key.
    Signature,
    /// Nothing was asked, or it was too long ago.
    NotAsked,
    /// There is no room for another passkey.
    TooMany,
}

impl fmt::Display for PasskeyError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Malformed => "The authenticator's answer cannot be read.",
            Self::OtherChallenge => "The answer is for another question.",
            Self::OtherOrigin => "The answer comes from a page of another address.",
            Self::OtherDomain => "The answer is for another domain.",
            Self::NobodyPresent => "Nobody touched the authenticator.",
            Self::NotVerified => "The authenticator did not check who used it.",
            Self::OtherCredential => "The answer is of another passkey.",
            Self::Cloned => "The passkey's counter did not grow: somebody may have a copy of it.",
            Self::Algorithm => "The passkey uses an algorithm that is not accepted here.",
            Self::Signature => "The signature is not of this passkey.",
            Self::NotAsked => "Nothing waits for a passkey here, or it waited too long. Try again.",
            Self::TooMany => "You have as many passkeys as there is room for. Remove one first.",
        })
    }
}

impl std::error::Error for PasskeyError {}

/// What the browser says that it did.
#[derive(Deserialize)]
struct ClientData {
    r#type: String,
    challenge: Base64,
    origin: String,
    #[serde(default, rename = "crossOrigin")]
    cross_origin: bool,
    #[serde(default, rename = "topOrigin")]
    top_origin: Option<String>,
}

impl ClientData {
    /// Reads it and compares everything in it.
    fn check(
        json: &Base64,
        r#type: &str,
        challenge: &Challenge,
        party: &RelyingParty,
    ) -> Result<(), PasskeyError> {
        let data: Self = serde_json::from_slice(&json.0).map_err(|_| PasskeyError::Malformed)?;
        if data.r#type != r#type {
            return Err(PasskeyError::Malformed);
        }
        if data.challenge.0 != challenge.0 {
            return Err(PasskeyError::OtherChallenge);
        }
        let known = party.origins.contains(&data.origin);
        if !known || data.cross_origin || data.top_origin.is_some() {
            return Err(PasskeyError::OtherOrigin);
        }
        Ok(())
    }
}

/// The fixed part of what an authenticator says, and what follows it.
struct AuthenticatorData<'a> {
    flags: u8,
    counter: u32,
    rest: &'a [u8],
}

impl<'a> AuthenticatorData<'a> {
    /// Reads it, and checks that a verified person touched an authenticator for this domain.
    fn check(bytes: &'a [u8], party: &RelyingParty) -> Result<Self, PasskeyError> {
        let (domain, bytes) = bytes.split_first_chunk::<32>().ok_or(PasskeyError::Malformed)?;
        let (&[flags], bytes) = bytes.split_first_chunk::<1>().ok_or(PasskeyError::Malformed)?;
        let (counter, rest) = bytes.split_first_chunk::<4>().ok_or(PasskeyError::Malformed)?;
        if *domain != party.hash() {
            return Err(PasskeyError::OtherDomain);
        }
        if flags & USER_PRESENT == 0 {
            return Err(PasskeyError::NobodyPresent);
        }
        if flags & USER_VERIFIED == 0 {
            return Err(PasskeyError::NotVerified);
        }
        Ok(Self { flags, counter: u32::from_be_bytes(*counter), rest })
    }
}

#[cfg(test)]
mod tests;
