//! The listening side of AAEP, the Agent Accessibility Event Protocol.

mod happening;
mod request;
pub mod words;

pub use happening::{Agent, Happening, Silence};
pub use request::{Asks, Choice, Outcome, Request};
