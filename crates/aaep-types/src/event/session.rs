//! How a session begins and ends (§4.1).

use crate::list::Set;
use crate::number::{Count, Millis};
use crate::rule;
use crate::text::{CancellationReason, ErrorCode, Name, Prose, Summary, Terse};
use crate::uri::Uri;
use crate::vocabulary::{CancelledBy, ErrorCategory};
use crate::wire::{Unknown, object};

object! {
    /// A session began (§4.1.1).
    pub struct SessionStarted, fields SessionStartedFields, unknown(Unknown::Refuse(rule::E19)) {
        /// In a word or two: what it is about.
        optional summary_terse: Terse<'a>, T2;
        /// In a sentence: what it is about.
        required summary_normal: Summary<'a>, T2;
        /// In full: what it is about.
        optional summary_detailed: Summary<'a>, T2;
        /// How long it may take.
        optional expected_duration_ms: Millis, T2;
        /// Who asked for it.
        optional requested_by: Name<'a, 1, 256>, T2;
        /// What they asked, in their words.
        optional request_text: Prose<'a>, T2;
        /// The tools at hand.
        optional tools_available: Set<Name<'a, 1, 256>, 0, 256>, T2;
    }
}

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

object! {
    /// A session ended with an error (§4.1.3).
    pub struct SessionErrored, fields SessionErroredFields, unknown(Unknown::Refuse(rule::E19)) {
        /// What kind of error.
        required error_category: ErrorCategory, T4;
        /// The error's name for programs.
        optional error_code: ErrorCode<'a>, T4;
        /// In a word or two: what went wrong.
        optional summary_terse: Terse<'a>, T4;
        /// In a sentence: what went wrong.
        required summary_normal: Summary<'a>, T4;
        /// In full: what went wrong.
        optional summary_detailed: Summary<'a>, T4;
        /// Whether trying again makes sense.
        optional recoverable: bool, T4;
        /// What the user can do.
        optional remediation_hint: Terse<'a>, T4;
        /// Where to read more.
        optional error_uri: Uri<'a>, T4;
    }
}

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
