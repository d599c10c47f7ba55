//! What must hold, judged with the true time and with everything that people were told.

use std::collections::{BTreeMap, BTreeSet};

use aaep_store::log::{Body, MemoryStore, ShardLog};

use super::ledger::{Fact, Kept, Micros, RequestEnd, Who};
use super::world::{SHARD, key};

/// What was found out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClusterViolation(pub String);

#[derive(Debug, Default)]
pub(super) struct Oracle {
    pub(super) found: Option<ClusterViolation>,
    /// What was told under each number; what is not kept is told by its author and a count.
    events: BTreeMap<u64, Result<Fact, (usize, u64)>>,
    outcomes: BTreeMap<u32, RequestEnd>,
    invoked: BTreeSet<u32>,
    deadlines: BTreeMap<u32, Micros>,
    /// What the user really said, yes or no, to which request.
    said: BTreeSet<(u32, bool)>,
    /// The log was restored from an old copy.
    pub(super) restored: bool,
    pub(super) told: u64,
}

/// Everything in the log, as somebody with the key reads it; the error is what cannot be believed.
pub(super) fn read(store: &MemoryStore) -> Result<Vec<Kept>, String> {
    store.spare(SHARD);
    let mut log = ShardLog::new(store.storage(SHARD), SHARD, "oracle", key(0));
    let mut all = Vec::new();
    log.catch_up(|entry| {
        if let Body::Units(units) = entry.body {
            all.extend(units.iter().flat_map(|unit| &unit.entries).filter_map(Kept::read));
        }
    })
    .map_err(|why| why.to_string())?;
    Ok(all)
}

impl Oracle {
    pub(super) fn demand(&mut self, holds: bool, what: impl FnOnce() -> String) {
        if !holds && self.found.is_none() {
            self.found = Some(ClusterViolation(what()));
        }
    }

    pub(super) fn asked(&mut self, request: u32, deadline: Micros) {
        self.deadlines.insert(request, deadline);
    }

    pub(super) fn user_said(&mut self, request: u32, yes: bool) {
        self.said.insert((request, yes));
    }

    /// A node decides. The clock is judged now, not when it is told.
    pub(super) fn decided(&mut self, kept: &Kept, now: Micros) {
        let Fact::Resolved { request, outcome } = kept.fact else { return };
        let Some(deadline) = self.deadlines.get(&request).copied() else { return };
        match outcome {
            RequestEnd::Accepted(by) | RequestEnd::Rejected(by) => {
                let yes = matches!(outcome, RequestEnd::Accepted(_));
                let lawful = by == Who::User && self.said.contains(&(request, yes));
                self.demand(lawful, || format!("request {request} was answered by {by:?}"));
                self.demand(now < deadline, || format!("request {request} was answered too late"));
            }
            RequestEnd::TimedOut => {
                self.demand(now >= deadline, || format!("request {request} timed out too soon"));
            }
            RequestEnd::Withdrawn => {}
        }
    }

    /// A node tells people what it kept.
    pub(super) fn tells(&mut self, kept: &Kept, log: &Result<Vec<Kept>, String>) {
        self.told += 1;
        let there = log.as_ref().is_ok_and(|log| log.contains(kept));
        self.demand(there, || format!("told of what is not in the log: {kept:?}"));
        self.numbered(kept.event, Ok(kept.fact));
        match kept.fact {
            Fact::Asked { .. } => {}
            Fact::Resolved { request, outcome } => {
                let before = self.outcomes.insert(request, outcome);
                let lawful = before.is_none_or(|before| before == outcome)
                    || self.restored && outcome == RequestEnd::Withdrawn;
                self.demand(lawful, || format!("request {request}: {before:?}, then {outcome:?}"));
            }
            Fact::Invoked { request } => {
                // The node that took the answer may have died before it told anybody; the log says so.
                let yes = |kept: &Kept| matches!(kept.fact, Fact::Resolved { request: of, outcome: RequestEnd::Accepted(_) } if of == request);
                let accepted = log.as_ref().is_ok_and(|log| log.iter().any(yes));
                self.demand(accepted, || format!("request {request} runs without a yes"));
                let first = self.invoked.insert(request);
                self.demand(first, || format!("request {request} runs twice"));
            }
        }
    }

    /// A node tells of progress that is kept nowhere.
    pub(super) fn tells_progress(&mut self, event: u64, node: usize, count: u64) {
        self.numbered(event, Err((node, count)));
    }

    fn numbered(&mut self, event: u64, what: Result<Fact, (usize, u64)>) {
        let before = self.events.insert(event, what);
        let same = before.is_none_or(|before| before == what);
        self.demand(same, || format!("event {event} is {before:?} and {what:?}"));
    }

    /// The log itself.
    pub(super) fn looks(&mut self, log: &Result<Vec<Kept>, String>) {
        let log = match log {
            Ok(log) => log,
            Err(why) => return self.demand(false, || why.clone()),
        };
        for (number, kept) in (1..).zip(log) {
            self.demand(kept.number == number, || format!("record {number} is {kept:?}"));
        }
        let mut resolved = BTreeSet::new();
        for kept in log {
            if let Fact::Resolved { request, outcome } = kept.fact {
                let first = resolved.insert(request);
                self.demand(first || outcome == RequestEnd::Withdrawn, || {
                    format!("request {request} is resolved twice in the log")
                });
            }
        }
    }
}
