//! How much one subscription may hold, and what it is to hold too much.

use std::fmt;

/// How much one subscription may hold at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HeldLimits {
    /// Events that wait for budget or to be fetched.
    pub max_events: usize,
    /// Bytes of all held events as they were emitted.
    pub max_bytes: usize,
    /// When so many events wait, they are merged (D38).
    pub merge_from: usize,
    /// How many seconds' budget may be owed for what could not wait (D38).
    pub max_debt_seconds: u32,
}

impl Default for HeldLimits {
    /// 1,024 events, 4 MiB; merged as soon as two wait; a second's budget.
    fn default() -> Self {
        Self { max_events: 1024, max_bytes: 4 << 20, merge_from: 2, max_debt_seconds: 1 }
    }
}

/// A subscription holds more than it may, even merged: close it and record why (I4, I22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overflow {
    /// Held events.
    pub events: usize,
    /// Held bytes.
    pub bytes: usize,
}

impl fmt::Display for Overflow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The subscriber is too slow: {} events of {} bytes wait for it, more than it may hold. \
             Subscribe again; nothing that is still pending is lost.",
            self.events, self.bytes
        )
    }
}

impl std::error::Error for Overflow {}
