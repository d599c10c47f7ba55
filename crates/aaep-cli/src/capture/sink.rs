//! Where a capture goes: standard output, or files that only their owner can read.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use aaep_types::{LenientEvent, captured};

use crate::exit;
use crate::lines::Plain;

/// How much of the end of a file is read to find its last event.
const TAIL: u64 = 4 << 20;

/// When a new file is begun.
#[derive(Clone, Copy, Debug)]
pub(super) struct Rotation {
    pub(super) bytes: Option<u64>,
    pub(super) after: Option<Duration>,
}

pub(super) struct Sink<'a, W: Write> {
    to: To<'a, W>,
    rotation: Rotation,
    last_event: Option<String>,
}

enum To<'a, W: Write> {
    Out(&'a mut W),
    File { file: File, path: PathBuf, bytes: u64, since: Instant },
}

impl<'a, W: Write> Sink<'a, W> {
    pub(super) fn open(
        path: Option<&Path>,
        append: bool,
        rotation: Rotation,
        out: &'a mut W,
    ) -> Result<Self, String> {
        let Some(path) = path else {
            return Ok(Self { to: To::Out(out), rotation, last_event: None });
        };
        let wrong = |error: io::Error| {
            let (name, shown) = (path.to_string_lossy(), error.kind());
            let name = Plain(&name);
            match shown {
                io::ErrorKind::AlreadyExists => format!(
                    "{name} is there already, and stays as it is. Name another file, or add to it with --append."
                ),
                _ => format!("Cannot write {name}: {error}. Check the path."),
            }
        };
        let mut file = create(path, append).map_err(wrong)?;
        let (last_event, bytes) = if append {
            let found = continue_after(&mut file).map_err(wrong)?;
            if found.cut > 0 {
                exit::say(&format!(
                    "The last line was cut short. Its {} bytes were taken out; the event is asked for again.",
                    found.cut
                ));
            }
            (found.last_event, found.bytes)
        } else {
            (None, 0)
        };
        let to = To::File { file, path: path.to_owned(), bytes, since: Instant::now() };
        Ok(Self { to, rotation, last_event })
    }

    /// The last event of the file that is added to.
    pub(super) fn last_event(&self) -> Option<&str> {
        self.last_event.as_deref()
    }

    /// Writes a line, at once: what was captured survives whatever happens next.
    pub(super) fn write(&mut self, line: &str) -> io::Result<()> {
        let line = format!("{line}\n");
        match &mut self.to {
            To::Out(out) => {
                out.write_all(line.as_bytes())?;
                out.flush()
            }
            To::File { file, path, bytes, since } => {
                let full =
                    self.rotation.bytes.is_some_and(|most| *bytes + line.len() as u64 > most);
                let old = self.rotation.after.is_some_and(|after| since.elapsed() >= after);
                if *bytes > 0 && (full || old) {
                    file.sync_all()?;
                    std::fs::rename(&*path, free_name(path)?)?;
                    *file = create(path, false)?;
                    (*bytes, *since) = (0, Instant::now());
                }
                *bytes += line.len() as u64;
                file.write_all(line.as_bytes())
            }
        }
    }

    pub(super) fn finish(&mut self) -> io::Result<()> {
        match &mut self.to {
            To::Out(out) => out.flush(),
            To::File { file, .. } => file.sync_all(),
        }
    }
}

fn create(path: &Path, append: bool) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true);
    if append {
        options.create(true);
    } else {
        options.create_new(true);
    }
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The first number behind the name that is free.
fn free_name(path: &Path) -> io::Result<PathBuf> {
    for number in 1..u32::MAX {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{number}"));
        let name = PathBuf::from(name);
        if !name.try_exists()? {
            return Ok(name);
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// What a file that is added to holds.
struct FileTail {
    last_event: Option<String>,
    bytes: u64,
    /// Bytes of a last line that was cut short; they were taken out.
    cut: u64,
}

/// Goes to the end of the file, and takes out a last line that was cut short.
fn continue_after(file: &mut File) -> io::Result<FileTail> {
    let length = file.seek(SeekFrom::End(0))?;
    let start = length.saturating_sub(TAIL);
    file.seek(SeekFrom::Start(start))?;
    let mut tail = Vec::new();
    file.take(TAIL).read_to_end(&mut tail)?;
    let end = memchr::memrchr(b'\n', &tail).map_or(0, |at| at + 1);
    let rest = &tail[end..];
    let mut cut = 0;
    if !rest.is_empty() && (end > 0 || start == 0) {
        if event_of(rest).is_some() {
            file.seek(SeekFrom::End(0))?;
            file.write_all(b"\n")?;
        } else {
            cut = rest.len() as u64;
            file.set_len(length - cut)?;
        }
    }
    let bytes = file.seek(SeekFrom::End(0))?;
    let whole = if cut > 0 { &tail[..end] } else { &tail[..] };
    let last_event = whole.rsplit(|byte| *byte == b'\n').find_map(event_of);
    Ok(FileTail { last_event, bytes, cut })
}

fn event_of(line: &[u8]) -> Option<String> {
    let event = LenientEvent::parse(captured::message(line)).ok()?;
    Some(event.event_id().to_owned())
}
