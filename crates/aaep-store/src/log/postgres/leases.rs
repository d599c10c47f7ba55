//! Leases in PostgreSQL, on the server's clock.

use tokio_postgres::Row;

use super::connection::{Connection, NUMBER, TEXT};
use crate::log::leases::{Lease, LeaseRefused, Leases};
use crate::log::storage::Unavailable;

const TAKE: &str = "\
INSERT INTO aaep_lease AS held (shard, node, revision, until)
VALUES ($1, $2, nextval('aaep_revision'), clock_timestamp() + interval '2 seconds')
ON CONFLICT (shard) DO UPDATE
SET node = excluded.node, revision = excluded.revision, until = excluded.until
WHERE held.node = excluded.node OR held.until <= clock_timestamp()
RETURNING revision, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

const RENEW: &str = "\
UPDATE aaep_lease
SET revision = nextval('aaep_revision'), until = clock_timestamp() + interval '2 seconds'
WHERE shard = $1 AND revision = $2 AND until > clock_timestamp()
RETURNING revision, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";

const HOLDER: &str = "SELECT node FROM aaep_lease WHERE shard = $1";

const IN_FORCE: &str = "SELECT node FROM aaep_lease WHERE shard = $1 AND until > clock_timestamp()";

const GIVE_BACK: &str = "DELETE FROM aaep_lease WHERE shard = $1 AND revision = $2";

const ALL: &str =
    "SELECT shard, node FROM aaep_lease WHERE until > clock_timestamp() ORDER BY shard";

/// The leases of a cluster. See [`PostgresStore`](super::PostgresStore).
#[derive(Debug)]
pub struct PostgresLeases(Connection);

impl PostgresLeases {
    pub(super) fn new(connection: Connection) -> Self {
        Self(connection)
    }

    /// Who holds which shard right now. A hint, for routing.
    pub fn holders(&mut self) -> Result<Vec<(String, String)>, Unavailable> {
        let rows = self.0.query(ALL, &[]).known()?;
        Ok(rows
            .iter()
            .filter_map(|row| Some((row.try_get(0).ok()?, row.try_get(1).ok()?)))
            .collect())
    }
}

fn lease(shard: &str, node: &str, row: &Row) -> Option<Lease> {
    let revision = u64::try_from(row.try_get::<_, i64>(0).ok()?).ok()?;
    let store_time = row.try_get(1).ok()?;
    Some(Lease { shard: shard.to_owned(), node: node.to_owned(), revision, store_time })
}

fn number(revision: u64) -> i64 {
    i64::try_from(revision).unwrap_or(-1)
}

impl Leases for PostgresLeases {
    fn take(&mut self, shard: &str, node: &str) -> Result<Lease, LeaseRefused> {
        let rows = self.0.query(TAKE, &[(&shard, TEXT), (&node, TEXT)]).known()?;
        if let Some(lease) = rows.first().and_then(|row| lease(shard, node, row)) {
            return Ok(lease);
        }
        let rows = self.0.query(HOLDER, &[(&shard, TEXT)]).known()?;
        match rows.first().and_then(|row| row.try_get(0).ok()) {
            Some(by) => Err(LeaseRefused::Held { by }),
            // It was given back in between.
            None => Err(LeaseRefused::Lost),
        }
    }

    fn renew(&mut self, held: &Lease) -> Result<Lease, LeaseRefused> {
        let with: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
            [(&held.shard, TEXT), (&number(held.revision), NUMBER)];
        let rows = self.0.query(RENEW, &with).known()?;
        rows.first().and_then(|row| lease(&held.shard, &held.node, row)).ok_or(LeaseRefused::Lost)
    }

    fn holder(&mut self, shard: &str) -> Result<Option<String>, Unavailable> {
        let rows = self.0.query(IN_FORCE, &[(&shard, TEXT)]).known()?;
        Ok(rows.first().and_then(|row| row.try_get(0).ok()))
    }

    fn give_back(&mut self, held: &Lease) -> Result<(), LeaseRefused> {
        let with: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
            [(&held.shard, TEXT), (&number(held.revision), NUMBER)];
        self.0.query(GIVE_BACK, &with).known()?;
        Ok(())
    }
}
