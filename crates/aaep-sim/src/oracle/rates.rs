//! A second reading of the rate of replies (D40): which are beyond it, and when their answers leave.

use std::collections::BTreeMap;

use aaep_types::SubscriptionId;

use super::{Cause, Line, Oracle};
use crate::cast::Cast;

const WINDOW_MILLIS: u64 = 1000;

/// Replies within a second, and whether the second before was beyond the rate.
#[derive(Clone, Copy, Debug, Default)]
struct Count(u32, bool);

impl Count {
    fn add(&mut self, most: u32) -> bool {
        self.0 += 1;
        self.0 <= most && !self.1
    }

    fn next(self, most: u32) -> Self {
        Self(0, self.0 > most)
    }
}

/// The replies of one principal.
#[derive(Debug, Default)]
pub(crate) struct Pace {
    until: u64,
    all: Count,
    each: BTreeMap<Option<SubscriptionId>, Count>,
    flood: Flood,
}

/// Replies beyond the rate.
#[derive(Debug, Default)]
pub(crate) struct Flood {
    calls: Vec<u64>,
    /// How many of them do not count, at least and at most.
    ignored: (u64, u64),
}

impl Oracle {
    /// Ends the seconds that are over. What they held has to be on record as soon as the engine is
    /// told the time.
    pub(crate) fn end_paces(&mut self, now: u64) {
        let most = self.replies_per_second;
        for (peer, mut pace) in std::mem::take(&mut self.paces) {
            let mut lives = true;
            while pace.until <= now && lives {
                let flood = std::mem::take(&mut pace.flood);
                if !flood.calls.is_empty() {
                    self.floods.push((peer, flood));
                }
                pace.all = pace.all.next(4 * most);
                pace.each.values_mut().for_each(|count| *count = count.next(most));
                pace.each.retain(|_, count| count.1);
                pace.until += WINDOW_MILLIS;
                lives = pace.all.1 || !pace.each.is_empty();
            }
            if lives {
                self.paces.insert(peer, pace);
            }
        }
    }

    /// A message arrives; whether it is within the rate.
    pub(crate) fn arrives(&mut self, peer: usize, on: SubscriptionId, call: u64, cause: Cause) {
        let now = self.now;
        self.end_paces(now);
        let own = self.listener(on).filter(|listener| listener.principal == peer);
        let own = own.filter(|listener| !matches!(listener.line, Line::Closed(_))).map(|l| l.id);
        let most = self.replies_per_second;
        let until = now + WINDOW_MILLIS;
        let pace = self.paces.entry(peer).or_insert_with(|| Pace { until, ..Pace::default() });
        let all = pace.all.add(4 * most);
        let each = pace.each.entry(own).or_default().add(most);
        self.beyond = !(all && each);
        if self.beyond {
            pace.flood.calls.push(call);
            let (least, most) = match cause {
                Cause::Reply(verdict) if verdict.outcome.is_none() && verdict.more.is_none() => {
                    (1, 1)
                }
                Cause::Reply(verdict) if verdict.surely => (0, 0),
                _ => (0, 1),
            };
            pace.flood.ignored.0 += least;
            pace.flood.ignored.1 += most;
        }
    }

    /// The engine says how much came beyond the rate.
    pub(crate) fn flooded(&mut self, number: u64, by: &str, replies: u64, ignored: u64) {
        let named = |peer: usize| *Cast::NAMES[peer] == *by;
        let Some(at) = self.floods.iter().position(|(peer, _)| named(*peer)) else {
            return self.violated("D40", format!("a flood of {by} that was none"));
        };
        let (_, flood) = self.floods.remove(at);
        let (least, most) = flood.ignored;
        let right = replies == flood.calls.len() as u64 && (least..=most).contains(&ignored);
        self.demand(right, "D40", || {
            format!("{replies} replies, {ignored} ignored, and there were {flood:?}")
        });
        for call in flood.calls {
            if let Some(message) = self.messages.get_mut(&call) {
                message.0 = number;
            }
        }
    }

    /// I6: no answer waits for longer than its second.
    pub(crate) fn check_floods(&mut self) {
        let late = self.told_the_time && !self.floods.is_empty();
        self.demand(!late, "I6", || "answers were held for too long".into());
    }

    pub(crate) fn forget_paces(&mut self) {
        self.paces.clear();
        self.floods.clear();
    }
}
