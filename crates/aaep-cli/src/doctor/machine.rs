//! What the machine has: disk, clock, and what people hear and feel with.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use aaep_hub::config::Config;
use aaep_voice::braille::brlapi::Address;

use super::Finding;

/// Less free space than this, in megabytes, and the journal may soon have no room.
const LOW_SPACE: u64 = 200;

/// How far ahead a file's time may be: clocks of file servers differ a little.
const TOLERANCE: Duration = Duration::from_secs(60);

/// Whether the data directory is private and has room.
pub(super) fn data(config: &Config) -> Vec<Finding> {
    let Some(directory) = config.data.as_deref().filter(|_| !config.ephemeral) else {
        return vec![Finding::missing(
            "data",
            "The hub is to keep nothing, so a restart loses all.",
        )];
    };
    let shown = directory.display();
    match fs::metadata(directory) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return vec![Finding::missing(
                "data",
                format!("{shown} is not there yet; the hub makes it when it starts."),
            )];
        }
        Err(error) => {
            let text = format!("{shown} cannot be looked at: {error}. Make it yours.");
            return vec![Finding::wrong("data", text)];
        }
        Ok(metadata) if !metadata.is_dir() => {
            let text = format!("{shown} is no directory. Name another with --data.");
            return vec![Finding::wrong("data", text)];
        }
        Ok(_) => {}
    }
    [permissions(directory), space(directory)].into_iter().flatten().collect()
}

#[cfg(unix)]
fn permissions(directory: &Path) -> Option<Finding> {
    use std::os::unix::fs::PermissionsExt;
    let mode = fs::metadata(directory).ok()?.permissions().mode();
    let shown = directory.display();
    Some(if mode & 0o077 == 0 {
        Finding::good("permissions", format!("Only you can read {shown}."))
    } else {
        Finding::wrong(
            "permissions",
            format!("Others may read {shown}. Shut them out: chmod 700 '{shown}'"),
        )
    })
}

#[cfg(not(unix))]
fn permissions(_: &Path) -> Option<Finding> {
    None
}

#[cfg(unix)]
fn space(directory: &Path) -> Option<Finding> {
    let shown = directory.display();
    let system = match rustix::fs::statvfs(directory) {
        Ok(system) => system,
        Err(error) => {
            let text = format!("How much room {shown} has cannot be found out: {error}.");
            return Some(Finding::wrong("disk", text));
        }
    };
    let megabytes = system.f_bavail.saturating_mul(system.f_frsize) / 1_000_000;
    Some(if megabytes < LOW_SPACE {
        let text = format!(
            "{shown} has {megabytes} MB of room left. Without room no answer counts: make some."
        );
        Finding::wrong("disk", text)
    } else {
        Finding::good("disk", format!("{shown} has {megabytes} MB of room."))
    })
}

#[cfg(not(unix))]
fn space(_: &Path) -> Option<Finding> {
    None
}

/// Whether the clock has gone back behind what was written.
pub(super) fn clock(config: &Config) -> Finding {
    let written = |directory: &PathBuf| {
        let files = fs::read_dir(directory).ok()?;
        files.filter_map(|file| file.ok()?.metadata().ok()?.modified().ok()).max()
    };
    let ahead = config
        .data
        .as_ref()
        .and_then(written)
        .and_then(|latest| latest.duration_since(SystemTime::now()).ok())
        .filter(|ahead| *ahead > TOLERANCE);
    match ahead {
        None => Finding::good("clock", "The clock is not behind what was written."),
        Some(ahead) => Finding::wrong(
            "clock",
            format!(
                "The clock is {} s behind the last write to the data directory. Set it right; deadlines depend on it.",
                ahead.as_secs()
            ),
        ),
    }
}

/// Whether a screen reader runs, as far as this system tells.
pub(super) fn screen_reader() -> Finding {
    match running(&["orca", "fenrir", "speakup", "espeakup"]) {
        Some(name) => Finding::good("screen reader", format!("{name} runs.")),
        None => Finding::missing(
            "screen reader",
            "No screen reader is seen to run. `aaep listen --speak` speaks without one.",
        ),
    }
}

/// Whether something can speak.
pub(super) fn speech() -> Finding {
    let programs = if cfg!(target_os = "macos") {
        ["say", "espeak-ng"]
    } else {
        ["speech-dispatcher", "espeak-ng"]
    };
    let found = programs.into_iter().find(|name| on_path(name));
    match found {
        Some(name) => Finding::good("speech", format!("{name} can speak.")),
        None if cfg!(windows) => Finding::good("speech", "Windows can speak."),
        None => Finding::missing(
            "speech",
            "Nothing here can speak. Install speech-dispatcher or espeak-ng for `aaep listen --speak`.",
        ),
    }
}

/// Whether a braille display can be reached.
#[allow(clippy::disallowed_types)] // looks whether somebody listens
pub(super) fn braille() -> Finding {
    let host = std::env::var("BRLAPI_HOST").unwrap_or_else(|_| ":0".into());
    let Some(address) = Address::parse(&host) else {
        return Finding::wrong(
            "braille",
            format!("BRLAPI_HOST is {host}, which is no address. Write HOST:N, or :N."),
        );
    };
    let (place, reached) = match &address {
        #[cfg(unix)]
        Address::Unix(path) => {
            let reached = std::os::unix::net::UnixStream::connect(path).is_ok();
            (path.display().to_string(), reached)
        }
        Address::Tcp(place) => (place.clone(), std::net::TcpStream::connect(place).is_ok()),
    };
    if reached {
        Finding::good("braille", format!("BRLTTY answers at {place}."))
    } else {
        Finding::missing(
            "braille",
            format!(
                "BRLTTY does not answer at {place}. `aaep listen --braille` needs it: install and start brltty."
            ),
        )
    }
}

fn on_path(name: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|directory| directory.join(name).is_file())
}

/// The first of these programs that runs.
fn running<'n>(names: &[&'n str]) -> Option<&'n str> {
    let processes = fs::read_dir("/proc").ok()?;
    let commands: Vec<String> = processes
        .filter_map(|process| fs::read_to_string(process.ok()?.path().join("comm")).ok())
        .collect();
    names.iter().copied().find(|name| commands.iter().any(|command| command.trim_end() == *name))
}
