//! What the agent is doing, and how far it is (§4.2).

use serde_json::{Value, json};

use super::read::check_summaries;
use crate::number::{Millis, Ordinal, Percent};
use crate::report::Report;
use crate::rule;
use crate::text::{Name, Summary, Terse};
use crate::wire::{Unknown, object};

object! {
    /// The agent does something else now (§4.2.1).
    pub struct StateChanged, fields StateChangedFields, unknown(Unknown::Refuse(rule::E19)), check(check_state) {
        /// What it did so far.
        required from_state: Name<'a, 1, 64>, T7;
        /// What it does from now on.
        required to_state: Name<'a, 1, 64>, T7;
        /// In a word or two.
        optional summary_terse: Terse<'a>, T7;
        /// In a sentence.
        optional summary_normal: Summary<'a>, T7;
        /// In full.
        optional summary_detailed: Summary<'a>, T7;
        /// How long it may stay so.
        optional expected_duration_ms: Millis, T7;
    }
}

fn check_state(fields: &StateChangedFields<'_>, report: &mut Report) {
    check_summaries(
        (&fields.summary_terse, &fields.summary_normal, &fields.summary_detailed),
        report,
    );
}

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
    pub struct ProgressUpdated, fields ProgressUpdatedFields, unknown(Unknown::Refuse(rule::E19)), check(check_update) {
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

fn check_update(fields: &ProgressUpdatedFields<'_>, report: &mut Report) {
    if fields.summary_normal.is_absent() {
        report.warning(
            rule::T29,
            format_args!("Add `summary_normal`; this event is likely to be announced."),
        );
    }
}
