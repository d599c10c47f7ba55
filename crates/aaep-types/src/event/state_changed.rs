use super::read::check_summaries;
use crate::number::Millis;
use crate::report::Report;
use crate::rule;
use crate::text::{Name, Summary, Terse};
use crate::wire::{Unknown, object};

object! {
    /// The agent does something else now (§4.2.1).
    pub struct StateChanged, fields StateChangedFields, unknown(Unknown::Refuse(rule::E19)), check(check) {
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

fn check(fields: &StateChangedFields<'_>, report: &mut Report) {
    check_summaries(
        (&fields.summary_terse, &fields.summary_normal, &fields.summary_detailed),
        report,
    );
}
