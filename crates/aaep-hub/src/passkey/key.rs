//! Public keys of passkeys: the three algorithms that authenticators in the field have.

use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_ASN1, ED25519, RSA_PKCS1_2048_8192_SHA256, RsaPublicKeyComponents,
    UnparsedPublicKey,
};
use ciborium::Value;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{Base64, PasskeyError};

/// The algorithms, as numbers of COSE, most wanted first.
pub const ALGORITHMS: [i64; 3] = [-8, -7, -257];

/// The shortest RSA modulus that is taken: 2048 bits.
const RSA_BYTES: usize = 256;

/// A public key. The algorithm belongs to the key, so that no answer can choose another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "algorithm")]
#[non_exhaustive]
pub enum PublicKey {
    /// ECDSA over P-256 with SHA-256.
    #[serde(rename = "ES256")]
    Es256 {
        /// The point, as `04`, x and y.
        point: Base64,
    },
    /// Ed25519.
    #[serde(rename = "EdDSA")]
    EdDsa {
        /// The 32 bytes of the point.
        point: Base64,
    },
    /// RSA with SHA-256, as Windows Hello has it.
    #[serde(rename = "RS256")]
    Rs256 {
        /// The modulus.
        n: Base64,
        /// The exponent.
        e: Base64,
    },
}

impl PublicKey {
    /// Names it: the SHA-256, in hexadecimal digits, of its algorithm's name and its parts, each after
    /// its length in eight bytes. The audit says with it which keys came and went.
    pub fn sha256(&self) -> String {
        let (name, parts): (&str, &[&Base64]) = match self {
            Self::Es256 { point } => ("ES256", &[point]),
            Self::EdDsa { point } => ("EdDSA", &[point]),
            Self::Rs256 { n, e } => ("RS256", &[n, e]),
        };
        let mut hash = Sha256::new();
        for part in std::iter::once(name.as_bytes()).chain(parts.iter().map(|part| &*part.0)) {
            hash.update((part.len() as u64).to_be_bytes());
            hash.update(part);
        }
        hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Reads a COSE key (RFC 9053).
    pub(super) fn from_cose(key: &Value) -> Result<Self, PasskeyError> {
        let members = key.as_map().ok_or(PasskeyError::Malformed)?;
        let member = |label: i64| {
            let found = members.iter().find(|(name, _)| *name == Value::from(label));
            found.map(|(_, value)| value).ok_or(PasskeyError::Malformed)
        };
        let number = |label| {
            let value = member(label)?.as_integer().ok_or(PasskeyError::Malformed)?;
            i64::try_from(value).map_err(|_| PasskeyError::Malformed)
        };
        let bytes = |label| member(label)?.as_bytes().cloned().ok_or(PasskeyError::Malformed);
        match (number(1)?, number(3)?) {
            (2, -7) if number(-1)? == 1 => {
                let (x, y) = (bytes(-2)?, bytes(-3)?);
                if x.len() != 32 || y.len() != 32 {
                    return Err(PasskeyError::Malformed);
                }
                Ok(Self::Es256 { point: Base64([&[4], x.as_slice(), &y].concat()) })
            }
            (1, -8) if number(-1)? == 6 => {
                let point = bytes(-2)?;
                if point.len() != 32 {
                    return Err(PasskeyError::Malformed);
                }
                Ok(Self::EdDsa { point: Base64(point) })
            }
            (3, -257) => {
                let (n, e) = (bytes(-1)?, bytes(-2)?);
                if n.len() < RSA_BYTES {
                    return Err(PasskeyError::Algorithm);
                }
                Ok(Self::Rs256 { n: Base64(n), e: Base64(e) })
            }
            _ => Err(PasskeyError::Algorithm),
        }
    }

    /// Checks a signature.
    pub(super) fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), PasskeyError> {
        let verified = match self {
            Self::Es256 { point } => {
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, &point.0).verify(message, signature)
            }
            Self::EdDsa { point } => {
                UnparsedPublicKey::new(&ED25519, &point.0).verify(message, signature)
            }
            Self::Rs256 { n, e } => RsaPublicKeyComponents { n: &n.0, e: &e.0 }.verify(
                &RSA_PKCS1_2048_8192_SHA256,
                message,
                signature,
            ),
        };
        verified.map_err(|_| PasskeyError::Signature)
    }
}
