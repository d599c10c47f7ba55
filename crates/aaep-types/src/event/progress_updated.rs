use serde_json::{Value, json};

use crate::number::{Millis, Ordinal, Percent};
use crate::report::Report;
use crate::rule;
use crate::text::{Summary, Terse};
use crate::wire::{Unknown, object};

object! {
    /// How far a task is; at least one of the members is there.
    pub struct Progress, fields ProgressFields, unknown(Unknown::Refuse(rule::T9)), check(check_progress), extra(at_least_one) {
        /// How much is done.
        optional percent: Percent, T9;
        /// Which step this is.
        optional step: Ordinal, T9;
        /// How many steps there are.
        optional total_steps: Ordinal, T9;
        /// What is being done.
        optional description: Terse<'a>, T9;
    }
}

object! {
    /// A long task moved on (§4.2.2).
    pub struct ProgressUpdated, fields ProgressUpdatedFields, unknown(Unknown::Refuse(rule::E19)), check(check) {
        /// How far it is.
        required progress: Progress<'a>, T9;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T9;
        /// In a sentence.
        optional summary_normal: Summary<'a>, T9;
        /// In full.
        optional summary_detailed: Summary<'a>, T9;
        /// How long it may still take.
        optional eta_ms: Millis, T9;
    }
}

fn check_progress(fields: &ProgressFields<'_>, report: &mut Report) {
    let absent = fields.percent.is_absent()
        && fields.step.is_absent()
        && fields.total_steps.is_absent()
        && fields.description.is_absent();
    if absent {
        report.error(
            rule::T9,
            format_args!(
                "Say how far it is: give `percent`, `step`, `total_steps` or `description`."
            ),
        );
    }
    let (step, total) = (fields.step.good(), fields.total_steps.good());
    if total.is_some() && step > total {
        report.warning(rule::T9, format_args!("Keep `step` within `total_steps`."));
    }
}

fn at_least_one() -> Vec<(&'static str, Value)> {
    let one = |name| json!({ "required": [name] });
    vec![("anyOf", json!([one("percent"), one("step"), one("total_steps"), one("description")]))]
}

fn check(fields: &ProgressUpdatedFields<'_>, report: &mut Report) {
    if fields.summary_normal.is_absent() {
        report.warning(
            rule::T29,
            format_args!("Add `summary_normal`; this event is likely to be announced."),
        );
    }
}
