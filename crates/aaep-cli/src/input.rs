//! What is read: files, or standard input.

use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

/// One thing to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    StandardInput,
    File(PathBuf),
}

impl Source {
    /// The files named; standard input for none, and for `-`.
    pub(crate) fn list(files: &[PathBuf]) -> Vec<Self> {
        if files.is_empty() {
            return vec![Self::StandardInput];
        }
        files.iter().map(|file| Self::of(file)).collect()
    }

    /// The file named; standard input for `-`.
    pub(crate) fn of(file: &Path) -> Self {
        match file.to_str() {
            Some("-") => Self::StandardInput,
            _ => Self::File(file.to_owned()),
        }
    }

    /// Its name for programs.
    pub(crate) fn name(&self) -> String {
        match self {
            Self::StandardInput => "-".to_owned(),
            Self::File(path) => path.to_string_lossy().into_owned(),
        }
    }

    /// Opens it; a sentence says why not, and what to do.
    pub(crate) fn open(&self) -> Result<Box<dyn Read>, String> {
        match self {
            Self::StandardInput => Ok(Box::new(io::stdin())),
            Self::File(path) => {
                let file = open_file(path).map_err(|error| self.explain(&error))?;
                Ok(Box::new(file))
            }
        }
    }

    /// Why reading failed, and what to do.
    pub(crate) fn explain(&self, error: &io::Error) -> String {
        let why = match error.kind() {
            io::ErrorKind::NotFound => "there is no such file. Check the name.".to_owned(),
            io::ErrorKind::IsADirectory => "it is a folder. Name the files in it.".to_owned(),
            io::ErrorKind::PermissionDenied => {
                "you may not read it. Change its permissions, or ask its owner.".to_owned()
            }
            _ => format!("{error}. Check the file and the disk, then try again."),
        };
        format!("cannot read {self}: {why}")
    }
}

/// Its name for people.
impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::StandardInput => f.write_str("standard input"),
            Self::File(path) => crate::lines::Plain(&path.to_string_lossy()).fmt(f),
        }
    }
}

fn open_file(path: &Path) -> io::Result<File> {
    let file = File::open(path)?;
    // Some systems open folders and only fail to read them.
    if file.metadata()?.is_dir() {
        return Err(io::ErrorKind::IsADirectory.into());
    }
    Ok(file)
}
