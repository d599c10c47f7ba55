//! What waits to be told: critical first, the rest at a pace that can be heard (T28, S3).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::bounds::Bounds;
use super::bucket::Bucket;
use crate::happening::{Agent, Happening};

/// What goes first when there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Rank {
    /// The next one says more.
    Progress,
    /// What happens in between.
    Other,
    /// The agent's text.
    Text,
    /// A session's last state (T8).
    State,
    /// Starts and ends, and connections.
    Milestone,
}

/// Names something that waits in its lane.
pub(super) type Place = u64;

#[derive(Debug)]
struct Item {
    happening: Happening,
    rank: Rank,
    bytes: usize,
}

/// What waits for one connection, critical events aside.
#[derive(Debug)]
pub(super) struct Lane {
    items: BTreeMap<Place, Item>,
    /// The same, least important and oldest first.
    ranks: BTreeSet<(Rank, Place)>,
    bytes: usize,
    bucket: Bucket,
}

/// Something that was left out: whose it was, and its text, if it was text.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) agent: Option<Agent>,
    pub(super) text_of: Option<(Arc<str>, Arc<str>)>,
}

impl Lane {
    pub(super) fn new(bounds: &Bounds, now: u64) -> Self {
        let bucket = Bucket::new(bounds.events_per_second, bounds.burst, now);
        Self { items: BTreeMap::new(), ranks: BTreeSet::new(), bytes: 0, bucket }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, place: Place, happening: Happening, rank: Rank) {
        let bytes = size(&happening);
        self.bytes += bytes;
        self.items.insert(place, Item { happening, rank, bytes });
        self.ranks.insert((rank, place));
    }

    /// Takes out something that waits; `None` if it was told already.
    pub(super) fn remove(&mut self, place: Place) -> Option<LeftOut> {
        let item = self.items.remove(&place)?;
        self.ranks.remove(&(item.rank, place));
        self.bytes -= item.bytes;
        Some(left_out(&item.happening))
    }

    // enforces: S3, T8
    /// Leaves something out if there is too much: the least important first, of that the oldest.
    pub(super) fn thin(&mut self, bounds: &Bounds) -> Option<LeftOut> {
        if self.items.len() <= bounds.waiting && self.bytes <= bounds.waiting_bytes {
            return None;
        }
        let &(_, place) = self.ranks.first()?;
        let left_out = self.remove(place)?;
        if let Some(output) = &left_out.text_of {
            self.mark_gap(place, output);
        }
        Some(left_out)
    }

    /// The text that follows in the same output says that something is missing before it.
    fn mark_gap(&mut self, after: Place, output: &(Arc<str>, Arc<str>)) {
        for (_, item) in self.items.range_mut(after..) {
            if let Happening::Text { session_id, output_id, after_gap, .. } = &mut item.happening
                && (&*session_id, &*output_id) == (&output.0, &output.1)
            {
                *after_gap = true;
                return;
            }
        }
    }

    /// Whether text of this output waits.
    pub(super) fn has_text(&self, output: &(Arc<str>, Arc<str>)) -> bool {
        self.items.values().any(|item| {
            matches!(&item.happening, Happening::Text { session_id, output_id, .. }
                if (session_id, output_id) == (&output.0, &output.1))
        })
    }

    /// The next, if it may come now.
    pub(super) fn pop(&mut self, now: u64) -> Option<Happening> {
        if self.items.is_empty() || !self.bucket.take(now) {
            return None;
        }
        let (place, item) = self.items.pop_first()?;
        self.ranks.remove(&(item.rank, place));
        self.bytes -= item.bytes;
        Some(item.happening)
    }

    /// When the next may come, if it may not now.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        self.bucket.next_at(now).filter(|_| !self.items.is_empty())
    }
}

/// What cannot wait, whatever connection it came by.
#[derive(Debug, Default)]
pub(super) struct Critical(VecDeque<(Place, Happening)>);

impl Critical {
    pub(super) fn push(&mut self, place: Place, happening: Happening) {
        self.0.push_back((place, happening));
    }

    pub(super) fn pop(&mut self) -> Option<Happening> {
        self.0.pop_front().map(|(_, happening)| happening)
    }

    /// Takes out something that waits; false if it was told already.
    pub(super) fn remove(&mut self, place: Place) -> bool {
        let before = self.0.len();
        self.0.retain(|(other, _)| *other != place);
        self.0.len() < before
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

fn left_out(happening: &Happening) -> LeftOut {
    match happening {
        Happening::Text { agent, session_id, output_id, .. } => LeftOut {
            agent: Some(agent.clone()),
            text_of: Some((session_id.clone(), output_id.clone())),
        },
        Happening::Event { agent, .. } => LeftOut { agent: Some(agent.clone()), text_of: None },
        _ => LeftOut { agent: None, text_of: None },
    }
}

fn size(happening: &Happening) -> usize {
    const SMALL: usize = 128;
    SMALL
        + match happening {
            Happening::Event { json, .. } => json.len(),
            Happening::Text { text, .. } => text.len(),
            _ => 0,
        }
}
