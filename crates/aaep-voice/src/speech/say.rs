//! `say` of macOS. The tests run it as a stand-in of that name; the real program was not run.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::process::{Command, Stdio};

use super::children::{Children, Spoken, words_a_minute};
use super::{Reporter, Settings, Synthesizer, plain_tag};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

/// The most of the list of voices that is read.
const MAX_VOICES: usize = 1_000;

/// `say`, with its text on standard input.
pub struct Say {
    children: Children,
}

impl Say {
    /// Looks whether the program runs, and which voices it has.
    pub fn open(settings: &Settings, reporter: Reporter) -> Result<Self, String> {
        let mut list = Command::new(&settings.say_program);
        let list = list.args(["-v", "?"]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        let list = list.ok().filter(|list| list.status.success()).ok_or("say does not run.")?;
        let voices = voices(&String::from_utf8_lossy(&list.stdout));
        let settings = settings.clone();
        let command: Spoken = Box::new(move |part| command(&settings, &voices, part));
        Ok(Self { children: Children::start(command, reporter) })
    }
}

/// The first voice of each language, from lines such as `Anna   de_DE    # Hallo!`.
fn voices(list: &str) -> BTreeMap<String, String> {
    let mut voices = BTreeMap::new();
    for line in list.lines().take(MAX_VOICES) {
        let about = line.split('#').next().unwrap_or_default().trim_end();
        let Some((name, tag)) = about.rsplit_once(char::is_whitespace) else { continue };
        let language = tag.split(['_', '-']).next().unwrap_or_default().to_ascii_lowercase();
        let name = name.trim();
        if !name.is_empty() && !name.starts_with('-') && plain_tag(&language).is_some() {
            voices.entry(language).or_insert_with(|| name.to_owned());
        }
    }
    voices
}

fn command(settings: &Settings, voices: &BTreeMap<String, String>, part: &Part) -> Command {
    let mut command = Command::new(&settings.say_program);
    command.args(["-f", "-"]);
    let base = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    let ours = base(&settings.language);
    let language = part.language.as_deref().map_or_else(|| ours.clone(), base);
    // The user's own voice, or the system's, speaks the user's own language.
    let voice = if language == ours {
        settings.voice.as_ref().map(|voice| voice.as_str())
    } else {
        voices.get(&language).map(String::as_str)
    };
    if let Some(voice) = voice {
        command.arg("-v").arg(voice);
    }
    if let Some(rate) = settings.rate {
        command.arg("-r").arg(words_a_minute(rate).to_string());
    }
    command
}

/// The text without the marks of embedded commands: `[[volm 0]]` in an agent's words would silence
/// everything after it.
fn without_commands(text: &str) -> Cow<'_, str> {
    if !text.contains("[[") && !text.contains("]]") {
        return Cow::Borrowed(text);
    }
    let mut kept = String::with_capacity(text.len() + 8);
    for sign in text.chars() {
        if matches!(sign, '[' | ']') && kept.ends_with(sign) {
            kept.push(' ');
        }
        kept.push(sign);
    }
    Cow::Owned(kept)
}

impl Synthesizer for Say {
    fn speak(&mut self, id: Id, _class: Class, parts: &[Part]) -> io::Result<()> {
        let harmless =
            |part: &Part| Part { text: without_commands(&part.text).into_owned(), ..part.clone() };
        self.children.speak(id, &parts.iter().map(harmless).collect::<Vec<_>>())
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
    fn each_language_has_the_first_voice_that_speaks_it() {
        let list = "Alex                en_US    # Most people recognize me.\n\
                    Samantha            en_US    # Hello!\n\
                    Bad News            en_US    # The light # you see.\n\
                    Eddy (German (Germany)) de_DE # Hallo!\n\
                    Majed               ar_001   # مرحبا\n\
                    -o                  fr_FR    # an option\n\
                    broken\n";
        let voices: Vec<_> = voices(list).into_iter().collect();
        let pair = |tag: &str, name: &str| (tag.to_owned(), name.to_owned());
        assert_eq!(
            voices,
            [pair("ar", "Majed"), pair("de", "Eddy (German (Germany))"), pair("en", "Alex")]
        );
    }

    #[test]
    fn an_embedded_command_is_text() {
        for (text, spoken) in [
            ("[[volm 0]] Allow this?", "[ [volm 0] ] Allow this?"),
            ("[[[slnc 9]]]", "[ [ [slnc 9] ] ]"),
            ("list[0]", "list[0]"),
        ] {
            assert_eq!(without_commands(text), spoken);
        }
    }
}
