//! The honoured terms of one subscription (§5.4).

use aaep_types::handshake::Capabilities;
use aaep_types::{CoalesceBoundary, LanguageTag, Level, Verbosity};
use std::sync::Arc;

use crate::filter::Filter;

/// Where streamed text may be cut: a set of the five boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Boundaries(u8);

impl Boundaries {
    /// The set of these boundaries.
    pub fn of(list: &[CoalesceBoundary]) -> Self {
        Self(list.iter().fold(0, |set, boundary| set | 1 << *boundary as u8))
    }

    /// Whether this one is among them.
    pub fn contains(self, boundary: CoalesceBoundary) -> bool {
        self.0 & (1 << boundary as u8) != 0
    }

    fn fine_to_coarse(self) -> impl DoubleEndedIterator<Item = CoalesceBoundary> {
        CoalesceBoundary::ALL.iter().copied().filter(move |boundary| self.contains(*boundary))
    }
}

/// What a producer promised one subscription, in a form that is quick to compare.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Terms {
    /// Events a second, critical ones aside; `None` means no limit.
    pub rate: Option<u32>,
    /// Where streamed text may be cut.
    pub boundaries: Boundaries,
    /// Which types are wanted.
    pub filter: Filter,
    /// Conformance levels, one bit each.
    pub levels: u8,
    /// How much the listener can take in.
    pub load: Level,
    /// Words a minute that are comfortable.
    pub pace_wpm: Option<u16>,
    /// Whether replies to confirmations may come.
    pub replies_to_confirmations: bool,
    /// Whether replies to clarifications may come.
    pub replies_to_clarifications: bool,
    /// Extensions, by address, in order.
    pub extensions: Vec<Box<str>>,
    /// That part of the terms that decides the bytes of an event.
    pub shape: Shape,
}

impl Terms {
    /// The terms that honoured capabilities stand for; what is absent has the default of §5.3.1.
    pub fn new(honored: &Capabilities<'_>) -> Self {
        let languages = honored.languages.as_deref().unwrap_or_default();
        let extensions = honored.supported_extensions.as_deref().unwrap_or_default();
        Self {
            rate: honored.rate().map(|rate| u32::try_from(rate).unwrap_or(u32::MAX)),
            boundaries: Boundaries::of(honored.boundaries()),
            filter: Filter::new(honored.included(), honored.excluded()),
            levels: honored.levels().iter().fold(0, |set, level| set | 1 << (level & 7)),
            load: honored.load(),
            pace_wpm: honored.pace_wpm.map(|pace| u16::try_from(pace.get()).unwrap_or(u16::MAX)),
            replies_to_confirmations: honored.replies_to_confirmations(),
            replies_to_clarifications: honored.replies_to_clarifications(),
            extensions: extensions.iter().map(|uri| uri.as_str().into()).collect(),
            shape: Shape::new(honored.preferred_verbosity, languages),
        }
    }

    /// How much is to be said.
    pub fn verbosity(&self) -> Verbosity {
        self.shape.0.verbosity.unwrap_or(Verbosity::Normal)
    }

    /// Whether anything may be held back or merged. Otherwise what is offered goes out at once, in the
    /// order in which it was offered.
    pub fn holds(&self) -> bool {
        self.rate.is_some() || self.load == Level::Low || self.cut() != CoalesceBoundary::None
    }

    /// Where text is cut: the finest boundary of the set, since each of them is acceptable; under
    /// a low cognitive load the coarsest, since that makes fewer announcements (§5.3.1.10).
    /// Completion always releases the rest, so it only counts when it stands alone.
    pub(crate) fn cut(&self) -> CoalesceBoundary {
        // enforces: H7, H10
        let mut inner =
            self.boundaries.fine_to_coarse().filter(|b| *b != CoalesceBoundary::Completion);
        let cut = if self.load == Level::Low { inner.next_back() } else { inner.next() };
        cut.unwrap_or(CoalesceBoundary::Completion)
    }
}

impl Default for Terms {
    /// The defaults of §5.3.1.
    fn default() -> Self {
        Self::new(&Capabilities::none())
    }
}

/// That part of the terms that decides the bytes of an event. Subscriptions with equal shapes
/// share them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Shape(Arc<Parts>);

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Parts {
    verbosity: Option<Verbosity>,
    languages: Vec<Box<str>>,
}

impl Shape {
    /// What was asked for; what was not asked for changes nothing.
    pub fn new(verbosity: Option<Verbosity>, languages: &[LanguageTag<'_>]) -> Self {
        // Tags are compared without regard to case (BCP 47).
        let languages = languages.iter().map(|tag| tag.as_str().to_ascii_lowercase().into());
        Self(Arc::new(Parts { verbosity, languages: languages.collect() }))
    }

    /// The verbosity that was asked for, if any was.
    pub fn verbosity(&self) -> Option<Verbosity> {
        self.0.verbosity
    }

    /// The languages that were asked for and granted, the dearest first.
    pub fn languages(&self) -> Vec<LanguageTag<'_>> {
        self.0.languages.iter().flat_map(|tag| LanguageTag::parse(&**tag).ok()).collect()
    }

    /// Whether it is the very same, not only an equal one: quick to say, and enough where equal ones
    /// have been [shared](crate::Preparer::share).
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Whether anybody else has this very one.
    pub(crate) fn is_shared(&self) -> bool {
        Arc::strong_count(&self.0) > 1
    }

    pub(crate) fn names_languages(&self) -> bool {
        !self.0.languages.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use CoalesceBoundary::*;

    fn cut(list: &[CoalesceBoundary], load: Level) -> CoalesceBoundary {
        Terms { boundaries: Boundaries::of(list), load, ..Terms::default() }.cut()
    }

    // covers: H2, H7
    #[test]
    fn the_default_terms_are_those_of_the_protocol() {
        let terms = Terms::default();
        assert_eq!((terms.rate, terms.load, terms.levels), (Option::None, Level::Medium, 0b10));
        assert_eq!(terms.cut(), Sentence);
        assert_eq!(terms.verbosity(), Verbosity::Normal);
        assert!(terms.filter.admits("aaep:agent.session.started"));
        assert!(!terms.shape.names_languages());
    }

    // covers: H7, H10
    #[test]
    fn the_finest_boundary_counts_and_under_low_load_the_coarsest() {
        assert_eq!(cut(&[Paragraph, Word, Completion], Level::Medium), Word);
        assert_eq!(cut(&[Paragraph, Word, Completion], Level::Low), Paragraph);
        assert_eq!(cut(&[Completion], Level::Low), Completion);
        assert_eq!(cut(&[None, Sentence], Level::High), None);
    }
}
