//! The token bucket that keeps a subscription within its rate (§5.6.1).

use crate::time::Mono;

/// One token, in the parts in which the bucket counts: a rate of one a second refills one part in
/// each microsecond, so refilling is exact.
const TOKEN: i64 = 1_000_000;

/// A smoothly refilled bucket that holds one second's budget.
///
/// [`Bucket::take`] never takes what is not there. [`Bucket::borrow`] does: what must not wait goes
/// at once and is paid back before anything else passes (decision D14). Never more than so many
/// seconds' budget is owed, so nothing waits long for what others borrowed (decision D38).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bucket {
    rate: u32,
    level: i64,
    at: Mono,
    max_debt_seconds: u32,
}

impl Bucket {
    /// A full bucket for so many events a second, at least one; a second's budget may be owed.
    pub fn new(rate: u32, now: Mono) -> Self {
        Self::with_debt(rate, 1, now)
    }

    /// The same with another bound on what may be owed.
    pub fn with_debt(rate: u32, max_debt_seconds: u32, now: Mono) -> Self {
        let rate = rate.max(1);
        Self { rate, level: i64::from(rate) * TOKEN, at: now, max_debt_seconds }
    }

    /// The same bucket with another rate; what was borrowed stays borrowed.
    pub fn at_rate(mut self, rate: u32, now: Mono) -> Self {
        self.refill(now);
        self.rate = rate.max(1);
        self.level = self.level.min(self.capacity());
        self
    }

    /// Takes a token if there is one.
    pub fn take(&mut self, now: Mono) -> bool {
        // enforces: H3, I20
        self.refill(now);
        let there = self.level >= TOKEN;
        if there {
            self.level -= TOKEN;
        }
        there
    }

    /// Takes a token whether or not there is one.
    pub fn borrow(&mut self, now: Mono) {
        self.refill(now);
        // enforces: D38
        let most = self.capacity().saturating_mul(self.max_debt_seconds.into());
        self.level = self.level.saturating_sub(TOKEN).max(-most);
    }

    /// Whether there is a token.
    pub fn has_budget(&self, now: Mono) -> bool {
        let mut copy = *self;
        copy.refill(now);
        copy.level >= TOKEN
    }

    /// When there is a token again; a moment that has passed if there is one already.
    pub fn next_at(&self) -> Mono {
        let missing = u64::try_from(TOKEN.saturating_sub(self.level)).unwrap_or(0);
        Mono::from_micros(
            self.at.as_micros().saturating_add(missing.div_ceil(u64::from(self.rate))),
        )
    }

    fn capacity(&self) -> i64 {
        i64::from(self.rate) * TOKEN
    }

    /// A clock that stands still or goes back refills nothing.
    fn refill(&mut self, now: Mono) {
        if now <= self.at {
            return;
        }
        let elapsed = i64::try_from(now.as_micros() - self.at.as_micros()).unwrap_or(i64::MAX);
        let fresh = elapsed.saturating_mul(i64::from(self.rate));
        self.level = self.level.saturating_add(fresh).min(self.capacity());
        self.at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(micros: u64) -> Mono {
        Mono::from_micros(micros)
    }

    // covers: H3
    #[test]
    fn a_bucket_holds_one_second_of_budget_and_refills_smoothly() {
        let mut bucket = Bucket::new(4, at(0));
        assert!((0..4).all(|_| bucket.take(at(0))));
        assert!(!bucket.take(at(0)));
        assert_eq!(bucket.next_at(), at(250_000));
        assert!(!bucket.take(at(249_999)));
        assert!(bucket.take(at(250_000)));
        assert!((0..4).all(|_| bucket.take(at(100_000_000))));
        assert!(!bucket.take(at(100_000_000)));
    }

    // covers: D14, D38
    #[test]
    fn what_was_borrowed_is_paid_back_before_anything_else_passes() {
        let mut bucket = Bucket::new(2, at(0));
        for _ in 0..3 {
            bucket.borrow(at(0));
        }
        assert_eq!(bucket.next_at(), at(1_000_000));
        for _ in 0..300 {
            bucket.borrow(at(0));
        }
        assert_eq!(bucket.next_at(), at(1_500_000), "no more than a second's budget is owed");
        assert!(!bucket.take(at(1_499_999)));
        assert!(bucket.take(at(1_500_000)));
    }

    proptest! {
        // covers: H3, I20
        #[test]
        fn no_window_admits_more_than_its_budget_and_one_capacity(
            rate in 1u32..50,
            steps in prop::collection::vec((0u64..400_000, 0u32..8), 1..120),
        ) {
            let mut bucket = Bucket::new(rate, at(0));
            let (mut now, mut admitted) = (0, Vec::new());
            for (wait, tries) in steps {
                now += wait;
                for _ in 0..tries {
                    if bucket.take(at(now)) {
                        admitted.push(now);
                    }
                }
            }
            for (first, start) in admitted.iter().enumerate() {
                for (last, end) in admitted.iter().enumerate().skip(first) {
                    let count = (last - first + 1) as u64;
                    let budget = u64::from(rate) * (end - start) / 1_000_000 + u64::from(rate);
                    prop_assert!(count <= budget, "{count} in {} micros", end - start);
                }
            }
        }
    }
}
