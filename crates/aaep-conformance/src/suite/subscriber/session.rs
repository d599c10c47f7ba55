//! Sessions that the stage plays.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use serde_json::{Value, json};

use super::stage::Stage;
use crate::suite::producer::now;

pub(super) struct Session<'a> {
    stage: &'a Stage,
    pub(super) id: String,
    number: AtomicU64,
    state: Mutex<&'static str>,
}

fn random() -> String {
    format!("{:016x}{:016x}", RandomState::new().hash_one(1), RandomState::new().hash_one(2))
}

/// A token in which every kind of letter is, so that one that is changed is noticed.
pub(super) fn token() -> String {
    format!("rpl_{}AbIl0O{}", random(), "zZ9".repeat(4))
}

impl<'a> Session<'a> {
    /// Begins one.
    pub(super) fn begin(stage: &'a Stage, summary: &str) -> Self {
        let session = Self {
            stage,
            id: format!("sess_{}", random()),
            number: AtomicU64::new(0),
            state: Mutex::new("idle"),
        };
        session.emit("session.started", json!({ "summary_normal": summary }));
        session
    }

    /// An event of this session, which is not sent.
    pub(super) fn event(&self, kind: &str, members: Value) -> Value {
        let number = self.number.fetch_add(1, Ordering::Relaxed);
        let mut event = json!({
            "@context": "https://aaep-protocol.org/context/v1", "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{kind}"), "event_id": format!("evt_{}", random()),
            "session_id": self.id, "sequence_number": number, "timestamp": now(),
            "producer": { "agent_id": "aaep-conformance", "agent_name": "The suite" },
            "localization_hints": { "primary_language": "en" },
        });
        if let (Some(event), Value::Object(members)) = (event.as_object_mut(), members) {
            event.extend(members);
        }
        event
    }

    pub(super) fn emit(&self, kind: &str, members: Value) {
        self.stage.emit(&self.event(kind, members));
    }

    /// Leaves a number out.
    pub(super) fn skip_number(&self) {
        self.number.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn enter(&self, to: &'static str, summary: &str) {
        let from = {
            let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
            std::mem::replace(&mut *state, to)
        };
        let members = json!({ "from_state": from, "to_state": to, "summary_normal": summary });
        self.emit("state.changed", members);
    }

    pub(super) fn tool(&self, tool: &str, summary: &str, result: &str) {
        self.enter("calling_tool", "Using a tool.");
        let invoked = json!({ "tool": tool, "tool_call_id": "call_1", "summary_normal": summary });
        self.emit("tool.invoked", invoked);
        self.emit(
            "tool.completed",
            json!({ "tool": tool, "tool_call_id": "call_1", "status": "success",
                "summary_normal": result }),
        );
    }

    pub(super) fn ask(&self, token: &str, action: &str, consequence: &str) {
        self.enter("awaiting_input", "Waiting for an answer.");
        self.emit(
            "awaiting.confirmation",
            json!({
                "action": action, "consequence": consequence, "reply_token": token,
                "timeout_seconds": 300, "default_decision": "reject", "risk_level": "low",
                "reversibility": "reversible", "urgency": "critical", "summary_normal": action,
            }),
        );
    }

    pub(super) fn clarify(&self, token: &str, question: &str) {
        self.enter("awaiting_input", "Waiting for an answer.");
        self.emit(
            "awaiting.clarification",
            json!({
                "question": question, "reply_token": token, "timeout_seconds": 300,
                "accepted_response_kinds": ["freetext"], "urgency": "critical",
                "summary_normal": question,
            }),
        );
    }

    pub(super) fn complete(&self, summary: &str) {
        self.emit("session.completed", json!({ "summary_normal": summary }));
    }

    pub(super) fn fail(&self, summary: &str) {
        self.emit(
            "session.errored",
            json!({ "error_category": "permanent", "urgency": "critical",
                "summary_normal": summary }),
        );
    }

    pub(super) fn cancel(&self, summary: &str) {
        self.emit(
            "session.cancelled",
            json!({ "cancelled_by": "producer", "summary_normal": summary }),
        );
    }
}
