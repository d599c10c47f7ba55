//! Time as an argument.

use std::time::Duration;

/// A moment on a clock that never goes back, in microseconds since an arbitrary start.
///
/// This crate reads no clock: the caller says what time it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Mono(u64);

impl Mono {
    /// The clock's start.
    pub const START: Mono = Mono(0);

    /// A moment so many microseconds after the start.
    pub const fn from_micros(micros: u64) -> Self {
        Self(micros)
    }

    /// Microseconds since the start.
    pub const fn as_micros(self) -> u64 {
        self.0
    }

    /// The moment that lies `wait` later.
    pub fn after(self, wait: Duration) -> Self {
        Self(self.0.saturating_add(micros(wait)))
    }

    /// The moment that lies `lead` earlier, or the start.
    pub fn before(self, lead: Duration) -> Self {
        Self(self.0.saturating_sub(micros(lead)))
    }

    /// How long after `earlier` this is; nothing if it is not.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(self.0.saturating_sub(earlier.0))
    }
}

fn micros(duration: Duration) -> u64 {
    u64::try_from(duration.as_micros()).unwrap_or(u64::MAX)
}
