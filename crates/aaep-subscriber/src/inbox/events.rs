//! The way of an event: read, told from its duplicates, put in order, told.

use std::sync::Arc;

use aaep_types::{EventKind, LenientEvent, Limits, Urgency};

use super::backlog::Rank;
use super::handshake::read_agent;
use super::order::Turn;
use super::session::{Early, Session};
use super::settings::cut;
use super::{Connection, Inbox, asked};
use crate::notification::{Agent, Notification, Silence};

/// How often it is noted that a producer sends more than was agreed on.
const VIOLATION_EVERY_MS: u64 = 10_000;

impl Inbox {
    pub(super) fn message(&mut self, connection: Connection, bytes: &[u8], now: u64) {
        match LenientEvent::parse_with(bytes, &self.limits()) {
            Ok(heard) => self.event(connection, &heard, now),
            Err(why) => {
                let text = std::str::from_utf8(bytes).unwrap_or_default();
                let short = bytes.len() <= self.bounds.message_bytes;
                if !short || !self.handshake(connection, text, now) {
                    self.unreadable(connection, &why.to_string(), now);
                }
            }
        }
    }

    fn limits(&self) -> Limits {
        Limits { max_bytes: self.bounds.message_bytes, ..Limits::default() }
    }

    // enforces: E6, E26, H25, V2
    fn event(&mut self, connection: Connection, heard: &LenientEvent<'_>, now: u64) {
        // enforces: D13
        let critical = heard.urgency() == Urgency::Critical;
        let Some(link) = self.link_mut(connection) else { return };
        link.note_place(heard.event_id());
        if let Some(session) = link.sessions.get_mut(heard.session_id()) {
            (session.confirm_by, session.doubted) = (None, false);
        }
        let better = heard.timestamp().is_some_and(|at| link.clock.stamped(at.as_millis(), now));
        if better {
            self.correct_deadlines(connection, now);
        }
        self.note_deviations(connection, heard, now);
        if !critical {
            self.note_rate(connection, now);
        }
        use EventKind::{AwaitingClarification, AwaitingConfirmation};
        if matches!(heard.kind(), Some(AwaitingConfirmation | AwaitingClarification)) {
            return self.asked(connection, heard, now);
        }
        // enforces: I32
        // A session that was believed to be over goes on after all, whatever was heard of it before.
        let goes_on = self.is_forgotten(connection, heard.session_id());
        if self.is_new(connection, heard) || goes_on {
            self.in_order(connection, heard, critical, now);
        }
    }

    /// Whether an event was not heard before.
    pub(super) fn is_new(&mut self, connection: Connection, heard: &LenientEvent<'_>) -> bool {
        let link = self.link_mut(connection);
        link.is_some_and(|link| link.heard.is_new(heard.session_id(), heard.event_id()))
    }

    /// Whether nothing is known of a session, not even that it ended.
    fn is_forgotten(&self, connection: Connection, session_id: &str) -> bool {
        self.link(connection).is_some_and(|link| {
            !link.sessions.contains_key(session_id) && !link.ended.knows(session_id, "")
        })
    }

    /// Tells an event when its turn has come.
    fn in_order(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        critical: bool,
        now: u64,
    ) {
        let early = || Early { json: heard.as_json().into() };
        match self.take_turn(connection, heard, critical, early, now) {
            Turn::Now => self.told(connection, heard, now),
            Turn::Late => {
                let text = "An event came after one with a higher number.".into();
                self.note(connection, "H24", text, now);
                self.told(connection, heard, now);
            }
            Turn::Waits => {}
        }
        self.release(connection, heard.session_id(), now);
    }

    /// Where an event stands in its session. What it takes to wait is only made if it has to.
    pub(super) fn take_turn(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        critical: bool,
        early: impl FnOnce() -> Early,
        now: u64,
    ) -> Turn {
        let bounds = self.bounds;
        let exact = |link: &super::Link, session: &Session| {
            link.terms.exact && !link.renegotiating && now >= session.joining_until
        };
        self.session(connection, heard, now);
        let Some(link) = self.link(connection) else { return Turn::Now };
        let Some(session) = link.sessions.get(heard.session_id()) else { return Turn::Now };
        let exact = exact(link, session);
        let number = heard.sequence_number();
        let link = self.link_mut(connection);
        let Some(session) = link.and_then(|link| link.sessions.get_mut(heard.session_id())) else {
            return Turn::Now;
        };
        if exact && !critical && session.order.would_wait(number) {
            session.order.wait(number, early(), now, &bounds);
            return Turn::Waits;
        }
        session.order.pass(number, exact, now, &bounds)
    }

    /// Tells what waited in a session and need not any more.
    pub(super) fn release(&mut self, connection: Connection, session_id: &str, now: u64) {
        let bounds = self.bounds;
        loop {
            let Some(link) = self.link_mut(connection) else { return };
            let Some(session) = link.sessions.get_mut(session_id) else { return };
            let agent = session.agent.clone();
            let Some(released) = session.order.release(now, &bounds) else { return };
            if released.missing > 0 {
                // enforces: I19
                let count = Some(released.missing).filter(|count| *count <= bounds.believable_hole);
                self.silences.add(agent, Silence::Missing, count, now, &bounds);
            }
            if let Some(early) = released.event
                && let Ok(heard) = LenientEvent::parse_with(early.json.as_bytes(), &self.limits())
            {
                self.told(connection, &heard, now);
            }
        }
    }

    /// The session of an event, made if there is none and it is not over.
    pub(super) fn session(&mut self, connection: Connection, heard: &LenientEvent<'_>, now: u64) {
        self.last_touch += 1;
        let (touch, chars) = (self.last_touch, self.bounds.kept_chars);
        let fallback = self.agent(connection);
        let Some(link) = self.link_mut(connection) else { return };
        if let Some(session) = link.sessions.get_mut(heard.session_id()) {
            session.touched = touch;
            return;
        }
        // enforces: I32
        if link.ended.knows(heard.session_id(), "") {
            return;
        }
        let producer = heard.object("producer");
        let agent = producer.and_then(|producer| read_agent(&producer, chars)).unwrap_or(fallback);
        let id: Arc<str> = heard.session_id().into();
        let joining = if now < link.joining_until { link.joining_until } else { 0 };
        let mut session = Session::new(agent, id.clone(), joining);
        session.touched = touch;
        link.sessions.insert(id, session);
        if link.sessions.len() > self.bounds.sessions {
            self.forget_a_session(connection, touch, now);
        }
    }

    // enforces: I32
    /// Sessions of which nothing was heard when it should have been are over.
    pub(super) fn forget_doubtful(&mut self, connection: Connection, now: u64) {
        let Some(link) = self.link(connection) else { return };
        let over = |session: &Session| session.confirm_by.is_some_and(|by| by <= now);
        let over = link.sessions.iter().filter(|(_, session)| over(session));
        let over = over.map(|(id, session)| (id.clone(), session.agent.clone()));
        for (session_id, agent) in over.collect::<Vec<_>>() {
            self.finish_session(connection, &session_id, now);
            if let Some(link) = self.link_mut(connection) {
                link.sessions.remove(&session_id);
            }
            self.tell(connection, Notification::Over { agent, session_id }, Rank::Milestone, now);
        }
    }

    /// Makes room: the session that was silent longest, one with an open request last.
    fn forget_a_session(&mut self, connection: Connection, newest: u64, now: u64) {
        let Some(link) = self.link(connection) else { return };
        let waits = |id: &str| {
            self.requests
                .iter()
                .any(|open| open.connection == connection && &*open.request.session_id == id)
        };
        let others = link.sessions.iter().filter(|(_, session)| session.touched != newest);
        let oldest = others.min_by_key(|(id, session)| (waits(id), session.touched));
        let Some(id) = oldest.map(|(id, _)| id.clone()) else { return };
        self.finish_session(connection, &id, now);
        if let Some(link) = self.link_mut(connection) {
            link.sessions.remove(&id);
        }
    }

    /// Who an event is from; sessions keep their agent, so that its name is there once.
    pub(super) fn agent_of(&self, connection: Connection, heard: &LenientEvent<'_>) -> Agent {
        let chars = self.bounds.kept_chars;
        let said = heard.object("producer").and_then(|producer| read_agent(&producer, chars));
        let session = self.link(connection).and_then(|link| link.sessions.get(heard.session_id()));
        match (said, session.map(|session| &session.agent)) {
            (Some(said), Some(known)) if said == *known => known.clone(),
            (Some(said), _) => said,
            (None, Some(known)) => known.clone(),
            (None, None) => self.agent(connection),
        }
    }

    /// An event whose turn has come.
    fn told(&mut self, connection: Connection, heard: &LenientEvent<'_>, now: u64) {
        let bounds = self.bounds;
        let agent = self.agent_of(connection, heard);
        if let Some(link) = self.link_mut(connection)
            && let Some(session) = link.sessions.get_mut(heard.session_id())
        {
            session.doing.note(heard, now, &bounds);
            if session.agent != agent {
                (session.agent, session.doing.agent) = (agent.clone(), agent.clone());
            }
        }
        match heard.kind() {
            Some(EventKind::OutputStreaming) => self.output(connection, heard, agent, now),
            Some(EventKind::StateChanged) => self.state(connection, heard, agent, now),
            Some(kind) if kind.is_terminal() => self.ended(connection, heard, agent, now),
            Some(EventKind::ProgressUpdated) => {
                self.merge(connection, heard, agent, Rank::Progress, now);
            }
            Some(EventKind::SessionStarted) => {
                self.plain(connection, heard, agent, Rank::Milestone, now);
            }
            _ => {
                self.plain(connection, heard, agent, Rank::Other, now);
            }
        }
    }

    pub(super) fn plain(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        agent: Agent,
        rank: Rank,
        now: u64,
    ) -> super::BacklogIndex {
        let critical = heard.urgency() == Urgency::Critical;
        self.tell_event(connection, (agent, heard.as_json().into()), (critical, rank), now)
    }

    // enforces: T8, S3
    /// A state or a progress: when much waits, the newer one takes the place of the older.
    fn merge(
        &mut self,
        connection: Connection,
        heard: &LenientEvent<'_>,
        agent: Agent,
        rank: Rank,
        now: u64,
    ) {
        let bounds = self.bounds;
        let critical = heard.urgency() == Urgency::Critical;
        let place = self.plain(connection, heard, agent.clone(), rank, now);
        if critical {
            return;
        }
        let Some(link) = self.link_mut(connection) else { return };
        let crowded = link.backlog.len() >= bounds.merge_from;
        let Some(session) = link.sessions.get_mut(heard.session_id()) else { return };
        let waiting = match rank {
            Rank::State => &mut session.waiting_state,
            _ => &mut session.waiting_progress,
        };
        let older = waiting.replace(place);
        if let Some(older) = older.filter(|_| crowded)
            && link.backlog.remove(older).is_some()
        {
            self.silences.add(agent, Silence::TooMuch, Some(1), now, &bounds);
        }
    }

    fn state(&mut self, connection: Connection, heard: &LenientEvent<'_>, agent: Agent, now: u64) {
        if let Some((event, word)) = asked::outcome(heard) {
            if self.resolved(connection, (heard.session_id(), &event), &word) {
                return;
            }
        } else {
            self.left_waiting(connection, heard, now);
        }
        self.merge(connection, heard, agent, Rank::State, now);
    }

    fn ended(&mut self, connection: Connection, heard: &LenientEvent<'_>, agent: Agent, now: u64) {
        self.session_over(connection, heard.session_id());
        self.finish_session(connection, heard.session_id(), now);
        self.plain(connection, heard, agent, Rank::Milestone, now);
        if let Some(link) = self.link_mut(connection) {
            link.sessions.remove(heard.session_id());
            link.ended.is_new(heard.session_id(), "");
        }
    }

    /// Nothing more comes of a session: what waits for its turn or for a boundary is told.
    fn finish_session(&mut self, connection: Connection, session_id: &str, now: u64) {
        let link = self.link_mut(connection);
        if let Some(session) = link.and_then(|link| link.sessions.get_mut(session_id)) {
            session.order.expire();
        }
        self.release(connection, session_id, now);
        self.finish_outputs(connection, session_id, now);
    }

    // enforces: E27
    fn note_deviations(&mut self, connection: Connection, heard: &LenientEvent<'_>, now: u64) {
        if let Some(problem) = heard.deviations().first() {
            let pointer = cut(&problem.pointer, 80).escape_debug().to_string();
            let text = format!("An event deviates at {pointer:?}: {}", problem.text);
            let text = text.chars().filter(|c| !c.is_control()).take(400).collect();
            self.note(connection, problem.rule.id, text, now);
        }
    }

    // enforces: S12
    fn note_rate(&mut self, connection: Connection, now: u64) {
        let Some(link) = self.link_mut(connection) else { return };
        let within = link.allowed.as_mut().is_none_or(|allowed| allowed.take(now));
        let noted =
            link.violation_noted.is_some_and(|at| now < at.saturating_add(VIOLATION_EVERY_MS));
        if within || noted {
            return;
        }
        link.violation_noted = Some(now);
        let text = "The producer sends more events than was agreed on.".into();
        self.note(connection, "S12", text, now);
    }
}
