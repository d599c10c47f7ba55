//! What is heard and felt of `aaep listen`, with the real hub, the real Speech Dispatcher and the real
//! BRLTTY, compared with the transcripts in `heard`, from which `cargo xtask at` makes `docs/heard.md`.
//! With `AAEP_HEARD=write` they are replaced.
//!
//! Each step ends with the last words that it brings, so nothing depends on how fast a machine is: what
//! comes besides stands in the next step.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::speech::brltty::Brltty;
use crate::speech::{Dispatcher, Log, LogEntry, PATIENCE, installed};
use crate::support::*;
use crate::tty::Tty;

/// Words a minute: as fast as somebody who is used to it.
const PACE: u32 = 500;

/// Lines as people read them.
struct Transcript {
    name: &'static str,
    lines: Vec<String>,
}

impl Transcript {
    fn new(name: &'static str, about: &str) -> Self {
        Self { name, lines: vec![about.to_owned(), String::new()] }
    }

    fn step(&mut self, what: &str) {
        self.lines.push(format!("> {what}"));
    }

    fn line(&mut self, line: &str) {
        self.lines.push(format!("  {line}"));
    }

    /// Compares it with the one that is kept, or keeps it.
    fn judge(self) -> Result<(), String> {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/listen/heard");
        let path = path.join(format!("{}.txt", self.name));
        let text = self.lines.join("\n") + "\n";
        if std::env::var("AAEP_HEARD").is_ok_and(|value| value == "write") {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            return Ok(());
        }
        let kept = std::fs::read_to_string(&path).unwrap_or_default();
        if kept == text {
            return Ok(());
        }
        Err(format!("kept in {}:\n{kept}\nbut now:\n{text}", path.display()))
    }
}

/// Plays a scene. Where an answer of the hub takes longer than the words before it, as on a machine that
/// is very busy, something else is said first: then it is played again, and what has really changed is
/// heard otherwise each time.
#[track_caller]
fn plays(scene: impl Fn() -> Option<Transcript>) {
    for left in (0..3).rev() {
        let Some(transcript) = scene() else { return };
        match transcript.judge() {
            Ok(()) => return,
            Err(why) => assert!(left > 0, "{why}"),
        }
    }
}

/// A hub, and an agent of its user.
pub struct Stage {
    pub hub: Arc<Hub>,
    person: Person,
    agent: Agent,
    runtime: tokio::runtime::Runtime,
    session: String,
}

impl Stage {
    pub fn start() -> Self {
        let hub = Hub::start(Setup::default());
        let person = hub.person();
        let agent = person.agent();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        Self { hub, person, agent, runtime, session: String::new() }
    }

    pub fn around(&self) -> Vec<(String, String)> {
        let token = self.person.token("reader");
        let home = self.hub.home().to_str().unwrap().to_owned();
        vec![("AAEP_TOKEN".into(), token), ("HOME".into(), home)]
    }

    pub fn begin(&mut self, about: &str, language: &str) {
        let mut opening = self.agent.opening();
        opening["summary_normal"] = about.into();
        opening["language"] = language.into();
        let answer = self.runtime.block_on(self.agent.post("agent/sessions", &opening));
        self.session = text(&body(&answer), "session_id").to_owned();
    }

    fn emit(&self, kind: &str, members: Value) {
        self.runtime.block_on(self.agent.emit(&self.session, kind, members));
    }

    pub fn ask(&self, request: &Value) -> Value {
        self.runtime.block_on(self.agent.ask_for(&self.session, request))
    }

    fn end(&self, summary: &str) {
        self.emit("session.completed", json!({ "summary_normal": summary }));
    }
}

/// Consent to something harmless.
pub fn mild(action: &str) -> Value {
    json!({ "kind": "confirmation", "tool": "test", "arguments": { "action": action }, "action": action,
        "consequence": "It is gone.", "risk_level": "low", "irreversible": false,
        "reversibility": "reversible", "timeout_seconds": 300, "default_decision": "reject",
        "summary_normal": action })
}

/// Somebody who hears it in a terminal.
struct Listener {
    stage: Stage,
    tty: Tty,
    log: Log,
    /// Where the hub is, which differs from run to run.
    place: String,
    /// How much of the log stands in the transcript.
    told: usize,
    transcript: Transcript,
    _dispatcher: Dispatcher,
    _directory: tempfile::TempDir,
}

impl Listener {
    fn start(name: &'static str, about: &str) -> Option<Self> {
        Self::start_in("en", "Press ? for help.", name, about)
    }

    /// In a language, in which this is the last that is heard at the beginning.
    fn start_in(language: &str, last: &str, name: &'static str, about: &str) -> Option<Self> {
        if !installed("speech-dispatcher") {
            return None;
        }
        let directory = tempfile::tempdir().unwrap();
        let dispatcher = Dispatcher::start(directory.path(), PACE);
        let stage = Stage::start();
        let mut variables = stage.around();
        variables.push(("SPEECHD_ADDRESS".into(), dispatcher.address()));
        let base = stage.hub.base();
        let arguments =
            ["--pause", "0", "--speak=speech-dispatcher", "--language", language, &base];
        let tty = Tty::start(&arguments, &variables);
        let transcript = Transcript::new(name, about);
        let (log, place) = (dispatcher.log(), stage.hub.address().to_string());
        let mut listener = Self {
            stage,
            tty,
            log,
            place,
            told: 0,
            transcript,
            _dispatcher: dispatcher,
            _directory: directory,
        };
        let command = match language {
            "en" => "aaep listen --speak".to_owned(),
            _ => format!("aaep listen --speak --language {language}"),
        };
        listener.hears(&command, last);
        Some(listener)
    }

    /// Notes what is heard, up to these words.
    #[track_caller]
    fn hears(&mut self, what: &str, last: &str) {
        self.transcript.step(what);
        let until = Instant::now() + PATIENCE;
        let (from, all, end) = loop {
            let (from, all) = (self.told, self.log.all());
            let is_last = |heard: &LogEntry| heard.kind == "end" && heard.text.contains(last);
            if let Some(at) = all[from..].iter().position(is_last) {
                break (from, all, from + at + 1);
            }
            assert!(Instant::now() < until, "{last:?} is not heard after {what:?}: {all:#?}");
            std::thread::sleep(Duration::from_millis(5));
        };
        for heard in all[from..end].iter().filter(|heard| heard.kind != "begin") {
            let voice = if heard.pitch == "0" { "" } else { "agent: " };
            let language = match heard.language.as_str() {
                "en" => String::new(),
                other => format!("[{other}] "),
            };
            let cut = if heard.kind == "cut" { " (cut)" } else { "" };
            let text = without_seconds(&heard.text.replace(&self.place, "127.0.0.1:8707"));
            self.transcript.line(&format!("{voice}{language}{text}{cut}"));
        }
        self.told = end;
    }

    #[track_caller]
    fn presses(&mut self, what: &str, keys: &str, last: &str) {
        self.tty.types(keys);
        self.hears(what, last);
    }

    #[track_caller]
    fn starts(&mut self, about: &str) {
        self.stage.begin(about, "en");
        self.hears("an agent starts", about);
    }

    #[track_caller]
    fn ends(&mut self, summary: &str) {
        self.stage.end(summary);
        self.hears("the agent is done", summary);
    }

    #[track_caller]
    fn leaves(mut self) -> Option<Transcript> {
        self.presses("press q", "q", "Goodbye.");
        Some(self.transcript)
    }
}

/// A time that differs from run to run: "4 minutes 53 seconds" is "some minutes".
fn without_seconds(text: &str) -> String {
    let words: Vec<&str> = text.split(' ').collect();
    let is_time = |at: usize| words.get(at + 1) == Some(&"minutes") && at + 3 < words.len();
    match (0..words.len()).find(|at| is_time(*at) && words[at + 3].starts_with("seconds")) {
        Some(at) => {
            let end = words[at + 3].trim_start_matches("seconds");
            let before = words[..at].iter().copied();
            let after = words[at + 4..].iter().copied();
            let some = format!("minutes{end}");
            before.chain(["some", &some]).chain(after).collect::<Vec<_>>().join(" ")
        }
        None => text.to_owned(),
    }
}

/// The last words of a request, when the keys are told.
const KEYS: &str = "t for more time.";

#[test]
fn a_grave_request_is_accepted_in_two_steps_and_done() {
    plays(|| {
        let about =
            "Something of high risk that cannot be undone is accepted in two steps, and done.";
        let mut at = Listener::start("grave", about)?;
        at.starts("Preparing a transfer.");
        let request = at.stage.ask(&json!({ "kind": "confirmation", "tool": "bank.transfer",
        "arguments": { "amount": 20, "recipient": "Ann" }, "action": "Transfer 20 euros to Ann.",
        "consequence": "The money leaves your account.", "risk_level": "high",
        "irreversible": true, "timeout_seconds": 300, "default_decision": "reject",
        "summary_normal": "Transfer 20 euros to Ann." }));
        at.hears("a request comes", KEYS);
        at.presses("press y", "y", "goes back.");
        at.presses("type yes and Enter", "yes\n", "accepted.");
        let invoked = at.stage.runtime.block_on(at.stage.agent.invoke(&request, "{}"));
        at.hears("the agent does it", "now.");
        let call = text(&body(&invoked), "tool_call_id").to_owned();
        let done = json!({ "tool": "bank.transfer", "tool_call_id": call, "status": "success",
        "summary_normal": "20 euros were sent to Ann." });
        at.stage.emit("tool.completed", done);
        at.hears("it is done", "were sent to Ann.");
        at.stage.end("20 euros were sent to Ann.");
        at.hears("the agent is done", "Done.");
        at.leaves()
    });
}

#[test]
fn a_request_cuts_a_text_which_goes_on_after_the_answer_from_the_sentence_it_was_cut_in() {
    plays(|| {
        let about = "A request comes while a text is being read. It cuts the text, which goes on after the \
                 answer, from the sentence in which it was cut; f skips that sentence.";
        let mut at = Listener::start("cut", about)?;
        at.starts("Telling a story.");
        // There is time enough to come before its end, on any machine.
        let long = format!("Once there was a cat{}.", " that slept and slept".repeat(30));
        let story = format!("A story. {long} Then it woke up.");
        at.stage.emit(
            "output.streaming",
            json!({ "chunk": story, "position": 0, "complete": true, "output_id": "out_1" }),
        );
        at.log.begins("Once there was a cat");
        at.stage.ask(&mild("Open the window."));
        at.hears("a text is being read, and a request comes", KEYS);
        at.presses("press n", "n", "rejected.");
        let again =
            |heard: &LogEntry| heard.kind == "begin" && heard.text.starts_with("Once there");
        let twice = Instant::now() + PATIENCE;
        while at.log.all().iter().filter(|heard| again(heard)).count() < 2 {
            assert!(Instant::now() < twice, "{:#?}", at.log.all());
            std::thread::sleep(Duration::from_millis(5));
        }
        at.presses("press f", "f", "Then it woke up.");
        for line in &mut at.transcript.lines {
            *line = line.replace(&" that slept and slept".repeat(30), " that slept and slept …");
        }
        at.ends("That was the story.");
        at.leaves()
    });
}

#[test]
fn a_second_request_does_not_cut_the_first() {
    plays(|| {
        let about =
            "Two requests come at once. The second is heard after the first, and cuts nothing.";
        let mut at = Listener::start("two", about)?;
        at.starts("Asking a lot.");
        at.stage.ask(&mild("First thing."));
        at.stage.ask(&mild("Second thing."));
        at.hears("two requests come", "Press Tab to go to it.");
        at.presses("press n", "n", KEYS);
        at.presses("press n", "n", "Request 2: rejected.");
        at.ends("That is all.");
        at.leaves()
    });
}

#[test]
fn chatter_waits_for_the_answer_and_only_the_latest_is_said() {
    plays(|| {
        let about = "An agent reports two hundred times while a request is open. Only the latest is said, \
                 after the answer.";
        let mut at = Listener::start("chatter", about)?;
        at.starts("Counting.");
        at.stage.ask(&mild("Go on counting."));
        at.hears("a request comes", KEYS);
        for step in 1..=200 {
            let progress = json!({ "step": step, "total_steps": 200 });
            let said = format!("Step {step} of 200.");
            let members = json!({ "progress": progress, "summary_normal": said });
            at.stage.emit("progress.updated", members);
        }
        at.presses("two hundred reports come; press n", "n", "Step 200 of 200.");
        at.ends("Counted.");
        at.leaves()
    });
}

#[test]
fn more_time_says_only_the_time_and_a_request_that_is_taken_back_is_said_to_be() {
    plays(|| {
        let about = "More time: only that is said, and the request keeps its number. Then the agent takes \
                 the request back.";
        let mut at = Listener::start("more-time", about)?;
        at.starts("Changing its mind.");
        let request = at.stage.ask(&mild("Send the letter."));
        at.hears("a request comes", KEYS);
        at.presses("press t", "t", "now waits 10 minutes.");
        at.stage.runtime.block_on(at.stage.agent.withdraw(&request));
        at.hears("the agent takes it back", "Send the letter.");
        at.ends("That is all.");
        at.leaves()
    });
}

#[test]
fn questions_are_answered_in_words_and_by_number() {
    plays(|| {
        let about = "A question that wants words, and one that wants a choice.";
        let mut at = Listener::start("questions", about)?;
        at.starts("Booking.");
        at.stage.ask(&json!({ "kind": "clarification", "question": "Where to?",
        "accepted_response_kinds": ["freetext"], "timeout_seconds": 300,
        "summary_normal": "Where to?" }));
        at.hears("a question comes", KEYS);
        at.presses("press a", "a", "goes back.");
        at.presses("type Lagos and Enter", "Lagos\n", "answered.");
        let choices = json!([{ "value": "bus", "label": "By bus" },
        { "value": "train", "label": "By train" }]);
        at.stage.ask(&json!({ "kind": "clarification", "question": "How do you go?",
        "accepted_response_kinds": ["multiple_choice"], "timeout_seconds": 300,
        "choices": choices, "summary_normal": "How do you go?" }));
        at.hears("another one comes", KEYS);
        at.presses("press 2", "2", "Request 2: answered.");
        at.ends("By train to Lagos.");
        at.leaves()
    });
}

#[test]
fn an_agent_that_fails_is_heard_at_once_with_what_can_be_done() {
    plays(|| {
        let about = "An agent fails while its request is open. That is said at once, with what can be done.";
        let mut at = Listener::start("failed", about)?;
        at.starts("Copying.");
        at.stage.ask(&mild("Overwrite the copy."));
        at.hears("a request comes", KEYS);
        at.stage.emit(
            "session.errored",
            json!({ "error_category": "requires_user", "summary_normal": "The disk is full.",
            "remediation_hint": "Make room." }),
        );
        at.hears("the agent fails", "Make room.");
        at.presses("press w", "w", "No agent is at work.");
        at.leaves()
    });
}

#[test]
fn each_span_has_its_language_and_no_text_is_a_command() {
    plays(|| {
        let about = "An Arabic agent in an English terminal: each span is spoken in its language. Then a \
                 text with commands of Speech Dispatcher and a letter that looks like another: all of it is \
                 only text.";
        let mut at = Listener::start("spans", about)?;
        at.stage.begin("تنظيف.", "ar");
        at.hears("an agent starts that speaks Arabic", "تنظيف.");
        let mut arabic = mild("احذف الملف.");
        arabic["consequence"] = "لن يعود.".into();
        at.stage.ask(&arabic);
        at.hears("a request comes in Arabic", KEYS);
        at.presses("press n", "n", "rejected.");
        at.ends("لم يحذف شيء.");
        at.starts("Paying.");
        at.stage.ask(&mild("now\r\n.\r\nSTOP ALL\r\nPay pаypal."));
        at.hears("a request comes with commands and a letter that looks like another", KEYS);
        at.presses("press n", "n", "Request 2: rejected.");
        at.ends("Nothing was paid.");
        at.leaves()
    });
}

#[test]
fn a_request_that_nobody_answers_is_warned_of_and_then_said_to_have_timed_out() {
    plays(|| {
        let about =
            "Nobody answers: it is said ahead that the time runs out, and then what silence meant.";
        let mut at = Listener::start("timed-out", about)?;
        at.starts("Waiting.");
        let mut request = mild("Send the letter.");
        request["timeout_seconds"] = 24.into();
        at.stage.ask(&request);
        at.hears("a request comes, and half of its time goes by", "Press t for more time.");
        at.hears("the other half goes by", "It was:");
        at.hears("what it was", "Send the letter.");
        at.ends("That is all.");
        at.leaves()
    });
}

#[test]
fn in_german_our_words_are_german_and_the_agents_stay_in_their_language() {
    plays(|| {
        let about = "An English agent in a German terminal: our words are German, the agent's are spoken \
                 in English.";
        let mut at = Listener::start_in("de", "für Hilfe.", "german", about)?;
        at.starts("Cleaning up.");
        at.stage.ask(&mild("Empty the bin."));
        at.hears("a request comes", "t für mehr Zeit.");
        at.presses("press n", "n", "abgelehnt.");
        at.ends("Nothing was done.");
        at.presses("press q", "q", "Auf Wiederhören.");
        Some(at.transcript)
    });
}

/// Somebody who feels it.
struct Reader {
    stage: Stage,
    tty: Tty,
    brltty: Brltty,
    cells: usize,
    transcript: Transcript,
}

impl Reader {
    fn start(name: &'static str, cells: usize) -> Option<Self> {
        if !installed("brltty") {
            return None;
        }
        let brltty = Brltty::start(cells);
        let stage = Stage::start();
        let (braille, base) = (format!("--braille={}", brltty.host()), stage.hub.base());
        let mut tty = Tty::start(&["--pause", "0", &braille, &base], &stage.around());
        tty.sees("Connected to");
        let about = format!(
            "A grave request on a braille display of {cells} cells. The first cell tells that a \
             request waits, the panning keys read on, and the routing key above an answer gives it: \
             one for no, two for a grave yes."
        );
        Some(Self { stage, tty, brltty, cells, transcript: Transcript::new(name, &about) })
    }

    fn notes(&mut self, what: &str, shown: &str) {
        self.transcript.step(what);
        self.transcript.line(&format!("braille: [{shown}]"));
    }

    /// Presses a key of the display, and notes what is on it then.
    #[track_caller]
    fn presses(&mut self, what: &str, key: &str, before: &str) -> String {
        self.brltty.press(key);
        let shown = self.brltty.shows_other_than(before);
        self.notes(what, &shown);
        shown
    }

    /// Reads on until this is on the display.
    #[track_caller]
    fn pans_to(&mut self, mut shown: String, word: &str) -> String {
        while cell(&shown, word).is_none() {
            shown = self.presses("pan to the right", "FWINRT", &shown);
        }
        shown
    }

    /// Notes an outcome as it stands on the display; a small one shows its beginning, as of what was sent.
    #[track_caller]
    fn settles(&mut self, what: &str, outcome: &str) {
        self.tty.sees(outcome);
        self.transcript.step(what);
        if self.cells >= 40 {
            let shown = self.brltty.showed(outcome);
            self.transcript.line(&format!("braille: [{shown}]"));
        }
    }

    #[track_caller]
    fn asks(&mut self, request: &Value) -> String {
        self.stage.ask(request);
        let shown = self.brltty.now_shows("? “Delete");
        self.notes("a request comes", &shown);
        shown
    }
}

/// The cell at which a word begins.
fn cell(shown: &str, word: &str) -> Option<usize> {
    let at = shown.split(' ').scan(0, |at, piece| {
        let begins = *at;
        *at += piece.chars().count() + 1;
        Some((begins, piece))
    });
    at.filter(|(_, piece)| *piece == word).last().map(|(begins, _)| begins)
}

/// A grave request is read to its end and refused; it comes again, and is accepted.
fn is_felt(name: &'static str, cells: usize) -> Option<Transcript> {
    let mut at = Reader::start(name, cells)?;
    at.stage.begin("Cleaning up.", "en");
    let mut request = deletion("the record 12345.");
    request["consequence"] = "It is gone for good.".into();
    let shown = at.asks(&request);
    let shown = at.pans_to(shown, "no");
    let no = cell(&shown, "no").unwrap();
    at.brltty.press(&format!("ROUTE {no}"));
    at.settles("press the routing key above no", "Request 1: rejected.");
    let mut shown = at.asks(&request);
    if cell(&shown, "yes").is_none() {
        shown = at.presses("go to the end", "LNDN", &shown);
    }
    let yes = cell(&shown, "yes").unwrap();
    let shown = at.presses("press the routing key above yes", &format!("ROUTE {yes}"), &shown);
    let shown = at.pans_to(shown, "yes");
    let yes = cell(&shown, "yes").unwrap();
    at.brltty.press(&format!("ROUTE {yes}"));
    at.settles("press the routing key above yes again", "Request 2: accepted.");
    at.tty.types("q").sees("Goodbye.");
    Some(at.transcript)
}

#[test]
fn a_grave_request_is_felt_on_20_cells() {
    plays(|| is_felt("braille-20", 20));
}

#[test]
fn a_grave_request_is_felt_on_40_cells() {
    plays(|| is_felt("braille-40", 40));
}

#[test]
fn a_grave_request_is_felt_on_80_cells() {
    plays(|| is_felt("braille-80", 80));
}

#[test]
fn a_grave_request_is_felt_on_14_cells() {
    plays(|| is_felt("braille-14", 14));
}
