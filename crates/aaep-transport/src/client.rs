//! The client half of HTTP: POST there, server-sent events back.
//!
//! Coming back after a lost connection, and when, is the subscriber's business.

mod events;
mod http;
mod secret;
mod token;

use std::fmt;
use std::time::Duration;

use ::http::StatusCode;

use crate::TooLong;
use crate::tls::TlsError;

pub use self::http::{FullResponse, HttpClient, WholeOrStream};
pub use events::EventStream;
pub use secret::{SESSION_SECRET_HEADER, SessionSecret};
pub use token::Token;

/// How a client connects, and how long it waits.
#[derive(Clone, Debug)]
pub struct Options {
    /// Shown to the server as a bearer token.
    pub token: Option<Token>,
    /// Shown with every request to a hub that knows the agent by no token.
    pub session_secret: Option<SessionSecret>,
    /// Certificates in PEM to trust beside those of this machine, for a hub that signed its own.
    pub extra_roots_pem: Option<Vec<u8>>,
    /// A certificate and its key in PEM, to be shown to a server that asks for one.
    pub identity: Option<ClientIdentity>,
    /// Whether to speak without TLS to other machines. Everybody on the way can then read along,
    /// and answer in the user's name (W5).
    pub plain_off_host: bool,
    /// Whether to speak without TLS to whatever listens on a loopback address, whichever user runs it
    /// is. Every user of this machine could then answer in the hub's place, and be shown the token.
    /// For containers and the like, where nobody can tell whose it is.
    pub trust_loopback: bool,
    /// Until a connection is there, TLS included.
    pub connect: Duration,
    /// Until an answer is there in full, and until a stream begins.
    pub answer: Duration,
    /// How long a stream may be silent, keep-alives included, before it counts as lost (W3).
    pub silence: Duration,
    /// Bytes in an answer, and in one event, at most.
    pub max_message: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            token: None,
            session_secret: None,
            extra_roots_pem: None,
            identity: None,
            plain_off_host: false,
            trust_loopback: false,
            connect: Duration::from_secs(10),
            answer: Duration::from_secs(75), // longer than the longest wait an agent may ask for
            silence: Duration::from_secs(45),
            max_message: 1 << 20,
        }
    }
}

/// A certificate that a client shows, with the rest of its chain, and its private key; both in PEM. Its
/// `Debug` shows neither.
#[derive(Clone)]
pub struct ClientIdentity {
    /// The certificate, followed by those that lead to its root.
    pub chain_pem: Vec<u8>,
    /// Its private key.
    pub key_pem: Vec<u8>,
}

impl fmt::Debug for ClientIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ClientIdentity").finish_non_exhaustive()
    }
}

/// Why a request or a stream failed.
#[derive(Debug)]
#[non_exhaustive]
pub enum ClientError {
    /// The address cannot be used.
    Address(String),
    /// The token cannot be put into a header.
    Token,
    /// Without TLS, and not to this machine.
    PlainOffHost(String),
    /// Something on this machine listens there, and it is not shown to be our own user's. Nothing was
    /// sent to it.
    Stranger(String),
    /// The TLS configuration cannot be used.
    Tls(TlsError),
    /// No connection could be made.
    Unreachable(String),
    /// The server answered with this status where another was needed; and what it said, in part.
    Refused(StatusCode, String),
    /// The answer did not come in time.
    TooSlow,
    /// The answer, or an event, is too long.
    TooLong(TooLong),
    /// The connection broke, or the server does not speak HTTP as it should.
    Broken(String),
}

impl ClientError {
    /// Keeps the beginning of what the server said.
    pub(crate) fn refused(status: StatusCode, body: &[u8]) -> Self {
        const SAID: usize = 1000;
        let said = String::from_utf8_lossy(&body[..body.len().min(SAID)]);
        Self::Refused(status, said.into_owned())
    }
}

impl fmt::Display for ClientError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(f, "the address cannot be used: {why}"),
            Self::Token => write!(f, "the token holds characters that a header cannot carry"),
            Self::PlainOffHost(host) => write!(
                f,
                "{host} is another machine, and the connection is not protected. Use https or wss."
            ),
            Self::Stranger(why) => f.write_str(why),
            Self::Tls(error) => error.fmt(f),
            Self::Unreachable(why) => write!(f, "the server cannot be reached: {why}"),
            Self::Refused(status, said) if said.is_empty() => {
                write!(f, "the server answered {status}")
            }
            Self::Refused(status, said) => write!(f, "the server answered {status}: {said}"),
            Self::TooSlow => write!(f, "the server did not answer in time"),
            Self::TooLong(error) => error.fmt(f),
            Self::Broken(why) => write!(f, "the connection broke: {why}"),
        }
    }
}

impl std::error::Error for ClientError {}
