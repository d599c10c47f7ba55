//! What a server promises, asked before anything is entrusted to it.

use std::fmt;

use super::PostgresRefused;
use super::connection::{Connection, TEXT};
use crate::log::storage::Unavailable;

/// What losing the server would lose.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Replication {
    /// Nothing that was acknowledged: a standby has it too.
    Synchronous {
        /// What the server says of its standbys, as in `synchronous_standby_names`.
        standbys: String,
    },
    /// Without standbys, everything; with standbys, what had not reached them.
    Asynchronous,
    /// The server does not know the settings of PostgreSQL; its own documentation says.
    Unknown,
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Synchronous { standbys } => {
                write!(f, "Replication is synchronous ({standbys}): losing the server loses nothing.")
            }
            Self::Asynchronous => f.write_str(
                "Replication is not synchronous: losing the server's disk loses answers that were given. Set synchronous_standby_names to change that.",
            ),
            Self::Unknown => f.write_str("The server does not say whether it replicates."),
        }
    }
}

/// A setting with which acknowledged entries could be lost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsafe {
    /// Which setting.
    pub setting: &'static str,
    /// What it is set to.
    pub value: String,
    /// What to do.
    pub change: &'static str,
}

impl fmt::Display for Unsafe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} is {}. {}", self.setting, self.value, self.change)
    }
}

/// Asks for the settings that matter; says what is wrong, or how it replicates.
pub(super) fn promises(connection: &mut Connection) -> Result<Replication, PostgresRefused> {
    let mut setting = |name: &str| -> Result<Option<String>, Unavailable> {
        let ask = "SELECT current_setting($1, true)";
        let rows = connection.query(ask, &[(&name, TEXT)]).known()?;
        Ok(rows.first().and_then(|row| row.try_get::<_, Option<String>>(0).ok().flatten()))
    };
    let mut found = Vec::new();
    let mut must = |setting, value: &Option<String>, bad: &[&str], change| {
        if let Some(value) = value.as_deref().filter(|value| bad.contains(value)) {
            found.push(Unsafe { setting, value: value.to_owned(), change });
        }
    };
    let fsync = setting("fsync")?;
    must("fsync", &fsync, &["off"], "Set fsync = on in postgresql.conf and restart the server.");
    let pages = setting("full_page_writes")?;
    must(
        "full_page_writes",
        &pages,
        &["off"],
        "Set full_page_writes = on in postgresql.conf and reload it.",
    );
    let standbys = setting("synchronous_standby_names")?;
    let replicated = standbys.as_deref().is_some_and(|names| !names.is_empty());
    let commit = setting("synchronous_commit")?;
    must(
        "synchronous_commit",
        &commit,
        if replicated { &["off", "local", "remote_write"] } else { &["off"] },
        "Set synchronous_commit = on for the server, the database and this user.",
    );
    let read_only = setting("transaction_read_only")?;
    must(
        "transaction_read_only",
        &read_only,
        &["on"],
        "This is a standby or a server that takes no writes; give the address of the primary.",
    );
    if !found.is_empty() {
        return Err(PostgresRefused::Unsafe(found));
    }
    Ok(match (standbys, fsync) {
        (Some(standbys), _) if !standbys.is_empty() => Replication::Synchronous { standbys },
        (_, Some(_)) => Replication::Asynchronous,
        (_, None) => Replication::Unknown,
    })
}
