//! The listening side of AAEP, the Agent Accessibility Event Protocol.

#[cfg(feature = "client")]
pub mod client;
mod happening;
pub mod inbox;
mod request;
pub mod words;

pub use happening::{Agent, Happening, Silence};
pub use request::{Asks, Choice, Outcome, Request};
