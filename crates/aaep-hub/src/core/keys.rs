//! Calls with an idempotency key: each is done once, however often it comes.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use aaep_engine::{Boot, Bound, Principal, Refusal, Shares};
use aaep_store::{KeptCall, Note};
use aaep_types::SessionId;

use super::Core;
use crate::config::Limits;

/// How long calls are remembered after their session, in seconds.
pub(super) const REMEMBERED_SECONDS: u64 = 24 * 60 * 60;

/// A call with an idempotency key: who, which path, which key.
pub(crate) type CallKey = (Arc<str>, String, String);

/// What a call with an idempotency key led to.
#[derive(Clone, Debug)]
pub(crate) struct KeptAnswer {
    pub(crate) body: [u8; 32],
    pub(crate) status: u16,
    pub(crate) answer: String,
}

/// What is known of an idempotency key.
pub(crate) enum KeyUse {
    /// Nothing: go on.
    New,
    /// The same call: this was its answer.
    Same(KeptAnswer),
    /// Another call used it.
    Other,
    /// It is new, and no further one can be remembered: it would promise too much.
    Full(Refusal),
}

/// A call that led to an event.
struct EventCall {
    key: CallKey,
    /// Whether the journal has it.
    durable: bool,
}

/// The calls of one session.
struct OfSession {
    agent: Principal,
    calls: Vec<CallKey>,
    events: VecDeque<EventCall>,
    /// Until when they are remembered, once it has ended.
    until: Option<Boot>,
}

/// Who has one share: a user, and the account of an agent.
type Account = (Arc<str>, Box<str>);

fn account_of(agent: &Principal) -> Account {
    (agent.user.clone(), agent.account().into())
}

/// All calls that are remembered.
pub(super) struct Keys {
    bound: Bound,
    /// Events of one session that are remembered: an agent that did not get an answer sends the same
    /// again before it goes on, so older ones never come again, and none does after the session.
    events_per_session: usize,
    calls: BTreeMap<CallKey, KeptAnswer>,
    sessions: BTreeMap<SessionId, OfSession>,
    /// Sessions that ended, by when they are forgotten.
    ended: BTreeSet<(Boot, SessionId)>,
    /// The same by the account of their agent: its own oldest give way when its share is full.
    ended_of: BTreeMap<Account, BTreeSet<(Boot, SessionId)>>,
    /// Calls in the journal that newer events have outlived; they go with the next event that is kept.
    outlived: Vec<CallKey>,
    shares: Shares,
}

impl Keys {
    pub(super) fn new(limits: &Limits) -> Self {
        Self {
            bound: limits.remembered_keys(),
            events_per_session: limits.event_keys_per_session,
            calls: BTreeMap::new(),
            sessions: BTreeMap::new(),
            ended: BTreeSet::new(),
            ended_of: BTreeMap::new(),
            outlived: Vec::new(),
            shares: Shares::default(),
        }
    }

    fn session(&mut self, session: SessionId, agent: &Principal) -> &mut OfSession {
        self.sessions.entry(session).or_insert_with(|| OfSession {
            agent: agent.clone(),
            calls: Vec::new(),
            events: VecDeque::new(),
            until: None,
        })
    }

    fn insert(&mut self, agent: &Principal, key: CallKey, kept: KeptAnswer) {
        if self.calls.insert(key, kept).is_none() {
            self.shares.add(agent, 1);
        }
    }

    fn remove(&mut self, agent: &Principal, key: &CallKey) {
        if self.calls.remove(key).is_some() {
            self.shares.remove(agent, 1);
        }
    }

    /// Remembers what a call led to, until its session is forgotten.
    pub(super) fn remember(
        &mut self,
        agent: &Principal,
        key: CallKey,
        session: SessionId,
        kept: KeptAnswer,
    ) {
        self.session(session, agent).calls.push(key.clone());
        self.insert(agent, key, kept);
    }

    /// Remembers which event of an open session a call led to, until newer ones take its place.
    pub(super) fn remember_event(
        &mut self,
        agent: &Principal,
        key: CallKey,
        session: SessionId,
        kept: KeptAnswer,
        durable: bool,
    ) {
        let most = self.events_per_session;
        let events = &mut self.session(session, agent).events;
        events.push_back(EventCall { key: key.clone(), durable });
        let oldest = if events.len() > most { events.pop_front() } else { None };
        if let Some(oldest) = oldest {
            self.remove(agent, &oldest.key);
            if oldest.durable {
                self.outlived.push(oldest.key);
            }
        }
        self.insert(agent, key, kept);
    }

    /// A session is over: its events never come again, its other calls may for a day.
    pub(super) fn ended(&mut self, session: SessionId, now: Boot) {
        let Some(known) = self.sessions.get_mut(&session).filter(|known| known.until.is_none())
        else {
            return;
        };
        let events = std::mem::take(&mut known.events);
        let agent = known.agent.clone();
        let journaled = events.iter().any(|event| event.durable) || !known.calls.is_empty();
        if journaled {
            let until = now.after_seconds(REMEMBERED_SECONDS);
            known.until = Some(until);
            self.ended.insert((until, session));
            self.ended_of.entry(account_of(&agent)).or_default().insert((until, session));
        } else {
            self.sessions.remove(&session);
        }
        for event in events {
            self.remove(&agent, &event.key);
        }
    }

    /// Forgets everything of a session that ended.
    fn forget(&mut self, until: Boot, session: SessionId) {
        self.ended.remove(&(until, session));
        let Some(known) = self.sessions.remove(&session) else { return };
        if let Some(ended) = self.ended_of.get_mut(&account_of(&known.agent)) {
            ended.remove(&(until, session));
            if ended.is_empty() {
                self.ended_of.remove(&account_of(&known.agent));
            }
        }
        for key in &known.calls {
            self.remove(&known.agent, key);
        }
    }

    // enforces: I29
    /// Makes room for one more call of this agent. What is over its time goes, then the agent's own
    /// oldest sessions that ended; never what is somebody else's. Says which sessions were forgotten.
    fn make_room(&mut self, agent: &Principal, now: Boot) -> (Vec<SessionId>, Result<(), Refusal>) {
        let mut gone = Vec::new();
        while let Some(&(until, session)) = self.ended.first().filter(|(until, _)| *until <= now) {
            self.forget(until, session);
            gone.push(session);
        }
        loop {
            let room = self.shares.admit(&self.bound, agent, 1);
            let oldest = self.ended_of.get(&account_of(agent)).and_then(|ended| ended.first());
            let Some(&(until, session)) = oldest.filter(|_| room.is_err()) else {
                return (gone, room);
            };
            self.forget(until, session);
            gone.push(session);
        }
    }
}

impl Core {
    /// What is known of an idempotency key.
    pub(crate) fn key_use(&mut self, agent: &Principal, key: &CallKey, body: &[u8; 32]) -> KeyUse {
        match self.keys.calls.get(key) {
            Some(kept) if kept.body == *body => return KeyUse::Same(kept.clone()),
            Some(_) => return KeyUse::Other,
            None => {}
        }
        let (gone, room) = self.keys.make_room(agent, self.now.boot);
        for session in gone {
            self.note(Note::ForgetCalls { session: session.to_string() });
        }
        room.map_or_else(KeyUse::Full, |()| KeyUse::New)
    }

    // enforces: I11
    /// Remembers which event of an open session a call led to, for a while. If the event left a record,
    /// so does the call, in the same unit: a repeat after a crash finds both or neither.
    pub(crate) fn keep_event(
        &mut self,
        agent: &Principal,
        key: CallKey,
        session: SessionId,
        kept: KeptAnswer,
    ) {
        let durable = self.writer.is_some() && !self.unit.entries.is_empty();
        if durable {
            self.note(kept_call(&key, session, &kept));
            for (agent, path, key) in std::mem::take(&mut self.keys.outlived) {
                self.note(Note::ForgetCall { agent: agent.to_string(), path, key });
            }
        }
        self.keys.remember_event(agent, key, session, kept, durable);
    }

    /// Remembers what a call led to, until a day after its session.
    pub(crate) fn keep_call(
        &mut self,
        agent: &Principal,
        key: CallKey,
        session: SessionId,
        kept: KeptAnswer,
    ) {
        if self.writer.is_some() {
            self.note(kept_call(&key, session, &kept));
        }
        self.keys.remember(agent, key, session, kept);
        if !self.agents.has(session) {
            // The call that ended its session.
            self.keys.ended(session, self.now.boot);
        }
    }
}

fn kept_call(key: &CallKey, session: SessionId, kept: &KeptAnswer) -> Note {
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

#[cfg(test)]
mod tests {
    use super::*;
    use aaep_engine::Role;

    // covers: I29, I22
    #[test]
    fn a_full_share_costs_its_own_principal_its_oldest_ended_calls_and_nobody_else_any() {
        let limits = Limits { idempotency_keys_per_principal: 3, ..Limits::default() };
        let mut keys = Keys::new(&limits);
        let (eve, ann) =
            (Principal::new("eve", Role::Agent, "eve"), Principal::new("ann", Role::Agent, "ann"));
        let key = |agent: &Principal, number: u128| {
            (agent.name.clone(), "agent/sessions".to_owned(), number.to_string())
        };
        let kept = || KeptAnswer { body: [0; 32], status: 201, answer: String::new() };
        let call = |keys: &mut Keys, agent: &Principal, number: u128, now: u64| {
            let (gone, room) = keys.make_room(agent, Boot(now));
            room.map(|()| {
                keys.remember(agent, key(agent, number), SessionId::from_bits(number), kept())
            })
            .map(|()| gone)
        };
        call(&mut keys, &ann, 1, 0).unwrap();
        keys.ended(SessionId::from_bits(1), Boot(0));
        for number in 11..14 {
            call(&mut keys, &eve, number, 1).unwrap();
        }
        let full = call(&mut keys, &eve, 14, 2).unwrap_err();
        assert!(full.text.contains("limits.idempotency_keys_per_principal"), "{full}");
        keys.ended(SessionId::from_bits(12), Boot(3));
        keys.ended(SessionId::from_bits(11), Boot(4));
        assert_eq!(call(&mut keys, &eve, 14, 5).unwrap(), [SessionId::from_bits(12)]);
        assert_eq!(call(&mut keys, &eve, 15, 6).unwrap(), [SessionId::from_bits(11)]);
        assert!(call(&mut keys, &eve, 16, 7).is_err());
        assert!(keys.calls.contains_key(&key(&ann, 1)), "it is another's");
        // Everybody's are forgotten after a day.
        let day = Boot(0).after_seconds(REMEMBERED_SECONDS);
        assert_eq!(call(&mut keys, &ann, 2, day.0).unwrap(), [SessionId::from_bits(1)]);
        assert_eq!(keys.shares.of_principal(&ann), 1);
    }
}
