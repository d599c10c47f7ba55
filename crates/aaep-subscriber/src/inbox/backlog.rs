//! What waits to be told: critical first, the rest at a pace that can be heard (T28, S3).

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use super::bounds::Bounds;
use super::bucket::Bucket;
use crate::notification::{Agent, Notification};

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

/// Names something that waits in its backlog.
pub(super) type BacklogIndex = u64;

#[derive(Debug)]
struct Item {
    notification: Notification,
    rank: Rank,
    bytes: usize,
}

/// What waits for one connection, critical events aside.
#[derive(Debug)]
pub(super) struct Backlog {
    items: BTreeMap<BacklogIndex, Item>,
    /// The same, least important and oldest first.
    ranks: BTreeSet<(Rank, BacklogIndex)>,
    bytes: usize,
    /// How many pieces of each output's text wait.
    texts: BTreeMap<(Arc<str>, Arc<str>), usize>,
    bucket: Bucket,
}

/// Something that was left out: whose it was, and of which output, if it was text and no other text
/// of that output waits to say that something is missing.
#[derive(Debug)]
pub(super) struct LeftOut {
    pub(super) agent: Option<Agent>,
    pub(super) text_of: Option<(Arc<str>, Arc<str>)>,
}

impl Backlog {
    pub(super) fn new(bounds: &Bounds, now: u64) -> Self {
        let bucket = Bucket::new(bounds.events_per_second, bounds.burst, now);
        let (items, ranks, texts) = (BTreeMap::new(), BTreeSet::new(), BTreeMap::new());
        Self { items, ranks, bytes: 0, texts, bucket }
    }

    pub(super) fn len(&self) -> usize {
        self.items.len()
    }

    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, place: BacklogIndex, notification: Notification, rank: Rank) {
        let bytes = size(&notification);
        self.bytes += bytes;
        if let Some(output) = output_of(&notification) {
            *self.texts.entry(output).or_default() += 1;
        }
        self.items.insert(place, Item { notification, rank, bytes });
        self.ranks.insert((rank, place));
    }

    /// Takes out something that waits; `None` if it was told already.
    pub(super) fn remove(&mut self, place: BacklogIndex) -> Option<LeftOut> {
        let notification = self.take(place)?;
        let agent = match &notification {
            Notification::Text { agent, .. } | Notification::Event { agent, .. } => {
                Some(agent.clone())
            }
            _ => None,
        };
        Some(LeftOut { agent, text_of: output_of(&notification) })
    }

    fn take(&mut self, place: BacklogIndex) -> Option<Notification> {
        let item = self.items.remove(&place)?;
        self.ranks.remove(&(item.rank, place));
        self.bytes -= item.bytes;
        if let Some(output) = output_of(&item.notification)
            && let Some(count) = self.texts.get_mut(&output)
        {
            *count -= 1;
            if *count == 0 {
                self.texts.remove(&output);
            }
        }
        Some(item.notification)
    }

    // enforces: S3, T8
    /// Leaves something out if there is too much: the least important first, of that the oldest.
    pub(super) fn thin(&mut self, bounds: &Bounds) -> Option<LeftOut> {
        if self.items.len() <= bounds.waiting && self.bytes <= bounds.waiting_bytes {
            return None;
        }
        let &(_, place) = self.ranks.first()?;
        let mut left_out = self.remove(place)?;
        left_out.text_of = left_out.text_of.filter(|output| !self.mark_gap(place, output));
        Some(left_out)
    }

    /// The text that follows in the same output says that something is missing before it; false if
    /// none waits.
    fn mark_gap(&mut self, after: BacklogIndex, output: &(Arc<str>, Arc<str>)) -> bool {
        if !self.texts.contains_key(output) {
            return false;
        }
        for (_, item) in self.items.range_mut(after..) {
            if let Notification::Text { session_id, output_id, after_gap, .. } =
                &mut item.notification
                && (&*session_id, &*output_id) == (&output.0, &output.1)
            {
                *after_gap = true;
                return true;
            }
        }
        false
    }

    /// The next, if it may come now.
    pub(super) fn pop(&mut self, now: u64) -> Option<Notification> {
        let (&place, _) = self.items.first_key_value()?;
        if self.bucket.take(now) { self.take(place) } else { None }
    }

    /// When the next may come, if it may not now.
    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        self.bucket.next_at(now).filter(|_| !self.items.is_empty())
    }
}

/// What cannot wait, whatever connection it came by.
#[derive(Debug, Default)]
pub(super) struct Critical(VecDeque<(BacklogIndex, Notification)>);

impl Critical {
    pub(super) fn push(&mut self, place: BacklogIndex, notification: Notification) {
        self.0.push_back((place, notification));
    }

    pub(super) fn pop(&mut self) -> Option<Notification> {
        self.0.pop_front().map(|(_, notification)| notification)
    }

    /// Takes out something that waits; false if it was told already.
    pub(super) fn remove(&mut self, place: BacklogIndex) -> bool {
        let before = self.0.len();
        self.0.retain(|(other, _)| *other != place);
        self.0.len() < before
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

/// Whose text it is, if it is text: session and output.
fn output_of(notification: &Notification) -> Option<(Arc<str>, Arc<str>)> {
    match notification {
        Notification::Text { session_id, output_id, .. } => {
            Some((session_id.clone(), output_id.clone()))
        }
        _ => None,
    }
}

fn size(notification: &Notification) -> usize {
    const SMALL: usize = 128;
    SMALL
        + match notification {
            Notification::Event { json, .. } => json.len(),
            Notification::Text { text, .. } => text.len(),
            _ => 0,
        }
}
