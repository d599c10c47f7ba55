//! Why the hub cannot be set up or started, in words for its operator.

use std::fmt;
use std::path::{Path, PathBuf};

/// Why the hub does not start, or does not take a new configuration.
///
/// Each says what happened and what to do next. None contains a token, a key or a hash.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Fault {
    /// The configuration says something that cannot be.
    Config {
        /// Where it says so: a file and line, an environment variable, a flag.
        place: String,
        /// Which key; empty where the text cannot be read at all.
        key: String,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// What was asked for would put somebody at risk.
    Unsafe {
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// A file or directory is missing, cannot be used, or is not what it should be.
    File {
        /// Which.
        path: PathBuf,
        /// What is wrong.
        what: String,
        /// What to do.
        remedy: String,
    },
    /// Another hub works in the same directory.
    InUse {
        /// The data directory.
        path: PathBuf,
        /// The other hub's process, where it could be found out.
        process: Option<u32>,
    },
    /// Another node of the cluster has taken over.
    Fenced,
    /// The operating system did not give what it should.
    System {
        /// What is wrong.
        what: String,
    },
}

impl Fault {
    pub(crate) fn unsafely(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::Unsafe { what: what.into(), remedy: remedy.into() }
    }

    pub(crate) fn file(path: &Path, what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self::File { path: path.to_owned(), what: what.into(), remedy: remedy.into() }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Config { place, key, what, remedy } if key.is_empty() => {
                write!(f, "{place}: {what} {remedy}")
            }
            Self::Config { place, key, what, remedy } => {
                write!(f, "{place}, key `{key}`: {what} {remedy}")
            }
            Self::Unsafe { what, remedy } => write!(f, "{what} {remedy}"),
            Self::Fenced => aaep_store::JournalFault::Fenced.fmt(f),
            Self::File { path, what, remedy } => write!(f, "{}: {what} {remedy}", path.display()),
            Self::InUse { path, process } => {
                let path = path.display();
                match process {
                    Some(process) => write!(f, "Another hub (process {process}) uses {path}.")?,
                    None => write!(f, "Another hub uses {path}.")?,
                }
                f.write_str(" Stop it, or choose another directory with --data.")
            }
            Self::System { what } => f.write_str(what),
        }
    }
}

impl std::error::Error for Fault {}
