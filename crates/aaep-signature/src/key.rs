//! Keys: the one that signs, and those that verify.

use std::fmt;

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair,
};
use jsonwebtoken::jwk::{AlgorithmParameters, EllipticCurve, Jwk, KeyAlgorithm, ThumbprintHash};
use jsonwebtoken::{DecodingKey, EncodingKey};
use rustls_pki_types::PrivatePkcs8KeyDer;
use rustls_pki_types::pem::PemObject;

/// The shortest RSA modulus, as characters of base64url: 2048 bits.
const MIN_RSA_CHARACTERS: usize = 342;

/// The algorithms that count, and no others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Algorithm {
    /// ECDSA over P-256 with SHA-256: what the protocol recommends.
    ES256,
    /// Ed25519.
    EdDSA,
    /// RSA with SHA-256. It is verified, and never signed with.
    RS256,
}

impl Algorithm {
    /// Its name in a header.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ES256 => "ES256",
            Self::EdDSA => "EdDSA",
            Self::RS256 => "RS256",
        }
    }

    pub(crate) fn of(algorithm: jsonwebtoken::Algorithm) -> Option<Self> {
        [Self::ES256, Self::EdDSA, Self::RS256].into_iter().find(|own| own.named() == algorithm)
    }

    pub(crate) fn named(self) -> jsonwebtoken::Algorithm {
        match self {
            Self::ES256 => jsonwebtoken::Algorithm::ES256,
            Self::EdDSA => jsonwebtoken::Algorithm::EdDSA,
            Self::RS256 => jsonwebtoken::Algorithm::RS256,
        }
    }
}

impl fmt::Display for Algorithm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Why a text is no key that can be used here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BadKey {
    /// There is no private key in PKCS #8 form in it.
    NoPrivateKey,
    /// It is a private key of another kind.
    OtherKind,
    /// It is no public key that can verify: see [`Algorithm`].
    NotPublic,
}

impl fmt::Display for BadKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoPrivateKey => {
                "It holds no private key in PKCS #8 form (-----BEGIN PRIVATE KEY-----)."
            }
            Self::OtherKind => "Its key is neither an ECDSA key over P-256 nor an Ed25519 key.",
            Self::NotPublic => {
                "It is no public key of P-256, Ed25519, or RSA with at least 2048 bits."
            }
        })
    }
}

impl std::error::Error for BadKey {}

/// A key that signs. Its `Debug` shows the public half alone.
pub struct SigningKey {
    pub(crate) key: EncodingKey,
    public: PublicKey,
}

impl SigningKey {
    /// Reads a key in PKCS #8 form, as PEM: P-256 or Ed25519.
    pub fn from_pem(pem: &[u8]) -> Result<Self, BadKey> {
        let der = PrivatePkcs8KeyDer::from_pem_slice(pem).map_err(|_| BadKey::NoPrivateKey)?;
        let der = der.secret_pkcs8_der();
        // The library's own way to the public half knows one form of Ed25519 keys only.
        if let Ok(pair) = Ed25519KeyPair::from_pkcs8(der) {
            let public = DecodingKey::from_ed_der(pair.public_key().as_ref());
            return Self::new(EncodingKey::from_ed_der(der), &public, Algorithm::EdDSA);
        }
        if let Ok(pair) = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, der) {
            let public = DecodingKey::from_ec_der(pair.public_key().as_ref());
            return Self::new(EncodingKey::from_ec_der(der), &public, Algorithm::ES256);
        }
        Err(BadKey::OtherKind)
    }

    fn new(key: EncodingKey, public: &DecodingKey, algorithm: Algorithm) -> Result<Self, BadKey> {
        let jwk = Jwk::from_decoding_key(public, Some(algorithm.named()));
        let public = PublicKey::of(jwk.map_err(|_| BadKey::OtherKind)?)?;
        Ok(Self { key, public })
    }

    /// What others verify with.
    pub fn public(&self) -> &PublicKey {
        &self.public
    }
}

impl fmt::Debug for SigningKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SigningKey").field("public", &self.public).finish_non_exhaustive()
    }
}

/// A key that verifies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PublicKey {
    jwk: Jwk,
    algorithm: Algorithm,
    fingerprint: String,
}

impl PublicKey {
    /// Reads a JWK (RFC 7517).
    pub fn from_json(json: &str) -> Result<Self, BadKey> {
        Self::of(serde_json::from_str(json).map_err(|_| BadKey::NotPublic)?)
    }

    pub(crate) fn of(jwk: Jwk) -> Result<Self, BadKey> {
        let algorithm = match &jwk.algorithm {
            AlgorithmParameters::EllipticCurve(key) if key.curve == EllipticCurve::P256 => {
                Algorithm::ES256
            }
            AlgorithmParameters::OctetKeyPair(key) if key.curve == EllipticCurve::Ed25519 => {
                Algorithm::EdDSA
            }
            AlgorithmParameters::RSA(key) if key.n.len() >= MIN_RSA_CHARACTERS => Algorithm::RS256,
            // Shared secrets above all: everybody who knows the key could sign with it.
            _ => return Err(BadKey::NotPublic),
        };
        let said = match jwk.common.key_algorithm {
            None => true,
            Some(KeyAlgorithm::ES256) => algorithm == Algorithm::ES256,
            Some(KeyAlgorithm::EdDSA) => algorithm == Algorithm::EdDSA,
            Some(KeyAlgorithm::RS256) => algorithm == Algorithm::RS256,
            Some(_) => false,
        };
        let usable = DecodingKey::from_jwk(&jwk).is_ok();
        let fingerprint = jwk.thumbprint(ThumbprintHash::SHA256);
        match fingerprint {
            Ok(fingerprint) if said && usable => Ok(Self { jwk, algorithm, fingerprint }),
            _ => Err(BadKey::NotPublic),
        }
    }

    /// The one algorithm that it verifies.
    pub fn algorithm(&self) -> Algorithm {
        self.algorithm
    }

    /// Its thumbprint (RFC 7638, SHA-256): 43 characters of base64url.
    pub fn fingerprint(&self) -> &str {
        &self.fingerprint
    }

    /// The id that it was given in a list.
    pub(crate) fn id(&self) -> Option<&str> {
        self.jwk.common.key_id.as_deref()
    }

    pub(crate) fn decoding_key(&self) -> Option<DecodingKey> {
        DecodingKey::from_jwk(&self.jwk).ok()
    }

    /// For a header: with nothing in it but the key.
    pub(crate) fn bare(&self) -> Jwk {
        Jwk { common: jsonwebtoken::jwk::CommonParameters::default(), ..self.jwk.clone() }
    }

    /// As a JWK, with its algorithm and its fingerprint as its id: what a list of keys holds.
    pub fn to_json(&self) -> String {
        let mut jwk = self.jwk.clone();
        jwk.common.key_id = Some(self.fingerprint.clone());
        serde_json::to_string(&jwk).unwrap_or_default()
    }
}
