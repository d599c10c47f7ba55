//! The AAEP producer as a deterministic state machine.
//!
//! Agents on one side, people with assistive technology on the other, and between them the
//! confirmation protocol: an action that matters runs only after somebody who may say so said yes
//! to exactly that action.
//!
//! # The contract
//!
//! One mutation, then drain the outputs: call [`Engine::handle`] with what happened and both clocks,
//! then [`Engine::poll_output`] until there is none, and come back when something happens or when
//! [`Engine::next_deadline`] says. Outputs are to be carried out in their order.
//!
//! * The engine reads no clock, draws no randomness and does no IO: time comes with each input, and
//!   identifiers are made from [`Secrets`] that the caller drew.
//! * What must survive a restart comes out as [`Output::Append`]; whatever relies on it is held until
//!   [`Input::Persisted`] says that it is durable. Replaying the records gives back the state.
//! * An input that breaks a rule is refused with that rule's number and changes nothing.
//! * The reason why a reply did not count is known to the journal alone.
//!
//! # Example
//!
//! ```
//! use aaep_engine::*;
//! use aaep_types::json::Canonical;
//! use aaep_types::{DescribedBy, EventKind, LanguageTag, SubscriptionId, Timestamp};
//!
//! let now = Now { boot: Boot(1), wall: Timestamp::from_millis(1_779_632_531_342).unwrap() };
//! let secrets = Secrets { seed: [1; 32], token_key: [2; 32] }; // draw these from the system
//! let mut engine: Engine = Engine::new(secrets, Limits::default());
//! let agent = Principal::new("bank-agent", Role::Agent, "ann");
//! let ann = Principal::new("reader", Role::AccessibilityConsumer, "ann");
//! let phone = SubscriptionId::from_bits(1);
//! engine.handle(Input::Joined { peer: &ann, subscription: phone, confirms: true, clarifies: true }, now)?;
//!
//! // The agent asks. Whatever comes out is carried out; here the journal is always quick.
//! let open = Open {
//!     agent: &agent,
//!     producer: r#"{"agent_id":"bank-agent"}"#,
//!     summary: "Paying the rent.",
//!     language: LanguageTag::parse("en").unwrap(),
//!     lease_seconds: 120,
//!     payload: "",
//! };
//! let Handled::Session(session) = engine.handle(Input::Open(open), now)? else { unreachable!() };
//! let rent = r#"{"euros":"800"}"#;
//! let (canonical, other) = (Canonical::of(rent).unwrap(), Canonical::of(r#"{"euros":"8000"}"#).unwrap());
//! let payload = r#"{"action":"Pay 800 euros of rent.","consequence":"It cannot be taken back.",
//!     "timeout_seconds":300,"default_decision":"reject","risk_level":"high","irreversible":true}"#;
//! let question = AgentQuestion::read(EventKind::AwaitingConfirmation, "transfer", rent, payload);
//! let described_by = DescribedBy::Agent;
//! let ask = Ask { agent: &agent, session, question: &question, described_by };
//! let Handled::Waiting { request, .. } = engine.handle(Input::Ask(ask), now)? else { unreachable!() };
//! let mut token = String::new();
//! while let Some(output) = engine.poll_output() {
//!     match output {
//!         Output::Append { number, .. } => drop(engine.handle(Input::Persisted { number }, now)?),
//!         Output::Event(event) => {
//!             if let Some(at) = event.json.find("rpl_") {
//!                 token = event.json[at..at + 36].to_owned();
//!             }
//!         }
//!         _ => {}
//!     }
//! }
//!
//! // Nothing runs before somebody said yes, and then only what was confirmed.
//! let invoke = |arguments| Input::Invoke { agent: &agent, request, arguments: Some(arguments) };
//! assert_eq!(engine.handle(invoke(&canonical), now).unwrap_err().rule.id, "T12");
//! let reply = format!(
//!     r#"{{"type":"confirmation.reply","reply_token":"{token}","decision":"accept","subscription_id":"{phone}","timestamp":"{}"}}"#,
//!     now.wall,
//! );
//! let yes = SubscriberMessage::parse(reply.as_bytes())?;
//! engine.handle(Input::Message { peer: &ann, message: &yes, call: 1 }, now)?;
//! assert!(engine.handle(invoke(&other), now).is_err());
//! assert!(engine.handle(invoke(&canonical), now).is_ok());
//! assert!(engine.handle(invoke(&canonical), now).is_err());
//! # Ok::<(), Refusal>(())
//! ```
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `mutants` | off | the trait of the safety rules, so that the simulator can break one at a time; nothing else may enable it |
//!
//! # What is deliberately absent
//!
//! Sockets, files, and authentication: the caller says who the peer is. What each subscription hears
//! of an event is decided beside the engine, by [`Delivery`]; [`Producer`] drives both as one.

mod agent_event;
mod ask;
mod before;
mod clock;
mod codec;
mod delivery;
mod draft;
mod durability;
mod emit;
mod engine;
mod handshake;
mod hearers;
mod hints;
mod ids;
mod invoke;
mod io;
mod ledger;
mod limits;
mod listeners;
mod message;
mod negotiate;
mod principal;
mod producer;
mod question;
mod rates;
mod recent;
mod record;
mod recover;
mod refusal;
mod reply;
mod request;
mod requests;
mod resume;
mod rules;
mod session;
mod session_snapshot;
mod shares;
mod slab;
mod unattended;
mod words;
mod work;

pub use agent_event::AgentEvent;
pub use before::Reminder;
pub use clock::{Boot, Now};
pub use delivery::{Deliver, Delivery, Load};
pub use engine::Engine;
pub use handshake::{Handshake, Negotiated, terms_of};
pub use ids::{Digest, EventNumber, RequestId, Secrets};
pub use io::{Ask, Emitted, Handled, Input, Open, Output};
pub use limits::{Footprint, Limits};
pub use message::SubscriberMessage;
pub use negotiate::{Agreement, Offer, Rejection, accepted, agree, negotiate};
pub use principal::{Evidence, Principal, Role};
pub use producer::{Producer, ProducerOutput};
pub use question::{AgentQuestion, canonical_ask};
pub use record::{Asked, Corrupt, Erasure, Opened, Outcome, Record, RecordedEvents};
pub use recover::{ClockTrust, DecodedRecord, RecordDecoder, Recovery};
pub use refusal::{Blame, Refusal};
pub use request::{Asker, Status, View};
pub use resume::Resumed;
pub use session_snapshot::SessionSnapshot;
pub use shares::{Bound, Shares};
pub use words::left_out;

// Only the simulator enables this, to override one rule at a time.
#[cfg(feature = "mutants")]
pub use ids::TokenNumber;
#[cfg(feature = "mutants")]
pub use rules::{Rules, Sound};
