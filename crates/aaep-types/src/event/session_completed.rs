use crate::number::{Count, Millis};
use crate::rule;
use crate::text::{Prose, Summary, Terse};
use crate::uri::Uri;
use crate::wire::{Unknown, object};

object! {
    /// A session ended well (§4.1.2).
    pub struct SessionCompleted, fields SessionCompletedFields, unknown(Unknown::Refuse(rule::E19)) {
        /// In a word or two: what came of it.
        optional summary_terse: Terse<'a>, T3;
        /// In a sentence: what came of it.
        required summary_normal: Summary<'a>, T3;
        /// In full: what came of it.
        optional summary_detailed: Summary<'a>, T3;
        /// How long it took.
        optional duration_ms: Millis, T3;
        /// How many tools were called.
        optional tool_invocations_count: Count, T3;
        /// What was written, in short.
        optional output_summary: Prose<'a>, T3;
        /// Where the result is.
        optional result_uri: Uri<'a>, T3;
    }
}
