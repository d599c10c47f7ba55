//! Time as the engine knows it: given, never read.

use aaep_types::Timestamp;

/// Microseconds on a clock that never goes back and also counts while the machine sleeps.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Boot(pub u64);

impl Boot {
    /// This much later.
    #[must_use]
    pub fn after_seconds(self, seconds: u64) -> Self {
        Self(self.0.saturating_add(seconds.saturating_mul(1_000_000)))
    }
}

/// Both clocks at one moment: `boot` for waiting, `wall` for stamps and for deadlines that must
/// survive a restart. The wall clock may jump; nothing that is waited for depends on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// For waiting.
    pub boot: Boot,
    /// For stamps.
    pub wall: Timestamp,
}
