//! The clocks of this machine, read here and nowhere else.

use std::time::{SystemTime, UNIX_EPOCH};

/// Milliseconds of a clock that never goes back and counts sleep.
#[cfg(any(target_os = "linux", target_os = "android"))]
pub(super) fn now_ms() -> u64 {
    use rustix::time::{ClockId, clock_gettime};
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let millis = u64::try_from(time.tv_nsec).unwrap_or_default() / 1_000_000;
    seconds.saturating_mul(1000).saturating_add(millis)
}

/// The same elsewhere; whether the standard clock counts sleep is the system's to say.
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(super) fn now_ms() -> u64 {
    use std::sync::LazyLock;
    use std::time::Instant;
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    u64::try_from(START.elapsed().as_millis()).unwrap_or(u64::MAX)
}

/// The Unix time, in milliseconds, at which [`now_ms`] was 0, if the clock on the wall is right.
pub(super) fn unix_ms_at_zero() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let unix = i64::try_from(since.as_millis()).unwrap_or(i64::MAX);
    unix.saturating_sub(i64::try_from(now_ms()).unwrap_or(i64::MAX))
}

/// The Unix time now, in seconds.
pub(super) fn unix_seconds() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Any number, so that many who lost the same hub do not come back at once.
pub(super) fn jitter() -> u64 {
    getrandom::u64().unwrap_or(0)
}
