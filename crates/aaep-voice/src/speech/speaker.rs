//! The thread that drives a synthesizer by the policy.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use aaep_subscriber::words::Words;

use super::{Event, Reporter, Settings, Spelling, Synthesizer};
use crate::announcer::{Action, Announcer, End};
use crate::utterance::{Part, Utterance};

/// Between two attempts to get a lost synthesizer back: the first pause, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// What the user of a speaker should know.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Notice {
    /// The synthesizer is gone; it is tried again.
    Lost(String),
    /// It is back. What was being said is said again.
    Back,
    /// So many utterances were left out, because more was said than anybody can hear.
    LeftOut(u64),
}

/// Takes the notices of a speaker.
pub type Notices = Box<dyn Fn(Notice) + Send>;

/// What a voice is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// Say this.
    Say(Utterance),
    /// A request waits.
    Asked(u32),
    /// A request no longer waits for the user.
    Settled(u32),
    /// Silence: what is spoken stops, and chatter that waits is forgotten.
    Silence,
    /// What is spoken stops, because the user asked for something else.
    Interrupt,
    /// Go on with the next sentence.
    Skip,
    /// Pause, or go on.
    Pause,
}

enum Message {
    Commands(Vec<Command>),
    /// Says the rest of what matters, for so long, and ends.
    Close(Duration),
    Event(u64, Event),
}

/// Speaks what it is given, in the order that the policy wants. No call waits.
pub struct Speaker {
    messages: Sender<Message>,
    thread: Option<JoinHandle<()>>,
}

impl Speaker {
    /// Opens the synthesizer and starts the thread.
    pub fn start(settings: Settings, notices: Notices) -> Result<Self, String> {
        let (messages, received) = channel();
        let (sender, opens) = (messages.clone(), settings.clone());
        let open = move |connection| super::open(&opens, reporter(&sender, connection));
        let synthesizer = open(0)?;
        let mut driver = Driver {
            open: Box::new(open),
            synthesizer: Some(synthesizer),
            connection: 0,
            announcer: Announcer::default(),
            spelling: settings.spelling,
            words: Words::new(&[settings.language.as_str()]),
            notices,
            began: Instant::now(),
            retry_at: None,
            pause: FIRST_PAUSE,
            closes_at: None,
        };
        let thread = std::thread::spawn(move || driver.run(&received));
        Ok(Self { messages, thread: Some(thread) })
    }

    /// Carries these out. What belongs together is spoken in one go if it comes together.
    pub fn send(&self, commands: Vec<Command>) {
        self.message(Message::Commands(commands));
    }

    /// Ends, after so long at most: what waits is said until then.
    pub fn close(mut self, within: Duration) {
        self.message(Message::Close(within));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn message(&self, message: Message) {
        // The thread ends only when it is told to.
        let _ = self.messages.send(message);
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.message(Message::Close(Duration::ZERO));
    }
}

fn reporter(messages: &Sender<Message>, connection: u64) -> Reporter {
    let messages = messages.clone();
    Arc::new(move |event| {
        let _ = messages.send(Message::Event(connection, event));
    })
}

type Open = Box<dyn Fn(u64) -> Result<Box<dyn Synthesizer>, String> + Send>;

struct Driver {
    open: Open,
    synthesizer: Option<Box<dyn Synthesizer>>,
    /// Counts the synthesizers, so that the last words of a lost one are not taken for the new one's.
    connection: u64,
    announcer: Announcer,
    spelling: Spelling,
    /// What is said around letters that are spelled.
    words: Words,
    notices: Notices,
    began: Instant,
    retry_at: Option<Instant>,
    pause: Duration,
    closes_at: Option<Instant>,
}

impl Driver {
    fn run(&mut self, received: &Receiver<Message>) {
        loop {
            match received.recv_timeout(self.wait()) {
                Ok(message) => self.take(message),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            // What came together is decided on together.
            while let Ok(message) = received.try_recv() {
                self.take(message);
            }
            self.reopen();
            self.act();
            let left_out = self.announcer.take_left_out();
            if left_out > 0 {
                (self.notices)(Notice::LeftOut(left_out));
            }
            if let Some(at) = self.closes_at
                && (Instant::now() >= at || self.announcer.is_idle(self.now_ms()))
            {
                if let Some(synthesizer) = &mut self.synthesizer {
                    let _ = synthesizer.stop();
                }
                return;
            }
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn wait(&self) -> Duration {
        let now = Instant::now();
        let deadline =
            self.announcer.next_deadline().map(|at| self.began + Duration::from_millis(at));
        let soonest = deadline.into_iter().chain(self.retry_at).chain(self.closes_at).min();
        soonest.map_or(Duration::from_secs(60), |at| at.saturating_duration_since(now))
    }

    fn take(&mut self, message: Message) {
        let now = self.now_ms();
        match message {
            Message::Commands(commands) => {
                commands.into_iter().for_each(|command| self.command(command));
            }
            Message::Close(within) => self.closes_at = Some(Instant::now() + within),
            Message::Event(connection, _) if connection != self.connection => {}
            Message::Event(_, Event::Part { id, index, count }) => {
                self.announcer.reached(id, index, count);
            }
            Message::Event(_, Event::Spoken(id)) => self.announcer.ended(id, End::Spoken, now),
            Message::Event(_, Event::Cut(id)) => {
                // The rest of it would be spoken without its beginning.
                let stopped = self.synthesizer.as_mut().map_or(Ok(()), |it| it.stop());
                self.announcer.ended(id, End::Cut, now);
                if let Err(error) = stopped {
                    self.lost(&error.to_string());
                }
            }
            Message::Event(_, Event::Lost) => self.lost("it ended"),
        }
    }

    fn command(&mut self, command: Command) {
        match command {
            Command::Say(utterance) => self.announcer.push(utterance),
            Command::Asked(number) => self.announcer.asked(number),
            Command::Settled(number) => self.announcer.settled(number),
            Command::Silence => self.announcer.silence(),
            Command::Interrupt => self.announcer.interrupt(),
            Command::Skip => self.announcer.skip(),
            Command::Pause => {
                self.announcer.pause();
            }
        }
    }

    fn act(&mut self) {
        while self.synthesizer.is_some()
            && let Some(action) = self.announcer.poll(self.now_ms())
        {
            let Some(synthesizer) = &mut self.synthesizer else { return };
            let done = match action {
                Action::Stop => synthesizer.stop(),
                Action::Say { id, utterance } => {
                    let spelled = |part: &Part| self.spelling.spell(part, &self.words).into_owned();
                    let parts: Vec<Part> = utterance.parts.iter().map(spelled).collect();
                    synthesizer.speak(id, utterance.class, &parts)
                }
            };
            if let Err(error) = done {
                self.lost(&error.to_string());
            }
        }
    }

    fn lost(&mut self, why: &str) {
        if self.synthesizer.take().is_none() {
            return;
        }
        self.announcer.lost();
        self.connection += 1;
        self.pause = FIRST_PAUSE;
        self.retry_at = Some(Instant::now() + self.pause);
        (self.notices)(Notice::Lost(why.to_owned()));
    }

    /// Tries to get a lost synthesizer back, when it is time to.
    fn reopen(&mut self) {
        if self.retry_at.is_none_or(|at| at > Instant::now()) {
            return;
        }
        match (self.open)(self.connection) {
            Ok(synthesizer) => {
                self.synthesizer = Some(synthesizer);
                self.retry_at = None;
                self.announcer.available();
                (self.notices)(Notice::Back);
            }
            Err(_) => {
                self.connection += 1;
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                self.retry_at = Some(Instant::now() + self.pause);
            }
        }
    }
}
