//! What one call of a hook leaves for the next: the ticket of the session, and calls that run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aaep_agent::{OpenCall, SessionTicket};
use sha2::{Digest, Sha256};

use crate::allowance::Record;

/// The longest file that is read, in bytes.
const MAX_BYTES: u64 = 4096;

/// How long files are kept that nobody came back for.
const KEPT: Duration = Duration::from_secs(7 * 24 * 3600);

/// A directory that only the user reads: anyone with a ticket can go on with the session.
#[derive(Clone, Debug)]
pub struct Memory {
    directory: PathBuf,
}

/// The files of one session of one program. While it is held, nobody else changes them.
#[derive(Debug)]
pub(crate) struct Page {
    stem: PathBuf,
    _lock: File,
}

impl Memory {
    /// A memory in this directory, which is made when it is needed.
    pub fn at(directory: impl Into<PathBuf>) -> Self {
        Self { directory: directory.into() }
    }

    /// The page of this session, once nobody else has it.
    pub(crate) fn page(&self, host: &str, session: &str) -> io::Result<Page> {
        make_private(&self.directory)?;
        let stem = self.directory.join(digest(&[host, session]));
        let lock = open(&stem.with_extension("lock"))?;
        lock.lock()?;
        Ok(Page { stem, _lock: lock })
    }

    /// Forgets what nobody came back for.
    pub(crate) fn tidy(&self, now: SystemTime) {
        let Ok(entries) = fs::read_dir(&self.directory) else { return };
        for entry in entries.flatten().take(10_000) {
            let changed = entry.metadata().and_then(|found| found.modified());
            let old = changed.is_ok_and(|at| now.duration_since(at).is_ok_and(|age| age > KEPT));
            if old {
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

impl Memory {
    /// What is kept of "for this session": page, class and record of each.
    pub(crate) fn all_allowances(&self) -> Vec<(String, String, Record)> {
        let Ok(entries) = fs::read_dir(&self.directory) else { return Vec::new() };
        let known = |entry: fs::DirEntry| {
            let name = entry.file_name().into_string().ok()?;
            let (page, key) = name.strip_suffix(".allow")?.split_once('.')?;
            let record = Record::parse(&read(&entry.path())?)?;
            Some((page.to_owned(), key.to_owned(), record))
        };
        let mut found: Vec<_> = entries.flatten().take(10_000).filter_map(known).collect();
        found.sort_by(|a, b| (&a.0, &a.1).cmp(&(&b.0, &b.1)));
        found
    }

    pub(crate) fn forget_allowance(&self, page: &str, key: &str) {
        let _ = fs::remove_file(self.directory.join(format!("{page}.{key}.allow")));
    }
}

impl Memory {
    pub(crate) fn write_yes(&self, key: &str, text: &str) -> io::Result<()> {
        write(&self.yes_path(key), text)
    }

    pub(crate) fn read_yes(&self, key: &str) -> Option<String> {
        read(&self.yes_path(key))
    }

    /// Whether it was there: of several who remove it, one does.
    pub(crate) fn remove_yes(&self, key: &str) -> bool {
        fs::remove_file(self.yes_path(key)).is_ok()
    }

    fn yes_path(&self, key: &str) -> PathBuf {
        self.directory.join(format!("{key}.yes"))
    }
}

impl Page {
    pub(crate) fn allowance(&self, key: &str) -> Option<Record> {
        Record::parse(&read(&self.allowance_path(key))?)
    }

    pub(crate) fn keep_allowance(&self, key: &str, record: &Record) -> io::Result<()> {
        write(&self.allowance_path(key), &record.to_json())
    }

    pub(crate) fn forget_allowance(&self, key: &str) {
        let _ = fs::remove_file(self.allowance_path(key));
    }

    /// All of this page.
    pub(crate) fn allowances(&self) -> Vec<(String, Record)> {
        let (Some(directory), Some(stem)) = (self.stem.parent(), self.stem.file_name()) else {
            return Vec::new();
        };
        let all = Memory::at(directory).all_allowances().into_iter();
        all.filter(|(page, ..)| *page == *stem.to_string_lossy())
            .map(|(_, key, record)| (key, record))
            .collect()
    }

    fn allowance_path(&self, key: &str) -> PathBuf {
        self.stem.with_extension(format!("{key}.allow"))
    }

    pub(crate) fn ticket(&self) -> Option<SessionTicket> {
        read(&self.stem.with_extension("session"))?.parse().ok()
    }

    pub(crate) fn keep_ticket(&self, ticket: &SessionTicket) -> io::Result<()> {
        write(&self.stem.with_extension("session"), &ticket.to_string())
    }

    pub(crate) fn forget_ticket(&self) {
        let _ = fs::remove_file(self.stem.with_extension("session"));
    }

    pub(crate) fn keep_call(&self, name: &str, call: &OpenCall) -> io::Result<()> {
        write(&self.call_path(name), &format!("{}\n{}", call.id, call.tool))
    }

    pub(crate) fn take_call(&self, name: &str) -> Option<OpenCall> {
        let path = self.call_path(name);
        let text = read(&path)?;
        let _ = fs::remove_file(path);
        let (id, tool) = text.split_once('\n')?;
        Some(OpenCall { tool: tool.to_owned(), id: id.to_owned() })
    }

    fn call_path(&self, name: &str) -> PathBuf {
        self.stem.with_extension(format!("{}.call", digest(&[name])))
    }
}

/// A short name for something long.
pub(crate) fn digest(parts: &[&str]) -> String {
    let mut hash = Sha256::new();
    for part in parts {
        hash.update(u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        hash.update(part.as_bytes());
    }
    hash.finalize().iter().take(16).map(|byte| format!("{byte:02x}")).collect()
}

pub(crate) fn make_private(directory: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(directory)
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    open(path)?.write_all(text.as_bytes())
}

fn read(path: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path).ok()?.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}
