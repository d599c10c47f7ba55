//! The data directory: private, and used by one hub at a time.

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use aaep_store::Lock;

use crate::{Fault, files};

/// The file whose lock says that a hub is at work, and whose text says which.
const LOCK_NAME: &str = "hub.lock";

/// The longest process number, in bytes.
const PROCESS_BYTES: u64 = 20;

/// The directory where a hub keeps its journal and its keys.
///
/// While this lives, no other hub can open it; the lock goes with the process, however it ends.
#[derive(Debug)]
pub struct DataDirectory {
    path: PathBuf,
    _lock: Lock,
}

impl DataDirectory {
    /// Opens a directory, making it if it is not there.
    pub fn open(path: &Path) -> Result<Self, Fault> {
        files::create_private_directory(path)?;
        check_private(path)?;
        let lock = lock(path)?;
        Ok(Self { path: path.to_owned(), _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

#[cfg(unix)]
fn check_private(path: &Path) -> Result<(), Fault> {
    use std::os::unix::fs::MetadataExt;

    let metadata = fs::metadata(path).map_err(|error| files::cannot_read(path, &error))?;
    if metadata.uid() != rustix::process::geteuid().as_raw() {
        let remedy =
            "Choose another directory with --data, or give this one to the user that runs the hub.";
        return Err(Fault::file(path, "It belongs to another user.", remedy));
    }
    let mode = metadata.mode() & 0o777;
    if mode & 0o077 != 0 {
        let what = format!("Others on this machine can look into it (mode {mode:o}).");
        let remedy = format!("Run: chmod 700 {}", path.display());
        return Err(Fault::file(path, what, remedy));
    }
    Ok(())
}

#[cfg(not(unix))]
fn check_private(path: &Path) -> Result<(), Fault> {
    fs::metadata(path).map(drop).map_err(|error| files::cannot_read(path, &error))
}

fn lock(directory: &Path) -> Result<Lock, Fault> {
    let path = directory.join(LOCK_NAME);
    let file =
        files::open_private(&path, false).map_err(|error| files::cannot_write(&path, &error))?;
    let mut lock = match Lock::take(file) {
        Ok(lock) => lock,
        Err((file, TryLockError::WouldBlock)) => {
            return Err(Fault::InUse { path: directory.to_owned(), process: holder(file) });
        }
        Err((_, TryLockError::Error(error))) => {
            let what = format!("It cannot be locked: {error}.");
            let remedy = "Choose a directory on a local disk with --data.";
            return Err(Fault::file(&path, what, remedy));
        }
    };
    // Only for people: the lock itself is what counts, also after a process that left its number.
    let file = lock.file();
    let noted = file.set_len(0).and_then(|()| write!(file, "{}", std::process::id()));
    noted.map_err(|error| files::cannot_write(&path, &error))?;
    Ok(lock)
}

/// The process of the hub that is at work in this directory, if there is one.
pub(crate) fn hub_at_work(directory: &Path) -> Option<u32> {
    let file = File::open(directory.join(LOCK_NAME)).ok()?;
    match Lock::take(file) {
        Err((file, TryLockError::WouldBlock)) => holder(file),
        _ => None,
    }
}

fn holder(file: File) -> Option<u32> {
    let mut text = String::new();
    let read: io::Result<usize> = file.take(PROCESS_BYTES).read_to_string(&mut text);
    read.ok().and_then(|_| text.trim().parse().ok())
}
