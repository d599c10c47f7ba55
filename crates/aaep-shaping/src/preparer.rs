//! Preparing events, and finding the boundaries of their text, once for all subscriptions.

use aaep_types::{EventKind, Invalid, OutputId, SessionId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::cuts::{Segmenters, Tail};
use crate::prepared::{KnownEnvelope, Prepared, ShapeInfo};
use crate::terms::{Shape, Terms};

/// How many outputs are followed at once. Of more than these, text is cut only where its producer
/// says that it may be, and at its end.
pub const MAX_OPEN_OUTPUTS: usize = 4096;

/// Makes events ready to be offered. It follows the text of every open output, so that boundaries
/// are found once and not once for each subscription.
#[derive(Debug)]
pub struct Preparer {
    segmenters: Segmenters,
    outputs: BTreeMap<(SessionId, Option<OutputId>), Tail>,
    terms: BTreeSet<Arc<Terms>>,
    shapes: BTreeSet<Shape>,
    /// At this number of terms, unused ones are dropped, and shapes with them.
    many_terms: usize,
}

impl Default for Preparer {
    fn default() -> Self {
        Self {
            segmenters: Segmenters::new(),
            outputs: BTreeMap::new(),
            terms: BTreeSet::new(),
            shapes: BTreeSet::new(),
            many_terms: 0,
        }
    }
}

impl Preparer {
    /// One that follows nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Prepares an event as it was emitted; each event of a session once, in order. To deliver an
    /// event again, offer the same [`Prepared`] again.
    pub fn prepare(&mut self, json: impl Into<Arc<str>>) -> Result<Arc<Prepared>, Invalid> {
        Ok(self.finish(Prepared::read(json.into(), false)?))
    }

    /// Prepares the notice of a request's outcome, which is never held (decision D14).
    pub fn prepare_resolution(
        &mut self,
        json: impl Into<Arc<str>>,
    ) -> Result<Arc<Prepared>, Invalid> {
        Ok(self.finish(Prepared::read(json.into(), true)?))
    }

    /// Prepares an event that its producer knows without reading it again.
    pub fn prepare_known(&mut self, known: KnownEnvelope, info: ShapeInfo) -> Arc<Prepared> {
        self.finish(Prepared::known(known, info))
    }

    /// Equal terms are one, and terms of equal shapes have the same shape, so that one can tell without
    /// looking into them. Thousands of subscriptions agree on a few.
    pub fn share(&mut self, mut terms: Terms) -> Arc<Terms> {
        if let Some(known) = self.terms.get(&terms) {
            return known.clone();
        }
        if self.terms.len() >= self.many_terms {
            self.terms.retain(|terms| Arc::strong_count(terms) > 1);
            self.shapes.retain(Shape::is_shared);
            self.many_terms = (2 * self.terms.len()).max(64);
        }
        match self.shapes.get(&terms.shape) {
            Some(known) => terms.shape = known.clone(),
            None => drop(self.shapes.insert(terms.shape.clone())),
        }
        let terms = Arc::new(terms);
        self.terms.insert(terms.clone());
        terms
    }

    /// Forgets a session that ended without an event.
    pub fn forget_session(&mut self, session_id: SessionId) {
        self.outputs.retain(|(session, _), _| *session != session_id);
    }

    fn finish(&mut self, mut event: Prepared) -> Arc<Prepared> {
        let session = event.session_id();
        if event.kind().is_some_and(EventKind::is_terminal) {
            self.forget_session(session);
        }
        if let Some(part) = event.part_mut() {
            let key = (session, part.output);
            let known = self.outputs.contains_key(&key);
            if known || self.outputs.len() < MAX_OPEN_OUTPUTS {
                let start = || Tail::starting_at(part.position);
                let tail = self.outputs.entry(key).or_insert_with(start);
                if tail.end() != part.position {
                    *tail = Tail::starting_at(part.position);
                }
                let hint = part.hinted.then_some(part.ends_at);
                part.cuts = tail.push(&part.chunk, hint, &self.segmenters);
            } else if part.hinted {
                part.cuts.note(part.ends_at, part.end);
            }
            if part.complete {
                self.outputs.remove(&key);
            }
        }
        Arc::new(event)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_terms_are_one_and_those_that_nobody_has_are_forgotten() {
        let mut preparer = Preparer::new();
        let terms = |rate| Terms { rate: Some(rate), ..Terms::default() };
        let first = preparer.share(terms(1));
        assert!(Arc::ptr_eq(&first, &preparer.share(terms(1))));
        let other = preparer.share(terms(2));
        assert!(!Arc::ptr_eq(&first, &other) && first.shape.is(&other.shape));
        for rate in 3..10_000 {
            preparer.share(terms(rate));
        }
        assert!(preparer.terms.len() < 200, "{}", preparer.terms.len());
        assert!(Arc::ptr_eq(&first, &preparer.share(terms(1))));
    }
}
