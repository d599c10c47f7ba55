//! What is not told is counted, and the count is told now and then (I19, S3).

use std::collections::BTreeMap;

use super::bounds::Bounds;
use crate::notification::{Agent, Notification, Silence};

#[derive(Debug, Default)]
struct Count {
    events: u64,
    /// Whether there are more, and nobody knows how many.
    unknown: bool,
    due: Option<u64>,
    told: Option<u64>,
}

/// The counts of all agents.
#[derive(Debug, Default)]
pub(super) struct Silences(BTreeMap<(Agent, u8), Count>);

const KINDS: [Silence; 3] = [Silence::Missing, Silence::TooMuch, Silence::Unreadable];

impl Silences {
    /// Counts events that are not told; `None`: nobody knows how many.
    pub(super) fn add(
        &mut self,
        agent: Agent,
        why: Silence,
        count: Option<u64>,
        now: u64,
        bounds: &Bounds,
    ) {
        let kind = KINDS.iter().position(|kind| *kind == why).unwrap_or(0) as u8;
        if self.0.len() >= bounds.silent_agents && !self.0.contains_key(&(agent.clone(), kind)) {
            self.forget_one();
        }
        let counted = self.0.entry((agent, kind)).or_default();
        match count {
            Some(count) => counted.events = counted.events.saturating_add(count),
            None => counted.unknown = true,
        }
        // Too much is told when it is over, or at least not with every event.
        let earliest = counted.told.map_or(0, |told| told.saturating_add(bounds.silence_every_ms));
        let soonest =
            if why == Silence::TooMuch { now.saturating_add(bounds.silence_every_ms) } else { now };
        counted.due.get_or_insert(soonest.max(earliest));
    }

    /// Makes room: one that was told longest ago, or else joins two.
    fn forget_one(&mut self) {
        let idle = self.0.iter().filter(|(_, count)| count.due.is_none());
        let oldest = idle.min_by_key(|(_, count)| count.told).map(|(key, _)| key.clone());
        if let Some(key) = oldest {
            self.0.remove(&key);
        } else if let Some(((_, kind), count)) = self.0.pop_first() {
            // Nothing is lost but whose it was.
            let other = self.0.iter_mut().find(|((_, other), _)| *other == kind);
            if let Some((_, other)) = other {
                other.events = other.events.saturating_add(count.events);
                other.unknown |= count.unknown;
            }
        }
    }

    /// What is due.
    pub(super) fn pop(&mut self, now: u64) -> Option<Notification> {
        let due = |count: &Count| count.due.is_some_and(|due| due <= now);
        let ((agent, kind), count) = self.0.iter_mut().find(|(_, count)| due(count))?;
        (count.due, count.told) = (None, Some(now));
        let (events, unknown) =
            (std::mem::take(&mut count.events), std::mem::take(&mut count.unknown));
        let count = if unknown { 0 } else { events };
        Some(Notification::Silence { agent: agent.clone(), why: KINDS[usize::from(*kind)], count })
    }

    pub(super) fn deadline(&self) -> impl Iterator<Item = u64> {
        self.0.values().filter_map(|count| count.due)
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent(name: &str) -> Agent {
        Agent { id: name.into(), name: name.into() }
    }

    // covers: S3, I19
    #[test]
    fn silence_is_told_at_once_and_then_now_and_then() {
        let (mut silences, bounds) = (Silences::default(), Bounds::default());
        silences.add(agent("a"), Silence::Missing, Some(2), 10, &bounds);
        let told = silences.pop(10);
        assert!(matches!(told, Some(Notification::Silence { count: 2, .. })), "{told:?}");
        for _ in 0..5 {
            silences.add(agent("a"), Silence::Missing, Some(1), 20, &bounds);
        }
        assert!(silences.pop(20).is_none());
        assert_eq!(silences.deadline().min(), Some(10 + bounds.silence_every_ms));
        let told = silences.pop(5000);
        assert!(matches!(told, Some(Notification::Silence { count: 5, .. })), "{told:?}");
    }

    #[test]
    fn a_million_silent_agents_are_bounded() {
        let (mut silences, bounds) = (Silences::default(), Bounds::default());
        for number in 0..1000 {
            silences.add(agent(&number.to_string()), Silence::TooMuch, Some(1), 0, &bounds);
            assert!(silences.len() <= bounds.silent_agents);
        }
        let told: u64 = std::iter::from_fn(|| silences.pop(u64::MAX))
            .map(|told| match told {
                Notification::Silence { count, .. } => count,
                _ => 0,
            })
            .sum();
        assert_eq!(told, 1000);
    }
}
