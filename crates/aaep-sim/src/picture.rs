//! A listener as people have one: the real inbox of `aaep-subscriber`, fed with what one device reads.
//! Whenever nothing is on its way to it, its picture of sessions and requests is the hub's (I32).

use std::collections::BTreeSet;

use aaep_engine::Rules;
use aaep_subscriber::inbox::{Bounds, Connection, Inbox, InboxInput, Settings};
use aaep_types::{EventId, SessionId};

use crate::cast::may_hear;
use crate::oracle::{Line, Oracle};
use crate::world::World;

/// A returning subscriber may be told little by little, and merged.
const SLOWLY_MILLIS: u64 = 60_000;

/// How its device is connected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Way {
    /// A stream that can be attached to again.
    Stream,
    /// One connection both ways: a returning client asks for a subscription, and says where it left
    /// off.
    Link,
}

/// What a listener may lack.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flaw {
    /// Nothing.
    #[default]
    None,
    /// It takes how things stand for what it missed.
    NeverDoubts,
}

pub(crate) struct Picture {
    inbox: Inbox,
    hub: Connection,
    pub(crate) way: Way,
    flaw: Flaw,
    now: u64,
    /// From when on the picture has to be right.
    right_at: u64,
    /// Deadlines follow the hub's clock; once that was set, nobody can tell when they are over.
    pub(crate) clock_was_set: bool,
}

impl Picture {
    pub(crate) fn new(way: Way, flaw: Flaw) -> Self {
        let mut inbox = Inbox::new(Settings::default(), Bounds::default(), 0);
        let hub = inbox.add("hub", 0);
        Self { inbox, hub, way, flaw, now: 0, right_at: 0, clock_was_set: false }
    }

    fn handle(&mut self, input: InboxInput<'_>, now: u64) {
        self.now = self.now.max(now);
        // What was due came first.
        self.inbox.handle(InboxInput::Time, self.now);
        self.inbox.handle(input, self.now);
        while self.inbox.poll_notification(self.now).is_some() {}
        while self.inbox.poll_send().is_some() {}
        while self.inbox.poll_log().is_some() {}
    }

    /// The handshake begins; on a link this is what is sent.
    pub(crate) fn begin(&mut self) -> String {
        match self.way {
            Way::Stream => {
                self.inbox.handle(InboxInput::Forgotten { connection: self.hub }, self.now);
                self.inbox.begin(self.hub, self.now)
            }
            Way::Link => self.inbox.resume(self.hub, self.now),
        }
    }

    /// Something that is no event, or one.
    pub(crate) fn hear(&mut self, message: &str, now: u64) {
        self.handle(InboxInput::Message { connection: self.hub, bytes: message.as_bytes() }, now);
    }

    /// Events flow: all that was missed, or how things stand.
    pub(crate) fn attached(&mut self, all: bool, slowly: bool, now: u64) {
        let connection = self.hub;
        let all = match self.way {
            Way::Stream => all,
            Way::Link => self.inbox.is_resumed(connection),
        };
        let anew = !all && self.flaw != Flaw::NeverDoubts;
        self.handle(
            match anew {
                true => InboxInput::AttachedAnew { connection },
                false => InboxInput::Attached { connection },
            },
            now,
        );
        let wait = if slowly { SLOWLY_MILLIS } else { 0 };
        // Requests are looked at again on every new subscription.
        self.right_at = self.now + wait.max(Bounds::default().redelivery_ms);
    }

    /// What was held comes now.
    pub(crate) fn goes_on(&mut self) {
        self.right_at = self.right_at.max(self.now + SLOWLY_MILLIS);
    }

    pub(crate) fn lost(&mut self, now: u64) {
        self.handle(InboxInput::Lost { connection: self.hub, why: "the line broke" }, now);
    }

    /// The sessions that go on, and what they ask.
    /// `None` while something waits for its turn.
    fn taken(&mut self, now: u64) -> Option<(BTreeSet<SessionId>, BTreeSet<EventId>)> {
        self.handle(InboxInput::Time, now);
        let next = self.inbox.next_deadline(self.now);
        if next.is_some_and(|at| at <= self.now + Bounds::default().reorder_ms) {
            return None;
        }
        let sessions = self.inbox.doing();
        let sessions = sessions.iter().filter_map(|doing| SessionId::parse(&doing.session_id).ok());
        let requests = self.inbox.open_requests();
        let requests = requests.iter().filter_map(|open| EventId::parse(&open.event_id).ok());
        Some((sessions.collect(), requests.collect()))
    }
}

impl Oracle {
    /// What really goes on for a principal, and what waits.
    fn pictured(&self, principal: usize) -> (BTreeSet<SessionId>, BTreeSet<EventId>) {
        let live = self.sessions.iter().filter(|(_, session)| {
            session.started.is_some() && !session.told_end && may_hear(principal, session.user)
        });
        let waiting = self.requests.values().filter(|request| {
            request.waits() && request.now().announced && may_hear(principal, request.user)
        });
        let waiting = waiting.map(|request| request.now().event.id());
        (live.map(|(id, _)| *id).collect(), waiting.collect())
    }
}

impl<R: Rules> World<'_, R> {
    /// Compares what each listener believes with what is.
    pub(crate) fn compare_pictures(&mut self) {
        let boot = self.clocks.now().boot;
        let Some(hub) = &self.hub else { return };
        // Nobody has heard of what waits for the disk, or for the hub to be told the time.
        let due = hub.next_deadline().is_some_and(|at| at <= boot);
        if due || self.disk.unsynced_writes() > 0 || !self.unwritten.is_empty() {
            return;
        }
        let now = self.clocks.passed;
        for client in 0..self.clients.len() {
            if self.line(client) != Line::Live || !self.clients[client].outbox.is_empty() {
                continue;
            }
            let Some(index) = self.clients[client].listener else { continue };
            if !self.oracle.listeners[index].is_told_everything() {
                continue;
            }
            let principal = self.clients[client].principal;
            let Some(picture) = &mut self.clients[client].picture else { continue };
            if now <= picture.right_at {
                continue;
            }
            let Some((sessions, requests)) = picture.taken(now) else { continue };
            let clock_was_set = picture.clock_was_set;
            let (live, waiting) = self.oracle.pictured(principal);
            self.oracle.demand(sessions == live, "I32", || {
                format!("a listener believes that {sessions:?} go on, and {live:?} do")
            });
            self.oracle.demand(clock_was_set || requests == waiting, "I32", || {
                format!("a listener believes that {requests:?} wait, and {waiting:?} do")
            });
        }
    }
}
