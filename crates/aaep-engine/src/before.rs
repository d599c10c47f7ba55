//! What was said before a restart. What nobody may have heard is said again, with the same id and
//! the same bytes (I18, I11, I5); the rest is remembered for those who come back (§8.7, D28).

use aaep_types::json::{Members, Raw};
use aaep_types::{Event, EventId, SessionId, Timestamp};
use std::sync::Arc;

use crate::engine::Engine;
use crate::ids::{Key, event_number};
use crate::io::{Emitted, Output};
use crate::record::Said;
use crate::request::Status;
use crate::rules::Rules;

/// An event of the time before.
#[derive(Debug)]
pub(crate) struct Before {
    record: u64,
    key: Key,
    session: SessionId,
    user: Arc<str>,
    /// The request that its record is about.
    about: Option<u128>,
    /// Whether it is the event that asks.
    asks: bool,
    json: Arc<str>,
}

impl Before {
    fn emitted(&self) -> Option<Emitted> {
        let event = Event::parse(self.json.as_bytes()).ok()?;
        let envelope = event.envelope();
        let resolves_event = event.extensions().get("outcome").and_then(request_named);
        Some(Emitted {
            session: self.session,
            user: self.user.clone(),
            number: envelope.sequence_number?.get(),
            event: event_number(&envelope.event_id)?,
            kind: event.kind(),
            urgency: event.urgency(),
            about: resolves_event.and(self.about),
            resolves_event,
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
        (about, asks): (Option<u128>, bool),
        json: Arc<str>,
    ) {
        let Some(session) = self.sessions.get(&key) else { return };
        let (session, user) = (session.id(), session.agent.user.clone());
        self.before.push_back(Before { record, key, session, user, about, asks, json });
    }

    /// What a record says that its session said.
    pub(crate) fn replay_said(&mut self, key: Key, record: u64, about: Option<u128>, said: Said) {
        if let Some(session) = self.sessions.get_mut(&key) {
            session.next_number = session.next_number.max(said.next_number);
            let stamp = Timestamp::from_millis(said.stamp.div_euclid(1000));
            session.last_stamp = stamp.unwrap_or(session.last_stamp);
        }
        for json in said.events {
            self.replay_event(key, record, (about, false), json);
        }
        self.replay_told(said.told);
    }

    /// What was surely heard is only remembered, as long as its session lives.
    fn replay_told(&mut self, told: u64) {
        while let Some(heard) = self.before.pop_front_if(|before| before.record <= told) {
            let Some(session) = self.sessions.get_mut(&heard.key) else { continue };
            session.before.push(heard);
            // The start stays, whatever else has to go.
            if session.before.len() > self.limits.recent_events.max(1) {
                session.before.remove(1);
            }
        }
    }

    // enforces: I18, I11, I5
    /// Says again what may not have been heard; a question only if it is still open.
    pub(crate) fn say_again(&mut self) {
        let before = std::mem::take(&mut self.before);
        for (before, emitted) in before.iter().filter_map(|b| Some((b, b.emitted()?))) {
            let open = |number: u128| {
                self.requests.get(&number).is_some_and(|request| {
                    request.status == Status::Pending && request.event_number == emitted.event
                })
            };
            if R::SAYS_AGAIN && (!before.asks || before.about.is_some_and(open)) {
                self.lanes.push(before.key, before.record, Output::Event(emitted));
            }
        }
    }

    /// What the sessions that still live said before a restart, as far as it is on record: for those
    /// who come back and for newcomers (§8.7, D28). To be taken once, before anything else is done.
    pub fn reminders(&mut self) -> Vec<Emitted> {
        let mut events = Vec::new();
        let mut sessions: Vec<_> = self.sessions.iter_mut().collect();
        sessions.sort_unstable_by_key(|session| session.key);
        for session in sessions {
            let before = std::mem::take(&mut session.before);
            events.extend(before.iter().filter_map(Before::emitted));
        }
        events
    }
}
