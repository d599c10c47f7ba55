//! Speech: synthesizers behind one trait, and the thread that drives one by the policy.

mod children;
mod espeak;
mod sapi;
mod say;
mod speaker;
mod spelling;
#[cfg(unix)]
pub mod ssip;

use std::borrow::Cow;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use crate::announcer::Id;
use crate::utterance::{Class, Part};

pub use espeak::Espeak;
pub use sapi::Sapi;
pub use say::Say;
pub use speaker::{Command, Notice, Notices, Speaker};
pub use spelling::Spelling;
#[cfg(unix)]
pub use ssip::Ssip;

/// Something that turns text into speech.
///
/// [`Self::speak`] returns as soon as speaking has begun or is queued; what becomes of it is
/// reported as [`Event`]s to the [`Reporter`] that the synthesizer was opened with. A failed call
/// means that the synthesizer is gone and has to be opened again.
pub trait Synthesizer: Send {
    /// Speaks the parts one after the other, as one piece.
    fn speak(&mut self, id: Id, class: Class, parts: &[Part]) -> io::Result<()>;

    /// Stops at once, and forgets what it was given.
    fn stop(&mut self) -> io::Result<()>;
}

/// What a synthesizer reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// This part is being spoken now.
    Part {
        /// Of which utterance.
        id: Id,
        /// Which one.
        index: usize,
        /// Of how many.
        count: usize,
    },
    /// Everything was spoken.
    Spoken(Id),
    /// Somebody else stopped it.
    Cut(Id),
    /// The synthesizer is gone.
    Lost,
}

/// Takes the events of a synthesizer, from any thread.
pub type Reporter = Arc<dyn Fn(Event) + Send + Sync>;

/// Which synthesizer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SpeechEngine {
    /// The first of these that there is: Speech Dispatcher, what the system has of its own, espeak-ng.
    #[default]
    Auto,
    /// Speech Dispatcher.
    SpeechDispatcher,
    /// espeak-ng, run directly.
    Espeak,
    /// `say`, as macOS has it.
    Say,
    /// SAPI of Windows, through PowerShell; from Linux inside Windows, too.
    Sapi,
    /// What the system has of its own: `say` on macOS, SAPI on Windows.
    System,
}

/// How much punctuation is spoken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Punctuation {
    /// None.
    None,
    /// Some.
    Some,
    /// Most.
    Most,
    /// All.
    All,
}

impl Punctuation {
    /// Its word, as SSIP and espeak-ng have it.
    pub fn as_str(self) -> &'static str {
        match self {
            Punctuation::None => "none",
            Punctuation::Some => "some",
            Punctuation::Most => "most",
            Punctuation::All => "all",
        }
    }
}

impl FromStr for Punctuation {
    type Err = &'static str;

    fn from_str(word: &str) -> Result<Self, Self::Err> {
        [Self::None, Self::Some, Self::Most, Self::All]
            .into_iter()
            .find(|one| one.as_str() == word)
            .ok_or("it is one of none, some, most, all")
    }
}

/// How it is spoken. What is not set stays as the synthesizer has it.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The synthesizer.
    pub engine: SpeechEngine,
    /// From -100, the slowest, to 100, the fastest.
    pub rate: Option<i8>,
    /// The name of a voice, as the synthesizer knows it.
    pub voice: Option<VoiceName>,
    /// How much punctuation is spoken.
    pub punctuation: Option<Punctuation>,
    /// Which of the agent's words are spelled.
    pub spelling: Spelling,
    /// How much lower or higher the agent's words are spoken than ours, so that it is heard whose
    /// they are.
    pub agent_pitch: i8,
    /// The language of our words.
    pub language: String,
    /// Where Speech Dispatcher listens, as `SPEECHD_ADDRESS` has it; without it, what that variable
    /// says, else the user's own server, which is started where it is not running.
    pub speechd_address: Option<String>,
    /// The program that is run as espeak-ng.
    pub espeak_program: PathBuf,
    /// The program that is run as `say`.
    pub say_program: PathBuf,
    /// The program that is run as PowerShell.
    pub powershell_program: PathBuf,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            engine: SpeechEngine::Auto,
            rate: None,
            voice: None,
            punctuation: None,
            spelling: Spelling::None,
            agent_pitch: -25,
            language: "en".into(),
            speechd_address: None,
            espeak_program: "espeak-ng".into(),
            say_program: "say".into(),
            powershell_program: "powershell.exe".into(),
        }
    }
}

/// The name of a voice: printable characters, at most 100.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoiceName(String);

impl VoiceName {
    /// Reads a name.
    pub fn parse(name: &str) -> Result<Self, &'static str> {
        let name = name.trim();
        let fits = !name.is_empty() && name.chars().count() <= 100;
        // A name that begins with a hyphen would be an option on a command line.
        let plain = !name.contains(char::is_control) && !name.starts_with('-');
        if fits && plain { Ok(Self(name.to_owned())) } else { Err("it is not the name of a voice") }
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A language tag that is safe to put into a command: letters, digits and hyphens.
pub(crate) fn plain_tag(tag: &str) -> Option<&str> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'-';
    let fits = (2..=35).contains(&tag.len()) && !tag.starts_with('-');
    (fits && tag.bytes().all(plain)).then_some(tag)
}

/// The text as one line: control characters and line breaks become spaces.
pub(crate) fn single_line(text: &str) -> Cow<'_, str> {
    let breaks = |sign: char| sign.is_control() || matches!(sign, '\u{2028}' | '\u{2029}');
    if !text.contains(breaks) {
        return Cow::Borrowed(text);
    }
    Cow::Owned(text.chars().map(|sign| if breaks(sign) { ' ' } else { sign }).collect())
}

/// Opens the synthesizer that the settings name.
pub fn open(settings: &Settings, reporter: Reporter) -> Result<Box<dyn Synthesizer>, String> {
    let dispatcher = || dispatcher(settings, reporter.clone());
    let espeak = || boxed(Espeak::open(settings, reporter.clone()));
    let say = || boxed(Say::open(settings, reporter.clone()));
    let sapi = || boxed(Sapi::open(settings, reporter.clone()));
    let system = || match () {
        () if cfg!(target_os = "macos") => say(),
        () if cfg!(windows) => sapi(),
        () => Err("This system has no speech of its own.".into()),
    };
    match settings.engine {
        SpeechEngine::SpeechDispatcher => dispatcher(),
        SpeechEngine::Espeak => espeak(),
        SpeechEngine::Say => say(),
        SpeechEngine::Sapi => sapi(),
        SpeechEngine::System => system(),
        SpeechEngine::Auto => dispatcher().or_else(|first| {
            system().or_else(|_| espeak()).map_err(|last| {
                format!("{first} {last} Install speech-dispatcher or espeak-ng to hear speech.")
            })
        }),
    }
}

fn boxed<S: Synthesizer + 'static>(
    opened: Result<S, String>,
) -> Result<Box<dyn Synthesizer>, String> {
    Ok(Box::new(opened?))
}

#[cfg(unix)]
fn dispatcher(settings: &Settings, reporter: Reporter) -> Result<Box<dyn Synthesizer>, String> {
    Ok(Box::new(Ssip::open(settings, reporter)?))
}

#[cfg(not(unix))]
fn dispatcher(_: &Settings, _: Reporter) -> Result<Box<dyn Synthesizer>, String> {
    Err("Speech Dispatcher is for Unix.".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_goes_into_commands_is_checked() {
        assert_eq!(plain_tag("zh-Hant-TW"), Some("zh-Hant-TW"));
        for tag in ["", "e", "en\r\nSTOP ALL", "en us", "-en", &"a".repeat(36)] {
            assert_eq!(plain_tag(tag), None, "{tag:?}");
        }
        assert!(VoiceName::parse("English (America)+Annie").is_ok());
        for name in ["", "x\r\nSTOP ALL", "-w/tmp/x", &"x".repeat(101)] {
            assert!(VoiceName::parse(name).is_err(), "{name:?}");
        }
        assert_eq!("most".parse(), Ok(Punctuation::Most));
        assert!("much".parse::<Punctuation>().is_err());
    }
}
