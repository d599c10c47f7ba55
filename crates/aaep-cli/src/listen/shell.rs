//! Carries between the conversation and the world: hubs, keyboard, screen, sounds, transcript.

use std::io::{self, Write};

use aaep_subscriber::Notification;
use aaep_voice::utterance::Utterance;
use tokio::time::Instant;

use super::Prompts;
use super::ears::Ears;
use super::json;
use super::keyboard::{Keyboard, Typed};
use super::pin::PinEntry;
use super::printer::Printer;
use super::sound::Sounds;
use super::talk::{Named, Output, Talk};
use super::terminal::Terminal;
use super::transcript::Transcript;
use super::voices::{VoiceEvent, Voices};
use super::wrap::wrap;
use crate::exit::Exit;
use crate::signals::{Signal, Signals};

/// How often the conversation looks at the clock.
const TICK: std::time::Duration = std::time::Duration::from_millis(500);

pub(super) struct Shell<'o, W: Write> {
    pub(super) talk: Talk,
    pub(super) ears: Ears,
    pub(super) printer: Printer<'o, W>,
    pub(super) json: bool,
    pub(super) terminal: Terminal,
    pub(super) keyboard: Keyboard,
    pub(super) sounds: Sounds,
    pub(super) voices: Voices,
    pub(super) transcript: Option<Transcript>,
    /// A yes that waits for the PIN.
    pub(super) pin: Option<PinEntry>,
    /// An agent that this terminal is for.
    pub(super) prompts: Option<Prompts>,
}

impl<W: Write> Shell<'_, W> {
    /// Listens until somebody wants it to end.
    pub(super) async fn listen(&mut self, mut signals: Signals) -> io::Result<Exit> {
        let mut clock = tokio::time::interval(TICK);
        clock.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            if let Some(exit) = self.carry_out(None)? {
                return Ok(exit);
            }
            let bell = self.sounds.due();
            // Leaving and answering come before anything else there is to hear.
            tokio::select! { biased;
                signal = signals.next_of_terminal() => match signal {
                    Signal::Continue => {
                        self.terminal.apply();
                        self.printer.entered();
                    }
                    _ => return self.stopped(),
                },
                () = self.keyboard.readable() => {
                    self.keyboard.read();
                    if let Some(exit) = self.typed()? {
                        return Ok(exit);
                    }
                }
                () = until(bell) => self.ring()?,
                done = gone(&mut self.prompts) => {
                    if done {
                        return Ok(Exit::Good);
                    }
                    self.line("The agent has ended.")?;
                    return Ok(Exit::Wrong);
                }
                note = self.voices.note() => match note {
                    VoiceEvent::Speech(notice) => self.talk.voice(&notice),
                    VoiceEvent::Braille(event) => self.talk.display(&event, self.ears.now()),
                    VoiceEvent::NotNotified(why) => self.talk.not_notified(&why),
                },
                notification = self.ears.next() => {
                    if let Some(exit) = self.happened(&notification)? {
                        return Ok(exit);
                    }
                }
                _ = clock.tick() => self.talk.tick(self.ears.now()),
            }
        }
    }

    // enforces: T21
    /// Something happened. What was typed until now was not meant for it.
    fn happened(&mut self, notification: &Notification) -> io::Result<Option<Exit>> {
        self.keyboard.read();
        if let Some(exit) = self.typed()? {
            return Ok(Some(exit));
        }
        let focus = self.talk.focus();
        // While somebody types, the cursor is within a line: what is said now begins another one.
        if self.terminal.is_terminal() && self.talk.is_typing() {
            self.printer.typing();
        }
        self.talk.happened(notification, self.ears.now());
        self.pin_happened(notification);
        if self.talk.focus() != focus && self.terminal.is_terminal() {
            // Half a line for one request must not become an answer to another.
            self.keyboard.decoder.clear();
            self.terminal.discard();
        }
        self.carry_out(Some(notification))
    }

    /// Hands what was typed to the conversation.
    fn typed(&mut self) -> io::Result<Option<Exit>> {
        loop {
            if self.types_pin() {
                if !self.type_pin() {
                    return Ok(None);
                }
                if let Some(exit) = self.carry_out(None)? {
                    return Ok(Some(exit));
                }
                continue;
            }
            let by_line = self.talk.wants_line();
            let decoder = &mut self.keyboard.decoder;
            let Some(typed) = (if by_line { decoder.line() } else { decoder.key() }) else {
                return Ok(None);
            };
            let certain = self.talk.wants_certainty();
            let shown = matches!(typed, Typed::Line(_) | Typed::TooLong);
            if shown && self.terminal.is_terminal() {
                self.printer.entered();
            }
            match typed {
                Typed::Key(key) => self.word(key.encode_utf8(&mut [0; 4])),
                Typed::Line(line) if self.json => self.program(&line),
                Typed::Line(line) if self.prompts.is_some() => self.wish(&line)?,
                Typed::Line(line) => self.word(&line),
                Typed::TooLong => self.talk.too_long(),
                Typed::End if self.terminal.is_terminal() => self.end_of_file(),
                Typed::End => {
                    // What was typed is still done.
                    if let Some(prompts) = &mut self.prompts {
                        prompts.wish = None;
                    }
                    self.talk.input_ended();
                    return self.carry_out(None);
                }
            }
            if self.talk.wants_certainty() && !certain && self.terminal.is_terminal() {
                // The second step is a step of its own: what was typed ahead is no part of it.
                self.keyboard.decoder.clear();
                self.terminal.discard();
            }
            if let Some(exit) = self.carry_out(None)? {
                return Ok(Some(exit));
            }
        }
    }

    fn word(&mut self, word: &str) {
        self.note(&format!("> {}", crate::lines::Plain(word)));
        self.talk.typed(word, self.ears.now());
    }

    /// A line in a terminal that is an agent's: an answer where something waits, otherwise a wish.
    fn wish(&mut self, line: &str) -> io::Result<()> {
        if let Some(word) = line.trim_start().strip_prefix('/') {
            self.word(word);
            return Ok(());
        }
        let said = line.trim().to_lowercase();
        // A late yes is for nobody, least of all for the agent.
        let answers = matches!(said.as_str(), "" | "y" | "n" | "yes" | "no");
        if answers || self.talk.focus().is_some() || self.talk.is_typing() {
            self.word(line);
            return Ok(());
        }
        self.note(&format!("> {}", crate::lines::Plain(line)));
        let wish = self.prompts.as_ref().and_then(|prompts| prompts.wish.as_ref());
        match wish.map(|wish| wish.try_send(line.to_owned())) {
            Some(Ok(())) => Ok(()),
            _ => self.line("The agent is busy, and has enough to do. Say it again later."),
        }
    }

    /// A line of our own.
    fn line(&mut self, line: &str) -> io::Result<()> {
        self.note(line);
        self.printer.line(line)?;
        self.printer.flush()
    }

    /// A line of a program.
    fn program(&mut self, line: &str) {
        match json::read(line) {
            json::ProgramLine::Words(words) => self.word(&words),
            json::ProgramLine::Nothing => self.talk.not_understood(),
            json::ProgramLine::Answer { request, answer, certain } => {
                self.note(&format!("> {}", crate::lines::Plain(line)));
                let asked = self.talk.request(request);
                let answer = asked.and_then(|asked| json::answer(&asked.asks, &answer));
                let named = Named { number: request, answer, certain };
                self.talk.named(named, self.ears.now());
            }
        }
    }

    /// Ctrl-D in a terminal: in the middle of an answer it goes back, otherwise it leaves. It
    /// is no last word: if something waits, it is asked back, and a second one leaves.
    fn end_of_file(&mut self) {
        self.keyboard.decoder.reopen();
        let word = if self.talk.is_typing() { "" } else { "quit" };
        self.talk.typed(word, self.ears.now());
    }

    /// Does what the conversation wants done.
    fn carry_out(&mut self, notification: Option<&Notification>) -> io::Result<Option<Exit>> {
        // Before anybody is told to type, the terminal takes what is typed.
        self.prepare();
        let mut said = Vec::new();
        let mut sent = Vec::new();
        let mut exit = None;
        while let Some(output) = self.talk.poll() {
            self.voices.take(&output);
            match output {
                Output::Waits(number) => self.voices.waits(&self.talk, number),
                Output::NoLongerWaits(number) => self.voices.no_longer_waits(number),
                Output::Voice(_) => {}
                Output::Say(Utterance { line, .. }) => {
                    self.note(&line);
                    if self.json {
                        said.push(line);
                        continue;
                    }
                    let columns = self.terminal.columns();
                    for line in line.lines().flat_map(|line| wrap(line, columns)) {
                        self.printer.line(line)?;
                    }
                }
                Output::Sound(sound) => {
                    self.sounds.make(sound);
                    self.ring()?;
                }
                Output::Reply { id, request, answer } => {
                    if self.waits_for_pin(id, &request, &answer) {
                        self.prepare();
                        continue;
                    }
                    let line = self.json.then(|| json::sent(&request, &answer));
                    match self.ears.answer(id, answer.clone()) {
                        Ok(()) => {
                            sent.extend(line);
                            self.talk.was_sent(request.number, &answer);
                        }
                        Err(why) => self.talk.refused(request.number, &why),
                    }
                }
                Output::MoreTime { id, request, seconds } => {
                    if let Err(why) = self.ears.more_time(id, seconds) {
                        self.talk.refused(request.number, &why);
                    }
                }
                Output::Stop { agent, session_id } => {
                    if self.ears.stop(&session_id).is_err() {
                        self.talk.not_stopped(&agent);
                    }
                }
                Output::Quit(wanted) => exit = exit.or(Some(wanted)),
            }
        }
        if self.json {
            match notification {
                Some(notification) => self.printer.line(&json::line(notification, said))?,
                None if !said.is_empty() => self.printer.line(&json::said(said))?,
                None => {}
            }
            for line in sent {
                self.printer.line(&line)?;
            }
        } else if self.terminal.is_terminal() && self.talk.wants_line() && !self.types_pin() {
            self.printer.room()?;
        }
        self.printer.flush()?;
        self.voices.flush();
        self.voices.focus(self.talk.focus());
        Ok(exit)
    }

    /// Lets the terminal take what is typed next, and holds back what would talk over it.
    fn prepare(&mut self) {
        self.terminal.by_key(self.types_pin() || !self.talk.wants_line());
        self.talk.types_pin(self.types_pin() && self.terminal.has_keys());
    }

    /// The stroke of the bell that is due, if one is: the first comes before the words.
    fn ring(&mut self) -> io::Result<()> {
        if self.sounds.stroke() {
            self.printer.bell()?;
            self.printer.flush()?;
        }
        Ok(())
    }

    /// Keeps a line in the transcript; if that cannot be, says so once and goes on.
    fn note(&mut self, line: &str) {
        let Some(transcript) = &mut self.transcript else { return };
        if let Err(error) = transcript.write(line) {
            self.transcript = None;
            let _ = self.printer.end_line();
            let _ = self.printer.flush();
            crate::exit::say(&format!(
                "The transcript cannot be written any more: {error}. Listening goes on without it."
            ));
        }
    }

    /// Somebody wants it to end, now.
    fn stopped(&mut self) -> io::Result<Exit> {
        self.talk.stopped();
        // A terminal that is gone cannot be told.
        let _ = self.carry_out(None);
        Ok(Exit::Good)
    }
}

async fn gone(prompts: &mut Option<Prompts>) -> bool {
    match prompts {
        Some(prompts) => prompts.gone().await,
        None => std::future::pending().await,
    }
}

async fn until(moment: Option<Instant>) {
    match moment {
        Some(moment) => tokio::time::sleep_until(moment).await,
        None => std::future::pending().await,
    }
}
