//! The listening side of AAEP, the Agent Accessibility Event Protocol: what an assistive technology
//! imports to hear what AI agents do, and to answer them.
//!
//! - [`inbox`] is the core: it negotiates, orders, removes duplicates, notices gaps, keeps to what a
//!   person can hear, tracks open requests and makes replies. It tells each [`Notification`] once.
//! - [`words`] says a notification: in the listener's language, at their verbosity, under their load.
//!   The agent's text stays apart from ours and is made safe.
//! - `client`, a feature that is on by default, connects the core to hubs and producers.
//!
//! Left out on purpose: speech, braille, windows and keys. They belong to the voice that uses this.
//! Without the feature `client` there is no clock, no randomness and no IO either: the code that drives
//! the core brings them.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `client` | on | connections to hubs and producers |
//!
//! # Example
//!
//! A request arrives, and a person hears it: what will be done comes first, then whether it can be
//! undone.
//!
//! ```
//! use aaep_subscriber::inbox::{Bounds, Inbox, InboxInput, Settings};
//! use aaep_subscriber::words::{Manner, Span, Words};
//!
//! let mut inbox = Inbox::new(Settings::default(), Bounds::default(), 1_779_632_531_000);
//! let hub = inbox.add("my hub", 0);
//! let _request = inbox.begin(hub, 0); // sent to the hub, which answers:
//! let accepted = br#"{"type":"subscription.accepted","subscription_id":"sub_1",
//!   "aaep_version":"1.0.0","producer":{"agent_id":"hub"},"honored_capabilities":
//!   {"supports_confirmation_reply":true,"supports_clarification_reply":true}}"#;
//! inbox.handle(InboxInput::Message { connection: hub, bytes: accepted }, 5);
//! inbox.handle(InboxInput::Attached { connection: hub }, 5);
//! let asks = br#"{"@context":"https://aaep-protocol.org/context/v1",
//!   "type":"aaep:agent.awaiting.confirmation","event_id":"evt_1","session_id":"sess_1",
//!   "timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"tidy"},"urgency":"critical",
//!   "action":"Delete the build","consequence":"It is gone","reply_token":"rpl_1",
//!   "timeout_seconds":60,"default_decision":"reject","irreversible":true,"risk_level":"high"}"#;
//! inbox.handle(InboxInput::Message { connection: hub, bytes: asks }, 10);
//!
//! let words = Words::new(&["en-GB", "ar"]);
//! let mut lines = Vec::new();
//! while let Some(notification) = inbox.poll_notification(10) {
//!     lines.extend(words.say(&notification, &Manner::default()));
//! }
//! let heard: Vec<String> = lines.iter().map(|line| line.to_string()).collect();
//! assert!(heard.contains(&"Allow this? Delete the build. It cannot be undone.".to_owned()));
//! assert!(heard.contains(&"What happens: It is gone. High risk.".to_owned()));
//! // A voice can tell our words from the agent's.
//! let theirs = Span::Theirs("Delete the build".to_owned());
//! assert!(lines.iter().any(|line| line.spans.contains(&theirs)));
//! ```

#[cfg(feature = "client")]
pub mod client;
pub mod inbox;
mod notification;
mod request;
pub mod words;

pub use notification::{Agent, Identity, Notification, Silence};
pub use request::{Account, Asks, Choice, Request, RequestHandle, RequestOutcome};

// The README's example is run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
