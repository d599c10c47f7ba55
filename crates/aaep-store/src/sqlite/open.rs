//! Opening the file: ownership, exclusive access and synchronisation.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use crate::Lock;

/// How long another program that writes is waited for.
pub(super) const BUSY: Duration = Duration::from_secs(2);

/// Why a journal cannot be opened. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum CannotOpen {
    /// Another hub has it.
    InUse,
    /// A newer program wrote it.
    Newer {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// It is from before journals had keys; the operator has to say that it is to be believed.
    Older {
        /// Its version.
        found: u32,
        /// Ours.
        known: u32,
    },
    /// Its key is not there.
    NoKey {
        /// Where it should be.
        path: PathBuf,
    },
    /// Its key cannot be used.
    BadKey {
        /// What is wrong with it.
        what: String,
    },
    /// It was written with another key.
    OtherKey,
    /// It is another program's.
    NotOurs,
    /// It is not there.
    Missing,
    /// It was damaged.
    Damaged {
        /// What was found.
        what: String,
    },
    /// The operating system did not let us.
    System {
        /// What it said.
        what: String,
    },
}

impl CannotOpen {
    /// What happened, in a sentence.
    pub fn what(&self) -> String {
        match self {
            Self::InUse => "Another hub works with this journal.".into(),
            Self::Newer { found, known } => format!(
                "This journal was written by a newer version (its layout is {found}, this program knows {known})."
            ),
            Self::Older { found, known } => format!(
                "This journal was written before journals had keys (its layout is {found}, this program writes {known})."
            ),
            Self::NoKey { path } => format!(
                "This journal was written with a key, and the key is not there: {}. Without it nobody can tell its records from forged ones.",
                path.display()
            ),
            Self::BadKey { what } => format!("The key of this journal cannot be used: {what}."),
            Self::OtherKey => "This journal was written with another key, or somebody changed where its chain begins.".into(),
            Self::NotOurs => "This is a file of another program.".into(),
            Self::Missing => "There is no journal here.".into(),
            Self::Damaged { what } => {
                format!("The journal is damaged: {what}. Nothing was changed.")
            }
            Self::System { what } => format!("The journal cannot be opened: {what}."),
        }
    }

    /// What to do, in a sentence.
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::InUse => "Stop the other hub, or choose another directory with --data.",
            Self::Newer { .. } => "Use the newer version, or choose another directory with --data.",
            Self::Older { .. } => {
                "Run `aaep hub migrate`: it says what it finds, and changes nothing without your word."
            }
            Self::NoKey { .. } => {
                "Put the state directory back from a copy. If the key is lost, `aaep hub migrate` gives the journal a new one with your word; or move journal.db away to begin with an empty one: then agents have to ask again."
            }
            Self::BadKey { .. } => "Put the key back from a copy of the state directory.",
            Self::OtherKey => {
                "Put the journal and the key that belong together in place, from copies. Or move journal.db away to begin with an empty one: then agents have to ask again."
            }
            Self::NotOurs => "Choose another directory with --data.",
            Self::Missing => "Name the hub's directory with --data.",
            Self::Damaged { .. } => {
                "Put a backup in its place, or move it away to start with an empty one: then agents have to ask again."
            }
            Self::System { .. } => "Check the path, who may write there, and the disk.",
        }
    }
}

impl fmt::Display for CannotOpen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.what(), self.remedy())
    }
}

impl std::error::Error for CannotOpen {}

impl From<rusqlite::Error> for CannotOpen {
    fn from(error: rusqlite::Error) -> Self {
        let what = error.to_string();
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged { what },
            // Tables or columns that should be there are not, or hold something else.
            None | Some(ErrorCode::Unknown | ErrorCode::TypeMismatch) => Self::Damaged { what },
            _ => Self::System { what },
        }
    }
}

impl From<(File, TryLockError)> for CannotOpen {
    fn from((_, error): (File, TryLockError)) -> Self {
        match error {
            TryLockError::WouldBlock => Self::InUse,
            TryLockError::Error(error) => error.into(),
        }
    }
}

impl From<io::Error> for CannotOpen {
    fn from(error: io::Error) -> Self {
        Self::System { what: error.to_string() }
    }
}

/// A file beside the journal, with this at the end of its name.
pub(super) fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

// enforces: C13, I2
/// Holds the journal against other hubs, until this is dropped or the process ends.
///
/// The lock is on a file of its own: SQLite has locks on the journal that the system would take away
/// from it if we opened and closed the journal beside it. And it is ours alone, so that people can
/// still read the journal while the hub runs.
pub(super) fn lock(path: &Path) -> Result<Lock, CannotOpen> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true);
    private(&mut options);
    let file = options.open(beside(path, "-lock"))?;
    Ok(Lock::take(file)?)
}

pub(crate) fn private(options: &mut OpenOptions) {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    #[cfg(not(unix))]
    let _ = options;
}

/// Makes the names in a file's directory durable.
pub(crate) fn sync_directory_of(path: &Path) -> io::Result<()> {
    if cfg!(unix) {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        File::open(parent.unwrap_or(Path::new(".")))?.sync_all()?;
    }
    Ok(())
}

/// Makes an empty file for the owner alone, unless one is there: SQLite would let others read it.
pub(super) fn create(path: &Path) -> Result<(), CannotOpen> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options);
    match options.open(path) {
        Ok(file) => file.sync_all().and_then(|()| sync_directory_of(path)).map_err(Into::into),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error.into()),
    }
}

/// A connection that writes: nothing counts before it is on the disk.
pub(super) fn writing(path: &Path) -> Result<Connection, CannotOpen> {
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    common(&connection)?;
    Ok(connection)
}

/// A connection that only looks, also while a hub runs.
pub(super) fn reading(path: &Path) -> Result<Connection, CannotOpen> {
    match fs::metadata(path) {
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Err(CannotOpen::Missing),
        Err(error) => return Err(error.into()),
    }
    let connection = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )?;
    common(&connection)?;
    Ok(connection)
}

fn common(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(BUSY)?;
    // Nothing stored in an untrusted file is executed, and damage is noticed early.
    connection.pragma_update(None, "trusted_schema", false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_TRIGGER, false)?;
    connection.pragma_update(None, "cell_size_check", true)?;
    // Reading through memory maps would turn a broken disk into a signal.
    connection.pragma_update(None, "mmap_size", 0)
}

// enforces: I10
/// Every commit is on the disk when it returns.
pub(super) fn make_durable(connection: &Connection) -> Result<(), CannotOpen> {
    let mode: String =
        connection.pragma_update_and_check(None, "journal_mode", "wal", |row| row.get(0))?;
    if mode != "wal" {
        let what = format!("its disk allows no write-ahead log (SQLite says {mode})");
        return Err(CannotOpen::System { what });
    }
    connection.pragma_update(None, "synchronous", "FULL")?;
    // On macOS a sync reaches the disk only when asked like this; elsewhere it changes nothing.
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    // The log is carried over after those who wait have been told.
    connection.pragma_update(None, "wal_autocheckpoint", 0)?;
    connection.pragma_update(None, "journal_size_limit", LOG_BYTES)?;
    Ok(())
}

/// What the write-ahead log is cut down to once it was carried over.
const LOG_BYTES: i64 = 64 * 1024 * 1024;
