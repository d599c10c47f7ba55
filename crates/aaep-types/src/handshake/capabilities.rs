use crate::language::LanguageTag;
use crate::list::Set;
use crate::number::Whole;
use crate::rule;
use crate::text::{Name, UNBOUNDED};
use crate::uri::Uri;
use crate::vocabulary::{CoalesceBoundary, Level, Verbosity};
use crate::wire::{Unknown, object};

object! {
    /// Which event types are wanted: literal names, or a prefix before a trailing `*` (§5.3.1.7).
    pub struct EventFilters, fields EventFiltersFields, unknown(Unknown::Refuse(rule::H8)) {
        /// What is wanted.
        optional include: Set<Name<'a, 1, 256>, 0, UNBOUNDED>, H8;
        /// What is not, even if it is wanted.
        optional exclude: Set<Name<'a, 1, 256>, 0, UNBOUNDED>, H8;
    }
}

object! {
    /// What a subscriber can do and wants (§5.3), or what the producer grants of it (§5.4).
    /// Absent members have the defaults of §5.3.1; further ones belong to extensions.
    pub struct Capabilities, fields CapabilitiesFields, unknown(Unknown::ObjectsOnly(rule::H12)) {
        /// How many events a second at most, critical ones aside; no limit when absent.
        optional max_events_per_second: Whole<1, 100_000>, H3;
        /// How much is to be said; `normal` when absent.
        optional preferred_verbosity: Verbosity, H4;
        /// Languages, the dearest first; `en-US` when absent.
        optional languages: Set<LanguageTag<'a>, 1, 32>, H5;
        /// Whether it answers confirmations; it does not when absent.
        optional supports_confirmation_reply: bool, H6;
        /// Whether it answers clarifications; it does not when absent.
        optional supports_clarification_reply: bool, H6;
        /// Where streamed text may be cut; after a sentence and at the end when absent.
        optional coalesce_boundaries: Set<CoalesceBoundary, 1, 5>, H7;
        /// Which events; all of the protocol's own when absent.
        optional event_filters: EventFilters<'a>, H8;
        /// Conformance levels; only the first when absent.
        optional supported_conformance_levels: Set<Whole<1, 3>, 1, 3>, H9;
        /// Extensions, by address; none when absent.
        optional supported_extensions: Set<Uri<'a>, 0, 64>, H12;
        /// How much the listener can take in; `medium` when absent.
        optional cognitive_load: Level, H10;
        /// Words a minute that are comfortable.
        optional pace_wpm: Whole<50, 1000>, H10;
        /// Whether only a signed manifest will do; it need not be when absent.
        optional accept_signed_manifests_only: bool, H11;
    }
}

/// The defaults of §5.3.1 for whatever a subscriber left out.
impl<'a> Capabilities<'a> {
    /// Nothing asked for.
    pub fn none() -> Self {
        Self {
            max_events_per_second: None,
            preferred_verbosity: None,
            languages: None,
            supports_confirmation_reply: None,
            supports_clarification_reply: None,
            coalesce_boundaries: None,
            event_filters: None,
            supported_conformance_levels: None,
            supported_extensions: None,
            cognitive_load: None,
            pace_wpm: None,
            accept_signed_manifests_only: None,
            other: Vec::new(),
        }
    }

    /// The capabilities as JSON.
    pub fn to_json(&self) -> String {
        let mut out = crate::json::Writer::new();
        crate::wire::Wire::write(self, &mut out);
        out.finish()
    }

    /// Events a second; `None` means no limit.
    pub fn rate(&self) -> Option<u64> {
        self.max_events_per_second.map(Whole::get)
    }

    /// How much is to be said.
    pub fn verbosity(&self) -> Verbosity {
        self.preferred_verbosity.unwrap_or(Verbosity::Normal)
    }

    // enforces: H2
    /// The languages, the dearest first.
    pub fn languages(&self) -> Vec<LanguageTag<'_>> {
        match &self.languages {
            Some(languages) => languages.to_vec(),
            None => LanguageTag::parse("en-US").into_iter().collect(),
        }
    }

    /// Whether replies to confirmations may come.
    pub fn replies_to_confirmations(&self) -> bool {
        self.supports_confirmation_reply.unwrap_or(false)
    }

    /// Whether replies to clarifications may come.
    pub fn replies_to_clarifications(&self) -> bool {
        self.supports_clarification_reply.unwrap_or(false)
    }

    // enforces: H2
    /// Where streamed text may be cut.
    pub fn boundaries(&self) -> &[CoalesceBoundary] {
        const DEFAULT: &[CoalesceBoundary] =
            &[CoalesceBoundary::Sentence, CoalesceBoundary::Completion];
        self.coalesce_boundaries.as_deref().unwrap_or(DEFAULT)
    }

    // enforces: H2
    /// Patterns of the wanted types.
    pub fn included(&self) -> Vec<&str> {
        let include = self.event_filters.as_ref().and_then(|filters| filters.include.as_deref());
        include.map_or(vec!["aaep:agent.*"], |list| list.iter().map(|name| name.as_str()).collect())
    }

    /// Patterns of the unwanted types.
    pub fn excluded(&self) -> Vec<&str> {
        let exclude = self.event_filters.as_ref().and_then(|filters| filters.exclude.as_deref());
        exclude.unwrap_or_default().iter().map(|name| name.as_str()).collect()
    }

    // enforces: H2
    /// The conformance levels.
    pub fn levels(&self) -> Vec<u64> {
        let levels = self.supported_conformance_levels.as_deref();
        levels.map_or(vec![1], |levels| levels.iter().map(|level| level.get()).collect())
    }

    /// How much the listener can take in.
    pub fn load(&self) -> Level {
        self.cognitive_load.unwrap_or(Level::Medium)
    }

    /// Whether only a signed manifest will do.
    pub fn demands_signature(&self) -> bool {
        self.accept_signed_manifests_only.unwrap_or(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: H2
    #[test]
    fn whoever_asks_for_nothing_gets_the_defaults() {
        let none = Capabilities::none();
        assert_eq!(none.rate(), None);
        assert_eq!(none.verbosity(), Verbosity::Normal);
        assert_eq!(none.languages(), [LanguageTag::parse("en-US").unwrap()]);
        assert!(!none.replies_to_confirmations() && !none.replies_to_clarifications());
        assert_eq!(none.boundaries(), [CoalesceBoundary::Sentence, CoalesceBoundary::Completion]);
        assert_eq!((none.included(), none.excluded()), (vec!["aaep:agent.*"], vec![]));
        assert_eq!(none.levels(), [1]);
        assert!(none.supported_extensions.is_none());
        assert_eq!(none.load(), Level::Medium);
        assert!(!none.demands_signature());
    }
}
