//! What was said lately: for newcomers (D28), and for those who come back (§8.7).

use aaep_shaping::Prepared;
use aaep_types::{EventKind, SessionId};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::clock::Boot;
use crate::io::Emitted;
use crate::principal::Principal;

/// Bytes of all events that are kept for those who come back; beyond it the oldest go first.
const RECENT_BYTES: usize = 64 << 20;

/// How long a session is remembered after its end: twice as long as a lost subscription waits to be
/// heard again, so that whoever comes back hears how it ended.
const ENDED_SECONDS: u64 = 60;

/// Sessions that are remembered after their end.
const ENDED_SESSIONS: usize = 4096;

/// What is known of a session that lives, or did until lately.
struct Told {
    user: Arc<str>,
    started: Arc<Prepared>,
    state: Option<Arc<Prepared>>,
    /// Requests that wait, by the number of the event that asks.
    open: BTreeMap<u128, Arc<Prepared>>,
    /// Each with its place in everything that was said.
    recent: VecDeque<(u64, Arc<Prepared>)>,
    ended: bool,
}

/// Everything that was said lately, of all sessions.
pub(crate) struct Recent {
    sessions: BTreeMap<SessionId, Told>,
    /// Which session said what is kept, oldest first.
    places: BTreeMap<u64, SessionId>,
    bytes: usize,
    last_place: u64,
    /// Of each user: what was said up to this place may have been forgotten.
    forgotten: BTreeMap<Arc<str>, u64>,
    ended: VecDeque<(Boot, SessionId)>,
    per_session: usize,
    max_bytes: usize,
}

impl Recent {
    pub(crate) fn new(per_session: usize) -> Self {
        Self {
            sessions: BTreeMap::new(),
            places: BTreeMap::new(),
            bytes: 0,
            last_place: 0,
            forgotten: BTreeMap::new(),
            ended: VecDeque::new(),
            per_session,
            max_bytes: RECENT_BYTES,
        }
    }

    /// Keeps what newcomers and those who come back will need.
    pub(crate) fn remember(&mut self, event: &Emitted, prepared: &Arc<Prepared>, now: Boot) {
        self.last_place += 1;
        let (place, session) = (self.last_place, event.session);
        let told = self.sessions.entry(session).or_insert_with(|| Told {
            user: event.user.clone(),
            started: prepared.clone(),
            state: None,
            open: BTreeMap::new(),
            recent: VecDeque::new(),
            ended: false,
        });
        match event.kind {
            Some(EventKind::StateChanged) => told.state = Some(prepared.clone()),
            Some(EventKind::AwaitingConfirmation | EventKind::AwaitingClarification) => {
                told.open.insert(event.event, prepared.clone());
            }
            Some(kind) if kind.is_terminal() => {
                told.ended = true;
                self.ended.push_back((now.after_seconds(ENDED_SECONDS), session));
            }
            _ => {}
        }
        if let Some(resolved) = event.resolves_event {
            told.open.remove(&resolved);
        }
        told.recent.push_back((place, prepared.clone()));
        let full = told.recent.len() > self.per_session;
        self.places.insert(place, session);
        self.bytes += prepared.json().len();
        if full {
            self.forget_oldest(session);
        }
        self.stay_within_bounds(now);
    }

    // enforces: I22
    fn stay_within_bounds(&mut self, now: Boot) {
        while self.bytes > self.max_bytes
            && let Some(&session) = self.places.values().next()
        {
            self.forget_oldest(session);
        }
        while let Some(&(until, session)) = self.ended.front()
            && (until <= now || self.ended.len() > ENDED_SESSIONS)
        {
            self.ended.pop_front();
            while self.forget_oldest(session) {}
            self.sessions.remove(&session);
        }
    }

    /// Forgets the oldest event of a session; false if there is none.
    fn forget_oldest(&mut self, session: SessionId) -> bool {
        let Some(told) = self.sessions.get_mut(&session) else { return false };
        let Some((place, event)) = told.recent.pop_front() else { return false };
        self.places.remove(&place);
        self.bytes -= event.json().len();
        let forgotten = self.forgotten.entry(told.user.clone()).or_default();
        *forgotten = place.max(*forgotten);
        true
    }

    /// Every event after that one which this principal may hear; `None` when that cannot be told.
    pub(crate) fn since(&self, peer: &Principal, last: &str) -> Option<Vec<Arc<Prepared>>> {
        let visible = || self.sessions.values().filter(|told| peer.may_hear(&told.user));
        let mut recent = visible().flat_map(|told| &told.recent);
        let (place, _) = recent.find(|(_, event)| event.event_id().as_str() == last)?;
        let mut users = self.forgotten.iter().filter(|(user, _)| peer.may_hear(user));
        if users.any(|(_, forgotten)| place < forgotten) {
            return None;
        }
        let mut missed: Vec<_> =
            visible().flat_map(|told| &told.recent).filter(|(order, _)| order > place).collect();
        missed.sort_by_key(|(order, _)| *order);
        Some(missed.into_iter().map(|(_, event)| event.clone()).collect())
    }

    // enforces: D28
    /// Of each live session its start, its last state, and everything that waits for an answer.
    pub(crate) fn snapshot(&self, peer: &Principal) -> Vec<Arc<Prepared>> {
        let live = self.sessions.values().filter(|told| !told.ended && peer.may_hear(&told.user));
        live.flat_map(|told| {
            let first = [Some(&told.started), told.state.as_ref()];
            first.into_iter().flatten().chain(told.open.values()).cloned()
        })
        .collect()
    }
}

/// What is to be offered to a subscription that comes back: what it missed, and whether what its
/// shaper held is to be dropped before, because it is among it.
///
/// Usually what was held is older than everything else that was missed, and stays. But if something
/// was lost on its way to the connection, that comes first, and what was held after it.
// enforces: I19
pub(crate) fn to_offer(
    missed: Vec<Arc<Prepared>>,
    held: Vec<Arc<Prepared>>,
) -> (bool, Vec<Arc<Prepared>>) {
    let ids: BTreeSet<_> = held.iter().map(|event| event.event_id()).collect();
    let is_held = |event: &Arc<Prepared>| ids.contains(&event.event_id());
    let mut first_held = BTreeMap::new();
    for event in &held {
        let number = event.sequence_number();
        let first = first_held.entry(event.session_id()).or_insert(number);
        *first = number.min(*first);
    }
    let lost = |event: &Arc<Prepared>| {
        let first = first_held.get(&event.session_id());
        first.is_some_and(|first| event.sequence_number() < *first)
    };
    if !missed.iter().any(lost) {
        return (false, missed.into_iter().filter(|event| !is_held(event)).collect());
    }
    let known: BTreeSet<_> = missed.iter().map(|event| event.event_id()).collect();
    let mut all = held;
    all.retain(|event| !known.contains(&event.event_id()));
    all.extend(missed);
    (true, all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::principal::Role;
    use aaep_shaping::Preparer;
    use aaep_types::{EventId, Urgency};

    /// Something that a user's session said, and its id.
    fn said(session: u128, number: u64, kind: EventKind, user: &str) -> Emitted {
        let event = (session << 32) + u128::from(number);
        let (id, named) = (EventId::from_bits(event), SessionId::from_bits(session));
        let json = format!(
            r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"{}","event_id":"{id}","session_id":"{named}","sequence_number":{number},"timestamp":"2026-05-24T14:22:11.342Z","producer":{{"agent_id":"a"}},"localization_hints":{{"primary_language":"en"}},"summary_normal":"{}"}}"#,
            kind.as_str(),
            "x".repeat(100),
        );
        Emitted {
            session: named,
            user: user.into(),
            number,
            event,
            kind: Some(kind),
            urgency: Urgency::Normal,
            about: None,
            resolves_event: None,
            json: json.into(),
        }
    }

    fn remember(recent: &mut Recent, event: &Emitted, now: Boot) -> String {
        let prepared = Preparer::new().prepare(event.json.clone()).unwrap();
        recent.remember(event, &prepared, now);
        prepared.event_id().to_string()
    }

    fn ann() -> Principal {
        Principal::new("reader", Role::AccessibilityConsumer, "ann")
    }

    use EventKind::{SessionCompleted, SessionStarted};

    // covers: W7
    #[test]
    fn whoever_comes_back_hears_that_a_session_ended_and_newcomers_do_not() {
        let mut recent = Recent::new(8);
        let first = remember(&mut recent, &said(1, 0, SessionStarted, "ann"), Boot(1));
        remember(&mut recent, &said(2, 0, SessionStarted, "bob"), Boot(1));
        remember(&mut recent, &said(2, 1, SessionCompleted, "bob"), Boot(1));
        let end = remember(&mut recent, &said(1, 1, SessionCompleted, "ann"), Boot(1));
        let missed = recent.since(&ann(), &first).unwrap();
        assert_eq!(missed.len(), 1);
        assert_eq!(missed[0].event_id().as_str(), end);
        assert!(recent.snapshot(&ann()).is_empty());
        // After a while nobody can come back to it any more.
        let later = Boot(1).after_seconds(ENDED_SECONDS);
        remember(&mut recent, &said(3, 0, SessionStarted, "ann"), later);
        assert!(recent.since(&ann(), &first).is_none());
        assert_eq!((recent.sessions.len(), recent.places.len()), (1, 1));
    }

    // covers: I22
    #[test]
    fn what_is_kept_is_bounded_and_what_is_forgotten_is_known() {
        let mut recent = Recent::new(1000);
        recent.max_bytes = 10_000;
        let first = remember(&mut recent, &said(1, 0, SessionStarted, "ann"), Boot(1));
        let bobs = remember(&mut recent, &said(2, 0, SessionStarted, "bob"), Boot(1));
        for session in 3..200 {
            remember(&mut recent, &said(session, 0, SessionStarted, "ann"), Boot(1));
            assert!(recent.bytes <= recent.max_bytes);
        }
        let kept: usize = recent.sessions.values().map(|told| told.recent.len()).sum();
        assert_eq!((kept, recent.places.len()), (recent.places.len(), kept));
        let bob = Principal::new("reader", Role::AccessibilityConsumer, "bob");
        assert!(recent.since(&ann(), &first).is_none() && recent.since(&bob, &bobs).is_none());
        // Sessions themselves are not forgotten while they live.
        assert_eq!(recent.snapshot(&ann()).len(), 198);
        for session in 1000..1000 + 2 * ENDED_SESSIONS as u128 {
            remember(&mut recent, &said(session, 1, SessionCompleted, "ann"), Boot(1));
        }
        assert!(recent.sessions.len() <= ENDED_SESSIONS + 200, "{}", recent.sessions.len());
    }
}
