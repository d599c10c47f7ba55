//! Identifiers and reply tokens, made from secrets that the caller drew.

use aaep_types::json::Canonical;
use aaep_types::{EventId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
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

/// A number that the engine made.
pub(crate) trait Number: Copy + Eq {
    fn bits(self) -> u128;
}

/// Numbers of the engine, a type for each kind of thing that they name.
macro_rules! numbers {
    ($($(#[$about:meta])* $name:ident)+) => {$(
        $(#[$about])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(u128);

        impl $name {
            /// The number with these bits.
            pub const fn from_bits(bits: u128) -> Self {
                Self(bits)
            }

            /// Its bits.
            pub const fn bits(self) -> u128 {
                self.0
            }
        }

        impl Number for $name {
            fn bits(self) -> u128 {
                self.0
            }
        }
    )+};
}

numbers! {
    /// A request, as its agent knows it: `req_` and 32 hex digits. It stays the same when more time
    /// is given, unlike the event that asks.
    ///
    /// ```
    /// use aaep_engine::RequestId;
    /// let request = RequestId::from_bits(0x2a);
    /// assert_eq!(request.to_string(), "req_0000000000000000000000000000002a");
    /// assert_eq!(RequestId::parse("req_0000000000000000000000000000002a"), Some(request));
    /// ```
    ///
    /// A number of another kind does not fit:
    ///
    /// ```compile_fail
    /// # use aaep_engine::{EventNumber, RequestId};
    /// fn status(request: RequestId) {}
    /// status(EventNumber::from_bits(0x2a));
    /// ```
    RequestId

    /// An event of ours; [`EventNumber::id`] is how it is written.
    ///
    /// ```compile_fail
    /// # use aaep_engine::{EventNumber, RequestId};
    /// fn show(event: EventNumber) {}
    /// show(RequestId::from_bits(0x2a));
    /// ```
    EventNumber

    /// A reply token: 128 bits that nobody can guess, so it does not show itself.
    TokenNumber

    /// A session inside the engine: the number in its id, which is ours and therefore has one.
    SessionKey
}

impl RequestId {
    /// The request that this event asks first.
    pub(crate) fn of(event: EventNumber) -> Self {
        Self(event.0)
    }

    /// The event that asked first.
    pub fn first_event(self) -> EventNumber {
        EventNumber(self.0)
    }

    /// Reads one; none of ours looks different.
    pub fn parse(text: &str) -> Option<Self> {
        number_of(text, "req_").map(Self)
    }
}

impl EventNumber {
    /// As it is written.
    pub fn id(self) -> EventId {
        EventId::from_bits(self.0)
    }
}

impl TokenNumber {
    /// As it is written.
    pub(crate) fn spelled(self) -> ReplyToken {
        ReplyToken::from_bits(self.0)
    }
}

impl SessionKey {
    /// No session's.
    pub(crate) const NONE: Self = Self(0);

    /// As it is written.
    pub(crate) fn id(self) -> SessionId {
        SessionId::from_bits(self.0)
    }
}

impl std::fmt::Display for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The digits of the event that asked first.
        let event = self.first_event().id();
        f.write_str("req_")?;
        f.write_str(event.as_str().strip_prefix("evt_").unwrap_or_default())
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl std::fmt::Debug for EventNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id().as_str())
    }
}

impl std::fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.id().as_str())
    }
}

impl std::fmt::Debug for TokenNumber {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("TokenNumber(…)")
    }
}

/// Makes identifiers one after the other.
pub(crate) struct Ids {
    secrets: Secrets,
    tokens: TokenMaker,
    /// The next identifier: 64 bits of this start's own, then a counter. They follow each other, so
    /// that tables sorted by them grow at their end, where the memory is warm. Nobody needs to be
    /// unable to guess them: only tokens must not be guessed.
    next: u128,
}

impl Ids {
    pub(crate) fn new(secrets: Secrets) -> Self {
        // HMAC takes keys of any length, so there always is one.
        let tokens = TokenMaker(Hmac::new_from_slice(&secrets.token_key).ok());
        let next = start_of(&secrets.seed, 0);
        Self { secrets, tokens, next }
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

    pub(crate) fn event(&mut self) -> EventNumber {
        EventNumber(self.bits())
    }

    pub(crate) fn subscription(&mut self) -> SubscriptionId {
        SubscriptionId::from_bits(self.bits())
    }

    /// The last identifier that was made.
    pub(crate) fn last(&self) -> EventNumber {
        EventNumber(self.next)
    }

    /// Whether a request was made since the last restart.
    pub(crate) fn is_of_this_start(&self, request: RequestId) -> bool {
        request.0 >> 64 == self.next >> 64
    }

    pub(crate) fn session(&mut self) -> SessionKey {
        SessionKey(self.bits())
    }

    pub(crate) fn tool_call(&mut self) -> ToolCallId {
        ToolCallId::from_bits(self.bits())
    }

    // enforces: C6
    /// C6: 128 bits that nobody can guess without the key, and that no other event ever gets.
    pub(crate) fn token(&self, event: EventNumber) -> TokenNumber {
        self.tokens.token(event)
    }

    /// Makes the same tokens elsewhere.
    pub(crate) fn tokens(&self) -> TokenMaker {
        self.tokens.clone()
    }
}

/// Makes reply tokens: the hash after their key, so that it is taken in once.
#[derive(Clone)]
pub(crate) struct TokenMaker(Option<Hmac<Sha256>>);

impl TokenMaker {
    pub(crate) fn token(&self, event: EventNumber) -> TokenNumber {
        let Some(mut mac) = self.0.clone() else { return TokenNumber(0) };
        mac.update(&event.0.to_be_bytes());
        TokenNumber(first_16(&mac.finalize().into_bytes()))
    }
}

/// The first identifier of a start: its own 64 bits, and zeros for the counter.
fn start_of(seed: &[u8; 32], records: u64) -> u128 {
    let mut hash = Sha256::new_with_prefix(seed);
    hash.update(records.to_le_bytes());
    first_16(&hash.finalize()) >> 64 << 64
}

/// The number in a token of ours; none of ours looks different.
pub(crate) fn token_number(token: &ReplyToken) -> Option<TokenNumber> {
    number_of(token.as_str(), "rpl_").map(TokenNumber)
}

/// The number in an event id of ours.
pub(crate) fn event_number(id: &EventId) -> Option<EventNumber> {
    number_of(id.as_str(), "evt_").map(EventNumber)
}

/// The number in a session's id.
pub(crate) fn session_key(id: &SessionId) -> Option<SessionKey> {
    number_of(id.as_str(), "sess_").map(SessionKey)
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
        assert_ne!(ids.token(first), ids.token(second));
        assert_eq!(ids.token(first), self::ids().token(first));
        let token = ids.token(first).spelled();
        assert_eq!(token_number(&token), Some(ids.token(first)));
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
