//! espeak-ng without a server.

use std::io;
use std::process::{Command, Stdio};

use super::children::{Children, Spoken, words_a_minute};
use super::{Reporter, Settings, Synthesizer, plain_tag};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

/// espeak-ng.
pub struct Espeak {
    children: Children,
}

impl Espeak {
    /// Looks whether the program runs.
    pub fn open(settings: &Settings, reporter: Reporter) -> Result<Self, String> {
        let mut version = Command::new(&settings.espeak_program);
        version.arg("--version").stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        if !version.status().is_ok_and(|status| status.success()) {
            return Err("espeak-ng does not run.".into());
        }
        let settings = settings.clone();
        let command: Spoken = Box::new(move |part| command(&settings, part));
        Ok(Self { children: Children::start(command, reporter) })
    }
}

fn command(settings: &Settings, part: &Part) -> Command {
    let mut command = Command::new(&settings.espeak_program);
    command.arg("--stdin");
    let ours = plain_tag(&settings.language);
    let language = part.language.as_deref().and_then(plain_tag).or(ours).unwrap_or("en");
    // The user's own voice speaks the user's own language.
    let voice = settings.voice.as_ref().filter(|_| Some(language) == ours);
    command.arg("-v").arg(voice.map_or(espeak_language(language), |voice| voice.as_str()));
    if let Some(rate) = settings.rate {
        command.arg("-s").arg(words_a_minute(rate).to_string());
    }
    let pitch = if part.from_agent { i32::from(settings.agent_pitch.clamp(-100, 100)) } else { 0 };
    command.arg("-p").arg((50 + pitch / 2).clamp(0, 99).to_string());
    match settings.punctuation {
        Some(super::Punctuation::All) => {
            command.arg("--punct");
        }
        Some(super::Punctuation::Most) => {
            command.arg("--punct=!\"#$%&'()*+/:;<=>?@[\\]^_`{|}~");
        }
        Some(super::Punctuation::Some) => {
            command.arg("--punct=#$%&*+/<=>@\\^_|~");
        }
        _ => {}
    }
    command
}

/// espeak-ng's name of a language.
fn espeak_language(tag: &str) -> &str {
    match tag.split('-').next() {
        Some("zh") => "cmn",
        Some(language) => language,
        None => tag,
    }
}

impl Synthesizer for Espeak {
    fn speak(&mut self, id: Id, _class: Class, parts: &[Part]) -> io::Result<()> {
        self.children.speak(id, parts)
    }

    fn stop(&mut self) -> io::Result<()> {
        self.children.stop();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_word_of_an_agent_is_on_the_command_line() {
        let part = Part {
            text: "--help; rm -r /".into(),
            language: Some("ar; rm".into()),
            from_agent: true,
        };
        let command = command(&Settings::default(), &part);
        let arguments: Vec<_> = command.get_args().map(|one| one.to_string_lossy()).collect();
        assert_eq!(arguments, ["--stdin", "-v", "en", "-p", "38"]);
    }
}
