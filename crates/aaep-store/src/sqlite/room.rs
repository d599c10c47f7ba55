//! Room for the write-ahead log, laid out before it is needed.
//!
//! A sync of a file that grew makes the disk write twice: the data, and where it lies. So the log is
//! made longer ahead of time, with zeros, which SQLite takes for what they are: not a frame.

use std::fs::{File, OpenOptions};
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;

use super::open::beside;

/// How much is laid out at once.
const STEP: u64 = 1 << 20;

/// The log's file, and how far it was laid out.
#[derive(Debug)]
pub(super) struct Room {
    file: File,
    end: u64,
}

impl Room {
    /// The log of this journal, which is there.
    pub(super) fn open(journal: &Path) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).open(beside(journal, "-wal"))?;
        Ok(Self { file, end: 0 })
    }

    /// Whether the log has used it up. Once the log is carried over it starts from its beginning, so
    /// this comes to an end.
    pub(super) fn is_used_up(&self) -> bool {
        self.length().is_ok_and(|length| length > self.end)
    }

    /// The length of the log. Not by `stat`: reading the modification time makes newer kernels record
    /// the next change exactly, and the next sync writes the inode as well.
    fn length(&self) -> io::Result<u64> {
        (&self.file).seek(SeekFrom::End(0))
    }

    /// Preallocates more; the caller holds the write lock. On a full disk the log stays as it was and
    /// grows on demand, and this is not tried again.
    pub(super) fn lay_out(&mut self) {
        let Ok(used) = self.length() else { return };
        let end = (used / STEP + 1) * STEP;
        self.end = match self.write_zeros(used, end) {
            Ok(()) => end,
            Err(_) => {
                let _ = self.file.set_len(used);
                u64::MAX
            }
        };
    }

    fn write_zeros(&mut self, from: u64, to: u64) -> io::Result<()> {
        let zeros = vec![0; usize::try_from(to - from).unwrap_or_default()];
        self.file.seek(SeekFrom::Start(from))?;
        self.file.write_all(&zeros)?;
        self.file.sync_data()
    }
}
