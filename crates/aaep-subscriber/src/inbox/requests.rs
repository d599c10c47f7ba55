//! The requests that wait for the user, and those that no longer do (C25, D30, D32).

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use super::backlog::BacklogIndex;
use super::bounds::Bounds;
use super::reply::Answer;
use super::{Connection, Ticket};
use crate::request::{Asks, Request, RequestOutcome};

/// How many superseded requests are kept. What continues one follows it at once.
const MAX_SUPERSEDED: usize = 8;

/// The user's own answer, on its way.
#[derive(Debug)]
pub(super) struct Own {
    pub(super) answer: Answer,
    /// Whether it may have left us, and whether it may have before the try that is under way.
    pub(super) attempted: bool,
    pub(super) attempted_before: bool,
    /// It is being sent.
    pub(super) in_flight: Option<Ticket>,
    /// It could not be sent, and is tried again at this moment.
    pub(super) again_at: Option<u64>,
}

impl Own {
    /// An answer that is to be sent at this moment.
    pub(super) fn new(answer: Answer, now: u64) -> Self {
        let (attempted, attempted_before) = (false, false);
        Self { answer, attempted, attempted_before, in_flight: None, again_at: Some(now) }
    }
}

/// A request that waits.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) request: Arc<Request>,
    pub(super) connection: Connection,
    pub(super) allows: (bool, bool),
    /// When it ends by the producer's clock, in milliseconds of Unix time.
    pub(super) server_deadline: Option<i64>,
    /// Where [`crate::Notification::Asked`] was put.
    pub(super) place: BacklogIndex,
    /// Its place in the session.
    pub(super) sequence: Option<u64>,
    pub(super) own: Option<Own>,
    /// Unless it is asked again by then, it does not wait any more.
    pub(super) confirm_by: Option<u64>,
    /// It was in doubt when the connection broke.
    pub(super) doubted: bool,
}

/// How sure we are that a request does not wait any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sure {
    /// The producer said so.
    Told,
    /// It follows from the clock, or from silence.
    Inferred,
}

#[derive(Debug)]
struct Settled {
    number: u32,
    sure: Sure,
}

/// The event of a request: by which connection it came, its session and its id. No session can hide
/// or settle another's.
pub(super) type EventKey = (Connection, Arc<str>, Arc<str>);

/// All requests.
#[derive(Debug, Default)]
pub(super) struct Requests {
    open: BTreeMap<u32, Open>,
    by_event: BTreeMap<EventKey, u32>,
    settled: BTreeMap<EventKey, Settled>,
    order: VecDeque<EventKey>,
    /// Those that were superseded last, to compare with what continues them.
    superseded: VecDeque<Arc<Request>>,
    bytes: usize,
    last_number: u32,
}

/// What is known of a request's event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestLookup {
    Open(u32),
    Settled(u32, Sure),
    No,
}

impl Requests {
    pub(super) fn known(
        &self,
        connection: Connection,
        (session_id, event_id): (&str, &str),
        token: &str,
    ) -> RequestLookup {
        let key: EventKey = (connection, session_id.into(), event_id.into());
        if let Some(number) = self.by_event.get(&key) {
            return RequestLookup::Open(*number);
        }
        // The same token under another id is the same request.
        let same = |open: &&Open| {
            open.connection == connection
                && &*open.request.session_id == session_id
                && open.request.reply_token.as_str() == token
        };
        if let Some(open) = self.open.values().find(same) {
            return RequestLookup::Open(open.request.number);
        }
        match self.settled.get(&key) {
            Some(settled) => RequestLookup::Settled(settled.number, settled.sure),
            None => RequestLookup::No,
        }
    }

    /// The number of the request that this event asked, open or not.
    pub(super) fn number_of(
        &self,
        connection: Connection,
        (session_id, event_id): (&str, &str),
    ) -> Option<u32> {
        let key: EventKey = (connection, session_id.into(), event_id.into());
        let open = self.by_event.get(&key).copied();
        open.or_else(|| self.settled.get(&key).map(|settled| settled.number))
    }

    pub(super) fn has_room(&self, bytes: usize, bounds: &Bounds) -> bool {
        self.open.len() < bounds.open_requests
            && self.bytes.saturating_add(bytes) <= bounds.open_request_bytes
    }

    pub(super) fn next_number(&mut self) -> u32 {
        self.last_number = self.last_number.checked_add(1).unwrap_or(1);
        self.last_number
    }

    pub(super) fn insert(&mut self, open: Open) {
        let key = key_of(&open);
        self.forget_settled(&key);
        self.bytes += size(&open.request);
        self.by_event.insert(key, open.request.number);
        self.open.insert(open.request.number, open);
    }

    /// It no longer waits; it is remembered, so that it is not asked again.
    pub(super) fn remove(&mut self, number: u32, sure: Sure, bounds: &Bounds) -> Option<Open> {
        let open = self.open.remove(&number)?;
        self.bytes -= size(&open.request);
        let key = key_of(&open);
        self.by_event.remove(&key);
        self.settled.insert(key.clone(), Settled { number, sure });
        self.order.push_back(key);
        while self.order.len() > bounds.settled_requests
            && let Some(oldest) = self.order.pop_front()
        {
            self.settled.remove(&oldest);
        }
        Some(open)
    }

    pub(super) fn note_superseded(&mut self, request: Arc<Request>) {
        if self.superseded.len() >= MAX_SUPERSEDED {
            self.superseded.pop_front();
        }
        self.superseded.push_back(request);
    }

    pub(super) fn superseded(&self, number: u32) -> Option<&Request> {
        let mut latest = self.superseded.iter().rev();
        latest.find(|request| request.number == number).map(|request| &**request)
    }

    fn forget_settled(&mut self, key: &EventKey) {
        if self.settled.remove(key).is_some() {
            self.order.retain(|other| other != key);
        }
    }

    pub(super) fn get(&self, number: u32) -> Option<&Open> {
        self.open.get(&number)
    }

    pub(super) fn get_mut(&mut self, number: u32) -> Option<&mut Open> {
        self.open.get_mut(&number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Open> {
        self.open.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Open> {
        self.open.values_mut()
    }

    /// Those of one session.
    pub(super) fn of_session(&self, connection: Connection, session_id: &str) -> Vec<u32> {
        let theirs =
            |open: &&Open| open.connection == connection && &*open.request.session_id == session_id;
        self.open.values().filter(theirs).map(|open| open.request.number).collect()
    }

    /// The request whose answer has this ticket.
    pub(super) fn by_ticket(&mut self, ticket: Ticket) -> Option<&mut Open> {
        self.open
            .values_mut()
            .find(|open| open.own.as_ref().is_some_and(|own| own.in_flight == Some(ticket)))
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.open.len() + self.settled.len().max(self.order.len())
    }
}

fn key_of(open: &Open) -> EventKey {
    (open.connection, open.request.session_id.clone(), open.request.event_id.clone())
}

fn size(request: &Request) -> usize {
    // What is asked is there twice: as it came, and as it was read.
    request.json.len().saturating_mul(2)
}

impl Open {
    /// Whether the user's own answer may have been the one that counted.
    pub(super) fn own(&self) -> Option<&Answer> {
        self.own.as_ref().filter(|own| own.attempted).map(|own| &own.answer)
    }

    // enforces: C25, D30
    /// What became of it, by the word of our extension.
    pub(super) fn outcome_of(&self, word: &str) -> RequestOutcome {
        let consent = matches!(self.request.asks, Asks::Consent { .. });
        match (word, self.own()) {
            ("accepted", Some(own)) if consent && own.accepts() => RequestOutcome::Accepted,
            ("accepted", _) if consent => RequestOutcome::AcceptedElsewhere,
            ("accepted", Some(_)) => RequestOutcome::Answered,
            ("accepted", None) => RequestOutcome::AnsweredElsewhere,
            ("rejected", Some(own)) if own.rejects() => RequestOutcome::Rejected,
            ("rejected", _) => RequestOutcome::RejectedElsewhere,
            ("timed_out", _) => RequestOutcome::TimedOut,
            ("cancelled", _) => RequestOutcome::Cancelled,
            ("wrong_clock", _) => RequestOutcome::WrongClock,
            ("superseded", _) => RequestOutcome::Superseded,
            _ => RequestOutcome::Gone,
        }
    }

    /// What became of it when the session only says that it does something else now.
    pub(super) fn outcome_by_state(&self, to_state: &str, now: u64) -> RequestOutcome {
        let runs = to_state == "calling_tool";
        match (&self.request.asks, self.own()) {
            (Asks::Consent { .. }, Some(own)) if own.accepts() && runs => RequestOutcome::Accepted,
            (Asks::Consent { .. }, Some(own)) if own.rejects() && !runs => RequestOutcome::Rejected,
            (Asks::Consent { .. }, Some(own)) if own.rejects() => RequestOutcome::AcceptedElsewhere,
            (Asks::Answer { .. }, Some(_)) => RequestOutcome::Answered,
            _ if self.request.deadline_ms <= now => RequestOutcome::TimedOut,
            _ => RequestOutcome::Gone,
        }
    }
}
