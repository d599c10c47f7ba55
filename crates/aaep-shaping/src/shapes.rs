//! The bytes of an event for one shape of terms, made once and shared.

use aaep_types::event::Piece;
use aaep_types::{CoalesceBoundary, Event, Payload, Urgency, Verbosity, choose_language};
use std::sync::{Arc, Mutex, PoisonError};

use crate::prepared::Prepared;
use crate::terms::Shape;

/// How many different results of one event are kept; further ones are made and not kept.
const MAX_KEPT: usize = 64;

/// What shaping could change about an event.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Shapable {
    languages: bool,
    terse: bool,
    normal: bool,
    detailed: bool,
}

impl Shapable {
    /// Of an event whose sentence is the producer's own, in all three lengths.
    pub const OURS: Self = Self { languages: false, terse: true, normal: true, detailed: true };

    /// Of a request: a person who decides hears everything, in one language or another.
    pub fn of_question(variants: bool) -> Self {
        Self { languages: variants, ..Self::default() }
    }

    pub fn of(event: &Event<'_>) -> Self {
        let (terse, normal, detailed) = summaries(event.payload());
        let detailed = detailed && event.urgency() != Urgency::Critical;
        Self { languages: event.has_variants(), terse, normal, detailed }
    }

    fn concerns(&self, shape: &Shape) -> bool {
        (self.languages && shape.names_languages()) || self.drops_detail(shape)
    }

    /// Detail goes only if it was asked not to be there and what was asked for is. The sentence
    /// always stays: it may have to be announced (T29).
    fn drops_detail(&self, shape: &Shape) -> bool {
        // enforces: E12, H4
        self.detailed
            && match shape.verbosity() {
                Some(Verbosity::Terse) => self.terse && self.normal,
                Some(Verbosity::Normal) => self.normal,
                Some(Verbosity::Detailed) | None => false,
            }
    }
}

/// Which summaries an event has. Requests, errors, handoffs and whatever else is critical are left
/// as they are: a person who decides hears everything.
fn summaries(payload: &Payload<'_>) -> (bool, bool, bool) {
    macro_rules! of {
        ($it:expr, required) => {
            ($it.summary_terse.is_some(), true, $it.summary_detailed.is_some())
        };
        ($it:expr) => {
            (
                $it.summary_terse.is_some(),
                $it.summary_normal.is_some(),
                $it.summary_detailed.is_some(),
            )
        };
    }
    match payload {
        Payload::SessionStarted(it) => of!(it, required),
        Payload::SessionCompleted(it) => of!(it, required),
        Payload::SessionCancelled(it) => of!(it, required),
        Payload::StateChanged(it) => of!(it),
        Payload::ProgressUpdated(it) => of!(it),
        Payload::ToolInvoked(it) => of!(it, required),
        Payload::ToolCompleted(it) => of!(it),
        Payload::Extension(it) => of!(it),
        _ => (false, false, false),
    }
}

/// What merging made of an event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Cast {
    /// As it was emitted.
    Plain,
    /// With urgency critical (decision D31).
    Raised,
    /// A state change that leaves another state.
    State { from: Box<str> },
    /// A call that stands for others; this comes before its summaries.
    Calls { before: Box<str> },
    /// Text from here to there; the event is its last part.
    Text { from: u64, to: u64, ends_at: CoalesceBoundary },
}

#[derive(Debug)]
struct Made {
    shape: Option<Shape>,
    cast: Cast,
    bytes: Arc<str>,
}

/// What was made of one event so far. Few, so looking through them beats hashing; the lock is
/// never held for longer than that, and never while another is.
#[derive(Debug, Default)]
pub(crate) struct Shapes(Mutex<Vec<Made>>);

impl Shapes {
    pub fn made(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }
}

impl Prepared {
    /// The event's bytes for subscriptions of this shape, the same for all of them.
    pub fn bytes(&self, shape: &Shape) -> Arc<str> {
        self.cast(shape, Cast::Plain, String::new)
    }

    /// The same for an event that merging changed; `text` is called only the first time.
    pub(crate) fn cast(
        &self,
        shape: &Shape,
        cast: Cast,
        text: impl FnOnce() -> String,
    ) -> Arc<str> {
        let shape = self.shapable().concerns(shape).then_some(shape);
        if shape.is_none() && cast == Cast::Plain {
            return Arc::clone(self.json());
        }
        let mut made = self.shapes().0.lock().unwrap_or_else(PoisonError::into_inner);
        let same = |made: &&Made| made.cast == cast && made.shape.as_ref() == shape;
        if let Some(made) = made.iter().find(same) {
            return Arc::clone(&made.bytes);
        }
        let bytes = self.make(shape, &cast, text);
        if made.len() < MAX_KEPT {
            made.push(Made { shape: shape.cloned(), cast, bytes: Arc::clone(&bytes) });
        }
        bytes
    }

    fn make(&self, shape: Option<&Shape>, cast: &Cast, text: impl FnOnce() -> String) -> Arc<str> {
        // It was read before, so it can be read again.
        let Ok(event) = Event::parse(self.json().as_bytes()) else {
            return Arc::clone(self.json());
        };
        let mut edit = event.edit();
        let mut changed = *cast != Cast::Plain;
        if let Some(shape) = shape {
            if self.shapable().drops_detail(shape) {
                (edit, changed) = (edit.without_detail(), true);
            }
            let offered = event.languages();
            let hints = event.envelope().localization_hints.as_ref();
            let fallback = hints.and_then(|hints| hints.fallback_chain.as_deref());
            // enforces: H5, L2, L3
            // Where nothing fits, nothing changes.
            let asked = shape.languages();
            if let Some(language) = choose_language(&asked, &offered, fallback.unwrap_or_default())
                .filter(|_| self.shapable().languages && !asked.is_empty())
            {
                (edit, changed) = (edit.language(language), true);
            }
        }
        if !changed {
            return Arc::clone(self.json());
        }
        let chunk = if matches!(cast, Cast::Text { .. }) { text() } else { String::new() };
        match cast {
            Cast::Plain => edit.finish(),
            Cast::Calls { before } => {
                let told = edit.before_summaries(before).finish();
                // A summary that has no room left for it is told as it is.
                if Event::parse(told.as_bytes()).is_err() {
                    return Arc::clone(self.json());
                }
                told
            }
            Cast::Raised => edit.urgency(Urgency::Critical).finish(),
            Cast::State { from } => edit.from_state(from).finish(),
            Cast::Text { from, ends_at, .. } => {
                let piece = Piece { chunk: &chunk, position: *from, ends_at: *ends_at };
                edit.output(piece).finish()
            }
        }
        .into()
    }
}
