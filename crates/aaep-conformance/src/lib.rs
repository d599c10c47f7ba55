//! Judges messages of AAEP, the Agent Accessibility Event Protocol.
//!
//! The module [`published`] accepts and rejects exactly what the published JSON Schemas do, and
//! says of each violation where it is and what to change. The module [`stream`] follows whole
//! streams and says what only the sequence of messages shows.
//!
//! With the feature `suite`, the module `suite` speaks with a producer over its socket, as many
//! subscribers at once, honest and hostile, or plays a producer for a subscriber, and reports what it saw.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `suite` | off | `suite`: checks that need a socket, and a reference producer and subscriber to try them on |
//!
//! # What is deliberately absent
//!
//! * **Any part of a producer.** Both modules read the rules for themselves, so that they can judge
//!   an engine. A schema sees one message; a stream sees the order of events, identifiers that must
//!   not repeat, deadlines and consent. Neither sees what a producer does without saying so.
//! * **The schemas as files.** They are tables in the source: nothing is loaded, compiled or
//!   fetched at run time. A developer's check compares the tables with the files.
//! * **Input and output, clocks, randomness**, outside `suite`. The same messages always get the same
//!   verdict.
//! * **The message's own words.** A [`published::Violation`] points at a value and never repeats
//!   it; a [`stream::Finding`] repeats identifiers and names of states. So reports can be logged
//!   without leaking reply tokens or private text.
//!
//! # One message
//!
//! ```
//! use aaep_conformance::published::{self, Schema};
//! use serde_json::json;
//!
//! let message = json!({
//!     "type": "subscription.rejected",
//!     "reason_code": "rate_limit",
//!     "reason_message": "Too many requests from this desk.",
//!     "retry_after_seconds": 86_401
//! });
//!
//! assert_eq!(published::schema_for(&message).name(), "handshake/subscription.rejected");
//! let violations = published::judge(&message);
//! assert_eq!(violations.len(), 1);
//! assert_eq!(
//!     violations[0].to_string(),
//!     "/retry_after_seconds: Make this a whole number from 0 to 86400."
//! );
//!
//! // Any schema can be asked about any message.
//! assert!(!published::judge_against(Schema::Envelope, &message).is_empty());
//! ```
//!
//! # A stream
//!
//! ```
//! use aaep_conformance::stream::{Checker, Options};
//!
//! let event = |number: u32, more: &str| {
//!     format!(
//!         r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0",
//!         "event_id":"evt_{number}","session_id":"sess_desk","sequence_number":{number},
//!         "timestamp":"2026-03-02T09:00:0{number}Z","producer":{{"agent_id":"desk-helper"}},
//!         "localization_hints":{{"primary_language":"en"}},{more}}}"#
//!     )
//! };
//! let messages = [
//!     event(0, r#""type":"aaep:agent.session.started","summary_normal":"Tidying.""#),
//!     event(1, r#""type":"aaep:agent.tool.invoked","tool":"shred","irreversible":true,
//!         "summary_normal":"Shredding the letters.""#),
//!     event(2, r#""type":"aaep:agent.tool.completed","tool":"shred","status":"success""#),
//!     event(3, r#""type":"aaep:agent.session.completed","summary_normal":"Tidy.""#),
//! ];
//!
//! let mut checker = Checker::new(Options { complete: true, ..Options::default() });
//! let mut found = Vec::new();
//! for (place, message) in (1..).zip(&messages) {
//!     checker.message(place, message.as_bytes(), &mut found);
//! }
//! checker.finish(&mut found);
//!
//! assert_eq!(found.len(), 1);
//! assert_eq!((found[0].line, found[0].rule.id), (2, "T12"));
//! assert!(found[0].text.starts_with("This irreversible call was announced without"));
//! ```

pub mod published;
pub mod stream;
#[cfg(feature = "suite")]
pub mod suite;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
