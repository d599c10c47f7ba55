//! Files that matter: read only if others could not have changed or read them, written so that a
//! crash leaves the old or the new and nothing in between.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::Fault;

/// Who else may touch a file.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// They may read it, but not everybody may write it.
    MayRead,
    /// They may do nothing.
    MayDoNothing,
}

/// Reads a file that says what the hub does: nobody but its owner and group may write it.
pub(crate) fn read_trusted(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    read(path, max_bytes, Others::MayRead)
}

/// Reads a secret: only its owner may read it.
pub(crate) fn read_private(path: &Path, max_bytes: u64) -> Result<Vec<u8>, Fault> {
    read(path, max_bytes, Others::MayDoNothing)
}

fn read(path: &Path, max_bytes: u64, others: Others) -> Result<Vec<u8>, Fault> {
    let file = File::open(path).map_err(|error| cannot_read(path, &error))?;
    // The open file is looked at, not the path: what was checked is what is read.
    let metadata = file.metadata().map_err(|error| cannot_read(path, &error))?;
    if !metadata.is_file() {
        return Err(Fault::file(path, "It is not a file.", "Name a file."));
    }
    check_mode(path, &metadata, others)?;
    let mut bytes = Vec::new();
    file.take(max_bytes + 1).read_to_end(&mut bytes).map_err(|error| cannot_read(path, &error))?;
    if bytes.len() as u64 > max_bytes {
        let what = format!("It is larger than {max_bytes} bytes.");
        return Err(Fault::file(path, what, "It is probably another file; name the right one."));
    }
    Ok(bytes)
}

#[cfg(unix)]
fn check_mode(path: &Path, metadata: &fs::Metadata, others: Others) -> Result<(), Fault> {
    use std::os::unix::fs::MetadataExt;

    let mode = metadata.mode() & 0o777;
    match others {
        Others::MayRead if mode & 0o002 != 0 => Err(Fault::file(
            path,
            format!("Everybody on this machine may write it (mode {mode:o})."),
            format!("Check what it says, then run: chmod o-w {}", path.display()),
        )),
        Others::MayDoNothing if mode & 0o077 != 0 => Err(Fault::file(
            path,
            format!(
                "Others on this machine may read or write it (mode {mode:o}), and it is a secret."
            ),
            format!("Run: chmod 600 {}  If others have read it, make a new one.", path.display()),
        )),
        _ => Ok(()),
    }
}

// Windows gives what lies below a user's directories to that user alone.
#[cfg(not(unix))]
fn check_mode(_: &Path, _: &fs::Metadata, _: Others) -> Result<(), Fault> {
    Ok(())
}

pub(crate) fn cannot_read(path: &Path, error: &io::Error) -> Fault {
    let remedy = match error.kind() {
        io::ErrorKind::NotFound => "Check the path.",
        io::ErrorKind::PermissionDenied => "Let the user that runs the hub read it.",
        _ => "Check the file and its disk.",
    };
    Fault::file(path, format!("It cannot be read: {error}."), remedy)
}
