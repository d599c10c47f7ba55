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
/// escaped. There is no other way to make one than [`Line::new`].
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
    /// The messages that were taken and not spoken yet, by their numbers.
    messages: BTreeMap<u64, Message>,
    /// Events of messages whose number is not noted yet: the server speaks before it replies to us.
    early: Vec<(u16, u64)>,
    /// The utterance that somebody else cut last.
    cut: Option<Id>,
}

/// Which part of which utterance a message is.
#[derive(Clone, Copy)]
struct Message {
    id: Id,
    index: usize,
    count: usize,
    /// Whether the utterance was spoken when this was.
    is_last: bool,
}

/// Events that are kept for messages that are not known yet.
const MAX_EARLY: usize = 64;

/// A connection to Speech Dispatcher.
pub struct Ssip {
    stream: Stream,
    replies: Receiver<Reply>,
    spoken: Arc<Mutex<Spoken>>,
    settings: Settings,
    /// Whether the user's own voice is set, or the language's own.
    own_voice: Option<bool>,
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
        let settings = settings.clone();
        let mut ssip = Self { stream, replies, spoken, settings, own_voice: None, reporter };
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
        self.voice(true)
    }

    /// Speaks with the user's own voice, where one is chosen; or with the language's own: Speech
    /// Dispatcher keeps a chosen voice for every language, and an English voice reads no Arabic.
    fn voice(&mut self, own: bool) -> io::Result<()> {
        let Some(voice) = self.settings.voice.clone() else { return Ok(()) };
        // What its modules know as no voice at all.
        let name = if own { voice.as_str() } else { "NULL" };
        if self.own_voice != Some(own) {
            self.command(&format!("SET SELF SYNTHESIS_VOICE {name}"))?;
            self.own_voice = Some(own);
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
            self.voice(same_language(&tag, &self.settings.language))?;
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
        let count = parts.len();
        let mut last = None;
        for (index, part) in parts.iter().enumerate() {
            let Some(number) = self.part(part)? else { continue };
            last = Some((number, index));
            let mut spoken = lock(&self.spoken);
            let message = Message { id, index, count, is_last: index + 1 == count };
            spoken.messages.insert(number, message);
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
        // If the server did not take the last part, the utterance ends with the one before.
        let is_spoken = match last {
            Some((_, index)) if index + 1 == count => false,
            Some((number, _)) => lock(&self.spoken).ends_with(number),
            None => true,
        };
        if is_spoken {
            (self.reporter)(Event::Spoken(id));
        }
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

/// Whether two tags are of one language: `en-GB` and `en` are.
fn same_language(one: &str, other: &str) -> bool {
    let base = |tag: &str| tag.split('-').next().unwrap_or_default().to_ascii_lowercase();
    base(one) == base(other)
}

/// What Speech Dispatcher does with each priority was measured: `important` cuts everything else and
/// queues behind its like, `message` queues, `notification` is dropped while anybody speaks,
/// `progress` keeps the first and the last. `text` cuts itself, and is of no use here.
fn priority(class: Class) -> &'static str {
    match class {
        Class::Request | Class::Outcome | Class::Error | Class::Notice | Class::Feedback => {
            "IMPORTANT"
        }
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
    /// The utterance ends with this message; whether that was spoken already.
    fn ends_with(&mut self, number: u64) -> bool {
        match self.messages.get_mut(&number) {
            Some(message) => {
                message.is_last = true;
                false
            }
            None => true,
        }
    }

    /// What an event of the server means for an utterance.
    fn event(&mut self, code: u16, number: u64) -> Option<Event> {
        let Some(message) = self.messages.get(&number).copied() else {
            if self.early.len() < MAX_EARLY {
                self.early.push((code, number));
            }
            return None;
        };
        let Message { id, index, count, is_last } = message;
        match code {
            701 => Some(Event::Part { id, index, count }),
            702 => {
                self.messages.remove(&number);
                is_last.then_some(Event::Spoken(id))
            }
            703 => {
                self.messages.retain(|_, message| message.id != id);
                self.cut = Some(id);
                Some(Event::Cut(id))
            }
            _ => None,
        }
    }
}
