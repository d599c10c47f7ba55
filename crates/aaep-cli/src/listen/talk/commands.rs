//! What is typed, and what it does.

use aaep_subscriber::words::{Argument, Manner, Span, SpokenLine};
use aaep_types::Verbosity;
use aaep_voice::utterance::{Class, Utterance};

use super::answering::takes_yes_no;
use super::saying::{About, harmless};
use super::sessions::Live;
use super::vocabulary::{self, Command};
use super::{Mode, Output, Talk, Voice, about, count};
use crate::exit::Exit;

/// More time is at least this long, and at least twice the time that was given.
const MORE_SECONDS: u64 = 600;

/// The longest time (§4.4.1).
const MOST_SECONDS: u64 = 86_400;

/// Sessions that can be chosen from with one key.
const CHOICES: usize = 9;

/// What help tells, in this order.
const HELP: [&str; 17] = [
    "yes", "no", "answer", "number", "repeat", "details", "spell", "list", "next", "time", "doing",
    "hush", "skip", "pause", "play", "stop", "quit",
];

impl Talk {
    /// A key was pressed, or a line was typed.
    pub(crate) fn typed(&mut self, text: &str, now: u64) {
        self.now = self.now.max(now);
        if self.settings.scan_ms.is_some() {
            return self.switch();
        }
        let cleaned = self.settings.dictation.then(|| spoken(text));
        let text = cleaned.as_deref().unwrap_or(text);
        match std::mem::replace(&mut self.mode, Mode::Free) {
            Mode::Free => self.free(text),
            Mode::Answering(number) => self.typed_answer(number, text),
            Mode::Certain(number) => self.certain(number, text),
            Mode::Sending(number, answer) => {
                let word = self.vocabulary.find(text.trim());
                self.really_send(number, &answer, word);
            }
            Mode::Choosing(live) => self.chose(live, text),
            Mode::Stopping(live) => self.stop_or_not(live, text),
            Mode::Quitting => self.quit_or_not(text),
        }
        self.after_answer();
    }

    /// Once an answer has left, the next question comes into focus.
    pub(super) fn after_answer(&mut self) {
        if self.mode == Mode::Free && self.focus.is_none() {
            self.focus_next();
        }
    }

    fn free(&mut self, text: &str) {
        match text {
            "\t" => return self.next(),
            // A stray Enter or Escape does nothing but say where one is.
            _ if text.trim().is_empty() || text.starts_with('\u{1b}') => return self.where_am_i(),
            _ => {}
        }
        if let Some(number) = vocabulary::whole(text) {
            return self.number(number);
        }
        let Some((command, rest)) = self.vocabulary.read(text) else { return self.unknown(text) };
        // A letter alone may be anything that was misheard.
        if self.settings.dictation && text.len() == 1 {
            return self.unknown(text);
        }
        if !rest.is_empty() && command != Command::Answer {
            // `yes 3` is for question 3; `yes please` is nothing that we know.
            match vocabulary::whole(rest) {
                Some(number) if self.find(number).is_some_and(|open| !open.sent) => {
                    self.focus = Some(number);
                }
                Some(number) => {
                    return self.say("no_such_request", &[("number", count(number))]);
                }
                // `no, use the branch` says why.
                None if matches!(command, Command::Yes | Command::No)
                    && self.because(command == Command::Yes, rest) =>
                {
                    return;
                }
                None => return self.unknown(text),
            }
        }
        self.run(command, text, rest);
    }

    fn run(&mut self, command: Command, text: &str, rest: &str) {
        if command.asks_for_words() {
            self.out.push_back(Output::Voice(Voice::Interrupt));
        }
        if matches!(command, Command::Yes | Command::No) {
            self.reason = None;
        }
        match command {
            Command::Yes => self.yes_or_no(true),
            // `n` is no where a question takes it, and next elsewhere.
            Command::No if text == "n" && !self.focus_takes_no() => self.next(),
            Command::No => self.yes_or_no(false),
            Command::Answer => self.begin_answer(rest),
            Command::Repeat => self.repeat(),
            Command::List => self.list(),
            Command::Details => self.details(),
            Command::Spell => self.spell(),
            Command::Doing => self.doing(),
            Command::Hush => self.hush(),
            Command::Skip => self.out.push_back(Output::Voice(Voice::Skip)),
            Command::Pause => self.out.push_back(Output::Voice(Voice::Pause)),
            Command::Play => self.play(),
            Command::Next => self.next(),
            Command::MoreTime => self.more_time(),
            Command::Stop => self.stop(),
            Command::Help => self.help(),
            Command::Quit => self.quit(),
        }
    }

    fn focus_takes_no(&self) -> bool {
        self.focused().is_some_and(|request| takes_yes_no(&request.asks))
    }

    fn where_am_i(&mut self) {
        match self.focused() {
            Some(request) => {
                let arguments = [("number", count(request.number))];
                self.say(self.by_mode("waits_here"), &arguments);
            }
            None => self.say(self.by_mode("nothing_waits_help"), &[]),
        }
    }

    pub(super) fn repeat(&mut self) {
        match self.focused() {
            Some(request) => self.say_question(&request),
            None if self.last.is_empty() => self.say("nothing_said", &[]),
            None => {
                let again = |said| Utterance { class: Class::Feedback, session: None, ..said };
                let last: Vec<Utterance> = self.last.iter().cloned().map(again).collect();
                last.into_iter().for_each(|utterance| self.announce(utterance));
            }
        }
    }

    fn list(&mut self) {
        if self.open.is_empty() {
            return self.say("nothing_waits", &[]);
        }
        let waiting = u64::try_from(self.open.len()).unwrap_or(u64::MAX);
        self.say("list", &[("count", Argument::Count(waiting))]);
        let open: Vec<_> = self.open.iter().map(|open| (open.request.clone(), open.sent)).collect();
        for (request, sent) in open {
            let key = match () {
                () if sent => "list.sent",
                () if self.focus == Some(request.number) => "list.here",
                () => "list.one",
            };
            let left = self.left(&request);
            let arguments = [
                ("number", count(request.number)),
                ("agent", Argument::Theirs(&request.agent.name)),
                ("action", Argument::Theirs(about(&request.asks))),
                ("time", Argument::Phrase(&left)),
            ];
            self.say(key, &arguments);
        }
    }

    pub(super) fn details(&mut self) {
        let Some(request) = self.focused() else {
            return self.say("nothing_waits", &[]);
        };
        let manner = Manner { verbosity: Verbosity::Detailed, ..self.settings.manner };
        let mut lines = self.again(&request, manner);
        // Said with the question where it is said unasked.
        if !request.says_account() {
            lines.extend(self.words.details(&request, &manner));
        }
        self.tell(&lines, &About::request(Class::Feedback, &request));
        let arguments = [
            ("agent", Argument::Theirs(&request.agent.name)),
            ("id", Argument::Theirs(&request.agent.id)),
        ];
        self.say("details.agent", &arguments);
        self.say_keys(&request);
    }

    /// Letter by letter, so that what only looks like a name is heard not to be it.
    fn spell(&mut self) {
        let Some(request) = self.focused() else {
            return self.say("nothing_waits", &[]);
        };
        let between = self.words.phrase("terminal.spell.between", &[]).to_string();
        let about = About::request(Class::Feedback, &request);
        for line in self.words.spell_lines(super::about(&request.asks), &between) {
            let mut utterance = self.utterance(&line, &about);
            utterance.line = harmless(line.to_string());
            self.announce(utterance);
        }
        self.hint_keys(&request);
    }

    pub(super) fn doing(&mut self) {
        let live = self.sessions.all();
        if live.is_empty() {
            self.say("nobody_works", &[]);
        }
        for live in live {
            let waits = self.open.iter().find(|open| open.request.session_id == live.session_id);
            let waits = waits.map(|open| open.request.number);
            let about = About::text(&live.session_id, live.language.clone());
            let said = SpokenLine { spans: vec![Span::Theirs(live.latest.clone())] };
            let said = self.utterance(&said, &about).printed(live.latest);
            self.announce(Utterance { class: Class::Feedback, session: None, ..said });
            if let Some(number) = waits {
                self.say("doing.waits", &[("number", count(number))]);
            }
        }
    }

    /// The next question, round and round.
    pub(super) fn next(&mut self) {
        let waiting: Vec<u32> =
            self.open.iter().filter(|open| !open.sent).map(|open| open.request.number).collect();
        let here = self.focus.and_then(|focus| waiting.iter().position(|at| *at == focus));
        match (waiting.len(), here) {
            (0, _) => self.say("nothing_waits", &[]),
            (1, Some(_)) => self.say("only_one", &[("number", count(waiting[0]))]),
            (length, here) => self.go_to(waiting[here.map_or(0, |here| (here + 1) % length)]),
        }
    }

    pub(super) fn go_to(&mut self, number: u32) {
        match self.find(number).filter(|open| !open.sent).map(|open| open.request.clone()) {
            Some(request) => {
                self.focus = Some(number);
                self.say_question(&request);
            }
            None => self.say("no_such_request", &[("number", count(number))]),
        }
    }

    pub(super) fn more_time(&mut self) {
        let open = self.focus.and_then(|number| self.find(number));
        let Some(open) = open else {
            return self.say("nothing_waits", &[]);
        };
        let request = open.request.clone();
        let seconds = request.timeout_seconds.saturating_mul(2);
        let seconds = seconds.clamp(MORE_SECONDS, MOST_SECONDS);
        let seconds = u32::try_from(seconds).unwrap_or(u32::MAX);
        self.say("more_time", &[("number", count(request.number))]);
        self.out.push_back(Output::MoreTime { id: request.id, request, seconds });
    }

    /// Which session, if that is not clear; then whether it is meant.
    fn stop(&mut self) {
        let focused = self.focused();
        let of_focus = focused.as_ref().and_then(|asked| self.sessions.find(&asked.session_id));
        if let Some(live) = of_focus.cloned() {
            return self.ask_to_stop(live);
        }
        let mut live = self.sessions.all();
        live.truncate(CHOICES);
        match live.len() {
            0 => self.say("nobody_works", &[]),
            1 => self.ask_to_stop(live.remove(0)),
            _ => {
                self.say(self.by_mode("stop.which"), &[]);
                for (number, live) in (1..).zip(&live) {
                    let arguments = [
                        ("number", count(number)),
                        ("agent", Argument::Theirs(&live.agent.name)),
                        ("latest", Argument::Ours(&live.latest)),
                    ];
                    self.say("stop.choice", &arguments);
                }
                self.mode = Mode::Choosing(live);
            }
        }
    }

    fn ask_to_stop(&mut self, live: Live) {
        let arguments = [("agent", Argument::Theirs(&live.agent.name))];
        self.say(self.by_mode("stop.sure"), &arguments);
        self.mode = Mode::Stopping(live);
    }

    fn chose(&mut self, mut live: Vec<Live>, text: &str) {
        let number = vocabulary::whole(text).and_then(|number| (number as usize).checked_sub(1));
        match number.filter(|number| *number < live.len()) {
            Some(number) => self.ask_to_stop(live.swap_remove(number)),
            None => self.say("stop.not", &[]),
        }
    }

    fn stop_or_not(&mut self, live: Live, text: &str) {
        if self.vocabulary.find(text.trim()) != Some(Command::Stop) {
            return self.say("stop.not", &[]);
        }
        self.say("stop.sent", &[("agent", Argument::Theirs(&live.agent.name))]);
        self.out.push_back(Output::Stop { agent: live.agent, session_id: live.session_id });
    }

    /// One command on each line: someone hears them one by one.
    fn help(&mut self) {
        for name in HELP {
            self.say(format!("help.{name}"), &[]);
        }
        if self.words.by_machine() {
            let said = self.words.phrase("by_machine", &[]);
            let utterance = self.utterance(&said, &About::new(Class::Feedback));
            self.announce(utterance);
        }
    }

    fn quit(&mut self) {
        let waiting = self.open.iter().filter(|open| !open.sent).count();
        if waiting == 0 {
            return self.leave();
        }
        let waiting = Argument::Count(u64::try_from(waiting).unwrap_or(u64::MAX));
        self.say(self.by_mode("quit.sure"), &[("count", waiting)]);
        self.mode = Mode::Quitting;
    }

    fn quit_or_not(&mut self, text: &str) {
        match self.vocabulary.find(text.trim()) {
            Some(Command::Quit) => self.leave(),
            _ => self.say("quit.not", &[]),
        }
    }

    pub(super) fn leave(&mut self) {
        self.say("goodbye", &[]);
        self.out.push_back(Output::Quit(Exit::Good));
    }
}

/// What was said, without the signs that speech recognition sets behind words.
fn spoken(text: &str) -> String {
    let bare =
        |text: &str| text.trim_matches(['.', ',', '!', '…', '。', '，', '！', '،', '।']).to_owned();
    match text.trim().split_once(char::is_whitespace) {
        Some((first, rest)) => format!("{} {}", bare(first), bare(rest.trim())),
        None => bare(text.trim()),
    }
}
