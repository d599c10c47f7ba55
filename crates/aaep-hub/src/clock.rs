//! Both clocks of this machine: the only place where they are read.

use std::time::{SystemTime, UNIX_EPOCH};

use aaep_engine::{Boot, Now};
use aaep_types::Timestamp;

/// What time it is, on both clocks.
pub(crate) fn now() -> Now {
    Now { boot: boot(), wall: wall() }
}

/// Microseconds since the machine started, including those it slept through.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn boot() -> Boot {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let micros = u64::try_from(time.tv_nsec).unwrap_or_default() / 1000;
    Boot(seconds.saturating_mul(1_000_000).saturating_add(micros))
}

/// Microseconds since the hub started. On macOS and Windows the standard clock counts as the system
/// does; whether that includes sleep is theirs to say.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn boot() -> Boot {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    // Never 0: to the engine that is before everything.
    Boot(u64::try_from(START.elapsed().as_micros()).unwrap_or(u64::MAX).saturating_add(1))
}

/// The clock on the wall, to the millisecond, as events bear it.
fn wall() -> Timestamp {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let millis = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    // A clock that stands beyond the year 9999 shows its last moment.
    Timestamp::from_millis(millis)
        .or_else(|| Timestamp::from_millis(253_402_300_799_999))
        .unwrap_or_else(|| unreachable!("the last moment of the year 9999 is a timestamp"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_boot_clock_never_goes_back() {
        let first = now();
        let second = now();
        assert!(first.boot <= second.boot && first.boot > Boot(0));
    }
}
