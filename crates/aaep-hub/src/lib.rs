//! The hub.
#![allow(clippy::disallowed_methods)] // the hub is where files, clocks and randomness meet

pub mod access;
pub mod config;
mod fault;
mod files;
pub mod guard;
pub mod start;
mod tls;

pub use fault::Fault;
pub use tls::Tls;
