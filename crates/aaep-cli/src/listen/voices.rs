//! The voices besides the terminal: speech.

use std::time::Duration;

use aaep_voice::speech::{Command, Notice, Settings, Speaker};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::talk::{Output, Voice};

/// How long goodbye may take to be spoken.
const LAST_WORDS: Duration = Duration::from_secs(3);

pub(super) struct Voices {
    speaker: Option<Speaker>,
    notices: UnboundedReceiver<Notice>,
    /// What was not handed on yet.
    commands: Vec<Command>,
}

impl Voices {
    /// Starts what is wanted. Whoever wants to hear must know at once that nothing can be heard.
    pub(super) fn start(speech: Option<Settings>) -> Result<Self, String> {
        let (say, notices) = unbounded_channel();
        let start =
            |settings| Speaker::start(settings, Box::new(move |notice| drop(say.send(notice))));
        let speaker = speech.map(start).transpose()?;
        Ok(Self { speaker, notices, commands: Vec::new() })
    }

    /// The next notice of a voice; never, without one.
    pub(super) async fn notice(&mut self) -> Notice {
        match self.notices.recv().await {
            Some(notice) => notice,
            None => std::future::pending().await,
        }
    }

    /// Takes what concerns a voice.
    pub(super) fn take(&mut self, output: &Output) {
        if self.speaker.is_none() {
            return;
        }
        let command = match output {
            Output::Say(utterance) => Command::Say(utterance.clone()),
            Output::Waits(number) => Command::Asked(*number),
            Output::NoLongerWaits(number) => Command::Settled(*number),
            Output::Voice(Voice::Interrupt) => Command::Interrupt,
            Output::Voice(Voice::Silence) => Command::Silence,
            Output::Voice(Voice::Skip) => Command::Skip,
            Output::Voice(Voice::Pause) => Command::Pause,
            _ => return,
        };
        self.commands.push(command);
    }

    /// Hands everything on at once, so that what belongs together is spoken together.
    pub(super) fn flush(&mut self) {
        let commands = std::mem::take(&mut self.commands);
        if let Some(speaker) = self.speaker.as_ref().filter(|_| !commands.is_empty()) {
            speaker.send(commands);
        }
    }

    /// Ends, after the last words.
    pub(super) fn close(&mut self) {
        if let Some(speaker) = self.speaker.take() {
            speaker.close(LAST_WORDS);
        }
    }
}
