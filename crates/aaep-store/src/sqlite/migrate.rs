//! Giving a journal a key that it was not written with: once, with the operator's word. Either all of
//! it is done or nothing.

use std::path::Path;

use aaep_engine::Record;
use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use super::gone::Gap;
use super::{CannotOpen, Damage, file, notes, open, schema};
use crate::Lock;
use crate::chain::{self, Anchor, ChainHash, ChainKey};

/// A journal that is to get a key: one from before journals had keys, or one whose key is lost.
#[derive(Debug)]
pub struct Migration {
    connection: Connection,
    store: String,
    version: u32,
    _lock: Lock,
}

impl Migration {
    /// Takes the journal at this path, which is there.
    pub fn open(path: &Path) -> Result<Self, CannotOpen> {
        if !path.exists() {
            return Err(CannotOpen::Missing);
        }
        let lock = open::lock(path)?;
        let connection = open::writing(path)?;
        let version = schema::version_of(&connection)?;
        if version == 0 {
            return Err(CannotOpen::Missing);
        }
        schema::check(&connection)?;
        open::make_durable(&connection)?;
        let store = file::store_of(&connection)?;
        Ok(Self { connection, store, version, _lock: lock })
    }

    /// The name of this store.
    pub fn store(&self) -> &str {
        &self.store
    }

    // enforces: I33
    /// Gives the journal this key. What is in it keeps an unkeyed chain, whose end the key seals: trust
    /// begins after it. Nothing is done to records that are not whole.
    pub fn apply(mut self, key: &ChainKey) -> Result<Anchor, CannotOpen> {
        let store = self.store.clone();
        let transaction =
            self.connection.transaction_with_behavior(TransactionBehavior::Exclusive)?;
        let anchor = if self.version < schema::KEYED {
            let anchor = end_of(&transaction, &store, None).map_err(damaged)?;
            schema::migrate(&transaction)?;
            seal_rows(&transaction, key)?;
            anchor
        } else {
            // Without the key neither its links nor the notes beside the records can be checked:
            // the links are rebuilt, and the notes are dropped.
            let anchor = end_of(&transaction, &store, Some(key)).map_err(damaged)?;
            transaction.execute_batch("DELETE FROM calls; DELETE FROM starts;")?;
            schema::migrate(&transaction)?;
            anchor
        };
        file::write_anchor(&transaction, &anchor, key, &store)?;
        transaction.commit()?;
        self.connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()))?;
        Ok(anchor)
    }
}

fn damaged(damage: Damage) -> CannotOpen {
    CannotOpen::Damaged { what: format!("record {}: {}", damage.number, damage.why) }
}

/// The last record and its unkeyed hash. Hashes are compared with those that are there; with a new key
/// they replace them, and what stands for erased records is sealed anew.
fn end_of(
    transaction: &Transaction<'_>,
    store: &str,
    key: Option<&ChainKey>,
) -> Result<Anchor, Damage> {
    let mut last = Anchor { number: 0, hash: chain::first(store) };
    let all = "SELECT number, at, bytes, hash, kind = 'gap' FROM records ORDER BY number";
    let mut statement = transaction.prepare(all)?;
    let mut reseal = transaction.prepare("UPDATE records SET bytes = ?2 WHERE number = ?1")?;
    let mut replace = transaction.prepare("UPDATE records SET hash = ?2 WHERE number = ?1")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let number = last.number + 1;
        let damage = |why: &str| Damage { number, why: why.into() };
        let (found, at): (i64, i64) = (row.get(0)?, row.get(1)?);
        let (bytes, hash): (Vec<u8>, ChainHash) = (row.get(2)?, row.get(3)?);
        if let (Some(key), true) = (key, row.get(4)?) {
            let row = (found.unsigned_abs(), at, &*bytes, hash);
            let gap = Gap::read(row, (number, &last.hash), None, store).map_err(damage)?;
            reseal.execute(params![found, gap.bytes(key, store, &last.hash)])?;
            last = Anchor { number: gap.last, hash };
            continue;
        }
        match Record::decode(&bytes) {
            Ok((inside, _, length))
                if u64::try_from(found) == Ok(number)
                    && inside == number
                    && length == bytes.len() => {}
            _ => return Err(damage("it is missing, or was changed")),
        }
        last = Anchor { number, hash: chain::unkeyed(&last.hash, at, &bytes) };
        if key.is_some() {
            replace.execute(params![found, last.hash])?;
        } else if last.hash != hash {
            return Err(damage("it does not follow from the record before it"));
        }
    }
    Ok(last)
}

/// Puts seals in the place of checksums, which have to be right.
fn seal_rows(transaction: &Transaction<'_>, key: &ChainKey) -> Result<(), CannotOpen> {
    let changed = |what: &str| CannotOpen::Damaged { what: what.into() };
    for (call, checksum) in notes::call_rows(transaction, "seal")? {
        if call.checksum() != checksum {
            return Err(changed("what was kept of a call was changed"));
        }
        let update = "UPDATE calls SET seal = ?4 WHERE agent = ?1 AND path = ?2 AND key = ?3";
        let values = params![call.agent, call.path, call.key, call.seal(key)];
        transaction.prepare_cached(update)?.execute(values)?;
    }
    for (number, start, checksum) in notes::start_rows(transaction, "seal", u32::MAX)? {
        if start.checksum() != checksum {
            return Err(changed("the note of a start was changed"));
        }
        let values = params![number as i64, start.seal(key, number)];
        transaction.execute("UPDATE starts SET seal = ?2 WHERE start = ?1", values)?;
    }
    Ok(())
}
