//! Looking into a journal without writing it, also while a hub works with it.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, backup::Backup};

use super::open::{self, CannotOpen};
use super::schema;

/// Pages that a copy takes at once, and how long it lets others go first.
const STEP: (i32, Duration) = (4096, Duration::ZERO);

/// A journal that is only read.
#[derive(Debug)]
pub struct Reader {
    pub(crate) connection: Connection,
    pub(crate) store: String,
    path: PathBuf,
}

impl Reader {
    /// Opens the journal at this path. What is read is what was there at one moment.
    pub fn open(path: &Path) -> Result<Self, CannotOpen> {
        let connection = open::reading(path)?;
        match schema::version_of(&connection)? {
            0 => return Err(CannotOpen::Missing),
            found if found > schema::VERSION => {
                return Err(CannotOpen::Newer { found, known: schema::VERSION });
            }
            _ => {}
        }
        let store = connection.query_row("SELECT id FROM store", [], |row| row.get(0))?;
        Ok(Self { connection, store, path: path.to_owned() })
    }

    /// The name of this store, and of every copy of it.
    pub fn store(&self) -> &str {
        &self.store
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
