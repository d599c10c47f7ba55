//! The token bucket of the local rate limit (S3).

/// One token in the parts in which the bucket counts: a rate of one a second refills one part in
/// each millisecond, so refilling is exact.
const TOKEN: u64 = 1000;

/// A smoothly refilled bucket.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bucket {
    rate: u64,
    capacity: u64,
    level: u64,
    at: u64,
}

impl Bucket {
    pub(super) fn new(per_second: u32, burst: u32, now: u64) -> Self {
        let capacity = u64::from(burst.max(1)) * TOKEN;
        Self { rate: u64::from(per_second.max(1)), capacity, level: capacity, at: now }
    }

    /// Takes a token if there is one.
    pub(super) fn take(&mut self, now: u64) -> bool {
        self.refill(now);
        let there = self.level >= TOKEN;
        if there {
            self.level -= TOKEN;
        }
        there
    }

    /// When there is a token again; `None` if there is one.
    pub(super) fn next_at(&self, now: u64) -> Option<u64> {
        let mut copy = *self;
        copy.refill(now);
        let missing = TOKEN.checked_sub(copy.level).filter(|missing| *missing > 0)?;
        Some(copy.at.saturating_add(missing.div_ceil(self.rate)))
    }

    /// A clock that stands still or goes back refills nothing.
    fn refill(&mut self, now: u64) {
        let elapsed = now.saturating_sub(self.at);
        let fresh = elapsed.saturating_mul(self.rate);
        self.level = self.level.saturating_add(fresh).min(self.capacity);
        self.at = self.at.max(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: S3
    #[test]
    fn a_bucket_gives_its_burst_and_then_its_rate() {
        let mut bucket = Bucket::new(10, 3, 0);
        assert_eq!((0..9).filter(|_| bucket.take(0)).count(), 3);
        assert_eq!(bucket.next_at(0), Some(100));
        assert!(!bucket.take(99) && bucket.take(100) && !bucket.take(100));
        assert!(!bucket.take(0), "a clock that goes back refills nothing");
        assert_eq!((0..9).filter(|_| bucket.take(9_999_999)).count(), 3);
    }
}
