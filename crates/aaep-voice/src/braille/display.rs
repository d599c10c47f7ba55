//! The thread that drives a braille display.

use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use super::brlapi::{Address, Brlapi, Sent};
use super::{Board, Pressed, Question, View};
use crate::speech::Command;

/// How often it is looked whether the display is another one now.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Between two attempts to reach BRLTTY: the first pause, and the longest.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Where the display is.
#[derive(Clone, Debug)]
pub struct Settings {
    /// As `BRLAPI_HOST` has it; without it, what that variable says, else the server of this machine.
    pub host: Option<String>,
    /// The key that the server may ask for.
    pub key_file: PathBuf,
    /// How long a question must have been shown before a routing key answers it.
    pub pause_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { host: None, key_file: "/etc/brlapi.key".into(), pause_ms: 500 }
    }
}

/// What a display tells.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// A routing key answered a request.
    Answer(Pressed),
    /// BRLTTY is gone; it is tried again.
    Lost(String),
    /// It is back, and shows what it showed.
    Back,
}

enum Message {
    Commands(Vec<Command>),
    Ask(Question),
    Focus(u32),
    Sent(u64, Sent),
    Close,
}

/// Shows what it is given. No call waits.
pub struct BrailleDisplay {
    messages: Sender<Message>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl BrailleDisplay {
    /// Connects and starts the thread.
    pub fn start(
        settings: Settings,
        events: impl Fn(Event) + Send + 'static,
    ) -> Result<Self, String> {
        let variable = std::env::var("BRLAPI_HOST").ok();
        let host = settings.host.clone().or(variable).unwrap_or_default();
        let address = Address::parse(&host)
            .ok_or_else(|| format!("{host:?} is no address of BRLTTY: write HOST:NUMBER."))?;
        let (messages, received) = channel();
        let mut driver = Driver {
            address,
            key_file: settings.key_file,
            path: tty_path(),
            messages: messages.clone(),
            events: Box::new(events),
            board: Board::new(0, settings.pause_ms),
            brlapi: None,
            connection: 0,
            shown: None,
            cells: 0,
            began: Instant::now(),
            look_at: Instant::now(),
            pause: FIRST_PAUSE,
        };
        driver.connect().map_err(|why| {
            format!("BRLTTY cannot be reached: {why}. Is it running, with BrlAPI?")
        })?;
        let thread = std::thread::spawn(move || driver.run(&received));
        Ok(Self { messages, thread: Some(thread) })
    }

    /// Takes in what is said.
    pub fn send(&self, commands: Vec<Command>) {
        let _ = self.messages.send(Message::Commands(commands));
    }

    /// A question waits; it stays on the display until it is settled.
    pub fn ask(&self, question: Question) {
        let _ = self.messages.send(Message::Ask(question));
    }

    /// What is typed answers this question now: it is the one that is shown.
    pub fn focus(&self, number: u32) {
        let _ = self.messages.send(Message::Focus(number));
    }
}

impl Drop for BrailleDisplay {
    fn drop(&mut self) {
        let _ = self.messages.send(Message::Close);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Where this terminal is in BRLTTY's tree: the path to the window, so that the display is ours only
/// while this window has the focus. Without a path, over SSH for one, the whole display.
fn tty_path() -> Vec<u32> {
    let set = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
    let number = |text: &str| text.trim().parse::<u32>().ok();
    let graphical = set("DISPLAY").and_then(|_| set("XDG_VTNR"));
    let mut path: Vec<u32> = set("WINDOWPATH")
        .or(graphical)
        .map(|path| path.split(':').filter_map(number).collect())
        .unwrap_or_default();
    let console = || {
        let tty = std::fs::read_link("/proc/self/fd/0").ok()?;
        number(tty.to_str()?.strip_prefix("/dev/tty")?)
    };
    let here = set("WINDOWID").as_deref().and_then(number);
    path.extend(here.or_else(|| set("CONTROLVT").as_deref().and_then(number)).or_else(console));
    path
}

struct Driver {
    address: Address,
    key_file: PathBuf,
    path: Vec<u32>,
    messages: Sender<Message>,
    events: Box<dyn Fn(Event) + Send>,
    board: Board,
    brlapi: Option<Brlapi>,
    connection: u64,
    /// What the display shows of ours.
    shown: View,
    cells: usize,
    began: Instant,
    look_at: Instant,
    pause: Duration,
}

impl Driver {
    fn run(&mut self, received: &Receiver<Message>) {
        loop {
            match received.recv_timeout(self.wait()) {
                Ok(message) => {
                    if !self.take(message) {
                        return;
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            while let Ok(message) = received.try_recv() {
                if !self.take(message) {
                    return;
                }
            }
            if Instant::now() >= self.look_at {
                self.look();
            }
            self.show();
        }
    }

    fn now_ms(&self) -> u64 {
        u64::try_from(self.began.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    fn wait(&self) -> Duration {
        let board = self.board.next_deadline().map(|at| self.began + Duration::from_millis(at));
        let soonest = board.map_or(self.look_at, |at| at.min(self.look_at));
        soonest.saturating_duration_since(Instant::now())
    }

    fn take(&mut self, message: Message) -> bool {
        let now = self.now_ms();
        match message {
            Message::Commands(commands) => {
                commands.iter().for_each(|command| self.board.command(command));
            }
            Message::Ask(question) => self.board.ask(question),
            Message::Focus(number) => self.board.focus(number),
            Message::Sent(connection, _) if connection != self.connection => {}
            Message::Sent(_, Sent::Key(key)) => {
                let pressed = self.board.key(key, now);
                pressed.into_iter().for_each(|pressed| (self.events)(Event::Answer(pressed)));
            }
            Message::Sent(_, Sent::Lost) => self.lost("it ended"),
            Message::Close => {
                if let Some(brlapi) = self.brlapi.as_mut().filter(|_| self.shown.is_some()) {
                    let _ = brlapi.leave();
                }
                return false;
            }
        }
        true
    }

    /// Looks how many cells there are, or tries to connect again.
    fn look(&mut self) {
        self.look_at = Instant::now() + LOOK_EVERY;
        if let Some(brlapi) = &mut self.brlapi {
            match brlapi.cells() {
                Ok(cells) => self.resize(cells),
                Err(error) => self.lost(&error.to_string()),
            }
            return;
        }
        match self.connect() {
            Ok(()) => (self.events)(Event::Back),
            Err(_) => {
                self.pause = (self.pause * 2).min(LONGEST_PAUSE);
                self.look_at = Instant::now() + self.pause;
            }
        }
    }

    fn connect(&mut self) -> Result<(), String> {
        self.connection += 1;
        let (messages, connection) = (self.messages.clone(), self.connection);
        let sent = move |sent| drop(messages.send(Message::Sent(connection, sent)));
        let connected = Brlapi::connect(&self.address, &self.key_file, sent);
        let mut brlapi = connected.map_err(|error| error.to_string())?;
        let cells = brlapi.cells().map_err(|error| error.to_string())?;
        self.brlapi = Some(brlapi);
        self.shown = None;
        self.pause = FIRST_PAUSE;
        self.resize(cells);
        Ok(())
    }

    fn resize(&mut self, cells: usize) {
        let now = self.now_ms();
        self.board.resize(cells, now);
        // What another display shows is not what was written to the last one.
        if std::mem::replace(&mut self.cells, cells) != cells
            && let Some(shown) = &mut self.shown
        {
            shown.clear();
        }
    }

    /// Writes what has changed. The display is ours only while there is something of ours on it.
    fn show(&mut self) {
        let view = self.board.view(self.now_ms());
        let Some(brlapi) = self.brlapi.as_mut().filter(|_| view != self.shown) else { return };
        let done = match (&self.shown, &view) {
            (None, Some(text)) => {
                brlapi.enter(&self.path).and_then(|()| brlapi.write(text, self.cells))
            }
            (Some(_), Some(text)) => brlapi.write(text, self.cells),
            (Some(_), None) => brlapi.leave(),
            (None, None) => Ok(()),
        };
        match done {
            Ok(()) => self.shown = view,
            Err(error) => self.lost(&error.to_string()),
        }
    }

    fn lost(&mut self, why: &str) {
        if self.brlapi.take().is_none() {
            return;
        }
        self.shown = None;
        self.look_at = Instant::now() + self.pause;
        (self.events)(Event::Lost(why.to_owned()));
    }
}
