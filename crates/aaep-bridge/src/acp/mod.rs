//! A proxy between an editor and an agent of the Agent Client Protocol: everything passes as it is,
//! byte for byte; the person hears what the agent does, and answers its questions there or here.

mod judged;
mod message;
mod teller;

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;

use message::{Line, Permission, key, mode_wanted, refused, skips_asking, withdrawn};
use teller::{Note, Teller};

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
    /// How the hub is reached.
    pub connect: Connect,
}

/// A question that nobody has answered yet: whoever takes it out answers it.
#[derive(Default)]
struct Questions {
    open: BTreeMap<String, Permission>,
    /// Answered here; what the editor still says to them is for nobody.
    answered: BTreeSet<String>,
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
    /// Takes a question, to answer it; none if the editor was first.
    fn claim(&self, id: &str) -> Option<Permission> {
        let mut questions = lock(&self.questions);
        let asked = questions.open.remove(id)?;
        if questions.answered.len() >= REMEMBERED {
            questions.answered.pop_first();
        }
        questions.answered.insert(id.to_owned());
        Some(asked)
    }

    /// Asks the agent to stop what it does in this session.
    async fn stop(&self, session: &str) {
        let _ = write(&self.agent, format!("{}\n", message::stop(session)).as_bytes()).await;
    }

    /// Answers a question that was taken, and withdraws it from the editor.
    async fn answer(&self, asked: &Permission, yes: bool) {
        let answer = format!("{}\n", asked.answer(yes));
        let _ = write(&self.agent, answer.as_bytes()).await;
        let gone = format!("{}\n", withdrawn(&asked.id));
        let _ = write(&self.editor, gone.as_bytes()).await;
    }
}

/// Requests of the editor whose answers tell something.
enum Awaited {
    /// The agent works on what it was asked, in this session.
    Turn(String),
    /// A session begins, in this directory.
    Session(PathBuf),
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
        let relay = Relay { wires: wires.clone(), notes, awaited: BTreeMap::new(), lost: 0 };
        let relay = Mutex::new(relay);
        let done = {
            let outward = async {
                while let Some(line) = line(&mut from_editor).await? {
                    let passes = lock(&relay).editor_said(&line, keeps_asking);
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
                    lock(&relay).agent_said(&line);
                    write(&wires.editor, &line).await?;
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
}

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

    fn editor_said(&mut self, line: &[u8], keeps_asking: bool) -> Passes {
        match Line::read(line) {
            Line::Request { id, method, params } => {
                if let Some(mode) = mode_wanted(&method, &params)
                    && skips_asking(mode).is_some()
                    && keeps_asking
                {
                    self.note(Note::ModeRefused(session(&params), mode.to_owned()));
                    let reason = format!(
                        "Refused by aaep: in the mode {} the agent asks less. Start it without --keep-asking to allow that.",
                        crate::act::shown(mode)
                    );
                    return Passes::Back(refused(&id, &reason));
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
                    (questions.answered.remove(&id), questions.open.remove(&id))
                };
                // The person was quicker elsewhere.
                if late {
                    return Passes::Not;
                }
                if first.is_some() {
                    self.note(Note::Withdrawn(id));
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
                if method != "session/new" {
                    self.note(Note::Place(session(params), directory.into()));
                }
                Awaited::Session(directory.into())
            }
            "session/prompt" => {
                let blocks = params.get("prompt").and_then(Value::as_array).into_iter().flatten();
                let text: String = blocks.filter_map(message::text_of).collect();
                self.note(Note::Prompt(session(params), text));
                Awaited::Turn(session(params))
            }
            _ => {
                if let Some(mode) = mode_wanted(method, params) {
                    self.note(Note::Mode(session(params), mode.to_owned()));
                }
                return;
            }
        };
        if self.awaited.len() < REMEMBERED {
            self.awaited.insert(key(id), awaited);
        }
    }

    fn agent_said(&mut self, line: &[u8]) {
        match Line::read(line) {
            Line::Notice { method, mut params } if method == "session/update" => {
                let session = session(&params);
                let update = params.get_mut("update").map(Value::take).unwrap_or_default();
                if teller::is_told(&update) {
                    self.note(Note::Update(session, update));
                }
            }
            Line::Notice { method, params } if method == "$/cancel_request" => {
                let id = params.get("requestId").map(key).unwrap_or_default();
                if lock(&self.wires.questions).open.remove(&id).is_some() {
                    self.note(Note::Withdrawn(id));
                }
            }
            Line::Request { id, method, params } if method == "session/request_permission" => {
                let Some(asked) = Permission::read(&id, &params) else { return };
                let id = key(&id);
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
            Line::Answer { id, result } => match self.awaited.remove(&key(&id)) {
                Some(Awaited::Turn(session)) => {
                    let reason = result.as_ref().and_then(|result| result.get("stopReason"));
                    let reason = reason.and_then(Value::as_str).map(str::to_owned);
                    self.note(Note::TurnEnded(session, reason));
                }
                Some(Awaited::Session(place)) => {
                    let Some(result) = result else { return };
                    let session = session(&result);
                    let mode = result.pointer("/modes/currentModeId").and_then(Value::as_str);
                    let mode = mode.map(str::to_owned);
                    if !session.is_empty() {
                        self.note(Note::Place(session.clone(), place));
                    }
                    if let Some(mode) = mode.filter(|mode| skips_asking(mode).is_some()) {
                        self.note(Note::Mode(session, mode));
                    }
                }
                Some(Awaited::Introduction) => {
                    let info = result.as_ref().and_then(|result| result.get("agentInfo"));
                    let name = info.and_then(|info| info.get("title").or_else(|| info.get("name")));
                    if let Some(name) = name.and_then(Value::as_str) {
                        self.note(Note::Name(crate::act::shown(name)));
                    }
                }
                None => {}
            },
            _ => {}
        }
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
