//! How something is said: in which words, on which lines, and when it has to wait.

use std::sync::Arc;

use aaep_subscriber::words::{Argument, Manner, Span, SpokenLine};
use aaep_subscriber::{Notification, Request};
use aaep_types::{EventKind, LenientEvent};
use aaep_voice::announcer::{Action, End, MAX_QUEUED};
use aaep_voice::utterance::{Class, Utterance};

use super::{Output, Talk, answering};

/// How often it is said what can be pressed for a kind of question; `d` and `?` always say it.
const HINTS: u8 = 3;

/// What the policy has to know of something that is said.
#[derive(Clone, Debug)]
pub(super) struct About {
    pub(super) class: Class,
    request: Option<u32>,
    session: Option<Arc<str>>,
    /// The language of the agent's words.
    language: Option<Arc<str>>,
}

impl About {
    pub(super) fn new(class: Class) -> Self {
        Self { class, request: None, session: None, language: None }
    }

    /// A request, or what is said of it.
    pub(super) fn request(class: Class, request: &Request) -> Self {
        let session = Some(request.session_id.clone());
        Self { class, request: Some(request.number), session, language: request.language.clone() }
    }

    pub(super) fn session(class: Class, session_id: &Arc<str>) -> Self {
        Self { session: Some(session_id.clone()), ..Self::new(class) }
    }

    pub(super) fn language(&self) -> Option<&Arc<str>> {
        self.language.as_ref()
    }

    /// The agent's text, in this language if it said so.
    pub(super) fn text(session_id: &Arc<str>, language: Option<Arc<str>>) -> Self {
        Self { language, ..Self::session(Class::Text, session_id) }
    }

    /// An event.
    pub(super) fn event(heard: Option<&LenientEvent<'_>>, critical: bool, ours: &str) -> Self {
        let Some(heard) = heard else {
            return Self::new(if critical { Class::Error } else { Class::Result });
        };
        let class = match heard.kind() {
            _ if critical => Class::Error,
            Some(EventKind::SessionCompleted | EventKind::SessionCancelled) => Class::End,
            Some(EventKind::ProgressUpdated) => Class::Progress,
            Some(EventKind::SessionStarted | EventKind::StateChanged | EventKind::ToolInvoked) => {
                Class::State
            }
            _ => Class::Result,
        };
        let hints = heard.object("localization_hints");
        let language = hints.and_then(|hints| hints.text("primary_language").map(Arc::from));
        // Where there is a variant in the listener's language, that is what is said.
        let variant = heard.text(&format!("summary_normal_{ours}")).is_some();
        Self {
            language: language.filter(|_| !variant),
            ..Self::session(class, &heard.session_id().into())
        }
    }
}

impl Talk {
    /// A question in full, with what can be pressed.
    pub(super) fn say_question(&mut self, request: &Arc<Request>) {
        let lines = self.again(request, self.settings.manner);
        self.tell(&lines, &About::request(Class::Request, request));
        self.hint_keys(request);
        let now = self.now;
        if let Some(open) = self.find_mut(request.number) {
            open.said_at = now;
        }
    }

    /// A question in full, with the time that is left.
    pub(super) fn again(&self, request: &Request, manner: Manner) -> Vec<SpokenLine> {
        let left = request.deadline_ms.saturating_sub(self.now).div_ceil(1000);
        let request = Request { continues: None, timeout_seconds: left, ..request.clone() };
        self.words.request(&request, &manner)
    }

    /// What can be pressed or typed for a question; always the last that is said of it.
    pub(super) fn say_keys(&mut self, request: &Request) {
        if self.settings.scan_ms.is_some() {
            return self.say_about("scan.press", &[], &About::request(Class::Request, request));
        }
        for key in answering::keys(&request.asks) {
            let about = About::request(Class::Request, request);
            self.say_about(self.by_mode(key), &[], &about);
        }
    }

    /// The same, the first times.
    pub(super) fn hint_keys(&mut self, request: &Request) {
        let keys = match self.settings.scan_ms {
            Some(_) => vec!["scan.press"],
            None => answering::keys(&request.asks),
        };
        for key in keys {
            let times = self.hints.entry(key).or_default();
            if *times < HINTS {
                *times += 1;
                let about = About::request(Class::Request, request);
                self.say_about(self.by_mode(key), &[], &about);
            }
        }
    }

    pub(super) fn lines_of(&self, notification: &Notification) -> Vec<SpokenLine> {
        self.words.say(notification, &self.settings.manner)
    }

    pub(super) fn tell_of(&mut self, notification: &Notification, about: &About) {
        let lines = self.lines_of(notification);
        if about.class != Class::Result || !self.settings.quiet {
            self.tell(&lines, about);
        }
    }

    /// Says lines, as soon as the policy lets them be said.
    pub(super) fn tell(&mut self, lines: &[SpokenLine], about: &About) {
        if lines.is_empty() {
            return;
        }
        let said: Vec<Utterance> = lines.iter().map(|said| self.utterance(said, about)).collect();
        self.last.clone_from(&said);
        said.into_iter().for_each(|utterance| self.announce(utterance));
    }

    pub(super) fn announce(&mut self, utterance: Utterance) {
        // Nothing is left out of a terminal: before too much waits, it is printed.
        if self.announcer.len() + 1 >= MAX_QUEUED {
            self.out.extend(self.announcer.drain().map(Output::Say));
        }
        let urgent = utterance.class.is_urgent();
        self.announcer.push(utterance);
        // What is urgent never waits here, so it is the one that is next.
        if urgent {
            self.print_next();
        }
    }

    /// Prints what is next, if anything may be printed. In a terminal everything is said as soon as
    /// it begins.
    pub(super) fn print_next(&mut self) -> bool {
        self.announcer.hold(self.types_pin || self.is_typing() && !self.settings.lines);
        let Some(Action::Say { id, utterance }) = self.announcer.poll(self.now) else {
            return false;
        };
        self.announcer.ended(id, End::Spoken, self.now);
        self.out.push_back(Output::Say(utterance));
        true
    }

    /// A request waits for the user, and chatter waits with it.
    pub(super) fn opens(&mut self, number: u32) {
        if !self.settings.for_program && !self.listens_only {
            self.announcer.asked(number);
        }
        self.out.push_back(Output::Waits(number));
    }

    /// A request no longer waits for the user.
    pub(super) fn closes(&mut self, number: u32) {
        self.announcer.settled(number);
        // What was offered for it is not offered for another.
        self.scan = self.scan.take().filter(|scan| scan.request() != Some(number));
        self.out.push_back(Output::NoLongerWaits(number));
    }

    /// Says one of the terminal's own phrases, as the answer to what the user did.
    pub(super) fn say(&mut self, key: impl AsRef<str>, arguments: &[(&str, Argument<'_>)]) {
        self.say_about(key, arguments, &About::new(Class::Feedback));
    }

    /// Says one of the terminal's own phrases.
    pub(super) fn say_about(
        &mut self,
        key: impl AsRef<str>,
        arguments: &[(&str, Argument<'_>)],
        about: &About,
    ) {
        let said = self.words.phrase(&format!("terminal.{}", key.as_ref()), arguments);
        let utterance = self.utterance(&said, about);
        self.announce(utterance);
    }

    /// The key of a phrase that is another one where lines are typed.
    pub(super) fn by_mode(&self, key: &str) -> String {
        match () {
            () if self.settings.scan_ms.is_some() => match key {
                "hint" | "nothing_waits_help" | "waits_here" => "scan.press".to_owned(),
                "also_waits" => "scan.also_waits".to_owned(),
                "time_runs_out" => "scan.time_runs_out".to_owned(),
                _ => key.to_owned(),
            },
            () if self.settings.lines && !key.starts_with("scan.") => format!("{key}.line"),
            () => key.to_owned(),
        }
    }

    /// How long a request still waits.
    pub(super) fn left(&self, request: &Request) -> SpokenLine {
        let left = request.deadline_ms.saturating_sub(self.now);
        self.words.duration(left.div_ceil(1000))
    }

    pub(super) fn utterance(&self, said: &SpokenLine, about: &About) -> Utterance {
        let mut utterance = Utterance::new(about.class)
            .words(said, self.words.language(), about.language.as_ref())
            .printed(self.line(said));
        (utterance.request, utterance.session) = (about.request, about.session.clone());
        utterance
    }

    /// A line for the terminal: what the agent wrote stands in quotes that it cannot close, and
    /// nothing in it moves the cursor.
    pub(super) fn line(&self, said: &SpokenLine) -> String {
        let (open, close) = &self.quotes;
        let mut line = String::new();
        for span in &said.spans {
            match span {
                Span::Ours(text) => line.push_str(text),
                Span::Theirs(text) => {
                    line.push_str(open);
                    let inner = text.replace(open.as_str(), "'").replace(close.as_str(), "'");
                    line.push_str(&inner);
                    line.push_str(close);
                }
            }
        }
        harmless(line)
    }
}

/// The words are safe already; this is the second lock on the same door.
pub(super) fn harmless(line: String) -> String {
    if !line.contains(char::is_control) {
        return line;
    }
    line.chars().map(|sign| if sign.is_control() { '\u{FFFD}' } else { sign }).collect()
}
