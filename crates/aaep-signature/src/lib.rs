//! Signed manifests (§5.10, T6): who a producer is, in a way that somebody in between cannot imitate.
//!
//! A signed manifest is a JWS in its compact form. Its payload is the manifest with two more members,
//! `iat` and `exp`: from when and until when it is good. Its header names the key (`kid`, the key's
//! thumbprint after RFC 7638) and shows it (`jwk`), so that a listener that has no list of keys can
//! remember the one that it saw first.
//!
//! [`verify`] checks everything that does not depend on the past: the algorithm, the key, the
//! signature, the time, and that the manifest is that of the agent who shows it. [`KnownAgents`]
//! remembers keys from one time to the next.
//!
//! # What is deliberately absent
//!
//! * Algorithms with a shared secret, and `none`: the three that count are in [`Algorithm`].
//! * Keys by address (`jku`, `x5u`): the verifier fetches nothing that a stranger names.
//! * A clock and files: the caller brings the time and keeps what is to be remembered.
//!
//! # Example
//!
//! ```
//! use aaep_signature::{KnownAgents, Signers, SigningKey, KeyStatus, verify};
//!
//! # let pem = rcgen::KeyPair::generate().unwrap().serialize_pem();
//! # let manifest = r#"{"@context":"https://aaep-protocol.org/context/v1","type":"aaep:producer.manifest","agent_id":"bank","aaep_versions_supported":["1.0.0"],"conformance_levels_supported":[1],"transports_supported":["sse"]}"#;
//! let key = SigningKey::from_pem(pem.as_bytes())?;
//! let now = 1_800_000_000;
//! let signed = key.sign(manifest, now, 3600)?;
//!
//! let verified = verify(&signed, Some("bank"), &Signers::Anybody, now + 10)?;
//! let mut known = KnownAgents::default();
//! assert_eq!(known.judge("https://bank.example", &verified), KeyStatus::New);
//! known.remember("https://bank.example", &verified, now + 10);
//! assert_eq!(known.judge("https://bank.example", &verified), KeyStatus::Unchanged);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod key;
mod known;
mod sign;
mod verify;

pub use key::{Algorithm, BadKey, PublicKey, SigningKey};
pub use known::{KeyStatus, KnownAgent, KnownAgents, NotAList};
pub use sign::NotSigned;
pub use verify::{
    KeyList, MAX_BYTES, MAX_LIFE_SECONDS, SKEW_SECONDS, Signers, Unverified, Verified, verify,
};
