//! One time line for a recording, whatever the clocks of those who spoke did.

use aaep_types::Timestamp;
use aaep_types::captured::Captured;

/// Stamps may go back so much without a word: machines differ, and messages overtake each other.
const JITTER_US: i64 = 1_000_000;

/// Where the time line is. It never goes back.
#[derive(Debug, Default)]
pub(super) struct Clock {
    now_us: u64,
    stamp: Option<i64>,
    offset: Option<f64>,
}

/// What a message did to the time line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Tick {
    /// Microseconds since the first message.
    pub(super) at_us: u64,
    /// How far the clock went back, where it did.
    pub(super) went_back_us: Option<u64>,
}

impl Clock {
    /// A message that was captured, with the time that passed by a clock that never goes back.
    pub(super) fn captured(&mut self, read: &Captured<'_>) -> Tick {
        let stamp = Some(read.captured_at.as_micros());
        let before = self.offset.replace(read.offset_ms);
        match before {
            Some(before) if read.offset_ms >= before => {
                let passed = (read.offset_ms - before) * 1000.0;
                self.stamp = stamp;
                self.forward(passed as u64)
            }
            // Another run of the capture began.
            _ => self.stamped(stamp),
        }
    }

    /// A message of which only its own stamp is known.
    pub(super) fn said(&mut self, stamp: Option<Timestamp>) -> Tick {
        self.offset = None;
        self.stamped(stamp.map(|stamp| stamp.as_micros()))
    }

    fn stamped(&mut self, stamp: Option<i64>) -> Tick {
        let (Some(stamp), Some(before)) = (stamp, self.stamp) else {
            self.stamp = stamp.or(self.stamp);
            return self.forward(0);
        };
        let passed = stamp.saturating_sub(before);
        if (-JITTER_US..0).contains(&passed) {
            return self.forward(0);
        }
        self.stamp = Some(stamp);
        let back = (passed < 0).then(|| passed.unsigned_abs());
        Tick { went_back_us: back, ..self.forward(u64::try_from(passed).unwrap_or(0)) }
    }

    fn forward(&mut self, passed_us: u64) -> Tick {
        self.now_us = self.now_us.saturating_add(passed_us);
        Tick { at_us: self.now_us, went_back_us: None }
    }
}

/// A length of time for people: `0.154 s`, `2 min 5 s`.
pub(super) fn lasting(micros: u64) -> String {
    let seconds = micros / 1_000_000;
    match seconds {
        0..=59 => format!("{}.{:03} s", seconds, micros / 1000 % 1000),
        60..=3599 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Option<Timestamp> {
        Timestamp::from_millis(1_700_000_000_000 + seconds * 1000)
    }

    #[test]
    fn a_clock_that_goes_back_is_told_and_time_goes_on() {
        let mut clock = Clock::default();
        assert_eq!(clock.said(at(0)).at_us, 0);
        assert_eq!(clock.said(at(5)).at_us, 5_000_000);
        let back = clock.said(at(-3595));
        assert_eq!((back.at_us, back.went_back_us), (5_000_000, Some(3_600_000_000)));
        assert_eq!(clock.said(at(-3594)), Tick { at_us: 6_000_000, went_back_us: None });
        assert_eq!(clock.said(None).at_us, 6_000_000);
    }

    #[test]
    fn lengths_are_said_in_words() {
        assert_eq!(lasting(154_900), "0.154 s");
        assert_eq!(lasting(125_000_000), "2 min 5 s");
        assert_eq!(lasting(u64::MAX), "5124095576 h 1 min");
    }
}
