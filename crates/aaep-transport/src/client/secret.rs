//! What an agent without a token shows to say that a session is its own.

use std::fmt;

use http::HeaderValue;

use super::ClientError;

/// What every session secret begins with.
const PREFIX: &str = "aaeps_";

/// The header that carries it.
pub const SESSION_SECRET_HEADER: &str = "aaep-session-secret";

/// Random bytes in it.
const RANDOM_BYTES: usize = 32;

/// A session secret: 256 random bits, which an agent without a token shows with every call. It does
/// not show itself in debug output.
#[derive(Clone, PartialEq, Eq)]
pub struct SessionSecret(String);

impl SessionSecret {
    /// Draws a new one from the operating system's randomness.
    pub fn generate() -> Result<Self, ClientError> {
        const ALPHABET: &[u8; 64] =
            b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
        let mut random = [0; RANDOM_BYTES];
        getrandom::fill(&mut random).map_err(|error| ClientError::Broken(error.to_string()))?;
        let mut text = String::from(PREFIX);
        for group in random.chunks(3) {
            let byte = |at| u32::from(group.get(at).copied().unwrap_or(0));
            let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
            for sextet in 0..=group.len() {
                text.push(char::from(ALPHABET[(bits >> (18 - 6 * sextet) & 63) as usize]));
            }
        }
        Ok(Self(text))
    }

    /// Reads one; `None` if it does not have the form.
    pub fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix(PREFIX)?;
        let fits = |c: u8| c.is_ascii_alphanumeric() || c == b'-' || c == b'_';
        (rest.len() == (RANDOM_BYTES * 8).div_ceil(6) && rest.bytes().all(fits))
            .then(|| Self(text.to_owned()))
    }

    /// The text. Store it where only its owner can read it.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The value of [`SESSION_SECRET_HEADER`].
    pub fn header(&self) -> Option<HeaderValue> {
        let mut value = HeaderValue::from_str(&self.0).ok()?;
        value.set_sensitive(true);
        Some(value)
    }
}

impl fmt::Debug for SessionSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SessionSecret")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_is_new_every_time_and_does_not_show_itself() {
        let secret = SessionSecret::generate().unwrap();
        assert_eq!(secret.as_str().len(), 6 + 43);
        assert_eq!(SessionSecret::parse(secret.as_str()), Some(secret.clone()));
        assert_ne!(SessionSecret::generate().unwrap(), secret);
        assert_eq!(format!("{secret:?}"), "SessionSecret");
        assert_eq!(SessionSecret::parse("aaeps_short"), None);
    }
}
