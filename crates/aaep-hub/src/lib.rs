//! The hub of AAEP: where agents, people with assistive technology, clock, sockets and store meet.
//!
//! This is what stands around the engine: what the hub is told ([`config`]), who may come in
//! ([`access`]), what a request must look like ([`guard`]), whether it is safe to start ([`start`]),
//! TLS ([`Tls`]), and a safe configuration in one step ([`init`]).
//!
//! # The way of a request
//!
//! [`guard::Guard::admit`] looks at its head: host, origin, content type, where it came from. Then
//! [`access::Access::who`] says who sent it, or denies it. Both happen for every request, before its
//! body is read. Nothing is remembered of a connection: an identifier is no credential (S4).
//!
//! # What is deliberately absent
//!
//! * Cookies and sessions of browsers: a browser would send them by itself, for any page.
//! * Passwords: tokens are made by the hub, hold 256 random bits, and are kept as hashes.
//! * A way to be let in off this machine without a token or without encryption.
//! * A configuration file in the current directory: one that happens to lie there decides nothing.
//!
//! # Features
//!
//! | feature | default | what it adds |
//! |---|---|---|
//! | `cluster` | off | [`cluster`]: a hub on several machines, on PostgreSQL or NATS JetStream |
//!
//! # Example
//!
//! ```
//! use aaep_hub::access::{ApiSurface, Via};
//! use aaep_hub::config::{Config, Flags, Surroundings, load};
//! use aaep_hub::guard::Guard;
//! use aaep_hub::{Fault, Hub};
//!
//! // What the command line, the environment and the file say; here the command line alone.
//! let flags = Flags { ephemeral: true, ..Flags::default() };
//! let config = load(&flags, &Surroundings::default())?.config;
//!
//! // A hub that would not be safe does not start, and says what to do.
//! let exposed = Config { listen: vec!["0.0.0.0:8707".parse().unwrap()], ..config.clone() };
//! let fault = Hub::builder().config(exposed).prepare().unwrap_err();
//! assert!(fault.to_string().contains("there is no TLS"));
//!
//! // On loopback it does, with a warning.
//! let prepared = Hub::builder().config(config.clone()).prepare()?;
//! assert_eq!(prepared.warnings().len(), 1);
//!
//! // A request from this machine, and one from a page that pointed its own name here.
//! let bound = "127.0.0.1:8707".parse().unwrap();
//! let guard = Guard::new(&config, &[bound]);
//! let request = |host| http::Request::get("/aaep/v1/events").header("host", host).body(()).unwrap();
//! let (honest, ()) = request("localhost:8707").into_parts();
//! let (rebound, ()) = request("evil.example:8707").into_parts();
//! let peer = "127.0.0.1:50000".parse().unwrap();
//! assert!(guard.admit(&rebound, peer, false).is_err());
//! let admitted = guard.admit(&honest, peer, false).unwrap();
//! assert_eq!(admitted.client.via, Via::Loopback);
//!
//! // It is `local`, who hears, but whose answers do not count.
//! let access = prepared.access();
//! let known = access.who(admitted.bearer, admitted.client.via, ApiSurface::Listener).unwrap();
//! assert_eq!(&*known.principal.name, "local");
//! assert!(!access.may_reply(&known));
//! # Ok::<(), Fault>(())
//! ```
// This page links to what only the feature has.
#![cfg_attr(not(feature = "cluster"), allow(rustdoc::broken_intra_doc_links))]
#![allow(clippy::disallowed_methods)] // the hub is where files, clocks and randomness meet

pub mod access;
mod agent;
mod builder;
mod clock;
#[cfg(test)]
#[path = "tests/clock.rs"]
mod clock_tests;
#[cfg(feature = "cluster")]
pub mod cluster;
mod codes;
pub mod config;
mod core;
mod fault;
mod files;
pub mod guard;
mod http;
mod hub;
mod inbox;
mod init;
mod inside;
mod manifest;
mod metrics;
mod openapi;
mod outbox;
mod pace;
#[cfg(test)]
#[path = "tests/panics.rs"]
mod panics;
pub mod passkey;
mod per_address;
mod presence;
mod reading;
mod redaction;
mod retention;
mod roles;
mod serve;
pub mod sign_in;
pub mod start;
mod tls;
pub mod tokens;
mod vitals;
mod waits;

pub use agent::{AgentDoor, AskedRequest};
pub use builder::Builder;
pub use fault::Fault;
pub use hub::Hub;
pub use init::init;
pub use inside::{Listening, Replier};
pub use presence::{MIN_PIN_CHARACTERS, PIN_FILE_NAME, PinFile};
pub use serve::Running;
pub use tls::Tls;

/// The description of the HTTP API in OpenAPI, as a hub with this base serves it.
pub fn openapi(base: &config::BasePath) -> String {
    openapi::document(base.as_str()).to_string()
}
