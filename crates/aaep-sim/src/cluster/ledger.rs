//! The shard's requests as one node knows them. It stands for the engine: small, and with the same
//! duties towards log, clock and people.

use std::collections::{BTreeMap, BTreeSet};

use aaep_store::Entry;

/// Time in microseconds, on whatever clock.
pub(super) type Micros = i64;

/// After a takeover answers stop counting so long before the deadline, and silence counts so long
/// after it: two nodes' clocks may be that far apart.
pub(super) const MARGIN: Micros = 2_000_000;

/// Numbers that a new owner leaves out for each epoch: those before may have told them without a
/// record, also several in a row who left none.
const SKIPPED: u64 = 1_000;

/// Who says something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    /// The person whose shard it is.
    User,
    /// Somebody else.
    Stranger,
    /// A node of the cluster. None ever answers for itself.
    Node,
}

/// How a request ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestEnd {
    Accepted(Who),
    Rejected(Who),
    TimedOut,
    /// The log was an old copy.
    Withdrawn,
}

/// What the log keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fact {
    Asked { request: u32, deadline: Micros },
    Resolved { request: u32, outcome: RequestEnd },
    Invoked { request: u32 },
}

/// A fact with its number in the log and the number of the event that tells it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) number: u64,
    pub(super) event: u64,
    pub(super) fact: Fact,
}

impl Kept {
    pub(super) fn entry(&self) -> Entry {
        let who = |who: Who| who as u8;
        let (kind, request, detail, deadline) = match self.fact {
            Fact::Asked { request, deadline } => (1, request, 0, deadline),
            Fact::Resolved { request, outcome } => match outcome {
                RequestEnd::Accepted(by) => (2, request, who(by), 0),
                RequestEnd::Rejected(by) => (3, request, who(by), 0),
                RequestEnd::TimedOut => (4, request, 0, 0),
                RequestEnd::Withdrawn => (5, request, 0, 0),
            },
            Fact::Invoked { request } => (6, request, 0, 0),
        };
        let mut bytes = vec![kind, detail];
        bytes.extend(request.to_le_bytes());
        bytes.extend(self.event.to_le_bytes());
        bytes.extend(deadline.to_le_bytes());
        Entry { number: self.number, bytes }
    }

    pub(super) fn read(entry: &Entry) -> Option<Self> {
        let (&[kind, detail], rest) = entry.bytes.split_first_chunk::<2>()?;
        let (request, rest) = rest.split_first_chunk::<4>()?;
        let (event, rest) = rest.split_first_chunk::<8>()?;
        let (deadline, rest) = rest.split_first_chunk::<8>()?;
        let who = [Who::User, Who::Stranger, Who::Node].get(usize::from(detail)).copied()?;
        let request = u32::from_le_bytes(*request);
        let resolved = |outcome| Fact::Resolved { request, outcome };
        let fact = match kind {
            1 => Fact::Asked { request, deadline: i64::from_le_bytes(*deadline) },
            2 => resolved(RequestEnd::Accepted(who)),
            3 => resolved(RequestEnd::Rejected(who)),
            4 => resolved(RequestEnd::TimedOut),
            5 => resolved(RequestEnd::Withdrawn),
            6 => Fact::Invoked { request },
            _ => return None,
        };
        let event = u64::from_le_bytes(*event);
        rest.is_empty().then_some(Self { number: entry.number, event, fact })
    }
}

#[derive(Clone, Copy, Debug)]
struct Open {
    /// On the node's own clock that never jumps.
    deadline: Micros,
    /// The deadline was read off a clock on the wall.
    margin: Micros,
}

/// How a node's clocks stand.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clocks {
    pub(super) boot: Micros,
    pub(super) wall: Micros,
}

#[derive(Debug, Default)]
pub(super) struct Ledger {
    open: BTreeMap<u32, Open>,
    /// Accepted and not run.
    approved: BTreeSet<u32>,
    number: u64,
    event: u64,
}

impl Ledger {
    /// From what the log says. Of an old copy, which lacks numbers up to the one that is given, nothing
    /// is left open; what is withdrawn is to be kept.
    pub(super) fn recover(
        log: &[Kept],
        clocks: Clocks,
        old_copy: Option<u64>,
        epoch: u64,
    ) -> (Self, Vec<Kept>) {
        let mut ledger = Self::default();
        for kept in log {
            (ledger.number, ledger.event) = (kept.number, ledger.event.max(kept.event));
            match kept.fact {
                Fact::Asked { request, deadline } => {
                    let deadline = clocks.boot + (deadline - clocks.wall);
                    ledger.open.insert(request, Open { deadline, margin: MARGIN });
                }
                Fact::Resolved { request, outcome } => {
                    ledger.open.remove(&request);
                    ledger.approved.remove(&request);
                    if matches!(outcome, RequestEnd::Accepted(_)) {
                        ledger.approved.insert(request);
                    }
                }
                Fact::Invoked { request } => {
                    ledger.approved.remove(&request);
                }
            }
        }
        ledger.event = ledger.event.max(old_copy.unwrap_or_default());
        ledger.event += SKIPPED * epoch;
        let mut withdrawn = Vec::new();
        if old_copy.is_some() {
            let open = std::mem::take(&mut ledger.open).into_keys();
            let all: Vec<u32> = open.chain(std::mem::take(&mut ledger.approved)).collect();
            for request in all {
                let outcome = RequestEnd::Withdrawn;
                withdrawn.push(ledger.keep(Fact::Resolved { request, outcome }));
            }
        }
        (ledger, withdrawn)
    }

    fn keep(&mut self, fact: Fact) -> Kept {
        self.number += 1;
        Kept { number: self.number, event: self.progress(), fact }
    }

    /// The number of an event that is told and not kept.
    pub(super) fn progress(&mut self) -> u64 {
        self.event += 1;
        self.event
    }

    pub(super) fn ask(&mut self, clocks: Clocks, timeout: Micros) -> Kept {
        // Named for the event that tells of it.
        let request = self.event as u32 + 1;
        self.open.insert(request, Open { deadline: clocks.boot + timeout, margin: 0 });
        self.keep(Fact::Asked { request, deadline: clocks.wall + timeout })
    }

    /// The highest number that was told, or was left out.
    pub(super) fn told(&self) -> u64 {
        self.event
    }

    /// Requests that wait, and those that may run.
    pub(super) fn requests(&self) -> (Vec<u32>, Vec<u32>) {
        (self.open.keys().copied().collect(), self.approved.iter().copied().collect())
    }

    /// What becomes of an answer, if it counts.
    pub(super) fn reply(&mut self, request: u32, by: Who, yes: bool, boot: Micros) -> Option<Kept> {
        let open = self.open.get(&request)?;
        if by == Who::Stranger || boot >= open.deadline - open.margin {
            return None;
        }
        self.open.remove(&request);
        let outcome = if yes { RequestEnd::Accepted(by) } else { RequestEnd::Rejected(by) };
        if yes {
            self.approved.insert(request);
        }
        Some(self.keep(Fact::Resolved { request, outcome }))
    }

    /// What silence has decided by now.
    pub(super) fn due(&mut self, boot: Micros) -> Vec<Kept> {
        let late = |open: &Open| boot >= open.deadline + open.margin;
        let due: Vec<u32> =
            self.open.iter().filter(|(_, open)| late(open)).map(|(request, _)| *request).collect();
        let resolve = |request: u32| {
            self.open.remove(&request);
            self.keep(Fact::Resolved { request, outcome: RequestEnd::TimedOut })
        };
        due.into_iter().map(resolve).collect()
    }

    /// Runs something that was accepted, once.
    pub(super) fn invoke(&mut self, request: u32) -> Option<Kept> {
        self.approved.remove(&request).then(|| self.keep(Fact::Invoked { request }))
    }
}
