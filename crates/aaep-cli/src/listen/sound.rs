//! What is heard besides words: the terminal's bell, or a command of the user's own.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::talk::Sound;

/// Between two strokes of the bell, so that they can be told apart.
const STROKES_APART: Duration = Duration::from_millis(250);

/// Strokes that wait; a flood of sounds says no more than this.
const STROKES: usize = 8;

/// How long the user's command may run.
const COMMAND_RUNS: Duration = Duration::from_secs(10);

/// How many of them at once; further sounds are left out.
const COMMANDS: usize = 4;

/// How sounds are made.
pub(super) enum Sounds {
    Off,
    Bell { left: usize, next: Instant },
    Command { program: PathBuf, room: Arc<Semaphore> },
}

impl Sounds {
    pub(super) fn bell() -> Self {
        Sounds::Bell { left: 0, next: Instant::now() }
    }

    pub(super) fn command(program: PathBuf) -> Self {
        Sounds::Command { program, room: Arc::new(Semaphore::new(COMMANDS)) }
    }

    /// Makes a sound, soon; never waits for it.
    pub(super) fn make(&mut self, sound: Sound) {
        let (strokes, word) = match sound {
            Sound::Blocked => (1, "blocked"),
            Sound::Done => (2, "done"),
            Sound::Error => (3, "error"),
            Sound::Waiting => (4, "waiting"),
        };
        match self {
            Sounds::Off => {}
            Sounds::Bell { left, .. } => *left = (*left + strokes).min(STROKES),
            Sounds::Command { program, room } => {
                let Ok(place) = room.clone().try_acquire_owned() else { return };
                let mut command = Command::new(program);
                command.arg(word).kill_on_drop(true);
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
                // Whoever named a command that does not run hears words only.
                let Ok(mut child) = command.spawn() else { return };
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(COMMAND_RUNS, child.wait()).await;
                    drop(place);
                });
            }
        }
    }

    /// When the next stroke is due.
    pub(super) fn due(&self) -> Option<Instant> {
        match self {
            Sounds::Bell { left, next } if *left > 0 => Some(*next),
            _ => None,
        }
    }

    /// Takes the stroke that is due.
    pub(super) fn stroke(&mut self) -> bool {
        match self {
            Sounds::Bell { left, next } if *left > 0 && *next <= Instant::now() => {
                *left -= 1;
                *next = Instant::now() + STROKES_APART;
                true
            }
            _ => false,
        }
    }
}
