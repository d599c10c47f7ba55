//! The core of a listener: what came in, what is told, what is sent. No sockets, no clock, no
//! randomness; the driver brings the time.
//!
//! # The contract
//!
//! Every call that changes something takes `now`, in milliseconds of one clock that never goes back
//! and counts sleep. After it, drain [`Inbox::poll_send`] and [`Inbox::poll_log`]; take from
//! [`Inbox::poll_notification`] whenever the listener has time, critical things come first. Call
//! [`Inbox::handle`] with [`InboxInput::Time`] at [`Inbox::next_deadline`]. While [`Inbox::is_full`],
//! receive nothing more: nothing critical is ever left out, so the producer has to wait.
//!
//! # Example
//!
//! ```
//! use aaep_subscriber::Notification;
//! use aaep_subscriber::inbox::{Answer, Bounds, Inbox, InboxInput, Settings};
//!
//! let mut inbox = Inbox::new(Settings::default(), Bounds::default(), 1_779_632_531_000);
//! let hub = inbox.add("my hub", 0);
//! let _request = inbox.begin(hub, 0); // sent to the hub, which answers:
//! let accepted = br#"{"type":"subscription.accepted","subscription_id":"sub_1",
//!   "aaep_version":"1.0.0","producer":{"agent_id":"hub"},"honored_capabilities":
//!   {"supports_confirmation_reply":true,"supports_clarification_reply":true}}"#;
//! inbox.handle(InboxInput::Message { connection: hub, bytes: accepted }, 5);
//! inbox.handle(InboxInput::Attached { connection: hub }, 5);
//! assert!(matches!(inbox.poll_notification(5), Some(Notification::Connected { may_reply: true, .. })));
//!
//! let asks = br#"{"@context":"https://aaep-protocol.org/context/v1",
//!   "type":"aaep:agent.awaiting.confirmation","event_id":"evt_1","session_id":"sess_1",
//!   "timestamp":"2026-05-24T14:22:11.342Z","producer":{"agent_id":"tidy"},"urgency":"critical",
//!   "action":"Delete the build","consequence":"It is gone","reply_token":"rpl_1",
//!   "timeout_seconds":60,"default_decision":"reject","irreversible":true,"risk_level":"high"}"#;
//! inbox.handle(InboxInput::Message { connection: hub, bytes: asks }, 10);
//! let Some(Notification::Asked(request)) = inbox.poll_notification(10) else { unreachable!() };
//! inbox.answer(request.id, Answer::Reject, 20)?;
//! let reply = inbox.poll_send().unwrap();
//! assert!(reply.json.contains(r#""decision":"reject""#));
//! # Ok::<(), aaep_subscriber::inbox::InboxError>(())
//! ```

mod asked;
mod backlog;
mod backoff;
mod bounds;
mod bucket;
mod events;
mod handshake;
mod io;
mod link;
mod memory;
mod order;
mod outputs;
mod reply;
mod requests;
mod session;
mod settings;
mod settle;
mod silence;
mod text;

use std::collections::VecDeque;
use std::sync::Arc;

use aaep_types::Timestamp;

use crate::notification::{Agent, Notification, Silence};
use crate::request::Request;
use backlog::{BacklogIndex, Critical, Rank};
use link::Link;
use requests::Requests;
use silence::Silences;

pub use backoff::Backoff;
pub use bounds::Bounds;
pub use handshake::SubscriptionState;
pub use io::{Connection, InboxInput, LogEntry, Outgoing, Purpose, Ticket};
pub use reply::{Answer, InboxError};
pub use session::{Doing, Progress};
pub use settings::{Settings, TextBy};

/// The core of a listener; see the [module's page](self).
#[derive(Debug)]
pub struct Inbox {
    settings: Settings,
    bounds: Bounds,
    /// Milliseconds of Unix time when the inbox's clock was 0, by this machine.
    wall: i64,
    links: Vec<Link>,
    requests: Requests,
    critical: Critical,
    silences: Silences,
    sends: VecDeque<Outgoing>,
    notes: VecDeque<LogEntry>,
    last_place: BacklogIndex,
    last_ticket: u64,
    last_touch: u64,
    /// How often the settings changed.
    version: u64,
    /// Whose turn it is among those who are not critical.
    turn: usize,
}

impl Inbox {
    /// An inbox for somebody who wants this. `unix_ms_at_zero` is the Unix time of this machine, in
    /// milliseconds, at the moment 0 of the clock with which the inbox is called.
    pub fn new(settings: Settings, bounds: Bounds, unix_ms_at_zero: i64) -> Self {
        Self {
            settings,
            bounds,
            wall: unix_ms_at_zero,
            links: Vec::new(),
            requests: Requests::default(),
            critical: Critical::default(),
            silences: Silences::default(),
            sends: VecDeque::new(),
            notes: VecDeque::new(),
            last_place: 0,
            last_ticket: 0,
            last_touch: 0,
            version: 0,
            turn: 0,
        }
    }

    /// Another hub or producer, under the name by which the user knows it.
    pub fn add(&mut self, name: &str, now: u64) -> Connection {
        let id = u32::try_from(self.links.len()).unwrap_or(u32::MAX);
        self.links.push(Link::new(name, &self.bounds, now));
        Connection(id)
    }

    /// Something happens.
    pub fn handle(&mut self, input: InboxInput<'_>, now: u64) {
        match input {
            InboxInput::Message { connection, bytes } => self.message(connection, bytes, now),
            InboxInput::TooLong { connection } => {
                self.unreadable(connection, "A message is longer than we take.", now);
            }
            InboxInput::Identified { connection, identity } => {
                if let Some(link) = self.link_mut(connection) {
                    link.identity = Some(identity.clone());
                }
            }
            InboxInput::Attached { connection } => self.attached(connection, now),
            InboxInput::AttachedAnew { connection } => {
                self.attached(connection, now);
                self.doubt_everything(connection, now);
            }
            InboxInput::AttachedBare { connection } => {
                if let Some(link) = self.link_mut(connection) {
                    link.go_bare();
                }
                self.attached(connection, now);
            }
            InboxInput::Lost { connection, why } => self.lost(connection, why, now),
            InboxInput::Forgotten { connection } => {
                self.link_mut(connection).into_iter().for_each(Link::forget_subscription);
            }
            InboxInput::ServerTime { connection, unix_ms } => {
                if let Some(link) = self.link_mut(connection) {
                    link.clock.dated(unix_ms, now);
                }
                self.correct_deadlines(connection, now);
            }
            InboxInput::Sent(ticket) => self.sent(ticket),
            InboxInput::NotSent { ticket, perhaps } => self.not_sent(ticket, perhaps, now),
            InboxInput::Time => {}
        }
        self.pass_time(now);
    }

    // enforces: T28, H23
    /// The next thing to tell; critical ones first, then silences, then the rest at a pace that can
    /// be heard.
    pub fn poll_notification(&mut self, now: u64) -> Option<Notification> {
        if let Some(critical) = self.critical.pop() {
            return Some(critical);
        }
        if let Some(silence) = self.silences.pop(now) {
            return Some(silence);
        }
        for step in 0..self.links.len() {
            let turn = (self.turn + step) % self.links.len();
            if let Some(notification) = self.links[turn].backlog.pop(now) {
                self.turn = turn + 1;
                return Some(notification);
            }
        }
        None
    }

    /// The next message to send.
    pub fn poll_send(&mut self) -> Option<Outgoing> {
        let send = self.sends.pop_front()?;
        if let Some(own) = self.requests.by_ticket(send.ticket).and_then(|open| open.own.as_mut()) {
            // From here on nobody knows whether it arrives.
            own.attempted_before = std::mem::replace(&mut own.attempted, true);
        }
        Some(send)
    }

    /// The next note for the log.
    pub fn poll_log(&mut self) -> Option<LogEntry> {
        self.notes.pop_front()
    }

    /// Whether so much that is critical waits that nothing more should be received.
    pub fn is_full(&self) -> bool {
        self.critical.len() >= self.bounds.critical_waiting
    }

    /// When to come back with [`InboxInput::Time`], and to look whether there is something to tell. What
    /// is due already needs no other moment than this one.
    pub fn next_deadline(&self, now: u64) -> Option<u64> {
        let requests = self.requests.iter().map(|open| self.due(open));
        let links = self.links.iter().filter_map(|link| link.deadline(now));
        let all = requests.chain(links).chain(self.silences.deadline());
        all.filter(|at| *at > now).min()
    }

    /// The requests that wait for the user, in the order of asking.
    pub fn open_requests(&self) -> Vec<Arc<Request>> {
        self.requests.iter().map(|open| open.request.clone()).collect()
    }

    /// What each live session does now.
    pub fn doing(&self) -> Vec<Doing> {
        let mut all = Vec::new();
        for (index, link) in self.links.iter().enumerate() {
            let connection = Connection(u32::try_from(index).unwrap_or(u32::MAX));
            for session in link.sessions.values() {
                let id = &session.doing.session_id;
                let waiting = self.requests.of_session(connection, id).len();
                all.push(Doing { waiting, ..session.doing.clone() });
            }
        }
        all
    }

    /// What is in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    fn link(&self, connection: Connection) -> Option<&Link> {
        self.links.get(connection.0 as usize)
    }

    fn link_mut(&mut self, connection: Connection) -> Option<&mut Link> {
        self.links.get_mut(connection.0 as usize)
    }

    fn next_place(&mut self) -> BacklogIndex {
        self.last_place += 1;
        self.last_place
    }

    /// Tells something at once.
    fn tell_critical(&mut self, notification: Notification) -> BacklogIndex {
        let place = self.next_place();
        self.critical.push(place, notification);
        place
    }

    /// Tells something in its turn; what there is no room for is counted.
    fn tell(
        &mut self,
        connection: Connection,
        notification: Notification,
        rank: Rank,
        now: u64,
    ) -> BacklogIndex {
        let (place, bounds) = (self.next_place(), self.bounds);
        let Some(link) = self.link_mut(connection) else { return place };
        link.backlog.push(place, notification, rank);
        let mut gone = Vec::new();
        while let Some(left_out) = link.backlog.thin(&bounds) {
            if let Some(output) = &left_out.text_of {
                link.mark_gap(output);
            }
            gone.push(left_out.agent.unwrap_or_else(|| link.agent.clone()));
        }
        for agent in gone {
            self.silences.add(agent, Silence::TooMuch, Some(1), now, &bounds);
        }
        place
    }

    // enforces: E27
    fn note(&mut self, connection: Connection, rule: &'static str, text: String, now: u64) {
        let Some(link) = self.link_mut(connection) else { return };
        // A log that is flooded tells nothing.
        if !link.notes.take(now) {
            return;
        }
        let hub = link.name.clone();
        if self.notes.len() >= self.bounds.notes {
            self.notes.pop_front();
        }
        self.notes.push_back(LogEntry { hub, rule, text });
    }

    fn unreadable(&mut self, connection: Connection, why: &str, now: u64) {
        let Some(link) = self.link(connection) else { return };
        let (agent, bounds) = (link.agent.clone(), self.bounds);
        self.silences.add(agent, Silence::Unreadable, Some(1), now, &bounds);
        self.note(connection, "E27", format!("A message cannot be understood: {why}"), now);
    }

    /// Puts a message where the driver finds it; `None` if too many wait.
    fn send(&mut self, connection: Connection, purpose: Purpose, json: String) -> Option<Ticket> {
        if self.sends.len() >= self.bounds.sends {
            return None;
        }
        self.last_ticket += 1;
        let ticket = Ticket(self.last_ticket);
        self.sends.push_back(Outgoing { connection, ticket, purpose, json });
        Some(ticket)
    }

    /// What the hub's clock should say now (D9).
    fn stamp(&self, connection: Connection, now: u64) -> Timestamp {
        let offset = self.link(connection).and_then(|link| link.clock.offset());
        let millis =
            offset.unwrap_or(self.wall).saturating_add(i64::try_from(now).unwrap_or(i64::MAX));
        let last = 253_402_300_799_999; // the last moment of the year 9999
        Timestamp::from_millis(millis.clamp(0, last))
            .or_else(|| Timestamp::from_millis(0))
            .unwrap_or_else(|| unreachable!("a moment between 1970 and 9999 is a timestamp"))
    }

    fn agent(&self, connection: Connection) -> Agent {
        self.link(connection)
            .map_or_else(|| Agent { id: "".into(), name: "".into() }, |link| link.agent.clone())
    }
}

#[cfg(test)]
mod tests;
