//! The places of a shard in PostgreSQL.

use super::connection::{BYTES, Connection, NUMBER, TEXT};
use crate::log::remote::Asked;
use crate::log::storage::{LogStorage, Put, Unavailable};

/// So many bytes are read at once, and one entry more.
const READ_BYTES: i64 = 8 * 1024 * 1024;

// The primary key lets one of any two through, in every isolation level; entries are never taken
// away, so that the place before stays taken.
const PUT: &str = "\
INSERT INTO aaep_log (shard, place, entry) SELECT $1, $2, $3
WHERE $2 = 1 OR EXISTS (SELECT 1 FROM aaep_log WHERE shard = $1 AND place = $2 - 1)
ON CONFLICT DO NOTHING RETURNING 1";

const FIND: &str = "SELECT entry = $3 FROM aaep_log WHERE shard = $1 AND place = $2";

// A commit behind an entry that is there already: once it is acknowledged, so is the entry.
const BARRIER: &str = "\
INSERT INTO aaep_barrier (shard, passed) VALUES ($1, 1)
ON CONFLICT (shard) DO UPDATE SET passed = aaep_barrier.passed + 1";

const GET: &str = "\
SELECT place, entry FROM (
    SELECT place, entry, sum(length(entry)) OVER (ORDER BY place) AS total FROM (
        SELECT place, entry FROM aaep_log WHERE shard = $1 AND place >= $2
        ORDER BY place LIMIT $3) AS found) AS counted
WHERE place = $2 OR total <= $4 ORDER BY place";

const HEAD: &str = "SELECT coalesce(max(place), 0) FROM aaep_log WHERE shard = $1";

/// The places of one shard. See [`PostgresStore`](super::PostgresStore).
#[derive(Debug)]
pub struct PostgresStorage {
    connection: Connection,
    shard: String,
}

impl PostgresStorage {
    pub(super) fn new(connection: Connection, shard: &str) -> Self {
        Self { connection, shard: shard.to_owned() }
    }

    // enforces: I33
    /// What stands at a place that could not be taken.
    fn found(&mut self, place: i64, bytes: &[u8]) -> Put {
        let with: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 3] =
            [(&self.shard, TEXT), (&place, NUMBER), (&bytes, BYTES)];
        match self.connection.query(FIND, &with) {
            Asked::Answer(rows) => match rows.first().map(|row| row.try_get::<_, bool>(0)) {
                Some(Ok(true)) => self.behind(),
                Some(Ok(false)) | None => Put::Taken,
                Some(Err(_)) => Put::InDoubt,
            },
            // The put was refused; but it may be one that was offered before.
            Asked::Refused(_) | Asked::Lost => Put::InDoubt,
        }
    }

    fn behind(&mut self) -> Put {
        match self.connection.query(BARRIER, &[(&self.shard, TEXT)]) {
            Asked::Answer(_) if !self.connection.warned() => Put::Durable,
            _ => Put::InDoubt,
        }
    }
}

fn number(place: u64) -> Result<i64, Unavailable> {
    i64::try_from(place).map_err(|_| Unavailable::Misuse("places end at 2^63"))
}

impl LogStorage for PostgresStorage {
    fn put(&mut self, place: u64, bytes: &[u8]) -> Put {
        let place = match number(place) {
            Ok(place) => place,
            Err(why) => return Put::Refused(why),
        };
        match self.connection.query(PUT, &[(&self.shard, TEXT), (&place, NUMBER), (&bytes, BYTES)])
        {
            // A warning is how an interrupted wait for a standby is told.
            Asked::Answer(rows) if !rows.is_empty() && self.connection.warned() => Put::InDoubt,
            Asked::Answer(rows) if !rows.is_empty() => Put::Durable,
            Asked::Answer(_) => self.found(place, bytes),
            Asked::Refused(why) => Put::Refused(why),
            Asked::Lost => Put::InDoubt,
        }
    }

    fn get(&mut self, from: u64, at_most: usize) -> Result<Vec<Vec<u8>>, Unavailable> {
        let (first, at_most) = (number(from)?, i64::try_from(at_most).unwrap_or(i64::MAX));
        let with: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 4] =
            [(&self.shard, TEXT), (&first, NUMBER), (&at_most, NUMBER), (&READ_BYTES, NUMBER)];
        let rows = self.connection.query(GET, &with).known()?;
        let mut entries = Vec::with_capacity(rows.len());
        for (expected, row) in (first..).zip(&rows) {
            let garbled = |_| Unavailable::Away("the table aaep_log is not as it was made".into());
            // A hole ends what is given.
            if row.try_get::<_, i64>(0).map_err(garbled)? != expected {
                break;
            }
            entries.push(row.try_get(1).map_err(garbled)?);
        }
        Ok(entries)
    }

    fn head(&mut self) -> Result<u64, Unavailable> {
        let rows = self.connection.query(HEAD, &[(&self.shard, TEXT)]).known()?;
        let head = rows.first().and_then(|row| row.try_get::<_, i64>(0).ok());
        let head = head.and_then(|head| u64::try_from(head).ok());
        head.ok_or_else(|| Unavailable::Away("the table aaep_log is not as it was made".into()))
    }
}
