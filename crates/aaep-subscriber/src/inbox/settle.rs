//! Requests on their way: asked once, answered once, settled as what they are.

use std::sync::Arc;
use std::time::Duration;

use aaep_types::presence::Pin;
use aaep_types::{LenientEvent, SessionId};

use super::backlog::Rank;
use super::reply::{self, Answer, Head, InboxError};
use super::requests::{Open, Own, RequestLookup, Sure};
use super::session::Early;
use super::{Connection, Inbox, Purpose, Ticket, asked};
use crate::notification::{Agent, Notification};
use crate::request::{Asks, Request, RequestHandle, RequestOutcome};

/// By how much a deadline has to change before it counts as another one.
const SAME_MS: u64 = 250;

impl Inbox {
    // enforces: T21, C25, S10
    /// Something is asked. The same request may come again, and is asked once.
    pub(super) fn asked(&mut self, connection: Connection, heard: &LenientEvent<'_>, now: u64) {
        let Some(asked) = asked::read(heard, self.bounds.timeout_seconds) else {
            return self.unanswerable(connection, heard, "A request has no reply token.", now);
        };
        let known = self.requests.known(
            connection,
            (heard.session_id(), heard.event_id()),
            asked.token.as_str(),
        );
        let number = match known {
            RequestLookup::Open(number) => {
                self.requests
                    .get_mut(number)
                    .into_iter()
                    .for_each(|open| (open.confirm_by, open.doubted) = (None, false));
                return;
            }
            RequestLookup::Settled(_, Sure::Told) => return,
            // It waits after all, and its session goes on.
            RequestLookup::Settled(number, Sure::Inferred) => {
                self.session(connection, heard, now);
                number
            }
            RequestLookup::No => {
                if !self.requests.has_room(heard.as_json().len() * 2, &self.bounds) {
                    let why = "Too many requests wait; this one cannot be answered from here.";
                    return self.unanswerable(connection, heard, why, now);
                }
                self.is_new(connection, heard);
                self.take_turn(connection, heard, true, || Early { json: "".into() }, now);
                self.requests.next_number()
            }
        };
        let agent = self.agent_of(connection, heard);
        let continues = self.continues(connection, heard.session_id(), &agent, &asked);
        let timeout_ms = asked.timeout_seconds * 1000;
        let server_deadline = heard
            .timestamp()
            .map(|at| at.as_millis().saturating_add(i64::try_from(timeout_ms).unwrap_or(i64::MAX)));
        let latest = now.saturating_add(timeout_ms);
        // enforces: S10
        // Who asks now waits now: a stamp by which the time is over already is not believed.
        let deadline_ms = self.by_our_clock(connection, server_deadline, latest);
        let (server_deadline, deadline_ms) = match deadline_ms > now {
            true => (server_deadline, deadline_ms),
            false => (None, latest),
        };
        let request = Arc::new(Request {
            id: number.into(),
            number,
            agent,
            event_id: heard.event_id().into(),
            session_id: heard.session_id().into(),
            reply_token: asked.token,
            asks: asked.asks,
            account: asked.account,
            agent_says: asked.agent_says,
            timeout_seconds: asked.timeout_seconds,
            deadline_ms,
            continues,
            language: language(heard),
            json: heard.as_json().into(),
        });
        let place = self.tell_critical(Notification::Asked(request.clone()));
        self.requests.insert(Open {
            request,
            connection,
            allows: asked.allows,
            server_deadline,
            place,
            sequence: heard.sequence_number(),
            own: None,
            confirm_by: None,
            doubted: false,
        });
        self.release(connection, heard.session_id(), now);
    }

    // enforces: I31, S10
    /// The number of the request that this one asks again with more time. It takes its place only if
    /// it asks the same: another action is another question, however it calls itself. No session
    /// supersedes another's.
    fn continues(
        &mut self,
        connection: Connection,
        session_id: &str,
        agent: &Agent,
        asked: &asked::Asked,
    ) -> Option<u32> {
        let event = asked.supersedes.as_deref()?;
        let number = self.requests.number_of(connection, (session_id, event))?;
        let open = self.requests.get(number).map(|open| &*open.request);
        let old = open.or_else(|| self.requests.superseded(number))?;
        let same = old.asks == asked.asks && old.account == asked.account && old.agent == *agent;
        self.settle(
            number,
            if same { RequestOutcome::Superseded } else { RequestOutcome::Gone },
            Sure::Told,
        );
        same.then_some(number)
    }

    /// A request that cannot be answered from here is heard all the same.
    fn unanswerable(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        why: &str,
        now: u64,
    ) {
        if self.is_new(connection, heard) {
            self.note(connection, "S10", why.to_owned(), now);
            self.take_turn(connection, heard, true, || Early { json: "".into() }, now);
            let agent = self.agent_of(connection, heard);
            self.plain(connection, heard, agent, Rank::Milestone, now);
            self.release(connection, heard.session_id(), now);
        }
    }

    /// A moment of the hub's clock by ours, at the latest this one.
    fn by_our_clock(&self, connection: Connection, server: Option<i64>, latest: u64) -> u64 {
        let offset = self.link(connection).and_then(|link| link.clock.offset());
        let ours = server.zip(offset).map(|(server, offset)| server.saturating_sub(offset));
        ours.map_or(latest, |ours| u64::try_from(ours).unwrap_or(0)).min(latest)
    }

    /// The hub's clock is known better than before.
    pub(super) fn correct_deadlines(&mut self, connection: Connection, now: u64) {
        let theirs = self.requests.iter().filter(|open| open.connection == connection);
        let corrected: Vec<(u32, u64)> = theirs
            .map(|open| {
                let latest = now.saturating_add(open.request.timeout_seconds * 1000);
                let ms = self.by_our_clock(connection, open.server_deadline, latest);
                (open.request.number, ms)
            })
            .collect();
        for (number, deadline_ms) in corrected {
            if let Some(open) = self.requests.get_mut(number)
                && open.server_deadline.is_some()
                && deadline_ms > now
                && open.request.deadline_ms.abs_diff(deadline_ms) > SAME_MS
            {
                Arc::make_mut(&mut open.request).deadline_ms = deadline_ms;
            }
        }
    }

    /// A request does not wait any more.
    fn settle(&mut self, number: u32, outcome: RequestOutcome, sure: Sure) {
        let Some(open) = self.requests.remove(number, sure, &self.bounds) else { return };
        if outcome == RequestOutcome::Superseded {
            self.requests.note_superseded(open.request.clone());
        }
        if let Some(ticket) = open.own.as_ref().and_then(|own| own.in_flight) {
            self.sends.retain(|send| send.ticket != ticket);
        }
        // Who has not heard the question need not hear it any more.
        let announced = !self.critical.remove(open.place);
        self.tell_critical(Notification::Settled { request: open.request, outcome, announced });
    }

    // enforces: D30
    /// The producer says what became of a request; false if that is not told by this.
    pub(super) fn resolved(
        &mut self,
        connection: Connection,
        request: (&str, &str),
        word: &str,
    ) -> bool {
        match self.requests.known(connection, request, "") {
            RequestLookup::Open(number) => {
                if let Some(outcome) = self.requests.get(number).map(|open| open.outcome_of(word)) {
                    self.settle(number, outcome, Sure::Told);
                }
                true
            }
            // D41: told before, and now there is more to tell, in the event's own words.
            RequestLookup::Settled(_, Sure::Told) => word != "expired",
            RequestLookup::Settled(_, Sure::Inferred) => word == "timed_out",
            RequestLookup::No => false,
        }
    }

    // enforces: D30
    /// A session leaves `awaiting_input`, and nobody says which request is resolved: it is certain
    /// only if there is one.
    pub(super) fn left_waiting(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        now: u64,
    ) {
        let to_state = heard.text("to_state").unwrap_or_default();
        let leaves = heard.text("from_state").as_deref() == Some("awaiting_input");
        let tells = self.link(connection).is_none_or(|link| link.terms.outcome);
        if !leaves || to_state == "awaiting_input" || tells {
            return;
        }
        let open = self.requests.of_session(connection, heard.session_id());
        let [number] = open[..] else { return };
        let Some(open) = self.requests.get(number) else { return };
        // A state of before the request says nothing about it.
        let older = open.sequence.zip(heard.sequence_number());
        if older.is_some_and(|(request, state)| state < request) {
            return;
        }
        let outcome = open.outcome_by_state(&to_state, now);
        self.settle(number, outcome, Sure::Told);
    }

    // enforces: C25
    /// Whatever a session asks ends with it. If the user answered, and nobody tells what became of
    /// answers, it would be wrong to say that nothing did.
    pub(super) fn session_over(&mut self, connection: Connection, session_id: &str) {
        let tells = self.link(connection).is_none_or(|link| link.terms.outcome);
        for number in self.requests.of_session(connection, session_id) {
            let answered = self.requests.get(number).is_some_and(|open| open.own().is_some());
            let outcome =
                if answered && !tells { RequestOutcome::Gone } else { RequestOutcome::Cancelled };
            self.settle(number, outcome, Sure::Told);
        }
    }

    /// When something is to be done about a request.
    pub(super) fn due(&self, open: &Open) -> u64 {
        let attached = self.link(open.connection).is_some_and(|link| link.attached);
        let again = open.own.as_ref().and_then(|own| own.again_at).filter(|_| attached);
        [again, open.confirm_by].into_iter().flatten().fold(self.over_at(open), u64::min)
    }

    /// When a request is over by the clock. A hub that tells outcomes has the first word.
    fn over_at(&self, open: &Open) -> u64 {
        let told =
            self.link(open.connection).is_some_and(|link| link.attached && link.terms.outcome);
        let patience = if told { self.bounds.outcome_patience_ms } else { 0 };
        open.request.deadline_ms.saturating_add(patience)
    }

    /// Whatever is due by now.
    pub(super) fn pass_time(&mut self, now: u64) {
        let due: Vec<u32> = self
            .requests
            .iter()
            .filter(|open| self.due(open) <= now)
            .map(|open| open.request.number)
            .collect();
        for number in due {
            self.request_due(number, now);
        }
        for index in 0..self.links.len() {
            let link = &self.links[index];
            let due = |at: u64| at <= now;
            let sessions = link.sessions.iter();
            let waiting = sessions.filter(|(_, session)| session.order.deadline().is_some_and(due));
            let waiting: Vec<Arc<str>> = waiting.map(|(id, _)| id.clone()).collect();
            let connection = Connection(u32::try_from(index).unwrap_or(u32::MAX));
            for id in waiting {
                self.release(connection, &id, now);
            }
            self.forget_doubtful(connection, now);
        }
    }

    fn request_due(&mut self, number: u32, now: u64) {
        let Some(open) = self.requests.get(number) else { return };
        let attached = self.link(open.connection).is_some_and(|link| link.attached);
        let sent = open.own.as_ref().is_some_and(|own| own.attempted);
        if self.over_at(open) <= now {
            // An answer that left may have counted; nobody is there to say so.
            let outcome =
                if sent && !attached { RequestOutcome::Gone } else { RequestOutcome::TimedOut };
            return self.settle(number, outcome, Sure::Inferred);
        }
        if open.confirm_by.is_some_and(|by| by <= now) {
            return self.settle(number, RequestOutcome::Gone, Sure::Inferred);
        }
        if open.own.as_ref().is_some_and(|own| own.again_at.is_some_and(|at| at <= now)) {
            self.send_answer(number, now);
        }
    }

    /// Sends the user's answer, over the subscription that there is now.
    fn send_answer(&mut self, number: u32, now: u64) {
        let Some(open) = self.requests.get(number) else { return };
        let (connection, token) = (open.connection, open.request.reply_token);
        let Some(answer) = open.own.as_ref().map(|own| own.answer.clone()) else { return };
        let Some(head) = self.head(connection, now) else { return };
        let json = reply::write(&answer, &token, head);
        let ticket = self.send(connection, Purpose::Reply, json);
        let later = now.saturating_add(self.bounds.resend_ms);
        if let Some(own) = self.requests.get_mut(number).and_then(|open| open.own.as_mut()) {
            (own.in_flight, own.again_at) = (ticket, ticket.is_none().then_some(later));
        }
    }

    /// What every message of ours carries; `None` without a subscription.
    fn head(&self, connection: Connection, now: u64) -> Option<Head<'_>> {
        let subscription = self.link(connection)?.subscription()?;
        let stamp = self.stamp(connection, now);
        Some(Head { subscription, stamp, decided_by: self.settings.decided_by.as_deref() })
    }

    pub(super) fn sent(&mut self, ticket: Ticket) {
        if let Some(own) = self.requests.by_ticket(ticket).and_then(|open| open.own.as_mut()) {
            (own.in_flight, own.attempted) = (None, true);
        }
    }

    pub(super) fn not_sent(&mut self, ticket: Ticket, perhaps: bool, now: u64) {
        let later = now.saturating_add(self.bounds.resend_ms);
        if let Some(own) = self.requests.by_ticket(ticket).and_then(|open| open.own.as_mut()) {
            own.attempted = own.attempted_before || perhaps;
            (own.in_flight, own.again_at) = (None, Some(later));
        }
    }

    // enforces: C28, T21
    /// The user answers a request. If the hub is away, the answer is kept and sent as long as the
    /// request's time allows.
    pub fn answer(
        &mut self,
        request: RequestHandle,
        answer: Answer,
        now: u64,
    ) -> Result<(), InboxError> {
        let open = self.waits_for(request)?;
        let terms = self.link(open.connection).map(|link| link.terms).unwrap_or_default();
        let may = match open.request.asks {
            Asks::Consent { .. } => terms.confirm,
            Asks::Answer { .. } => terms.clarify,
        };
        if !may {
            return Err(InboxError::MayNotReply);
        }
        reply::check(&answer, &open.request.asks, open.allows)?;
        if let Some(open) = self.requests.get_mut(request.get()) {
            open.own = Some(Own::new(answer, now));
        }
        self.pass_time(now);
        Ok(())
    }

    /// The user needs more time for a request: this long from now, in whole seconds (D32).
    pub fn more_time(
        &mut self,
        request: RequestHandle,
        time: Duration,
        now: u64,
    ) -> Result<(), InboxError> {
        let open = self.waits_for(request)?;
        let (connection, token) = (open.connection, open.request.reply_token);
        let link = self.link(connection).filter(|link| link.attached);
        if !link.ok_or(InboxError::NotConnected)?.terms.timing {
            return Err(InboxError::NotOffered);
        }
        let head = self.head(connection, now).ok_or(InboxError::NotConnected)?;
        let seconds = time.as_secs().saturating_add(u64::from(time.subsec_nanos() > 0));
        let json = reply::more_time(&token, seconds, head);
        self.send(connection, Purpose::Reply, json).map(|_| ()).ok_or(InboxError::Busy)
    }

    /// The user types their PIN, so that a yes to this request counts. What becomes of it comes as
    /// [`Notification::Presence`].
    pub fn unlock(
        &mut self,
        request: RequestHandle,
        pin: &Pin<'_>,
        now: u64,
    ) -> Result<(), InboxError> {
        let connection = self.waits_for(request)?.connection;
        let attached = self.link(connection).is_some_and(|link| link.attached);
        let head =
            self.head(connection, now).filter(|_| attached).ok_or(InboxError::NotConnected)?;
        let json = reply::unlock(pin, head);
        self.send(connection, Purpose::Unlock, json).map(|_| ()).ok_or(InboxError::Busy)
    }

    /// Whether the user typed their PIN on the connection that a request came by, and it still counts.
    pub fn is_unlocked(&self, request: RequestHandle, now: u64) -> bool {
        let open = self.requests.get(request.get());
        let link = open.and_then(|open| self.link(open.connection)).filter(|link| link.attached);
        link.is_some_and(|link| now < link.unlocked_until)
    }

    /// The user stops the agent of a session.
    pub fn stop(&mut self, session_id: &str, now: u64) -> Result<(), InboxError> {
        let of_request = self.requests.iter().find(|open| &*open.request.session_id == session_id);
        let of_session = self.links.iter().position(|link| link.sessions.contains_key(session_id));
        let of_session = of_session.and_then(|index| u32::try_from(index).ok()).map(Connection);
        let connection = of_session.or(of_request.map(|open| open.connection));
        let connection = connection.ok_or(InboxError::NotWaiting)?;
        SessionId::parse(session_id).map_err(|_| InboxError::NotWaiting)?;
        let link = self.link(connection).filter(|link| link.attached);
        if !link.ok_or(InboxError::NotConnected)?.terms.control {
            return Err(InboxError::NotOffered);
        }
        let head = self.head(connection, now).ok_or(InboxError::NotConnected)?;
        let json = reply::stop(session_id, head);
        self.send(connection, Purpose::Reply, json).map(|_| ()).ok_or(InboxError::Busy)
    }

    /// A request that can still be answered.
    fn waits_for(&self, request: RequestHandle) -> Result<&Open, InboxError> {
        let open = self.requests.get(request.get()).ok_or(InboxError::NotWaiting)?;
        if open.own.is_some() {
            return Err(InboxError::AlreadyAnswered);
        }
        Ok(open)
    }
}

fn language(heard: &LenientEvent<'_>) -> Option<Arc<str>> {
    let hints = heard.object("localization_hints")?;
    let language = hints.text("primary_language")?;
    (language.len() <= 64).then(|| language.as_ref().into())
}
