use crate::rule;
use crate::text::{ErrorCode, Summary, Terse};
use crate::uri::Uri;
use crate::vocabulary::ErrorCategory;
use crate::wire::{Unknown, object};

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
