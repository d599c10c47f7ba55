//! How many files and connections the system lets this process have open.

use crate::config::Config;

/// Files that are open besides connections: the journal, sockets that listen, the runtime's own.
#[cfg(unix)]
const OTHER_FILES: u64 = 256;

/// Asks the system for as many open files as the configured connections need: most give a process
/// few unless it asks. Gives a warning if there are not enough. For programs that are a hub and
/// nothing else, since the limit is that of the whole process.
#[cfg(unix)]
pub fn allow_connections(config: &Config) -> Option<String> {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

    let wanted = u64::try_from(config.limits.connections).unwrap_or(u64::MAX);
    let wanted = wanted.saturating_add(OTHER_FILES);
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let most = maximum.unwrap_or(u64::MAX);
    if current.is_none_or(|current| current >= wanted) {
        return None;
    }
    let raised = Rlimit { current: Some(wanted.min(most)), maximum };
    let allowed = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => wanted.min(most),
        Err(_) => current.unwrap_or(most),
    };
    (allowed < wanted).then(|| {
        format!(
            "The system lets this process open {allowed} files, too few for {} connections. Raise the limit (ulimit -n, or LimitNOFILE in a systemd unit), or lower limits.connections.",
            config.limits.connections
        )
    })
}

/// Elsewhere there is no such limit.
#[cfg(not(unix))]
pub fn allow_connections(_: &Config) -> Option<String> {
    None
}
