//! What newcomers and those who come back need: how each session stands, and what was said lately.
//!
//! Everything lies with the user whose sessions it is about, so nobody looks at what is others', and
//! each user has a share of the room. When all of it is taken, the user who holds most makes room.

use aaep_shaping::Prepared;
use aaep_types::{EventId, EventKind, SessionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::hearers::asks;
use crate::ids::{EventNumber, event_number};
use crate::io::Emitted;
use crate::limits::Limits;
use crate::principal::{Principal, Role};
use crate::rules::Rules;
use crate::work;

/// What is known of a session.
pub(crate) struct RecentSession {
    agent: Arc<str>,
    started: Arc<Prepared>,
    state: Option<Arc<Prepared>>,
    /// Requests that wait, by the number of the event that asks, with its place in the order.
    open: BTreeMap<EventNumber, (u64, Arc<Prepared>)>,
    /// Places of what was said lately.
    recent: VecDeque<u64>,
    ended: bool,
}

#[derive(Default)]
struct OfUser {
    sessions: BTreeMap<SessionId, RecentSession>,
    /// Sessions that ended not long ago, oldest first, for those who missed the end.
    ended: VecDeque<SessionId>,
    /// What was said lately, by its place.
    said: BTreeMap<u64, Arc<Prepared>>,
    /// The same places by the numbers in the events' ids.
    places: BTreeMap<EventNumber, u64>,
    bytes: usize,
}

#[derive(Default)]
pub(crate) struct Recent {
    users: BTreeMap<Arc<str>, OfUser>,
    /// Whose each session is.
    owners: BTreeMap<SessionId, Arc<str>>,
    /// Users by how much they hold: the logarithm of their bytes, which seldom changes.
    by_bytes: BTreeSet<(u32, Arc<str>)>,
    /// Users by how many sessions of theirs ended and are known.
    by_ended: BTreeSet<(usize, Arc<str>)>,
    bytes: usize,
    ended: usize,
    /// The place of the last event.
    order: u64,
    /// For each user, the place of the last event that had to be forgotten.
    forgotten: BTreeMap<Arc<str>, u64>,
    /// The same for everybody.
    all_forgotten: u64,
}

impl Recent {
    /// The place of the last event.
    pub(crate) fn order(&self) -> u64 {
        self.order
    }

    pub(crate) fn is_live(&self, session: SessionId) -> bool {
        let user = self.owners.get(&session).and_then(|user| self.users.get(user));
        user.and_then(|user| user.sessions.get(&session)).is_some_and(|known| !known.ended)
    }

    /// How many sessions that ended are known, and how many events of the session of which most are.
    pub(crate) fn sizes(&self) -> (usize, usize) {
        let sessions = self.users.values().flat_map(|user| user.sessions.values());
        (self.ended, sessions.map(|known| known.recent.len()).max().unwrap_or(0))
    }

    /// Bytes of what was said lately, of all users and of the one who holds most.
    pub(crate) fn byte_sizes(&self) -> (usize, usize) {
        (self.bytes, self.users.values().map(|user| user.bytes).max().unwrap_or(0))
    }

    // enforces: I32
    /// Something was said here that is not known any more, to this user or to anybody.
    pub(crate) fn note_gap(&mut self, user: Option<Arc<str>>) {
        self.order += 1;
        match user {
            Some(user) => drop(self.forgotten.insert(user, self.order)),
            None => self.all_forgotten = self.order,
        }
    }

    /// Keeps an event.
    pub(crate) fn remember(&mut self, event: &Emitted, prepared: &Arc<Prepared>, limits: &Limits) {
        self.order += 1;
        let ends = event.kind.is_some_and(EventKind::is_terminal);
        self.owners.entry(event.session).or_insert_with(|| event.user.clone());
        let user = self.users.entry(event.user.clone()).or_default();
        let known = user.sessions.entry(event.session).or_insert_with(|| RecentSession {
            agent: event.agent.clone(),
            started: prepared.clone(),
            state: None,
            open: BTreeMap::new(),
            recent: VecDeque::new(),
            ended: false,
        });
        match event.kind {
            Some(EventKind::StateChanged) => known.state = Some(prepared.clone()),
            Some(kind) if asks(kind) => {
                known.open.insert(event.event, (self.order, prepared.clone()));
            }
            _ => {}
        }
        if let Some(resolved) = event.resolves_event {
            known.open.remove(&resolved);
        }
        known.recent.push_back(self.order);
        let oldest =
            if known.recent.len() > limits.recent_events { known.recent.front() } else { None };
        let oldest = oldest.copied();
        user.said.insert(self.order, prepared.clone());
        event_number(&prepared.event_id()).map(|number| user.places.insert(number, self.order));
        self.count_bytes(&event.user, |bytes| bytes + prepared.json().len());
        if let Some(oldest) = oldest {
            self.forget(&event.user, oldest);
        }
        if ends {
            self.end(&event.user, event.session, limits);
        }
        self.make_room(&event.user, limits);
    }

    /// A session ended; who missed the end may still come back for it.
    fn end(&mut self, user: &Arc<str>, session: SessionId, limits: &Limits) {
        let Some(of_user) = self.users.get_mut(user) else { return };
        let Some(known) = of_user.sessions.get_mut(&session) else { return };
        if std::mem::replace(&mut known.ended, true) {
            return;
        }
        known.open.clear();
        self.by_ended.remove(&(of_user.ended.len(), user.clone()));
        of_user.ended.push_back(session);
        self.ended += 1;
        self.by_ended.insert((of_user.ended.len(), user.clone()));
        if of_user.ended.len() > limits.ended_sessions_per_user {
            self.forget_oldest_end(user);
        }
        while self.ended > limits.ended_sessions
            && let Some((_, most)) = self.by_ended.last().cloned()
        {
            self.forget_oldest_end(&most);
        }
        // What is known of users who were here once is bounded, too.
        if self.forgotten.len() > limits.sessions {
            self.forgotten.clear();
            self.all_forgotten = self.order;
        }
    }

    // enforces: I22, I29
    /// When too much is kept, the oldest of it goes: of this user's beyond its share, and of the user who
    /// holds most beyond everybody's.
    fn make_room(&mut self, user: &Arc<str>, limits: &Limits) {
        while let Some(of_user) = self.users.get(user)
            && of_user.bytes > limits.recent_bytes_per_user
            && let Some((&oldest, _)) = of_user.said.first_key_value()
        {
            self.forget(user, oldest);
        }
        while self.bytes > limits.recent_bytes
            && let Some((_, most)) = self.by_bytes.last().cloned()
            && let Some((&oldest, _)) =
                self.users.get(&most).and_then(|of_user| of_user.said.first_key_value())
        {
            self.forget(&most, oldest);
        }
    }

    /// Forgets what a user's sessions said at this place, which is the oldest that its session said.
    fn forget(&mut self, user: &Arc<str>, place: u64) {
        let Some(of_user) = self.users.get_mut(user) else { return };
        let Some(event) = of_user.said.remove(&place) else { return };
        event_number(&event.event_id()).map(|number| of_user.places.remove(&number));
        let session = event.session_id();
        let known = of_user.sessions.get_mut(&session);
        let is_empty = known.is_none_or(|known| {
            known.recent.pop_front();
            known.ended && known.recent.is_empty()
        });
        let forgotten = self.forgotten.entry(user.clone()).or_default();
        *forgotten = place.max(*forgotten);
        self.count_bytes(user, |bytes| bytes - event.json().len());
        if is_empty {
            self.forget_end(user, session);
        }
    }

    /// Forgets a user's session that ended first.
    fn forget_oldest_end(&mut self, user: &Arc<str>) {
        let oldest = self.users.get(user).and_then(|of_user| of_user.ended.front());
        if let Some(&session) = oldest {
            self.forget_end(user, session);
        }
    }

    fn forget_end(&mut self, user: &Arc<str>, session: SessionId) {
        let Some(of_user) = self.users.get_mut(user) else { return };
        let Some(known) = of_user.sessions.remove(&session) else { return };
        self.owners.remove(&session);
        self.by_ended.remove(&(of_user.ended.len(), user.clone()));
        // Mostly the oldest one; there are few.
        if let Some(at) = of_user.ended.iter().position(|ended| *ended == session) {
            of_user.ended.remove(at);
            self.ended -= 1;
        }
        if !of_user.ended.is_empty() {
            self.by_ended.insert((of_user.ended.len(), user.clone()));
        }
        for place in known.recent {
            self.forget(user, place);
        }
        if self.users.get(user).is_some_and(|of_user| of_user.sessions.is_empty()) {
            self.users.remove(user);
        }
    }

    fn count_bytes(&mut self, user: &Arc<str>, change: impl FnOnce(usize) -> usize) {
        let Some(of_user) = self.users.get_mut(user) else { return };
        let (before, after) = (of_user.bytes, change(of_user.bytes));
        of_user.bytes = after;
        self.bytes = self.bytes - before + after;
        let (old, new) = (before.checked_ilog2(), after.checked_ilog2());
        if old != new {
            old.map(|old| self.by_bytes.remove(&(old, user.clone())));
            new.map(|new| self.by_bytes.insert((new, user.clone())));
        }
    }

    /// The users whose sessions this principal may hear.
    fn heard_by(&self, peer: &Principal) -> impl Iterator<Item = (&Arc<str>, &OfUser)> {
        let everybody = matches!(peer.role, Role::Auditor | Role::Admin);
        let all = everybody.then_some(&self.users).into_iter().flatten();
        let own = if everybody { None } else { self.users.get_key_value(&peer.user) };
        all.chain(own).inspect(|_| work::count())
    }

    fn sessions_heard_by<'r>(
        &'r self,
        peer: &'r Principal,
    ) -> impl Iterator<Item = &'r RecentSession> {
        self.heard_by(peer).flat_map(|(user, of_user)| {
            let sessions = of_user.sessions.values().inspect(|_| work::count());
            sessions.filter(|known| peer.may_hear(user, &known.agent))
        })
    }

    /// Where an event was said that this principal may hear.
    pub(crate) fn place_of(&self, peer: &Principal, event: &str) -> Option<u64> {
        let number = event_number(&EventId::parse(event).ok()?)?;
        self.heard_by(peer).find_map(|(user, of_user)| {
            let place = *of_user.places.get(&number)?;
            let session = of_user.said.get(&place)?.session_id();
            let known = of_user.sessions.get(&session)?;
            peer.may_hear(user, &known.agent).then_some(place)
        })
    }

    /// Whether everything is known that was said after this place and that this principal may hear.
    pub(crate) fn knows_since(&self, peer: &Principal, place: u64) -> bool {
        // Whose agents' sessions they were is forgotten with them: an agent counts all of its user's.
        let everybody = matches!(peer.role, Role::Auditor | Role::Admin);
        let lacks = |forgotten: &u64| *forgotten > place;
        let lacks = match everybody {
            true => self.forgotten.values().any(lacks),
            false => self.forgotten.get(&peer.user).is_some_and(lacks),
        };
        !lacks && place >= self.all_forgotten
    }

    /// Everything that was said after this place and that this principal may hear; `None` if some of
    /// it is forgotten.
    pub(crate) fn said_since(&self, peer: &Principal, place: u64) -> Option<Vec<Arc<Prepared>>> {
        if !self.knows_since(peer, place) {
            return None;
        }
        let mut said: Vec<(u64, &Arc<Prepared>)> = Vec::new();
        for (user, of_user) in self.heard_by(peer) {
            let later = of_user.said.range(place.saturating_add(1)..);
            let hears = |event: &Prepared| {
                let known = of_user.sessions.get(&event.session_id());
                known.is_some_and(|known| peer.may_hear(user, &known.agent))
            };
            said.extend(later.filter(|(_, event)| hears(event)).map(|(at, event)| (*at, event)));
        }
        said.sort_unstable_by_key(|(place, _)| *place);
        Some(said.into_iter().map(|(_, event)| event.clone()).collect())
    }

    /// What waits for an answer and was asked up to this place.
    pub(crate) fn asked_until(&self, peer: &Principal, place: u64) -> Vec<Arc<Prepared>> {
        let open = self.sessions_heard_by(peer).flat_map(|known| known.open.values());
        let mut open: Vec<_> = open.filter(|(order, _)| *order <= place).collect();
        open.sort_unstable_by_key(|(order, _)| *order);
        open.into_iter().map(|(_, event)| event.clone()).collect()
    }

    /// Live sessions that this principal may hear and whose state was never told.
    pub(crate) fn sessions_without_state(&self, peer: &Principal) -> Vec<SessionId> {
        let all = self.heard_by(peer).flat_map(|(user, of_user)| {
            of_user.sessions.iter().filter(|(_, known)| peer.may_hear(user, &known.agent))
        });
        let silent = all.filter(|(_, known)| !known.ended && known.state.is_none());
        silent.map(|(session, _)| *session).collect()
    }

    // enforces: D28
    /// Of each live session its start, its last state, and everything that waits for an answer.
    pub(crate) fn snapshot<R: Rules>(&self, peer: &Principal) -> Vec<Arc<Prepared>> {
        let live = self.sessions_heard_by(peer).filter(|known| !known.ended);
        live.flat_map(|known| {
            let first = [Some(&known.started), known.state.as_ref()].into_iter().flatten();
            let open = known.open.values().map(|(_, event)| event);
            let first = first.filter(|_| R::belongs_in_snapshot(false));
            first.chain(open.filter(|_| R::belongs_in_snapshot(true))).cloned()
        })
        .collect()
    }
}
