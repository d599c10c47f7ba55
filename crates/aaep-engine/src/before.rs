//! What was said before a restart. What nobody may have heard is said again, with the same id and
//! the same bytes (I18, I11, I5); the rest is remembered for those who come back (§8.7, D28).

use aaep_shaping::ShapeInfo;
use aaep_types::{Event, EventKind, SessionId, Timestamp, Urgency, recorded};
use std::collections::BTreeMap;
use std::sync::Arc;

use crate::engine::Engine;
use crate::ids::{EventNumber, RequestId, SessionKey, event_number};
use crate::io::{Emitted, Output};
use crate::principal::Principal;
use crate::record::RecordedEvents;
use crate::request::Status;
use crate::rules::Rules;

/// An event of the time before.
#[derive(Debug)]
pub(crate) struct Before {
    record: u64,
    key: SessionKey,
    session: SessionId,
    user: Arc<str>,
    agent: Arc<str>,
    /// The request that its record is about.
    about: Option<RequestId>,
    /// What is known of the event that asks, so that it need not be read: there may be a million.
    asks: Option<Asks>,
    json: Arc<str>,
}

/// An event that asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    pub(crate) event: EventNumber,
    pub(crate) kind: EventKind,
    /// Its place in the session.
    pub(crate) number: u64,
}

/// What a start remembers of the time before, for those who come back; see [`Engine::reminders`].
#[derive(Debug)]
pub enum Reminder {
    /// This was said.
    Emitted(Box<Emitted>),
    /// Here something was said that is not remembered: to one user, or to anybody.
    Gap {
        /// To whom; `None` if nobody knows.
        user: Option<Arc<str>>,
    },
}

/// The last record of each user, and of anybody, whose events are not remembered.
#[derive(Debug, Default)]
pub(crate) struct Gaps {
    users: BTreeMap<Arc<str>, u64>,
    anybody: Option<u64>,
}

impl Gaps {
    fn of_user(&mut self, user: &Arc<str>, record: u64) {
        let last = self.users.entry(user.clone()).or_default();
        *last = record.max(*last);
    }

    /// A record was left out; whose it was is not known.
    pub(crate) fn of_anybody(&mut self, record: u64) {
        self.anybody = self.anybody.max(Some(record));
    }

    /// Each gap, by the record.
    fn into_places(self) -> impl Iterator<Item = (u64, Reminder)> {
        let users = self.users.into_iter().map(|(user, record)| (record, Some(user)));
        let anybody = self.anybody.into_iter().map(|record| (record, None));
        users.chain(anybody).map(|(record, user)| (record, Reminder::Gap { user }))
    }
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
                shape: Some(Box::new(ShapeInfo::of_question(None))),
                json: self.json.clone(),
            });
        }
        let event = Event::parse(self.json.as_bytes()).ok()?;
        let envelope = event.envelope();
        let resolves_event = recorded::resolved_event(&event).and_then(|id| event_number(&id));
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
            shape: Some(Box::new(ShapeInfo::of(&event))),
            json: self.json.clone(),
        })
    }
}

impl<R: Rules> Engine<R> {
    /// Something that a session said because of a record.
    pub(crate) fn replay_event(
        &mut self,
        key: SessionKey,
        record: u64,
        (about, asks): (Option<RequestId>, Option<Asks>),
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
        key: SessionKey,
        record: u64,
        about: Option<RequestId>,
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
            let Some(session) = self.sessions.get_mut(&heard.key) else {
                self.gaps.of_user(&heard.user, heard.record);
                continue;
            };
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
                if let Some(at) = spare {
                    let forgotten = session.before.remove(at + 1);
                    self.gaps.of_user(&forgotten.user, forgotten.record);
                }
            }
        }
    }

    /// A session ended: nobody needs to be told what it said, unless they come back and were told that
    /// everything follows.
    pub(crate) fn replay_forgets(&mut self, key: SessionKey) {
        if let Some(last) = self.sessions.get(&key).and_then(|session| session.before.last()) {
            self.gaps.of_user(&last.user, last.record);
        }
    }

    // enforces: I18, I11, I5
    /// Says again what may not have been heard; a question only if it is still open.
    pub(crate) fn say_again(&mut self) {
        let before = std::mem::take(&mut self.before);
        for (before, emitted) in before.iter().filter_map(|b| Some((b, b.emitted()?))) {
            if R::says_again(before.asks.is_some(), self.is_open(before, &emitted)) {
                self.durability.push(before.key, before.record, Output::Event(emitted));
            }
        }
    }

    /// Whether an event asks something that still waits.
    fn is_open(&self, before: &Before, emitted: &Emitted) -> bool {
        let request = before.about.and_then(|number| self.requests.get(&number));
        request.is_some_and(|request| {
            request.status == Status::Pending && request.event_number == emitted.event
        })
    }

    // enforces: I32
    /// What the sessions that still live said before a restart, as far as it is on record, in the
    /// order of the records: for those who come back and for newcomers (§8.7, D28). Nobody is asked
    /// again what is settled. What is not remembered, such as the end of a session, leaves a gap:
    /// a subscriber that left off before it cannot be told that everything follows. To be taken once, before
    /// anything else is done.
    pub fn reminders(&mut self) -> impl Iterator<Item = Reminder> + use<'_, R> {
        let count = self.sessions.iter().map(|session| session.before.len()).sum();
        let mut said: Vec<Before> = Vec::with_capacity(count);
        for session in self.sessions.iter_mut() {
            said.append(&mut session.before);
        }
        said.sort_by_key(|before| before.record);
        let mut gaps: Vec<(u64, Reminder)> = std::mem::take(&mut self.gaps).into_places().collect();
        gaps.sort_by_key(|(record, _)| *record);
        let engine = &*self;
        // Made one by one as they are taken: there may be a million.
        let mut said =
            said.into_iter().filter_map(move |before| engine.reminder(before)).peekable();
        let mut gaps = gaps.into_iter().peekable();
        std::iter::from_fn(move || {
            let gap_first = match (said.peek(), gaps.peek()) {
                (Some((said, _)), Some((gap, _))) => gap < said,
                (said, _) => said.is_none(),
            };
            let (_, reminder) = if gap_first { gaps.next()? } else { said.next()? };
            Some(reminder)
        })
    }

    fn reminder(&self, before: Before) -> Option<(u64, Reminder)> {
        let emitted = before.emitted()?;
        let open = before.asks.is_none() || self.is_open(&before, &emitted);
        open.then(|| (before.record, Reminder::Emitted(Box::new(emitted))))
    }
}
