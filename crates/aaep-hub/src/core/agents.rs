//! Agents: their sessions and requests, what people say to them, and calls that may come twice.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep_engine::{
    AgentEvent, Ask, Asker, Blame, EventNumber, Handled, Input, Open, Principal, Refusal,
    RequestId, SessionSnapshot, Status, View,
};
use aaep_transport::process::{Lineage, Origin};
use aaep_types::agent_api::{AgentInput, agent_id_of};
use aaep_types::json::Canonical;
use aaep_types::{EventKind, SessionId, rule};
use tokio::sync::oneshot;

use super::mailboxes::Mailboxes;
use super::processes::{Kinship, Processes};
use super::producers::somebody_elses;
use super::{Core, Grant};
use crate::access::{AuthenticatedPeer, BUILT_IN_NAMES, account_of, has_secret};
use crate::presence::Arrival;
use crate::redaction::Piece;

/// What came for an agent.
pub(crate) enum Inputs {
    Here(Vec<AgentInput>),
    /// Nothing yet; this tells when to look again.
    Later(oneshot::Receiver<()>),
}

/// As whom an agent speaks in a session.
pub(crate) struct Speaker {
    pub(crate) agent: Principal,
    /// The id that is its own once it has spoken, and the account that it belongs to.
    claims: Option<(Principal, String)>,
}

#[derive(Default)]
pub(super) struct Agents {
    pub(super) sessions: BTreeMap<SessionId, Principal>,
    mailboxes: Mailboxes,
    /// Callers that wait for the end of a session.
    watchers: BTreeMap<SessionId, Vec<oneshot::Sender<()>>>,
    /// Sessions that their own agents end.
    ending: BTreeSet<SessionId>,
    /// Sessions that their users stopped, with their agents, the newest last.
    stopped: VecDeque<(SessionId, Principal)>,
    /// The processes of each session's agents.
    processes: BTreeMap<SessionId, Processes>,
}

/// Sessions of which agents can still learn that their users stopped them.
const STOPPED_SESSIONS: usize = 4096;

impl Core {
    pub(crate) fn open_session(
        &mut self,
        agent: &Principal,
        open: Open<'_>,
    ) -> Result<SessionId, Refusal> {
        let id = self.bind_producer(agent, open.producer)?;
        match self.handle(Input::Open(open))? {
            Handled::Session(session) => {
                self.agents.sessions.insert(session, agent.clone());
                if let Some(id) = id {
                    self.producers.opened(session, &account(agent), &id);
                }
                self.hub.metrics().sessions.add(1);
                tracing::info!(%session, agent = &*agent.name, "a session began");
                Ok(session)
            }
            _ => Err(unexpected()),
        }
    }

    /// The `agent_id` to speak under, if this agent may.
    fn bind_producer(
        &mut self,
        agent: &Principal,
        producer: &str,
    ) -> Result<Option<String>, Refusal> {
        let Some(id) = agent_id_of(producer) else { return Ok(None) };
        if id == *self.hub.config().hub.agent_id.as_str() {
            return Err(somebody_elses(&id));
        }
        self.producers.admit(&account(agent), &id)?;
        Ok(Some(id))
    }

    // enforces: S4, S5, E28
    /// As whom an event is emitted in a session: as its own agent, also for a sub-agent of the same user
    /// that speaks under an id of its own. Whether the session is open to that id, the engine knows; how
    /// it ends is for its own agent to say.
    pub(crate) fn speaks_in(
        &mut self,
        agent: &Principal,
        session: SessionId,
        producer: Option<&str>,
        type_name: &str,
    ) -> Result<Speaker, Refusal> {
        let Some(producer) = producer else {
            return Ok(Speaker { agent: agent.clone(), claims: None });
        };
        let id = self.bind_producer(agent, producer)?;
        let account = account(agent);
        let claims = id.filter(|id| self.producers.is_new_to(&account, id));
        if claims.is_some() {
            self.producer.engine().needs_journal()?;
        }
        let ends = EventKind::named(type_name).is_some_and(EventKind::is_terminal);
        let owner = self.agents.sessions.get(&session);
        let owner = owner.filter(|owner| owner.user == agent.user && !ends);
        let owner = owner.filter(|owner| *owner == agent || is_proven(owner) && is_proven(agent));
        let claims = claims.map(|id| (account, id));
        Ok(Speaker { agent: owner.unwrap_or(agent).clone(), claims })
    }

    // enforces: S4, E28
    /// Whether an agent may speak in a session, under this producer if it names one. It is a sign of
    /// life, as speaking is.
    pub(crate) fn may_speak(
        &mut self,
        agent: &Principal,
        session: SessionId,
        producer: Option<&str>,
    ) -> Result<(), Refusal> {
        self.handle(Input::Touch { agent, session })?;
        match producer {
            Some(producer) => self.producer.engine().admits_producer(session, producer),
            None => Ok(()),
        }
    }

    // enforces: S5, E28, I22
    /// An agent has spoken under an id. From then on the id is its own, also after a restart: what a
    /// sub-agent asked for is run by nobody else. A call that is refused claims nothing, and leaves no
    /// record.
    pub(crate) fn claim(&mut self, speaker: Speaker) -> Result<(), Refusal> {
        if let Some((agent, id)) = &speaker.claims {
            self.handle(Input::Claim { agent, id })?;
            self.producers.claimed(agent, id);
        }
        Ok(())
    }

    // enforces: S4, E28
    /// As whom an agent deals with a request: as its session's own agent, also where it asked in another
    /// agent's session under an id of its own.
    pub(crate) fn stands_for(&self, agent: &Principal, request: RequestId) -> Principal {
        let Some(asker) = self.producer.engine().asker(request) else { return agent.clone() };
        let Asker { owner, sub_agent: Some(id) } = asker else { return agent.clone() };
        let ours = owner.user == agent.user && is_proven(&owner) && is_proven(agent);
        let its_own = ours && self.producers.is_open_to(&account(agent), &id);
        if its_own { owner } else { agent.clone() }
    }

    // enforces: S4, E28, I1
    /// As whom an agent runs what was approved: what a sub-agent asked is run by an agent that may speak for
    /// the sub-agent, and by nobody else, the session's own agent included.
    pub(crate) fn runs_for(
        &self,
        agent: &Principal,
        request: RequestId,
    ) -> Result<Principal, Refusal> {
        let asker = self.producer.engine().asker(request);
        if let Some(Asker { owner, sub_agent: Some(id) }) = asker
            && owner == *agent
            && !self.producers.is_open_to(&account(agent), &id)
        {
            let text = format!("`{id}` asked for this; only its own agent runs it.");
            return Err(Refusal { blame: Blame::OutOfOrder, rule: rule::E28, text });
        }
        Ok(self.stands_for(agent, request))
    }

    /// The first `agent_id`s of this user's agents, or of all, for the manifest.
    pub(crate) fn producers(&self, user: Option<&str>, most: usize) -> Vec<String> {
        self.producers.ids(user).take(most).map(str::to_owned).collect()
    }

    pub(crate) fn emit(
        &mut self,
        agent: &Principal,
        session: SessionId,
        event: &AgentEvent,
        arguments: Option<&Canonical>,
        asks_to_follow: &[usize],
    ) -> Result<(EventNumber, u64), Refusal> {
        let (kind, type_name) = (event.kind(), event.type_name());
        let ends = kind.is_some_and(EventKind::is_terminal);
        if let Some(profile) = &self.hub.0.profile {
            self.owed.admits(profile, session, type_name)?;
            if self.owed.changed_by(profile, session, type_name, asks_to_follow).is_some() {
                self.producer.engine().needs_journal()?;
            }
        }
        if ends {
            self.agents.ending.insert(session);
        }
        let answer = self.handle(Input::Emit { agent, session, event, arguments });
        if answer.is_err() {
            self.agents.ending.remove(&session);
        }
        if kind == Some(EventKind::ToolCompleted) {
            let engine = self.producer.engine();
            self.granted.keep(session, |request| engine.status(request) == Some(Status::Invoked));
        }
        let Handled::Emitted { event, number } = answer? else { return Err(unexpected()) };
        self.hub.metrics().events.add(1);
        self.note_said(session, type_name, asks_to_follow);
        Ok((event, number))
    }

    // enforces: I30
    /// Notes which processes an agent is that has opened a session.
    pub(crate) fn note_openers(&mut self, session: SessionId, origin: &Origin) {
        if self.agents.has(session) {
            self.agents.processes.insert(session, Processes::opened_by(origin));
        }
    }

    // enforces: I30
    /// Notes which processes an agent is that asks in a session of its user, before it does, and says
    /// which of them are new.
    pub(crate) fn note_askers(
        &mut self,
        agent: &Principal,
        session: SessionId,
        origin: &Origin,
    ) -> Result<Vec<Arc<Lineage>>, Refusal> {
        let owner = self.agents.sessions.get(&session);
        // Others are told by the engine that there is no such session.
        if origin.lines().is_empty() || owner.is_none_or(|owner| owner.user != agent.user) {
            return Ok(Vec::new());
        }
        self.agents.processes.entry(session).or_default().note(origin)
    }

    // enforces: I30
    /// Whether somebody cannot be told from an agent of this user that has an open session, or from what
    /// it started. Who has shown a PIN or a passkey is not only suspected.
    pub(crate) fn is_of_an_agent(&self, user: &str, arrival: &Arrival, has_shown: bool) -> bool {
        if !self.judges_processes() {
            return false;
        }
        let theirs = self.agents.sessions.iter().filter(|(_, agent)| &*agent.user == user);
        let least = if has_shown { Kinship::Certain } else { Kinship::Suspected };
        let mut kinships = theirs.map(|(session, _)| self.agents.kinship(*session, arrival));
        kinships.any(|kinship| kinship >= least)
    }

    /// Whether it matters from which processes replies come.
    pub(crate) fn judges_processes(&self) -> bool {
        let development = self.hub.config().development;
        !development.own_replies && !development.local_replies
    }

    /// The request that now waits, and whether it did before.
    pub(crate) fn ask(&mut self, ask: Ask<'_>) -> Result<(RequestId, bool), Refusal> {
        match self.handle(Input::Ask(ask))? {
            Handled::Waiting { request, again, .. } => {
                if !again {
                    self.hub.metrics().requests.add(1);
                }
                Ok((request, again))
            }
            _ => Err(unexpected()),
        }
    }

    /// A request as its agent may see it; looking is a sign of life.
    pub(crate) fn request(&mut self, agent: &Principal, request: RequestId) -> Option<View> {
        let view = self.producer.engine().request(agent, request)?;
        let _ = self.handle(Input::Touch { agent, session: view.session });
        Some(view)
    }

    /// Where an open session stands; looking is a sign of life.
    pub(crate) fn session_snapshot(
        &mut self,
        agent: &Principal,
        session: SessionId,
    ) -> Option<SessionSnapshot> {
        let snapshot = self.producer.engine().session(agent, session)?;
        self.handle(Input::Touch { agent, session }).ok()?;
        Some(snapshot)
    }

    /// The language that a session speaks.
    pub(crate) fn language_of(&self, session: SessionId) -> Option<Arc<str>> {
        self.producer.engine().language_of(session)
    }

    /// Tells when a session is over.
    pub(crate) fn when_ended(&mut self, session: SessionId) -> oneshot::Receiver<()> {
        let (sender, receiver) = oneshot::channel();
        let watchers = self.agents.watchers.entry(session).or_default();
        watchers.retain(|other| !other.is_closed());
        watchers.push(sender);
        receiver
    }

    /// Whether a session of this agent is over because its user stopped it.
    pub(crate) fn was_stopped(&self, agent: &Principal, session: SessionId) -> bool {
        self.agents.stopped.iter().rev().any(|(id, owner)| *id == session && owner == agent)
    }

    /// Tells what became of a request, when something has.
    pub(crate) fn when_decided(
        &mut self,
        agent: &Principal,
        request: RequestId,
    ) -> oneshot::Receiver<View> {
        let (sender, receiver) = oneshot::channel();
        if !self.stopping {
            let waiting = self.waiting.entry(request).or_default();
            waiting.retain(|(_, other)| !other.is_closed());
            waiting.push((agent.clone(), sender));
        }
        receiver
    }

    /// Tells the outcome of a request to the callers that wait for it.
    pub(super) fn tell_decided(&mut self, request: RequestId) {
        for (agent, waiting) in self.waiting.remove(&request).unwrap_or_default() {
            // Without a view the sender is dropped, and the waiting caller looks again.
            if let Some(view) = self.producer.engine().request(&agent, request) {
                let _ = waiting.send(view);
            }
        }
    }

    pub(crate) fn withdraw(
        &mut self,
        agent: &Principal,
        request: RequestId,
    ) -> Result<(), Refusal> {
        self.handle(Input::Withdraw { agent, request }).map(drop)
    }

    pub(crate) fn invoke(
        &mut self,
        agent: &Principal,
        request: RequestId,
        arguments: Option<&Canonical>,
    ) -> Result<(), Refusal> {
        self.handle(Input::Invoke { agent, request, arguments }).map(drop)
    }

    /// What was given back for a request, once it is durable that it was.
    pub(crate) fn grant(&self, request: RequestId) -> Option<Grant> {
        self.granted.get(request)
    }

    /// A piece of an output was said.
    pub(crate) fn note_piece(&self, piece: Piece) {
        self.hub.0.outputs.said(piece);
    }

    /// An event of this type was said; by these rules of the profile something has to follow.
    pub(crate) fn note_said(&mut self, session: SessionId, type_name: &str, asks: &[usize]) {
        let Some(profile) = &self.hub.0.profile else { return };
        // A session that ended owes nothing.
        if !self.agents.has(session) {
            return;
        }
        if let Some(rules) = self.owed.changed_by(profile, session, type_name, asks) {
            self.owed.set(session, rules.clone());
            let rules = rules.into_iter().collect();
            let _ = self.handle(Input::Owe { session, rules });
        }
    }

    /// A session ended; its agent is told, unless it ended it itself.
    pub(super) fn agent_stopped(&mut self, session: SessionId, by_user: bool) {
        let own = self.agents.ending.remove(&session);
        // Logs hold envelopes: ids and names, never what was said.
        tracing::info!(%session, "a session ended");
        for watcher in self.agents.watchers.remove(&session).unwrap_or_default() {
            let _ = watcher.send(());
        }
        self.agents.processes.remove(&session);
        self.granted.ended(session);
        self.owed.ended(session);
        self.hub.0.outputs.forget(session);
        self.producers.ended(session);
        self.keys.ended(session, self.now.boot);
        let agent = self.agents.sessions.remove(&session);
        if let Some(agent) = agent.filter(|_| !own) {
            if by_user {
                self.agents.stopped.push_back((session, agent.clone()));
                if self.agents.stopped.len() > STOPPED_SESSIONS {
                    self.agents.stopped.pop_front();
                }
            }
            // An agent that has a secret and never looked has gone with its session.
            if !has_secret(&agent) || self.agents.mailboxes.has(&agent) {
                let limits = self.hub.config().limits;
                let _ =
                    self.agents.mailboxes.put(&agent, AgentInput::SessionEnded(session), &limits);
            }
        }
    }

    // enforces: S1, S6, D4, D5, I29
    /// Somebody says something to the agents of their user. It is passed on only from somebody whose
    /// answers may count; for others it looks the same.
    pub(crate) fn say(&mut self, known: &AuthenticatedPeer, text: &str) -> Result<(), Refusal> {
        let user = &*known.principal.user;
        self.agents.mailboxes.forget_unread(self.now.boot);
        let agents: Vec<Principal> = self.agents.mailboxes.readers_of(user).cloned().collect();
        if agents.is_empty() {
            let text = "No agent of yours takes input now; start one, then say it again.";
            let (blame, rule) = (Blame::OutOfOrder, rule::T1);
            return Err(Refusal { blame, rule, text: text.into() });
        }
        let input = AgentInput::UserInput(text.into());
        let may_speak = self.hub.0.access.current().may_reply(known);
        let limits = self.hub.config().limits;
        // One who does not take what is said keeps it from nobody else.
        let (mut heard, mut refused) = (false, Ok(()));
        for agent in agents.iter().filter(|_| may_speak) {
            match self.agents.mailboxes.put(agent, input.clone(), &limits) {
                Ok(()) => heard = true,
                Err(refusal) => refused = Err(refusal),
            }
        }
        if heard { Ok(()) } else { refused }
    }

    /// What was said to an agent. From the first time on, what people say is kept for it.
    pub(crate) fn inputs(&mut self, agent: &Principal) -> Result<Inputs, Refusal> {
        let limits = self.hub.config().limits;
        self.agents.mailboxes.take(agent, &limits, self.now.boot)
    }
}

impl Agents {
    /// Those that were there before a restart.
    pub(super) fn recovered(sessions: BTreeMap<SessionId, Principal>) -> Self {
        Self { sessions, ..Self::default() }
    }

    /// With the processes that were kept of the sessions that are open.
    pub(super) fn recall_processes(&mut self, kept: impl Fn(SessionId) -> Processes) {
        self.processes = self.sessions.keys().map(|id| (*id, kept(*id))).collect();
    }

    // enforces: I30
    /// Whether somebody is, or comes from, the processes of a session's agent.
    pub(super) fn kinship(&self, session: SessionId, arrival: &Arrival) -> Kinship {
        let processes = self.processes.get(&session);
        processes.map_or(Kinship::None, |known| known.kinship(&arrival.origin, arrival.is_talk))
    }

    /// Whether a session is open.
    pub(super) fn has(&self, session: SessionId) -> bool {
        self.sessions.contains_key(&session)
    }
}

/// An agent without a token is nobody's colleague: an id alone opens nothing.
fn is_proven(agent: &Principal) -> bool {
    !BUILT_IN_NAMES.contains(&account_of(&agent.name))
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
