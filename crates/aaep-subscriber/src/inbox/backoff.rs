//! When to try again: exponentially longer, with jitter, which comes in from outside.

/// The longest and the shortest wait, in milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Backoff {
    shortest_ms: u64,
    longest_ms: u64,
    failures: u32,
}

impl Default for Backoff {
    /// From a quarter of a second to ten seconds: well within the time for which a hub counts somebody
    /// as there (D2), also when it comes back after a long time.
    fn default() -> Self {
        Self::between(250, 10_000)
    }
}

impl Backoff {
    /// Waits between these two, in milliseconds.
    pub fn between(shortest_ms: u64, longest_ms: u64) -> Self {
        Self { shortest_ms: shortest_ms.max(1), longest_ms: longest_ms.max(1), failures: 0 }
    }

    /// It worked: the next wait is a short one.
    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// How long to wait now. `jitter` is any random number; with it, many who lost the same hub do
    /// not come back at the same moment. At least `at_least_ms`, which a hub may ask for.
    pub fn wait_ms(&mut self, jitter: u64, at_least_ms: u64) -> u64 {
        let doubled = self.shortest_ms.saturating_mul(1 << self.failures.min(20));
        let full = doubled.min(self.longest_ms);
        self.failures = self.failures.saturating_add(1);
        // Between half of it and all of it.
        let half = full / 2;
        (half + jitter % (full - half + 1)).max(at_least_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_double_up_to_the_longest_and_begin_again() {
        let mut backoff = Backoff::between(100, 1000);
        let waits: Vec<u64> = (0..6).map(|_| backoff.wait_ms(0, 0)).collect();
        assert_eq!(waits, [50, 100, 200, 400, 500, 500]);
        backoff.reset();
        assert_eq!(backoff.wait_ms(u64::MAX, 0), 50);
        assert_eq!(backoff.wait_ms(3, 7000), 7000);
        for jitter in 0..500 {
            let wait = backoff.wait_ms(jitter, 0);
            assert!((50..=1000).contains(&wait));
        }
    }
}
