//! How a subscription is agreed on, as the listener sees it (§5, H24–H26, X8).

use aaep_types::json::{Members, Raw, elements};
use aaep_types::resume::{self, LeftOff};
use aaep_types::{KNOWN_EXTENSIONS, Message, PresenceWord, SubscriptionId};

use super::backlog::Rank;
use super::bucket::Bucket;
use super::reply::{self, InboxError};
use super::settings::{Settings, cut};
use super::{Connection, Inbox, Purpose};
use crate::notification::{Agent, Notification};

/// How deep a handshake message may nest.
const DEPTH: usize = 64;

/// Where a connection stands with its hub.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SubscriptionState {
    /// Nothing was asked for yet, or the hub has forgotten it.
    Idle,
    /// A subscription was asked for.
    Asking,
    /// There is a subscription.
    Subscribed(SubscriptionId),
    /// The hub refused.
    Refused {
        /// Whether to ask again at once, for less (X8).
        again_now: bool,
        /// How long the hub wants us to wait, in milliseconds.
        retry_after_ms: u64,
        /// Why, in the hub's words.
        why: String,
    },
    /// The hub ended it.
    Ended,
}

/// What was agreed on, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct AgreedTerms {
    /// A hole in the numbers means loss (D15).
    pub(super) exact: bool,
    /// Something may be held back and merged.
    pub(super) holds: bool,
    pub(super) confirm: bool,
    pub(super) clarify: bool,
    pub(super) outcome: bool,
    pub(super) timing: bool,
    pub(super) control: bool,
    pub(super) rate: Option<u32>,
}

impl AgreedTerms {
    // enforces: H24, D15
    /// Reads the honoured capabilities, however odd they are; what is absent has its default.
    fn read(honored: &Members<'_>) -> Self {
        let flag = |name: &str| matches!(honored.find(name), Some(Raw::Bool(true)));
        let words = |members: &Members<'_>, name: &str| match members.find(name) {
            Some(Raw::Array(list)) => elements(list)
                .into_iter()
                .filter_map(|element| match element {
                    Raw::String(word) => Some(word.decode().into_owned()),
                    _ => None,
                })
                .collect(),
            _ => Vec::new(),
        };
        let extensions = words(honored, "supported_extensions");
        let has = |prefix: &str| {
            let uri = KNOWN_EXTENSIONS.iter().find(|known| known.prefix == prefix);
            uri.is_some_and(|known| extensions.iter().any(|uri| uri == known.uri))
        };
        let rate = match honored.find("max_events_per_second") {
            Some(Raw::Number(rate)) => rate.parse::<u32>().ok(),
            _ => None,
        };
        let filters = match honored.find("event_filters") {
            Some(Raw::Object(text)) => Members::whole(text, DEPTH).ok().flatten(),
            _ => None,
        };
        let everything = filters.is_some_and(|filters| {
            words(&filters, "include").iter().any(|pattern| pattern == "*")
                && words(&filters, "exclude").is_empty()
        });
        let uncut = words(honored, "coalesce_boundaries").iter().any(|word| word == "none");
        let low = honored.text("cognitive_load").as_deref() == Some("low");
        Self {
            exact: everything && uncut && rate.is_none() && !low,
            holds: !uncut || rate.is_some() || low,
            confirm: flag("supports_confirmation_reply"),
            clarify: flag("supports_clarification_reply"),
            outcome: has("outcome"),
            timing: has("timing"),
            control: has("control"),
            rate,
        }
    }
}

impl Inbox {
    // enforces: H24
    /// The way to a hub is open: the request to send. Its answer comes in as a message.
    pub fn begin(&mut self, connection: Connection, _now: u64) -> String {
        self.request(connection, None)
    }

    // enforces: W7
    /// The same for a connection that has no other way to say where we left off; [`Self::is_resumed`]
    /// tells whether the hub goes on there.
    pub fn resume(&mut self, connection: Connection, _now: u64) -> String {
        let left_off = self.link(connection).and_then(|link| link.left_off);
        self.request(connection, left_off)
    }

    /// Whether the hub has agreed to go on where we left off: then what was missed follows.
    pub fn is_resumed(&self, connection: Connection) -> bool {
        self.link(connection).is_some_and(|link| link.resumed)
    }

    fn request(&mut self, connection: Connection, left_off: Option<LeftOff>) -> String {
        let Some(link) = self.links.get_mut(connection.0 as usize) else { return String::new() };
        link.standing = SubscriptionState::Asking;
        (link.attached, link.renegotiating, link.bare) = (false, false, false);
        link.resumed = false;
        link.asked_version = self.version;
        self.settings.request(&link.without, left_off)
    }

    /// Where a connection stands.
    pub fn standing(&self, connection: Connection) -> SubscriptionState {
        self.link(connection).map_or(SubscriptionState::Ended, |link| link.standing.clone())
    }

    // enforces: H24
    /// Other terms from now on, with every hub. What is not connected gets them when it is.
    pub fn renegotiate(&mut self, settings: Settings, now: u64) -> Result<(), InboxError> {
        self.settings = settings;
        self.version += 1;
        let mut result = Ok(());
        for index in 0..self.links.len() {
            let connection = Connection(u32::try_from(index).unwrap_or(u32::MAX));
            result = self.ask_for_other_terms(connection).and(result);
        }
        self.pass_time(now);
        result
    }

    /// Asks for what the settings say now, if something else is in force and somebody is there.
    fn ask_for_other_terms(&mut self, connection: Connection) -> Result<(), InboxError> {
        let (version, Some(link)) = (self.version, self.link(connection)) else { return Ok(()) };
        let Some(id) = link.subscription().filter(|_| link.attached && !link.bare) else {
            return Ok(());
        };
        if link.agreed_version == version {
            return Ok(());
        }
        let json = self.settings.renegotiate(id, &link.without, link.terms.rate.is_some());
        self.send(connection, Purpose::Renegotiate, json).ok_or(InboxError::Busy)?;
        if let Some(link) = self.link_mut(connection) {
            (link.renegotiating, link.asked_version) = (true, version);
        }
        Ok(())
    }

    // enforces: H26
    /// Says goodbye to every hub that is connected.
    pub fn close(&mut self, _now: u64) {
        for index in 0..self.links.len() {
            let link = &mut self.links[index];
            let leaving = std::mem::replace(&mut link.leaving, true);
            let Some(id) = link.subscription().filter(|_| !leaving) else { continue };
            let connection = Connection(u32::try_from(index).unwrap_or(u32::MAX));
            self.send(connection, Purpose::Close, reply::close(id));
        }
    }

    /// A message that is no event; false if it is no answer to a handshake either.
    pub(super) fn handshake(&mut self, connection: Connection, text: &str, now: u64) -> bool {
        let Some(members) = Members::whole(text, DEPTH).ok().flatten() else { return false };
        if members.repeated().is_some() {
            return false;
        }
        match members.text("type").as_deref() {
            Some("subscription.accepted") => self.accepted(connection, &members, now),
            Some("subscription.rejected") => {
                self.rejected(connection, &members);
                true
            }
            Some("presence:state") => self.presence_state(connection, text, now),
            // enforces: H19
            Some("subscription.close") => {
                if let Some(link) = self.link_mut(connection) {
                    link.standing = SubscriptionState::Ended;
                    link.attached = false;
                }
                true
            }
            _ => false,
        }
    }

    /// What the hub says about a PIN.
    fn presence_state(&mut self, connection: Connection, text: &str, now: u64) -> bool {
        let Ok(Message::PresenceState(told)) = Message::parse(text.as_bytes()) else {
            return false;
        };
        let Some(link) = self.link_mut(connection) else { return false };
        let (state, seconds) = (told.state, told.seconds.get());
        match state {
            // A little less than the hub counts: what is sent in the last second may come too late.
            PresenceWord::Unlocked => {
                link.unlocked_until =
                    now.saturating_add(seconds.saturating_sub(1).saturating_mul(1000));
            }
            PresenceWord::Changed => link.unlocked_until = 0,
            _ => {}
        }
        let hub = link.name.clone();
        let failures = told.failures.map_or(0, |failures| failures.get());
        self.tell_critical(Notification::Presence { hub, state, seconds, failures });
        true
    }

    fn accepted(&mut self, connection: Connection, members: &Members<'_>, now: u64) -> bool {
        let id = members.text("subscription_id").and_then(|id| SubscriptionId::parse(&id).ok());
        let Some(id) = id else { return false };
        let object = |name: &str| match members.find(name) {
            Some(Raw::Object(text)) => Members::whole(text, DEPTH).ok().flatten(),
            _ => None,
        };
        let honored = object("honored_capabilities").unwrap_or_default();
        let terms = AgreedTerms::read(&honored);
        let resumed = matches!(honored.find(resume::PREFIX), Some(Raw::Object(_)));
        let producer = object("producer");
        let chars = self.bounds.kept_chars;
        let Some(link) = self.link_mut(connection) else { return false };
        if link.subscription() != Some(id) {
            (link.fresh, link.resumed) = (true, resumed);
        }
        (link.terms, link.renegotiating) = (terms, false);
        link.standing = SubscriptionState::Subscribed(id);
        link.smaller = 0;
        link.agreed_version = link.asked_version;
        link.allowed = terms.rate.map(|rate| Bucket::new(rate, rate, now));
        if let Some(agent) = producer.and_then(|producer| read_agent(&producer, chars)) {
            link.agent = agent;
        }
        true
    }

    // enforces: X8
    fn rejected(&mut self, connection: Connection, members: &Members<'_>) {
        let code = members.text("reason_code").unwrap_or_default();
        let why = members.text("reason_message").unwrap_or_default();
        let why = cut(&why, self.bounds.kept_chars).to_owned();
        let seconds = match members.find("retry_after_seconds") {
            Some(Raw::Number(seconds)) => seconds.parse::<u64>().unwrap_or(0).min(86_400),
            _ => 0,
        };
        let most = self.bounds.smaller_requests;
        let Some(link) = self.link_mut(connection) else { return };
        let mut again_now = false;
        if code == "capabilities_incompatible" && link.smaller < most {
            link.smaller += 1;
            again_now = ask_for_less(&mut link.without, &why);
        }
        (link.attached, link.renegotiating) = (false, false);
        link.standing =
            SubscriptionState::Refused { again_now, retry_after_ms: seconds * 1000, why };
    }

    /// Events flow.
    pub(super) fn attached(&mut self, connection: Connection, now: u64) {
        let bounds = self.bounds;
        let Some(link) = self.link_mut(connection) else { return };
        let again = std::mem::replace(&mut link.was_attached, true);
        (link.attached, link.lost_told) = (true, false);
        // A PIN counts on the connection on which it was typed.
        link.unlocked_until = 0;
        link.joining_until = now.saturating_add(bounds.joining_ms);
        let fresh = std::mem::take(&mut link.fresh);
        let may_reply = link.terms.confirm || link.terms.clarify;
        let (hub, checks) = (link.name.clone(), fresh && link.terms.outcome);
        let identity = link.identity.clone();
        // enforces: I32
        // Who was told only a part of how things stand hears the rest now.
        for session in link.sessions.values_mut().filter(|session| session.doubted) {
            session.confirm_by = Some(now.saturating_add(bounds.redelivery_ms));
        }
        self.tell_critical(Notification::Connected { hub, again, may_reply, identity });
        for open in self.requests.iter_mut().filter(|open| open.connection == connection) {
            // D28: a new subscription is told again what waits.
            let doubted = std::mem::take(&mut open.doubted);
            open.confirm_by = (checks || doubted).then(|| now.saturating_add(bounds.redelivery_ms));
            if let Some(own) = &mut open.own {
                (own.in_flight, own.again_at) = (None, Some(now));
            }
        }
        // What could not be said while it was away; too much to send comes again with the next.
        let _ = self.ask_for_other_terms(connection);
    }

    // enforces: I32
    /// What was missed is not told, whether or not the subscription is a new one: sessions of which
    /// nothing is heard are over, and so are requests that are not asked again.
    pub(super) fn doubt_everything(&mut self, connection: Connection, now: u64) {
        let by = now.saturating_add(self.bounds.redelivery_ms);
        let link = self.link_mut(connection).filter(|link| link.terms.outcome);
        let Some(link) = link else { return };
        let sessions = link.sessions.values_mut();
        sessions.for_each(|session| (session.confirm_by, session.doubted) = (Some(by), true));
        let requests = self.requests.iter_mut().filter(|open| open.connection == connection);
        requests.for_each(|open| open.confirm_by = Some(by));
    }

    /// The connection is gone; it is tried again.
    pub(super) fn lost(&mut self, connection: Connection, why: &str, now: u64) {
        let again_ms = self.bounds.resend_ms;
        let Some(link) = self.link_mut(connection) else { return };
        link.attached = false;
        let told = std::mem::replace(&mut link.lost_told, true) || link.leaving;
        link.sessions.values_mut().for_each(|session| session.confirm_by = None);
        let hub = link.name.clone();
        if !told {
            self.tell_critical(Notification::Lost { hub, why: why.into() });
        }
        for open in self.requests.iter_mut().filter(|open| open.connection == connection) {
            open.doubted |= open.confirm_by.take().is_some();
            if let Some(own) = &mut open.own
                && own.in_flight.take().is_some()
            {
                own.again_at = Some(now.saturating_add(again_ms));
            }
        }
        self.sends.retain(|send| send.connection != connection);
    }

    /// Tells something about a connection's agent in its turn.
    pub(super) fn tell_event(
        &mut self,
        connection: Connection,
        (agent, json): (Agent, std::sync::Arc<str>),
        (critical, rank): (bool, Rank),
        now: u64,
    ) -> super::BacklogIndex {
        let notification = Notification::Event { agent, json, critical };
        if critical {
            self.tell_critical(notification)
        } else {
            self.tell(connection, notification, rank, now)
        }
    }
}

/// The agent that an object describes.
pub(super) fn read_agent(producer: &Members<'_>, chars: usize) -> Option<Agent> {
    let id = producer.text("agent_id").filter(|id| !id.is_empty())?;
    let id: std::sync::Arc<str> = cut(&id, chars).into();
    let name = producer.text("agent_name").filter(|name| !name.is_empty());
    let name = name.map_or_else(|| id.clone(), |name| cut(&name, chars).into());
    Some(Agent { id, name })
}

/// Leaves out the extension whose prefix the hub names, or all when it names none of ours; false if
/// there is nothing left to leave out.
fn ask_for_less(without: &mut Vec<&'static str>, why: &str) -> bool {
    let mut left = KNOWN_EXTENSIONS.iter().map(|known| known.prefix);
    let named: Vec<&'static str> = left
        .by_ref()
        .filter(|prefix| !without.contains(prefix))
        .filter(|prefix| why.split(|c: char| !c.is_alphanumeric()).any(|word| word == *prefix))
        .collect();
    let all = KNOWN_EXTENSIONS.iter().map(|known| known.prefix);
    let before = without.len();
    if named.is_empty() {
        for prefix in all.filter(|prefix| !without.contains(prefix)).collect::<Vec<_>>() {
            without.push(prefix);
        }
    } else {
        without.extend(named);
    }
    without.len() > before
}
