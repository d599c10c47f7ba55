//! Which records may be erased: only what no restart needs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use aaep_engine::{Erasure, Record, RequestId};

use super::{Bad, StoredRow, verify_each};
use crate::chain::ChainKey;
use crate::head::Noted;
use crate::sqlite::Reader;
use crate::sqlite::gone::Runs;

/// Which records are to be erased.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Which<'a> {
    /// Those of sessions whose last record was written before this time, in microseconds since 1970,
    /// and older ones that belong to no session.
    Before(i64),
    /// The oldest, until this share of all is left, in percent.
    AllBut(u8),
    /// Those of sessions of this user, and replies of theirs that did not count.
    OfUser(&'a str),
}

/// What is to be erased. All of it was verified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Why.
    pub why: Erasure,
    /// The first and the last record of each run, in order.
    pub runs: Vec<(u64, u64)>,
    /// How many records these are.
    pub records: u64,
    /// The sessions that they belong to.
    pub sessions: Vec<Arc<str>>,
    /// Those of them of which calls are still kept.
    pub with_calls: Vec<Arc<str>>,
    /// Sessions that should go, too, and are still needed: they are open, or ended less than a day ago.
    pub still_needed: u64,
}

/// What is known of a session.
#[derive(Default)]
struct Session {
    user: Option<Arc<str>>,
    numbers: Vec<u64>,
    bytes: u64,
    last_at: i64,
    ended: bool,
}

/// A record of no session.
struct Lone {
    number: u64,
    at: i64,
    what: Loose,
}

enum Loose {
    /// A reply, or many, that did not count; who sent it.
    Reply(Arc<str>),
    /// An id of an agent of this user.
    Claim(Arc<str>),
    Restart,
}

#[derive(Default)]
struct Seen {
    sessions: BTreeMap<Arc<str>, Session>,
    requests: BTreeMap<RequestId, Arc<str>>,
    lone: Vec<Lone>,
    /// Who decided in sessions of which users.
    deciders: BTreeMap<Arc<str>, BTreeSet<Arc<str>>>,
    bytes: u64,
}

// enforces: S13
/// Finds what may be erased. Of a session everything goes or nothing, and only if it ended before
/// `over_before` (in microseconds since 1970), which is a day ago or more: so what waits, what was
/// approved, what was spent and what an idempotency key still stands for is never touched. A kind of
/// record that this does not know stays.
pub fn plan(
    reader: &Reader,
    key: &ChainKey,
    noted: Option<Noted>,
    which: Which<'_>,
    over_before: i64,
) -> Result<Plan, Bad> {
    let mut seen = Seen::default();
    verify_each(reader, Some(key), noted, |kept, record| seen.look(kept, record))?;
    let failed = |error| Bad { number: 0, what: format!("calls cannot be read: {error}.") };
    let with_calls = reader.sessions_with_calls().map_err(failed)?;
    let mut plan = seen.plan(which, over_before);
    plan.with_calls = plan.sessions.clone();
    plan.with_calls.retain(|session| with_calls.contains(&**session));
    Ok(plan)
}

impl Seen {
    fn look(&mut self, kept: &StoredRow, record: &Record) {
        let number = kept.number.unsigned_abs();
        self.bytes += kept.bytes.len() as u64;
        let session = match record {
            Record::Opened(opened) => {
                let session = self.sessions.entry(opened.session.clone()).or_default();
                session.user = Some(opened.user.clone());
                Some(opened.session.clone())
            }
            Record::Asked(asked) => {
                self.requests.insert(asked.request, asked.session.clone());
                Some(asked.session.clone())
            }
            Record::Ended { session, .. }
            | Record::Called { session, .. }
            | Record::Completed { session, .. }
            | Record::Owed { session, .. } => Some(session.clone()),
            Record::Resolved { request, .. }
            | Record::Expired { request, .. }
            | Record::Invoked { request, .. }
            | Record::Extended { request, .. } => self.requests.get(request).cloned(),
            _ => None,
        };
        if let Some(id) = session {
            let session = self.sessions.entry(id).or_default();
            session.numbers.push(number);
            session.bytes += kept.bytes.len() as u64;
            session.last_at = session.last_at.max(kept.at);
            session.ended |= matches!(record, Record::Ended { .. });
            if let (Record::Resolved { by, .. }, Some(user)) = (record, &session.user) {
                self.deciders.entry(by.clone()).or_default().insert(user.clone());
            }
            return;
        }
        let what = match record {
            Record::Ignored { by, .. } | Record::Flooded { by, .. } => Loose::Reply(by.clone()),
            Record::Claimed { user, .. } => Loose::Claim(user.clone()),
            Record::Restarted { .. } => Loose::Restart,
            _ => return,
        };
        self.lone.push(Lone { number, at: kept.at, what });
    }

    fn plan(mut self, which: Which<'_>, over_before: i64) -> Plan {
        let wanted = |session: &Session| match which {
            Which::Before(at) => session.last_at < at,
            Which::AllBut(_) => true,
            Which::OfUser(user) => session.user.as_deref() == Some(user),
        };
        let mut ids: Vec<(i64, Arc<str>)> = Vec::new();
        let mut still_needed = 0;
        for (id, session) in self.sessions.iter().filter(|(_, session)| wanted(session)) {
            // Without its beginning or its end nobody knows what it is.
            if session.ended && session.user.is_some() && session.last_at < over_before {
                ids.push((session.last_at, id.clone()));
            } else {
                still_needed += 1;
            }
        }
        ids.sort_unstable();
        let mut before = match which {
            Which::Before(at) => at.min(over_before),
            _ => i64::MIN,
        };
        if let Which::AllBut(percent) = which {
            let mut excess = self.bytes - self.bytes / 100 * u64::from(percent.min(100));
            let enough = ids.iter().position(|(last_at, id)| {
                let enough = excess == 0;
                if !enough {
                    before = *last_at;
                    excess = excess.saturating_sub(self.sessions[id].bytes);
                }
                enough
            });
            ids.truncate(enough.unwrap_or(ids.len()));
        }
        let mut gone: Vec<u64> = Vec::new();
        let mut sessions = Vec::with_capacity(ids.len());
        for (_, id) in ids {
            gone.extend(self.sessions.remove(&id).into_iter().flat_map(|session| session.numbers));
            sessions.push(id);
        }
        self.lone(which, before, &mut gone);
        gone.sort_unstable();
        let why = match which {
            Which::Before(_) => Erasure::Age,
            Which::AllBut(_) => Erasure::Size,
            Which::OfUser(_) => Erasure::Person,
        };
        let records = gone.len() as u64;
        let (runs, with_calls) = (Runs::of(gone).into_vec(), Vec::new());
        Plan { why, runs, records, sessions, with_calls, still_needed }
    }

    /// Adds what belongs to no session. The sessions that stay are those that are left here.
    fn lone(&self, which: Which<'_>, before: i64, gone: &mut Vec<u64>) {
        let needed = self.sessions.values().filter_map(|session| session.numbers.first()).min();
        let is_theirs = |by: &Arc<str>, user: &str| {
            let users = self.deciders.get(by);
            **by == *user || users.is_some_and(|users| users.iter().all(|one| **one == *user))
        };
        for Lone { number, at, what } in &self.lone {
            let goes = match (which, what) {
                (Which::OfUser(user), Loose::Reply(by)) => is_theirs(by, user),
                (Which::OfUser(user), Loose::Claim(of)) => **of == *user,
                (Which::OfUser(_), Loose::Restart) => false,
                // The hub claims again what it still knows.
                (_, Loose::Reply(_) | Loose::Claim(_)) => *at < before,
                // It moved the numbers of every session that was open.
                (_, Loose::Restart) => *at < before && needed.is_none_or(|needed| number < needed),
            };
            if goes {
                gone.push(*number);
            }
        }
    }
}
