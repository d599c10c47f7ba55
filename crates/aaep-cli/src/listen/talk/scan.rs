//! The whole conversation with one key: what can be chosen is offered, one after the other, at the
//! person's pace, and the key takes what is offered.
//!
//! Nothing is offered until the key is pressed, and after two rounds without a choice it stops. What is
//! safe comes first. A press right after something was offered counts for nothing: it may have been
//! meant for what was offered before.

use std::sync::Arc;

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::words::{Argument, Span, SpokenLine};
use aaep_subscriber::{Asks, Request};
use aaep_types::ResponseKind;
use aaep_voice::utterance::Class;

use super::answering::is_grave;
use super::saying::About;
use super::{Output, Talk, Voice};

/// How often everything is offered before it stops.
const ROUNDS: u8 = 2;

/// The longest answer that is written letter by letter.
const LETTERS: usize = 200;

/// What can be chosen.
#[derive(Clone, Debug, PartialEq)]
enum Item {
    No,
    Yes,
    /// The second step of a grave yes.
    Sure,
    /// A choice of the question, by its place.
    Choice(usize),
    /// Write an answer, letter by letter.
    Write,
    Group(String),
    Letter(char),
    Space,
    Delete,
    Send,
    Back,
    Repeat,
    Details,
    MoreTime,
    Next,
    Doing,
    Quit,
}

/// What is being offered.
#[derive(Debug)]
pub(super) struct Scan {
    items: Vec<Item>,
    at: usize,
    since: u64,
    rounds: u8,
    request: Option<u32>,
    /// What was written so far.
    written: String,
}

impl Scan {
    /// The request that it is about.
    pub(super) fn request(&self) -> Option<u32> {
        self.request
    }
}

impl Talk {
    /// The key was pressed.
    pub(super) fn switch(&mut self) {
        let Some(scan) = &mut self.scan else { return self.begin_scan() };
        if self.now < scan.since.saturating_add(self.settings.pause_ms) {
            scan.since = self.now;
            return self.offer();
        }
        if let Some(scan) = self.scan.take() {
            self.out.push_back(Output::Voice(Voice::Interrupt));
            let item = scan.items[scan.at].clone();
            self.choose(scan, item);
            self.after_answer();
        }
    }

    /// Time passes: the next one is offered.
    pub(super) fn scan_on(&mut self) {
        let (Some(scan), Some(pace)) = (&mut self.scan, self.settings.scan_ms) else { return };
        if self.now < scan.since.saturating_add(pace) {
            return;
        }
        scan.since = self.now;
        scan.at = (scan.at + 1) % scan.items.len();
        scan.rounds += u8::from(scan.at == 0);
        if scan.rounds < ROUNDS {
            return self.offer();
        }
        self.scan = None;
        self.say("scan.nothing_chosen", &[]);
    }

    fn begin_scan(&mut self) {
        self.out.push_back(Output::Voice(Voice::Interrupt));
        match self.focused() {
            Some(request) => {
                let items = self.answers_to(&request);
                self.scan(items, Some(request.number), String::new());
            }
            None => {
                let items = vec![Item::Doing, Item::Repeat, Item::Quit, Item::Back];
                self.scan(items, None, String::new());
            }
        }
    }

    fn scan(&mut self, items: Vec<Item>, request: Option<u32>, written: String) {
        self.scan = Some(Scan { items, at: 0, since: self.now, rounds: 0, request, written });
        self.offer();
    }

    fn answers_to(&self, request: &Request) -> Vec<Item> {
        let mut items = Vec::new();
        match &request.asks {
            Asks::Consent { .. } => items.extend([Item::No, Item::Yes]),
            Asks::Answer { kinds, choices, .. } => {
                let takes = |kind| kinds.contains(&kind);
                if takes(ResponseKind::MultipleChoice) {
                    items.extend((0..choices.len()).map(Item::Choice));
                }
                if takes(ResponseKind::YesNo) {
                    items.extend([Item::No, Item::Yes]);
                }
                let words = takes(ResponseKind::Freetext) || takes(ResponseKind::Numeric);
                if words || kinds.is_empty() {
                    items.push(Item::Write);
                }
            }
        }
        items.extend([Item::Repeat, Item::Details, Item::MoreTime]);
        if self.open.iter().filter(|open| !open.sent).count() > 1 {
            items.push(Item::Next);
        }
        items.push(Item::Back);
        items
    }

    /// Says what is offered now.
    fn offer(&mut self) {
        let Some(scan) = &self.scan else { return };
        let said = match &scan.items[scan.at] {
            Item::Choice(at) => self.choice(scan.request, *at),
            Item::Group(letters) => {
                let ends = [letters.chars().next(), letters.chars().next_back()];
                let [first, last] = ends.map(|end| end.map(String::from).unwrap_or_default());
                let both = [("first", Argument::Ours(&first)), ("last", Argument::Ours(&last))];
                self.words.phrase("terminal.scan.group", &both)
            }
            Item::Letter(letter) => SpokenLine { spans: vec![Span::Ours(letter.to_string())] },
            Item::Send => {
                let written = [("answer", Argument::Ours(scan.written.as_str()))];
                self.words.phrase("terminal.scan.send", &written)
            }
            item => self.words.phrase(&format!("terminal.scan.{}", name(item)), &[]),
        };
        // It says what the key does now: it is the answer to the last one.
        let about = About::new(Class::Feedback);
        let utterance = self.utterance(&said, &about);
        self.announce(utterance);
    }

    fn choice(&self, request: Option<u32>, at: usize) -> SpokenLine {
        let request = request.and_then(|number| self.request(number));
        let Some(Asks::Answer { choices, .. }) = request.as_ref().map(|it| &it.asks) else {
            return SpokenLine::default();
        };
        let number = Argument::Count(u64::try_from(at).unwrap_or(u64::MAX).saturating_add(1));
        let choice = choices.get(at);
        let label = choice.map_or("", |it| if it.label.is_empty() { &it.value } else { &it.label });
        self.words.phrase("ask.choice", &[("number", number), ("label", Argument::Theirs(label))])
    }

    // enforces: T21
    fn choose(&mut self, scan: Scan, item: Item) {
        let number = scan.request.unwrap_or_default();
        let request = self.find(number).filter(|open| !open.sent).map(|open| open.request.clone());
        match (item, request) {
            (Item::Repeat, _) => self.repeat(),
            (Item::Doing, _) => self.doing(),
            (Item::Quit, _) => self.leave(),
            (Item::Back, _) => self.say("scan.back_done", &[]),
            (Item::Details, _) => self.details(),
            (Item::MoreTime, _) => self.more_time(),
            (Item::Next, _) => self.next(),
            (_, None) => self.say("no_longer_needed", &[]),
            (Item::Yes, Some(request))
                if self.needs_second_step(&request.asks) && !self.too_soon(number) =>
            {
                let key = if is_grave(&request.asks) { "scan.grave" } else { "scan.certain" };
                self.say(key, &[]);
                self.scan(vec![Item::Back, Item::Sure], Some(number), String::new());
            }
            (Item::Yes, Some(request)) if self.needs_second_step(&request.asks) => {}
            (Item::Yes, _) => self.yes_or_no(true),
            (Item::No, _) => self.yes_or_no(false),
            (Item::Sure, Some(request)) => self.send(&request, Answer::Accept),
            (Item::Choice(at), Some(request)) => {
                self.answer(&request, &at.saturating_add(1).to_string());
            }
            (Item::Write, Some(_)) => self.write(number, String::new()),
            (Item::Group(letters), Some(_)) => {
                let mut items: Vec<Item> = letters.chars().map(Item::Letter).collect();
                items.push(Item::Back);
                self.scan(items, Some(number), scan.written);
            }
            (Item::Letter(letter), Some(_)) => {
                self.write(number, scan.written + &letter.to_string())
            }
            (Item::Space, Some(_)) => self.write(number, scan.written + " "),
            (Item::Delete, Some(_)) => {
                let mut written = scan.written;
                written.pop();
                self.write(number, written);
            }
            (Item::Send, Some(request)) => self.send_written(&request, &scan.written),
        }
    }

    /// Offers the letters.
    fn write(&mut self, number: u32, written: String) {
        let letters = self.words.phrase("terminal.scan.letters", &[]).to_string();
        let mut items: Vec<Item> = Vec::new();
        if !written.is_empty() {
            items.push(Item::Send);
        }
        if written.chars().count() < LETTERS {
            items.extend(letters.split_whitespace().map(|group| {
                let mut letters = group.chars();
                // A mark, such as that of a tone or a vowel, is a group by itself.
                match (letters.next(), letters.next()) {
                    (Some(letter), None) => Item::Letter(letter),
                    _ => Item::Group(group.to_owned()),
                }
            }));
            items.push(Item::Space);
        }
        if !written.is_empty() {
            items.push(Item::Delete);
        }
        items.push(Item::Back);
        self.scan(items, Some(number), written);
    }

    fn send_written(&mut self, request: &Arc<Request>, written: &str) {
        self.answer(request, written);
        // It does not fit: it is mended rather than written anew.
        if self.find(request.number).is_some_and(|open| !open.sent) {
            self.mode = super::Mode::Free;
            self.write(request.number, written.to_owned());
        }
    }
}

fn name(item: &Item) -> &'static str {
    match item {
        Item::No => "no",
        Item::Yes => "yes",
        Item::Sure => "sure",
        Item::Write => "write",
        Item::Space => "space",
        Item::Delete => "delete",
        Item::Back => "back",
        Item::Repeat => "repeat",
        Item::Details => "details",
        Item::MoreTime => "more_time",
        Item::Next => "next",
        Item::Doing => "doing",
        Item::Quit => "quit",
        Item::Choice(_) | Item::Group(_) | Item::Letter(_) | Item::Send => "",
    }
}
