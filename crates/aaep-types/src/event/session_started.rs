use crate::list::Set;
use crate::number::Millis;
use crate::rule;
use crate::text::{Name, Prose, Summary, Terse};
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
