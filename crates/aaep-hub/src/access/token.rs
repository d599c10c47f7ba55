//! Bearer tokens: made here, shown once, kept as a hash.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use sha2::{Digest, Sha256};
use subtle::{Choice, ConstantTimeEq};

use crate::Fault;

/// What every token begins with, so that people and secret scanners know one when they see it.
pub const TOKEN_PREFIX: &str = "aaep_";

/// How many random bytes a token holds.
const RANDOM_BYTES: usize = 32;

/// How many characters follow the prefix: the random bytes in base64url, without padding.
const CHARACTERS: usize = (RANDOM_BYTES * 8).div_ceil(6);

/// A bearer token, in clear.
///
/// There is one form only: a token that somebody thought up could be guessed from its hash.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(String);

impl Token {
    /// Draws a new one from the operating system's randomness.
    pub fn generate() -> Result<Self, Fault> {
        let mut random = [0; RANDOM_BYTES];
        fill(&mut random)?;
        Ok(Self(format!("{TOKEN_PREFIX}{}", base64url(&random))))
    }

    /// Reads one; `None` if it does not have the form.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(TOKEN_PREFIX)?;
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        (rest.len() == CHARACTERS && rest.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// The text, for the file or header that carries it. Never log it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is kept of it.
    pub fn hash(&self) -> TokenHash {
        TokenHash::of(&self.0)
    }
}

impl fmt::Debug for Token {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Token(…)")
    }
}

/// The SHA-256 of a token: 64 hexadecimal digits in the configuration.
///
/// A plain hash is enough because a token holds 256 random bits: there is nothing to guess.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TokenHash([u8; 32]);

impl TokenHash {
    /// That of any text.
    pub(super) fn of(text: &str) -> Self {
        Self(Sha256::digest(text).into())
    }

    /// Reads 64 hexadecimal digits.
    pub fn parse(text: &str) -> Option<Self> {
        if text.len() != 64 || !text.bytes().all(|c| c.is_ascii_hexdigit()) {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            *byte = u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()?;
        }
        Some(Self(hash))
    }

    /// 64 hexadecimal digits, for the configuration.
    pub fn to_hex(self) -> String {
        self.0.iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl ConstantTimeEq for TokenHash {
    fn ct_eq(&self, other: &Self) -> Choice {
        self.0.ct_eq(&other.0)
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("TokenHash(…)")
    }
}

impl Serialize for TokenHash {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.to_hex())
    }
}

impl<'de> Deserialize<'de> for TokenHash {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        // The message never repeats the text: it could be the token itself.
        Self::parse(&text).ok_or_else(|| {
            de::Error::custom(if text.starts_with(TOKEN_PREFIX) {
                "this is a token in clear, and its SHA-256 belongs here; whoever read it can use it, so make a new one"
            } else {
                "a SHA-256 is written as 64 hexadecimal digits"
            })
        })
    }
}

/// Fills a buffer with the operating system's randomness.
pub(crate) fn fill(buffer: &mut [u8]) -> Result<(), Fault> {
    getrandom::fill(buffer).map_err(|error| Fault::System {
        what: format!("The operating system gave no random numbers: {error}. Nothing was made."),
    })
}

/// Base64 for addresses and headers, without padding (RFC 4648, section 5).
pub(crate) fn base64url(bytes: &[u8]) -> String {
    const ALPHABET: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let mut text = String::with_capacity((bytes.len() * 8).div_ceil(6));
    for group in bytes.chunks(3) {
        let byte = |at| u32::from(group.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for sextet in 0..=group.len() {
            text.push(char::from(ALPHABET[(bits >> (18 - 6 * sextet) & 63) as usize]));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn base64url_is_that_of_rfc_4648() {
        let vectors = [("", ""), ("f", "Zg"), ("fo", "Zm8"), ("foo", "Zm9v"), ("foob", "Zm9vYg")];
        for (plain, coded) in vectors {
            assert_eq!(base64url(plain.as_bytes()), coded);
        }
        assert_eq!(base64url(&[0xfb, 0xff, 0xfe]), "-__-");
    }

    #[test]
    fn a_new_token_has_the_form_and_no_two_are_equal() {
        let (one, other) = (Token::generate().unwrap(), Token::generate().unwrap());
        assert_eq!(one.as_str().len(), "aaep_".len() + 43);
        assert_eq!(Token::parse(one.as_str()), Some(one.clone()));
        assert_ne!(one, other);
        assert_eq!(TokenHash::parse(&one.hash().to_hex()), Some(one.hash()));
    }

    // covers: S8
    #[test]
    fn neither_token_nor_hash_shows_itself() {
        let token = Token::generate().unwrap();
        let shown = format!("{token:?} {:?}", token.hash());
        assert!(!shown.contains(&token.as_str()[5..]) && !shown.contains(&token.hash().to_hex()));
    }

    #[test]
    fn what_has_another_form_is_no_token() {
        let good = Token::generate().unwrap().as_str().to_owned();
        let hostile = [
            String::new(),
            "aaep_".into(),
            "hunter2".into(),
            good[1..].into(),
            format!("{good}A"),
            format!(" {good}"),
            format!("{good}\n"),
            good.replacen("aaep_", "AAEP_", 1),
            format!("{}é", &good[..good.len() - 2]),
        ];
        for text in hostile {
            assert_eq!(Token::parse(&text), None, "{text:?}");
        }
        for text in ["", "ab", &"g".repeat(64), &"+f".repeat(32), &"é".repeat(32)] {
            assert_eq!(TokenHash::parse(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_known_hash_is_that_of_sha_256() {
        let token = Token::parse(&format!("aaep_{}", "A".repeat(43))).unwrap();
        // printf aaep_AAAA… | sha256sum
        let hex = "611291ed8bcbe0954ca5cf8906f9919cf4d396a1f876bafb31ec8cc2617a6e06";
        assert_eq!(token.hash().to_hex(), hex);
    }
}
