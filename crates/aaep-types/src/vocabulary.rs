//! The closed vocabularies of the protocol.

use serde_json::{Value, json};
use std::fmt;

use crate::Malformed;
use crate::json::{Raw, Writer};
use crate::report::Report;
use crate::rule::Rule;
use crate::wire::{Wire, read_string};

macro_rules! vocabulary {
    ($(
        $(#[doc = $doc:literal])*
        $name:ident { $( $(#[doc = $word_doc:literal])* $word:ident = $text:literal, )* }
    )*) => {$(
        $(#[doc = $doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $( $(#[doc = $word_doc])* $word, )* }

        impl $name {
            /// Every word.
            pub const ALL: &'static [Self] = &[$(Self::$word),*];

            /// Takes a word as it is written on the wire.
            pub fn parse(text: &str) -> Result<Self, Malformed> {
                match text {
                    $($text => Ok(Self::$word),)*
                    _ => Err(Malformed(concat!("Write one of:", $(" `", $text, "`"),*, "."))),
                }
            }

            /// The word as it is written on the wire.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$word => $text,)* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(self.as_str())
            }
        }

        impl<'a> Wire<'a> for $name {
            fn read(raw: Raw<'a>, rule: Rule, report: &mut Report) -> Option<Self> {
                read_string(raw, rule, report, |text| Self::parse(&text))
            }

            fn write(&self, out: &mut Writer) {
                out.string(self.as_str());
            }

            fn schema() -> Value {
                json!({ "type": "string", "enum": [$($text),*] })
            }
        }
    )*};
}

vocabulary! {
    /// How much is said (§3.3.1).
    Verbosity {
        /// As little as possible.
        Terse = "terse",
        /// A sentence.
        Normal = "normal",
        /// Everything worth knowing.
        Detailed = "detailed",
    }
    /// How soon something has to be heard (§3.3.2).
    Urgency {
        /// When there is nothing else.
        Background = "background",
        /// In its turn.
        Normal = "normal",
        /// At once.
        Critical = "critical",
    }
    /// Which way text runs (§11.4).
    TextDirection {
        /// Left to right.
        Ltr = "ltr",
        /// Right to left.
        Rtl = "rtl",
        /// As the Unicode bidirectional algorithm finds.
        Auto = "auto",
    }
    /// How much can go wrong.
    RiskLevel {
        /// Little.
        Low = "low",
        /// Something.
        Medium = "medium",
        /// Much.
        High = "high",
    }
    /// Whether an action can be taken back.
    Reversibility {
        /// Easily.
        Reversible = "reversible",
        /// With some trouble.
        ReversibleWithEffort = "reversible_with_effort",
        /// Not at all.
        Irreversible = "irreversible",
    }
    /// Whose words describe an action that is asked about.
    DescribedBy {
        /// A template of the policy, filled with the arguments.
        Policy = "policy",
        /// The agent that asks.
        Agent = "agent",
    }
    /// What was taken out of a text, because it was a secret (§10 T5) or not for this listener
    /// (§10.5.3).
    Removed {
        /// The number of a payment card.
        CardNumber = "card_number",
        /// A key to a service.
        Key = "key",
        /// A token of a signed-in account.
        Token = "token",
        /// The private half of a pair of keys.
        PrivateKey = "private_key",
        /// A password.
        Password = "password",
        /// What this listener is not to hear.
        NotForThisRole = "not_for_this_role",
    }
    /// How sure the hub is that a person gave an answer, each more than the one before:
    /// `urn:aaep-rs:presence:v1`.
    Presence {
        /// Not at all.
        None = "none",
        /// It came over an authenticated subscription, and not from the asking agent's own processes.
        Listener = "listener",
        /// The person's PIN was typed on that connection a while ago.
        Pin = "pin",
        /// A security key or the device itself signed this very answer.
        Passkey = "passkey",
    }
    /// What the hub says about a PIN that was typed, and about what a person shows their presence with.
    PresenceWord {
        /// It was right: answers on this connection count for a while.
        Unlocked = "unlocked",
        /// It was wrong.
        Wrong = "wrong",
        /// Nobody looked at it: the last wrong one was a moment ago.
        Wait = "wait",
        /// There is no PIN yet.
        Unset = "unset",
        /// Somebody typed a wrong one on another connection.
        Tried = "tried",
        /// The PIN is another one now, or there is none any more.
        Changed = "changed",
        /// A passkey was registered for this person.
        PasskeyAdded = "passkey_added",
        /// A passkey of this person was removed.
        PasskeyRemoved = "passkey_removed",
    }
    /// The two answers to a confirmation (§6.3).
    Decision {
        /// Do it.
        Accept = "accept",
        /// Leave it.
        Reject = "reject",
    }
    /// How an answer to a clarification may look (§6.5.2).
    ResponseKind {
        /// Any text.
        Freetext = "freetext",
        /// Yes or no.
        YesNo = "yes_no",
        /// One of the choices.
        MultipleChoice = "multiple_choice",
        /// A number.
        Numeric = "numeric",
    }
    /// Where streamed text may be cut (§5.3.1.6).
    CoalesceBoundary {
        /// Anywhere.
        None = "none",
        /// After a word.
        Word = "word",
        /// After a sentence.
        Sentence = "sentence",
        /// After a paragraph.
        Paragraph = "paragraph",
        /// Only when all of it is there.
        Completion = "completion",
    }
    /// What kind of error ended a session (§4.1.3).
    ErrorCategory {
        /// Trying again may help.
        Transient = "transient",
        /// Trying again will not help.
        Permanent = "permanent",
        /// The user has to do something.
        RequiresUser = "requires_user",
        /// Unknown.
        Unknown = "unknown",
    }
    /// Who cancelled a session (§4.1.4).
    CancelledBy {
        /// The user.
        User = "user",
        /// The agent.
        Producer = "producer",
        /// A time limit.
        Timeout = "timeout",
        /// Something around them.
        System = "system",
    }
    /// How a tool call ended (§4.3.2).
    ToolStatus {
        /// It worked.
        Success = "success",
        /// It failed.
        Error = "error",
        /// It never came back, or its result is unknown.
        Timeout = "timeout",
    }
    /// Who takes over (§4.4.3).
    TargetKind {
        /// A person.
        Human = "human",
        /// Another agent.
        SpecialistAgent = "specialist_agent",
        /// The next one in a queue.
        EscalationQueue = "escalation_queue",
    }
    /// Low, medium or high: how soon a handoff is needed, or how much a listener can take in.
    Level {
        /// Low.
        Low = "low",
        /// Medium.
        Medium = "medium",
        /// High.
        High = "high",
    }
    /// Why a subscription was refused (§5.5).
    RejectionCode {
        /// The protocol version is not spoken here.
        VersionUnsupported = "version_unsupported",
        /// Only signed manifests were wanted, and there is none.
        ManifestSignatureRequired = "manifest_signature_required",
        /// What was asked for cannot be had together.
        CapabilitiesIncompatible = "capabilities_incompatible",
        /// Too many, too fast.
        RateLimit = "rate_limit",
        /// Say who you are.
        AuthenticationRequired = "authentication_required",
        /// Known, but not allowed.
        AuthorizationDenied = "authorization_denied",
        /// Not over this transport.
        TransportUnavailable = "transport_unavailable",
        /// None of these.
        Unknown = "unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: E12, E13
    #[test]
    fn words_are_read_as_they_are_written_and_nothing_else() {
        for &urgency in Urgency::ALL {
            assert_eq!(Urgency::parse(urgency.as_str()), Ok(urgency));
        }
        assert!(Urgency::parse("Critical").is_err());
        assert!(Verbosity::parse("verbose").is_err());
    }
}
