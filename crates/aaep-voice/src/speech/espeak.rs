//! espeak-ng without a server: one child process for each part, its text on standard input.

use std::io::{self, Write};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::{Event, Reporter, Settings, Synthesizer, plain_tag, single_line};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

/// How a part is spoken: the program with its options. The text goes to its standard input.
type Spoken = Box<dyn Fn(&Part) -> Command + Send>;

/// Runs a program for each part, one after the other.
pub(super) struct Children {
    jobs: Sender<(Id, Vec<Part>)>,
    /// The number of the newest job, or of none.
    wanted: Arc<Mutex<Wanted>>,
}

#[derive(Default)]
struct Wanted {
    id: Option<Id>,
    child: Option<Child>,
}

impl Children {
    pub(super) fn start(command: Spoken, reporter: Reporter) -> Self {
        let (jobs, received) = channel();
        let wanted = Arc::<Mutex<Wanted>>::default();
        let shared = wanted.clone();
        std::thread::spawn(move || run(&received, &shared, &command, &reporter));
        Self { jobs, wanted }
    }

    pub(super) fn speak(&mut self, id: Id, parts: &[Part]) -> io::Result<()> {
        self.stop();
        self.wanted.lock().unwrap_or_else(PoisonError::into_inner).id = Some(id);
        self.jobs.send((id, parts.to_vec())).map_err(|_| io::Error::other("its thread has ended"))
    }

    pub(super) fn stop(&mut self) {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        wanted.id = None;
        if let Some(child) = &mut wanted.child {
            let _ = child.kill();
        }
    }
}

impl Drop for Children {
    fn drop(&mut self) {
        self.stop();
    }
}

fn run(
    jobs: &Receiver<(Id, Vec<Part>)>,
    wanted: &Mutex<Wanted>,
    command: &Spoken,
    reporter: &Reporter,
) {
    while let Ok((id, parts)) = jobs.recv() {
        let count = parts.len();
        let mut said = true;
        for (index, part) in parts.iter().enumerate() {
            reporter(Event::Part { id, index, count });
            match one(id, part, wanted, command) {
                Ok(true) => {}
                Ok(false) => {
                    said = false;
                    break;
                }
                Err(_) => return reporter(Event::Lost),
            }
        }
        if said {
            reporter(Event::Said(id));
        }
    }
}

/// Speaks one part; false if it is no longer wanted.
fn one(id: Id, part: &Part, wanted: &Mutex<Wanted>, command: &Spoken) -> io::Result<bool> {
    let input = {
        let mut wanted = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        if wanted.id != Some(id) {
            return Ok(false);
        }
        let mut command = command(part);
        command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let input = child.stdin.take();
        wanted.child = Some(child);
        input
    };
    if let Some(mut input) = input {
        // A child that was killed does not read.
        let _ = input.write_all(format!("{}\n", single_line(&part.text)).as_bytes());
    }
    loop {
        let mut held = wanted.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(child) = &mut held.child else { return Ok(false) };
        if let Some(status) = child.try_wait()? {
            held.child = None;
            return match (held.id == Some(id), status.success()) {
                (true, false) => Err(io::Error::other("it failed")),
                (wanted, _) => Ok(wanted),
            };
        }
        drop(held);
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

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
        // From 80 words a minute to 450, with 175 in the middle.
        let rate = i32::from(rate.clamp(-100, 100));
        let words = if rate < 0 { 175 + rate * 95 / 100 } else { 175 + rate * 275 / 100 };
        command.arg("-s").arg(words.to_string());
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
