//! Where the socket of an agent is (W10), and whether the place is ours alone.

use std::ffi::OsStr;
use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::{DirBuilderExt, FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

/// Bytes in the path of a socket: no system allows many more.
const MAX_PATH: usize = 103;

/// Bytes of a name for which there is always room; in a longer directory the system refuses.
const MIN_NAME: usize = 24;

/// Why a place cannot be used for a socket.
#[derive(Debug)]
#[non_exhaustive]
pub enum PlaceError {
    /// Somebody listens there.
    Taken(PathBuf),
    /// Something is there that is not ours, or not ours alone.
    NotOurs {
        /// What.
        path: PathBuf,
        /// What is wrong with it.
        why: &'static str,
    },
    /// The system refuses.
    Unusable {
        /// What.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
}

impl fmt::Display for PlaceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Taken(path) => write!(
                f,
                "another hub listens at {}. Stop it, or give this one another agent id.",
                path.display()
            ),
            Self::NotOurs { path, why } => write!(
                f,
                "{} cannot be used: {why}. Nothing was changed. Remove it, or set \
                 XDG_RUNTIME_DIR to a directory of your own with mode 0700.",
                path.display()
            ),
            Self::Unusable { path, error } => {
                write!(f, "{} cannot be used: {error}", path.display())
            }
        }
    }
}

impl std::error::Error for PlaceError {}

/// The socket of this agent: its id, encoded, in [`directory`].
// enforces: W10
pub fn path_for(agent_id: &str) -> PathBuf {
    let directory = directory();
    let room = MAX_PATH.saturating_sub(directory.as_os_str().len() + "/.sock".len());
    directory.join(format!("{}.sock", encoded(agent_id, room.max(MIN_NAME))))
}

/// The directory of this user's sockets: `$XDG_RUNTIME_DIR/aaep`, on macOS
/// `~/Library/Application Support/AAEP`, otherwise `/tmp/aaep-<uid>`.
// enforces: W10
pub fn directory() -> PathBuf {
    let (runtime, home) = (std::env::var_os("XDG_RUNTIME_DIR"), std::env::var_os("HOME"));
    let uid = rustix::process::geteuid().as_raw();
    directory_of(runtime.as_deref(), home.as_deref(), uid, cfg!(target_os = "macos"))
}

fn directory_of(runtime: Option<&OsStr>, home: Option<&OsStr>, uid: u32, macos: bool) -> PathBuf {
    // A relative path would mean another place for everyone.
    let absolute = |path: &&OsStr| Path::new(path).is_absolute();
    if let Some(runtime) = runtime.filter(absolute) {
        return Path::new(runtime).join("aaep");
    }
    if let Some(home) = home.filter(absolute).filter(|_| macos) {
        return Path::new(home).join("Library/Application Support/AAEP");
    }
    PathBuf::from(format!("/tmp/aaep-{uid}"))
}

/// A file name for an agent id: letters, digits, `-` and `_` stay, a dot too unless it comes first;
/// everything else becomes `%` and two digits. A name for which there is no room keeps its
/// beginning and ends in a digest of the whole id.
fn encoded(agent_id: &str, room: usize) -> String {
    let mut name = String::new();
    for (position, byte) in agent_id.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' => name.push(byte.into()),
            b'.' if position > 0 => name.push('.'),
            other => name.push_str(&format!("%{other:02X}")),
        }
    }
    if name.len() > room {
        let digest = Sha256::digest(agent_id.as_bytes());
        name.truncate(room - 17);
        name.push('~');
        name.extend(digest.iter().take(8).map(|byte| format!("{byte:02x}")));
    }
    name
}

/// Makes the directory if it is missing; if not, it must be ours alone.
// enforces: W10
#[cfg_attr(not(feature = "server"), allow(dead_code))] // for those who listen
pub(super) fn claim_directory(path: &Path) -> Result<(), PlaceError> {
    let unusable = |error| PlaceError::Unusable { path: path.into(), error };
    match DirBuilder::new().mode(0o700).create(path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
        Err(error) => return Err(unusable(error)),
    }
    // Looked at after making: a faster attacker has not fooled us.
    let found = fs::symlink_metadata(path).map_err(unusable)?;
    let why = if found.file_type().is_symlink() {
        "it is a symbolic link"
    } else if !found.is_dir() {
        "it is not a directory"
    } else if found.uid() != rustix::process::geteuid().as_raw() {
        "it belongs to another user"
    } else if found.mode() & 0o077 != 0 {
        "others may look into it (its mode has to be 0700)"
    } else {
        return Ok(());
    };
    Err(PlaceError::NotOurs { path: path.into(), why })
}

/// Whether nobody but our own user, or root, can have put the socket there: whose it is, and whose
/// directory it lies in.
// enforces: W10, S5
#[cfg_attr(not(feature = "client"), allow(dead_code))]
pub(super) fn check_socket(path: &Path) -> io::Result<()> {
    let own = rustix::process::geteuid().as_raw();
    let ours = |found: &fs::Metadata| [own, 0].contains(&found.uid());
    let socket = fs::symlink_metadata(path)?;
    let why = if !socket.file_type().is_socket() {
        "it is not a socket"
    } else if !ours(&socket) {
        "it belongs to another user"
    } else {
        let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
        let directory = fs::metadata(parent.unwrap_or(Path::new(".")))?;
        // Where others may write, the sticky bit keeps them from replacing what is not theirs.
        let replaceable = directory.mode() & 0o022 != 0 && directory.mode() & 0o1000 == 0;
        if ours(&directory) && !replaceable {
            return Ok(());
        }
        "others may write to its directory"
    };
    let text = format!("{} is not believed to be a hub of yours: {why}", path.display());
    Err(io::Error::new(io::ErrorKind::PermissionDenied, text))
}

/// Takes the place beside the socket, so that two hubs that start at once do not remove each
/// other's. The kernel frees the lock when its holder ends, however it ends.
#[cfg_attr(not(feature = "server"), allow(dead_code))] // for those who listen
pub(super) fn lock(socket: &Path) -> Result<File, PlaceError> {
    let path = socket.with_extension("lock");
    let unusable = |error| PlaceError::Unusable { path: path.clone(), error };
    let open = OpenOptions::new().create(true).write(true).truncate(false).mode(0o600).open(&path);
    let file = open.map_err(unusable)?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(PlaceError::Taken(socket.into())),
        Err(TryLockError::Error(error)) => Err(unusable(error)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: W10
    #[test]
    fn the_directory_follows_the_system() {
        let of = |runtime: Option<&str>, home: Option<&str>, macos| {
            let path = directory_of(runtime.map(OsStr::new), home.map(OsStr::new), 1000, macos);
            path.to_str().unwrap().to_owned()
        };
        assert_eq!(of(Some("/run/user/1000"), Some("/home/a"), false), "/run/user/1000/aaep");
        assert_eq!(of(Some("run"), Some("/home/a"), false), "/tmp/aaep-1000");
        assert_eq!(of(None, None, false), "/tmp/aaep-1000");
        assert_eq!(of(None, Some("/Users/a"), true), "/Users/a/Library/Application Support/AAEP");
        assert_eq!(of(None, None, true), "/tmp/aaep-1000");
    }

    // covers: W10
    #[test]
    fn an_agent_id_cannot_leave_the_directory() {
        assert_eq!(encoded("tidy-agent_2.1", 80), "tidy-agent_2.1");
        assert_eq!(encoded("../../etc/x", 80), "%2E.%2F..%2Fetc%2Fx");
        assert_eq!(encoded("a b\0é~%", 80), "a%20b%00%C3%A9%7E%25");
        for id in [".", "..", "/", "urn:x:../y", ""] {
            let name = encoded(id, 80);
            assert!(!name.contains('/') && !name.starts_with('.'), "{name}");
        }
    }

    // covers: W10
    #[test]
    fn long_ids_fit_and_stay_apart() {
        let (one, two) = ("é".repeat(200), "é".repeat(201));
        assert_eq!(encoded(&one, 40).len(), 40);
        assert_ne!(encoded(&one, 40), encoded(&two, 40));
        assert_eq!(encoded(&"a".repeat(41), 40).matches('~').count(), 1);
        assert_eq!(encoded(&"a".repeat(40), 40), "a".repeat(40));
    }
}
