//! Looking into a journal without writing it, also while a hub works with it.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, backup::Backup};

use super::open::{self, CannotOpen};
use super::{Damage, Start, file, notes, schema};
use crate::chain::{Anchor, ChainHash, ChainKey};
use crate::head::Noted;

/// Pages that a copy takes at once, and how long it lets others go first.
const STEP: (i32, Duration) = (4096, Duration::ZERO);

/// A journal that is only read.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    pub(crate) store: String,
    /// Where trust begins, and its seal; `None` if the journal has no key yet.
    pub(crate) anchor: Option<(Anchor, ChainHash)>,
    version: u32,
    path: PathBuf,
}

impl Reader {
    /// Opens the journal at this path. What is read is what was there at one moment.
    pub fn open(path: &Path) -> Result<Self, CannotOpen> {
        let connection = open::reading(path)?;
        let version = schema::version_of(&connection)?;
        let anchor = match version {
            0 => return Err(CannotOpen::Missing),
            found if found > schema::VERSION => {
                return Err(CannotOpen::Newer { found, known: schema::VERSION });
            }
            found if found < schema::KEYED => None,
            _ => file::anchor_of(&connection)?,
        };
        let store = file::store_of(&connection)?;
        Ok(Self { connection, store, anchor, version, path: path.to_owned() })
    }

    /// The name of this store, and of every copy of it.
    pub fn store(&self) -> &str {
        &self.store
    }

    /// Whether it was written before journals had keys.
    pub fn is_unkeyed(&self) -> bool {
        self.version < schema::KEYED
    }

    // enforces: I33
    /// Looks at what is kept beside the records. Gives the starts, the last first.
    pub(crate) fn check_rows(
        &self,
        key: &ChainKey,
        noted: Option<Noted>,
    ) -> Result<Vec<(u64, Start)>, Damage> {
        if let Err(CannotOpen::Damaged { what: why }) = schema::check(&self.connection) {
            return Err(Damage { number: 0, why });
        }
        notes::check_rows(&self.connection, key, noted)
    }

    /// The last record from before the journal had its key: trust begins after it. `None` if it has no
    /// key yet.
    pub fn keyed_after(&self) -> Option<u64> {
        self.anchor.map(|(anchor, _)| anchor.number)
    }

    /// The sessions of which calls are kept.
    pub(crate) fn sessions_with_calls(&self) -> rusqlite::Result<BTreeSet<String>> {
        let mut statement = self.connection.prepare("SELECT DISTINCT session FROM calls")?;
        statement.query_map([], |row| row.get(0))?.collect()
    }

    /// Copies the journal, as it is at this moment, into a new file: one file, complete, durable.
    pub fn backup(&self, to: &Path) -> Result<(), CannotOpen> {
        if to.symlink_metadata().is_ok() {
            let what = format!("{} is there already", to.display());
            return Err(CannotOpen::System { what });
        }
        let unfinished = open::beside(to, ".unfinished");
        let _ = fs::remove_file(&unfinished);
        let done = self.copy_to(&unfinished).and_then(|()| {
            fs::rename(&unfinished, to)?;
            Ok(open::sync_directory_of(to)?)
        });
        if done.is_err() {
            let _ = fs::remove_file(&unfinished);
        }
        done
    }

    fn copy_to(&self, path: &Path) -> Result<(), CannotOpen> {
        open::create(path)?;
        let mut copy = open::writing(path)?;
        // A reader of its own: a copy is of one moment, however long it takes.
        let from = open::reading(&self.path)?;
        from.execute_batch("BEGIN; SELECT count(*) FROM sqlite_schema")?;
        Backup::new(&from, &mut copy)?.run_to_completion(STEP.0, STEP.1, None)?;
        // One file, without a log beside it.
        let mode: String =
            copy.pragma_update_and_check(None, "journal_mode", "delete", |row| row.get(0))?;
        drop(copy);
        debug_assert_eq!(mode, "delete");
        fs::File::open(path)?.sync_all()?;
        Ok(())
    }
}
