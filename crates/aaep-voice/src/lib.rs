//! Voices for AAEP, the Agent Accessibility Event Protocol: speech and braille of their own, for
//! people who have no screen reader at hand, over SSH, on a console, in a pocket.
//!
//! | module | what it holds |
//! |---|---|
//! | [`utterance`] | what is said in one go: its class, its parts, their languages |
//! | [`announcer`] | the policy: what is said next, what interrupts what, what is said again |
//! | [`braille`] | what stands on the cells, and a client of BRLTTY (BrlAPI) |
//! | [`speech`] | synthesizers behind one trait: Speech Dispatcher, espeak-ng, `say`, SAPI |
//!
//! The policy is a state machine without clock, input or output; everything else here is the edge.
//!
//! # An agent's text is data
//!
//! What an agent writes reaches a synthesizer as text and never as a command, by construction: an SSIP
//! line can only be made from text without control characters and with its first dot escaped, and a
//! child process gets its text on standard input.
//!
//! # Example
//!
//! ```
//! use aaep_voice::announcer::{Action, Announcer, End};
//! use aaep_voice::utterance::{Class, Part, Utterance};
//!
//! let say = |class, text: &str| {
//!     let mut utterance = Utterance::new(class);
//!     utterance.parts.push(Part { text: text.into(), language: None, from_agent: true });
//!     utterance
//! };
//! let mut announcer = Announcer::default();
//! announcer.push(say(Class::Text, "A long story begins."));
//! let Some(Action::Say { .. }) = announcer.poll(0) else { panic!() };
//! // A request interrupts it, and the story waits until the request is settled.
//! announcer.asked(1);
//! announcer.push(say(Class::Request, "Delete the build?").of_request(1));
//! assert_eq!(announcer.poll(10), Some(Action::Stop));
//! let Some(Action::Say { id, utterance }) = announcer.poll(10) else { panic!() };
//! assert_eq!(utterance.text(), "Delete the build?");
//! announcer.ended(id, End::Spoken, 900);
//! assert_eq!(announcer.poll(900), None);
//! announcer.settled(1);
//! let Some(Action::Say { utterance, .. }) = announcer.poll(1_000) else { panic!() };
//! assert_eq!(utterance.text(), "A long story begins.");
//! ```
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // the edge: sockets, children, clocks

pub mod announcer;
pub mod braille;
pub mod speech;
pub mod utterance;

// The README's example is run, too.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
