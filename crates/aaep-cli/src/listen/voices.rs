//! The voices besides the terminal: speech, braille and the desktop.

use std::time::Duration;

use aaep_voice::braille::{BrailleDisplay, Event, Settings as BrailleSettings};
use aaep_voice::speech::{Command, Notice, Settings, Speaker};
use aaep_voice::utterance::Utterance;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

#[cfg(target_os = "linux")]
use super::notify::{DesktopNotification, DesktopNotifications};
use super::talk::{Output, Talk, Voice};

/// How long goodbye may take to be spoken.
const LAST_WORDS: Duration = Duration::from_secs(3);

/// What a voice tells.
pub(super) enum VoiceEvent {
    Speech(Notice),
    Braille(Event),
    /// Notifications cannot be shown any more.
    NotNotified(String),
}

pub(super) struct Voices {
    speaker: Option<Speaker>,
    display: Option<BrailleDisplay>,
    #[cfg(target_os = "linux")]
    notifications: Option<DesktopNotifications>,
    tell: UnboundedSender<VoiceEvent>,
    notes: UnboundedReceiver<VoiceEvent>,
    /// What was not handed on yet.
    commands: Vec<Command>,
    /// The request that is answered by keys, as the display knows it.
    focus: Option<u32>,
}

impl Voices {
    /// Starts what is wanted. The user must know at once if nothing can be heard.
    pub(super) fn start(
        speech: Option<Settings>,
        braille: Option<BrailleSettings>,
    ) -> Result<Self, String> {
        let (say, notes) = unbounded_channel();
        let (tell, shown) = (say.clone(), say.clone());
        let speaker = speech.map(|settings| {
            Speaker::start(
                settings,
                Box::new(move |notice| drop(say.send(VoiceEvent::Speech(notice)))),
            )
        });
        let display = braille.map(|settings| {
            BrailleDisplay::start(settings, move |event| {
                drop(shown.send(VoiceEvent::Braille(event)))
            })
        });
        let (speaker, display) = (speaker.transpose()?, display.transpose()?);
        Ok(Self {
            speaker,
            display,
            #[cfg(target_os = "linux")]
            notifications: None,
            tell,
            notes,
            commands: Vec::new(),
            focus: None,
        })
    }

    /// What a voice tells next; never, without one.
    pub(super) async fn note(&mut self) -> VoiceEvent {
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

    /// Says something that is only for ears: a display shows nothing for each character of a PIN.
    pub(super) fn speak(&self, utterance: Utterance) {
        if let Some(speaker) = &self.speaker {
            speaker.send(vec![Command::Say(utterance)]);
        }
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

    /// What is typed answers this request now: the display shows the same one.
    pub(super) fn focus(&mut self, focus: Option<u32>) {
        if self.focus != focus
            && let (Some(display), Some(number)) = (&self.display, focus)
        {
            display.focus(number);
        }
        self.focus = focus;
    }

    /// Shows requests on the desktop from now on.
    #[cfg(target_os = "linux")]
    pub(super) async fn notify(&mut self) -> Result<(), String> {
        let tell = self.tell.clone();
        let fault = move |why| drop(tell.send(VoiceEvent::NotNotified(why)));
        self.notifications = Some(DesktopNotifications::start(fault).await?);
        Ok(())
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) async fn notify(&mut self) -> Result<(), String> {
        Err("Notifications are shown on Linux only, so far. Leave out --notify.".into())
    }

    /// A request waits, and is shown for as long as it does.
    pub(super) fn waits(&mut self, talk: &Talk, number: u32) {
        if let (Some(display), Some(question)) = (&self.display, talk.on_display(number)) {
            display.ask(question);
            // It may be the one in focus, and stands behind the others now.
            self.focus = None;
        }
        #[cfg(target_os = "linux")]
        if let (Some(desktop), Some((title, body))) = (&self.notifications, talk.noted(number)) {
            desktop.show(number, DesktopNotification { title, body });
        }
    }

    /// It no longer does.
    #[cfg(target_os = "linux")]
    pub(super) fn no_longer_waits(&self, number: u32) {
        if let Some(desktop) = &self.notifications {
            desktop.close(number);
        }
    }

    #[cfg(not(target_os = "linux"))]
    pub(super) fn no_longer_waits(&self, _number: u32) {}

    /// Ends, after the last words.
    pub(super) fn close(&mut self) {
        self.display = None;
        if let Some(speaker) = self.speaker.take() {
            speaker.close(LAST_WORDS);
        }
    }
}
