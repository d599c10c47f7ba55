//! What was said before a restart. What nobody may have heard is said again, with the same id and
//! the same bytes (I18, I11, I5); the rest is remembered for those who come back (§8.7, D28).

use aaep_types::json::{Members, Raw};
use aaep_types::{Event, EventId, EventKind, SessionId, Timestamp, Urgency};
use std::sync::Arc;

use crate::engine::Engine;
use crate::ids::{Key, event_number};
use crate::io::{Emitted, Output};
use crate::principal::Principal;
use crate::record::RecordedEvents;
use crate::request::Status;
use crate::rules::{Check, Rules};

/// An event of the time before.
#[derive(Debug)]
pub(crate) struct Before {
    record: u64,
    key: Key,
    session: SessionId,
    user: Arc<str>,
    agent: Arc<str>,
    /// The request that its record is about.
    about: Option<u128>,
    /// What is known of the event that asks, so that it need not be read: there may be a million.
    asks: Option<Asks>,
    json: Arc<str>,
}

/// An event that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) event: u128,
    pub(crate) kind: EventKind,
    /// Its place in the session.
    pub(crate) number: u64,
}

impl Before {
    fn emitted(&self) -> Option<Emitted> {
        if let Some(Asks { event, kind, number }) = self.asks {
            return Some(Emitted {
                session: self.session,
                user: self.user.clone(),
                agent: self.agent.clone(),
                number,
                event,
                kind: Some(kind),
                urgency: Urgency::Critical,
                about: None,
                resolves_event: None,
                leaves: None,
                json: self.json.clone(),
            });
        }
        let event = Event::parse(self.json.as_bytes()).ok()?;
        let envelope = event.envelope();
        let resolves_event = event.extensions().get("outcome").and_then(request_named);
        Some(Emitted {
            session: self.session,
            user: self.user.clone(),
            agent: self.agent.clone(),
            number: envelope.sequence_number?.get(),
            event: event_number(&envelope.event_id)?,
            kind: event.kind(),
            urgency: event.urgency(),
            about: resolves_event.and(self.about),
            resolves_event,
            leaves: None,
            json: self.json.clone(),
        })
    }
}

/// The event that asked, by the outcome extension.
fn request_named(outcome: &str) -> Option<u128> {
    let members = Members::whole(outcome, 8).ok().flatten()?;
    let Some(Raw::String(text)) = members.find("request_event_id") else { return None };
    event_number(&EventId::parse(&text.decode()).ok()?)
}

impl<R: Rules> Engine<R> {
    /// Something that a session said because of a record.
    pub(crate) fn replay_event(
        &mut self,
        key: Key,
        record: u64,
        (about, asks): (Option<u128>, Option<Asks>),
        json: Arc<str>,
    ) {
        let Some(session) = self.sessions.get(&key) else { return };
        let Principal { user, name: agent, .. } = session.agent.clone();
        let session = session.id();
        self.before.push_back(Before { record, key, session, user, agent, about, asks, json });
    }

    /// What a record says that its session said.
    pub(crate) fn replay_said(
        &mut self,
        key: Key,
        record: u64,
        about: Option<u128>,
        said: RecordedEvents,
    ) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.next_number = session.next_number.max(said.next_number);
            let stamp = Timestamp::from_millis(said.stamp.div_euclid(1000));
            session.last_stamp = stamp.unwrap_or(session.last_stamp);
        }
        for json in said.events {
            self.replay_event(key, record, (about, None), json);
        }
        self.replay_told(said.told);
    }

    /// What was surely heard is only remembered, as long as its session lives.
    fn replay_told(&mut self, told: u64) {
        while let Some(heard) = self.before.pop_front_if(|before| before.record <= told) {
            let Some(session) = self.sessions.get_mut(&heard.key) else { continue };
            session.before.push(heard);
            // The start stays, and what waits for an answer, whatever else has to go.
            if session.before.len() > self.limits.recent_events.max(1) {
                let requests = &self.requests;
                let waits = |before: &Before| {
                    let about = before.about.filter(|_| before.asks.is_some());
                    let request = about.and_then(|number| requests.get(&number));
                    request.is_some_and(|request| request.status == Status::Pending)
                };
                let spare = session.before.iter().skip(1).position(|before| !waits(before));
                spare.map(|at| session.before.remove(at + 1));
            }
        }
    }

    // enforces: I18, I11, I5
    /// Says again what may not have been heard; a question only if it is still open.
    pub(crate) fn say_again(&mut self) {
        let before = std::mem::take(&mut self.before);
        for (before, emitted) in before.iter().filter_map(|b| Some((b, b.emitted()?))) {
            if R::keeps(Check::SaysAgain) && !self.is_settled(before, &emitted) {
                self.lanes.push(before.key, before.record, Output::Event(emitted));
            }
        }
    }

    /// Whether an event asks something that waits no longer.
    fn is_settled(&self, before: &Before, emitted: &Emitted) -> bool {
        let request = before.about.and_then(|number| self.requests.get(&number));
        let open = request.is_some_and(|request| {
            request.status == Status::Pending && request.event_number == emitted.event
        });
        before.asks.is_some() && !open
    }

    /// What the sessions that still live said before a restart, as far as it is on record, in the
    /// order of the records: for those who come back and for newcomers (§8.7, D28). Nobody is asked
    /// again what is settled. To be taken once, before anything else is done.
    pub fn reminders(&mut self) -> impl Iterator<Item = Emitted> {
        let mut said: Vec<Before> = Vec::new();
        for session in self.sessions.iter_mut() {
            said.append(&mut session.before);
        }
        said.sort_by_key(|before| before.record);
        said.into_iter().filter_map(|before| {
            let emitted = before.emitted()?;
            (!self.is_settled(&before, &emitted)).then_some(emitted)
        })
    }
}
