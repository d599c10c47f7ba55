//! `say` of macOS. Compiled there only, and not run by the project's tests.

use std::io;
use std::process::Command;

use super::espeak::Children;
use super::{Reporter, Settings, Synthesizer};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

/// `say`, with its text on standard input.
pub struct Say {
    children: Children,
}

impl Say {
    /// Speaks with the voice and the rate of the settings, else with those of the system.
    pub fn open(settings: &Settings, reporter: Reporter) -> Result<Self, String> {
        let settings = settings.clone();
        let command = move |_: &Part| {
            let mut command = Command::new("/usr/bin/say");
            command.args(["-f", "-"]);
            if let Some(voice) = &settings.voice {
                command.arg("-v").arg(voice.as_str());
            }
            if let Some(rate) = settings.rate {
                let rate = i32::from(rate.clamp(-100, 100));
                let words = if rate < 0 { 175 + rate * 95 / 100 } else { 175 + rate * 275 / 100 };
                command.arg("-r").arg(words.to_string());
            }
            command
        };
        Ok(Self { children: Children::start(Box::new(command), reporter) })
    }
}

impl Synthesizer for Say {
    fn speak(&mut self, id: Id, _class: Class, parts: &[Part]) -> io::Result<()> {
        self.children.speak(id, parts)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.children.stop();
        Ok(())
    }
}
