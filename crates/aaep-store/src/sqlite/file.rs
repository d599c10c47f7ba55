//! A journal's file before it has its key: locked, its layout known, nothing believed yet.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, OptionalExtension, params};

use super::{CannotOpen, Options, Sqlite, compact, notes, open, schema, set_room};
use crate::Lock;
use crate::chain::{self, Anchor, ChainHash, ChainKey};

/// A journal's file that this process holds. It becomes a journal with its key.
#[derive(Debug)]
pub struct JournalFile {
    connection: Connection,
    path: PathBuf,
    store: String,
    options: Options,
    lock: Lock,
}

impl JournalFile {
    /// Opens the file at this path, making it if it is not there. While this lives, no other hub can
    /// open it; everybody who may read the file can still look into it.
    pub fn open(path: &Path, options: Options) -> Result<Self, CannotOpen> {
        let lock = open::lock(path)?;
        compact::forget_unfinished(path);
        open::create(path)?;
        let mut connection = open::writing(path)?;
        // A file of another application is not touched.
        let version = schema::version_of(&connection)?;
        if version == 0 {
            connection.pragma_update(None, "page_size", options.page_bytes)?;
        } else if version < schema::KEYED {
            return Err(CannotOpen::Older { found: version, known: schema::VERSION });
        }
        if version > 0 {
            schema::check(&connection)?;
        }
        open::make_durable(&connection)?;
        schema::lay_out(&mut connection)?;
        schema::check(&connection)?;
        set_room(&connection, options.max_bytes)?;
        let store = store_of(&connection)?;
        Ok(Self { connection, path: path.to_owned(), store, options, lock })
    }

    /// The name of this store, and of every copy of it.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Whether nothing was ever kept in it: then any key will do.
    pub fn is_empty(&self) -> Result<bool, CannotOpen> {
        Ok(is_empty(&self.connection)?)
    }

    // enforces: I33
    /// The journal. A key that is not the one with which it was written is refused.
    pub fn with_key(self, key: ChainKey) -> Result<Sqlite, CannotOpen> {
        let Self { connection, path, store, options, lock } = self;
        let anchor = match anchor_of(&connection)? {
            Some((anchor, seal)) if anchor.seal(&key, &store) == seal => anchor,
            None if is_empty(&connection)? => {
                let anchor = Anchor { number: 0, hash: chain::first(&store) };
                write_anchor(&connection, &anchor, &key, &store)?;
                anchor
            }
            _ => return Err(CannotOpen::OtherKey),
        };
        let changed =
            |_| CannotOpen::Damaged { what: "the note of the last start was changed".into() };
        let start = notes::last_start(&connection, &key).map_err(changed)?;
        let start = start.map_or((0, false), |(number, start)| (number, start.jumped));
        // What a hub wrote that was killed may lie in the system's memory. This syncs it with itself:
        // what is read from now on is read for ever.
        connection.execute("UPDATE store SET opened = opened + 1", [])?;
        let (next, last) = match last_of(&connection)? {
            Some((number, hash)) => (number + 1, hash),
            None => (1, anchor.hash),
        };
        let mut journal = Sqlite {
            connection,
            path,
            store,
            key,
            anchor,
            next,
            last,
            start,
            options,
            log_pages: 0,
            failed: false,
            room: None,
            _lock: lock,
        };
        journal.carry_over().map_err(|fault| CannotOpen::System { what: fault.to_string() })?;
        Ok(journal)
    }
}

/// The name of the store. It names files outside, so it must be nothing but a name.
pub(super) fn store_of(connection: &Connection) -> Result<String, CannotOpen> {
    let store: String = connection.query_row("SELECT id FROM store", [], |row| row.get(0))?;
    let digit = |c: u8| c.is_ascii_digit() || (b'a'..=b'f').contains(&c);
    if store.len() == 32 && store.bytes().all(digit) {
        return Ok(store);
    }
    Err(CannotOpen::Damaged { what: "the name of the store was changed".into() })
}

/// Where trust begins, and its seal; `None` if it was never written.
pub(super) fn anchor_of(connection: &Connection) -> rusqlite::Result<Option<(Anchor, ChainHash)>> {
    let one = "SELECT anchor_number, anchor_hash, seal FROM store WHERE seal IS NOT NULL";
    let anchor = connection.query_row(one, [], |row| {
        let anchor = Anchor { number: row.get::<_, i64>(0)?.unsigned_abs(), hash: row.get(1)? };
        Ok((anchor, row.get(2)?))
    });
    anchor.optional()
}

pub(super) fn write_anchor(
    connection: &Connection,
    anchor: &Anchor,
    key: &ChainKey,
    store: &str,
) -> rusqlite::Result<()> {
    let number = i64::try_from(anchor.number).unwrap_or(i64::MAX);
    let update = "UPDATE store SET anchor_number = ?1, anchor_hash = ?2, seal = ?3";
    connection.execute(update, params![number, anchor.hash, anchor.seal(key, store)]).map(drop)
}

fn is_empty(connection: &Connection) -> rusqlite::Result<bool> {
    let any = "SELECT EXISTS (SELECT 1 FROM records) OR EXISTS (SELECT 1 FROM calls)
               OR EXISTS (SELECT 1 FROM starts)";
    connection.query_row(any, [], |row| row.get::<_, bool>(0)).map(|any| !any)
}

fn last_of(connection: &Connection) -> rusqlite::Result<Option<(u64, ChainHash)>> {
    let last = "SELECT number, hash FROM records ORDER BY number DESC LIMIT 1";
    let last = connection.query_row(last, [], |row| Ok((row.get::<_, i64>(0)?, row.get(1)?)));
    // A number below 1 leads to a gap that is noticed when records are read.
    Ok(last.optional()?.map(|(number, hash)| (number.unsigned_abs(), hash)))
}
