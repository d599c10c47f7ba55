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
    shapes: BTreeSet<Shape>,
    /// At this number of shapes, unused ones are dropped.
    many_shapes: usize,
}

impl Default for Preparer {
    fn default() -> Self {
        Self {
            segmenters: Segmenters::new(),
            outputs: BTreeMap::new(),
            shapes: BTreeSet::new(),
            many_shapes: 0,
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

    /// Terms of equal shapes get the same one, so that one can tell without looking into them.
    pub fn share(&mut self, terms: &mut Terms) {
        if let Some(known) = self.shapes.get(&terms.shape) {
            terms.shape = known.clone();
            return;
        }
        if self.shapes.len() >= self.many_shapes {
            self.shapes.retain(Shape::is_shared);
            self.many_shapes = (2 * self.shapes.len()).max(64);
        }
        self.shapes.insert(terms.shape.clone());
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
