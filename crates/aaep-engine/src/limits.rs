//! The bounds of everything; each has a name, a default, and an error that explains it. Beside them,
//! what is held, counted honestly, so that it can be compared with what is needed (I22).

use aaep_types::rule;

use crate::shares::Bound;

/// What the engine holds at most.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Sessions at once.
    pub sessions: usize,
    /// Of those, sessions of all agents of one user.
    pub sessions_per_user: usize,
    /// Of those, sessions of one agent.
    pub sessions_per_principal: usize,
    /// Requests pending at once, over all sessions.
    pub pending_requests: usize,
    /// Of those, requests of all agents of one user.
    pub pending_requests_per_user: usize,
    /// Of those, requests of one agent.
    pub pending_requests_per_principal: usize,
    /// Bytes of requests and their arguments, until those cannot run any more: they wait for an
    /// answer, or are approved, or run.
    pub pending_bytes: usize,
    /// Of those, bytes of all agents of one user.
    pub pending_bytes_per_user: usize,
    /// Of those, bytes of one agent.
    pub pending_bytes_per_principal: usize,
    /// Requests pending at once in one session.
    pub pending_per_session: usize,
    /// Requests that one session may make within [`Self::prompt_window_seconds`].
    pub prompts_per_window: u32,
    /// Handoffs and errors that one session may announce within [`Self::prompt_window_seconds`], ten
    /// times as many for one agent and twenty for one user: they are critical, and wait for nobody.
    pub critical_per_window: u32,
    /// How long prompts count.
    pub prompt_window_seconds: u64,
    /// How long an approval is good for; one that is not used by then is spent (D41).
    pub approval_seconds: u64,
    /// Requests of one session that are known after they were settled; beyond it the oldest are
    /// forgotten, and a lookup finds none.
    pub settled_per_session: usize,
    /// Requests of sessions that ended, of one user; beyond it the oldest sessions are forgotten.
    pub ended_requests_per_user: usize,
    /// Completed outputs of one session whose ids are known, so that none is begun again.
    pub completed_outputs: usize,
    /// Tool calls open at once in one session.
    pub open_tools: usize,
    /// Tool calls in the life of one session.
    pub calls_per_session: usize,
    /// Tool calls whose ids are known, so that none is used again: all calls of open sessions.
    pub known_calls: usize,
    /// Of those, calls of all agents of one user.
    pub known_calls_per_user: usize,
    /// Of those, calls of one agent.
    pub known_calls_per_principal: usize,
    /// Outputs open at once in one session.
    pub open_outputs: usize,
    /// Bytes of a tool's arguments.
    pub argument_bytes: usize,
    /// Subscriptions at once.
    pub subscriptions: usize,
    /// Of those, subscriptions of one user.
    pub subscriptions_per_user: usize,
    /// Of those, subscriptions of one principal.
    pub subscriptions_per_principal: usize,
    /// Subscriptions of one principal that nobody is attached to; while there are more, it gets no
    /// new ones.
    pub unattached_per_principal: usize,
    /// Replies on one connection within a second, and four times as many of one principal. Further
    /// ones count all the same; those that are ignored leave one record together (D40).
    pub replies_per_second: u32,
    /// Principals whose replies are counted at once.
    pub counted_principals: usize,
    /// Recent events kept for each session, for those who come back.
    pub recent_events: usize,
    /// Bytes of recent events in all; beyond it the oldest of the user who holds most are forgotten.
    pub recent_bytes: usize,
    /// Of those, bytes of one user; beyond it the oldest of them are forgotten.
    pub recent_bytes_per_user: usize,
    /// Sessions that ended and whose recent events are kept, for those who missed the end; beyond it
    /// the oldest of the user who has most are forgotten.
    pub ended_sessions: usize,
    /// Of those, sessions of one user; beyond it the oldest of them are forgotten.
    pub ended_sessions_per_user: usize,
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
            sessions_per_user: 20_000,
            sessions_per_principal: 10_000,
            pending_requests: 2_000_000,
            pending_requests_per_user: 40_000,
            pending_requests_per_principal: 20_000,
            pending_bytes: 2 << 30,
            pending_bytes_per_user: 128 << 20,
            pending_bytes_per_principal: 64 << 20,
            pending_per_session: 64,
            prompts_per_window: 20,
            critical_per_window: 10,
            prompt_window_seconds: 60,
            approval_seconds: 600,
            settled_per_session: 1024,
            ended_requests_per_user: 16_384,
            completed_outputs: 1024,
            open_tools: 256,
            calls_per_session: 100_000,
            known_calls: 2_000_000,
            known_calls_per_user: 400_000,
            known_calls_per_principal: 200_000,
            open_outputs: 64,
            argument_bytes: 256 * 1024,
            subscriptions: 100_000,
            subscriptions_per_user: 4096,
            subscriptions_per_principal: 1024,
            unattached_per_principal: 256,
            replies_per_second: 50,
            counted_principals: 100_000,
            recent_events: 256,
            recent_bytes: 64 << 20,
            recent_bytes_per_user: 8 << 20,
            ended_sessions: 4096,
            ended_sessions_per_user: 256,
            resent_deliveries: 64,
            held_events: 1024,
            held_bytes: 4 << 20,
        }
    }
}

impl Limits {
    pub(crate) fn open_sessions(&self) -> Bound {
        Bound {
            name: "sessions",
            noun: "open sessions",
            remedy: "End some; those whose agents are gone end with their lease.",
            rule: rule::T1,
            total: self.sessions,
            per_user: self.sessions_per_user,
            per_principal: self.sessions_per_principal,
        }
    }

    pub(crate) fn waiting_requests(&self) -> Bound {
        Bound {
            name: "pending_requests",
            noun: "pending requests",
            remedy: "Wait for answers, or withdraw some.",
            rule: rule::C4,
            total: self.pending_requests,
            per_user: self.pending_requests_per_user,
            per_principal: self.pending_requests_per_principal,
        }
    }

    pub(crate) fn waiting_bytes(&self) -> Bound {
        Bound {
            name: "pending_bytes",
            noun: "bytes of requests that wait or may run",
            remedy: "Wait for answers, withdraw some, or complete what runs.",
            total: self.pending_bytes,
            per_user: self.pending_bytes_per_user,
            per_principal: self.pending_bytes_per_principal,
            ..self.waiting_requests()
        }
    }

    pub(crate) fn known_calls(&self) -> Bound {
        Bound {
            name: "known_calls",
            noun: "tool calls of open sessions",
            remedy: "End a session that called tools often, and open another one.",
            rule: rule::T13,
            total: self.known_calls,
            per_user: self.known_calls_per_user,
            per_principal: self.known_calls_per_principal,
        }
    }

    pub(crate) fn all_subscriptions(&self) -> Bound {
        Bound {
            name: "subscriptions",
            noun: "subscriptions",
            remedy: "Close some; those that nobody is attached to expire after a while.",
            rule: rule::H15,
            total: self.subscriptions,
            per_user: self.subscriptions_per_user,
            per_principal: self.subscriptions_per_principal,
        }
    }

    pub(crate) fn unattached_subscriptions(&self) -> Bound {
        Bound {
            name: "unattached",
            noun: "subscriptions without a stream",
            remedy: "Open their streams, or close them; they expire after a while.",
            rule: rule::H15,
            total: usize::MAX,
            per_user: usize::MAX,
            per_principal: self.unattached_per_principal,
        }
    }
}

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
