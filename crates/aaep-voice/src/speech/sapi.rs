//! SAPI of Windows, through PowerShell. Compiled there only, and not run by the project's tests.

use std::io;
use std::process::Command;

use super::espeak::Children;
use super::{Reporter, Settings, Synthesizer};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

/// SAPI, with the text on the standard input of a script that is always the same.
pub struct Sapi {
    children: Children,
}

impl Sapi {
    /// Speaks with the rate of the settings and the voice of the system.
    pub fn open(settings: &Settings, reporter: Reporter) -> Result<Self, String> {
        let rate = i32::from(settings.rate.unwrap_or(0).clamp(-100, 100)) / 10;
        let script = format!(
            "Add-Type -AssemblyName System.Speech; \
             [Console]::InputEncoding = [Text.Encoding]::UTF8; \
             $voice = New-Object System.Speech.Synthesis.SpeechSynthesizer; \
             $voice.Rate = {rate}; $voice.Speak([Console]::In.ReadToEnd())"
        );
        let command = move |_: &Part| {
            let mut command = Command::new("powershell.exe");
            command.args(["-NoProfile", "-NonInteractive", "-Command", &script]);
            command
        };
        Ok(Self { children: Children::start(Box::new(command), reporter) })
    }
}

impl Synthesizer for Sapi {
    fn speak(&mut self, id: Id, _class: Class, parts: &[Part]) -> io::Result<()> {
        self.children.speak(id, parts)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.children.stop();
        Ok(())
    }
}
