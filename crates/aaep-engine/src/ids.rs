//! Identifiers and reply tokens, made from secrets that the caller drew.

use aaep_types::json::Canonical;
use aaep_types::{EventId, ReplyToken, SessionId, ToolCallId};
use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

/// What the caller draws from the operating system's randomness.
#[derive(Clone)]
pub struct Secrets {
    /// Fresh at every start: from it all identifiers are made, so that none is ever used again.
    pub seed: [u8; 32],
    /// The same for the life of a store: from it reply tokens are made, so that they need not be
    /// stored and are the same after a restart.
    pub token_key: [u8; 32],
}

impl Secrets {
    /// Secrets for identifiers of another kind, which never meet those of the first.
    pub(crate) fn apart(self) -> Self {
        let mut hash = Sha256::new_with_prefix(self.seed);
        hash.update(b"subscriptions");
        let mut seed = [0; 32];
        seed.copy_from_slice(&hash.finalize());
        Self { seed, ..self }
    }
}

/// Makes identifiers one after the other.
pub(crate) struct Ids {
    secrets: Secrets,
    /// The hash after the key of the tokens, so that it is taken in once.
    keyed: Option<Hmac<Sha256>>,
    /// The next identifier: 64 bits of this start's own, then a counter. They follow each other, so
    /// that tables sorted by them grow at their end, where the memory is warm. Nobody needs to be
    /// unable to guess them: only tokens must not be guessed.
    next: u128,
}

impl Ids {
    pub(crate) fn new(secrets: Secrets) -> Self {
        // HMAC takes keys of any length, so there always is one.
        let keyed = Hmac::new_from_slice(&secrets.token_key).ok();
        let next = start_of(&secrets.seed, 0);
        Self { secrets, keyed, next }
    }

    /// After a restart: even if the seed were the same again, as after a copied virtual machine, what
    /// the journal knows was not made with these numbers.
    pub(crate) fn skip_past(&mut self, records: u64) {
        // enforces: I25
        self.next = start_of(&self.secrets.seed, records);
    }

    fn bits(&mut self) -> u128 {
        self.next += 1;
        self.next
    }

    pub(crate) fn event(&mut self) -> u128 {
        self.bits()
    }

    /// The last identifier that was made.
    pub(crate) fn last(&self) -> u128 {
        self.next
    }

    /// Whether an identifier was made since the last restart.
    pub(crate) fn is_of_this_start(&self, number: u128) -> bool {
        number >> 64 == self.next >> 64
    }

    pub(crate) fn session(&mut self) -> Key {
        self.bits()
    }

    pub(crate) fn tool_call(&mut self) -> ToolCallId {
        ToolCallId::from_bits(self.bits())
    }

    // enforces: C6
    /// C6: 128 bits that nobody can guess without the key, and that no other event ever gets.
    pub(crate) fn token_bits(&self, event: u128) -> u128 {
        let Some(mut mac) = self.keyed.clone() else { return 0 };
        mac.update(&event.to_be_bytes());
        first_16(&mac.finalize().into_bytes())
    }
}

/// The first identifier of a start: its own 64 bits, and zeros for the counter.
fn start_of(seed: &[u8; 32], records: u64) -> u128 {
    let mut hash = Sha256::new_with_prefix(seed);
    hash.update(records.to_le_bytes());
    first_16(&hash.finalize()) >> 64 << 64
}

/// The number in a token of ours; none of ours looks different.
pub(crate) fn token_number(token: &ReplyToken) -> Option<u128> {
    number_of(token.as_str(), "rpl_")
}

/// The number in an event id of ours.
pub(crate) fn event_number(id: &EventId) -> Option<u128> {
    number_of(id.as_str(), "evt_")
}

/// A session inside the engine: the number in its id, which is ours and therefore has one.
pub(crate) type Key = u128;

/// The number in a session's id.
pub(crate) fn session_key(id: &SessionId) -> Option<Key> {
    number_of(id.as_str(), "sess_")
}

fn number_of(text: &str, prefix: &str) -> Option<u128> {
    let digits = text.strip_prefix(prefix)?;
    let ours =
        digits.len() == 32 && digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if ours { u128::from_str_radix(digits, 16).ok() } else { None }
}

fn first_16(bytes: &[u8]) -> u128 {
    bytes.first_chunk::<16>().map_or(0, |chunk| u128::from_be_bytes(*chunk))
}

/// What consent is bound to: the tool and what its arguments say, however they are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    // enforces: D36, I12
    /// SHA-256 over a version tag, the tool's name with its length, and the arguments in canonical
    /// form.
    pub fn of(tool: &str, arguments: &Canonical) -> Self {
        Self::tagged(b"aaep-action-v2\0", tool, arguments.as_str())
    }

    /// The digest of journals from before there was a canonical form: over the bytes.
    pub(crate) fn of_bytes(tool: &str, arguments: &str) -> Self {
        Self::tagged(b"aaep-action-v1\0", tool, arguments)
    }

    fn tagged(version: &[u8], tool: &str, arguments: &str) -> Self {
        let mut hash = Sha256::new_with_prefix(version);
        hash.update((tool.len() as u64).to_be_bytes());
        hash.update(tool.as_bytes());
        hash.update(arguments.as_bytes());
        let mut digest = [0; 32];
        digest.copy_from_slice(&hash.finalize());
        Self(digest)
    }

    /// Enough of it to tell most apart.
    pub(crate) fn beginning(&self) -> u64 {
        self.0.first_chunk::<8>().map_or(0, |chunk| u64::from_be_bytes(*chunk))
    }
}

impl std::fmt::Display for Digest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
        let mut digits = [[0; 2]; 32];
        for (pair, byte) in digits.iter_mut().zip(self.0) {
            *pair = [digit(byte >> 4), digit(byte & 15)];
        }
        f.write_str("sha256:")?;
        f.write_str(std::str::from_utf8(digits.as_flattened()).unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids() -> Ids {
        Ids::new(Secrets { seed: [7; 32], token_key: [9; 32] })
    }

    // covers: C6, I25
    #[test]
    fn no_two_identifiers_are_the_same_and_tokens_follow_from_events() {
        let mut ids = ids();
        let (first, second) = (ids.event(), ids.event());
        assert_ne!(first, second);
        assert_ne!(ids.token_bits(first), ids.token_bits(second));
        assert_eq!(ids.token_bits(first), self::ids().token_bits(first));
        let token = ReplyToken::from_bits(ids.token_bits(first));
        assert_eq!(token_number(&token), Some(ids.token_bits(first)));
    }

    // covers: D36, I12
    #[test]
    fn a_digest_tells_actions_apart_and_not_how_they_are_written() {
        let of = |tool, json| Digest::of(tool, &Canonical::of(json).unwrap());
        assert_eq!(of("pay", r#"{"a":1,"b":2}"#), of("pay", r#"{ "b": 2, "a": 1.0 }"#));
        assert_ne!(of("pay", r#"{"a":1}"#), of("pay", r#"{"a":"1"}"#));
        assert_ne!(of("pay", "1"), of("pay1", ""));
        assert_ne!(of("pay", "1"), Digest::of_bytes("pay", "1"));
        let mut bytes = [0; 32];
        (bytes[0], bytes[31]) = (0xa7, 0x09);
        assert_eq!(Digest(bytes).to_string(), format!("sha256:a7{}09", "0".repeat(60)));
    }
}
