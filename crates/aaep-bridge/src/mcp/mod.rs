//! A proxy before a server of the Model Context Protocol: calls of tools wait for the person, everything
//! else passes as it is, byte for byte.

mod held;
mod message;

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aaep_agent::{Agent, Call, Session};
use aaep_policy::Policy;
use serde_json::Value;
use tokio::io::{AsyncBufRead, AsyncBufReadExt, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::task::{AbortHandle, JoinSet};

use message::{FromClient, FromServer, error, key, not_done};

/// The longest message, in bytes.
pub const MAX_LINE_BYTES: usize = 16 << 20;

/// Calls that wait for the person at the same time; further ones are refused.
const HELD: usize = 32;

/// How the hub is reached when the first call needs it.
pub type Connect = Arc<dyn Fn() -> Result<Agent, String> + Send + Sync>;

/// What a proxy knows before anything is said.
pub struct Proxy {
    /// The server's name, as the person knows it.
    pub name: String,
    /// Rules of the person's own: what they cover is done as they say.
    pub policy: Policy,
    /// How long an answer is waited for.
    pub timeout: Duration,
    /// How the hub is reached.
    pub connect: Connect,
}

/// What goes on.
struct State<W> {
    proxy: Proxy,
    client: tokio::sync::Mutex<W>,
    hub: tokio::sync::Mutex<Option<(Agent, Arc<Session>)>>,
    /// The tasks in which calls wait.
    tasks: tokio::sync::Mutex<JoinSet<()>>,
    /// Calls that wait, by the client's id.
    held: Mutex<BTreeMap<String, AbortHandle>>,
    /// Calls that the server works on.
    running: Mutex<BTreeMap<String, Call>>,
    /// Tools that only look, as the server says.
    readers: Mutex<BTreeMap<String, bool>>,
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
        let state = Arc::new(State {
            proxy: self,
            client: tokio::sync::Mutex::new(to_client),
            hub: tokio::sync::Mutex::new(None),
            tasks: tokio::sync::Mutex::new(JoinSet::new()),
            held: Mutex::new(BTreeMap::new()),
            running: Mutex::new(BTreeMap::new()),
            readers: Mutex::new(BTreeMap::new()),
        });
        let server = Arc::new(tokio::sync::Mutex::new(Some(to_server)));
        let outward = async {
            while let Some(line) = line(&mut from_client).await? {
                state.client_said(line, &server).await?;
            }
            // Nobody is left to hear what becomes of calls that wait.
            state.tasks.lock().await.shutdown().await;
            *server.lock().await = None;
            io::Result::Ok(())
        };
        let inward = async {
            while let Some(line) = line(&mut from_server).await? {
                state.server_said(&line).await;
                write(&mut *state.client.lock().await, &line).await?;
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

type Server<S> = Arc<tokio::sync::Mutex<Option<S>>>;

impl<W: AsyncWrite + Unpin + Send + 'static> State<W> {
    async fn client_said<S: AsyncWrite + Unpin + Send + 'static>(
        self: &Arc<Self>,
        line: Vec<u8>,
        server: &Server<S>,
    ) -> io::Result<()> {
        let text = String::from_utf8_lossy(&line);
        if text.trim().is_empty() {
            return Ok(());
        }
        match FromClient::read(text.trim()) {
            FromClient::Other => forward(server, &line).await,
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
                    None => forward(server, &line).await,
                }
            }
            FromClient::Call(call) => {
                let id = key(&call.id);
                let (full, known) = {
                    let held = lock(&self.held);
                    (held.len() >= HELD, held.contains_key(&id))
                };
                if known || lock(&self.running).contains_key(&id) {
                    return self.say(&error(&call.id, "this id is in use")).await;
                }
                if full {
                    let words = "It is not done: too many calls wait for an answer. Make one after the other.";
                    return self.say(&not_done(&call.id, words)).await;
                }
                let (state, server) = (self.clone(), server.clone());
                let mut tasks = self.tasks.lock().await;
                while tasks.try_join_next().is_some() {}
                // The task takes itself out when it is decided, so it has to be in before.
                let mut held = lock(&self.held);
                held.insert(
                    id,
                    tasks.spawn(async move { state.decide(call, line, &server).await }),
                );
                Ok(())
            }
        }
    }

    async fn server_said(&self, line: &[u8]) {
        let said = FromServer::read(&String::from_utf8_lossy(line));
        if !said.tools.is_empty() {
            let mut readers = lock(&self.readers);
            for (tool, reads) in said.tools {
                if readers.len() < 10_000 || readers.contains_key(&tool) {
                    readers.insert(tool, reads);
                }
            }
        }
        let Some((id, well)) = said.answer else { return };
        let running = lock(&self.running).remove(&id);
        if let Some(call) = running {
            let told = match well {
                true => call.succeed("The server has answered.").await,
                false => call.fail("The server says that it failed.").await,
            };
            drop(told);
        }
    }

    async fn say(&self, message: &Value) -> io::Result<()> {
        write(&mut *self.client.lock().await, format!("{message}\n").as_bytes()).await
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

async fn forward<S: AsyncWrite + Unpin>(server: &Server<S>, line: &[u8]) -> io::Result<()> {
    match server.lock().await.as_mut() {
        Some(server) => write(server, line).await,
        None => Err(io::ErrorKind::BrokenPipe.into()),
    }
}

async fn write(to: &mut (impl AsyncWrite + Unpin), line: &[u8]) -> io::Result<()> {
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
        let text = "A message is longer than 16 MiB, and was not passed on.";
        return Err(io::Error::new(io::ErrorKind::InvalidData, text));
    }
    Ok((!line.is_empty()).then_some(line))
}
