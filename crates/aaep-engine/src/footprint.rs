//! How much the engine holds, counted honestly, so that it can be compared with what it needs (I22).

/// Counts of everything that grows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Sessions that are open.
    pub sessions: usize,
    /// Requests that are known: pending, settled, and those of sessions that ended.
    pub requests: usize,
    /// Bytes of their texts.
    pub request_bytes: usize,
    /// Of those, bytes of arguments.
    pub argument_bytes: usize,
    /// Timers, also those that are not looked for any more.
    pub timers: usize,
    /// Sessions that ended and are still known.
    pub ended_sessions: usize,
    /// Outputs that are known, open or completed.
    pub outputs: usize,
    /// Tool calls that have not come back, by their sessions and by their requests.
    pub open_calls: usize,
    /// Subscriptions as far as replies are concerned.
    pub listeners: usize,
    /// Answers that wait for the end of a second (D40).
    pub held_answers: usize,
}
