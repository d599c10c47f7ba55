//! The processes of agents, as they are kept across a restart of the hub: an agent of the same user
//! could otherwise ask, have the hub start again, and answer.
//!
//! A file of its own beside the PINs, not the journal: a process means nothing to an audit, nothing once
//! the machine starts again, and nothing on another machine that a journal is taken to. It is not
//! synced, since it has to outlive this process only.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use aaep_transport::process::Lineage;
use aaep_types::SessionId;
use serde::{Deserialize, Serialize};

use crate::core::Processes;
use crate::start::journal::boot_identity;
use crate::{Fault, files};

/// Its name, in the state directory.
const FILE: &str = "processes.jsonl";

/// The longest file that is read, in bytes.
const FILE_BYTES: u64 = 64 << 20;

/// From how many bytes on it is written anew, without the sessions that ended.
const REWRITTEN_FROM: u64 = 8 << 20;

/// One line: processes of a session.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    session: String,
    /// The boot of the machine in which they ran.
    boot: String,
    /// They opened it; otherwise they asked in it.
    opened: bool,
    processes: Vec<String>,
}

/// The file.
#[derive(Debug)]
pub(crate) struct KeptProcesses {
    path: PathBuf,
    boot: String,
    inner: Mutex<Inner>,
    /// What was there when the hub started; `None` if there was no file, as before the first version
    /// that kept one.
    found: Option<BTreeMap<SessionId, Processes>>,
}

#[derive(Debug, Default)]
struct Inner {
    file: Option<File>,
    bytes: u64,
    /// From how many bytes on it is written anew.
    rewritten_from: u64,
    /// How often it was.
    rewrites: u64,
}

/// How long the file was at some time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Length {
    bytes: u64,
    rewrites: u64,
}

impl KeptProcesses {
    /// Reads what was kept in this directory.
    pub(crate) fn open(directory: &Path) -> Self {
        let (path, boot) = (directory.join(FILE), boot_identity());
        let found = path.symlink_metadata().is_ok().then(|| {
            let lines = read(&path).unwrap_or_else(|fault| {
                tracing::warn!(
                    "which processes agents had before this start is not known: {fault}"
                );
                Vec::new()
            });
            recall(lines, &boot)
        });
        let bytes = path.metadata().map_or(0, |data| data.len());
        let inner = Inner { bytes, rewritten_from: REWRITTEN_FROM, ..Inner::default() };
        let inner = Mutex::new(inner);
        Self { path, boot, inner, found }
    }

    /// The processes of a session that was open before this start. If they are not known, anybody on
    /// this machine may be one.
    pub(crate) fn of(&self, session: SessionId) -> Processes {
        match &self.found {
            Some(found) => found.get(&session).cloned().unwrap_or_else(Processes::lost),
            None => Processes::default(),
        }
    }

    /// How long it is now.
    pub(crate) fn length(&self) -> Length {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        Length { bytes: inner.bytes, rewrites: inner.rewrites }
    }

    /// Keeps what belongs to these sessions, and what was added since this length; nothing else. If it
    /// was written anew since then, it stays as it is.
    pub(crate) fn rewrite(&self, open: &BTreeSet<SessionId>, length: Length) -> Result<(), Fault> {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if inner.rewrites != length.rewrites {
            return Ok(());
        }
        let is_open = |line: &Line| {
            SessionId::parse(&line.session).is_ok_and(|session| open.contains(&session))
        };
        let lines =
            if self.path.symlink_metadata().is_ok() { read(&self.path)? } else { Vec::new() };
        let (mut at, mut text) = (0, String::new());
        for (size, line) in lines {
            // A session that was opened meanwhile is not among these.
            if at >= length.bytes || is_open(&line) {
                text += &written(&line).unwrap_or_default();
            }
            at += size;
        }
        files::create_private_directory(self.path.parent().unwrap_or(Path::new(".")))?;
        files::replace_private(&self.path, text.as_bytes())?;
        let file = OpenOptions::new().append(true).open(&self.path);
        inner.file = Some(file.map_err(|error| files::cannot_write(&self.path, &error))?);
        inner.bytes = text.len() as u64;
        inner.rewrites += 1;
        // Many sessions may be open: it at least doubles before it is looked at again.
        inner.rewritten_from = REWRITTEN_FROM.max(2 * inner.bytes);
        Ok(())
    }

    /// Adds processes of a session. If it is time to write the file anew, says how long it is.
    pub(crate) fn add(
        &self,
        session: SessionId,
        opened: bool,
        processes: &[Arc<Lineage>],
    ) -> Result<Option<Length>, Fault> {
        let processes = processes.iter().map(|line| line.write()).collect();
        let session = session.to_string();
        let line = written(&Line { session, boot: self.boot.clone(), opened, processes });
        let line = line.unwrap_or_default();
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = &mut inner.file {
            file.write_all(line.as_bytes())
                .map_err(|error| files::cannot_write(&self.path, &error))?;
        }
        inner.bytes += line.len() as u64;
        let length = Length { bytes: inner.bytes, rewrites: inner.rewrites };
        Ok(Some(length).filter(|_| inner.bytes >= inner.rewritten_from))
    }
}

fn written(line: &Line) -> Option<String> {
    serde_json::to_string(line).ok().map(|text| text + "\n")
}

/// The lines that can be read, each with its length: the last may be torn.
fn read(path: &Path) -> Result<Vec<(u64, Line)>, Fault> {
    let bytes = files::read_private(path, FILE_BYTES)?;
    let lines = bytes.split_inclusive(|byte| *byte == b'\n');
    Ok(lines
        .filter_map(|line| Some((line.len() as u64, serde_json::from_slice(line).ok()?)))
        .collect())
}

fn recall(lines: Vec<(u64, Line)>, boot: &str) -> BTreeMap<SessionId, Processes> {
    let mut all: BTreeMap<SessionId, (Vec<Lineage>, Vec<Lineage>)> = BTreeMap::new();
    for (_, line) in lines {
        let Ok(session) = SessionId::parse(&line.session) else { continue };
        let read: Option<Vec<_>> = line.processes.iter().map(|text| Lineage::read(text)).collect();
        // One that cannot be read leaves its session without any that are known.
        let Some(read) = read else { continue };
        let (opened, asked) = all.entry(session).or_default();
        // Of those that ran before the machine started again, none is left.
        let read = read.into_iter().filter(|_| line.boot == boot);
        if line.opened { opened.extend(read) } else { asked.extend(read) }
    }
    all.into_iter()
        .map(|(session, (opened, asked))| (session, Processes::recalled(opened, asked)))
        .collect()
}

#[cfg(test)]
mod tests {
    use aaep_transport::process::Origin;

    use super::*;
    use crate::core::Kinship;

    // covers: I30
    #[test]
    fn what_was_kept_is_known_again_and_what_was_lost_is_suspected() {
        let place = tempfile::tempdir().unwrap();
        let [known, remote, lost] = [1, 2, 3].map(SessionId::from_bits);
        let agent = Arc::new(Lineage::read("100 1 50 100 0 67 6e;50 1 1 50 0 67 6e;").unwrap());
        let other = Arc::new(Lineage::read("200 1 51 200 7 67 6e;51 1 1 51 0 67 6e;").unwrap());
        let asked = Arc::new(Lineage::read("300 1 52 300 8 67 6e;52 1 1 52 0 67 6e;").unwrap());
        let kept = KeptProcesses::open(place.path());
        let of = |kept: &KeptProcesses, session, line: &Arc<Lineage>| {
            kept.of(session).kinship(&Origin::Known(vec![line.clone()]), false)
        };
        assert_eq!(of(&kept, lost, &other), Kinship::None, "nothing was ever kept here");
        let open: BTreeSet<_> = [known, remote, lost].into();
        kept.rewrite(&open, Length::default()).unwrap();
        assert_eq!(kept.add(known, true, std::slice::from_ref(&agent)).unwrap(), None);
        assert_eq!(kept.add(known, false, std::slice::from_ref(&asked)).unwrap(), None);
        kept.add(remote, true, &[]).unwrap();
        let again = KeptProcesses::open(place.path());
        assert_eq!(of(&again, known, &agent), Kinship::Certain);
        assert_eq!(of(&again, known, &asked), Kinship::Certain);
        assert_eq!(of(&again, known, &other), Kinship::None);
        assert_eq!(of(&again, remote, &other), Kinship::None, "its agent is no process here");
        assert_eq!(of(&again, lost, &other), Kinship::Suspected);
        // Written anew, it holds what is still open; a line that was torn takes nothing else away.
        let at_start = again.length();
        again.rewrite(&[known].into(), at_start).unwrap();
        again.add(remote, true, &[]).unwrap();
        again.rewrite(&[].into(), at_start).unwrap();
        let path = place.path().join(FILE);
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&known.to_string()), "it was written anew since then: {text}");
        again.rewrite(&[known].into(), again.length()).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains(&known.to_string()) && !text.contains(&remote.to_string()), "{text}");
        std::fs::write(&path, text + "{\"session\": \"tor").unwrap();
        assert_eq!(of(&KeptProcesses::open(place.path()), known, &agent), Kinship::Certain);
        // After the machine started again there is none of them left.
        let text = std::fs::read_to_string(&path).unwrap();
        std::fs::write(&path, text.replace(&boot_identity(), "another")).unwrap();
        assert_eq!(of(&KeptProcesses::open(place.path()), known, &agent), Kinship::None);
    }
}
