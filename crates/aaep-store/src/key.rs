//! Files of the state directory that belong to a journal: its key, and which journal a place holds.
#![allow(clippy::disallowed_methods)] // these are files

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use crate::chain::{ChainKey, hex};
use crate::sqlite::{CannotOpen, private, sync_directory_of};

impl ChainKey {
    /// Where the key of a store lies, beside the note of how far the store is.
    pub fn path_of(directory: &Path, store: &str) -> PathBuf {
        directory.join(format!("{store}.key"))
    }

    /// Reads a key; `None` if it is not there. A key that others can read is refused.
    pub fn read(path: &Path) -> Result<Option<Self>, CannotOpen> {
        let bad = |what: String| CannotOpen::BadKey { what: format!("{}: {what}", path.display()) };
        let file = match File::open(path) {
            Ok(file) => file,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(bad(format!("it cannot be read: {error}"))),
        };
        // The open file is looked at, not the path: what was checked is what is read.
        let metadata = file.metadata()?;
        if !metadata.is_file() {
            return Err(bad("it is not a file".into()));
        }
        #[cfg(unix)]
        if std::os::unix::fs::MetadataExt::mode(&metadata) & 0o077 != 0 {
            return Err(bad("others on this machine may read or write it; chmod 600 it".into()));
        }
        let mut bytes = Vec::new();
        file.take(Self::BYTES as u64 + 1).read_to_end(&mut bytes)?;
        let bytes = <[u8; Self::BYTES]>::try_from(bytes)
            .map_err(|_| bad(format!("it does not hold {} bytes", Self::BYTES)))?;
        Ok(Some(Self::new(&bytes)))
    }

    /// Keeps a new key for a store, durably. One that is there is never written over.
    pub fn create(
        directory: &Path,
        store: &str,
        bytes: &[u8; Self::BYTES],
    ) -> Result<Self, CannotOpen> {
        let path = Self::path_of(directory, store);
        if path.symlink_metadata().is_ok() {
            let what = format!("{} is there already", path.display());
            return Err(CannotOpen::BadKey { what });
        }
        write_whole(&path, bytes)?;
        Ok(Self::new(bytes))
    }
}

/// Which journal lies at a path, as noted when a hub worked with it last. So it is noticed when another
/// journal is put in its place, with a name of its own.
#[derive(Debug)]
pub struct JournalMarker {
    file: PathBuf,
}

impl JournalMarker {
    /// The note about the journal at this path.
    pub fn of(directory: &Path, journal: &Path) -> io::Result<Self> {
        let parent = journal.parent().filter(|parent| !parent.as_os_str().is_empty());
        let parent = fs::canonicalize(parent.unwrap_or(Path::new(".")))?;
        let whole = parent.join(journal.file_name().unwrap_or_default());
        let name = Sha256::digest(whole.as_os_str().as_encoded_bytes());
        Ok(Self { file: directory.join(format!("{}.place", hex(&name[..16]))) })
    }

    /// Where the note lies.
    pub fn path(&self) -> &Path {
        &self.file
    }

    /// The name of the store that was there.
    pub fn look(&self) -> Option<String> {
        let text = fs::read_to_string(&self.file).ok()?;
        text.strip_suffix('\n').map(str::to_owned)
    }

    /// Notes that this store is there now.
    pub fn note(&self, store: &str) -> io::Result<()> {
        if self.look().as_deref() == Some(store) {
            return Ok(());
        }
        write_whole(&self.file, format!("{store}\n").as_bytes())
    }
}

/// Writes a file for the owner alone: complete or not at all, and durably.
fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let unfinished = PathBuf::from(name);
    let _ = fs::remove_file(&unfinished);
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    private(&mut options);
    let mut file = options.open(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&unfinished, path)?;
    sync_directory_of(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STORE: &str = "0123456789abcdef0123456789abcdef";

    // covers: I33
    #[test]
    fn a_key_is_made_once_for_its_owner_alone_and_never_replaced() {
        let place = tempfile::tempdir().unwrap();
        let path = ChainKey::path_of(place.path(), STORE);
        assert!(ChainKey::read(&path).unwrap().is_none());
        let key = ChainKey::create(place.path(), STORE, &[7; 32]).unwrap();
        let again = ChainKey::read(&path).unwrap().unwrap();
        assert_eq!(key.link(&[0; 32], 1, b"x"), again.link(&[0; 32], 1, b"x"));
        assert!(ChainKey::create(place.path(), STORE, &[8; 32]).is_err());
        assert_eq!(fs::read(&path).unwrap(), [7; 32]);
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
            assert!(ChainKey::read(&path).unwrap_err().to_string().contains("chmod 600"));
            fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        }
        for wrong in [0, 31, 33] {
            fs::write(&path, vec![1; wrong]).unwrap();
            assert!(ChainKey::read(&path).unwrap_err().to_string().contains("32 bytes"));
        }
    }

    #[test]
    fn which_journal_a_place_holds_is_noted() {
        let state = tempfile::tempdir().unwrap();
        let data = tempfile::tempdir().unwrap();
        let place = JournalMarker::of(state.path(), &data.path().join("journal.db")).unwrap();
        assert_eq!(place.look(), None);
        place.note(STORE).unwrap();
        assert_eq!(place.look().as_deref(), Some(STORE));
        let other = JournalMarker::of(state.path(), &data.path().join("other.db")).unwrap();
        assert_eq!(other.look(), None);
    }
}
