use crate::report::Report;
use crate::rule;
use crate::text::{Summary, Terse};
use crate::uri::Uri;
use crate::vocabulary::{Level, TargetKind};
use crate::wire::{Opaque, Unknown, object};

object! {
    /// The task is handed to a person or another agent (§4.4.3).
    pub struct HandoffRequested, fields HandoffRequestedFields, unknown(Unknown::Refuse(rule::E19)), check(check) {
        /// Why.
        required reason: Summary<'a>, T23;
        /// Who is wanted.
        required target_kind: TargetKind, T23;
        /// Where they are reached.
        optional target_uri: Uri<'a>, T23;
        /// How soon.
        optional urgency_for_handoff: Level, T23;
        /// What they need to know.
        optional packaged_context: Opaque<'a>, T23;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T23;
        /// In a sentence.
        optional summary_normal: Summary<'a>, T23;
        /// In full.
        optional summary_detailed: Summary<'a>, T23;
    }
}

fn check(fields: &HandoffRequestedFields<'_>, report: &mut Report) {
    if fields.summary_normal.is_absent() {
        report.warning(
            rule::T29,
            format_args!("Add `summary_normal`; this event is likely to be announced."),
        );
    }
}
