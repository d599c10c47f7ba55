use crate::text::{Summary, Terse};
use crate::wire::{Unknown, object};

object! {
    /// What an extension's own event says (§7.4): the summaries by which anybody can announce it;
    /// the rest means something to those who know the extension, and stays as it is.
    pub struct ExtensionPayload, fields ExtensionFields, unknown(Unknown::Keep) {
        /// In a word or two.
        optional summary_terse: Terse<'a>, X4;
        /// In a sentence.
        optional summary_normal: Summary<'a>, X4;
        /// In full.
        optional summary_detailed: Summary<'a>, X4;
    }
}
