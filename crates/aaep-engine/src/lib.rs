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
//! # What is deliberately absent
//!
//! Sockets, files, authentication (the caller says who the peer is), and what each subscription
//! hears of an event (that is shaping's work).

mod clock;
mod delivery;
mod emit;
mod engine;
mod ids;
mod io;
mod lanes;
mod ledger;
mod limits;
mod negotiate;
mod principal;
mod producer;
mod record;
mod recover;
mod refusal;
mod reply;
mod request;
mod rules;
mod session;

pub use clock::{Boot, Now};
pub use delivery::{Deliver, Delivery, Resumed};
pub use engine::Engine;
pub use ids::{Digest, Secrets};
pub use io::{Answer, Ask, Emitted, Input, Open, Output};
pub use limits::Limits;
pub use negotiate::{Agreement, Offer, Rejection, accepted, agree, negotiate};
pub use principal::{Principal, Role};
pub use producer::{Outcomes, Producer};
pub use record::{Asked, Corrupt, Opened, Outcome, Record};
pub use recover::ClockTrust;
pub use refusal::{Blame, Refusal};
pub use request::Status;
pub use rules::{Rules, Sound};
