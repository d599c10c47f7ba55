//! The line of one session: its calls go out one after the other, and what dropped things had to say
//! comes before whatever is said next.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aaep_transport::client::SessionSecret;
use aaep_types::SessionId;
use aaep_types::agent_api::{
    AgentInput, AskUser, Granted, InvokeAction, PostEvent, RequestState, SessionState,
};
use tokio::sync::watch;
use tokio::task::AbortHandle;
use tokio::time::{Instant, sleep, timeout, timeout_at};

use crate::agent::{Inner, LONGEST_WAIT};
use crate::error::Error;
use crate::ticket::SessionTicket;
use crate::wire::Envelope;

/// Things that were dropped and have not been dealt with yet, in one session; further ones are left
/// to the hub, which brings what is open to its end with the session.
const DEFERRED_CALLS: usize = 1024;

/// A wait that ends so much too early means that the hub is about to stop.
const EARLY: Duration = Duration::from_millis(500);

/// An event with its key: said once, however often it is sent.
#[derive(Clone, Debug)]
pub(crate) struct KeyedEvent {
    event: PostEvent,
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
    turn: tokio::sync::Mutex<()>,
    deferred: Mutex<VecDeque<DeferredCall>>,
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
    /// Whether the session is known to speak English, as this library does.
    pub(crate) english: AtomicBool,
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
            agent,
            session,
            secret,
            turn: tokio::sync::Mutex::new(()),
            deferred: Mutex::new(VecDeque::new()),
            over,
            closing: watch::Sender::new(false),
            writers: watch::Sender::new(0),
            watcher: watcher.abort_handle(),
            opened,
            tools: AtomicU64::new(0),
            percent: AtomicU64::new(0),
            english: AtomicBool::new(false),
            held: Mutex::new(Vec::new()),
        })
    }

    pub(crate) fn ticket(&self) -> SessionTicket {
        SessionTicket { id: self.session, secret: self.secret.clone() }
    }

    pub(crate) fn said(&self, event: PostEvent) -> KeyedEvent {
        KeyedEvent { event, key: self.agent.new_key() }
    }

    /// Emits an event, after whatever was to be said before it.
    pub(crate) async fn emit(&self, event: PostEvent) -> Result<(), Error> {
        self.say(self.said(event)).await
    }

    pub(crate) async fn say(&self, said: KeyedEvent) -> Result<(), Error> {
        let deadline = self.agent.deadline();
        let _turn = self.take_turn(deadline).await?;
        self.send(&said, deadline).await
    }

    async fn send(&self, said: &KeyedEvent, deadline: Instant) -> Result<(), Error> {
        if self.is_over() {
            return Err(Error::SessionOver);
        }
        let sent = AtomicBool::new(false);
        let envelope = self.envelope(Some(&said.key), &sent);
        let call = || self.agent.wire.emit(self.session, &said.event, envelope);
        let posted = self.agent.change(&sent, deadline, call).await;
        posted.map(drop).map_err(|error| self.noticed(error))
    }

    /// What goes with a call about this session.
    fn envelope<'a>(&'a self, key: Option<&'a str>, sent: &'a AtomicBool) -> Envelope<'a> {
        Envelope { key, secret: self.secret.as_ref(), sent }
    }

    /// Asks the user.
    pub(crate) async fn ask(
        &self,
        question: &AskUser,
        key: &str,
        deadline: Instant,
    ) -> Result<RequestState, Error> {
        let sent = AtomicBool::new(false);
        let envelope = self.envelope(Some(key), &sent);
        let call = || self.agent.wire.ask(self.session, question, envelope);
        self.agent.change(&sent, deadline, call).await
    }

    /// Looks at a request; waits for its outcome if asked to.
    pub(crate) async fn look(&self, request: &str, wait: Duration) -> Result<RequestState, Error> {
        let sent = AtomicBool::new(false);
        let envelope = self.envelope(None, &sent);
        self.agent.look(|| self.agent.wire.request(request, wait, envelope)).await
    }

    /// Spends an approval.
    pub(crate) async fn invoke(
        &self,
        request: &str,
        action: &InvokeAction,
        key: &str,
        deadline: Instant,
    ) -> Result<Granted, Error> {
        let sent = AtomicBool::new(false);
        let envelope = self.envelope(Some(key), &sent);
        let call = || self.agent.wire.invoke(request, action, envelope);
        self.agent.change(&sent, deadline, call).await
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

    /// Does what was left to be done. The caller holds the turn; a caller that is dropped meanwhile, or
    /// cannot reach the hub, leaves the rest to the next.
    async fn catch_up(&self, deadline: Instant) -> Result<(), Error> {
        while let Some(call) = self.next_deferred() {
            match self.run(&call, deadline).await {
                // The hub has done nothing of what this caller wants.
                Err(Error::InDoubt(why)) => return Err(Error::Unavailable(why)),
                Err(error @ Error::Unavailable(_)) => return Err(error),
                Err(error) => {
                    // Nobody is left to be told; the hub brings what stays open to its end.
                    tracing::debug!(session = %self.session, %error, "last words were refused");
                }
                Ok(()) => {}
            }
            self.deferred().pop_front();
        }
        Ok(())
    }

    async fn run(&self, call: &DeferredCall, deadline: Instant) -> Result<(), Error> {
        match call {
            _ if self.is_over() => Ok(()),
            DeferredCall::Say(said) => self.send(said, deadline).await,
            DeferredCall::Withdraw(request) => {
                let sent = AtomicBool::new(false);
                let envelope = self.envelope(None, &sent);
                let call = || self.agent.wire.withdraw(request, envelope);
                self.agent.change(&sent, deadline, call).await
            }
        }
    }

    fn next_deferred(&self) -> Option<DeferredCall> {
        self.deferred().front().cloned()
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

    fn do_later(self: &Arc<Self>, call: DeferredCall) {
        {
            let mut deferred = self.deferred();
            if deferred.len() >= DEFERRED_CALLS || self.is_over() {
                return;
            }
            deferred.push_back(call);
        }
        let line = self.clone();
        self.agent.behind(async move { drop(line.take_turn(line.agent.deadline()).await) });
    }

    fn deferred(&self) -> std::sync::MutexGuard<'_, VecDeque<DeferredCall>> {
        self.deferred.lock().unwrap_or_else(PoisonError::into_inner)
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
    loop {
        let asked = Instant::now();
        match agent.session_state(session, LONGEST_WAIT, secret.as_ref()).await {
            Err(Error::Refused(refused)) if refused.status == 404 => {
                over.send_replace(true);
                return;
            }
            _ if asked.elapsed() < EARLY => sleep(EARLY).await,
            _ => {}
        }
    }
}

impl Inner {
    /// Where a session stands; waits for its end if asked to.
    pub(crate) async fn session_state(
        &self,
        session: SessionId,
        wait: Duration,
        secret: Option<&SessionSecret>,
    ) -> Result<SessionState, Error> {
        let sent = AtomicBool::new(false);
        let envelope = Envelope { key: None, secret, sent: &sent };
        self.look(|| self.wire.session(session, wait, envelope)).await
    }

    /// What came for this agent, once something did.
    pub(crate) async fn inputs(&self) -> Result<Vec<AgentInput>, Error> {
        let sent = AtomicBool::new(false);
        let envelope = Envelope { key: None, secret: self.secret.as_ref(), sent: &sent };
        self.look(|| self.wire.inputs(LONGEST_WAIT, envelope)).await
    }
}

/// Waits before the hub is asked again, if it answered sooner than it was asked to.
pub(crate) async fn not_too_soon(asked: Instant) {
    if asked.elapsed() < EARLY {
        sleep(EARLY).await;
    }
}
