//! What stands on the cells. A state machine without clock, input or output.
//!
//! The first cell is the status: `?` while a request waits for the user. After a blank comes the text,
//! cut at words into windows. A question stays until it is answered; its last window holds the answers,
//! and the routing key above an answer gives it. A grave yes takes two steps, and the same routing key
//! pressed twice is never one.
//!
//! While a question stands there, errors, notices and the answers to the person's own keys are shown in
//! front of it, each for a while; then the question is back at the same window. A routing key brings it
//! back at once. Everything else waits.

use crate::announcer::{Action, Announcer, End, Id};
use crate::speech::Command;
use crate::utterance::Class;

/// Cells before the text: the status and a blank.
const STATUS_CELLS: usize = 2;

/// The fewest cells that can be used.
const MIN_CELLS: usize = 8;

/// A message gives way to the next one after this long for each window.
const MS_PER_WINDOW: u64 = 3_000;

/// An error or a notice gives way to the question behind it after this long at most: what an agent
/// writes must not keep a question away. Panning it begins the time anew.
const MAX_ASIDE_MS: u64 = 12_000;

/// What is shown in front of a question once that was there for [`MS_PER_WINDOW`],
const ASIDES: &[Class] = &[Class::Error, Class::Notice, Class::Feedback];
/// and what is shown at once.
const AT_ONCE: &[Class] = &[Class::Feedback];

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
#[derive(Clone, Debug)]
enum Page {
    Nothing,
    Message(Id, Class, String),
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
    /// The page of the question that a message stands in front of, and its window.
    behind: Option<(Page, usize)>,
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
            behind: None,
            shown_since_ms: 0,
            dismissed: false,
        }
    }

    /// The display has so many cells now.
    pub fn resize(&mut self, cells: usize, now_ms: u64) {
        if cells != self.cells {
            self.cells = cells;
            self.behind = self.behind.take().map(|(page, _)| (page, 0));
            self.turn_to(0, now_ms);
        }
    }

    /// Takes in what is said. [`Self::view`] shows it, so that what comes together is shown together.
    pub fn command(&mut self, command: &Command) {
        match command {
            Command::Say(utterance) => {
                // The question itself has a page of its own; hearing it again brings it back.
                if utterance.class == Class::Request {
                    self.dismissed = false;
                } else {
                    // The answer to the last key takes the place of the one before.
                    if utterance.class == Class::Feedback {
                        self.end_feedback();
                    }
                    self.announcer.push(utterance.clone());
                }
            }
            Command::Asked(number) => self.announcer.asked(*number),
            Command::Settled(number) => {
                self.announcer.settled(*number);
                if self.shown_question() == Some(*number) {
                    self.leave_question();
                }
                self.questions.retain(|question| question.number != *number);
            }
            Command::Silence => self.announcer.silence(),
            // Something else was asked for: its answer does not wait for the last one's.
            Command::Interrupt => self.end_feedback(),
            Command::Skip | Command::Pause => {}
        }
    }

    /// A question waits. It stays on the display until it is settled.
    pub fn ask(&mut self, question: Question) {
        self.dismissed = false;
        match self.questions.iter().position(|known| known.number == question.number) {
            None => self.questions.push(question),
            Some(at) if self.questions[at] == question => {}
            Some(at) => {
                if at == 0 {
                    self.leave_question();
                }
                self.questions[at] = question;
            }
        }
    }

    /// What is typed answers this question now: it is the one on the display.
    pub fn focus(&mut self, number: u32) {
        let at = self.questions.iter().position(|question| question.number == number);
        if let Some(at) = at.filter(|at| *at > 0) {
            self.leave_question();
            let question = self.questions.remove(at);
            self.questions.insert(0, question);
            self.dismissed = false;
        }
    }

    /// What a key led to has been on the display for long enough.
    fn end_feedback(&mut self) {
        if matches!(self.page, Page::Message(_, Class::Feedback, _)) {
            self.announcer.interrupt();
        }
    }

    /// The number of the question that is on the display, or behind a message there.
    fn shown_question(&self) -> Option<u32> {
        self.questions.first().map(|question| question.number)
    }

    /// The question that is on the display, or behind a message there, is no longer the one.
    fn leave_question(&mut self) {
        self.behind = None;
        if matches!(self.page, Page::Question | Page::Sure(_)) {
            self.page = Page::Nothing;
        }
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
        let wait = match self.page {
            Page::Message(..) if !self.announcer.is_empty() || !self.questions.is_empty() => {
                self.dwell_ms()
            }
            Page::Question | Page::Sure(_) if self.announcer.has(ASIDES) => MS_PER_WINDOW,
            _ => return None,
        };
        Some(self.shown_since_ms.saturating_add(wait))
    }

    /// A key was pressed.
    pub fn key(&mut self, key: Key, now_ms: u64) -> Option<Pressed> {
        self.settle(now_ms);
        let last = self.windows().len().saturating_sub(1);
        if matches!(self.page, Page::Message(..)) && !matches!(key, Key::Routing(_)) {
            // It is being read.
            self.shown_since_ms = now_ms;
        }
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
        if self.behind.is_some() {
            // The rest of an answer to a key is left out with it.
            self.announcer.forget(Class::Feedback);
            self.next_message(now_ms);
            return None;
        }
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
        if let Page::Message(id, ..) = self.page {
            self.announcer.ended(id, End::Spoken, now_ms);
            self.go_back(now_ms);
            self.settle(now_ms);
        }
    }

    /// From a message to the question behind it, at the window where it was.
    fn go_back(&mut self, now_ms: u64) {
        let (page, window) = self.behind.take().unwrap_or((Page::Nothing, 0));
        self.turn(page, now_ms);
        self.turn_to(window, now_ms);
    }

    /// How long a message stays, from where it was panned to.
    fn dwell_ms(&self) -> u64 {
        let left = self.windows().len().saturating_sub(self.window);
        let whole = MS_PER_WINDOW * u64::try_from(left).unwrap_or(1).max(1);
        match (&self.page, &self.behind) {
            // A new question does not wait until the help was read.
            (Page::Message(_, Class::Feedback, _), None) if !self.questions.is_empty() => {
                MS_PER_WINDOW
            }
            (Page::Message(_, Class::Error | Class::Notice, _), Some(_)) => whole.min(MAX_ASIDE_MS),
            _ => whole,
        }
    }

    /// Puts on the display what belongs there. A question comes before everything but what was just
    /// said and may not wait, which is read first.
    fn settle(&mut self, now_ms: u64) {
        let over = now_ms >= self.shown_since_ms.saturating_add(self.dwell_ms());
        match self.page {
            Page::Message(id, class, _) if !class.is_urgent() && !self.questions.is_empty() => {
                self.announcer.give_way(id);
                self.page = Page::Nothing;
            }
            Page::Message(id, ..) if over && self.next_deadline().is_some() => {
                self.announcer.ended(id, End::Spoken, now_ms);
                self.go_back(now_ms);
            }
            // It is shown for as long as it takes to read.
            Page::Message(id, ..) => self.announcer.goes_on(id, now_ms.saturating_add(1)),
            _ => {}
        }
        loop {
            if matches!(self.page, Page::Nothing) && !self.questions.is_empty() {
                self.turn(Page::Question, now_ms);
            }
            let was_read = now_ms >= self.shown_since_ms.saturating_add(MS_PER_WINDOW);
            let asides = if was_read { ASIDES } else { AT_ONCE };
            self.announcer.only((!self.questions.is_empty()).then_some(asides));
            match self.announcer.poll(now_ms) {
                Some(Action::Say { id, utterance }) => {
                    self.dismissed = false;
                    if matches!(self.page, Page::Question | Page::Sure(_)) {
                        self.behind = Some((self.page.clone(), self.window));
                    }
                    let line = utterance.line.replace('\n', " ");
                    self.turn(Page::Message(id, utterance.class, line), now_ms);
                }
                Some(Action::Stop) if matches!(self.page, Page::Message(..)) => {
                    self.go_back(now_ms)
                }
                Some(Action::Stop) => {}
                None => return,
            }
        }
    }

    fn windows(&self) -> Vec<Window> {
        let room = self.cells.saturating_sub(STATUS_CELLS).max(1);
        match (&self.page, self.questions.first()) {
            (Page::Message(_, _, line), _) => wrap(line, &[], room),
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
