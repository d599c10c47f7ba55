//! Files that matter: read only if others could not have changed or read them, written so that a
//! crash leaves the old or the new and nothing in between.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Write};
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

/// Creates a directory for the owner alone, and what leads to it; one that is there stays as it is.
pub(crate) fn create_private_directory(path: &Path) -> Result<(), Fault> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path).map_err(|error| cannot_write(path, &error))
}

/// Opens a file for the owner alone, new or as it is.
pub(crate) fn open_private(path: &Path, new: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).create_new(new);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// Writes a file for the owner alone that must not be there yet. It appears complete or not at all,
/// and stays after a power cut. The caller holds a lock on its directory.
pub(crate) fn write_private(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    write_private_unnamed(path, bytes)?;
    sync_directory_of(path)
}

/// The same, but its name is durable only once the caller has synced the directory: for several
/// files in one directory, which is synced once.
pub(crate) fn write_private_unnamed(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    if path.symlink_metadata().is_ok() {
        return Err(cannot_write(path, &io::ErrorKind::AlreadyExists.into()));
    }
    replace(path, bytes, true)
}

/// Writes a file for the owner alone that means something only while this process runs. It appears
/// complete or not at all, and need not stay after a power cut.
pub(crate) fn write_private_for_now(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    if path.symlink_metadata().is_ok() {
        return Err(cannot_write(path, &io::ErrorKind::AlreadyExists.into()));
    }
    replace(path, bytes, false)
}

/// The same in the place of one that may be there.
pub(crate) fn replace_private(path: &Path, bytes: &[u8]) -> Result<(), Fault> {
    replace(path, bytes, true)?;
    sync_directory_of(path)
}

fn replace(path: &Path, bytes: &[u8], durable: bool) -> Result<(), Fault> {
    let failed = |error: io::Error| cannot_write(path, &error);
    let mut name = path.as_os_str().to_owned();
    name.push(".new");
    let unfinished = Path::new(&name);
    match fs::remove_file(unfinished) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
        _ => {}
    }
    let mut file = open_private(unfinished, true).map_err(failed)?;
    file.write_all(bytes).map_err(failed)?;
    if durable {
        file.sync_all().map_err(failed)?;
    }
    fs::rename(unfinished, path).map_err(failed)
}

/// Makes names that were given or taken away in a file's directory durable.
pub(crate) fn sync_directory_of(path: &Path) -> Result<(), Fault> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    sync_directory(parent.unwrap_or(Path::new(".")))
}

/// Makes names that were given or taken away in a directory durable.
pub(crate) fn sync_directory(directory: &Path) -> Result<(), Fault> {
    if cfg!(unix) {
        let synced = File::open(directory).and_then(|directory| directory.sync_all());
        synced.map_err(|error| cannot_write(directory, &error))?;
    }
    Ok(())
}

pub(crate) fn cannot_write(path: &Path, error: &io::Error) -> Fault {
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "Let the user that runs this write there, or choose another place."
        }
        io::ErrorKind::StorageFull => "Free some space, and try again.",
        _ => "Check the path and its disk.",
    };
    Fault::file(path, format!("It cannot be written: {error}."), remedy)
}
