//! Tokens of identity providers: who is believed, until when, and with which keys.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files, sockets and clocks

mod fetched;
mod sign_in;
mod streams;
mod support;
mod tokens;
