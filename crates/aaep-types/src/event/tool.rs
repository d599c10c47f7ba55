//! Calls of tools (§4.3).

use super::read::check_summaries;
use crate::id::ToolCallId;
use crate::number::Millis;
use crate::report::Report;
use crate::rule;
use crate::text::{Prose, Summary, Terse, ToolName};
use crate::vocabulary::{RiskLevel, ToolStatus};
use crate::wire::{Unknown, object};

object! {
    /// A tool is about to run; nothing has happened yet (§4.3.1).
    pub struct ToolInvoked, fields ToolInvokedFields, unknown(Unknown::Refuse(rule::E19)), check(check_invoked) {
        /// Its name.
        required tool: ToolName<'a>, T11;
        /// Ties the call to its `tool.completed`.
        optional tool_call_id: ToolCallId, T13;
        /// What the tool does.
        optional description: Terse<'a>, T11;
        /// What it is called with, without secrets.
        optional args_summary: Prose<'a>, T11;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T11;
        /// In a sentence.
        required summary_normal: Summary<'a>, T11;
        /// In full.
        optional summary_detailed: Summary<'a>, T11;
        /// How long it may take.
        optional expected_duration_ms: Millis, T11;
        /// How much can go wrong; `low` when absent.
        optional risk_level: RiskLevel, T11;
        /// Whether it cannot be taken back; false when absent.
        optional irreversible: bool, T12;
    }
}

fn check_invoked(fields: &ToolInvokedFields<'_>, report: &mut Report) {
    check_summaries(
        (&fields.summary_terse, &fields.summary_normal, &fields.summary_detailed),
        report,
    );
    if fields.tool_call_id.is_absent() {
        report.warning(
            rule::T35,
            format_args!("Add `tool_call_id`, so that its end can be told from another's."),
        );
    }
}

object! {
    /// A tool came back, or never will (§4.3.2).
    pub struct ToolCompleted, fields ToolCompletedFields, unknown(Unknown::Refuse(rule::E19)), check(check_completed) {
        /// Its name, as it was invoked.
        required tool: ToolName<'a>, T15;
        /// The call that ended.
        optional tool_call_id: ToolCallId, T13;
        /// How it ended.
        required status: ToolStatus, T15;
        /// How long it took.
        optional duration_ms: Millis, T15;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T15;
        /// In a sentence.
        optional summary_normal: Summary<'a>, T15;
        /// In full.
        optional summary_detailed: Summary<'a>, T15;
        /// What went wrong.
        optional error_message: Terse<'a>, T15;
    }
}

fn check_completed(fields: &ToolCompletedFields<'_>, report: &mut Report) {
    check_summaries(
        (&fields.summary_terse, &fields.summary_normal, &fields.summary_detailed),
        report,
    );
    if fields.tool_call_id.is_absent() {
        report.warning(rule::T35, format_args!("Add the `tool_call_id` of the call that ended."));
    }
}
