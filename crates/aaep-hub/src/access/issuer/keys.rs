//! The public keys of an issuer.

use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey};
use serde::Deserialize;
use serde_json::Value;

use crate::config::SigningAlgorithm;

/// How many keys an issuer may have.
const MAX_KEYS: usize = 64;

/// The shortest RSA modulus, as characters of base64url: 2048 bits.
const MIN_RSA_CHARACTERS: usize = 342;

/// The keys that can verify something, each with its id and what it can verify.
#[derive(Default)]
pub(super) struct Keys(Vec<Key>);

struct Key {
    id: Option<String>,
    algorithms: Vec<Algorithm>,
    key: DecodingKey,
}

/// A JWK set. Its keys are read one by one: one of a kind that nobody knows is left out.
#[derive(Deserialize)]
struct Set {
    keys: Vec<Value>,
}

impl Keys {
    /// Reads a JWK set, or says what is wrong with it.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, &'static str> {
        let set: Set = serde_json::from_slice(bytes).map_err(|_| "It is no JWK set.")?;
        if set.keys.len() > MAX_KEYS {
            return Err("It has more than 64 keys.");
        }
        let keys: Vec<Key> = set.keys.into_iter().filter_map(Key::read).collect();
        if keys.is_empty() {
            return Err("It has no public key that can verify a signature.");
        }
        Ok(Self(keys))
    }

    /// The key of this id, if it fits the algorithm. Without an id, the only key that fits.
    pub(super) fn find(&self, id: Option<&str>, algorithm: Algorithm) -> Option<&DecodingKey> {
        let fits = |key: &&Key| {
            key.algorithms.contains(&algorithm) && (id.is_none() || key.id.as_deref() == id)
        };
        let mut fitting = self.0.iter().filter(fits);
        let first = fitting.next()?;
        fitting.next().is_none().then_some(&first.key)
    }
}

impl Key {
    fn read(value: Value) -> Option<Self> {
        let jwk: Jwk = serde_json::from_value(value).ok()?;
        let common = &jwk.common;
        let signs = matches!(common.public_key_use, None | Some(PublicKeyUse::Signature));
        let operations = common.key_operations.as_ref();
        let verifies = operations.is_none_or(|all| all.contains(&KeyOperations::Verify));
        let algorithms = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(key) => match key.curve {
                EllipticCurve::P256 => vec![Algorithm::ES256],
                EllipticCurve::P384 => vec![Algorithm::ES384],
                _ => return None,
            },
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                vec![Algorithm::EdDSA]
            }
            AlgorithmParameters::RSA(key) if key.n.len() >= MIN_RSA_CHARACTERS => {
                vec![Algorithm::RS256, Algorithm::PS256]
            }
            // Shared secrets above all: anyone who knows the set could sign with them.
            _ => return None,
        };
        let own = common.key_algorithm.map(|algorithm| algorithm.to_string());
        let says =
            |algorithm: &Algorithm| own.as_ref().is_none_or(|own| *own == format!("{algorithm:?}"));
        let algorithms: Vec<Algorithm> = algorithms.into_iter().filter(says).collect();
        if !signs || !verifies || algorithms.is_empty() {
            return None;
        }
        let key = DecodingKey::from_jwk(&jwk).ok()?;
        Some(Self { id: jwk.common.key_id, algorithms, key })
    }
}

impl SigningAlgorithm {
    pub(super) fn is(self, algorithm: Algorithm) -> bool {
        let own = match self {
            Self::ES256 => Algorithm::ES256,
            Self::ES384 => Algorithm::ES384,
            Self::EdDSA => Algorithm::EdDSA,
            Self::RS256 => Algorithm::RS256,
            Self::PS256 => Algorithm::PS256,
        };
        own == algorithm
    }
}
