//! Streamed text on its way: held until a boundary, then released in pieces.

use aaep_types::{CoalesceBoundary, OutputId, SessionId};
use smallvec::SmallVec;
use std::sync::Arc;

use crate::prepared::{Part, Prepared};
use crate::shapes::Cast;
use crate::terms::Shape;
use crate::time::Mono;

/// The longest chunk that the protocol allows, in scalar values; a longer release makes several.
pub const MAX_CHUNK_SCALARS: u64 = 16_384;

/// Text of one output that waits for a boundary.
///
/// Each part's id names at most one delivery, the one that holds the part's end; otherwise a
/// subscriber that drops duplicates by id (H24) would lose text. So text is only released together
/// with the end of at least one part, and what is left always ends with a part of its own.
#[derive(Debug)]
pub(crate) struct OpenText {
    pub session: SessionId,
    pub output: Option<OutputId>,
    from: u64,
    parts: Vec<Arc<Prepared>>,
    /// When the oldest part was held, and when the newest came.
    pub since: Mono,
    pub latest: Mono,
    /// Another event of the session went ahead of it, so only a newer part can name it.
    pub overtaken: bool,
    weight: usize,
}

impl OpenText {
    pub fn new(first: &Arc<Prepared>, part: &Part, now: Mono) -> Self {
        Self {
            session: first.session_id(),
            output: part.output,
            from: part.position,
            parts: Vec::new(),
            since: now,
            latest: now,
            overtaken: false,
            weight: 0,
        }
    }

    pub fn holds(&self, event: &Prepared, part: &Part) -> bool {
        self.output == part.output && self.session == event.session_id()
    }

    /// Whether this part goes on where the held text ends.
    pub fn continues(&self, part: &Part) -> bool {
        match self.last() {
            Some(last) => last.end == part.position && last.sort == part.sort,
            None => self.from == part.position,
        }
    }

    pub fn push(&mut self, event: &Arc<Prepared>, now: Mono) {
        if self.parts.is_empty() {
            self.since = now;
        }
        self.parts.push(Arc::clone(event));
        self.weight += event.weight();
        (self.latest, self.overtaken) = (now, false);
    }

    pub fn is_empty(&self) -> bool {
        self.parts.is_empty()
    }

    pub fn weight(&self) -> usize {
        self.weight
    }

    /// How much text is held.
    pub fn scalars(&self) -> u64 {
        self.last().map_or(0, |last| last.end.saturating_sub(self.from))
    }

    fn last(&self) -> Option<&Part> {
        self.parts.last().and_then(|event| event.part())
    }

    /// The place where the text can be cut now, if it can, and whether a part ends before it.
    fn cut(&self, boundary: CoalesceBoundary) -> Option<(u64, bool)> {
        let at = self.last()?.cuts.latest(boundary);
        let first_end = self.parts.first()?.part()?.end;
        (at > self.from).then_some((at, first_end <= at))
    }

    /// Whether there is something to release at this boundary.
    pub fn is_ripe(&self, boundary: CoalesceBoundary) -> bool {
        matches!(self.cut(boundary), Some((_, true)))
    }

    /// Whether what is held seems to end at this boundary, or holds one in its middle: then it is
    /// not held forever just because nothing follows.
    pub fn seems_finished(&self, boundary: CoalesceBoundary) -> bool {
        boundary != CoalesceBoundary::Completion
            && (self.cut(boundary).is_some()
                || self.last().is_some_and(|last| last.ends_at >= boundary))
    }

    /// Releases what lies before the latest cut.
    pub fn release_ripe(&mut self, boundary: CoalesceBoundary, out: &mut Vec<Span>) {
        let Some((at, true)) = self.cut(boundary) else { return };
        let ends_at = self.last().map_or(boundary, |last| last.cuts.boundary_at(at));
        self.release(at, ends_at, out);
    }

    /// Releases everything; the last piece says what it really ends at. An empty last chunk takes
    /// the text that is still held with it.
    pub fn release_all(&mut self, out: &mut Vec<Span>) {
        // enforces: D20
        if let Some((end, ends_at)) = self.last().map(|last| (last.end, last.ends_at)) {
            self.release(end, ends_at, out);
        }
    }

    fn release(&mut self, to: u64, ends_at: CoalesceBoundary, out: &mut Vec<Span>) {
        loop {
            let limit = to.min(self.from.saturating_add(MAX_CHUNK_SCALARS));
            let ends = self.parts.iter().map_while(|event| event.part().map(|part| part.end));
            let Some((count, last_end)) = ends.enumerate().take_while(|(_, e)| *e <= limit).last()
            else {
                return;
            };
            let stop = if limit == to { to } else { last_end };
            let mut parts: SmallVec<[Arc<Prepared>; 2]> = self.parts.drain(..=count).collect();
            self.weight -= parts.iter().map(|part| part.weight()).sum::<usize>();
            if stop > last_end {
                parts.extend(self.parts.first().cloned());
            }
            let ends_at = if stop == to { ends_at } else { CoalesceBoundary::None };
            out.push(Span {
                from: self.from,
                to: stop,
                parts,
                named: count,
                ends_at,
                as_is: false,
            });
            self.from = stop;
            if stop == to {
                return;
            }
        }
    }
}

/// A piece of an output's text that may go out: parts of the stream, not copied.
#[derive(Debug)]
pub(crate) struct Span {
    from: u64,
    to: u64,
    parts: SmallVec<[Arc<Prepared>; 2]>,
    /// Which of the parts it is named after (decision D15: the last that is in it to its end).
    named: usize,
    ends_at: CoalesceBoundary,
    /// One chunk, passed on just as it came.
    as_is: bool,
}

impl Span {
    /// A chunk as it came.
    pub fn whole(event: &Arc<Prepared>, part: &Part) -> Self {
        Self {
            from: part.position,
            to: part.end,
            parts: SmallVec::from_iter([Arc::clone(event)]),
            named: 0,
            ends_at: part.ends_at,
            as_is: true,
        }
    }

    /// The event that it is named after.
    pub fn event(&self) -> Option<&Arc<Prepared>> {
        self.parts.get(self.named)
    }

    pub fn scalars(&self) -> u64 {
        self.to - self.from
    }

    pub fn weight(&self) -> usize {
        self.parts.iter().map(|part| part.weight()).sum()
    }

    /// Puts an earlier piece of the same output before this one; gives it back if it does not fit.
    pub fn join_after(&mut self, mut earlier: Span) -> Option<Span> {
        let fits = earlier.to == self.from
            && self.to - earlier.from <= MAX_CHUNK_SCALARS
            && earlier.is_of_one_sort_with(self);
        if !fits {
            return Some(earlier);
        }
        // The part in which the earlier one was cut stands in both.
        let shared = earlier.parts.last().zip(self.parts.first());
        if shared.is_some_and(|(a, b)| Arc::ptr_eq(a, b)) {
            earlier.parts.pop();
        }
        self.named += earlier.parts.len();
        earlier.parts.append(&mut self.parts);
        self.parts = earlier.parts;
        (self.from, self.as_is) = (earlier.from, false);
        None
    }

    fn is_of_one_sort_with(&self, other: &Span) -> bool {
        match (self.event().and_then(|e| e.part()), other.event().and_then(|e| e.part())) {
            (Some(one), Some(two)) => one.output == two.output && one.sort == two.sort,
            _ => false,
        }
    }

    /// Its bytes for one shape; made once for all subscriptions that hold the same piece.
    pub fn bytes(&self, shape: &Shape) -> Option<(Arc<Prepared>, Arc<str>)> {
        let event = self.event()?;
        let part = event.part()?;
        let untouched = self.parts.len() == 1
            && (part.position, part.end, part.ends_at) == (self.from, self.to, self.ends_at);
        let bytes = if untouched && (self.as_is || part.hinted) {
            event.bytes(shape)
        } else {
            // enforces: D15
            let cast = Cast::Text { from: self.from, to: self.to, ends_at: self.ends_at };
            event.cast(shape, cast, || self.text())
        };
        Some((Arc::clone(event), bytes))
    }

    fn text(&self) -> String {
        let mut text = String::new();
        for part in self.parts.iter().filter_map(|event| event.part()) {
            let start = self.from.saturating_sub(part.position);
            let stop = self.to.min(part.end).saturating_sub(part.position);
            text.push_str(slice(&part.chunk, start, stop));
        }
        text
    }
}

/// The text between two places, counted in scalar values.
fn slice(text: &str, from: u64, to: u64) -> &str {
    let byte = |scalars: u64| {
        let scalars = usize::try_from(scalars).unwrap_or(usize::MAX);
        text.char_indices().nth(scalars).map_or(text.len(), |(at, _)| at)
    };
    text.get(byte(from)..byte(to)).unwrap_or_default()
}
