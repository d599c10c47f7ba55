//! What stands on the cells. A state machine without clock, input or output.
//!
//! The first cell is the status: `?` while a request waits for the user. After a blank comes the text,
//! cut at words into windows. A question stays until it is answered; its last window holds the answers,
//! and the routing key above an answer gives it. A grave yes takes two steps, and the same routing key
//! pressed twice is never one.

use crate::announcer::{Action, Announcer, End, Id};
use crate::speech::Command;

/// Cells before the text: the status and a blank.
const STATUS_CELLS: usize = 2;

/// The fewest cells that can be used.
const MIN_CELLS: usize = 8;

/// A message gives way to the next one after this long for each window.
const MS_PER_WINDOW: u64 = 3_000;

/// A question, as it stands on the display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Question {
    /// The request's number.
    pub number: u32,
    /// What is asked, the action first.
    pub text: String,
    /// The answers that a routing key can give.
    pub answers: Vec<Label>,
    /// What asks for certainty, if a yes needs a second step.
    pub second_step: Option<String>,
}

/// An answer on the display.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Label {
    /// What stands on the cells.
    pub text: String,
    /// What it means.
    pub reply: Reply,
}

/// What a routing key answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reply {
    /// Yes.
    Yes,
    /// No.
    No,
    /// The choice at this place.
    Choice(usize),
}

/// A key of the display.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Key {
    /// One window back.
    Left,
    /// One window on.
    Right,
    /// To the beginning.
    First,
    /// To the answers.
    Last,
    /// The display is wanted for something else.
    Dismiss,
    /// The routing key above this cell.
    Routing(usize),
}

/// What a key led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pressed {
    /// The request that is answered.
    pub number: u32,
    /// The answer.
    pub reply: Reply,
    /// Whether the second step was taken.
    pub certain: bool,
}

/// What the display shall show; `None` leaves it to others.
pub type View = Option<String>;

/// What is on the display.
#[derive(Debug)]
enum Page {
    Nothing,
    Message(Id, String),
    Question,
    /// The second step for a yes, which was pressed above this cell.
    Sure(usize),
}

/// Decides what is on the display.
#[derive(Debug)]
pub struct Board {
    cells: usize,
    /// How long a question must have been shown before a routing key answers it.
    pause_ms: u64,
    questions: Vec<Question>,
    announcer: Announcer,
    page: Page,
    window: usize,
    shown_since_ms: u64,
    dismissed: bool,
}

/// A window: its text, and where the answers in it are (first cell, last cell, reply), as cells of the
/// display.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Window {
    text: String,
    answers: Vec<(usize, usize, Reply)>,
}

impl Board {
    /// An empty board. A routing key answers a question that was shown for `pause_ms`.
    pub fn new(cells: usize, pause_ms: u64) -> Self {
        Self {
            cells,
            pause_ms,
            questions: Vec::new(),
            announcer: Announcer::default(),
            page: Page::Nothing,
            window: 0,
            shown_since_ms: 0,
            dismissed: false,
        }
    }

    /// The display has so many cells now.
    pub fn resize(&mut self, cells: usize, now_ms: u64) {
        if cells != self.cells {
            self.cells = cells;
            self.turn_to(0, now_ms);
        }
    }

    /// Takes in what is said.
    pub fn command(&mut self, command: &Command, now_ms: u64) {
        match command {
            Command::Say(utterance) => {
                // The question itself has a page of its own; hearing it again brings it back.
                if utterance.class == crate::utterance::Class::Request {
                    self.dismissed = false;
                } else {
                    self.announcer.push(utterance.clone());
                }
            }
            Command::Asked(number) => self.announcer.asked(*number),
            Command::Settled(number) => {
                self.announcer.settled(*number);
                self.questions.retain(|question| question.number != *number);
                if matches!(self.page, Page::Question | Page::Sure(_)) {
                    self.page = Page::Nothing;
                }
            }
            Command::Silence => self.announcer.silence(),
            Command::Interrupt | Command::Skip | Command::Pause => {}
        }
        self.settle(now_ms);
    }

    /// A question waits. It stays on the display until it is settled.
    pub fn ask(&mut self, question: Question, now_ms: u64) {
        self.questions.retain(|other| other.number != question.number);
        self.questions.push(question);
        self.dismissed = false;
        self.settle(now_ms);
    }

    /// What the display shall show now: as many characters as it has cells.
    pub fn view(&mut self, now_ms: u64) -> View {
        self.settle(now_ms);
        if self.dismissed || self.cells < MIN_CELLS || matches!(self.page, Page::Nothing) {
            return None;
        }
        let windows = self.windows();
        let text = windows.get(self.window).map_or("", |window| &window.text);
        let status = if self.questions.is_empty() { ' ' } else { '?' };
        let mut view: String = format!("{status} {text}").chars().take(self.cells).collect();
        view.extend(std::iter::repeat_n(' ', self.cells - view.chars().count()));
        Some(view)
    }

    /// When [`Self::view`] may change by itself.
    pub fn next_deadline(&self) -> Option<u64> {
        let waits = matches!(self.page, Page::Message(..))
            && (!self.announcer.is_empty() || !self.questions.is_empty());
        waits.then(|| self.shown_since_ms.saturating_add(self.dwell_ms()))
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key, now_ms: u64) -> Option<Pressed> {
        self.settle(now_ms);
        let last = self.windows().len().saturating_sub(1);
        match key {
            Key::Dismiss => self.dismiss(now_ms),
            Key::Left if self.window > 0 => self.window -= 1,
            // Back from the second step.
            Key::Left if matches!(self.page, Page::Sure(_)) => self.turn(Page::Question, now_ms),
            Key::Right if self.window < last => self.window += 1,
            // A message that was read gives way.
            Key::Right => self.next_message(now_ms),
            Key::Left => {}
            Key::First => self.window = 0,
            Key::Last => self.window = last,
            Key::Routing(cell) => return self.route(cell, now_ms),
        }
        None
    }

    /// The routing key above a cell: an answer, if one stands there.
    fn route(&mut self, cell: usize, now_ms: u64) -> Option<Pressed> {
        let question = self.questions.first()?.clone();
        let windows = self.windows();
        let window = windows.get(self.window)?;
        let hit = window.answers.iter().find(|(first, last, _)| (*first..=*last).contains(&cell));
        let (_, _, reply) = *hit?;
        // Nobody reads faster than that.
        if now_ms < self.shown_since_ms.saturating_add(self.pause_ms) {
            return None;
        }
        let certain = match self.page {
            Page::Question if reply == Reply::Yes && question.second_step.is_some() => {
                self.turn(Page::Sure(cell), now_ms);
                return None;
            }
            Page::Question => false,
            Page::Sure(_) => reply == Reply::Yes,
            _ => return None,
        };
        Some(Pressed { number: question.number, reply, certain })
    }

    fn dismiss(&mut self, now_ms: u64) {
        self.dismissed = true;
        if matches!(self.page, Page::Message(..)) {
            self.next_message(now_ms);
        }
    }

    fn turn(&mut self, page: Page, now_ms: u64) {
        self.page = page;
        self.turn_to(0, now_ms);
    }

    fn turn_to(&mut self, window: usize, now_ms: u64) {
        self.window = window;
        self.shown_since_ms = now_ms;
    }

    fn next_message(&mut self, now_ms: u64) {
        if let Page::Message(id, _) = self.page {
            self.announcer.ended(id, End::Spoken, now_ms);
            self.page = Page::Nothing;
            self.settle(now_ms);
        }
    }

    fn dwell_ms(&self) -> u64 {
        MS_PER_WINDOW * u64::try_from(self.windows().len()).unwrap_or(1).max(1)
    }

    /// Puts on the display what belongs there. A question comes before everything but what was just
    /// said of another one, which is read first.
    fn settle(&mut self, now_ms: u64) {
        let over = now_ms >= self.shown_since_ms.saturating_add(self.dwell_ms());
        match self.page {
            Page::Question | Page::Sure(_) => return,
            Page::Message(id, _) if over && self.next_deadline().is_some() => {
                self.announcer.ended(id, End::Spoken, now_ms);
                self.page = Page::Nothing;
            }
            _ => {}
        }
        while let Some(action) = self.announcer.poll(now_ms) {
            match action {
                Action::Say { id, utterance } => {
                    self.dismissed = false;
                    let line = utterance.line.replace('\n', " ");
                    self.turn(Page::Message(id, line), now_ms);
                }
                Action::Stop => self.page = Page::Nothing,
            }
        }
        if matches!(self.page, Page::Nothing) && !self.questions.is_empty() {
            self.turn(Page::Question, now_ms);
        }
    }

    fn windows(&self) -> Vec<Window> {
        let room = self.cells.saturating_sub(STATUS_CELLS).max(1);
        match (&self.page, self.questions.first()) {
            (Page::Message(_, line), _) => wrap(line, &[], room),
            (Page::Question, Some(question)) => wrap(&question.text, &question.answers, room),
            (Page::Sure(pressed), Some(question)) => sure(question, *pressed, room),
            _ => Vec::new(),
        }
    }
}

/// The second step. Wherever yes stands now, it does not stand where it was pressed.
fn sure(question: &Question, pressed: usize, room: usize) -> Vec<Window> {
    let text = question.second_step.as_deref().unwrap_or_default();
    let mut answers: Vec<Label> = question.answers.clone();
    answers.retain(|label| matches!(label.reply, Reply::Yes | Reply::No));
    let same = |windows: &[Window]| {
        windows
            .iter()
            .flat_map(|window| &window.answers)
            .any(|(first, last, reply)| *reply == Reply::Yes && (*first..=*last).contains(&pressed))
    };
    let windows = wrap(text, &answers, room);
    if !same(&windows) {
        return windows;
    }
    answers.reverse();
    let windows = wrap(text, &answers, room);
    if !same(&windows) {
        return windows;
    }
    // On a display this small only no is offered; yes is said with the keyboard.
    answers.retain(|label| label.reply == Reply::No);
    wrap(text, &answers, room)
}

/// Cuts a text at its words into windows, with the answers behind it. An answer is never cut, unless it
/// is wider than the display.
fn wrap(text: &str, answers: &[Label], room: usize) -> Vec<Window> {
    let mut windows = vec![Window::default()];
    let mut used = 0;
    let mut put = |piece: &str, reply: Option<Reply>, gap: usize| {
        let mut piece: Vec<char> = piece.chars().collect();
        while !piece.is_empty() {
            let gap = if used == 0 { 0 } else { gap };
            let fits = used + gap + piece.len() <= room;
            if !fits && used > 0 {
                windows.push(Window::default());
                used = 0;
                continue;
            }
            let length = piece.len().min(room);
            let rest = piece.split_off(length);
            let Some(window) = windows.last_mut() else { return };
            window.text.extend(std::iter::repeat_n(' ', gap));
            window.text.extend(piece.iter());
            let first = STATUS_CELLS + used + gap;
            window.answers.extend(reply.map(|reply| (first, first + length - 1, reply)));
            used += gap + length;
            piece = rest;
        }
    };
    text.split_whitespace().for_each(|word| put(word, None, 1));
    answers.iter().for_each(|label| put(&label.text, Some(label.reply), 2));
    windows
}

#[cfg(test)]
mod tests;
