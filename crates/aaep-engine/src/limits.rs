//! The bounds of everything; each has a name, a default, and an error that explains it.

/// What the engine holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at once.
    pub sessions: usize,
    /// Requests pending at once, over all sessions.
    pub pending_requests: usize,
    /// Requests pending at once in one session.
    pub pending_per_session: usize,
    /// Requests that one session may make within [`Self::prompt_window_seconds`].
    pub prompts_per_window: u32,
    /// How long prompts count.
    pub prompt_window_seconds: u64,
    /// Tool calls open at once in one session.
    pub open_tools: usize,
    /// Tool calls in the life of one session.
    pub calls_per_session: usize,
    /// Outputs open at once in one session.
    pub open_outputs: usize,
    /// Bytes of a tool's arguments.
    pub argument_bytes: usize,
    /// Subscriptions at once.
    pub subscriptions: usize,
    /// Replies of one principal within a second; further ones are dropped without a word (D5).
    pub replies_per_second: u32,
    /// Principals whose replies are counted at once.
    pub counted_principals: usize,
    /// Recent events kept for each session, for those who come back.
    pub recent_events: usize,
    /// Bytes of recent events in all; beyond it the older half of them is forgotten.
    pub recent_bytes: usize,
    /// Sessions that ended and whose recent events are kept, for those who missed the end.
    pub ended_sessions: usize,
    /// Messages kept of what each subscription was sent, if it merges; what a broken connection
    /// swallowed is sent again.
    pub resent_deliveries: usize,
    /// Events that may wait for one subscription; one for which more do is ended (I22).
    pub held_events: usize,
    /// Bytes of them.
    pub held_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            sessions: 100_000,
            pending_requests: 2_000_000,
            pending_per_session: 64,
            prompts_per_window: 20,
            prompt_window_seconds: 60,
            open_tools: 256,
            calls_per_session: 100_000,
            open_outputs: 64,
            argument_bytes: 256 * 1024,
            subscriptions: 100_000,
            replies_per_second: 50,
            counted_principals: 100_000,
            recent_events: 256,
            recent_bytes: 64 << 20,
            ended_sessions: 1024,
            resent_deliveries: 64,
            held_events: 1024,
            held_bytes: 4 << 20,
        }
    }
}
