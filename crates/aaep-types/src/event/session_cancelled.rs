use crate::rule;
use crate::text::{CancellationReason, Prose, Summary, Terse};
use crate::vocabulary::CancelledBy;
use crate::wire::{Unknown, object};

object! {
    /// A session was given up (§4.1.4).
    pub struct SessionCancelled, fields SessionCancelledFields, unknown(Unknown::Refuse(rule::E19)) {
        /// Who gave it up.
        required cancelled_by: CancelledBy, T6;
        /// Why, in one word for programs.
        optional cancellation_reason: CancellationReason<'a>, T6;
        /// In a word or two: what was given up.
        optional summary_terse: Terse<'a>, T6;
        /// In a sentence: what was given up.
        required summary_normal: Summary<'a>, T6;
        /// In full: what was given up.
        optional summary_detailed: Summary<'a>, T6;
        /// What there was by then.
        optional partial_result: Prose<'a>, T6;
    }
}
