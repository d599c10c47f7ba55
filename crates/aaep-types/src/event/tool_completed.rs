use super::read::check_summaries;
use crate::id::ToolCallId;
use crate::number::Millis;
use crate::report::Report;
use crate::rule;
use crate::text::{Summary, Terse, ToolName};
use crate::vocabulary::ToolStatus;
use crate::wire::{Unknown, object};

object! {
    /// A tool came back, or never will (§4.3.2).
    pub struct ToolCompleted, fields ToolCompletedFields, unknown(Unknown::Refuse(rule::E19)), check(check) {
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

fn check(fields: &ToolCompletedFields<'_>, report: &mut Report) {
    check_summaries(
        (&fields.summary_terse, &fields.summary_normal, &fields.summary_detailed),
        report,
    );
    if fields.tool_call_id.is_absent() {
        report.warning(rule::T35, format_args!("Add the `tool_call_id` of the call that ended."));
    }
}
