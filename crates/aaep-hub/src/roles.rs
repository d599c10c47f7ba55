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

/// What stands in the place of a text that a role is not to hear.
const LEFT_OUT: &str = "[not for this role]";

/// How deep an event may nest.
const DEPTH: usize = 64;

/// Members of the payload that tie events together.
const TIES: [&str; 7] = [
    "reply_token",
    "timeout_seconds",
    "default_decision",
    "tool_call_id",
    "output_id",
    "position",
    "complete",
];

/// Whether a member is never left out: nobody could follow the events without it.
fn is_needed(name: &str) -> bool {
    let spare = matches!(name, "correlation_id" | "extensions");
    ENVELOPE_MEMBERS.contains(&name) && !spare || TIES.contains(&name)
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
    /// These members: names, or prefixes with a trailing `*`. Members of `extensions` are named
    /// `extensions.PREFIX`.
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
        let is_hidden = |name: &str| {
            hidden.iter().any(|pattern| any_matches(std::slice::from_ref(*pattern), name))
        };
        let mut out = Writer::with_capacity(event.len());
        let mut changed = false;
        out.open('{');
        for member in members.iter() {
            let hides = is_hidden(&member.name) && !is_needed(&member.name);
            match member.value {
                Raw::String(_) if hides => {
                    out.name(&member.name);
                    out.string(LEFT_OUT);
                    changed = true;
                }
                // What is no text has no text in its place.
                _ if hides && member.name != "extensions" && member.name != "progress" => {
                    changed = true;
                    continue;
                }
                Raw::Object(theirs) if member.name == "extensions" => {
                    out.name(&member.name);
                    changed |= write_extensions(theirs, &is_hidden, &mut out);
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

/// Writes the extensions without the hidden ones; whether there were any.
fn write_extensions(theirs: &str, is_hidden: &dyn Fn(&str) -> bool, out: &mut Writer) -> bool {
    let members = Members::whole(theirs, DEPTH).ok().flatten().unwrap_or_default();
    let mut changed = false;
    out.open('{');
    for member in members.iter() {
        if is_hidden(&format!("extensions.{}", member.name)) {
            changed = true;
            continue;
        }
        out.name(&member.name);
        out.raw(member.value);
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
        assert_eq!(told["summary_normal"], LEFT_OUT);
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
        assert!(rule(Role::Auditor, "*", &["event_id"]).wrong().is_some());
        assert!(rule(Role::Auditor, "*", &["*"]).wrong().is_some());
    }
}
