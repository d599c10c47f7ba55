//! Making several files appear as one.
//!
//! 1. Everything is made in a directory aside, the configuration last: while it is not there, what
//!    is there is unfinished, and a second run throws it away.
//! 2. Each part is moved to its place, the configuration last. A second run that finds the
//!    configuration aside moves what the first had not moved yet.
//! 3. The directory aside is empty then, and is removed.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::{Fault, files};

/// The directory aside.
const NAME: &str = ".aaep-init";

/// What an earlier run left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StagedSetup {
    /// Nothing that could be used.
    Nothing,
    /// All parts, some perhaps in place already.
    Complete,
}

/// A place to make things before they count.
pub(super) struct Staging<'d> {
    directory: &'d Path,
    aside: PathBuf,
}

impl<'d> Staging<'d> {
    pub(super) fn of(directory: &'d Path) -> Self {
        Self { directory, aside: directory.join(NAME) }
    }

    /// Where to make things.
    pub(super) fn path(&self) -> &Path {
        &self.aside
    }

    /// Looks at what is there, and clears away what is unfinished. Refuses if anything stands where
    /// a part is to go.
    pub(super) fn find(&self, parts: &[&str]) -> Result<StagedSetup, Fault> {
        let complete = parts.last().is_some_and(|last| exists(&self.aside.join(last)));
        let in_the_way = parts.iter().filter(|part| {
            let waits = exists(&self.aside.join(part));
            // A part that was moved already is where it belongs.
            exists(&self.directory.join(part)) && (waits || !complete)
        });
        let in_the_way: Vec<_> = in_the_way.copied().collect();
        if !in_the_way.is_empty() {
            // All that is left of a run that had moved everything.
            let _ = fs::remove_dir(&self.aside);
            return Err(Fault::file(
                self.directory,
                format!("There already is: {}. Nothing was changed.", in_the_way.join(", ")),
                "Use what is there, or move it away, or choose another directory with --dir.",
            ));
        }
        if complete {
            return Ok(StagedSetup::Complete);
        }
        match fs::remove_dir_all(&self.aside) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(files::cannot_write(&self.aside, &error))
            }
            _ => Ok(StagedSetup::Nothing),
        }
    }

    /// Moves every part that waits to its place, in order.
    pub(super) fn put_in_place(&self, parts: &[&str]) -> Result<(), Fault> {
        for (index, part) in parts.iter().enumerate() {
            // The last one stays aside until the others are durably in place: it says that they wait.
            if index + 1 == parts.len() {
                files::sync_directory(self.directory)?;
            }
            let (from, to) = (self.aside.join(part), self.directory.join(part));
            if exists(&from) {
                fs::rename(&from, &to).map_err(|error| files::cannot_write(&to, &error))?;
            }
        }
        files::sync_directory(self.directory)?;
        fs::remove_dir(&self.aside).map_err(|error| files::cannot_write(&self.aside, &error))
    }
}

/// Whether there is anything by this name, also a link that leads nowhere.
fn exists(path: &Path) -> bool {
    path.symlink_metadata().is_ok()
}
