//! The bounds of everything that can grow, each with a name and a default.

/// What an inbox keeps at most, and how long it waits. Nothing of a hostile producer makes it grow
/// beyond this (I22).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes in one message; longer ones cannot be heard.
    pub message_bytes: usize,
    /// Ids of events that are remembered for each connection, to tell duplicates.
    pub event_ids: usize,
    /// Sessions that are remembered for each connection; the one that was silent longest is
    /// forgotten first, one with an open request last.
    pub sessions: usize,
    /// Characters of a name, a state or a summary that are kept to say what an agent does.
    pub kept_chars: usize,
    /// Requests that can wait for an answer at once. Further ones are told like any critical event,
    /// and cannot be answered from here.
    pub open_requests: usize,
    /// Bytes of all requests that wait.
    pub open_request_bytes: usize,
    /// Requests that no longer wait and are remembered, so that none is asked twice.
    pub settled_requests: usize,
    /// Critical notifications that wait to be polled. When so many wait, [`super::Inbox::is_full`]
    /// says so and nothing more should be received: nothing critical is ever left out.
    pub critical_waiting: usize,
    /// Other notifications that wait to be polled, for each connection; beyond that they are thinned.
    pub waiting: usize,
    /// Bytes of them.
    pub waiting_bytes: usize,
    /// When so many wait, a newer state or progress of a session replaces its older one.
    pub merge_from: usize,
    /// Notifications a second that a connection may cause, critical ones aside (S3).
    pub events_per_second: u32,
    /// How many of them may come at once.
    pub burst: u32,
    /// Outputs of one session that are collected at once.
    pub outputs: usize,
    /// Bytes of one output that wait for a boundary; beyond that they are told without one.
    pub output_bytes: usize,
    /// Bytes of all outputs of a connection that wait for a boundary.
    pub text_bytes: usize,
    /// Events of a session that wait for one that should come before them.
    pub reorder_events: usize,
    /// How long they wait.
    pub reorder_ms: u64,
    /// A hole of more numbers than this says nothing about how many events are missing: a hub that
    /// restarts skips that far.
    pub believable_hole: u64,
    /// How long after a connection began a session that was not known before may come in with holes
    /// in its numbers: a late joiner is told the present state (D28).
    pub joining_ms: u64,
    /// How often the same agent's silence is told.
    pub silence_every_ms: u64,
    /// Agents whose silence is counted apart.
    pub silent_agents: usize,
    /// Seconds that a request waits which does not say how long.
    pub timeout_seconds: u64,
    /// How long after a request's deadline the producer's word on it is waited for.
    pub outcome_patience_ms: u64,
    /// How long after a new subscription an open request may take to be asked again (D28).
    pub redelivery_ms: u64,
    /// How long until a reply that could not be sent is tried again on the same connection.
    pub resend_ms: u64,
    /// Messages that wait to be sent.
    pub sends: usize,
    /// Notes that wait to be polled; the oldest is forgotten first.
    pub notes: usize,
    /// Notes a second that a connection may cause; further ones are dropped.
    pub notes_per_second: u32,
    /// How many of them may come at once.
    pub notes_burst: u32,
    /// How often a subscription is asked for again at once with less (X8).
    pub smaller_requests: u32,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            message_bytes: 1 << 20,
            event_ids: 16_384,
            sessions: 256,
            kept_chars: 512,
            open_requests: 256,
            open_request_bytes: 16 << 20,
            settled_requests: 1024,
            critical_waiting: 256,
            waiting: 2048,
            waiting_bytes: 4 << 20,
            merge_from: 64,
            events_per_second: 100,
            burst: 1000,
            outputs: 16,
            output_bytes: 64 << 10,
            text_bytes: 1 << 20,
            reorder_events: 64,
            reorder_ms: 200,
            believable_hole: 10_000,
            joining_ms: 3000,
            silence_every_ms: 3000,
            silent_agents: 64,
            timeout_seconds: 300,
            outcome_patience_ms: 5000,
            redelivery_ms: 10_000,
            resend_ms: 1000,
            sends: 256,
            notes: 256,
            notes_per_second: 2,
            notes_burst: 50,
            smaller_requests: 4,
        }
    }
}
