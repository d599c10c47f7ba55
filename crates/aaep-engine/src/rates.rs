//! How fast replies come, and what is held of those beyond the rate (D5, D40).
//!
//! The rate bounds what replies leave behind, never whether one counts. Within it a reply that does
//! not count leaves a record of its own. Beyond it such replies are only counted, and one record for
//! each principal and second says how many there were. Whatever becomes of a reply beyond the rate,
//! its answer waits for that record, so the time of the answer tells nothing (I6).

use aaep_types::SubscriptionId;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::clock::Boot;

/// How long replies are counted together.
const WINDOW_SECONDS: u64 = 1;

/// How many connections of one principal may reply at the full rate at once.
const CONNECTIONS_AT_FULL_RATE: u32 = 4;

/// Replies that came within one window.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    replies: u32,
    /// The window before was beyond the rate: a flood does not get a fresh allowance every second.
    flooded: bool,
}

impl Count {
    fn add(&mut self, most: u32) -> bool {
        self.replies = self.replies.saturating_add(1);
        !self.flooded && self.replies <= most
    }

    fn next(self, most: u32) -> Self {
        Self { replies: 0, flooded: self.replies > most }
    }
}

/// The replies of one principal.
#[derive(Debug, Default)]
struct Window {
    until: Boot,
    all: Count,
    /// By the principal's own subscriptions; replies that name none share the entry `None`.
    connections: BTreeMap<Option<SubscriptionId>, Count>,
    /// Of the replies beyond the rate, those that did not count.
    ignored: u64,
    /// The calls that brought them, all of them.
    held: Vec<u64>,
}

/// What the record of a window says.
#[derive(Debug)]
pub(crate) struct Flood {
    pub(crate) by: Arc<str>,
    pub(crate) ignored: u64,
    /// The calls to answer once the record is durable.
    pub(crate) held: Vec<u64>,
}

/// The replies of every principal.
#[derive(Debug, Default)]
pub(crate) struct ReplyRates {
    windows: BTreeMap<Arc<str>, Window>,
    ends: BTreeSet<(Boot, Arc<str>)>,
    /// The windows among them that hold answers.
    due: BTreeSet<(Boot, Arc<str>)>,
}

impl ReplyRates {
    /// Counts a reply; whether it is within the rate of its connection and its principal.
    pub(crate) fn count(
        &mut self,
        by: &Arc<str>,
        connection: Option<SubscriptionId>,
        most: u32,
        now: Boot,
    ) -> bool {
        let window = self.windows.entry(by.clone()).or_insert_with(|| {
            let until = now.after_seconds(WINDOW_SECONDS);
            self.ends.insert((until, by.clone()));
            Window { until, ..Window::default() }
        });
        let all = window.all.add(most.saturating_mul(CONNECTIONS_AT_FULL_RATE));
        let connection = window.connections.entry(connection).or_default().add(most);
        all && connection
    }

    /// Whether a principal's replies can be counted: there is room, or it has an entry.
    pub(crate) fn has_room_for(&self, by: &str, most: usize) -> bool {
        self.windows.len() < most || self.windows.contains_key(by)
    }

    /// Holds the answer to a reply beyond the rate.
    pub(crate) fn hold(&mut self, by: &Arc<str>, call: u64, ignored: bool) {
        let Some(window) = self.windows.get_mut(by) else { return };
        window.ignored += u64::from(ignored);
        window.held.push(call);
        if window.held.len() == 1 {
            self.due.insert((window.until, by.clone()));
        }
    }

    /// How many answers are held.
    pub(crate) fn held(&self) -> usize {
        self.windows.values().map(|window| window.held.len()).sum()
    }

    /// When held answers are to be let go.
    pub(crate) fn next_due(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Ends the next window that is over. A principal beyond the rate begins the next one with
    /// nothing left; one within it is forgotten.
    pub(crate) fn end_window(&mut self, most: u32, now: Boot) -> Option<Option<Flood>> {
        self.ends.first().filter(|(until, _)| *until <= now)?;
        let (until, by) = self.ends.pop_first()?;
        self.due.remove(&(until, by.clone()));
        let Window { all, connections, ignored, held, .. } = self.windows.remove(&by)?;
        let flood = (!held.is_empty()).then(|| Flood { by: by.clone(), ignored, held });
        let all = all.next(most.saturating_mul(CONNECTIONS_AT_FULL_RATE));
        let connections: BTreeMap<_, _> = connections
            .into_iter()
            .map(|(connection, count)| (connection, count.next(most)))
            .filter(|(_, count)| count.flooded)
            .collect();
        if all.flooded || !connections.is_empty() {
            let until = until.after_seconds(WINDOW_SECONDS);
            self.ends.insert((until, by.clone()));
            let window = Window { until, all, connections, ..Window::default() };
            self.windows.insert(by, window);
        }
        Some(flood)
    }
}
