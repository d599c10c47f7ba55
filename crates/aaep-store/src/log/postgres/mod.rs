//! Logs and leases on PostgreSQL, or on another server that speaks its protocol and keeps its promises.
//!
//! An append is one `INSERT` that names the place, and that finds the place before it taken: the
//! table's primary key decides who comes first, in every isolation level. It is told as durable only
//! after the commit was acknowledged. An entry that is found there already counts only once a commit
//! behind it was acknowledged: an interrupted wait for a standby leaves entries that can be seen and
//! are not replicated yet.
//!
//! What a server does not promise is found at the start ([`PostgresStore::open`]): without `fsync`,
//! `full_page_writes` or `synchronous_commit`, or on a standby, there is no log. [`Replication`] says
//! what losing the server would lose.
//!
//! These calls block until the server answers or [`PostgresStore::ANSWER_LIMIT`] has passed. Call them
//! on a thread of your own, not from within an asynchronous runtime.
#![allow(clippy::disallowed_methods)] // it talks to a server

mod check;
mod connection;
mod leases;
mod storage;
mod tls;

use std::fmt;
use std::time::Duration;

use tokio_postgres::Config;
use tokio_postgres::config::{Host, SslMode};

use super::remote::{Asked, is_this_machine};
use super::storage::Unavailable;
use connection::Connection;

pub use check::{Replication, Unsafe};
pub use leases::PostgresLeases;
pub use storage::PostgresStorage;

const TABLES: &str = "
CREATE TABLE IF NOT EXISTS aaep_log (
    shard text NOT NULL, place bigint NOT NULL CHECK (place > 0), entry bytea NOT NULL,
    PRIMARY KEY (shard, place));
CREATE TABLE IF NOT EXISTS aaep_lease (
    shard text PRIMARY KEY, node text NOT NULL, revision bigint NOT NULL, until timestamptz NOT NULL);
CREATE SEQUENCE IF NOT EXISTS aaep_revision;
CREATE TABLE IF NOT EXISTS aaep_fact (name text PRIMARY KEY, value text NOT NULL);
CREATE TABLE IF NOT EXISTS aaep_barrier (shard text PRIMARY KEY, passed bigint NOT NULL);";

/// Why a PostgreSQL server cannot be used.
#[derive(Debug)]
#[non_exhaustive]
pub enum PostgresRefused {
    /// The address cannot be read.
    Address(String),
    /// The server is on another machine and the connection would not be encrypted.
    NotEncrypted {
        /// Which.
        host: String,
    },
    /// It does not answer, or does not let this user in.
    Unavailable(Unavailable),
    /// It could lose what it has acknowledged. Each with what to change.
    Unsafe(Vec<Unsafe>),
    /// This machine has no usable list of certificates, or no thread can be made.
    Machine(String),
}

impl fmt::Display for PostgresRefused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Address(why) => write!(
                f,
                "The address of the PostgreSQL server cannot be read: {why}. Write it as postgres://user:password@host:5432/database."
            ),
            Self::NotEncrypted { host } => write!(
                f,
                "{host} is another machine, and sslmode=disable would send everything in the clear. Leave sslmode out, or set it to require."
            ),
            Self::Unavailable(why) => why.fmt(f),
            Self::Unsafe(found) => {
                f.write_str(
                    "This PostgreSQL server could lose what it has acknowledged. Nothing was started.",
                )?;
                found.iter().try_for_each(|one| write!(f, "\n  {one}"))
            }
            Self::Machine(why) => write!(f, "The connection cannot be prepared: {why}."),
        }
    }
}

impl std::error::Error for PostgresRefused {}

impl From<Unavailable> for PostgresRefused {
    fn from(why: Unavailable) -> Self {
        PostgresRefused::Unavailable(why)
    }
}

/// A PostgreSQL server that was checked. Clones are the same server; each connects by itself.
#[derive(Clone)]
pub struct PostgresStore {
    config: Config,
    tls: tls::Tls,
    limit: Duration,
    replication: Replication,
}

impl fmt::Debug for PostgresStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        f.debug_struct("PostgresStore")
            .field("replication", &self.replication)
            .finish_non_exhaustive()
    }
}

impl PostgresStore {
    /// How long an answer is waited for.
    pub const ANSWER_LIMIT: Duration = Duration::from_secs(5);

    /// How long a lease lasts.
    pub const LEASE: Duration = Duration::from_secs(2);

    /// Connects, checks what the server promises, and makes the tables if they are not there.
    ///
    /// The address is a `postgres://` URL. Servers on other machines are spoken to over TLS only, and
    /// their certificates are verified with the roots of this machine.
    pub fn open(address: &str) -> Result<Self, PostgresRefused> {
        Self::open_within(address, Self::ANSWER_LIMIT)
    }

    /// The same, with another limit for answers.
    pub fn open_within(address: &str, limit: Duration) -> Result<Self, PostgresRefused> {
        let mut config: Config =
            address.parse().map_err(|why| PostgresRefused::Address(format!("{why}")))?;
        encrypt(&mut config)?;
        config.connect_timeout(limit).application_name("aaep");
        let tls = tls::Tls::new().map_err(PostgresRefused::Machine)?;
        let mut store = Self { config, tls, limit, replication: Replication::Unknown };
        let mut connection = store.connection();
        store.replication = check::promises(&mut connection)?;
        make_tables(&mut connection)?;
        Ok(store)
    }

    /// What losing the server would lose.
    pub fn replication(&self) -> &Replication {
        &self.replication
    }

    /// The places of a shard, over a connection of their own.
    pub fn storage(&self, shard: &str) -> PostgresStorage {
        PostgresStorage::new(self.connection(), shard)
    }

    /// The leases, over a connection of their own.
    pub fn leases(&self) -> PostgresLeases {
        PostgresLeases::new(self.connection())
    }

    /// Something that is decided once for the whole cluster, such as its number of shards: the first
    /// value stands, and is what everybody is told.
    pub fn decide(&self, name: &str, value: &str) -> Result<String, Unavailable> {
        let mut connection = self.connection();
        let put = "INSERT INTO aaep_fact (name, value) VALUES ($1, $2) ON CONFLICT DO NOTHING";
        connection.query(put, &[(&name, connection::TEXT), (&value, connection::TEXT)]).known()?;
        let get = "SELECT value FROM aaep_fact WHERE name = $1";
        let rows = connection.query(get, &[(&name, connection::TEXT)]).known()?;
        let stands = rows.first().and_then(|row| row.try_get(0).ok());
        stands.ok_or_else(|| Unavailable::Away("what was decided is not there".into()))
    }

    fn connection(&self) -> Connection {
        Connection::new(self.config.clone(), self.tls.clone(), self.limit)
    }
}

/// Asks for TLS where a server is on another machine.
fn encrypt(config: &mut Config) -> Result<(), PostgresRefused> {
    let elsewhere = config.get_hosts().iter().find_map(|host| match host {
        Host::Tcp(name) if !is_this_machine(name) => Some(name.clone()),
        _ => None,
    });
    let Some(host) = elsewhere else { return Ok(()) };
    if config.get_ssl_mode() == SslMode::Disable {
        return Err(PostgresRefused::NotEncrypted { host });
    }
    config.ssl_mode(SslMode::Require);
    Ok(())
}

fn make_tables(connection: &mut Connection) -> Result<(), Unavailable> {
    // Two nodes that make them at once may get in each other's way; then they are there.
    let mut last = Unavailable::Away("the tables could not be made".into());
    for _ in 0..5 {
        match connection.batch(TABLES) {
            Asked::Answer(()) => return Ok(()),
            Asked::Refused(why) => last = why,
            Asked::Lost => {}
        }
    }
    Err(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_machines_are_spoken_to_over_tls_only() {
        let mut plain: Config = "postgres://a@db.example/x?sslmode=disable".parse().unwrap();
        let refused = encrypt(&mut plain).unwrap_err().to_string();
        assert!(refused.contains("db.example") && refused.contains("in the clear"), "{refused}");
        let mut silent: Config = "postgres://a@db.example/x".parse().unwrap();
        encrypt(&mut silent).unwrap();
        assert_eq!(silent.get_ssl_mode(), SslMode::Require);
        for here in ["postgres://a@localhost/x", "postgres://a@127.0.0.1/x", "postgres://a@[::1]/x"]
        {
            let mut here: Config = here.parse().unwrap();
            encrypt(&mut here).unwrap();
            assert_eq!(here.get_ssl_mode(), SslMode::Prefer);
        }
    }

    #[test]
    fn an_address_that_cannot_be_read_is_refused_with_how_to_write_it() {
        let refused = PostgresStore::open("postgres://a@host:port/x").unwrap_err();
        assert!(refused.to_string().contains("postgres://user:password@host"), "{refused}");
    }

    #[test]
    fn what_is_printed_for_debugging_holds_no_password() {
        let config: Config = "postgres://a:secret@localhost/x".parse().unwrap();
        let (tls, limit) = (tls::Tls::new().unwrap(), PostgresStore::ANSWER_LIMIT);
        let store = PostgresStore { config, tls, limit, replication: Replication::Unknown };
        assert!(!format!("{store:?}").contains("secret"));
    }
}
