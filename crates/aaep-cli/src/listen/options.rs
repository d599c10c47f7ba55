//! What can be typed behind `aaep listen`.

use std::path::PathBuf;

use aaep_types::{Level, Verbosity};
use aaep_voice::braille::Settings as BrailleSettings;
use aaep_voice::speech::{Punctuation, Settings, SpeechEngine, Spelling, VoiceName};
use clap::{Args, ValueEnum};

use super::talk::{By, SecondStep};

/// Which hubs to go to, and what to show them.
#[derive(Args, Debug, Default)]
pub(crate) struct HubsOptions {
    /// A hub. May be given several times. Without any: those on this machine.
    #[arg(value_name = "URL")]
    pub(crate) urls: Vec<String>,
    /// A file with your token.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Certificates (PEM) to trust beside those of this machine, for a hub that signed its own.
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,
    /// A certificate (PEM) to show to hubs that ask for one, with the rest of its chain.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<PathBuf>,
    /// Its private key (PEM).
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<PathBuf>,
    /// Believe whatever listens on a loopback address. Any user of this machine can then pass for it.
    #[arg(long)]
    pub(crate) trust_loopback: bool,
}

/// Hear agents and answer them, from a terminal.
///
/// Plain lines, one after the other: nothing is drawn over, nothing blinks.
/// Each request is said once, and can be heard again.
#[derive(Args, Debug)]
#[command(after_help = "\
Keys: y yes, n no, a answer, r repeat, d details, c spell, l list, Tab next, t more time,
w what is it doing, s silence, p read, x stop the agent, ? help, q quit.
With --speak: f skip a sentence, z pause.
With --line, and where standard input is no terminal, words are typed instead: yes, no, list, help.

The hubs are those named here, else AAEP_URL, else the one on this machine.
The token is in --token-file, else in AAEP_TOKEN, else in the file AAEP_TOKEN_FILE; else it is that of
your `aaep login`.

It ends with 0; with 1 if --once ends without an answer, or with an error of the agent;
with 2 if it cannot listen.

Examples:
  aaep listen
  aaep listen --output end --sound-command /usr/local/bin/chime
  aaep listen --once --json
  aaep listen --speak --speech-rate 40
  aaep listen --braille
  aaep listen --sounds --notify
  aaep listen --scan=4
See docs/listening.md.")]
pub(crate) struct ListenOptions {
    #[command(flatten)]
    pub(crate) hubs: HubsOptions,
    /// Listen only to hubs that sign their manifest.
    #[arg(long)]
    pub(crate) signed: bool,
    /// Believe only signatures with the keys in this file, a JWK set. Without it: the first key that a hub
    /// shows is remembered.
    #[arg(long, value_name = "FILE")]
    pub(crate) signers: Option<PathBuf>,
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
    #[arg(long, value_enum, default_value_t, env = "AAEP_SOUND")]
    pub(crate) sound: SoundKind,
    /// Tones that differ by what they mean: the same as --sound tones.
    #[arg(long, conflicts_with_all = ["sound", "sound_command"])]
    pub(crate) sounds: bool,
    /// Run this for each sound, with blocked, waiting, done or error behind it.
    #[arg(long, value_name = "COMMAND", conflicts_with = "sound")]
    pub(crate) sound_command: Option<PathBuf>,
    /// Speak, without a screen reader.
    #[arg(long, value_enum, value_name = "ENGINE", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "auto", env = "AAEP_SPEAK")]
    pub(crate) speak: Option<Speak>,
    /// How fast, from -100 to 100.
    #[arg(long, value_name = "RATE", env = "AAEP_SPEECH_RATE", allow_negative_numbers = true)]
    #[arg(value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub(crate) speech_rate: Option<i8>,
    /// The name of a voice, as the synthesizer knows it.
    #[arg(long, value_name = "NAME", env = "AAEP_SPEECH_VOICE", value_parser = VoiceName::parse)]
    pub(crate) speech_voice: Option<VoiceName>,
    /// How much punctuation is spoken: none, some, most or all.
    #[arg(long, value_name = "HOW MUCH", env = "AAEP_SPEECH_PUNCTUATION")]
    pub(crate) speech_punctuation: Option<Punctuation>,
    /// Which of the agent's words are spelled: none, codes (letters and digits in one), or all.
    #[arg(long, value_name = "WHICH", env = "AAEP_SPEECH_SPELLING", default_value = "none")]
    pub(crate) speech_spelling: Spelling,
    /// How much lower or higher the agent's own words are spoken, from -100 to 100.
    #[arg(long, value_name = "PITCH", env = "AAEP_AGENT_PITCH", default_value = "-25")]
    #[arg(allow_negative_numbers = true, value_parser = clap::value_parser!(i8).range(-100..=100))]
    pub(crate) agent_pitch: i8,
    /// Write braille, through BRLTTY. HOST is an address as BRLAPI_HOST has it.
    #[arg(long, value_name = "HOST", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "", env = "AAEP_BRAILLE")]
    pub(crate) braille: Option<String>,
    /// Show each request as a notification of the desktop. It cannot be answered there.
    #[arg(long)]
    pub(crate) notify: bool,
    /// One key for everything: what can be chosen is offered, so many seconds each.
    #[arg(long, value_name = "SECONDS", num_args = 0..=1, require_equals = true)]
    #[arg(default_missing_value = "3", env = "AAEP_SCAN", conflicts_with_all = ["line", "json"])]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=60))]
    pub(crate) scan: Option<u16>,
    /// For text that comes from speech recognition: whole lines, and nothing counts as a yes but the
    /// word alone, twice.
    #[arg(long, conflicts_with_all = ["scan", "json"])]
    pub(crate) dictation: bool,
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

/// What speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Speak {
    /// The first of these that there is.
    Auto,
    /// Speech Dispatcher. It is started where it is not running.
    SpeechDispatcher,
    /// espeak-ng, without a server.
    EspeakNg,
    /// say, as macOS has it.
    Say,
    /// SAPI of Windows, through PowerShell.
    Sapi,
    /// What the system has: say on macOS, SAPI on Windows.
    System,
}

impl ListenOptions {
    /// Where the braille display is, if it is wanted.
    pub(crate) fn braille(&self, pause_ms: u64) -> Option<BrailleSettings> {
        let host = self.braille.clone()?;
        let host = Some(host).filter(|host| !host.is_empty());
        Some(BrailleSettings { host, pause_ms, ..BrailleSettings::default() })
    }

    /// How to speak, if it is wanted.
    pub(crate) fn speech(&self, language: &str) -> Option<Settings> {
        let engine = match self.speak? {
            Speak::Auto => SpeechEngine::Auto,
            Speak::SpeechDispatcher => SpeechEngine::SpeechDispatcher,
            Speak::EspeakNg => SpeechEngine::Espeak,
            Speak::Say => SpeechEngine::Say,
            Speak::Sapi => SpeechEngine::Sapi,
            Speak::System => SpeechEngine::System,
        };
        Some(Settings {
            engine,
            rate: self.speech_rate,
            voice: self.speech_voice.clone(),
            punctuation: self.speech_punctuation,
            spelling: self.speech_spelling,
            agent_pitch: self.agent_pitch,
            language: language.to_owned(),
            ..Settings::default()
        })
    }
}

/// What is heard besides words.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum SoundKind {
    /// The terminal's bell: once for a request, twice for done, three times for an error, four times
    /// when a request's time runs out.
    #[default]
    Bell,
    /// Tones that differ by meaning: a request rises, an end falls, an error is low, time that runs
    /// out knocks.
    Tones,
    Off,
}
