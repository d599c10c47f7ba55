//! The conversation: what happens, what is typed and what time it is come in; what is said, sent and
//! sounded comes out. It does no input or output, so that a test can hear every word of it.
//!
//! * Each question is announced once, at once, and stays until it is settled.
//! * One question is in focus: what is typed answers that one, and only after it was said.
//! * An answer that is not certain is asked back for; nothing lies under a bare Enter.

mod answering;
mod braille;
mod commands;
mod going_on;
mod presence;
mod reading;
mod saying;
mod scan;
mod sessions;
#[cfg(test)]
pub(super) mod stories;
#[cfg(test)]
mod tests;
mod vocabulary;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::words::{Argument, Manner, Span, SpokenLine, Words, safe};
use aaep_subscriber::{Agent, Asks, Notification, Request, RequestHandle, RequestOutcome};
use aaep_types::{EventKind, LenientEvent, Verbosity};
use aaep_voice::announcer::Announcer;
use aaep_voice::speech::Notice;
use aaep_voice::utterance::{Class, Utterance};

pub(crate) use answering::{Named, SecondStep};
pub(crate) use reading::By;

use super::standing::StandingRules;
use crate::exit::Exit;
use going_on::Superseded;
use reading::Reading;
use saying::About;
use scan::Scan;
use sessions::{Live, Sessions};
use vocabulary::Vocabulary;

/// A question whose time runs out is warned of this long ahead, or at a tenth of its time if that is
/// more, or at half of its time if that is less (WCAG 2.2.1).
const WARNING_MS: u64 = 30_000;

/// How the conversation goes.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) manner: Manner,
    pub(crate) by: By,
    /// Only questions, endings and trouble.
    pub(crate) quiet: bool,
    pub(crate) second_step: SecondStep,
    /// Whole lines are typed rather than keys.
    pub(crate) lines: bool,
    pub(crate) once: bool,
    /// What is typed sooner after a question than this does not answer it.
    pub(crate) pause_ms: u64,
    pub(crate) standing: Option<StandingRules>,
    /// A program listens: it hears everything at once, under the numbers that requests have.
    pub(crate) for_program: bool,
    /// The user has one key: each choice is offered for this long.
    pub(crate) scan_ms: Option<u64>,
    /// What is typed comes from speech recognition.
    pub(crate) dictation: bool,
}

/// What comes out.
#[derive(Debug, PartialEq)]
pub(crate) enum Output {
    Say(Utterance),
    /// A request waits for the user.
    Waits(u32),
    /// It no longer does.
    NoLongerWaits(u32),
    /// For a voice that speaks.
    Voice(Voice),
    Sound(Sound),
    /// For the request that the inbox knows by this id.
    Reply {
        id: RequestHandle,
        request: Arc<Request>,
        answer: Answer,
    },
    MoreTime {
        id: RequestHandle,
        request: Arc<Request>,
        seconds: u32,
    },
    Stop {
        agent: Agent,
        session_id: Arc<str>,
    },
    Quit(Exit),
}

/// What the user wants of the voice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Voice {
    /// To stop, because something else was asked for.
    Interrupt,
    Silence,
    Skip,
    Pause,
}

/// What is heard without words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sound {
    /// An agent waits for the user.
    Blocked,
    Done,
    Error,
    /// A question's time runs out.
    Waiting,
}

/// A question that waits.
#[derive(Debug)]
struct Open {
    /// Under the number that the person knows. Its id, by which it is answered, is another one after
    /// it got more time.
    request: Arc<Request>,
    /// An answer is on its way.
    sent: bool,
    /// It waits here, for the PIN.
    unproven: bool,
    /// That its time runs out was said.
    warned: bool,
    /// When it was said last.
    said_at: u64,
}

/// What is said only once.
#[derive(Debug, Default)]
struct Greeted {
    connected: bool,
    lost: bool,
    input_ended: bool,
}

/// What the next key or line means.
#[derive(Debug, PartialEq)]
enum Mode {
    Free,
    /// It is the answer to this question.
    Answering(u32),
    /// It is the word that makes a yes to this question certain.
    Certain(u32),
    /// It says whether this is the answer to this question.
    Sending(u32, String),
    /// It is the number of the session to stop.
    Choosing(Vec<Live>),
    /// It says whether this session shall really be stopped.
    Stopping(Live),
    /// It says whether the user really wants to leave.
    Quitting,
}

pub(crate) struct Talk {
    words: Words,
    vocabulary: Vocabulary,
    settings: Settings,
    quotes: (String, String),
    /// The first agent that was heard.
    agent: Option<Arc<str>>,
    open: Vec<Open>,
    superseded: Vec<Superseded>,
    /// The number of the question that an answer is for.
    focus: Option<u32>,
    /// What was typed behind a yes or no that has not left yet, and for which question.
    reason: Option<(u32, String)>,
    mode: Mode,
    scan: Option<Scan>,
    sessions: Sessions,
    reading: Reading,
    greeted: Greeted,
    last: Vec<Utterance>,
    /// Decides what is said now and what waits.
    announcer: Announcer,
    /// Answers from here do not count.
    listens_only: bool,
    /// A PIN is being typed, key by key.
    types_pin: bool,
    /// How often each hint was said.
    hints: BTreeMap<&'static str, u8>,
    out: VecDeque<Output>,
    now: u64,
}

impl Talk {
    pub(crate) fn new(words: Words, settings: Settings) -> Self {
        let vocabulary = Vocabulary::new(&words);
        let quote = |key| words.phrase(key, &[]).to_string();
        let quotes = (quote("terminal.quote.open"), quote("terminal.quote.close"));
        Self {
            vocabulary,
            quotes,
            reading: Reading::new(settings.by, settings.quiet),
            words,
            settings,
            agent: None,
            open: Vec::new(),
            superseded: Vec::new(),
            focus: None,
            reason: None,
            mode: Mode::Free,
            scan: None,
            sessions: Sessions::default(),
            greeted: Greeted::default(),
            last: Vec::new(),
            announcer: Announcer::default(),
            listens_only: false,
            types_pin: false,
            hints: BTreeMap::new(),
            out: VecDeque::new(),
            now: 0,
        }
    }

    /// The next thing to do; `None` when there is nothing until something comes in.
    pub(crate) fn poll(&mut self) -> Option<Output> {
        if self.out.is_empty() {
            self.print_next();
        }
        self.out.pop_front()
    }

    /// Whether a whole line is typed next, rather than a key.
    pub(crate) fn wants_line(&self) -> bool {
        self.settings.lines || self.is_typing()
    }

    /// Whether somebody who presses keys is typing an answer just now.
    pub(crate) fn is_typing(&self) -> bool {
        matches!(self.mode, Mode::Answering(_) | Mode::Certain(_))
    }

    /// Whether what is typed next makes a yes certain.
    pub(crate) fn wants_certainty(&self) -> bool {
        matches!(self.mode, Mode::Certain(_))
    }

    /// The number of the request that an answer is for.
    pub(crate) fn focus(&self) -> Option<u32> {
        self.focus
    }

    /// A request that waits.
    pub(crate) fn request(&self, number: u32) -> Option<Arc<Request>> {
        self.find(number).map(|open| open.request.clone())
    }

    /// A line was longer than any answer.
    pub(crate) fn too_long(&mut self) {
        self.say("misfit.long", &[]);
    }

    /// A program sent what nobody can read.
    pub(crate) fn not_understood(&mut self) {
        self.say("not_understood", &[]);
    }

    /// Nothing more can be typed; it is said once.
    pub(crate) fn input_ended(&mut self) {
        if !std::mem::replace(&mut self.greeted.input_ended, true) {
            self.say("input_ended", &[]);
        }
    }

    /// The user's own rules are in force.
    pub(crate) fn rules_in_force(&mut self, file: &str) {
        self.say("rule_file", &[("file", Argument::Ours(file))]);
    }

    /// Sounds are made by this program.
    pub(crate) fn sounds_by(&mut self, program: &str) {
        self.say("sounds_by", &[("program", Argument::Ours(program))]);
    }

    /// An agent could not be told to stop.
    pub(crate) fn not_stopped(&mut self, agent: &Agent) {
        self.say("stop.not_sent", &[("agent", Argument::Theirs(&agent.name))]);
    }

    /// Somebody wants all of this to end.
    pub(crate) fn stopped(&mut self) {
        self.say("stopped", &[]);
    }

    /// A voice has something to tell.
    pub(crate) fn voice(&mut self, notice: &Notice) {
        match notice {
            Notice::Lost(why) => {
                let why = format!("{}.", why.trim_end_matches('.'));
                self.say("voice.lost", &[("why", Argument::Ours(&why))]);
            }
            Notice::Back => self.say("voice.back", &[]),
            Notice::LeftOut(count) => {
                self.say("voice.left_out", &[("count", Argument::Count(*count))]);
            }
            _ => {}
        }
    }

    /// Something happened.
    pub(crate) fn happened(&mut self, notification: &Notification, now: u64) {
        self.now = self.now.max(now);
        self.note_agent(notification);
        match notification {
            Notification::Event { agent, json, critical } => {
                self.event(notification, agent, json, *critical);
            }
            Notification::Asked(request) => self.asked(notification, request),
            Notification::Settled { request, outcome, announced } => {
                self.settled(request, *outcome, *announced);
            }
            Notification::Text { .. } => self.text(notification),
            Notification::Over { session_id, .. } => {
                // enforces: I32
                self.sessions.forget(session_id);
                self.tell_of(notification, &About::new(Class::Result));
            }
            Notification::Lost { .. } => {
                self.tell_of(notification, &About::new(Class::Error));
                if !std::mem::replace(&mut self.greeted.lost, true) && !self.greeted.connected {
                    self.say("no_hub", &[]);
                }
            }
            Notification::Presence { .. } => {
                self.tell_of(notification, &About::new(Class::Error));
            }
            Notification::Connected { may_reply, .. } => {
                self.listens_only = !may_reply;
                self.tell_of(notification, &About::new(Class::Error));
                let first = !std::mem::replace(&mut self.greeted.connected, true);
                // Who cannot type needs no hint what to type.
                if first && !self.greeted.input_ended {
                    self.say(self.by_mode("hint"), &[]);
                }
            }
            _ => self.tell_of(notification, &About::new(Class::Result)),
        }
    }

    /// As soon as a second agent is heard, it is said who speaks.
    fn note_agent(&mut self, notification: &Notification) {
        let agent = match notification {
            Notification::Event { agent, .. }
            | Notification::Text { agent, .. }
            | Notification::Over { agent, .. }
            | Notification::Silence { agent, .. } => agent,
            Notification::Asked(request) | Notification::Settled { request, .. } => &request.agent,
            _ => return,
        };
        match &self.agent {
            None => self.agent = Some(agent.id.clone()),
            Some(known) => self.settings.manner.name_agents |= *known != agent.id,
        }
    }

    // enforces: T5, T28, T30, T36
    fn event(&mut self, notification: &Notification, agent: &Agent, json: &str, critical: bool) {
        let heard = LenientEvent::parse(json.as_bytes()).ok();
        let kind = heard.as_ref().and_then(LenientEvent::kind);
        let ends = matches!(
            kind,
            Some(
                EventKind::SessionCompleted
                    | EventKind::SessionErrored
                    | EventKind::SessionCancelled
            )
        );
        let sound = match kind {
            Some(EventKind::SessionErrored) => Some(Sound::Error),
            Some(EventKind::SessionCompleted | EventKind::SessionCancelled) => Some(Sound::Done),
            _ => None,
        };
        self.out.extend(sound.map(Output::Sound));
        let mut lines = self.lines_of(notification);
        let about = About::event(heard.as_ref(), critical, self.words.language());
        if let Some(heard) = &heard {
            if kind == Some(EventKind::SessionCompleted) && !self.settings.quiet {
                self.leave_out_repeated(&mut lines, heard.session_id());
            }
            if kind == Some(EventKind::ToolInvoked) {
                self.leave_out_allowed(&mut lines, agent, heard.session_id());
            }
            self.note_session(agent, heard.session_id(), &lines, ends);
            self.sessions.speaks(heard.session_id(), about.language());
        }
        // That an agent waits is said by its request.
        let waits = heard.as_ref().is_some_and(|heard| {
            kind == Some(EventKind::StateChanged)
                && heard.text("to_state").as_deref() == Some("awaiting_input")
        });
        if critical || ends || !self.settings.quiet && !waits {
            self.tell(&lines, &about);
        }
        if ends && self.settings.once && self.open.is_empty() {
            let wrong = kind == Some(EventKind::SessionErrored);
            self.end(if wrong { Exit::Wrong } else { Exit::Good });
        }
    }

    /// An end often says the answer again, which was just said.
    fn leave_out_repeated(&self, lines: &mut [SpokenLine], session_id: &str) {
        let last = self.sessions.find(session_id).and_then(|live| live.words.as_deref());
        if let Some(SpokenLine { spans }) = lines.first_mut()
            && let Some(at) = spans.iter().rposition(|span| matches!(span, Span::Theirs(_)))
            && last == Some(spans[at].text())
        {
            spans.truncate(at);
            if let Some(Span::Ours(text)) = spans.last_mut() {
                text.truncate(text.trim_end().len());
            }
        }
    }

    /// What was just allowed is not said as if it were asked again, only that it is done now.
    fn leave_out_allowed(&mut self, lines: &mut Vec<SpokenLine>, agent: &Agent, session_id: &str) {
        let Some(action) = self.sessions.take_allowed(session_id) else { return };
        let mut spans = lines.iter().flat_map(|said| &said.spans);
        let same = spans.any(|span| *span == Span::Theirs(action.clone()));
        if same && self.settings.manner.verbosity != Verbosity::Detailed {
            let mut said = self.words.phrase("terminal.under_way", &[]);
            if self.settings.manner.name_agents {
                let (name, line) = (Argument::Theirs(&agent.name), Argument::Phrase(&said));
                said = self.words.phrase("named", &[("agent", name), ("line", line)]);
            }
            *lines = vec![said];
        }
    }

    /// Remembers what was said of a session last.
    fn note_session(&mut self, agent: &Agent, session_id: &str, lines: &[SpokenLine], ends: bool) {
        let spans = lines.last().map(|said| said.spans.as_slice()).unwrap_or_default();
        let theirs = spans.iter().rev().find(|span| matches!(span, Span::Theirs(_)));
        let printed: Vec<String> = lines.iter().map(|said| self.line(said)).collect();
        self.sessions.note(agent, session_id, &printed, theirs.map(Span::text), ends);
    }

    // enforces: T21, T28, S10
    fn asked(&mut self, notification: &Notification, request: &Arc<Request>) {
        if self.open.iter().any(|open| open.request.id == request.id) || self.goes_on(request) {
            return;
        }
        self.open.push(Open {
            request: request.clone(),
            sent: false,
            unproven: false,
            warned: false,
            said_at: self.now,
        });
        let continued = request.continues.filter(|before| self.focus == Some(*before));
        let lines = self.lines_of(notification);
        if self.sessions.find(&request.session_id).is_none() {
            self.note_session(&request.agent, &request.session_id, &lines, false);
        }
        if self.settle_by_rule(request, &lines) {
            return;
        }
        if request.continues.is_none() {
            self.out.push_back(Output::Sound(Sound::Blocked));
        }
        self.opens(request.number);
        let about = About::request(Class::Request, request);
        self.tell(&lines, &about);
        // What was superseded by another question than itself leaves nothing in focus.
        if continued.is_some() || self.focused().is_none() {
            self.focus = Some(request.number);
            self.hint_keys(request);
        } else {
            let arguments = [("number", count(request.number))];
            let about = About::request(Class::Notice, request);
            self.say_about(self.by_mode("also_waits"), &arguments, &about);
        }
    }

    // enforces: C25, D30
    fn settled(&mut self, request: &Arc<Request>, outcome: RequestOutcome, announced: bool) {
        let at = self.open.iter().position(|open| open.request.id == request.id);
        let open = at.map(|at| self.open.remove(at));
        if outcome == RequestOutcome::Superseded
            && let Some(open) = open
        {
            return self.is_superseded(open);
        }
        let request = open.map_or(request.clone(), |open| open.request);
        if matches!(outcome, RequestOutcome::Accepted | RequestOutcome::AcceptedElsewhere) {
            self.sessions.allow(&request.session_id, &safe(about(&request.asks)).text);
        }
        self.over(request, outcome, announced);
        if announced && self.settings.once && outcome != RequestOutcome::Superseded {
            let wrong = matches!(
                outcome,
                RequestOutcome::TimedOut
                    | RequestOutcome::Cancelled
                    | RequestOutcome::WrongClock
                    | RequestOutcome::Gone
            );
            self.end(if wrong { Exit::Wrong } else { Exit::Good });
        }
    }

    /// A request waits no longer; the next one comes into focus.
    fn over(&mut self, request: Arc<Request>, outcome: RequestOutcome, announced: bool) {
        let number = request.number;
        self.closes(number);
        if announced {
            let about = About::request(Class::Outcome, &request);
            self.tell_of(&Notification::Settled { request, outcome, announced }, &about);
        }
        let typing = match self.mode {
            Mode::Answering(of) | Mode::Certain(of) | Mode::Sending(of, _) => of == number,
            _ => false,
        };
        if typing {
            self.mode = Mode::Free;
            self.say("no_longer_needed", &[]);
        }
        // The same question follows under another number.
        if outcome == RequestOutcome::Superseded && self.focus == Some(number) {
            return;
        }
        if self.focus == Some(number) {
            self.focus = None;
        }
        self.focus_next();
    }

    /// Ends, after what may still be said.
    fn end(&mut self, exit: Exit) {
        while self.print_next() {}
        self.out.push_back(Output::Quit(exit));
    }

    /// Time passes.
    pub(crate) fn tick(&mut self, now: u64) {
        self.now = self.now.max(now);
        let now = self.now;
        self.give_up_superseded(|old| old.is_late(now));
        self.scan_on();
        let due = |open: &&mut Open| {
            let whole = open.request.timeout_seconds.saturating_mul(1000);
            let ahead = WARNING_MS.max(whole / 10).min(whole / 2);
            let left = open.request.deadline_ms.saturating_sub(now);
            let waits = !open.sent || open.unproven;
            waits && !open.warned && left > 0 && left <= ahead
        };
        let mut late = Vec::new();
        for open in self.open.iter_mut().filter(due) {
            open.warned = true;
            late.push(open.request.clone());
        }
        for request in late {
            let left = self.left(&request);
            let arguments = [("number", count(request.number)), ("time", Argument::Phrase(&left))];
            let about = About::request(Class::Notice, &request);
            self.out.push_back(Output::Sound(Sound::Waiting));
            self.say_about(self.by_mode("time_runs_out"), &arguments, &about);
        }
    }

    /// Puts the oldest question that waits for an answer in focus, and says it again: nobody answers
    /// what they do not have in mind.
    fn focus_next(&mut self) {
        let stays = |open: &Open| !open.sent || open.unproven;
        if self.focus.is_some_and(|number| self.find(number).is_some_and(stays)) {
            return;
        }
        let next = self.open.iter().find(|open| !open.sent).map(|open| open.request.clone());
        self.focus = next.as_ref().map(|request| request.number);
        if let Some(request) = next {
            let about = About::request(Class::Request, &request);
            self.say_about("still_waits", &[("number", count(request.number))], &about);
            self.say_question(&request);
        }
    }

    /// What is kept of the agents' words, in bytes.
    #[cfg(test)]
    pub(super) fn kept_bytes(&self) -> usize {
        let size = |said: &Utterance| said.line.len() + said.text().len();
        let lines = self.announcer.waiting().chain(&self.last).map(size).sum::<usize>();
        lines + self.sessions.bytes() + self.reading.bytes()
    }

    fn find(&self, number: u32) -> Option<&Open> {
        self.open.iter().find(|open| open.request.number == number)
    }

    fn find_mut(&mut self, number: u32) -> Option<&mut Open> {
        self.open.iter_mut().find(|open| open.request.number == number)
    }

    /// The question in focus.
    fn focused(&self) -> Option<Arc<Request>> {
        self.focus.and_then(|number| self.find(number)).map(|open| open.request.clone())
    }
}

fn count(number: u32) -> Argument<'static> {
    Argument::Count(u64::from(number))
}

/// What a question is about, in the agent's words.
fn about(asks: &Asks) -> &str {
    match asks {
        Asks::Consent { action, .. } => action,
        Asks::Answer { question, .. } => question,
    }
}
