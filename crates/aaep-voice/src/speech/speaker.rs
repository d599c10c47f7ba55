//! The thread that drives a synthesizer by the policy.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::{Event, Reporter, Settings, Synthesizer};
use crate::announcer::{Action, Announcer, End};
use crate::utterance::Utterance;

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

enum Message {
    Say(Vec<Utterance>),
    Asked(u32),
    Settled(u32),
    Silence,
    Interrupt,
    Skip,
    Pause,
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
            notices,
            began: Instant::now(),
            retry_at: None,
            pause: FIRST_PAUSE,
            closes_at: None,
        };
        let thread = std::thread::spawn(move || driver.run(&received));
        Ok(Self { messages, thread: Some(thread) })
    }

    /// Says these. What belongs together is spoken in one go.
    pub fn say(&self, utterances: Vec<Utterance>) {
        self.send(Message::Say(utterances));
    }

    /// A request waits.
    pub fn asked(&self, number: u32) {
        self.send(Message::Asked(number));
    }

    /// A request no longer waits for the user.
    pub fn settled(&self, number: u32) {
        self.send(Message::Settled(number));
    }

    /// Silence: what is spoken stops, and chatter that waits is forgotten.
    pub fn silence(&self) {
        self.send(Message::Silence);
    }

    /// What is spoken stops, because the user asked for something else.
    pub fn interrupt(&self) {
        self.send(Message::Interrupt);
    }

    /// Goes on with the next sentence.
    pub fn skip(&self) {
        self.send(Message::Skip);
    }

    /// Pauses, or goes on.
    pub fn pause(&self) {
        self.send(Message::Pause);
    }

    /// Ends, after so long at most: what waits is said until then.
    pub fn close(mut self, within: Duration) {
        self.send(Message::Close(within));
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }

    fn send(&self, message: Message) {
        // The thread ends only when it is told to.
        let _ = self.messages.send(message);
    }
}

impl Drop for Speaker {
    fn drop(&mut self) {
        self.send(Message::Close(Duration::ZERO));
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
            Message::Say(utterances) => {
                utterances.into_iter().for_each(|utterance| self.announcer.push(utterance));
            }
            Message::Asked(number) => self.announcer.asked(number),
            Message::Settled(number) => self.announcer.settled(number),
            Message::Silence => self.announcer.silence(),
            Message::Interrupt => self.announcer.interrupt(),
            Message::Skip => self.announcer.skip(),
            Message::Pause => {
                self.announcer.pause();
            }
            Message::Close(within) => self.closes_at = Some(Instant::now() + within),
            Message::Event(connection, _) if connection != self.connection => {}
            Message::Event(_, Event::Part { id, index, count }) => {
                self.announcer.reached(id, index, count);
            }
            Message::Event(_, Event::Said(id)) => self.announcer.ended(id, End::Said, now),
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

    fn act(&mut self) {
        while self.synthesizer.is_some()
            && let Some(action) = self.announcer.poll(self.now_ms())
        {
            let Some(synthesizer) = &mut self.synthesizer else { return };
            let done = match action {
                Action::Stop => synthesizer.stop(),
                Action::Say { id, utterance } => {
                    synthesizer.speak(id, utterance.class, &utterance.parts)
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
