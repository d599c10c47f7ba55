//! Tool calls that wait: of those that have both ends here, one is told, and it says how many there
//! were (decision D38).

use aaep_types::SessionId;
use std::collections::BTreeMap;

use crate::prepared::{Call, CallEnd};
use crate::queue::{Entry, Item, Which};

/// So many tools are named; there may be more.
const NAMED: usize = 3;

/// The calls that one of them stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Calls {
    count: u32,
    tools: Vec<Box<str>>,
}

impl Calls {
    fn one(call: &Call) -> Self {
        Self { count: 1, tools: vec![call.tool.clone()] }
    }

    fn add(&mut self, other: Calls) {
        self.count = self.count.saturating_add(other.count);
        for tool in other.tools {
            if !self.tools.contains(&tool) && self.tools.len() <= NAMED {
                self.tools.push(tool);
            }
        }
    }

    /// How many, and of which tools: `12 × read, search. `. Figures and names belong to no language,
    /// so the language that the event names stays the right one (decision D39).
    pub fn say(&self) -> Box<str> {
        let mut names = self.tools[..self.tools.len().min(NAMED)].join(", ");
        if self.tools.len() > NAMED {
            names.push_str(", …");
        }
        format!("{} × {names}. ", self.count).into()
    }
}

/// The calls of one session, as they are met.
#[derive(Default)]
struct Met {
    /// Where calls begin that have not ended yet.
    open: Vec<usize>,
    /// Both ends of the call that is told.
    told: Option<(usize, usize)>,
}

/// Leaves one of a session's whole calls: the last that failed, or else the last. A failure is never
/// hidden behind a success.
pub(crate) fn merge(slots: &mut [Option<Entry>], which: Which) {
    // enforces: D38, T15
    let mut sessions: BTreeMap<SessionId, Met> = BTreeMap::new();
    for index in 0..slots.len() {
        let Some(entry) = slots[index].as_ref().filter(|entry| which.is(entry.session)) else {
            continue;
        };
        let Some(call) = call(entry) else { continue };
        let met = sessions.entry(entry.session).or_default();
        if let CallEnd::Invoked { .. } = call.end {
            met.open.push(index);
            continue;
        }
        let Some(begins) = met.take_begin_of(call, slots) else { continue };
        if is(slots, begins, CallEnd::Invoked { told_alone: true }) {
            continue;
        }
        let Some(before) = met.told.replace((begins, index)) else { continue };
        let failed = |at| is(slots, at, CallEnd::Completed { failed: true });
        if failed(before.1) && !failed(index) {
            met.told = Some(before);
            stand_for(slots, before, (begins, index));
        } else {
            stand_for(slots, (begins, index), before);
        }
    }
}

impl Met {
    /// Takes the place where a call begins that ends with this. Without an id it is the only open one
    /// of its tool; with several it is ambiguous.
    fn take_begin_of(&mut self, ends: &Call, slots: &[Option<Entry>]) -> Option<usize> {
        let begins = |at: &usize| slots[*at].as_ref().and_then(call);
        let same = |call: &Call| match ends.id {
            Some(id) => call.id == Some(id),
            None => call.tool == ends.tool,
        };
        let mut found = (0..self.open.len()).filter(|at| begins(&self.open[*at]).is_some_and(same));
        let first = found.next()?;
        if found.next().is_some() {
            return None;
        }
        Some(self.open.remove(first))
    }
}

fn call(entry: &Entry) -> Option<&Call> {
    match &entry.item {
        Item::Tool { event, .. } => event.call(),
        _ => None,
    }
}

fn is(slots: &[Option<Entry>], at: usize, end: CallEnd) -> bool {
    slots[at].as_ref().and_then(call).is_some_and(|call| call.end == end)
}

/// One call is told in place of another, which is due no later for it.
fn stand_for(slots: &mut [Option<Entry>], told: (usize, usize), gone: (usize, usize)) {
    let begin = slots[gone.0].take();
    let Some(end) = slots[gone.1].take() else { return };
    let due = begin.map_or(end.due, |begin| begin.due.min(end.due));
    let Some(others) = calls_of(&end) else { return };
    for at in [told.0, told.1] {
        if let Some(entry) = &mut slots[at] {
            entry.due = entry.due.min(due);
        }
    }
    let Some(entry) = &mut slots[told.1] else { return };
    let Some(mut sum) = calls_of(entry) else { return };
    sum.add(others);
    if let Item::Tool { calls, .. } = &mut entry.item {
        *calls = Some(Box::new(sum));
    }
}

/// What a call's end stands for, itself included.
fn calls_of(end: &Entry) -> Option<Calls> {
    match &end.item {
        Item::Tool { calls: Some(calls), .. } => Some((**calls).clone()),
        _ => call(end).map(Calls::one),
    }
}
