//! The voices besides the terminal: speech and braille.

use std::time::Duration;

use aaep_voice::braille::{Display, Event, Question, Settings as BrailleSettings};
use aaep_voice::speech::{Command, Notice, Settings, Speaker};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use super::talk::{Output, Voice};

/// How long goodbye may take to be spoken.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What a voice tells.
pub(super) enum Note {
    Speech(Notice),
    Braille(Event),
}

pub(super) struct Voices {
    speaker: Option<Speaker>,
    display: Option<Display>,
    notes: UnboundedReceiver<Note>,
    /// What was not handed on yet.
    commands: Vec<Command>,
}

impl Voices {
    /// Starts what is wanted. Whoever wants to hear must know at once that nothing can be heard.
    pub(super) fn start(
        speech: Option<Settings>,
        braille: Option<BrailleSettings>,
    ) -> Result<Self, String> {
        let (say, notes) = unbounded_channel();
        let tell = say.clone();
        let speaker = speech.map(|settings| {
            Speaker::start(settings, Box::new(move |notice| drop(say.send(Note::Speech(notice)))))
        });
        let display = braille.map(|settings| {
            Display::start(settings, move |event| drop(tell.send(Note::Braille(event))))
        });
        let (speaker, display) = (speaker.transpose()?, display.transpose()?);
        Ok(Self { speaker, display, notes, commands: Vec::new() })
    }

    /// What a voice tells next; never, without one.
    pub(super) async fn note(&mut self) -> Note {
        match self.notes.recv().await {
            Some(note) => note,
            None => std::future::pending().await,
        }
    }

    /// Takes what concerns a voice.
    pub(super) fn take(&mut self, output: &Output) {
        if self.speaker.is_none() && self.display.is_none() {
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
        if commands.is_empty() {
            return;
        }
        if let Some(display) = &self.display {
            display.send(commands.clone());
        }
        if let Some(speaker) = &self.speaker {
            speaker.send(commands);
        }
    }

    pub(super) fn has_display(&self) -> bool {
        self.display.is_some()
    }

    /// A question for the display.
    pub(super) fn ask(&self, question: Question) {
        if let Some(display) = &self.display {
            display.ask(question);
        }
    }

    /// Ends, after the last words.
    pub(super) fn close(&mut self) {
        self.display = None;
        if let Some(speaker) = self.speaker.take() {
            speaker.close(LAST_WORDS);
        }
    }
}
