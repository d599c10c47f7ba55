//! x
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // sockets, clocks and files are this crate's work

pub mod client;
pub mod contract;
mod dial;
pub mod length;
pub mod link;
pub mod peer;
pub mod server;
pub mod sse;
mod stream;
pub mod tls;
#[cfg(unix)]
pub mod unix;
pub mod ws;

/// A message that is longer than its receiver takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLong {
    /// The most bytes a message may have.
    pub max: usize,
}

impl std::fmt::Display for TooLong {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the message is longer than {} bytes", self.max)
    }
}

impl std::error::Error for TooLong {}
