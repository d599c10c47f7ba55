//! The hub as a whole: the real binary, on real sockets, with honest and hostile company.
#![cfg(unix)]
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // tests run programs and clocks

mod admin;
mod agents;
mod certificates;
mod conversations;
mod crowds;
mod doors;
mod durable;
mod erasure;
mod floods;
mod flows;
mod forgery;
mod full;
mod grpc;
mod guests;
mod kills;
mod links;
mod local;
mod logs;
mod operations;
mod owners;
mod paces;
mod page;
mod passkeys;
mod patience;
mod peers;
mod policy;
mod presence;
mod proxies;
mod rates;
mod replies;
mod returning;
mod secrets;
mod signed;
#[path = "../../../../testing/skipped.rs"]
mod skipped;
mod speaking;
mod stdio;
mod storms;
mod support;
mod tenants;
mod tokens;
