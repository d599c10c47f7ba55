//! Session secrets: what an agent without a token shows to go on with what it began.

use std::fmt;

use sha2::{Digest, Sha256};

use super::token::{base64url, fill};
use crate::Fault;

/// What every session secret begins with.
pub const SESSION_SECRET_PREFIX: &str = "aaeps_";

/// The header that carries it.
pub const SESSION_SECRET_HEADER: &str = "aaep-session-secret";

/// How many random bytes it holds.
const RANDOM_BYTES: usize = 32;

/// How many characters follow the prefix.
const CHARACTERS: usize = (RANDOM_BYTES * 8).div_ceil(6);

/// A session secret, in clear. The hub keeps only its hash, as part of the principal's name.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret(String);

impl SessionSecret {
    /// Draws a new one from the operating system's randomness.
    pub fn generate() -> Result<Self, Fault> {
        let mut random = [0; RANDOM_BYTES];
        fill(&mut random)?;
        Ok(Self(format!("{SESSION_SECRET_PREFIX}{}", base64url(&random))))
    }

    /// Reads one; `None` if it does not have the form. There is one form only, so that nobody thinks
    /// up a short one.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(SESSION_SECRET_PREFIX)?;
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        (rest.len() == CHARACTERS && rest.bytes().all(fits)).then(|| Self(text.to_owned()))
    }

    /// The text, for the one who owns it. Never log it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What is kept of it. A plain hash is enough: there are 256 random bits and nothing to guess.
    /// Comparing such hashes needs no constant time, since what could be measured is a hash.
    pub(super) fn hash(&self) -> String {
        base64url(&Sha256::digest(&self.0))
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecret(…)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S8
    #[test]
    fn a_secret_has_one_form_and_does_not_show_itself() {
        let secret = SessionSecret::generate().unwrap();
        assert_eq!(SessionSecret::parse(secret.as_str()), Some(secret.clone()));
        assert_ne!(SessionSecret::generate().unwrap(), secret);
        assert_eq!(format!("{secret:?}"), "SessionSecret(…)");
        assert!(!secret.hash().contains(&secret.as_str()[6..]));
        let text = secret.as_str();
        let token = text.replacen("aaeps_", "aaep_", 1);
        for wrong in ["", "aaeps_", "hunter2", &text[1..], &format!("{text}A"), &token] {
            assert_eq!(SessionSecret::parse(wrong), None, "{wrong:?}");
        }
    }
}
