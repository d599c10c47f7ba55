//! A proxy between an editor and an agent of the Agent Client Protocol: everything passes as it is,
//! byte for byte; the person hears what the agent does, and answers its questions there or here.

mod judged;
mod message;
mod question;
mod teller;
mod turn;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use message::{
    Line, Permission, Reply, asking_mode, is_option, key, mode_name, mode_of, mode_wanted, refused,
    set_mode, set_off, skips_asking, withdrawn,
};
use teller::{Note, Teller};

use crate::Given;
pub use crate::mcp::Connect;

/// The longest message, in bytes.
pub const MAX_LINE_BYTES: usize = 64 << 20;

/// What may wait to be told; further updates are counted, not kept.
const WAITING: usize = 1024;

/// Questions that wait at the same time; further ones are the editor's alone.
const ASKED: usize = 32;

/// Requests whose answers are looked at, and questions that were answered here, at the same time.
const REMEMBERED: usize = 1024;

/// What a proxy knows before anything is said.
#[derive(Clone)]
pub struct Proxy {
    /// The agent's name, as the person knows it, until it tells its own.
    pub name: String,
    /// The person's home directory.
    pub home: Option<PathBuf>,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// Whether modes in which the agent asks less are refused.
    pub keeps_asking: bool,
    /// Whether the editor asks as well: then what cannot be asked here is left to it. Otherwise it is a
    /// no.
    pub editor_asks: bool,
    /// Whether answers that count for longer than this once are offered here too.
    pub offers_lasting: bool,
    /// What was allowed here, for a client of our own that runs commands itself.
    pub allowed: Allowed,
    /// How the hub is reached.
    pub connect: Connect,
    /// What the program's hook was told: that is not asked again.
    pub given: Option<Given>,
}

/// Commands that the person allowed when the agent asked: a client that runs one for the agent need not ask
/// again. Each counts once.
#[derive(Clone, Debug, Default)]
pub struct Allowed(Arc<Mutex<Vec<String>>>);

impl Allowed {
    fn add(&self, command: &str) {
        let mut commands = lock(&self.0);
        if commands.len() >= ASKED {
            commands.remove(0);
        }
        commands.push(command.to_owned());
    }

    /// Whether this very command was allowed. From then on it is not.
    pub fn take(&self, command: &str) -> bool {
        let mut commands = lock(&self.0);
        let found = commands.iter().position(|allowed| allowed == command);
        found.is_some_and(|at| commands.remove(at) == command)
    }
}

/// An unanswered question: the task that takes it out answers it.
#[derive(Default)]
struct Questions {
    /// How many there were.
    count: u64,
    open: BTreeMap<String, Permission>,
    /// Answered here; what the editor still says to them is for nobody.
    answered: BTreeSet<String>,
    /// Answered elsewhere or taken back, by their serials, until the teller has seen them.
    withdrawn: Vec<u64>,
}

impl Questions {
    /// Takes a question back that somebody else has answered.
    fn withdraw(&mut self, id: &str) -> bool {
        let found = self.open.remove(id);
        self.withdrawn.extend(found.iter().map(|asked| asked.serial));
        found.is_some()
    }
}

/// A side that is written to; none once it is closed.
type Side<W> = Arc<tokio::sync::Mutex<Option<W>>>;

/// Both sides.
struct Wires<E, A> {
    editor: Side<E>,
    agent: Side<A>,
    questions: Mutex<Questions>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<E: AsyncWrite + Unpin, A: AsyncWrite + Unpin> Wires<E, A> {
    /// Takes a question, to answer it; none if the editor was first. Another question of the same id
    /// is another question.
    fn claim(&self, asked: &Permission) -> Option<Permission> {
        let id = key(&asked.id);
        let mut questions = lock(&self.questions);
        let same = questions.open.get(&id).is_some_and(|open| open.serial == asked.serial);
        if !same {
            return None;
        }
        let asked = questions.open.remove(&id)?;
        if questions.answered.len() >= REMEMBERED {
            questions.answered.pop_first();
        }
        questions.answered.insert(id);
        Some(asked)
    }

    /// Asks the agent to stop what it does in this session.
    async fn stop(&self, session: &str) {
        let _ = write(&self.agent, format!("{}\n", message::stop(session)).as_bytes()).await;
    }

    /// Answers a question that was taken, and withdraws it from the editor.
    async fn answer(&self, asked: &Permission, reply: &Reply) {
        let answer = format!("{}\n", asked.answer(reply));
        let _ = write(&self.agent, answer.as_bytes()).await;
        let gone = format!("{}\n", withdrawn(&asked.id));
        let _ = write(&self.editor, gone.as_bytes()).await;
    }
}

/// Requests of the editor whose answers tell something.
enum Awaited {
    /// The agent works on what it was asked, in this session.
    Turn(String),
    /// A session begins, in this directory; an earlier one has a name already.
    Session(PathBuf, Option<String>),
    /// The agent says who it is.
    Introduction,
}

impl Proxy {
    /// Runs until the editor or the agent goes away.
    pub async fn run(
        self,
        mut from_editor: impl AsyncBufRead + Unpin,
        to_editor: impl AsyncWrite + Unpin + Send + 'static,
        mut from_agent: impl AsyncBufRead + Unpin,
        to_agent: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let wires = Arc::new(Wires {
            editor: Arc::new(tokio::sync::Mutex::new(Some(to_editor))),
            agent: Arc::new(tokio::sync::Mutex::new(Some(to_agent))),
            questions: Mutex::default(),
        });
        let (notes, heard) = mpsc::channel(WAITING);
        let keeps_asking = self.keeps_asking;
        let teller = tokio::spawn(Teller::new(self, wires.clone()).run(heard));
        let relay = Mutex::new(Relay {
            wires: wires.clone(),
            notes,
            awaited: BTreeMap::new(),
            lost: 0,
            keeps_asking,
            asking: BTreeMap::new(),
            modes: BTreeMap::new(),
            barred: BTreeSet::new(),
            settings: 0,
        });
        let done = {
            let outward = async {
                while let Some(line) = line(&mut from_editor).await? {
                    let passes = lock(&relay).editor_said(&line);
                    match passes {
                        Passes::On => write(&wires.agent, &line).await?,
                        Passes::Not => {}
                        Passes::Back(answer) => {
                            write(&wires.editor, format!("{answer}\n").as_bytes()).await?;
                        }
                    }
                }
                // The agent notices that nobody is left.
                *wires.agent.lock().await = None;
                io::Result::Ok(())
            };
            let inward = async {
                while let Some(line) = line(&mut from_agent).await? {
                    let heard = lock(&relay).agent_said(&line);
                    if heard.passes {
                        write(&wires.editor, &line).await?;
                    }
                    if let Some(message) = heard.to_agent {
                        write(&wires.agent, format!("{message}\n").as_bytes()).await?;
                    }
                }
                io::Result::Ok(())
            };
            tokio::pin!(outward, inward);
            tokio::select! {
                done = &mut inward => done,
                done = &mut outward => match done {
                    Ok(()) => inward.await,
                    failed => failed,
                },
            }
        };
        // No more notes: the teller says that it is over, and withdraws what waits.
        drop(relay);
        let _ = teller.await;
        done
    }
}

/// Where a line of the editor goes.
enum Passes {
    On,
    Not,
    Back(Value),
}

struct Relay<E, A> {
    wires: Arc<Wires<E, A>>,
    notes: mpsc::Sender<Note>,
    awaited: BTreeMap<String, Awaited>,
    lost: u64,
    keeps_asking: bool,
    /// For each session, a mode in which the agent asks.
    asking: BTreeMap<String, String>,
    /// For each session, the mode that was heard of last.
    modes: BTreeMap<String, String>,
    /// Sessions that stay in a mode in which the agent asks less: nothing more is asked of them.
    barred: BTreeSet<String>,
    /// How many modes we have set ourselves.
    settings: u64,
}

/// What becomes of a line of the agent.
struct Relayed {
    /// Whether the editor gets it.
    passes: bool,
    /// What we say to the agent ourselves.
    to_agent: Option<Value>,
}

/// How requests of our own are named.
const OWN: &str = "aaep-mode-";

impl<E, A> Relay<E, A> {
    /// Notes something without ever waiting: the editor is not held up by a slow hub.
    fn note(&mut self, note: Note) {
        if self.lost > 0 && self.notes.try_send(Note::Lost(self.lost)).is_ok() {
            self.lost = 0;
        }
        if self.notes.try_send(note).is_err() {
            self.lost += 1;
        }
    }

    fn editor_said(&mut self, line: &[u8]) -> Passes {
        match Line::read(line) {
            Line::Request { id, method, params } => {
                if let Some(mode) = mode_wanted(&method, &params)
                    && skips_asking(mode).is_some()
                    && self.keeps_asking
                {
                    self.note(Note::ModeRefused(session(&params), mode.to_owned()));
                    let reason = format!(
                        "Refused by aaep: in the mode {} the agent asks less. Start it without --keep-asking to allow that.",
                        crate::act::shown(mode_name(mode))
                    );
                    return Passes::Back(refused(&id, &reason));
                }
                if method == "session/prompt" && self.barred.contains(&session(&params)) {
                    let reason = "Refused by aaep: the agent stays in a mode in which it asks less. \
                        Set another mode, or start it without --keep-asking.";
                    return Passes::Back(refused(&id, reason));
                }
                self.editor_asked(&id, &method, &params);
            }
            Line::Notice { method, params } if method == "session/cancel" => {
                self.note(Note::Cancelled(session(&params)));
            }
            Line::Answer { id, .. } => {
                let id = key(&id);
                let (late, first) = {
                    let mut questions = lock(&self.wires.questions);
                    (questions.answered.remove(&id), questions.withdraw(&id))
                };
                // The person was quicker elsewhere.
                if late {
                    return Passes::Not;
                }
                if first {
                    self.note(Note::Withdrawn);
                }
            }
            _ => {}
        }
        Passes::On
    }

    fn editor_asked(&mut self, id: &Value, method: &str, params: &Value) {
        let awaited = match method {
            "initialize" => Awaited::Introduction,
            "session/new" | "session/load" | "session/resume" => {
                let directory = params.get("cwd").and_then(Value::as_str).unwrap_or("/");
                let earlier = (method != "session/new").then(|| session(params));
                if let Some(earlier) = &earlier {
                    self.note(Note::Place(earlier.clone(), directory.into()));
                }
                Awaited::Session(directory.into(), earlier)
            }
            "session/prompt" => {
                let blocks = params.get("prompt").and_then(Value::as_array).into_iter().flatten();
                let text: String = blocks.filter_map(message::text_of).collect();
                self.note(Note::Prompt(session(params), text));
                Awaited::Turn(session(params))
            }
            _ => {
                if let Some(mode) = mode_wanted(method, params) {
                    self.mode_changes(&session(params), mode);
                    self.note(Note::Mode(session(params), mode.to_owned()));
                }
                return;
            }
        };
        if self.awaited.len() < REMEMBERED {
            self.awaited.insert(key(id), awaited);
        }
    }

    fn agent_said(&mut self, line: &[u8]) -> Relayed {
        let mut to_agent = None;
        match Line::read(line) {
            Line::Notice { method, mut params } if method == "session/update" => {
                let session = session(&params);
                let update = params.get_mut("update").map(Value::take).unwrap_or_default();
                if let Some(mode) = mode_of(&update) {
                    to_agent = self.mode_is(&session, mode);
                } else if teller::is_told(&update) {
                    self.note(Note::Update(session, update));
                }
            }
            Line::Notice { method, params } if method == "$/cancel_request" => {
                let id = params.get("requestId").map(key).unwrap_or_default();
                let withdrawn = lock(&self.wires.questions).withdraw(&id);
                if withdrawn {
                    self.note(Note::Withdrawn);
                }
            }
            Line::Request { id, method, params } if method == "session/request_permission" => {
                self.agent_asked(&id, &params);
            }
            Line::Answer { id, result } => {
                if let Some(of) = id.as_str().filter(|id| id.starts_with(OWN)) {
                    return self.was_set(of, result.is_some());
                }
                to_agent = self.agent_answered(&id, result);
            }
            _ => {}
        }
        Relayed { passes: true, to_agent }
    }

    fn agent_asked(&mut self, id: &Value, params: &Value) {
        let serial = {
            let mut questions = lock(&self.wires.questions);
            questions.count += 1;
            questions.count
        };
        let Some(asked) = Permission::read(id, serial, params) else { return };
        let id = key(id);
        {
            let mut questions = lock(&self.wires.questions);
            questions.answered.remove(&id);
            // What cannot be asked here is the editor's alone.
            if questions.open.len() >= ASKED || questions.open.contains_key(&id) {
                return;
            }
            questions.open.insert(id.clone(), asked.clone());
        }
        if self.notes.try_send(Note::Asked(asked)).is_err() {
            lock(&self.wires.questions).open.remove(&id);
            self.lost += 1;
        }
    }

    fn agent_answered(&mut self, id: &Value, result: Option<Value>) -> Option<Value> {
        match self.awaited.remove(&key(id))? {
            Awaited::Turn(session) => {
                let reason = result.as_ref().and_then(|result| result.get("stopReason"));
                let reason = reason.and_then(Value::as_str).map(str::to_owned);
                self.note(Note::TurnEnded(session, reason));
                None
            }
            Awaited::Session(place, earlier) => {
                let result = result?;
                let session = earlier.clone().unwrap_or_else(|| session(&result));
                if session.is_empty() {
                    return None;
                }
                if let Some(mode) = asking_mode(&result)
                    && self.asking.len() < REMEMBERED
                {
                    self.asking.insert(session.clone(), mode);
                }
                match earlier {
                    // The agent has said again what was said then.
                    Some(earlier) => self.note(Note::Recalled(earlier)),
                    None => self.note(Note::Place(session.clone(), place)),
                }
                let mode = mode_of(&result)?;
                if skips_asking(mode).is_some() {
                    return self.mode_is(&session, mode);
                }
                self.mode_changes(&session, mode);
                None
            }
            Awaited::Introduction => {
                let info = result.as_ref().and_then(|result| result.get("agentInfo"));
                let name = info.and_then(|info| info.get("title").or_else(|| info.get("name")));
                if let Some(name) = name.and_then(Value::as_str) {
                    self.note(Note::Name(crate::act::shown(name)));
                }
                None
            }
        }
    }

    /// Whether this is another mode than before: some agents repeat it with each of their options.
    fn mode_changes(&mut self, session: &str, mode: &str) -> bool {
        if self.modes.get(session).is_some_and(|last| last == mode) {
            return false;
        }
        if self.modes.len() < REMEMBERED || self.modes.contains_key(session) {
            self.modes.insert(session.to_owned(), mode.to_owned());
        }
        true
    }

    /// The agent is in this mode, however it got there. If it has to go on asking, it is set back.
    fn mode_is(&mut self, session: &str, mode: &str) -> Option<Value> {
        if skips_asking(mode).is_none() || !self.keeps_asking {
            self.barred.remove(session);
            if self.mode_changes(session, mode) {
                self.note(Note::Mode(session.to_owned(), mode.to_owned()));
            }
            return None;
        }
        self.note(Note::ModeRefused(session.to_owned(), mode.to_owned()));
        self.settings += 1;
        let id = format!("{OWN}{}:{session}", self.settings);
        if is_option(mode) {
            return Some(set_off(&id, session, mode));
        }
        match self.asking.get(session) {
            Some(asking) => Some(set_mode(&id, session, asking)),
            None => Some(self.bar(session)),
        }
    }

    /// Whether the agent took the mode that we set: the answer is for nobody else.
    fn was_set(&mut self, id: &str, well: bool) -> Relayed {
        let session = id.split_once(':').map_or("", |(_, session)| session);
        let to_agent = match well {
            true => {
                self.barred.remove(session);
                None
            }
            false => Some(self.bar(session)),
        };
        Relayed { passes: false, to_agent }
    }

    /// The agent cannot be made to ask, so it is stopped.
    fn bar(&mut self, session: &str) -> Value {
        if self.barred.len() < REMEMBERED {
            self.barred.insert(session.to_owned());
        }
        self.note(Note::ModeStays(session.to_owned()));
        message::stop(session)
    }
}

fn session(params: &Value) -> String {
    params.get("sessionId").and_then(Value::as_str).unwrap_or_default().to_owned()
}

async fn write<W: AsyncWrite + Unpin>(side: &Side<W>, line: &[u8]) -> io::Result<()> {
    let mut side = side.lock().await;
    let Some(to) = side.as_mut() else { return Err(io::ErrorKind::BrokenPipe.into()) };
    to.write_all(line).await?;
    if !line.ends_with(b"\n") {
        to.write_all(b"\n").await?;
    }
    to.flush().await
}

/// The next line, with its end; none at the end of the stream.
async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
    from.take(most).read_until(b'\n', &mut line).await?;
    if line.len() >= MAX_LINE_BYTES {
        let text = "A message is longer than 64 MiB, and was not passed on.";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((!line.is_empty()).then_some(line))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_never_counts_for_a_later_question_of_the_same_id() {
        let wires = Wires {
            editor: Arc::new(tokio::sync::Mutex::new(Some(Vec::<u8>::new()))),
            agent: Arc::new(tokio::sync::Mutex::new(Some(Vec::<u8>::new()))),
            questions: Mutex::default(),
        };
        let asked = |serial| {
            let params = json!({ "sessionId": "s", "toolCall": {}, "options": [] });
            Permission::read(&json!(0), serial, &params).unwrap()
        };
        // The first was answered in the editor, and the agent asks again at once.
        lock(&wires.questions).open.insert("0".into(), asked(2));
        assert!(wires.claim(&asked(1)).is_none());
        assert_eq!(wires.claim(&asked(2)).unwrap().serial, 2);
        assert!(wires.claim(&asked(2)).is_none());
    }

    #[test]
    fn a_command_that_was_allowed_is_allowed_once() {
        let allowed = Allowed::default();
        allowed.add("git push");
        assert!(!allowed.take("git push -f"));
        assert!(allowed.take("git push") && !allowed.take("git push"));
    }
}
