//! The language of AAEP, the Agent Accessibility Event Protocol.
//!
//! AI agents (producers) tell assistive technology (subscribers) what they do, and ask the user
//! before they do something that matters. This crate holds the words of that conversation: the
//! twelve core events, the handshake, the replies, the manifest. **Parsing is validating**: a value
//! of a type of this crate is valid because it exists, and what cannot become one is explained in
//! full: every problem with its place, the rule it breaks, and one sentence that says what to change.
//!
//! Left out on purpose: clocks, randomness, IO, and everything that spans more than one message.
//! Those live in other crates; this one only knows what a single message may say.
//!
//! # Reading
//!
//! ```
//! use aaep_types::{Event, Payload};
//!
//! let bytes = br#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0",
//!   "type":"aaep:agent.session.started","event_id":"evt_1","session_id":"sess_1",
//!   "timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"tidy"},
//!   "localization_hints":{"primary_language":"en"},"summary_normal":"Tidying the desk."}"#;
//! let event = Event::parse(bytes)?;
//! assert!(matches!(event.payload(), Payload::SessionStarted(started)
//!     if started.summary_normal.as_str() == "Tidying the desk."));
//!
//! let broken = String::from_utf8_lossy(bytes).replace("evt_1", "event 1");
//! let invalid = Event::parse(broken.as_bytes()).unwrap_err();
//! assert_eq!(invalid.problems[0].rule.id, "E7");
//! assert_eq!(invalid.problems[0].pointer, "/event_id");
//! # Ok::<(), aaep_types::Invalid>(())
//! ```
//!
//! [`Event::parse`] is for producers and tools: strict. [`LenientEvent::parse`] is for assistive
//! technology, which has to make the best of what it gets: it needs only a type and two ids.
//!
//! # Writing
//!
//! ```
//! use aaep_types::*;
//!
//! let envelope = Envelope {
//!     context: Context::core(),
//!     aaep_version: Some(Version::OURS),
//!     type_name: TypeName::Core(EventKind::StateChanged),
//!     event_id: EventId::from_bits(1),
//!     session_id: SessionId::from_bits(2),
//!     sequence_number: None,
//!     timestamp: Timestamp::from_millis(1_779_632_531_342).unwrap(),
//!     producer: Producer::named(Name::new("tidy").unwrap()),
//!     verbosity: None,
//!     urgency: None,
//!     localization_hints: Some(LocalizationHints::language(LanguageTag::parse("en").unwrap())),
//!     correlation_id: None,
//!     other: Vec::new(),
//! };
//! let payload = event::StateChanged {
//!     from_state: Name::new("idle").unwrap(),
//!     to_state: Name::new("thinking").unwrap(),
//!     summary_terse: None,
//!     summary_normal: Text::new("Thinking.").ok(),
//!     summary_detailed: None,
//!     expected_duration_ms: None,
//!     other: Vec::new(),
//! };
//! let json = Event::emit(&envelope, &payload.into(), &Extensions::default())?;
//! assert!(Event::parse(json.as_bytes()).is_ok());
//! # Ok::<(), Invalid>(())
//! ```

pub mod action;
pub mod agent_api;
pub mod captured;
mod context;
pub mod deception;
mod envelope;
pub mod event;
pub mod handshake;
mod id;
pub mod json;
mod language;
mod lenient;
mod limits;
mod list;
mod manifest;
mod message;
mod number;
mod ours;
pub mod presence;
pub mod profile;
pub mod published;
pub mod recorded;
pub mod redaction;
mod reply;
mod report;
pub mod resume;
pub mod rule;
pub mod schema;
pub mod secret;
pub mod team;
mod text;
mod time;
mod type_name;
mod uri;
mod version;
mod vocabulary;
mod wire;

pub use context::{CORE_CONTEXT, Context, KNOWN_EXTENSIONS, KnownExtension, is_reserved_prefix};
pub use envelope::{ENVELOPE_MEMBERS, Envelope, Extensions, LocalizationHints, Producer};
pub use event::{Event, EventKind, Payload};
pub use id::{EventId, OutputId, ReplyToken, SessionId, SubscriptionId, ToolCallId};
pub use language::{LanguageTag, choose as choose_language};
pub use lenient::{LenientError, LenientEvent};
pub use limits::{Limits, MAX_PROBLEMS, soft as soft_limits};
pub use list::{List, Set};
pub use manifest::{Contact, Manifest, ManifestType, SupportedVersion, Transport, Transports};
pub use message::{Message, is_valid, validate, validate_with};
pub use number::{
    Confidence, Count, MAX_SAFE, Millis, Ordinal, Percent, TimeoutSeconds, UpTo, Whole,
};
pub use ours::{
    MoreTime, MoreTimeType, OutcomeMember, StopSession, StopSessionType, TimingCapability,
    TimingMember,
};
pub use reply::{
    ClarificationReply, ClarificationReplyType, ConfirmationReply, ConfirmationReplyType, Response,
};
pub use report::{Invalid, Problem, Reading, Severity};
pub use rule::Rule;
pub use text::{
    CancellationReason, CompactJws, ContentType, ErrorCode, Name, Prose, Script, Summary, Terse,
    Text, ToolName, UNBOUNDED, cut,
};
pub use time::{ReplyTimestamp, Timestamp};
pub use type_name::TypeName;
pub use uri::Uri;
pub use version::{AAEP_VERSION, Version};
pub use vocabulary::{
    CancelledBy, CoalesceBoundary, Decision, DescribedBy, ErrorCategory, Level, Presence,
    PresenceWord, RejectionCode, ResponseKind, Reversibility, RiskLevel, TargetKind, TextDirection,
    ToolStatus, Urgency, Verbosity,
};
pub use wire::{Opaque, Others};

/// A value that does not have the form the protocol demands; the sentence says which form that is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed(&'static str);

impl std::fmt::Display for Malformed {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0)
    }
}

impl std::error::Error for Malformed {}
