//! What a role is not to hear (§10.5.3): texts that are left out of its events, as configured and never
//! guessed.
//!
//! Somebody who answers hears every question whole (S10), so questions keep their words for roles that
//! answer; the configuration refuses anything else.

use aaep_engine::Role;
use aaep_types::json::{Members, Raw, Writer};
use aaep_types::{CORE_CONTEXT, ENVELOPE_MEMBERS, EventKind, recorded, redaction};
use serde::{Deserialize, Serialize};

use crate::redaction::with_extension;

/// How deep an event may nest.
const DEPTH: usize = 64;

/// Members of the payload that tie events together, or without which an event is none.
const TIES: [&str; 14] = [
    "reply_token",
    "timeout_seconds",
    "default_decision",
    "tool",
    "tool_call_id",
    "output_id",
    "position",
    "complete",
    "status",
    "from_state",
    "to_state",
    "error_category",
    "cancelled_by",
    "target_kind",
];

/// Texts that are no sentences: nothing stands in their place.
const CODES: [&str; 10] = [
    "coalesce_hint",
    "content_type",
    "default_response",
    "error_code",
    "error_uri",
    "cancellation_reason",
    "language",
    "result_uri",
    "target_uri",
    "urgency_for_handoff",
];

/// Extensions that tie events together.
const TIED_EXTENSIONS: [&str; 4] = ["outcome", "timing", "team", redaction::PREFIX];

/// Whether a member is never left out: nobody could follow the events without it.
fn is_needed(name: &str) -> bool {
    let spare = matches!(name, "correlation_id" | "extensions");
    let tied =
        name.strip_prefix("extensions.").is_some_and(|prefix| TIED_EXTENSIONS.contains(&prefix));
    ENVELOPE_MEMBERS.contains(&name) && !spare || TIES.contains(&name) || tied
}

/// Whether a pattern names a member: by its name, by a beginning with `*`, by the member that it is a
/// part of, or by the text that it says in another language (§11.5.1).
fn names(pattern: &str, name: &str) -> bool {
    match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => name
            .strip_prefix(pattern)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('.') || rest.starts_with('_')),
    }
}

/// One thing that a role is not to hear.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RoleRule {
    /// Whose.
    #[serde(with = "crate::config::RoleName")]
    pub role: Role,
    /// In events of these types: names, or prefixes with a trailing `*`.
    #[serde(default = "every_type")]
    pub types: Vec<String>,
    /// These members, and what they say in other languages: names, or prefixes with a trailing `*`.
    /// Members of `extensions` are named `extensions.PREFIX`, the text of `progress`
    /// `progress.description`.
    pub leave_out: Vec<String>,
}

fn every_type() -> Vec<String> {
    vec!["*".into()]
}

impl RoleRule {
    /// Why this rule cannot be, if it cannot.
    pub(crate) fn wrong(&self) -> Option<&'static str> {
        let answers = matches!(self.role, Role::AccessibilityConsumer | Role::Admin);
        let questions = [EventKind::AwaitingConfirmation, EventKind::AwaitingClarification];
        let of_questions = questions.iter().any(|kind| any_matches(&self.types, kind.as_str()));
        if answers && of_questions {
            return Some("Whoever answers hears questions whole.");
        }
        let needed = |name: &&String| is_needed(name) || name.as_str() == "*";
        self.leave_out
            .iter()
            .any(|name| needed(&name))
            .then_some("Without this member nobody could follow the events.")
    }
}

fn any_matches(patterns: &[String], name: &str) -> bool {
    patterns.iter().any(|pattern| match pattern.strip_suffix('*') {
        Some(prefix) => name.starts_with(prefix),
        None => pattern == name,
    })
}

/// The rules of all roles.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Roles(Vec<RoleRule>);

impl Roles {
    pub(crate) fn new(rules: &[RoleRule]) -> Self {
        Self(rules.to_vec())
    }

    // enforces: S15, S8
    /// An event as this role may hear it; `None` if that is the event itself.
    pub(crate) fn heard_by(&self, role: Role, event: &str) -> Option<String> {
        if self.0.is_empty() {
            return None;
        }
        let members = Members::whole(event, DEPTH).ok().flatten()?;
        let kind = recorded::type_name(&members)?;
        let rules = self.0.iter().filter(|rule| rule.role == role);
        let hidden: Vec<&String> = rules
            .filter(|rule| any_matches(&rule.types, &kind))
            .flat_map(|rule| &rule.leave_out)
            .collect();
        if hidden.is_empty() {
            return None;
        }
        let is_hidden =
            |name: &str| !is_needed(name) && hidden.iter().any(|pattern| names(pattern, name));
        let left_out =
            aaep_engine::left_out(&recorded::primary_language(&members).unwrap_or_default());
        let mut out = Writer::with_capacity(event.len());
        let mut changed = false;
        out.open('{');
        for member in members.iter() {
            let name = &*member.name;
            // Without the choices, what may be chosen is not said either.
            let hides =
                is_hidden(name) || name == "accepted_response_kinds" && is_hidden("choices");
            match member.value {
                Raw::Object(theirs) if name == "extensions" || name == "progress" => {
                    out.name(name);
                    let parts = (name, left_out);
                    changed |= write_parts(theirs, parts, &is_hidden, &mut out);
                }
                // Positions count its characters, so as many stand in its place.
                Raw::String(text) if hides && name == "chunk" => {
                    out.name(name);
                    out.string(&"…".repeat(text.decode().chars().count()));
                    changed = true;
                }
                Raw::String(_) if hides && !CODES.contains(&name) && !is_choice(name) => {
                    out.name(name);
                    out.string(left_out);
                    changed = true;
                }
                // What is no text has no text in its place.
                _ if hides => {
                    changed = true;
                    continue;
                }
                value => {
                    out.name(&member.name);
                    out.raw(value);
                }
            }
            out.comma();
        }
        out.close('}');
        let told = r#"{"removed":["not_for_this_role"]}"#;
        let extension = (redaction::URI, redaction::PREFIX);
        changed.then(|| {
            recorded::context_first(&with_extension(&out.finish(), extension, told), CORE_CONTEXT)
        })
    }
}

/// Whether a text is one of a few words of the protocol.
fn is_choice(name: &str) -> bool {
    matches!(name, "risk_level" | "reversibility")
}

/// Writes a member whose parts are hidden one by one; whether any was.
fn write_parts(
    theirs: &str,
    (whole, left_out): (&str, &str),
    is_hidden: &dyn Fn(&str) -> bool,
    out: &mut Writer,
) -> bool {
    let members = Members::whole(theirs, DEPTH).ok().flatten().unwrap_or_default();
    let mut changed = false;
    out.open('{');
    for member in members.iter() {
        let hides = is_hidden(&format!("{whole}.{}", member.name));
        match (whole, member.value) {
            _ if !hides => {
                out.name(&member.name);
                out.raw(member.value);
            }
            // It may be all that the progress says.
            ("progress", Raw::String(_)) => {
                out.name(&member.name);
                out.string(left_out);
                changed = true;
            }
            // How far something is stays: it is no text.
            ("progress", value) => {
                out.name(&member.name);
                out.raw(value);
            }
            _ => {
                changed = true;
                continue;
            }
        }
        out.comma();
    }
    out.close('}');
    changed
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(role: Role, types: &str, leave_out: &[&str]) -> RoleRule {
        let leave_out = leave_out.iter().map(ToString::to_string).collect();
        RoleRule { role, types: vec![types.into()], leave_out }
    }

    const EVENT: &str = r#"{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.tool.invoked","event_id":"evt_1","session_id":"sess_1","sequence_number":3,"timestamp":"2026-05-24T14:22:11.000Z","producer":{"agent_id":"a"},"urgency":"normal","localization_hints":{"primary_language":"en"},"tool":"look","tool_call_id":"call_1","args_summary":"Ann Lee","summary_terse":"T","summary_normal":"Looking for Ann Lee.","summary_detailed":"D"}"#;

    // covers: S15
    #[test]
    fn a_role_hears_everything_but_what_it_is_not_to_hear_and_is_told_so() {
        let roles =
            Roles::new(&[rule(Role::Auditor, "aaep:agent.tool.*", &["summary_*", "args_summary"])]);
        let heard = roles.heard_by(Role::Auditor, EVENT).unwrap();
        assert!(!heard.contains("Ann Lee"), "{heard}");
        let told: serde_json::Value = serde_json::from_str(&heard).unwrap();
        assert_eq!(told["summary_normal"], "[not for this role]");
        assert_eq!(told["tool"], "look");
        assert_eq!(told["extensions"]["redaction"]["removed"][0], "not_for_this_role");
        let problems = aaep_types::validate(heard.as_bytes());
        assert!(problems.is_empty(), "{problems:?} {heard}");
        assert_eq!(roles.heard_by(Role::AccessibilityConsumer, EVENT), None);
        assert_eq!(roles.heard_by(Role::Auditor, &EVENT.replace("tool.invoked", "x")), None);
    }

    // covers: S15, S10
    #[test]
    fn whoever_answers_hears_questions_whole_and_nobody_loses_the_thread() {
        assert!(rule(Role::AccessibilityConsumer, "*", &["action"]).wrong().is_some());
        assert!(rule(Role::Admin, "aaep:agent.awaiting.*", &["action"]).wrong().is_some());
        assert!(rule(Role::Auditor, "*", &["action"]).wrong().is_none());
        assert!(
            rule(Role::AccessibilityConsumer, "aaep:agent.tool.*", &["args_summary"])
                .wrong()
                .is_none()
        );
        for needed in ["event_id", "tool", "status", "to_state", "extensions.outcome"] {
            assert!(rule(Role::Auditor, "*", &[needed]).wrong().is_some(), "{needed}");
        }
        assert!(rule(Role::Auditor, "*", &["*"]).wrong().is_some());
    }

    /// What an auditor hears of an event, without these members; it is a valid event.
    fn heard(kind: &str, payload: &str, leave_out: &[&str]) -> serde_json::Value {
        let head = EVENT.split("\"tool\":").next().unwrap();
        let head = head.replace("tool.invoked", kind).replace(r#""en""#, r#""fr-CA""#);
        let contexts = [CORE_CONTEXT, "urn:aaep-rs:outcome:v1", aaep_types::action::URI];
        let head = head.replace(&format!("{CORE_CONTEXT:?}"), &format!("{contexts:?}"));
        let heard = Roles::new(&[rule(Role::Auditor, "*", leave_out)])
            .heard_by(Role::Auditor, &(head + payload))
            .unwrap();
        let problems = aaep_types::validate(heard.as_bytes());
        assert!(problems.is_empty(), "{problems:?} {heard}");
        assert!(!heard.contains("Ann Lee"), "{heard}");
        serde_json::from_str(&heard).unwrap()
    }

    // covers: S15, L13
    #[test]
    fn nothing_that_is_left_out_is_said_elsewhere_and_what_is_left_is_an_event() {
        let summaries = r#""summary_terse":"T","summary_normal":"N","summary_detailed":"D""#;
        // What it says in another language; what is a word of the protocol and no text.
        let call = format!(
            r#""tool":"look","tool_call_id":"call_1","risk_level":"low","args_summary":"Ann Lee","args_summary_yo":"Ann Lee",{summaries}}}"#
        );
        let told = heard("tool.invoked", &call, &["args_summary", "risk_level"]);
        assert_eq!(told["args_summary_yo"], "[pas pour ce rôle]");
        assert_eq!((told.get("risk_level"), &told["tool_call_id"]), (None, &"call_1".into()));
        // A part of a member, and a member by its parts.
        let progress =
            format!(r#""progress":{{"percent":5,"description":"Ann Lee"}},{summaries}}}"#);
        for leave_out in ["progress", "progress.description"] {
            let told = heard("progress.updated", &progress, &[leave_out]);
            assert_eq!(told["progress"]["percent"], 5);
        }
        let account = r#"{"outcome":{"request_event_id":"evt_1","outcome":"accepted"},"action":{"tool":"look","arguments":"Ann Lee","digest":"d","described_by":"agent"}}"#;
        let state = format!(
            r#""from_state":"awaiting_input","to_state":"thinking",{summaries},"extensions":{account}}}"#
        );
        let state = heard("state.changed", &state, &["extensions"]);
        assert_eq!(state["extensions"]["outcome"]["outcome"], "accepted");
        assert_eq!(state["extensions"].get("action"), None);
        // Positions still fit.
        let chunk = r#""chunk":"Ann Lee é","position":4,"complete":true}"#;
        let told = heard("output.streaming", chunk, &["chunk", "coalesce_hint"]);
        assert_eq!(told["chunk"], "…".repeat(9));
    }
}
