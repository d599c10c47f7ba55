//! From the journal back to a core: what the engine recovers, and what the hub itself knew.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep_engine::{
    ClockTrust, DecodedRecord, Engine, Now, Principal, Record, Recovery, RequestId, Role, Secrets,
    Status,
};
use aaep_store::{Damage, JournalFault, KeptCall, Note, Unit};
use aaep_types::agent_api::{EventPosted, agent_id_of};
use aaep_types::{SessionId, ToolCallId};

use super::administer::new_owner;
use super::agents::{Agents, account};
use super::grants::{Grant, Grants};
use super::keys::{KeptAnswer, Keys, REMEMBERED_SECONDS};
use super::owed::Owed;
use super::processes::Processes;
use super::producers::Producers;
use crate::Fault;
use crate::access::account_of;
use crate::config::Limits;
use crate::start::Kept;
use crate::start::journal::{Trust, damaged, this_start};

/// How far apart the clocks of two nodes may be: each is at most a second off the store's.
const APART_SECONDS: u32 = 2;

/// What was found in a journal.
pub(crate) struct Recovered {
    pub(crate) engine: Engine,
    pub(crate) known: RecoveredState,
    pub(crate) trust: Trust,
    /// Whether erased records still take their room.
    pub(crate) to_compact: bool,
}

/// What the hub knew beside the engine.
pub(crate) struct RecoveredState {
    pub(super) agents: Agents,
    pub(super) producers: Producers,
    pub(super) keys: Keys,
    pub(super) granted: Grants,
    pub(super) owed: Owed,
    /// The last record that is durable.
    pub(super) durable: u64,
}

impl RecoveredState {
    /// Nothing was known before.
    pub(crate) fn new(limits: &Limits) -> Self {
        Self {
            agents: Agents::default(),
            producers: Producers::new(limits.known_producers()),
            keys: Keys::new(limits),
            granted: Grants::default(),
            owed: Owed::default(),
            durable: 0,
        }
    }

    /// With the processes that were kept of the sessions that are open, which are these.
    pub(crate) fn recall_processes(
        &mut self,
        kept: impl Fn(SessionId) -> Processes,
    ) -> BTreeSet<SessionId> {
        self.agents.recall_processes(kept);
        self.agents.sessions.keys().copied().collect()
    }
}

// enforces: I3, I11
/// Replays everything, and notes that the hub starts. Nothing is started from a journal that cannot
/// be believed as a whole.
pub(crate) fn recover(
    kept: &mut Kept,
    secrets: Secrets,
    limits: &Limits,
    key_is_new: bool,
    now: Now,
) -> Result<Recovered, Fault> {
    let path = kept.journal.path().to_owned();
    let failed = |damage: Damage| damaged(&path, &damage);
    let mut start = this_start(now);
    let mut recovery: Recovery = Recovery::new(secrets, limits.engine(), now);
    if kept.log.is_some() {
        recovery = recovery.with_margin(APART_SECONDS);
    }
    let mut learned = Learned::new(limits);
    // C6: what is known of a session is known for a day after it.
    let before = now.wall.as_micros().saturating_sub(REMEMBERED_SECONDS as i64 * 1_000_000);
    let old = kept.journal.ended_before(before).map_err(failed)?;
    let old: BTreeSet<String> = old.into_iter().collect();
    recovery.forget(old.iter().cloned());
    let mut unconfirmed = old.clone();
    let decoder = recovery.decoder();
    let decode = |bytes: &[u8]| decoder.decode(bytes);
    let each = |number: u64, at: i64, decoded: DecodedRecord| {
        recovery.skip_to(number);
        let look = |record: &Record| {
            if let Record::Ended { session, .. } = record
                && at < before
            {
                unconfirmed.remove(&**session);
            }
            learned.look(record);
        };
        recovery.replay_decoded(decoded, look).map(drop)
    };
    let replayed = kept.journal.replay_decoded(kept.noted, decode, each).map_err(failed)?;
    // Only the records are bound by the key; a column that tells of an end that never was is forged.
    if !unconfirmed.is_empty() {
        let why = "a column says that a session ended, and no record does".into();
        return Err(failed(Damage { number: 0, why }));
    }
    let trust = kept.trust(&replayed, &start, key_is_new, now).map_err(failed)?;
    let (noted, is_old) = (kept.noted, trust.clock == ClockTrust::OldCopy);
    let (gone, calls) = kept
        .journal
        .calls(noted.filter(|_| !is_old))
        .map_err(failed)?
        .into_iter()
        .partition::<Vec<_>, _>(|call| old.contains(&call.session));
    let engine = recovery.finish(trust.clock);
    // From here on the journal changes: it is no longer the one of a hub that stopped in good order.
    // What an old copy means has to be durable first; the journal's thread notes it then.
    if !is_old {
        kept.note_head()?;
    }
    start.trust = trust.words(&replayed);
    let noted = kept.journal.note_start(&start).and_then(|()| {
        let forget = gone.into_iter().map(|call| Note::ForgetCalls { session: call.session });
        kept.journal.keep(&[Unit { entries: Vec::new(), notes: forget.collect() }])
    });
    noted.map_err(|fault| cannot_write(&path, fault))?;
    if !is_old {
        kept.note_head()?;
    }
    kept.note_place()?;
    let durable = replayed.records;
    let known = learned.known(&engine, calls, durable, now);
    Ok(Recovered { engine, known, trust, to_compact: replayed.to_remove > 0 })
}

fn cannot_write(path: &std::path::Path, fault: JournalFault) -> Fault {
    Fault::file(path, fault.to_string(), "Free some space, or check the disk.")
}

/// What records say that the hub itself needs.
struct Learned {
    known: RecoveredState,
    sessions: BTreeMap<SessionId, Principal>,
    /// The user of every account that ever opened a session.
    users: BTreeMap<Arc<str>, Arc<str>>,
    /// The call of every approval that was spent.
    calls: BTreeMap<RequestId, ToolCallId>,
}

impl Learned {
    fn new(limits: &Limits) -> Self {
        let known = RecoveredState::new(limits);
        let (sessions, users, calls) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { known, sessions, users, calls }
    }

    fn look(&mut self, record: &Record) {
        match record {
            Record::Opened(opened) => {
                let (name, user) = (opened.agent.clone(), opened.user.clone());
                let agent = Principal { name, role: Role::Agent, user };
                let Ok(session) = SessionId::parse(&opened.session) else { return };
                if let Some(id) = agent_id_of(&opened.producer) {
                    self.known.producers.opened(session, &account(&agent), &id);
                }
                let account = account_of(&agent.name);
                if !self.users.contains_key(account) {
                    self.users.insert(account.into(), agent.user.clone());
                }
                self.sessions.insert(session, agent);
            }
            Record::Claimed { agent, user, id } => {
                let agent =
                    Principal { name: agent.clone(), role: Role::Agent, user: user.clone() };
                self.known.producers.claimed(&agent, id);
            }
            Record::Administered { act, what, to, .. } => match (&**act, new_owner(to)) {
                ("released", _) => self.known.producers.release(what),
                ("handed_over", Some(to)) => self.known.producers.hand_over(what, &to),
                _ => {}
            },
            Record::Ended { session, .. } => {
                if let Ok(session) = SessionId::parse(session) {
                    self.sessions.remove(&session);
                    self.known.producers.ended(session);
                    self.known.owed.ended(session);
                }
            }
            Record::Owed { session, rules } => {
                if let Ok(session) = SessionId::parse(session) {
                    self.known.owed.set(session, rules.iter().cloned().collect());
                }
            }
            Record::Invoked { request, call, .. } => {
                if let Ok(call) = ToolCallId::parse(call) {
                    self.calls.insert(*request, call);
                }
            }
            _ => {}
        }
    }

    fn known(
        self,
        engine: &Engine,
        mut calls: Vec<KeptCall>,
        durable: u64,
        now: Now,
    ) -> RecoveredState {
        let Self { mut known, sessions, users, calls: spent } = self;
        known.durable = durable;
        for (request, call) in spent {
            if engine.status(request) != Some(Status::Invoked) {
                continue;
            }
            if let Some((session, arguments)) =
                engine.session_of(request).zip(engine.spent(request))
            {
                known.granted.insert(session, request, Grant { call, arguments });
            }
        }
        known.agents = Agents::recovered(sessions);
        // Newer events take the place of older ones.
        calls.sort_by_key(|call| sequence_number(&call.answer));
        let mut over = BTreeSet::new();
        for call in calls {
            let Ok(session) = SessionId::parse(&call.session) else { continue };
            let KeptCall { agent, path, key, body, status, answer, .. } = call;
            let mut agent = Principal::new(&agent, Role::Agent, "");
            let Some(user) = users.get(account_of(&agent.name)) else { continue };
            agent.user = user.clone();
            let (is_event, kept) = (path.ends_with("/events"), KeptAnswer { body, status, answer });
            let (key, open) = ((agent.name.clone(), path, key), known.agents.has(session));
            if is_event && open {
                known.keys.remember_event(&agent, key, session, kept, true);
            } else {
                known.keys.remember(&agent, key, session, kept);
            }
            if !open {
                over.insert(session);
            }
        }
        over.into_iter().for_each(|session| known.keys.ended(session, now.boot));
        known
    }
}

/// The number of the event that an answer names; 0 if it names none.
fn sequence_number(answer: &str) -> u64 {
    EventPosted::parse(answer.as_bytes()).map_or(0, |posted| posted.sequence_number)
}
