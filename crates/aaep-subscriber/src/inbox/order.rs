//! The order of one session's events, by their numbers (§3.4.1, W16).

use std::cmp::Ordering;
use std::collections::BTreeMap;

use super::bounds::Bounds;

/// Where a session is, and what waits for something that should come before it.
#[derive(Debug)]
pub(super) struct Order<T> {
    /// The number that comes next, once any was heard.
    next: Option<u64>,
    /// What came too early; `None` stands for what could not wait and was told.
    early: BTreeMap<u64, Option<T>>,
    /// When those who wait no longer do.
    until: Option<u64>,
}

impl<T> Default for Order<T> {
    fn default() -> Self {
        Self { next: None, early: BTreeMap::new(), until: None }
    }
}

/// How an event stands to those before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Turn {
    /// It is told now.
    Now,
    /// It is told now, although something that was told before has a higher number.
    Late,
    /// It waits.
    Waits,
}

/// What can be told, and what was lost before it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Released<T> {
    pub(super) missing: u64,
    pub(super) event: T,
}

impl<T> Order<T> {
    // enforces: H24, W16, D15
    /// An event comes before its turn, where a hole means loss: it waits for what is missing.
    pub(super) fn wait(&mut self, number: Option<u64>, event: T, now: u64, bounds: &Bounds) {
        if let Some(number) = number {
            self.until.get_or_insert(now.saturating_add(bounds.reorder_ms));
            self.early.insert(number, Some(event));
        }
    }

    /// Whether an event with this number would come before its turn.
    pub(super) fn would_wait(&self, number: Option<u64>) -> bool {
        number.zip(self.next).is_some_and(|(number, next)| number > next)
    }

    /// An event that does not wait.
    pub(super) fn pass(
        &mut self,
        number: Option<u64>,
        exact: bool,
        now: u64,
        bounds: &Bounds,
    ) -> Turn {
        let Some(number) = number else { return Turn::Now };
        let next = *self.next.get_or_insert(number);
        match number.cmp(&next) {
            Ordering::Less => Turn::Late,
            // Others wait for what is missing before it.
            Ordering::Greater if exact => {
                self.until.get_or_insert(now.saturating_add(bounds.reorder_ms));
                self.early.insert(number, None);
                Turn::Now
            }
            _ => {
                self.next = Some(number.saturating_add(1));
                Turn::Now
            }
        }
    }

    /// What can be told now: those whose turn has come, and everybody when the wait is over.
    pub(super) fn release(&mut self, now: u64, bounds: &Bounds) -> Option<Released<Option<T>>> {
        let (&first, _) = self.early.first_key_value()?;
        let next = self.next.unwrap_or(first);
        let over =
            self.until.is_none_or(|until| until <= now) || self.early.len() > bounds.reorder_events;
        if first > next && !over {
            return None;
        }
        let event = self.early.remove(&first)?;
        self.next = Some(first.saturating_add(1).max(next));
        if self.early.is_empty() {
            self.until = None;
        }
        Some(Released { missing: first.saturating_sub(next), event })
    }

    /// Nothing more will come: nobody needs to wait.
    pub(super) fn expire(&mut self) {
        self.until = self.until.map(|_| 0);
    }

    pub(super) fn deadline(&self) -> Option<u64> {
        self.until
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the inbox does it.
    fn take(
        order: &mut Order<u64>,
        number: u64,
        (exact, critical): (bool, bool),
        now: u64,
    ) -> Turn {
        let bounds = Bounds::default();
        if exact && !critical && order.would_wait(Some(number)) {
            order.wait(Some(number), number, now, &bounds);
            return Turn::Waits;
        }
        order.pass(Some(number), exact, now, &bounds)
    }

    const EXACT: (bool, bool) = (true, false);

    fn told(order: &mut Order<u64>, now: u64) -> Vec<(u64, Option<u64>)> {
        let bounds = Bounds::default();
        std::iter::from_fn(|| order.release(now, &bounds))
            .map(|released| (released.missing, released.event))
            .collect()
    }

    // covers: H24, W16
    #[test]
    fn what_comes_too_early_waits_for_what_is_missing() {
        let mut order = Order::default();
        assert_eq!(take(&mut order, 0, EXACT, 0), Turn::Now);
        assert_eq!(take(&mut order, 2, EXACT, 0), Turn::Waits);
        assert_eq!(take(&mut order, 3, EXACT, 0), Turn::Waits);
        assert!(told(&mut order, 0).is_empty());
        assert_eq!(take(&mut order, 1, EXACT, 0), Turn::Now);
        assert_eq!(told(&mut order, 0), [(0, Some(2)), (0, Some(3))]);
        assert_eq!(order.deadline(), None);
    }

    // covers: H24, D15
    #[test]
    fn what_never_comes_is_missing_once_the_wait_is_over() {
        let mut order = Order::default();
        take(&mut order, 0, EXACT, 0);
        take(&mut order, 3, EXACT, 0);
        take(&mut order, 5, EXACT, 100);
        assert!(told(&mut order, 199).is_empty());
        assert_eq!(told(&mut order, 200), [(2, Some(3)), (1, Some(5))]);
        assert_eq!(take(&mut order, 1, EXACT, 300), Turn::Late);
    }

    // covers: T28
    #[test]
    fn a_critical_event_waits_for_nobody_and_is_not_told_twice() {
        let mut order = Order::default();
        take(&mut order, 0, EXACT, 0);
        assert_eq!(take(&mut order, 2, (true, true), 0), Turn::Now);
        assert_eq!(take(&mut order, 1, EXACT, 0), Turn::Now);
        assert_eq!(told(&mut order, 0), [(0, None)]);
        assert_eq!(take(&mut order, 3, EXACT, 0), Turn::Now);
    }

    // covers: D15
    #[test]
    fn where_a_hole_means_nothing_nobody_waits() {
        let mut order = Order::default();
        take(&mut order, 0, (false, false), 0);
        assert_eq!(take(&mut order, 9, (false, false), 0), Turn::Now);
        assert!(told(&mut order, 999).is_empty());
    }

    #[test]
    fn only_so_many_wait() {
        let (mut order, bounds) = (Order::default(), Bounds::default());
        take(&mut order, 0, EXACT, 0);
        for number in 2..5000 {
            take(&mut order, number, EXACT, 0);
            while order.release(0, &bounds).is_some() {}
            assert!(order.early.len() <= bounds.reorder_events);
        }
    }
}
