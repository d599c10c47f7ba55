//! `aaep listen`: hear agents and answer them, from a terminal. Plain lines, one after the other.

mod ears;
mod json;
mod keyboard;
#[cfg(target_os = "linux")]
mod notify;
mod options;
mod pin;
mod printer;
mod shell;
mod sound;
mod source;
mod standing;
mod talk;
mod terminal;
mod tones;
mod transcript;
mod voices;
mod wrap;

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use aaep_subscriber::words::{Manner, Words};
use aaep_types::Level;
use tokio::sync::{mpsc, oneshot};

use crate::exit::{self, Exit};
use crate::signals::Signals;
use ears::Ears;
use keyboard::Keyboard;
use printer::Printer;
use shell::Shell;
use sound::Sounds;
use standing::StandingRules;
use talk::{Settings, Talk};
use terminal::Terminal;
use transcript::Transcript;
use voices::Voices;

pub(crate) use ears::{hubs, reachable};
use options::SoundKind;
pub(crate) use options::{HubsOptions, ListenOptions};

/// Milliseconds after a request in which a terminal's keys do not answer it: nobody hears faster.
const PAUSE_MS: u64 = 500;

/// How long the last words of an agent that is gone may take to arrive.
const LAST_WORDS: Duration = Duration::from_secs(1);

/// How long goodbye may take.
const GOODBYE: Duration = Duration::from_secs(3);

pub(crate) fn run(options: &ListenOptions, out: &mut impl Write) -> io::Result<Exit> {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let ended = runtime.block_on(listen(options, out, None));
    terminal::restore();
    // A thread may still wait for a key.
    runtime.shutdown_background();
    match ended {
        Ok(exit) => exit,
        Err(why) => {
            exit::say(&why);
            Ok(Exit::Unable)
        }
    }
}

/// Where words for an agent go, from a terminal that is its own.
pub(crate) struct Prompts {
    /// What the person wants; none once nothing more can be typed.
    wish: Option<mpsc::Sender<String>>,
    /// Resolves when the agent is gone.
    ended: Option<oneshot::Receiver<()>>,
    /// Until then what is on its way is heard.
    leaves: Option<tokio::time::Instant>,
}

impl Prompts {
    pub(crate) fn new(wish: mpsc::Sender<String>, ended: oneshot::Receiver<()>) -> Self {
        Self { wish: Some(wish), ended: Some(ended), leaves: None }
    }

    /// Waits until the agent is gone, and its last words had time to arrive; true if it has done all
    /// that was wanted. May be given up and called again.
    async fn gone(&mut self) -> bool {
        if let Some(ended) = &mut self.ended {
            let _ = ended.await;
            self.ended = None;
            self.leaves = Some(tokio::time::Instant::now() + LAST_WORDS);
        }
        if let Some(leaves) = self.leaves {
            tokio::time::sleep_until(leaves).await;
        }
        self.wish.is_none()
    }
}

/// Listens, and hands what is typed to an agent, where it answers nothing.
pub(crate) async fn with_prompts(
    options: &ListenOptions,
    out: &mut impl Write,
    prompts: Prompts,
) -> Result<io::Result<Exit>, String> {
    let ended = listen(options, out, Some(prompts)).await;
    terminal::restore();
    ended
}

/// Everything that can be wrong is found before anything is said.
async fn listen(
    options: &ListenOptions,
    out: &mut impl Write,
    prompts: Option<Prompts>,
) -> Result<io::Result<Exit>, String> {
    let signals = Signals::new().map_err(|fault| fault.to_string())?;
    let standing = options.policy.as_deref().map(StandingRules::load).transpose()?;
    let transcript = options.transcript.as_deref().map(Transcript::open).transpose()?;
    let languages = languages(&options.language);
    let words = Words::new(&languages.iter().map(String::as_str).collect::<Vec<_>>());
    let pause_ms = options.pause.unwrap_or(PAUSE_MS);
    let mut voices = Voices::start(options.speech(words.language()), options.braille(pause_ms))?;
    if options.notify {
        voices.notify().await?;
    }
    let ears = Ears::new(options, &languages)?;
    let terminal = Terminal::new();
    let by_line = options.line || options.dictation || options.json || !terminal.has_keys();
    let settings = Settings {
        manner: Manner { verbosity: options.verbosity, load: options.load, ..Manner::default() },
        by: options.output,
        quiet: options.quiet,
        second_step: options.second_step,
        lines: by_line,
        once: options.once,
        pause_ms: options.pause.unwrap_or(if terminal.is_terminal() { PAUSE_MS } else { 0 }),
        standing,
        for_program: options.json,
        scan_ms: options.scan.map(|seconds| u64::from(seconds) * 1000),
        dictation: options.dictation,
    };
    let sounds = sounds(options)?;
    let mut talk = Talk::new(words, settings);
    if let Some(player) = sounds.player() {
        talk.sounds_by(&player);
    }
    if let Some(file) = &options.policy {
        talk.rules_in_force(&file.display().to_string());
    }
    terminal::restore_on_panic();
    if terminal.is_terminal()
        && options.hubs.urls.is_empty()
        && let Some(missing) = crate::presence::missing()
    {
        exit::say(&missing);
    }
    let mut shell = Shell {
        talk,
        ears,
        printer: Printer::new(out, !options.json && terminal.columns().is_some()),
        json: options.json,
        terminal,
        keyboard: Keyboard::start(),
        sounds,
        voices,
        transcript,
        pin: None,
        prompts,
    };
    let ended = shell.listen(signals).await;
    let _ = shell.printer.end_line().and_then(|()| shell.printer.flush());
    // enforces: H26
    let _ = tokio::time::timeout(GOODBYE, shell.ears.close()).await;
    shell.voices.close();
    Ok(ended)
}

fn sounds(options: &ListenOptions) -> Result<Sounds, String> {
    Ok(match (&options.sound_command, options.sound) {
        (Some(program), _) => Sounds::command(program.clone()),
        _ if options.sounds => Sounds::tones()?,
        (None, SoundKind::Tones) => Sounds::tones()?,
        // A bell in a file or a pipe is no sound.
        (None, SoundKind::Bell) if io::stdout().is_terminal() && !options.json => Sounds::bell(),
        _ => Sounds::Off,
    })
}

/// Those that were named, else the one of the system, such as `ar_EG.UTF-8`; English at last.
pub(crate) fn languages(named: &[String]) -> Vec<String> {
    if !named.is_empty() {
        return named.to_vec();
    }
    let variables = ["LC_ALL", "LC_MESSAGES", "LANG"];
    let set = variables.iter().filter_map(|name| std::env::var(name).ok());
    let locale = set.into_iter().find(|value| !value.is_empty()).unwrap_or_default();
    let tag = locale.split(['.', '@']).next().unwrap_or_default().replace('_', "-");
    match tag.as_str() {
        "" | "C" | "POSIX" => vec!["en".into()],
        _ => vec![tag, "en".into()],
    }
}

/// What is negotiated: under a high load people want to hear less.
fn wanted(load: Level) -> Level {
    match load {
        Level::Low => Level::High,
        Level::Medium => Level::Medium,
        Level::High => Level::Low,
    }
}
