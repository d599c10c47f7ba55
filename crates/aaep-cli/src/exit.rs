//! How the command ends, and what it says on the way out.

use std::io::{self, Write};
use std::process::ExitCode;

/// The worst that happened decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Exit {
    /// Everything is as it should be.
    Good = 0,
    /// Something wrong was found.
    Wrong = 1,
    /// Something could not be done.
    Unable = 2,
    /// Nobody answered.
    Nobody = 3,
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        ExitCode::from(exit as u8)
    }
}

/// A line on standard error.
pub(crate) fn say(text: &str) {
    // If nobody listens there either, the exit status has to say it.
    let _ = writeln!(io::stderr(), "aaep: {text}");
}
