//! SAPI of Windows, through `System.Speech` in PowerShell. The tests run it with a stand-in for
//! PowerShell; the real program was not run.

use std::io;
use std::process::{Command, Stdio};

use super::children::{Children, Spoken};
use super::{Reporter, Settings, Synthesizer, plain_tag};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

/// The script is always the same: what differs is in the environment, and the text on standard input.
/// `Speak` takes plain text, so markup in it is none.
const SCRIPT: &str = "\
    $ErrorActionPreference = 'Stop'; \
    Add-Type -AssemblyName System.Speech; \
    [Console]::InputEncoding = New-Object Text.UTF8Encoding $false; \
    $voice = New-Object System.Speech.Synthesis.SpeechSynthesizer; \
    $voice.Rate = [int]$env:AAEP_SAPI_RATE; \
    try { \
    if ($env:AAEP_SAPI_VOICE) { $voice.SelectVoice($env:AAEP_SAPI_VOICE) } \
    elseif ($env:AAEP_SAPI_LANGUAGE) { $voice.SelectVoiceByHints('NotSet', 'NotSet', 0, \
    [Globalization.CultureInfo]::GetCultureInfo($env:AAEP_SAPI_LANGUAGE)) } \
    } catch { }; \
    $voice.Speak([Console]::In.ReadToEnd())";

/// Whether speech can be had at all.
const PROBE: &str = "$ErrorActionPreference = 'Stop'; Add-Type -AssemblyName System.Speech";

/// SAPI.
pub struct Sapi {
    children: Children,
}

impl Sapi {
    /// Looks whether PowerShell runs and has speech.
    pub fn open(settings: &Settings, reporter: Reporter) -> Result<Self, String> {
        let mut probe = powershell(settings, PROBE);
        probe.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !probe.status().is_ok_and(|status| status.success()) {
            return Err("SAPI cannot be reached through PowerShell.".into());
        }
        let settings = settings.clone();
        let command: Spoken = Box::new(move |part| command(&settings, part));
        Ok(Self { children: Children::start(command, reporter) })
    }
}

fn powershell(settings: &Settings, script: &str) -> Command {
    let mut command = Command::new(&settings.powershell_program);
    command.args(["-NoProfile", "-NonInteractive", "-Command", script]);
    command
}

fn command(settings: &Settings, part: &Part) -> Command {
    let mut command = powershell(settings, SCRIPT);
    // From -10 to 10.
    let rate = i32::from(settings.rate.unwrap_or(0).clamp(-100, 100)) / 10;
    command.env("AAEP_SAPI_RATE", rate.to_string());
    let ours = plain_tag(&settings.language);
    let language = part.language.as_deref().and_then(plain_tag).or(ours);
    // The user's own voice speaks the user's own language.
    let voice = settings.voice.as_ref().filter(|_| language == ours);
    command.env("AAEP_SAPI_VOICE", voice.map_or("", |voice| voice.as_str()));
    command.env("AAEP_SAPI_LANGUAGE", language.unwrap_or_default());
    command
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
