//! Identifiers: short, `Copy`, and of a type of their own, so that none can stand for another.

use serde_json::{Value, json};
use std::fmt;

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::{self, Rule};
use crate::wire::{Wire, read_string};

/// The longest part after the prefix.
const MAX_BODY: usize = 64;
/// The longest prefix, `sess_` and `call_`.
const MAX_PREFIX: usize = 5;

/// Every byte as two digits.
const HEXADECIMAL: [[u8; 2]; 256] = {
    let (digits, mut table, mut byte) = (b"0123456789abcdef", [[0; 2]; 256], 0);
    while byte < 256 {
        table[byte] = [digits[byte >> 4], digits[byte & 15]];
        byte += 1;
    }
    table
};

/// The characters of an identifier, in place; unused bytes are zero, so comparing is comparing text.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Inline {
    bytes: [u8; MAX_PREFIX + MAX_BODY],
    length: u8,
}

impl Inline {
    fn parse(prefix: &str, text: &str) -> Option<Self> {
        let body = text.strip_prefix(prefix)?.as_bytes();
        let fits = (1..=MAX_BODY).contains(&body.len());
        // Looking at all of them without stopping at the first wrong one is quicker.
        let spelled = body.iter().fold(true, |all, byte| all & byte.is_ascii_alphanumeric());
        if !fits || !spelled {
            return None;
        }
        let mut bytes = [0; MAX_PREFIX + MAX_BODY];
        bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(Self { bytes, length: text.len() as u8 })
    }

    fn as_str(&self) -> &str {
        // Only ASCII gets in.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or_default()
    }
}

macro_rules! identifier {
    ($(#[doc = $doc:literal])* $name:ident, $prefix:literal, rule $rule:expr, debug $debug:expr) => {
        $(#[doc = $doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Inline);

        impl $name {
            const EXPECTED: &'static str = concat!(
                "Write `", $prefix, "` followed by 1 to 64 ASCII letters or digits."
            );

            #[doc = concat!("Takes `", $prefix, "` followed by 1 to 64 ASCII letters or digits.")]
            pub fn parse(text: &str) -> Result<Self, Malformed> {
                Inline::parse($prefix, text).map(Self).ok_or(Malformed(Self::EXPECTED))
            }

            /// Makes one from 128 bits, which the caller drew from the operating system's
            /// randomness or derived with a key: 32 hexadecimal digits.
            pub fn from_bits(bits: u128) -> Self {
                let mut inline = Inline { bytes: [0; MAX_PREFIX + MAX_BODY], length: 0 };
                let prefix = $prefix.as_bytes();
                inline.bytes[..prefix.len()].copy_from_slice(prefix);
                let digits = inline.bytes[prefix.len()..].as_chunks_mut::<2>().0;
                for (pair, byte) in digits.iter_mut().zip(bits.to_be_bytes()) {
                    *pair = HEXADECIMAL[usize::from(byte)];
                }
                inline.length = prefix.len() as u8 + 32;
                Self(inline)
            }

            /// The identifier as it is written on the wire.
            pub fn as_str(&self) -> &str {
                self.0.as_str()
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let debug: fn(&$name, &mut fmt::Formatter<'_>) -> fmt::Result = $debug;
                debug(self, f)
            }
        }

        impl<'a> Wire<'a> for $name {
            fn rule_for(member: Rule) -> Rule {
                let rule: fn(Rule) -> Rule = $rule;
                rule(member)
            }

            fn read(raw: Raw<'a>, member: Rule, report: &mut Report) -> Option<Self> {
                let rule = Self::rule_for(member);
                read_string(raw, rule, report, |text| Self::parse(&text))
            }

            fn write(&self, out: &mut Writer) {
                out.string(self.as_str());
            }

            fn schema() -> Value {
                json!({ "type": "string", "pattern": concat!("^", $prefix, "[A-Za-z0-9]{1,64}$") })
            }
        }
    };
}

fn show(text: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(text)
}

identifier! {
    /// Names one event; unique within its producer (§3.2.3).
    EventId, "evt_", rule |_| rule::E7, debug |id, f| show(id.as_str(), f)
}
identifier! {
    /// Names a session; the same on each of its events, never used again (§3.2.4).
    SessionId, "sess_", rule |_| rule::E8, debug |id, f| show(id.as_str(), f)
}
identifier! {
    /// Names a subscription; no credential (§5.4).
    SubscriptionId, "sub_", rule |member| member, debug |id, f| show(id.as_str(), f)
}
identifier! {
    /// Ties `tool.completed` to its `tool.invoked` (§4.3.1).
    ToolCallId, "call_", rule |_| rule::T13, debug |id, f| show(id.as_str(), f)
}
identifier! {
    /// Names one output among several of a session (§4.3.3).
    OutputId, "out_", rule |_| rule::T17, debug |id, f| show(id.as_str(), f)
}
identifier! {
    /// Ties a reply to the request it answers (§6.2). Its holder can try to answer, so it is never
    /// printed: it has no `Display`, and `Debug` hides it.
    ReplyToken, "rpl_", rule |_| rule::C6, debug |_, f| show("ReplyToken(hidden)", f)
}

macro_rules! display {
    ($($name:ident)*) => {$(
        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }
    )*};
}

display! { EventId SessionId SubscriptionId ToolCallId OutputId }

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E7, E8, C6, T13, H13
    #[test]
    fn an_identifier_is_its_prefix_and_up_to_64_letters_or_digits() {
        let longest = format!("sess_{}", "a".repeat(64));
        assert_eq!(SessionId::parse(&longest).unwrap().as_str(), longest);
        assert!(SessionId::parse(&format!("{longest}b")).is_err());
        for wrong in ["", "evt", "evt_", "evt_a-b", "evt_é", "EVT_a", "evt_a\n", " evt_a", "sub_a"]
        {
            assert!(EventId::parse(wrong).is_err(), "{wrong:?}");
        }
        assert!(ToolCallId::parse("call_7").is_ok());
        assert!(SubscriptionId::parse("sub_7").is_ok());
    }

    // covers: E7
    #[test]
    fn identifiers_are_case_sensitive() {
        assert_ne!(EventId::parse("evt_a").unwrap(), EventId::parse("evt_A").unwrap());
    }

    // covers: C6
    #[test]
    fn made_from_bits_it_is_32_hexadecimal_digits() {
        let token = ReplyToken::from_bits(0xAB);
        assert_eq!(token.as_str(), "rpl_000000000000000000000000000000ab");
        assert_eq!(ReplyToken::parse(token.as_str()), Ok(token));
    }

    // covers: C6
    #[test]
    fn a_reply_token_never_shows_itself() {
        let token = ReplyToken::parse("rpl_secretsecret").unwrap();
        assert!(!format!("{token:?} {:?}", Some(token)).contains("secret"));
    }
}
