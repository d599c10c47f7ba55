//! Everything that was said and typed, in a file: plain lines with the time, only ever added to.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use aaep_types::Timestamp;

pub(super) struct Transcript {
    file: File,
}

impl Transcript {
    /// Opens it to be added to; a new one can be read by its owner alone.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let mut options = OpenOptions::new();
        options.create(true).append(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let opened = options.open(path);
        let file = opened.map_err(|error| {
            format!("Cannot write the transcript {}: {error}. Check the path.", path.display())
        })?;
        Ok(Self { file })
    }

    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{} {line}\n", now());
        self.file.write_all(line.as_bytes())
    }
}

/// Now, in UTC.
pub(super) fn now() -> String {
    let millis = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis();
    let stamp = i64::try_from(millis).ok().and_then(Timestamp::from_millis);
    stamp.map(|stamp| stamp.to_string()).unwrap_or_default()
}
