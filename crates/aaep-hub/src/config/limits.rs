//! Every bound of the hub: the doors' own, and those of the engine behind them.

use aaep_engine::Bound;
use aaep_types::rule;
use serde::{Deserialize, Serialize};

/// What the hub takes and holds at most. Each is at least 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Connections at once.
    pub connections: usize,
    /// Connections at once from one address. Named proxies do not count.
    pub connections_per_address: usize,
    /// Connections to the Unix socket at once.
    pub socket_connections: usize,
    /// Of those, connections of one process.
    pub socket_connections_per_process: usize,
    /// Calls that are answered at once, streams aside. Connections on which none is give way to
    /// newcomers when there is no other place.
    pub calls: usize,
    /// Of those, calls of all principals of one user.
    pub calls_per_user: usize,
    /// Of those, calls of one principal.
    pub calls_per_principal: usize,
    /// Percent of the machine's processor time for the calls of one user while another user has calls, too.
    pub processor_percent_per_user: usize,
    /// Agents that the manifest names at most.
    pub manifest_agents: usize,
    /// Bytes of a request's body.
    pub body_bytes: usize,
    /// Bytes of what an event or a request says, arguments aside.
    pub event_bytes: usize,
    /// Bytes of a message of a subscriber: a reply, a handshake.
    pub reply_bytes: usize,
    /// Bodies above 16 KiB that one principal may have under way at once; further ones wait.
    pub large_bodies_per_principal: usize,
    /// How long a client may take to send a request's head.
    pub header_seconds: u64,
    /// How long a client may take to send a request's body.
    pub body_seconds: u64,
    /// Messages at once that wait for the engine; further senders wait outside.
    pub messages: usize,
    /// Producers that belong to an agent, by their `agent_id`.
    pub producers: usize,
    /// Of those, producers of all agents of one user.
    pub producers_per_user: usize,
    /// Of those, producers of one agent.
    pub producers_per_principal: usize,
    /// Calls with an idempotency key that are remembered.
    pub idempotency_keys: usize,
    /// Of those, calls of all agents of one user.
    pub idempotency_keys_per_user: usize,
    /// Of those, calls of one agent.
    pub idempotency_keys_per_principal: usize,
    /// Of those, keys of events of one session; older ones are forgotten.
    pub event_keys_per_session: usize,
    /// Things that people said which wait for one agent.
    pub inputs: usize,
    /// Bytes of them.
    pub input_bytes: usize,
    /// Agents without a token that take input, each with a session secret of its own.
    pub tokenless_mailboxes: usize,
    /// Handshakes that came before their stream and wait for it.
    pub early_handshakes: usize,
    /// Of those, handshakes of one user.
    pub early_handshakes_per_user: usize,
    /// Of those, handshakes of one principal.
    pub early_handshakes_per_principal: usize,
    /// Answers to wrong codes of the page that wait at once; each holds a connection.
    pub wrong_codes: usize,
    /// Of those, answers to one address.
    pub wrong_codes_per_address: usize,
    /// Sign-ins from the page for which the hub asks a provider at once.
    pub sign_ins: usize,
    /// Of those, sign-ins from one address.
    pub sign_ins_per_address: usize,
    /// Calls at once that wait for something to happen (`?wait=`).
    pub waits: usize,
    /// Of those, calls of one user.
    pub waits_per_user: usize,
    /// Of those, calls of one principal.
    pub waits_per_principal: usize,
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
    /// Bytes of requests and their arguments, until those cannot run any more.
    pub pending_bytes: usize,
    /// Of those, bytes of all agents of one user.
    pub pending_bytes_per_user: usize,
    /// Of those, bytes of one agent.
    pub pending_bytes_per_principal: usize,
    /// Requests pending at once in one session.
    pub pending_per_session: usize,
    /// Requests that one session may make within `prompt_window_seconds`.
    pub prompts_per_window: u32,
    /// Handoffs and errors that one session may announce within `prompt_window_seconds`, ten times as
    /// many for one agent and twenty for one user.
    pub critical_per_window: u32,
    /// How long prompts count.
    pub prompt_window_seconds: u64,
    /// How long an approval is good for; one that is not used by then is spent (D41).
    pub approval_seconds: u64,
    /// Requests of one session that are known after they were settled.
    pub settled_per_session: usize,
    /// Requests of sessions that ended, of one user, that are still known.
    pub ended_requests_per_user: usize,
    /// Completed outputs of one session whose ids are known.
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
    /// Bytes of recent events in all; beyond it the user who holds most loses its oldest.
    pub recent_bytes: usize,
    /// Of those, bytes of one user.
    pub recent_bytes_per_user: usize,
    /// Sessions that ended and whose recent events are kept; beyond it the user who has most loses its
    /// oldest.
    pub ended_sessions: usize,
    /// Of those, sessions of one user.
    pub ended_sessions_per_user: usize,
    /// Messages kept of what each subscription was sent, if it merges.
    pub resent_deliveries: usize,
    /// Events that may wait for one subscription; one for which more do is ended.
    pub held_events: usize,
    /// Bytes of them.
    pub held_bytes: usize,
}

impl Default for Limits {
    fn default() -> Self {
        // Taken apart by name, so that a new bound of the engine does not compile until it is here.
        let aaep_engine::Limits {
            sessions,
            sessions_per_user,
            sessions_per_principal,
            pending_requests,
            pending_requests_per_user,
            pending_requests_per_principal,
            pending_bytes,
            pending_bytes_per_user,
            pending_bytes_per_principal,
            pending_per_session,
            prompts_per_window,
            critical_per_window,
            prompt_window_seconds,
            approval_seconds,
            settled_per_session,
            ended_requests_per_user,
            completed_outputs,
            open_tools,
            calls_per_session,
            known_calls,
            known_calls_per_user,
            known_calls_per_principal,
            open_outputs,
            argument_bytes,
            subscriptions,
            subscriptions_per_user,
            subscriptions_per_principal,
            unattached_per_principal,
            replies_per_second,
            counted_principals,
            recent_events,
            recent_bytes,
            recent_bytes_per_user,
            ended_sessions,
            ended_sessions_per_user,
            resent_deliveries,
            held_events,
            held_bytes,
        } = aaep_engine::Limits::default();
        Self {
            connections: 8192,
            connections_per_address: 256,
            socket_connections: 1024,
            socket_connections_per_process: 256,
            calls: 8192,
            calls_per_user: 4096,
            calls_per_principal: 2048,
            processor_percent_per_user: 12,
            manifest_agents: 256,
            body_bytes: 1024 * 1024,
            event_bytes: 128 * 1024,
            reply_bytes: 64 * 1024,
            large_bodies_per_principal: 8,
            header_seconds: 10,
            body_seconds: 30,
            messages: 4096,
            producers: 10_000,
            producers_per_user: 1024,
            producers_per_principal: 256,
            idempotency_keys: 200_000,
            idempotency_keys_per_user: 40_000,
            idempotency_keys_per_principal: 20_000,
            event_keys_per_session: 64,
            inputs: 256,
            input_bytes: 1024 * 1024,
            tokenless_mailboxes: 1024,
            early_handshakes: 4096,
            early_handshakes_per_user: 64,
            early_handshakes_per_principal: 16,
            wrong_codes: 64,
            wrong_codes_per_address: 4,
            sign_ins: 64,
            sign_ins_per_address: 4,
            waits: 8192,
            waits_per_user: 2048,
            waits_per_principal: 1024,
            sessions,
            sessions_per_user,
            sessions_per_principal,
            pending_requests,
            pending_requests_per_user,
            pending_requests_per_principal,
            pending_bytes,
            pending_bytes_per_user,
            pending_bytes_per_principal,
            pending_per_session,
            prompts_per_window,
            critical_per_window,
            prompt_window_seconds,
            approval_seconds,
            settled_per_session,
            ended_requests_per_user,
            completed_outputs,
            open_tools,
            calls_per_session,
            known_calls,
            known_calls_per_user,
            known_calls_per_principal,
            open_outputs,
            argument_bytes,
            subscriptions,
            subscriptions_per_user,
            subscriptions_per_principal,
            unattached_per_principal,
            replies_per_second,
            counted_principals,
            recent_events,
            recent_bytes,
            recent_bytes_per_user,
            ended_sessions,
            ended_sessions_per_user,
            resent_deliveries,
            held_events,
            held_bytes,
        }
    }
}

impl Limits {
    pub(crate) fn known_producers(&self) -> Bound {
        Bound {
            name: "producers",
            noun: "producers",
            remedy: "Use an `agent_id` again, or end the sessions under another one.",
            rule: rule::S5,
            total: self.producers,
            per_user: self.producers_per_user,
            per_principal: self.producers_per_principal,
        }
    }

    pub(crate) fn remembered_keys(&self) -> Bound {
        Bound {
            name: "idempotency_keys",
            noun: "idempotency keys",
            remedy: "End sessions, or send the call without a key.",
            rule: rule::W8,
            total: self.idempotency_keys,
            per_user: self.idempotency_keys_per_user,
            per_principal: self.idempotency_keys_per_principal,
        }
    }

    pub(crate) fn open_calls(&self) -> Bound {
        Bound {
            name: "calls",
            noun: "calls",
            remedy: "Wait for answers before you ask for more.",
            rule: rule::W8,
            total: self.calls,
            per_user: self.calls_per_user,
            per_principal: self.calls_per_principal,
        }
    }

    pub(crate) fn held_handshakes(&self) -> Bound {
        Bound {
            name: "early_handshakes",
            noun: "handshakes that wait for their stream",
            remedy: "Open a stream first.",
            rule: rule::H15,
            total: self.early_handshakes,
            per_user: self.early_handshakes_per_user,
            per_principal: self.early_handshakes_per_principal,
        }
    }

    pub(crate) fn open_waits(&self) -> Bound {
        Bound {
            name: "waits",
            noun: "waiting calls",
            remedy: "Wait for one thing once, or ask without `wait`.",
            rule: rule::W8,
            total: self.waits,
            per_user: self.waits_per_user,
            per_principal: self.waits_per_principal,
        }
    }

    /// The engine's share of them.
    pub fn engine(&self) -> aaep_engine::Limits {
        aaep_engine::Limits {
            sessions: self.sessions,
            sessions_per_user: self.sessions_per_user,
            sessions_per_principal: self.sessions_per_principal,
            pending_requests: self.pending_requests,
            pending_requests_per_user: self.pending_requests_per_user,
            pending_requests_per_principal: self.pending_requests_per_principal,
            pending_bytes: self.pending_bytes,
            pending_bytes_per_user: self.pending_bytes_per_user,
            pending_bytes_per_principal: self.pending_bytes_per_principal,
            pending_per_session: self.pending_per_session,
            prompts_per_window: self.prompts_per_window,
            critical_per_window: self.critical_per_window,
            prompt_window_seconds: self.prompt_window_seconds,
            approval_seconds: self.approval_seconds,
            settled_per_session: self.settled_per_session,
            ended_requests_per_user: self.ended_requests_per_user,
            completed_outputs: self.completed_outputs,
            open_tools: self.open_tools,
            calls_per_session: self.calls_per_session,
            known_calls: self.known_calls,
            known_calls_per_user: self.known_calls_per_user,
            known_calls_per_principal: self.known_calls_per_principal,
            open_outputs: self.open_outputs,
            argument_bytes: self.argument_bytes,
            subscriptions: self.subscriptions,
            subscriptions_per_user: self.subscriptions_per_user,
            subscriptions_per_principal: self.subscriptions_per_principal,
            unattached_per_principal: self.unattached_per_principal,
            replies_per_second: self.replies_per_second,
            counted_principals: self.counted_principals,
            recent_events: self.recent_events,
            recent_bytes: self.recent_bytes,
            recent_bytes_per_user: self.recent_bytes_per_user,
            ended_sessions: self.ended_sessions,
            ended_sessions_per_user: self.ended_sessions_per_user,
            resent_deliveries: self.resent_deliveries,
            held_events: self.held_events,
            held_bytes: self.held_bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_gets_its_own_defaults() {
        assert_eq!(Limits::default().engine(), aaep_engine::Limits::default());
    }
}
