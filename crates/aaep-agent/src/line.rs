//! The line of one session: its calls go out one after the other, and what dropped things had to say
//! comes before whatever is said next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use aaep_transport::client::SessionSecret;
use aaep_types::SessionId;
use bytes::Bytes;
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::agent::{Inner, LONGEST_WAIT};
use crate::error::Error;
use crate::ticket::SessionTicket;

/// Things that were dropped and have not been dealt with yet, in one session; further ones are left
/// to the hub, which brings what is open to its end with the session.
const ERRANDS: usize = 1024;

/// A wait that ends so much too early means that the hub is about to stop.
const EARLY: std::time::Duration = std::time::Duration::from_millis(500);

/// An event with its key: said once, however often it is sent.
#[derive(Clone, Debug)]
pub(crate) struct KeyedEvent {
    pub(crate) body: Bytes,
    key: String,
}

/// Something that was left to be done by what was dropped.
#[derive(Clone, Debug)]
enum DeferredCall {
    Say(KeyedEvent),
    Withdraw(Arc<str>),
}

/// A request that somebody in this process waits for.
struct Held {
    request: Arc<str>,
    /// What is asked, as long as it waits.
    words: Option<String>,
}

pub(crate) struct Line {
    pub(crate) agent: Arc<Inner>,
    pub(crate) session: SessionId,
    /// What shows the hub that the session is ours, if it knows us by no token.
    pub(crate) secret: Option<SessionSecret>,
    events: String,
    turn: tokio::sync::Mutex<()>,
    errands: Mutex<VecDeque<DeferredCall>>,
    over: Arc<watch::Sender<bool>>,
    /// Whether outputs are to come to their end.
    pub(crate) closing: watch::Sender<bool>,
    /// Outputs that are being written.
    pub(crate) writers: watch::Sender<usize>,
    watcher: AbortHandle,
    pub(crate) opened: Option<Instant>,
    pub(crate) tools: AtomicU64,
    /// The percentage that was said last, and one more; 0 if none was.
    pub(crate) percent: AtomicU64,
    held: Mutex<Vec<Held>>,
}

impl Line {
    /// The line of a session that this agent opened.
    pub(crate) fn new(agent: Arc<Inner>, session: SessionId, opened: Option<Instant>) -> Arc<Self> {
        let secret = agent.secret.clone();
        Self::with_secret(agent, session, secret, opened)
    }

    pub(crate) fn with_secret(
        agent: Arc<Inner>,
        session: SessionId,
        secret: Option<SessionSecret>,
        opened: Option<Instant>,
    ) -> Arc<Self> {
        let over = Arc::new(watch::Sender::new(false));
        let watching = watch_end(agent.clone(), session, secret.clone(), over.clone());
        let watcher = agent.runtime.spawn(watching);
        Arc::new(Self {
            events: format!("agent/sessions/{session}/events"),
            agent,
            session,
            secret,
            turn: tokio::sync::Mutex::new(()),
            errands: Mutex::new(VecDeque::new()),
            over,
            closing: watch::Sender::new(false),
            writers: watch::Sender::new(0),
            watcher: watcher.abort_handle(),
            opened,
            tools: AtomicU64::new(0),
            percent: AtomicU64::new(0),
            held: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn ticket(&self) -> SessionTicket {
        SessionTicket { id: self.session, secret: self.secret.clone() }
    }

    pub(crate) fn said(&self, body: Bytes) -> KeyedEvent {
        KeyedEvent { body, key: self.agent.new_key() }
    }

    /// Emits an event, after whatever was to be said before it.
    pub(crate) async fn emit(&self, body: Bytes) -> Result<Bytes, Error> {
        self.say(self.said(body)).await
    }

    pub(crate) async fn say(&self, said: KeyedEvent) -> Result<Bytes, Error> {
        let deadline = self.agent.deadline();
        let _turn = self.take_turn(deadline).await?;
        self.send(&said, deadline).await
    }

    async fn send(&self, said: &KeyedEvent, deadline: Instant) -> Result<Bytes, Error> {
        if self.is_over() {
            return Err(Error::SessionOver);
        }
        let answer = self.post(&self.events, &said.key, said.body.clone(), deadline).await;
        answer.map_err(|error| self.noticed(error))
    }

    /// [`Inner::post`] about this session.
    pub(crate) async fn post(
        &self,
        path: &str,
        key: &str,
        body: Bytes,
        deadline: Instant,
    ) -> Result<Bytes, Error> {
        self.agent.post(path, key, self.secret.as_ref(), body, deadline).await
    }

    /// [`Inner::get`] about this session.
    pub(crate) async fn get(&self, path: &str) -> Result<Bytes, Error> {
        self.agent.get(path, self.secret.as_ref()).await
    }

    /// A call about something of this session: it takes its turn like an event. Whatever was to be
    /// done before is done then.
    pub(crate) async fn take_turn(
        &self,
        deadline: Instant,
    ) -> Result<tokio::sync::MutexGuard<'_, ()>, Error> {
        let late = |_| Error::unavailable("earlier calls still wait for the hub");
        let turn = timeout_at(deadline, self.turn.lock()).await.map_err(late)?;
        self.catch_up(deadline).await?;
        Ok(turn)
    }

    /// Does what was left to be done. Whoever calls this has the turn; whoever goes away meanwhile, or
    /// cannot reach the hub, leaves the rest to the next.
    async fn catch_up(&self, deadline: Instant) -> Result<(), Error> {
        while let Some(errand) = self.next_errand() {
            match self.run(&errand, deadline).await {
                // The hub has done nothing of what this caller wants.
                Err(Error::InDoubt(why)) => return Err(Error::Unavailable(why)),
                Err(error @ Error::Unavailable(_)) => return Err(error),
                Err(error) => {
                    // Nobody is left to be told; the hub brings what stays open to its end.
                    tracing::debug!(session = %self.session, %error, "last words were refused");
                }
                Ok(()) => {}
            }
            self.errands().pop_front();
        }
        Ok(())
    }

    async fn run(&self, errand: &DeferredCall, deadline: Instant) -> Result<(), Error> {
        match errand {
            _ if self.is_over() => Ok(()),
            DeferredCall::Say(said) => self.send(said, deadline).await.map(drop),
            DeferredCall::Withdraw(request) => {
                let path = format!("agent/requests/{request}");
                self.agent.delete(&path, self.secret.as_ref(), deadline).await.map(drop)
            }
        }
    }

    fn next_errand(&self) -> Option<DeferredCall> {
        self.errands().front().cloned()
    }

    /// Says something that nobody waits for.
    pub(crate) fn say_later(self: &Arc<Self>, said: KeyedEvent) {
        self.do_later(DeferredCall::Say(said));
    }

    /// Withdraws a request that nobody waits for any longer, or gives up what was approved, before
    /// anything else is said.
    pub(crate) fn withdraw_later(self: &Arc<Self>, request: Arc<str>) {
        self.do_later(DeferredCall::Withdraw(request));
    }

    fn do_later(self: &Arc<Self>, errand: DeferredCall) {
        {
            let mut errands = self.errands();
            if errands.len() >= ERRANDS || self.is_over() {
                return;
            }
            errands.push_back(errand);
        }
        let line = self.clone();
        self.agent.behind(async move { drop(line.take_turn(line.agent.deadline()).await) });
    }

    fn errands(&self) -> std::sync::MutexGuard<'_, VecDeque<DeferredCall>> {
        self.errands.lock().unwrap_or_else(PoisonError::into_inner)
    }

    // enforces: T1, T18
    /// Ends the session with these words, once its outputs are complete.
    pub(crate) async fn end(&self, said: KeyedEvent) -> Result<(), Error> {
        self.closing.send_replace(true);
        let mut writers = self.writers.subscribe();
        let _ = timeout(self.agent.patience(), writers.wait_for(|open| *open == 0)).await;
        self.say(said).await?;
        self.over.send_replace(true);
        Ok(())
    }

    /// Learns from a refusal whether the session is over.
    pub(crate) fn noticed(&self, error: Error) -> Error {
        match error {
            Error::Refused(refused) if refused.status == 404 => {
                self.over.send_replace(true);
                Error::SessionOver
            }
            other => other,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        *self.over.borrow()
    }

    /// Waits until the session is over.
    pub(crate) async fn ended(&self) {
        let _ = self.over.subscribe().wait_for(|over| *over).await;
    }

    // enforces: C4
    /// Whether something with the same words waits for an answer here: nobody could tell them apart.
    pub(crate) fn is_asking(&self, words: &str) -> bool {
        self.held().iter().any(|held| held.words.as_deref() == Some(words))
    }

    /// Takes a request for this process; false if somebody here has it already.
    pub(crate) fn hold(&self, request: &Arc<str>, words: &str) -> bool {
        let mut held = self.held();
        let new = !held.iter().any(|known| known.request == *request);
        if new {
            held.push(Held { request: request.clone(), words: Some(words.to_owned()) });
        }
        new
    }

    /// A request that is held has its outcome.
    pub(crate) fn no_longer_asks(&self, request: &Arc<str>) {
        if let Some(held) = self.held().iter_mut().find(|held| held.request == *request) {
            held.words = None;
        }
    }

    pub(crate) fn let_go(&self, request: &Arc<str>) {
        self.held().retain(|known| known.request != *request);
    }

    fn held(&self) -> std::sync::MutexGuard<'_, Vec<Held>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn count_tool(&self) {
        self.tools.fetch_add(1, Ordering::Relaxed);
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.watcher.abort();
    }
}

/// Keeps the lease of a session, and hears of its end.
async fn watch_end(
    agent: Arc<Inner>,
    session: SessionId,
    secret: Option<SessionSecret>,
    over: Arc<watch::Sender<bool>>,
) {
    let path = format!("agent/sessions/{session}?wait={}", LONGEST_WAIT.as_secs());
    loop {
        let asked = Instant::now();
        match agent.get(&path, secret.as_ref()).await {
            Err(Error::Refused(refused)) if refused.status == 404 => {
                over.send_replace(true);
                return;
            }
            _ if asked.elapsed() < EARLY => sleep(EARLY).await,
            _ => {}
        }
    }
}

/// Waits before the hub is asked again, if it answered sooner than it was asked to.
pub(crate) async fn not_too_soon(asked: Instant) {
    if asked.elapsed() < EARLY {
        sleep(EARLY).await;
    }
}
