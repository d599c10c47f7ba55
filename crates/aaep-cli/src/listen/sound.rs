//! What is heard besides words: the terminal's bell, tones, or a command of the user's own.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::talk::Sound;
use super::tones;

/// Between two strokes of the bell, so that they can be told apart.
const STROKES_APART: Duration = Duration::from_millis(250);

/// Strokes that wait; a flood of sounds says no more than this.
const STROKES: usize = 8;

/// How long the user's command may run.
const COMMAND_RUNS: Duration = Duration::from_secs(10);

/// Programs that play samples from standard input, the first first, and how they are told what comes.
const PLAYERS: [(&str, &[&str]); 3] = [
    ("paplay", &["--raw", "--format=s16le", "--rate=22050", "--channels=1"]),
    ("aplay", &["-q", "-t", "raw", "-f", "S16_LE", "-r", "22050", "-c", "1", "-"]),
    ("play", &["-q", "-t", "raw", "-e", "signed", "-b", "16", "-r", "22050", "-c", "1", "-"]),
];

/// How many of them at once; further sounds are left out.
const COMMANDS: usize = 4;

/// How sounds are made.
pub(super) enum Sounds {
    Off,
    Bell { left: usize, next: Instant },
    Command { program: PathBuf, room: Arc<Semaphore> },
    Tones { player: PathBuf, arguments: &'static [&'static str], room: Arc<Semaphore> },
}

impl Sounds {
    pub(super) fn bell() -> Self {
        Sounds::Bell { left: 0, next: Instant::now() }
    }

    pub(super) fn command(program: PathBuf) -> Self {
        Sounds::Command { program, room: Arc::new(Semaphore::new(COMMANDS)) }
    }

    /// Tones, played by the first program that there is.
    pub(super) fn tones() -> Result<Self, String> {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let places: Vec<PathBuf> = std::env::split_paths(&path).collect();
        let found = PLAYERS.iter().find_map(|(name, arguments)| {
            let there = places.iter().map(|place| place.join(name)).find(|file| file.is_file());
            there.map(|player| (player, *arguments))
        });
        let Some((player, arguments)) = found else {
            return Err("Nothing here can play sounds: install paplay (pulseaudio-utils), aplay \
                        (alsa-utils) or play (sox), or use --sound bell."
                .into());
        };
        Ok(Sounds::Tones { player, arguments, room: Arc::new(Semaphore::new(COMMANDS)) })
    }

    /// The program that plays tones.
    pub(super) fn player(&self) -> Option<String> {
        match self {
            Sounds::Tones { player, .. } => Some(player.display().to_string()),
            _ => None,
        }
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
                let mut command = Command::new(program);
                command.arg(word).stdin(Stdio::null());
                start(command, room, Vec::new());
            }
            Sounds::Tones { player, arguments, room } => {
                let mut command = Command::new(player);
                command.args(*arguments).stdin(Stdio::piped());
                start(command, room, tones::samples(sound));
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

/// Runs a program beside everything else, with this as its input. A user who named one that does not run
/// hears words only.
fn start(mut command: Command, room: &Arc<Semaphore>, input: Vec<u8>) {
    let Ok(place) = room.clone().try_acquire_owned() else { return };
    command.stdout(Stdio::null()).stderr(Stdio::null()).kill_on_drop(true);
    let Ok(mut child) = command.spawn() else { return };
    tokio::spawn(async move {
        let runs = async {
            if let Some(mut stdin) = child.stdin.take() {
                let _ = stdin.write_all(&input).await;
            }
            let _ = child.wait().await;
        };
        let _ = tokio::time::timeout(COMMAND_RUNS, runs).await;
        drop(place);
    });
}
