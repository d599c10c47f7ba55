//! Judges messages of AAEP, the Agent Accessibility Event Protocol.
//!
//! The module [`published`] accepts and rejects exactly what the published JSON Schemas do, and
//! says of each violation where it is and what to change.
//!
//! # What is deliberately absent
//!
//! * **The rest of the protocol.** A schema sees one message. The order of events, identifiers
//!   that must not repeat and deadlines are not its subject, and a message that passes here may
//!   still break a rule of the specification.
//! * **The schemas as files.** They are tables in the source: nothing is loaded, compiled or
//!   fetched at run time. A developer's check compares the tables with the files.
//! * **Input and output, clocks, randomness.** The same message always gets the same verdict.
//! * **The message's own words.** A [`published::Violation`] points at a value and never repeats
//!   it, so that reports can be logged without leaking reply tokens or private text.
//!
//! # Example
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

pub mod published;
pub mod stream;

/// Runs the example of the README.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
