//! Answers, in the form that each program reads.
//!
//! Most programs run the tool when their hook fails in most ways. A "no" therefore says it in every way
//! that the program knows: its own JSON, a reason, standard error, and status 2.

use serde_json::{Value, json};

use super::{Event, Host, Incoming};

/// What the program is told.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HookAnswer {
    /// The person said yes: the program need not ask again.
    Allow(String),
    /// Nothing stands against it here; the program decides as it would without us.
    Pass,
    /// The program asks in its own dialog. Where it has none, this is a "no".
    AskThere(String),
    /// It must not run, for this reason.
    Deny(String),
}

/// What is written, once, at the end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// For standard output; empty, or one line of JSON.
    pub out: String,
    /// For standard error.
    pub err: String,
    /// The exit status.
    pub status: u8,
}

impl HookAnswer {
    /// This answer to this call.
    pub fn reply(&self, incoming: &Incoming) -> Reply {
        match &incoming.event {
            Event::Before(call) => self.to_tool(incoming.host, call.wants_permission),
            // Nobody waits for more, and a status of 2 would mean something else here.
            _ => Reply { out: silent(incoming.host), err: String::new(), status: 0 },
        }
    }

    /// A "no" to somebody who could not be understood, in every form at once.
    pub fn refuse(host: Option<Host>, reason: &str) -> Reply {
        match host {
            Some(host) => Self::Deny(reason.to_owned()).to_tool(host, false),
            None => {
                let form = json!({
                    "hookSpecificOutput": {
                        "hookEventName": "PreToolUse",
                        "permissionDecision": "deny",
                        "permissionDecisionReason": reason,
                    },
                    "permissionDecision": "deny",
                    "permissionDecisionReason": reason,
                    "decision": "deny",
                    "reason": reason,
                    "cancel": true,
                    "errorMessage": reason,
                });
                no(&form, reason)
            }
        }
    }

    fn to_tool(&self, host: Host, permission: bool) -> Reply {
        match self {
            Self::Pass => Reply { out: silent(host), err: String::new(), status: 0 },
            Self::Allow(reason) => Reply {
                out: line(&form(host, permission, "allow", reason)),
                err: String::new(),
                status: 0,
            },
            Self::AskThere(reason) if host.has_dialog() && !permission => Reply {
                out: line(&form(host, permission, "ask", reason)),
                err: String::new(),
                status: 0,
            },
            Self::AskThere(reason) | Self::Deny(reason) => {
                no(&form(host, permission, "deny", reason), reason)
            }
        }
    }
}

fn no(form: &Value, reason: &str) -> Reply {
    Reply { out: line(form), err: format!("{reason}\n"), status: 2 }
}

fn line(form: &Value) -> String {
    format!("{form}\n")
}

/// Our plugin for opencode takes silence as a "no".
fn silent(host: Host) -> String {
    match host {
        Host::Opencode => line(&json!({ "decision": "pass" })),
        _ => String::new(),
    }
}

fn form(host: Host, permission: bool, word: &str, reason: &str) -> Value {
    let yes = word == "allow";
    match (host, permission) {
        (Host::Claude | Host::Codex | Host::Qwen | Host::Kimi, true) => {
            let decision = match yes {
                true => json!({ "behavior": "allow" }),
                false => json!({ "behavior": "deny", "message": reason }),
            };
            json!({ "hookSpecificOutput": { "hookEventName": "PermissionRequest", "decision": decision } })
        }
        (Host::Claude | Host::Codex | Host::Qwen | Host::Kimi, false) => json!({
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": word,
                "permissionDecisionReason": reason,
            }
        }),
        (Host::Gemini | Host::Opencode, _) => json!({ "decision": word, "reason": reason }),
        (Host::Copilot, true) => json!({ "behavior": word, "message": reason }),
        (Host::Copilot, false) => {
            json!({ "permissionDecision": word, "permissionDecisionReason": reason })
        }
        (Host::Cline, _) if yes => json!({ "cancel": false }),
        (Host::Cline, _) => json!({ "cancel": true, "errorMessage": reason }),
    }
}
