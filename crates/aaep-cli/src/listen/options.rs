//! What can be typed behind `aaep listen`.

use std::path::PathBuf;

use aaep_types::{Level, Verbosity};
use clap::{Args, ValueEnum};

use super::talk::{By, SecondStep};

/// Hear agents and answer them, from a terminal.
///
/// Plain lines, one after the other: nothing is drawn over, nothing blinks.
/// Each request is said once, and can be heard again.
#[derive(Args, Debug)]
#[command(after_help = "\
Keys: y yes, n no, a answer, r repeat, d details, c spell, l list, Tab next, t more time,
w what is it doing, s silence, p read, x stop the agent, ? help, q quit.
With --line, and where standard input is no terminal, words are typed instead: yes, no, list, help.

The hubs are those named here, else AAEP_URL, else the one on this machine.
The token is in --token-file, else in AAEP_TOKEN, else in the file AAEP_TOKEN_FILE.

It ends with 0; with 1 if --once ends without an answer, or with an error of the agent;
with 2 if it cannot listen.

Examples:
  aaep listen
  aaep listen --output end --sound-command /usr/local/bin/chime
  aaep listen --once --json
See docs/listening.md.")]
pub(crate) struct ListenOptions {
    /// A hub. May be given several times.
    #[arg(value_name = "URL")]
    pub(crate) hubs: Vec<String>,
    /// A file with your token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Type words and Enter rather than single keys.
    #[arg(long)]
    pub(crate) line: bool,
    /// When the agent's text is read.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) output: By,
    /// Say only requests, endings and trouble.
    #[arg(long)]
    pub(crate) quiet: bool,
    /// Which yes has to be typed out as a second step.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) second_step: SecondStep,
    /// Milliseconds after a request in which keys do not answer it. Without it: 500 in a terminal.
    #[arg(long, value_name = "MILLISECONDS")]
    pub(crate) pause: Option<u64>,
    /// Answer by the rules in this file, which are your own.
    #[arg(long, value_name = "FILE")]
    pub(crate) policy: Option<PathBuf>,
    /// What is heard besides words.
    #[arg(long, value_enum, default_value_t)]
    pub(crate) sound: SoundKind,
    /// Run this for each sound, with blocked, done or error behind it.
    #[arg(long, value_name = "COMMAND", conflicts_with = "sound")]
    pub(crate) sound_command: Option<PathBuf>,
    /// Write everything that is said into this file too, with the time.
    #[arg(long, value_name = "FILE")]
    pub(crate) transcript: Option<PathBuf>,
    /// End when the first request is settled, or the first session has ended.
    #[arg(long)]
    pub(crate) once: bool,
    /// Print JSON Lines, and take answers as JSON Lines too.
    #[arg(long)]
    pub(crate) json: bool,
    /// Your languages, such as ar or zh-CN, the first first. Without it: the one of the system.
    #[arg(long, value_name = "LANGUAGE", value_delimiter = ',')]
    pub(crate) language: Vec<String>,
    /// How much is said.
    #[arg(long, value_parser = |word: &str| Verbosity::parse(word), default_value = "normal")]
    pub(crate) verbosity: Verbosity,
    /// How burdened you are now: low, medium or high. With high, less is said at a time.
    #[arg(long, value_parser = |word: &str| Level::parse(word), default_value = "medium")]
    pub(crate) load: Level,
    /// At most so many messages a second; requests and errors come all the same.
    #[arg(long, value_name = "MESSAGES")]
    pub(crate) rate: Option<u32>,
}

/// What is heard besides words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SoundKind {
    /// The terminal's bell: once for a request, twice for done, three times for an error.
    #[default]
    Bell,
    Off,
}
