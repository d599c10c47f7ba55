//! A proxy before servers of the Model Context Protocol: calls of tools wait for the person, questions
//! of servers are put to them, everything else passes as it is, byte for byte.
//!
//! | module | what it holds |
//! |---|---|
//! | `held` | a call that waits |
//! | `asking` | questions of servers |
//! | [`remote`] | a server behind streamable HTTP, as lines |
//! | [`listen`] | clients that come over streamable HTTP, as lines |
//! | [`several`] | several servers as one |

mod asking;
mod held;
pub mod listen;
mod message;
pub mod remote;
mod rewrite;
pub mod several;

use std::collections::BTreeMap;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_agent::{Agent, Call, Session};
use aaep_policy::Policy;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::{AbortHandle, JoinSet};

use crate::Given;
use message::{FromClient, FromServer, Hint, ToolCall, asks_itself, can_ask, error, key, not_done};

/// The longest message, in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Calls and questions that wait for the person at the same time; further ones are refused.
const HELD: usize = 32;

/// Calls that a client may come back to with what a server wanted to know.
const CONTINUED: usize = 64;

/// How the hub is reached when the first call needs it.
pub type Connect = Arc<dyn Fn() -> Result<Agent, String> + Send + Sync>;

/// What a proxy knows before anything is said.
pub struct Proxy {
    /// The server's name, as the person knows it.
    pub name: String,
    /// The names of several servers behind it, if there are several.
    pub servers: Vec<String>,
    /// Rules of the person's own: what they cover is done as they say.
    pub policy: Policy,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How the hub is reached.
    pub connect: Connect,
    /// What the program's hook was told: that is not asked again.
    pub given: Option<Given>,
}

/// One side that is written to.
type Sink = Box<dyn AsyncWrite + Unpin + Send>;

/// A call that the server works on.
struct Running {
    /// As the hub knows it, if anybody was told of it.
    call: Option<Call>,
    asked: ToolCall,
    line: Vec<u8>,
    /// How often the server wanted to know more.
    rounds: u32,
}

/// What goes on.
struct State {
    proxy: Proxy,
    client: tokio::sync::Mutex<Sink>,
    /// None once the client is gone.
    server: tokio::sync::Mutex<Option<Sink>>,
    hub: tokio::sync::Mutex<Option<(Agent, Arc<Session>)>>,
    /// The tasks in which calls and questions wait.
    tasks: tokio::sync::Mutex<JoinSet<()>>,
    /// Calls that wait, by the client's id.
    held: Mutex<BTreeMap<String, AbortHandle>>,
    /// Calls that the server works on, by the client's id.
    running: Mutex<BTreeMap<String, Running>>,
    /// Questions of the server that wait, by its id.
    asking: Mutex<BTreeMap<String, AbortHandle>>,
    /// What the server says of its tools.
    hints: Mutex<BTreeMap<String, Hint>>,
    /// Whether the client can ask the person itself.
    client_asks: AtomicBool,
    /// Calls that were allowed, and to which the client comes back with what the server wanted: the
    /// call, and what the server gave it for that.
    continued: Mutex<Vec<(String, Option<Value>)>>,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Proxy {
    /// Runs until the client or the server goes away. `to_server` is closed when the client is gone.
    pub async fn run(
        self,
        mut from_client: impl AsyncBufRead + Unpin,
        to_client: impl AsyncWrite + Unpin + Send + 'static,
        mut from_server: impl AsyncBufRead + Unpin,
        to_server: impl AsyncWrite + Unpin + Send + 'static,
    ) -> io::Result<()> {
        let (held, running, asking, hints, continued) = Default::default();
        let state = Arc::new(State {
            proxy: self,
            client: tokio::sync::Mutex::new(Box::new(to_client)),
            server: tokio::sync::Mutex::new(Some(Box::new(to_server))),
            hub: tokio::sync::Mutex::new(None),
            tasks: tokio::sync::Mutex::new(JoinSet::new()),
            held,
            running,
            asking,
            hints,
            client_asks: AtomicBool::new(false),
            continued,
        });
        let outward = async {
            while let Some(line) = line(&mut from_client).await? {
                state.client_said(line).await?;
            }
            // Nobody is left to hear what becomes of calls that wait.
            state.tasks.lock().await.shutdown().await;
            *state.server.lock().await = None;
            io::Result::Ok(())
        };
        let inward = async {
            while let Some(line) = line(&mut from_server).await? {
                if state.server_said(&line).await {
                    write(&mut **state.client.lock().await, &line).await?;
                }
            }
            io::Result::Ok(())
        };
        tokio::pin!(outward, inward);
        let done = tokio::select! {
            done = &mut inward => done,
            // What the server still says is for nobody, but it may have to say it before it ends.
            done = &mut outward => match done {
                Ok(()) => inward.await,
                failed => failed,
            },
        };
        state.end().await;
        done
    }
}

impl State {
    async fn client_said(self: &Arc<Self>, line: Vec<u8>) -> io::Result<()> {
        let text = String::from_utf8_lossy(&line);
        let text = text.trim();
        if text.is_empty() {
            return Ok(());
        }
        match FromClient::read(text) {
            FromClient::Other => match can_ask(text) {
                Some(able) => self.forward(able.as_bytes()).await,
                None => {
                    if asks_itself(text) {
                        self.client_asks.store(true, Ordering::Relaxed);
                    }
                    self.forward(&line).await
                }
            },
            FromClient::Refused(why, ids) => {
                for id in ids {
                    self.say(&error(&id, why)).await?;
                }
                Ok(())
            }
            FromClient::Cancelled(id) => {
                let waiting = lock(&self.held).remove(&id);
                match waiting {
                    // The server has not heard of it.
                    Some(waiting) => {
                        waiting.abort();
                        Ok(())
                    }
                    None => self.forward(&line).await,
                }
            }
            FromClient::Call(call) => {
                let line = can_ask(text).map_or(line, String::into_bytes);
                self.client_called(call, line).await
            }
        }
    }

    async fn client_called(self: &Arc<Self>, call: ToolCall, line: Vec<u8>) -> io::Result<()> {
        let id = key(&call.id);
        let (full, known) = {
            let held = lock(&self.held);
            (held.len() >= HELD, held.contains_key(&id))
        };
        if known || lock(&self.running).contains_key(&id) {
            return self.say(&error(&call.id, "this id is in use")).await;
        }
        if self.is_continued(&call) {
            let running = Running { call: None, asked: call, line: line.clone(), rounds: 0 };
            lock(&self.running).insert(id, running);
            return self.forward(&line).await;
        }
        if full {
            let words =
                "It is not done: too many calls wait for an answer. Make one after the other.";
            return self.say(&not_done(&call.id, words)).await;
        }
        let state = self.clone();
        let mut tasks = self.tasks.lock().await;
        while tasks.try_join_next().is_some() {}
        // The task takes itself out when it is decided, so it has to be in before.
        let mut held = lock(&self.held);
        held.insert(id, tasks.spawn(async move { state.decide(call, line).await }));
        Ok(())
    }

    /// Whether the client comes back to a call that was allowed, with what the server wanted. Once.
    fn is_continued(&self, call: &ToolCall) -> bool {
        let Some(state) = &call.state else { return false };
        let what = call.what();
        let mut continued = lock(&self.continued);
        let found =
            continued.iter().position(|(of, given)| *of == what && given.as_ref() == Some(state));
        found.map(|at| continued.remove(at)).is_some()
    }

    /// Whether the client gets this line.
    async fn server_said(self: &Arc<Self>, line: &[u8]) -> bool {
        let text = String::from_utf8_lossy(line);
        match FromServer::read(text.trim()) {
            FromServer::Tools(tools) => {
                let mut hints = lock(&self.hints);
                for (tool, hint) in tools {
                    if hints.len() < 10_000 || hints.contains_key(&tool) {
                        hints.insert(tool, hint);
                    }
                }
                true
            }
            FromServer::Answer { id, well } => {
                let running = lock(&self.running).remove(&id);
                if let Some(call) = running.and_then(|running| running.call) {
                    let told = match well {
                        true => call.succeed("The server has answered.").await,
                        false => call.fail("The server says that it failed.").await,
                    };
                    drop(told);
                }
                true
            }
            FromServer::Asks { id, params } => self.server_asked(id, params, line.to_vec()).await,
            FromServer::TakesBack(id) => {
                let asking = lock(&self.asking).remove(&id);
                if let Some(asking) = &asking {
                    asking.abort();
                }
                asking.is_none()
            }
            FromServer::Wants { id, asks, all_ours, state } => {
                self.server_wants(id, asks, all_ours, state, line.to_vec()).await
            }
            FromServer::Other => true,
        }
    }

    async fn say(&self, message: &Value) -> io::Result<()> {
        write(&mut **self.client.lock().await, format!("{message}\n").as_bytes()).await
    }

    async fn forward(&self, line: &[u8]) -> io::Result<()> {
        match self.server.lock().await.as_mut() {
            Some(server) => write(&mut **server, line).await,
            None => Err(io::ErrorKind::BrokenPipe.into()),
        }
    }

    async fn end(&self) {
        self.tasks.lock().await.shutdown().await;
        let running = std::mem::take(&mut *lock(&self.running));
        drop(running);
        let Some((agent, session)) = self.hub.lock().await.take() else { return };
        if let Ok(session) = Arc::try_unwrap(session).map_err(drop) {
            let _ = session.complete(format!("The server {} has ended.", self.proxy.name)).await;
        }
        agent.close().await;
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin + ?Sized), line: &[u8]) -> io::Result<()> {
    to.write_all(line).await?;
    if !line.ends_with(b"\n") {
        to.write_all(b"\n").await?;
    }
    to.flush().await
}

/// The next line, with its end; none at the end of the stream.
pub(crate) async fn line(from: &mut (impl AsyncBufRead + Unpin)) -> io::Result<Option<Vec<u8>>> {
    let mut line = Vec::new();
    let most = u64::try_from(MAX_LINE_BYTES).unwrap_or(u64::MAX);
    from.take(most).read_until(b'\n', &mut line).await?;
    if line.len() >= MAX_LINE_BYTES {
        let text = "A message is longer than 16 MiB, and was not passed on.";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((!line.is_empty()).then_some(line))
}
