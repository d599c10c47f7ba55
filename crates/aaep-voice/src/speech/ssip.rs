//! A small client of Speech Dispatcher, which speaks SSIP on a Unix socket.
//!
//! Text is sent only after the server said that it takes text (reply 230), and only as [`Line`]s, which
//! cannot hold a line break or end the text. So nothing in a text can become a command.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Write};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{Event, Reporter, Settings, Synthesizer, plain_tag, single_line};
use crate::announcer::Id;
use crate::utterance::{Class, Part};

mod address;

use address::Stream;

/// How long the server may take for a reply. One that dies is noticed at once; this is for one that
/// hangs, and a busy machine is no reason to take it for that.
const REPLY_WITHIN: Duration = Duration::from_secs(10);

/// A line of text as it goes over the wire: no control characters, no line breaks, its first dot
/// escaped, and not empty. There is no other way to make one than [`Line::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line<'t>(Cow<'t, str>);

impl<'t> Line<'t> {
    /// The text as one line.
    pub fn new(text: &'t str) -> Self {
        let mut line = single_line(text);
        if line.starts_with('.') {
            line = Cow::Owned(format!(".{line}"));
        }
        Self(line)
    }

    /// The bytes, without the end of the line.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// What the reader thread and the client share.
#[derive(Default)]
struct Spoken {
    /// Which part of which utterance a message is: id, index, count.
    messages: BTreeMap<u64, (Id, usize, usize)>,
    /// Events of messages whose number is not noted yet: the server speaks before it replies to us.
    early: Vec<(u16, u64)>,
    /// The utterance that somebody else cut last.
    cut: Option<Id>,
}

/// Events that are kept for messages that are not known yet.
const MAX_EARLY: usize = 64;

/// A connection to Speech Dispatcher.
pub struct Ssip {
    stream: Stream,
    replies: Receiver<Reply>,
    spoken: Arc<Mutex<Spoken>>,
    settings: Settings,
    reporter: Reporter,
}

/// A reply of the server: its number and the lines before the last.
#[derive(Debug)]
struct Reply {
    code: u16,
    data: Vec<String>,
}

impl Ssip {
    /// Connects to the server that the settings or `SPEECHD_ADDRESS` name, else to the user's own,
    /// which is started where it is not running.
    pub fn open(settings: &Settings, reporter: Reporter) -> Result<Self, String> {
        let stream = address::connect(settings.speechd_address.as_deref())?;
        let broken = |error: io::Error| format!("Speech Dispatcher does not answer: {error}.");
        let reading = stream.try_clone().map_err(broken)?;
        let spoken = Arc::<Mutex<Spoken>>::default();
        let (say, replies) = channel();
        let (shared, reports) = (spoken.clone(), reporter.clone());
        std::thread::spawn(move || read(reading, &say, &shared, &reports));
        let mut ssip = Self { stream, replies, spoken, settings: settings.clone(), reporter };
        ssip.set_up().map_err(broken)?;
        Ok(ssip)
    }

    fn set_up(&mut self) -> io::Result<()> {
        let user = std::env::var("USER").unwrap_or_default();
        let user: String = user.chars().filter(char::is_ascii_alphanumeric).take(32).collect();
        let user = if user.is_empty() { "user" } else { &user };
        self.command(&format!("SET SELF CLIENT_NAME {user}:aaep:listen"))?;
        for notice in ["BEGIN", "END", "CANCEL"] {
            self.command(&format!("SET SELF NOTIFICATION {notice} ON"))?;
        }
        self.command("SET SELF SSML_MODE OFF")?;
        if let Some(tag) = plain_tag(&self.settings.language).map(str::to_owned) {
            self.command(&format!("SET SELF LANGUAGE {tag}"))?;
        }
        if let Some(rate) = self.settings.rate {
            self.command(&format!("SET SELF RATE {}", rate.clamp(-100, 100)))?;
        }
        if let Some(punctuation) = self.settings.punctuation {
            self.command(&format!("SET SELF PUNCTUATION {}", punctuation.as_str()))?;
        }
        if let Some(voice) = self.settings.voice.clone() {
            self.command(&format!("SET SELF SYNTHESIS_VOICE {}", voice.as_str()))?;
        }
        Ok(())
    }

    /// Sends a command; all of them are made here, from checked pieces. A refusal is an error only
    /// where the caller needs success.
    fn command(&mut self, command: &str) -> io::Result<Reply> {
        self.stream.write_all(format!("{command}\r\n").as_bytes())?;
        self.reply()
    }

    fn reply(&mut self) -> io::Result<Reply> {
        self.replies
            .recv_timeout(REPLY_WITHIN)
            .map_err(|_| io::Error::new(io::ErrorKind::TimedOut, "it did not reply"))
    }

    /// Speaks one part; `None` if the server does not take it.
    fn part(&mut self, part: &Part) -> io::Result<Option<u64>> {
        if let Some(tag) = part.language.as_deref().and_then(plain_tag).map(str::to_owned) {
            self.command(&format!("SET SELF LANGUAGE {tag}"))?;
        }
        let pitch = if part.from_agent { self.settings.agent_pitch.clamp(-100, 100) } else { 0 };
        self.command(&format!("SET SELF PITCH {pitch}"))?;
        if self.command("SPEAK")?.code != 230 {
            return Ok(None);
        }
        let line = Line::new(&part.text);
        self.stream.write_all(format!("{}\r\n.\r\n", line.as_str()).as_bytes())?;
        let reply = self.reply()?;
        Ok(reply.data.first().and_then(|number| number.parse().ok()))
    }
}

impl Synthesizer for Ssip {
    fn speak(&mut self, id: Id, class: Class, parts: &[Part]) -> io::Result<()> {
        self.command(&format!("SET SELF PRIORITY {}", priority(class)))?;
        if self.command("BLOCK BEGIN")?.code >= 300 {
            return Err(io::Error::other("it does not take messages"));
        }
        for (index, part) in parts.iter().enumerate() {
            let Some(number) = self.part(part)? else { continue };
            let mut spoken = lock(&self.spoken);
            spoken.messages.insert(number, (id, index, parts.len()));
            let early = std::mem::take(&mut spoken.early);
            let events: Vec<Event> =
                early.into_iter().filter_map(|(code, of)| spoken.event(code, of)).collect();
            let is_cut = spoken.cut == Some(id);
            drop(spoken);
            events.into_iter().for_each(|event| (self.reporter)(event));
            // Somebody else cut it while it was being handed over: the rest would be spoken without
            // its beginning.
            if is_cut {
                self.command("BLOCK END")?;
                return self.stop();
            }
        }
        self.command("BLOCK END")?;
        Ok(())
    }

    fn stop(&mut self) -> io::Result<()> {
        let mut spoken = lock(&self.spoken);
        spoken.messages.clear();
        spoken.early.clear();
        drop(spoken);
        self.command("CANCEL SELF").map(drop)
    }
}

impl Drop for Ssip {
    fn drop(&mut self) {
        let _ = self.stream.shutdown();
    }
}

/// What Speech Dispatcher does with each priority was measured: `important` cuts everything else and
/// queues behind its like, `message` queues, `notification` is dropped while anybody speaks,
/// `progress` keeps the first and the last. `text` cuts itself, and is of no use here.
fn priority(class: Class) -> &'static str {
    match class {
        Class::Request | Class::Outcome | Class::Error | Class::Feedback => "IMPORTANT",
        Class::Result | Class::End | Class::Text => "MESSAGE",
        Class::State => "NOTIFICATION",
        Class::Progress => "PROGRESS",
    }
}

fn lock(spoken: &Mutex<Spoken>) -> MutexGuard<'_, Spoken> {
    spoken.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Reads until the server is gone: replies go to who asked, events to the reporter.
fn read(stream: Stream, replies: &Sender<Reply>, spoken: &Mutex<Spoken>, reporter: &Reporter) {
    let mut lines = BufReader::new(stream);
    let mut data: Vec<String> = Vec::new();
    loop {
        let mut line = Vec::new();
        // A line that never ends is no server of ours.
        match io::Read::take(&mut lines, 64 * 1024).read_until(b'\n', &mut line) {
            Ok(count) if count > 0 && line.ends_with(b"\n") => {}
            _ => break,
        }
        let line = String::from_utf8_lossy(&line);
        let line = line.trim_end();
        let (Some(code), Some(rest)) =
            (line.get(..3).and_then(|code| code.parse::<u16>().ok()), line.get(4..))
        else {
            continue;
        };
        if line.as_bytes().get(3) == Some(&b'-') {
            if data.len() < 1_000 {
                data.push(rest.to_owned());
            }
            continue;
        }
        let data = std::mem::take(&mut data);
        if (700..800).contains(&code) {
            let number = data.first().and_then(|number| number.parse().ok());
            let event = number.and_then(|number| lock(spoken).event(code, number));
            event.into_iter().for_each(|event| reporter(event));
        } else if replies.send(Reply { code, data }).is_err() {
            return;
        }
    }
    reporter(Event::Lost);
}

impl Spoken {
    /// What an event of the server means for an utterance.
    fn event(&mut self, code: u16, number: u64) -> Option<Event> {
        let Some((id, index, count)) = self.messages.get(&number).copied() else {
            if self.early.len() < MAX_EARLY {
                self.early.push((code, number));
            }
            return None;
        };
        match code {
            701 => Some(Event::Part { id, index, count }),
            702 => {
                self.messages.remove(&number);
                (index + 1 == count).then_some(Event::Spoken(id))
            }
            703 => {
                self.messages.retain(|_, (of, ..)| *of != id);
                self.cut = Some(id);
                Some(Event::Cut(id))
            }
            _ => None,
        }
    }
}
