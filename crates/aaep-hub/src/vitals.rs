//! How the hub is doing as a process: what operators watch and alarms are set on.

use std::fs;
use std::path::Path;

use crate::config::Config;
use crate::start::JOURNAL_NAME;
use crate::tls::Tls;

/// The files beside the journal that are part of it.
const JOURNAL_FILES: [&str; 3] = ["", "-wal", "-shm"];

/// What could be found out; the rest is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Vitals {
    /// Bytes of memory that are the process's own.
    pub(crate) memory: Option<u64>,
    pub(crate) open_files: Option<u64>,
    pub(crate) max_files: Option<u64>,
    /// Bytes of the journal on disk.
    pub(crate) journal: Option<u64>,
    /// Bytes that may still be written where the journal is.
    pub(crate) disk_free: Option<u64>,
    /// Seconds of Unix time.
    pub(crate) certificate_expires: Option<u64>,
}

impl Vitals {
    /// Measures. It reads a few small files of the system, so not to be done while the core is held.
    pub(crate) fn measure(config: &Config, tls: Option<&Tls>) -> Self {
        let data = config.data.as_deref().filter(|_| !config.ephemeral);
        Self {
            memory: memory(),
            open_files: open_files(),
            max_files: max_files(),
            journal: data.and_then(journal),
            disk_free: data.and_then(disk_free),
            certificate_expires: tls
                .and_then(Tls::expires)
                .and_then(|seconds| u64::try_from(seconds).ok()),
        }
    }
}

fn journal(data: &Path) -> Option<u64> {
    let path = data.join(JOURNAL_NAME);
    let bytes = JOURNAL_FILES.iter().filter_map(|suffix| {
        let mut name = path.clone().into_os_string();
        name.push(suffix);
        fs::metadata(name).ok().map(|file| file.len())
    });
    path.exists().then(|| bytes.sum())
}

#[cfg(unix)]
fn disk_free(data: &Path) -> Option<u64> {
    let system = rustix::fs::statvfs(data).ok()?;
    Some(system.f_bavail.saturating_mul(system.f_frsize))
}

#[cfg(not(unix))]
fn disk_free(_: &Path) -> Option<u64> {
    None
}

/// Linux says it in kilobytes; elsewhere nobody is asked.
#[allow(clippy::disallowed_methods)] // asks the system
fn memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find(|line| line.starts_with("VmRSS:"))?;
    line.split_whitespace().nth(1)?.parse::<u64>().ok().map(|kilobytes| kilobytes * 1024)
}

fn open_files() -> Option<u64> {
    let open = fs::read_dir("/proc/self/fd").ok()?.count() as u64;
    // The directory that was read is one of them.
    Some(open.saturating_sub(1))
}

#[cfg(unix)]
fn max_files() -> Option<u64> {
    rustix::process::getrlimit(rustix::process::Resource::Nofile).current
}

#[cfg(not(unix))]
fn max_files() -> Option<u64> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hub_that_keeps_nothing_has_no_journal_and_no_disk() {
        let found = Vitals::measure(&Config { ephemeral: true, ..Config::default() }, None);
        assert_eq!((found.journal, found.disk_free, found.certificate_expires), (None, None, None));
        #[cfg(target_os = "linux")]
        assert!(found.memory > Some(1 << 20) && found.open_files > Some(2), "{found:?}");
    }

    #[test]
    fn a_journal_is_counted_with_its_log() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(journal(directory.path()), None);
        fs::write(directory.path().join(JOURNAL_NAME), [0; 100]).unwrap();
        fs::write(directory.path().join(format!("{JOURNAL_NAME}-wal")), [0; 20]).unwrap();
        assert_eq!(journal(directory.path()), Some(120));
        #[cfg(unix)]
        assert!(disk_free(directory.path()) > Some(0));
    }
}
