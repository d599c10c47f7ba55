//! Logs and leases on NATS JetStream.
//!
//! A shard's log is a stream of its own, and an entry's place is its sequence. An append says how long
//! the stream is (`Nats-Expected-Last-Sequence`), and the stream's leader takes one of any two. It is
//! acknowledged once a majority of the replicas has it on disk. Where an append is refused, the place
//! is read: the same bytes there are the same append; not finding any proves nothing.
//!
//! What the servers do not promise is found at the start ([`JetStreamStore::open`]): fewer than three
//! of them, without `sync_interval: always`, or older than 2.15.1, there is no log. For that a user of
//! the system account is needed, who can see how the servers are set.
//!
//! A replica with a damaged disk leaves entries out. Numbers and chain notice it, and the entry is read
//! from another replica ([`JetStreamStorage::mended`] counts how often).
//!
//! These calls block until the servers answer or [`JetStreamStore::ANSWER_LIMIT`] has passed. Call them
//! on a thread of your own, not from within an asynchronous runtime.
#![allow(clippy::disallowed_methods)] // it talks to servers

mod address;
mod api;
mod check;
mod connection;
mod leases;
mod storage;

use std::fmt;
use std::thread;
use std::time::{Duration, Instant};

use async_nats::HeaderMap;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use super::storage::Unavailable;
use address::Address;
use api::{Got, OTHER_STREAM, StreamConfig, StreamInfo, Wanted};
use connection::Connection;

pub use check::UnsafeCluster;
pub use leases::JetStreamLeases;
pub use storage::JetStreamStorage;

/// So many servers keep every entry.
const REPLICAS: u32 = 3;

/// How long a lease lasts.
const LEASE_NANOS: u64 = 2_000_000_000;

/// The streams of leases and of facts.
const LEASES: &str = "aaep-leases";
const FACTS: &str = "aaep-facts";

/// Why a JetStream cluster cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum JetStreamRefused {
    /// The address cannot be read.
    Address(String),
    /// No server answers, or none lets this user in.
    Unavailable(Unavailable),
    /// The system account does not let this user in, or nobody answers there.
    System(Unavailable),
    /// It could lose what it has acknowledged. Each with what to change.
    Unsafe(Vec<UnsafeCluster>),
}

impl fmt::Display for JetStreamRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => {
                write!(f, "The address of the NATS servers cannot be read: {why}.")
            }
            Self::Unavailable(why) => why.fmt(f),
            Self::System(why) => write!(
                f,
                "What the servers promise cannot be seen. Give system_user and system_password a user of the system account ($SYS). {why}"
            ),
            Self::Unsafe(found) => {
                f.write_str(
                    "This JetStream cluster could lose what it has acknowledged. Nothing was started.",
                )?;
                found.iter().try_for_each(|one| write!(f, "\n  {one}"))
            }
        }
    }
}

impl std::error::Error for JetStreamRefused {}

impl From<Unavailable> for JetStreamRefused {
    fn from(why: Unavailable) -> Self {
        JetStreamRefused::Unavailable(why)
    }
}

/// A JetStream cluster that was checked. Clones share its connection.
#[derive(Clone, Debug)]
pub struct JetStreamStore {
    connection: Connection,
    servers: Vec<String>,
}

impl JetStreamStore {
    /// How long an answer is waited for.
    pub const ANSWER_LIMIT: Duration = Duration::from_secs(5);

    /// How long a lease lasts.
    pub const LEASE: Duration = Duration::from_nanos(LEASE_NANOS);

    /// How long the servers have at the start to agree on who leads them.
    const SETTLING: Duration = Duration::from_secs(20);

    /// Connects, checks what the servers promise, and makes the streams if they are not there.
    ///
    /// The address is `nats://user:password@host-1,host-2,host-3?system_user=…&system_password=…`.
    /// Servers on other machines are spoken to over TLS only, and their certificates are verified with
    /// the roots of this machine.
    pub fn open(address: &str) -> Result<Self, JetStreamRefused> {
        Self::open_within(address, Self::ANSWER_LIMIT)
    }

    /// The same, with another limit for answers.
    pub fn open_within(address: &str, limit: Duration) -> Result<Self, JetStreamRefused> {
        let address = Address::parse(address)?;
        let connection = Connection::open(&address, address.user.as_ref(), limit)?;
        let system = Connection::open(&address, Some(&address.system), limit)
            .map_err(JetStreamRefused::System)?;
        let servers = check::promises(&connection, &system)?;
        let store = Self { connection, servers };
        store.make_streams()?;
        Ok(store)
    }

    fn make_streams(&self) -> Result<(), JetStreamRefused> {
        let facts = StreamConfig::for_ever(FACTS, "aaep.fact.*");
        let leases = StreamConfig {
            storage: "memory",
            discard: "old",
            max_msgs_per_subject: 1,
            max_age: LEASE_NANOS,
            deny_delete: false,
            deny_purge: false,
            allow_direct: false,
            ..StreamConfig::for_ever(LEASES, "aaep.lease.*")
        };
        let end = Instant::now() + Self::SETTLING;
        loop {
            let made = make_stream(&self.connection, &facts)
                .and_then(|()| make_stream(&self.connection, &leases));
            match made {
                Ok(()) => return Ok(()),
                Err(why) if Instant::now() > end => return Err(why.into()),
                Err(_) => thread::sleep(Duration::from_millis(200)),
            }
        }
    }

    /// The servers that keep the logs.
    pub fn servers(&self) -> &[String] {
        &self.servers
    }

    /// The places of a shard.
    pub fn storage(&self, shard: &str) -> JetStreamStorage {
        JetStreamStorage::new(self.connection.clone(), shard)
    }

    /// The leases.
    pub fn leases(&self) -> JetStreamLeases {
        JetStreamLeases::new(self.connection.clone())
    }

    /// Something that is decided once for the whole cluster, such as its number of shards: the first
    /// value stands, and is what everybody is told.
    pub fn decide(&self, name: &str, value: &str) -> Result<String, Unavailable> {
        let subject = format!("aaep.fact.{}", token(name));
        let mut headers = HeaderMap::new();
        headers.insert("Nats-Expected-Last-Subject-Sequence", "0");
        let payload = Bytes::copy_from_slice(value.as_bytes());
        // Whatever becomes of it, what stands is read.
        let _ = self.connection.ask(&subject, headers, payload).known()?;
        let wanted = Wanted::LastOf { last_by_subj: &subject };
        let got: Got = self.connection.api(&format!("STREAM.MSG.GET.{FACTS}"), &wanted).known()?;
        let bytes = got.message.and_then(|message| STANDARD.decode(message.data).ok());
        bytes
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .ok_or_else(|| Unavailable::Away("what was decided is not there".into()))
    }
}

/// Makes a stream, or looks whether the one that is there keeps what it has to keep.
fn make_stream(connection: &Connection, config: &StreamConfig<'_>) -> Result<(), Unavailable> {
    let made: StreamInfo =
        connection.api(&format!("STREAM.CREATE.{}", config.name), config).known()?;
    let error = match (made.config, made.error) {
        (Some(_), None) => return Ok(()),
        (_, Some(error)) => error,
        (None, None) => return Err(Unavailable::Away("a stream was not made".into())),
    };
    if error.err_code != OTHER_STREAM {
        return Err(Unavailable::Away(format!(
            "the stream {} cannot be made: {}",
            config.name, error.description
        )));
    }
    let found: StreamInfo = connection.api(&format!("STREAM.INFO.{}", config.name), &()).known()?;
    match found.config {
        Some(found)
            if config.name == LEASES || check::stream_promises(config.name, &found).is_ok() =>
        {
            Ok(())
        }
        Some(found) => {
            let why = check::stream_promises(config.name, &found).err();
            Err(Unavailable::Away(why.map_or_else(String::new, |why| why.to_string())))
        }
        None => Err(Unavailable::Away(format!("the stream {} cannot be looked at", config.name))),
    }
}

/// A name as part of a subject and of a stream's name: other characters than letters, digits and the
/// hyphen are written as numbers.
fn token(name: &str) -> String {
    let mut token = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || byte == b'-' {
            token.push(char::from(byte));
        } else {
            token.push_str(&format!("_{byte:02x}"));
        }
    }
    token
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_fits_a_subject_and_no_two_are_the_same() {
        let names = ["shard-0", "a b", "a.b", "a_20b", "a>", "", "ä"];
        let tokens: Vec<String> = names.iter().map(|name| token(name)).collect();
        for (index, token) in tokens.iter().enumerate() {
            assert!(!token.contains(['.', '*', '>', ' ']), "{token}");
            assert!(!tokens[..index].contains(token), "{token}");
        }
    }
}
