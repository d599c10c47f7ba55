//! Agents: their sessions and requests, what people say to them, and calls that may come twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep_engine::{Answer, Ask, Blame, Boot, Input, Open, Principal, Refusal, Standing, View};
use aaep_store::{KeptCall, Note};
use aaep_types::{EventKind, SessionId, ToolCallId, rule};
use tokio::sync::oneshot;

use super::Core;
use super::recover::producer_id;
use crate::access::{Known, account_of, has_secret};

/// Things that people said which wait for one agent.
const WAITING_INPUTS: usize = 256;

/// Calls with an idempotency key that are remembered, over all agents.
const REMEMBERED_CALLS: usize = 200_000;

/// Of those, events of one session: an agent that did not get an answer sends the same again before
/// it goes on, so older ones never come again, and none does after the session.
const REMEMBERED_EVENTS: usize = 64;

/// How long they are remembered after their session, in seconds.
pub(super) const REMEMBERED_SECONDS: u64 = 24 * 60 * 60;

/// Producers that are remembered as belonging to an agent.
const KNOWN_PRODUCERS: usize = 10_000;

/// An action that was given back to its agent, to be run once.
#[derive(Clone, Debug)]
pub(crate) struct Grant {
    pub(crate) call: ToolCallId,
    pub(crate) arguments: Arc<str>,
}

/// A call with an idempotency key: who, which path, which key.
pub(crate) type CallKey = (Arc<str>, String, String);

/// A call that led to an event.
struct EventCall {
    key: CallKey,
    /// Whether the journal has it.
    durable: bool,
}

/// What a call with an idempotency key led to.
#[derive(Clone, Debug)]
pub(crate) struct Kept {
    pub(crate) body: [u8; 32],
    pub(crate) status: u16,
    pub(crate) answer: String,
}

/// What is known of an idempotency key.
pub(crate) enum KeyUse {
    /// Nothing: go on.
    New,
    /// The same call: this was its answer.
    Same(Kept),
    /// Another call used it.
    Other,
    /// It is new, and no further one can be remembered: it would promise too much.
    Full,
}

/// What people said to an agent, as JSON objects.
pub(crate) enum Inputs {
    Here(Vec<Arc<str>>),
    /// Nothing yet; this tells when to look again.
    Later(oneshot::Receiver<()>),
}

/// Mailboxes of agents without a token, each with a session secret of its own.
const SECRET_MAILBOXES: usize = 1024;

/// How long such a mailbox is kept while nobody looks into it, in seconds.
const UNREAD_SECONDS: u64 = 120;

#[derive(Default)]
struct Mailbox {
    waiting: VecDeque<Arc<str>>,
    /// Calls that wait for something to come; several programs may share a principal.
    readers: Vec<oneshot::Sender<()>>,
    /// Whether the agent has ever looked.
    is_read: bool,
    /// When it looked last.
    read_at: Boot,
}

#[derive(Default)]
pub(super) struct Agents {
    sessions: BTreeMap<SessionId, Principal>,
    /// Which agent a producer belongs to, by its `agent_id`.
    producers: BTreeMap<String, Principal>,
    mailboxes: BTreeMap<Principal, Mailbox>,
    /// Whoever waits for the end of a session.
    watchers: BTreeMap<SessionId, Vec<oneshot::Sender<()>>>,
    /// Sessions that their own agents end.
    ending: BTreeSet<SessionId>,
    calls: BTreeMap<CallKey, Kept>,
    calls_of: BTreeMap<SessionId, Vec<CallKey>>,
    events_of: BTreeMap<SessionId, VecDeque<EventCall>>,
    /// Calls in the journal that newer events have outlived; they go with the next event that is kept.
    outlived: Vec<CallKey>,
    forgotten_at: VecDeque<(Boot, SessionId)>,
}

impl Core {
    pub(crate) fn open_session(
        &mut self,
        agent: &Principal,
        open: Open<'_>,
    ) -> Result<SessionId, Refusal> {
        let id = self.bind_producer(agent, open.producer)?;
        match self.handle(Input::Open(open))? {
            Answer::Session(session) => {
                self.agents.sessions.insert(session, agent.clone());
                if let Some(id) = id {
                    self.agents.producers.entry(id).or_insert_with(|| account(agent));
                }
                self.hub.metrics().sessions.add(1);
                tracing::info!(%session, agent = &*agent.name, "a session began");
                Ok(session)
            }
            _ => Err(unexpected()),
        }
    }

    // enforces: S4, S5, E25
    /// A producer belongs to the agent that used it first; nobody else speaks in its name.
    fn bind_producer(&self, agent: &Principal, producer: &str) -> Result<Option<String>, Refusal> {
        let Some(id) = producer_id(producer) else { return Ok(None) };
        let owner = self.agents.producers.get(&id);
        let hubs_own = id == *self.hub.config().hub.agent_id.as_str();
        let others = |owner: &Principal| {
            (&*owner.name, &owner.user) != (account_of(&agent.name), &agent.user)
        };
        if hubs_own || owner.is_some_and(others) {
            return Err(Refusal {
                blame: Blame::NotYours,
                rule: rule::S5,
                text: format!("The producer {id} belongs to somebody else; use one of your own."),
            });
        }
        if owner.is_none() && self.agents.producers.len() >= KNOWN_PRODUCERS {
            return Err(Refusal {
                blame: Blame::Limit,
                rule: rule::S5,
                text: format!("At most {KNOWN_PRODUCERS} producers are known at once."),
            });
        }
        Ok(Some(id))
    }

    /// The `agent_id`s that have been used, for the manifest.
    pub(crate) fn producers(&self) -> Vec<String> {
        self.agents.producers.keys().cloned().collect()
    }

    pub(crate) fn emit(
        &mut self,
        agent: &Principal,
        session: SessionId,
        type_name: &str,
        payload: &str,
    ) -> Result<(u128, u64), Refusal> {
        let ends = EventKind::named(type_name).is_some_and(EventKind::is_terminal);
        if ends {
            self.agents.ending.insert(session);
        }
        let answer = self.handle(Input::Emit { agent, session, type_name, payload });
        if answer.is_err() {
            self.agents.ending.remove(&session);
        }
        self.hub.metrics().events.add(1);
        match answer? {
            Answer::Emitted { event, number } => Ok((event, number)),
            _ => Err(unexpected()),
        }
    }

    /// The request that now waits, and whether it did before.
    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Result<(u128, bool), Refusal> {
        match self.handle(Input::Ask(ask))? {
            Answer::Waiting { request, again, .. } => {
                if !again {
                    self.hub.metrics().requests.add(1);
                }
                Ok((request, again))
            }
            _ => Err(unexpected()),
        }
    }

    /// A request as its agent may see it; looking is a sign of life.
    pub(crate) fn request(&mut self, agent: &Principal, request: u128) -> Option<View> {
        let view = self.producer.engine().request(agent, request)?;
        let _ = self.handle(Input::Touch { agent, session: view.session });
        Some(view)
    }

    /// Where an open session stands; looking is a sign of life.
    pub(crate) fn standing(&mut self, agent: &Principal, session: SessionId) -> Option<Standing> {
        let standing = self.producer.engine().session(agent, session)?;
        self.handle(Input::Touch { agent, session }).ok()?;
        Some(standing)
    }

    /// Tells when a session is over.
    pub(crate) fn when_ended(&mut self, session: SessionId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let watchers = self.agents.watchers.entry(session).or_default();
        watchers.retain(|other| !other.is_closed());
        watchers.push(sender);
        receiver
    }

    /// Tells what became of a request, when something has.
    pub(crate) fn when_decided(
        &mut self,
        agent: &Principal,
        request: u128,
    ) -> oneshot::Receiver<View> {
        let (sender, receiver) = oneshot::channel();
        if !self.stopping {
            let waiting = self.waiting.entry(request).or_default();
            waiting.retain(|(_, other)| !other.is_closed());
            waiting.push((agent.clone(), sender));
        }
        receiver
    }

    /// Whoever waits for what became of a request learns it.
    pub(super) fn tell_decided(&mut self, request: u128) {
        for (agent, waiting) in self.waiting.remove(&request).unwrap_or_default() {
            // Without a view the sender is dropped, and whoever waits looks again.
            if let Some(view) = self.producer.engine().request(&agent, request) {
                let _ = waiting.send(view);
            }
        }
    }

    pub(crate) fn withdraw(&mut self, agent: &Principal, request: u128) -> Result<(), Refusal> {
        self.handle(Input::Withdraw { agent, request }).map(drop)
    }

    pub(crate) fn invoke(
        &mut self,
        agent: &Principal,
        request: u128,
        arguments: Option<&str>,
    ) -> Result<(), Refusal> {
        self.handle(Input::Invoke { agent, request, arguments }).map(drop)
    }

    /// What was given back for a request, once it is durable that it was.
    pub(crate) fn grant(&self, request: u128) -> Option<Grant> {
        self.granted.get(&request).cloned()
    }

    /// A session ended; its agent is told, unless it ended it itself.
    pub(super) fn agent_stopped(&mut self, session: SessionId) {
        let own = self.agents.ending.remove(&session);
        tracing::info!(%session, "a session ended");
        for watcher in self.agents.watchers.remove(&session).unwrap_or_default() {
            let _ = watcher.send(());
        }
        let engine = self.producer.engine();
        self.granted
            .retain(|request, _| engine.status(*request) == Some(aaep_engine::Status::Invoked));
        let agent = self.agents.sessions.remove(&session);
        let events = self.agents.events_of.remove(&session).unwrap_or_default();
        let kept = events.iter().any(|event| event.durable);
        for event in events {
            self.agents.calls.remove(&event.key);
        }
        if kept || self.agents.calls_of.contains_key(&session) {
            let until = self.now.boot.after_seconds(REMEMBERED_SECONDS);
            self.agents.forgotten_at.push_back((until, session));
        }
        if let Some(agent) = agent.filter(|_| !own) {
            let notice = format!(r#"{{"kind":"session_ended","session_id":"{session}"}}"#);
            // Whoever has a secret and never looked has gone with its session.
            if !has_secret(&agent) || self.agents.mailboxes.contains_key(&agent) {
                let _ = self.agents.put(&agent, notice.into());
            }
        }
    }

    // enforces: S1, S6, D4, D5
    /// Somebody says something to the agents of their user. It is passed on only from somebody whose
    /// answers may count; for others it looks the same.
    pub(crate) fn say(&mut self, known: &Known, input: &str) -> Result<(), Refusal> {
        let user = &*known.principal.user;
        self.agents.forget_unread(self.now.boot);
        let agents: Vec<Principal> = self.agents.readers_of(user).cloned().collect();
        if agents.is_empty() {
            let text = "No agent of yours takes input now; start one, then say it again.";
            let (blame, rule) = (Blame::OutOfOrder, rule::T1);
            return Err(Refusal { blame, rule, text: text.into() });
        }
        let input: Arc<str> = input.into();
        let may_speak = self.hub.0.access.current().may_reply(known);
        for agent in agents.iter().filter(|_| may_speak) {
            self.agents.put(agent, input.clone())?;
        }
        Ok(())
    }

    /// What was said to an agent. From the first time on, what people say is kept for it.
    pub(crate) fn inputs(&mut self, agent: &Principal) -> Result<Inputs, Refusal> {
        let now = self.now.boot;
        if has_secret(agent) && !self.agents.mailboxes.contains_key(agent) {
            self.agents.forget_unread(now);
            let secrets = self.agents.mailboxes.keys().filter(|agent| has_secret(agent)).count();
            if secrets >= SECRET_MAILBOXES {
                return Err(Refusal {
                    blame: Blame::Limit,
                    rule: rule::T1,
                    text: format!(
                        "At most {SECRET_MAILBOXES} agents without a token take input at once."
                    ),
                });
            }
        }
        let mailbox = self.agents.mailboxes.entry(agent.clone()).or_default();
        (mailbox.is_read, mailbox.read_at) = (true, now);
        if mailbox.waiting.is_empty() {
            let (sender, receiver) = oneshot::channel();
            mailbox.readers.retain(|other| !other.is_closed());
            mailbox.readers.push(sender);
            return Ok(Inputs::Later(receiver));
        }
        Ok(Inputs::Here(mailbox.waiting.drain(..).collect()))
    }

    /// What is known of an idempotency key.
    pub(crate) fn key_use(&mut self, key: &CallKey, body: &[u8; 32]) -> KeyUse {
        for session in self.agents.forget_calls(self.now.boot) {
            self.note(Note::ForgetCalls { session: session.to_string() });
        }
        match self.agents.calls.get(key) {
            None if self.agents.calls.len() >= REMEMBERED_CALLS => KeyUse::Full,
            None => KeyUse::New,
            Some(kept) if kept.body == *body => KeyUse::Same(kept.clone()),
            Some(_) => KeyUse::Other,
        }
    }

    // enforces: I11
    /// Remembers which event of an open session a call led to, for a while. If the event left a record,
    /// so does the call, in the same unit: a repeat after a crash finds both or neither.
    pub(crate) fn keep_event(&mut self, key: CallKey, session: SessionId, kept: Kept) {
        let durable = self.keeper.is_some() && !self.unit.entries.is_empty();
        if durable {
            self.note(kept_call(&key, session, &kept));
            for (agent, path, key) in std::mem::take(&mut self.agents.outlived) {
                self.note(Note::ForgetCall { agent: agent.to_string(), path, key });
            }
        }
        self.agents.remember_event(key, session, kept, durable);
    }

    /// Remembers what a call led to, until a day after its session.
    pub(crate) fn keep_call(&mut self, key: CallKey, session: SessionId, kept: Kept) {
        if self.keeper.is_some() {
            self.note(kept_call(&key, session, &kept));
        }
        self.agents.remember(key, session, kept, self.now.boot);
    }
}

impl Agents {
    /// Those that were there before a restart.
    pub(super) fn recovered(
        sessions: BTreeMap<SessionId, Principal>,
        producers: BTreeMap<String, Principal>,
    ) -> Self {
        Self { sessions, producers, ..Self::default() }
    }

    /// Remembers what a call led to, until a day after its session.
    pub(super) fn remember(&mut self, key: CallKey, session: SessionId, kept: Kept, now: Boot) {
        let first = !self.calls_of.contains_key(&session);
        if first && !self.sessions.contains_key(&session) {
            // The call that ended its session.
            self.forgotten_at.push_back((now.after_seconds(REMEMBERED_SECONDS), session));
        }
        self.calls_of.entry(session).or_default().push(key.clone());
        self.calls.insert(key, kept);
    }

    /// Remembers which event of an open session a call led to, until newer ones take its place.
    pub(super) fn remember_event(
        &mut self,
        key: CallKey,
        session: SessionId,
        kept: Kept,
        durable: bool,
    ) {
        let events = self.events_of.entry(session).or_default();
        events.push_back(EventCall { key: key.clone(), durable });
        let oldest = if events.len() > REMEMBERED_EVENTS { events.pop_front() } else { None };
        if let Some(oldest) = oldest {
            self.calls.remove(&oldest.key);
            if oldest.durable {
                self.outlived.push(oldest.key);
            }
        }
        self.calls.insert(key, kept);
    }

    /// Whether a session is open.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }

    /// Agents of this user that take input.
    fn readers_of(&self, user: &str) -> impl Iterator<Item = &Principal> {
        let read = self.mailboxes.iter().filter(|(_, mailbox)| mailbox.is_read);
        read.map(|(agent, _)| agent).filter(move |agent| &*agent.user == user)
    }

    // enforces: I22
    /// Forgets the mailboxes of session secrets that nobody looks into any more.
    fn forget_unread(&mut self, now: Boot) {
        self.mailboxes.retain(|agent, mailbox| {
            let waits = mailbox.readers.iter().any(|reader| !reader.is_closed());
            waits || !has_secret(agent) || mailbox.read_at.after_seconds(UNREAD_SECONDS) > now
        });
    }

    /// Puts something into an agent's mailbox; there is one for each agent at most.
    fn put(&mut self, agent: &Principal, input: Arc<str>) -> Result<(), Refusal> {
        let mailbox = self.mailboxes.entry(agent.clone()).or_default();
        if mailbox.waiting.len() >= WAITING_INPUTS {
            return Err(Refusal {
                blame: Blame::Limit,
                rule: rule::T1,
                text: "The agent does not take its input; try again later.".into(),
            });
        }
        mailbox.waiting.push_back(input);
        for reader in mailbox.readers.drain(..) {
            let _ = reader.send(());
        }
        Ok(())
    }

    /// Forgets calls whose time is over; says of which sessions.
    fn forget_calls(&mut self, now: Boot) -> Vec<SessionId> {
        let mut gone = Vec::new();
        while let Some((_, session)) = self.forgotten_at.pop_front_if(|(until, _)| *until <= now) {
            for key in self.calls_of.remove(&session).unwrap_or_default() {
                self.calls.remove(&key);
            }
            gone.push(session);
        }
        gone
    }
}

fn kept_call(key: &CallKey, session: SessionId, kept: &Kept) -> Note {
    Note::Call(KeptCall {
        agent: key.0.to_string(),
        path: key.1.clone(),
        key: key.2.clone(),
        session: session.to_string(),
        body: kept.body,
        status: kept.status,
        answer: kept.answer.clone(),
    })
}

/// To whom a producer belongs: agents without a token share theirs, since each start of a program has
/// another secret.
pub(super) fn account(agent: &Principal) -> Principal {
    Principal::new(account_of(&agent.name), agent.role, &agent.user)
}

/// The engine answered something that does not belong to the question.
fn unexpected() -> Refusal {
    Refusal {
        blame: Blame::Unavailable,
        rule: rule::E1,
        text: "The hub could not do that; try again.".into(),
    }
}
