//! The conformance suite: black-box checks of producers and subscribers over their sockets.
//!
//! [`producer::run`] plays several subscribers at once against a [`Target`], [`subscriber::run`] plays a
//! producer for a [`subscriber::Subject`]; both return a [`Report`]. A check that did not get what it needs is *not exercised*, never passed. A level is
//! granted only when every MUST of it, and of the levels below, was exercised and passed.
//!
//! [`mod@reference`] holds a small correct producer and subscriber, and one for each fault of theirs: they
//! show that the checks catch what they should, and nothing else.
//!
//! # What is deliberately left out
//!
//! What no message shows: whether a tool really ran, what an agent does behind the producer's back.
//! Answers are compared by status, headers and body; how long they took is not judged.
//!
//! ```
//! use aaep_conformance::suite::reference::{ProducerFault, Producer};
//! use aaep_conformance::suite::{CheckOutcome, Target, producer};
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let wrong = Producer::start(Some(ProducerFault::RunsBeforeTheAnswer)).await?;
//! let report = producer::run(&Target::new(wrong.base(), 2)).await;
//! let blocking = report.check("blocking").ok_or("it was checked")?;
//! assert!(matches!(blocking.outcome, CheckOutcome::Failed(_)));
//! assert_eq!(report.granted(), Some(1));
//! # Ok(())
//! # }
//! ```
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // sockets and clocks are its work

mod catalog;
mod ear;
mod http;
pub mod producer;
pub mod reference;
mod render;
mod report;
mod start;
pub mod subscriber;
mod target;
mod wire;

pub use catalog::{CATALOG, Check, Force, SUBSCRIBER};
pub use report::{CheckOutcome, CheckResult, Report, Side};
pub use target::{Script, Start, Target, Texts};
