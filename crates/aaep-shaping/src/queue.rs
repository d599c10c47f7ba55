//! What waits for budget, in order, how it is merged, and how much may wait.

use aaep_types::SessionId;
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::sync::Arc;

use crate::calls::{self, Calls};
use crate::prepared::Prepared;
use crate::shaper::Delivery;
use crate::text::Span;
use crate::time::Mono;

/// Something that waits.
#[derive(Debug)]
pub(crate) enum Item {
    /// Never merged.
    Whole(Arc<Prepared>),
    /// Sent before and perhaps not heard: it goes out as it was.
    Resent(Delivery),
    /// The latest of some state changes, and the state that the first of them left.
    State { from: Option<Box<str>>, last: Arc<Prepared> },
    /// One end of a tool call; its completion may stand for other calls.
    Tool { event: Arc<Prepared>, calls: Option<Box<Calls>> },
    /// The latest progress.
    Progress(Arc<Prepared>),
    /// Text that has reached a boundary.
    Text(Span),
}

#[derive(Debug)]
pub(crate) struct Entry {
    pub session: SessionId,
    pub item: Item,
    /// When it may go at the earliest.
    pub due: Mono,
}

impl Entry {
    fn weight(&self) -> usize {
        match &self.item {
            Item::Whole(event) | Item::Progress(event) | Item::Tool { event, .. } => event.weight(),
            Item::Resent(delivery) => delivery.event.weight(),
            Item::State { last, .. } => last.weight(),
            Item::Text(span) => span.weight(),
        }
    }

    /// Takes the place of an older entry of its kind, and is due when that one was.
    fn absorb(&mut self, older: Entry, text_between: bool) {
        self.due = self.due.min(older.due);
        if let (Item::State { from: chain, .. }, Item::State { from, last }) =
            (&mut self.item, older.item)
            && !text_between
        {
            // T7: the chain goes on from where the older one began. Where text came in between it
            // implied a state of its own (D35), which this one leaves.
            *chain = from.or_else(|| last.leaving().map(Into::into));
        }
    }
}

/// One session, or each for itself.
#[derive(Clone, Copy)]
pub(crate) enum Which {
    One(SessionId),
    Each,
}

impl Which {
    pub fn is(self, session: SessionId) -> bool {
        match self {
            Self::One(one) => one == session,
            Self::Each => true,
        }
    }
}

/// One queue for all sessions of a subscription: first come, first served.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    entries: VecDeque<Entry>,
    bytes: usize,
}

impl Queue {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn bytes(&self) -> usize {
        self.bytes
    }

    pub fn push(&mut self, session: SessionId, item: Item, due: Mono) {
        let entry = Entry { session, item, due };
        self.bytes += entry.weight();
        self.entries.push_back(entry);
    }

    /// Puts what another queue holds behind what this one does.
    pub fn append(&mut self, mut other: Queue) {
        self.entries.append(&mut other.entries);
        self.bytes += other.bytes;
    }

    /// Nothing of a session waits longer than what comes after it: order is kept.
    pub fn settle(&mut self, which: Which) {
        // enforces: I19
        let mut soonest = BTreeMap::new();
        for entry in self.entries.iter_mut().rev().filter(|entry| which.is(entry.session)) {
            let due = soonest.entry(entry.session).or_insert(entry.due);
            entry.due = entry.due.min(*due);
            *due = entry.due;
        }
    }

    /// Whether anything may go now.
    pub fn is_due(&self, now: Mono) -> bool {
        self.entries.iter().any(|entry| entry.due <= now)
    }

    /// Takes the first that may go now.
    pub fn pop_due(&mut self, now: Mono) -> Option<Item> {
        let index = self.entries.iter().position(|entry| entry.due <= now)?;
        let entry = self.entries.remove(index)?;
        if self.entries.is_empty() {
            // There are thousands of queues, and nearly all are empty nearly always.
            self.entries = VecDeque::new();
        }
        self.bytes -= entry.weight();
        Some(entry.item)
    }

    pub fn next_due(&self) -> Option<Mono> {
        self.entries.iter().map(|entry| entry.due).min()
    }

    /// Takes all of a session, in order.
    pub fn take_session(&mut self, session: SessionId) -> Vec<Item> {
        let mut taken = Vec::new();
        let entries = std::mem::take(&mut self.entries);
        for entry in entries {
            if entry.session == session {
                self.bytes -= entry.weight();
                taken.push(entry.item);
            } else {
                self.entries.push_back(entry);
            }
        }
        taken
    }

    pub fn sessions(&self) -> impl Iterator<Item = SessionId> {
        self.entries.iter().map(|entry| entry.session)
    }

    /// Merges what waits for a session, or for each: one of the tool calls that have both ends here,
    /// the latest progress, the latest state, and text that follows text. Starts, ends and open calls
    /// stay, and nothing is moved across them but that later progress replaces earlier.
    pub fn coalesce(&mut self, which: Which) {
        // enforces: H17, T10, D38
        let mut slots: Vec<Option<Entry>> =
            std::mem::take(&mut self.entries).into_iter().map(Some).collect();
        calls::merge(&mut slots, which);
        merge_states_and_progress(&mut slots, which);
        join_texts(&mut slots, which);
        self.entries = slots.into_iter().flatten().collect();
        self.bytes = self.entries.iter().map(Entry::weight).sum();
        self.settle(which);
    }
}

/// What of a session was met on the way back.
#[derive(Default)]
struct Met {
    progress: Option<usize>,
    state: Option<usize>,
    text_between: bool,
}

/// Backwards, so that each entry meets what replaces it.
fn merge_states_and_progress(slots: &mut [Option<Entry>], which: Which) {
    let mut sessions: BTreeMap<SessionId, Met> = BTreeMap::new();
    for index in (0..slots.len()).rev() {
        let Some(entry) = slots[index].take_if(|entry| which.is(entry.session)) else { continue };
        let met = sessions.entry(entry.session).or_default();
        let newer: Option<usize> = match entry.item {
            Item::Whole(_) | Item::Resent(_) | Item::Tool { .. } => {
                met.state = None;
                None
            }
            Item::Text(_) => {
                met.text_between = true;
                None
            }
            Item::Progress(_) => {
                let newer = met.progress;
                met.progress = newer.or(Some(index));
                newer
            }
            Item::State { .. } => {
                let newer = met.state;
                if newer.is_none() {
                    (met.state, met.text_between) = (Some(index), false);
                }
                newer
            }
        };
        match newer.and_then(|at| slots[at].as_mut()) {
            Some(newer) => newer.absorb(entry, met.text_between),
            None => slots[index] = Some(entry),
        }
    }
}

/// Forwards; only progress may stand between two texts that become one.
fn join_texts(slots: &mut [Option<Entry>], which: Which) {
    let mut sessions: BTreeMap<SessionId, usize> = BTreeMap::new();
    for index in 0..slots.len() {
        let Some(mut entry) = slots[index].take_if(|entry| which.is(entry.session)) else {
            continue;
        };
        let session = entry.session;
        match &mut entry.item {
            Item::Text(span) => {
                if let Some(at) = sessions.insert(session, index)
                    && let Some(Entry { item: Item::Text(first), due, .. }) = slots[at].take()
                {
                    match span.join_after(first) {
                        None => entry.due = entry.due.min(due),
                        Some(first) => {
                            slots[at] = Some(Entry { session, item: Item::Text(first), due });
                        }
                    }
                }
            }
            Item::Progress(_) => {}
            Item::Whole(_) | Item::Resent(_) | Item::State { .. } | Item::Tool { .. } => {
                sessions.remove(&session);
            }
        }
        slots[index] = Some(entry);
    }
}

/// How much one subscription may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLimits {
    /// Events that wait for budget or to be fetched.
    pub max_events: usize,
    /// Bytes of all held events as they were emitted.
    pub max_bytes: usize,
    /// When so many events wait, they are merged (D38).
    pub merge_from: usize,
    /// How many seconds' budget may be owed for what could not wait (D38).
    pub max_debt_seconds: u32,
}

impl Default for HeldLimits {
    /// 1,024 events, 4 MiB; merged as soon as two wait; a second's budget.
    fn default() -> Self {
        Self { max_events: 1024, max_bytes: 4 << 20, merge_from: 2, max_debt_seconds: 1 }
    }
}

/// A subscription holds more than it may, even merged: close it and record why (I4, I22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Held events.
    pub events: usize,
    /// Held bytes.
    pub bytes: usize,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The subscriber is too slow: {} events of {} bytes wait for it, more than it may hold. \
             Subscribe again; nothing that is still pending is lost.",
            self.events, self.bytes
        )
    }
}

impl std::error::Error for Overflow {}
