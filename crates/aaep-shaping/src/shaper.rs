//! One subscription's shaper.

mod resend;
mod texts;

use aaep_types::{CoalesceBoundary, EventKind, Level, SessionId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use crate::bucket::Bucket;
use crate::pace::{Pace, Shown};
use crate::prepared::{Prepared, Role};
use crate::queue::{HeldLimits, Overflow};
use crate::queue::{Item, Queue, Which};
use crate::shapes::Cast;
use crate::terms::Terms;
use crate::text::OpenText;
use crate::time::Mono;

/// How long text that seems finished is held because nothing follows that would make it certain.
pub const PATIENCE: Duration = Duration::from_secs(2);
/// Under a low cognitive load, how long a state change waits for a later one.
pub const STATE_WAIT: Duration = Duration::from_secs(3);
/// Under a low cognitive load, how long progress of less than a step waits for more.
pub const PROGRESS_WAIT: Duration = Duration::from_secs(10);

/// Something to send now.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The event whose id and number it bears; the last part, where several were merged.
    pub event: Arc<Prepared>,
    /// What to send.
    pub bytes: Arc<str>,
}

/// What one look at an event says; see [`Shaper::glance`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glance {
    /// It goes at once, as it is shaped for everybody of these terms.
    Passes,
    /// It is not wanted.
    Unwanted,
    /// It takes more than a look: offer it.
    Offer,
}

/// Why held text leaves before its boundary.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Push {
    /// Another event of the session comes after it.
    Passing,
    /// A critical event or the caller flushes it.
    Flush,
    /// The session ends.
    Ending,
}

/// Decides what one subscription hears, and when. See the [crate] page for the contract.
#[derive(Debug)]
pub struct Shaper {
    /// Shared by all subscriptions that agreed on the same.
    terms: Arc<Terms>,
    limits: HeldLimits,
    cut: CoalesceBoundary,
    bucket: Option<Bucket>,
    /// Critical events, and what had to go before them; nothing delays these.
    urgent: VecDeque<Delivery>,
    urgent_bytes: usize,
    queue: Queue,
    texts: Vec<OpenText>,
    pace: Pace,
    shown: Shown,
    /// Near the bound: how many events are held when they are merged again.
    merge_at: usize,
}

impl Shaper {
    /// A shaper for these terms.
    pub fn new(terms: impl Into<Arc<Terms>>, now: Mono) -> Self {
        Self::with_limits(terms, HeldLimits::default(), now)
    }

    /// The same with other limits.
    pub fn with_limits(terms: impl Into<Arc<Terms>>, limits: HeldLimits, now: Mono) -> Self {
        let terms = terms.into();
        Self {
            cut: terms.cut(),
            bucket: terms.rate.map(|rate| Bucket::with_debt(rate, limits.max_debt_seconds, now)),
            pace: Pace::new(terms.pace_wpm),
            terms,
            limits,
            urgent: VecDeque::new(),
            urgent_bytes: 0,
            queue: Queue::default(),
            texts: Vec::new(),
            shown: Shown::default(),
            merge_at: 0,
        }
    }

    /// The terms in force.
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// Offers an event that this subscription may see. Fetch what comes of it with
    /// [`Self::poll_output`]. After [`Overflow`] the subscription has to be closed.
    pub fn offer(&mut self, event: &Arc<Prepared>, now: Mono) -> Result<(), Overflow> {
        if event.is_critical() {
            // enforces: H16, I20
            return self.urgently(event, Cast::Plain, now);
        }
        if !self.admits(event) {
            if event.is_terminal() {
                // Whatever is still held of the session is not held for an end that is not heard.
                self.end_session(event.session_id(), now);
            }
            return Ok(());
        }
        if event.is_resolution() {
            // enforces: D14
            self.borrow(now);
            return self.urgently(event, Cast::Plain, now);
        }
        self.admit(event, now);
        self.relieve(now)
    }

    /// Where nothing is held and nothing has to be, one look decides: the same comes of it as of
    /// [`Self::offer`] and [`Self::poll_output`], without the way through the queue. Most events of
    /// most subscriptions are like that. What passes counts as sent.
    pub fn glance(&mut self, event: &Prepared, now: Mono) -> Glance {
        let held = self.queue.len() + self.texts.len() + self.urgent.len() > 0;
        if held || !event.is_plain() || self.terms.load == Level::Low {
            return Glance::Offer;
        }
        if !self.admits(event) {
            return Glance::Unwanted;
        }
        let over_budget = self.bucket.as_mut().is_some_and(|bucket| !bucket.take(now));
        if over_budget { Glance::Offer } else { Glance::Passes }
    }

    /// Offers an event that this subscription must hear because it received the request that the
    /// event concerns. Where the filter excludes it, it comes with urgency critical (D31).
    pub fn offer_past_filter(&mut self, event: &Arc<Prepared>, now: Mono) -> Result<(), Overflow> {
        // enforces: D31
        if event.is_critical() || self.admits(event) {
            return self.offer(event, now);
        }
        self.urgently(event, Cast::Raised, now)
    }

    /// The next thing to send, if anything may go now. Call it until it returns `None`.
    pub fn poll_output(&mut self, now: Mono) -> Option<Delivery> {
        if let Some(delivery) = self.urgent.pop_front() {
            self.urgent_bytes -= delivery.event.weight();
            if self.urgent.is_empty() {
                self.urgent = VecDeque::new();
            }
            return Some(delivery);
        }
        if !self.texts.is_empty() {
            self.ripen(now);
        }
        if self.queue.len() == 0 || !self.queue.is_due(now) {
            return None;
        }
        if self.bucket.as_mut().is_some_and(|bucket| !bucket.take(now)) {
            return None;
        }
        let item = self.queue.pop_due(now)?;
        self.deliver(item)
    }

    /// When to call [`Self::poll_output`] again, if nothing is offered before.
    pub fn next_deadline(&self) -> Option<Mono> {
        if !self.urgent.is_empty() {
            return Some(Mono::START);
        }
        let budget = self.bucket.as_ref().map_or(Mono::START, Bucket::next_at);
        let queued = self.queue.next_due().map(|due| due.max(budget));
        let texts = self.texts.iter().filter_map(|text| self.ripe_at(text));
        texts.chain(queued).min()
    }

    /// Lets go of everything that is held for a session, merged, borrowing from the bucket.
    pub fn flush_session(&mut self, session: SessionId, now: Mono) {
        self.flush(session, Push::Flush, now);
    }

    /// New terms (§5.7). What was held under the old ones goes out under the old ones: fetch it
    /// before the answer is sent. Everything offered from now on follows the new ones.
    pub fn renegotiate(&mut self, terms: impl Into<Arc<Terms>>, now: Mono) {
        let terms = terms.into();
        // enforces: L4
        let texts = self.texts.iter().map(|text| text.session);
        let mut sessions: Vec<SessionId> = texts.chain(self.queue.sessions()).collect();
        sessions.sort_unstable();
        sessions.dedup();
        for session in sessions {
            self.flush(session, Push::Flush, now);
        }
        if !terms.filter.admits_kind(EventKind::OutputStreaming) {
            // Text that was wanted complete and let others pass: nothing that comes can name it.
            self.texts.clear();
        }
        self.bucket = match (self.bucket, terms.rate) {
            (Some(bucket), Some(rate)) => Some(bucket.at_rate(rate, now)),
            (_, rate) => {
                let debt = self.limits.max_debt_seconds;
                rate.map(|rate| Bucket::with_debt(rate, debt, now))
            }
        };
        self.cut = terms.cut();
        self.pace = Pace::new(terms.pace_wpm);
        self.terms = terms;
    }

    /// Bytes of everything that is held, as it was emitted.
    pub fn pending_bytes(&self) -> usize {
        let texts: usize = self.texts.iter().map(OpenText::weight).sum();
        self.urgent_bytes + self.queue.bytes() + texts
    }

    /// Events that wait for budget or to be fetched; text before its boundary does not count.
    pub fn pending_events(&self) -> usize {
        self.urgent.len() + self.queue.len()
    }

    fn admits(&self, event: &Prepared) -> bool {
        match event.kind() {
            Some(kind) => self.terms.filter.admits_kind(kind),
            None => self.terms.filter.admits(event.type_name()),
        }
    }

    fn admit(&mut self, event: &Arc<Prepared>, now: Mono) {
        let session = event.session_id();
        if let Role::Text(part) = event.role() {
            return self.admit_text(event, part, now);
        }
        if event.is_terminal() {
            self.end_session(session, now);
        } else {
            self.push_out(session, Push::Passing, now);
        }
        let low = self.terms.load == Level::Low;
        let item = Item::Whole(Arc::clone(event));
        let (item, due) = match event.role() {
            Role::State { .. } => {
                let item = Item::State { from: None, last: Arc::clone(event) };
                (item, if low { now.after(STATE_WAIT) } else { now })
            }
            Role::Progress { percent } => {
                let step = !low || self.shown.is_step(session, *percent);
                let due = if step { now } else { now.after(PROGRESS_WAIT) };
                (Item::Progress(Arc::clone(event)), due)
            }
            Role::Tool(_) => (Item::Tool { event: Arc::clone(event), calls: None }, now),
            Role::Whole | Role::Text(_) => (item, now),
        };
        self.enqueue(session, item, due, now);
    }

    fn end_session(&mut self, session: SessionId, now: Mono) {
        self.push_out(session, Push::Ending, now);
        self.shown.forget(session);
    }

    /// Queues something; if it cannot go at once it is merged with what waits already.
    fn enqueue(&mut self, session: SessionId, item: Item, due: Mono, now: Mono) {
        let whole = matches!(item, Item::Whole(_));
        self.queue.push(session, item, due);
        if self.queue.len() < self.limits.merge_from {
            return;
        }
        let low = self.terms.load == Level::Low;
        let over_budget = || self.bucket.as_ref().is_some_and(|bucket| !bucket.has_budget(now));
        if !whole && (low || over_budget()) {
            self.queue.coalesce(Which::One(session));
        } else if low {
            self.queue.settle(Which::One(session));
        }
    }

    /// A critical event, or one that counts as such: first what is held for its session, in
    /// order, then the event, past everything else.
    fn urgently(&mut self, event: &Arc<Prepared>, cast: Cast, now: Mono) -> Result<(), Overflow> {
        let push = if event.is_terminal() { Push::Ending } else { Push::Flush };
        self.flush(event.session_id(), push, now);
        if event.is_terminal() {
            self.shown.forget(event.session_id());
        }
        let bytes = event.cast(&self.terms.shape, cast, String::new);
        self.push_urgent(Delivery { event: Arc::clone(event), bytes });
        // A backlog of other sessions is no reason to close on a critical event.
        self.check(self.urgent.len(), self.urgent_bytes)
    }

    fn flush(&mut self, session: SessionId, push: Push, now: Mono) {
        // enforces: D14
        self.push_out(session, push, now);
        if self.queue.len() == 0 {
            return;
        }
        if self.queue.len() >= self.limits.merge_from {
            self.queue.coalesce(Which::One(session));
        }
        for item in self.queue.take_session(session) {
            self.borrow(now);
            if let Some(delivery) = self.deliver(item) {
                self.push_urgent(delivery);
            }
        }
    }

    fn deliver(&mut self, item: Item) -> Option<Delivery> {
        let shape = &self.terms.shape;
        let (event, bytes) = match item {
            Item::Whole(event) => (Arc::clone(&event), event.bytes(shape)),
            Item::Resent(delivery) => return Some(delivery),
            Item::Tool { event, calls } => {
                let cast = calls.map_or(Cast::Plain, |calls| Cast::Calls { before: calls.say() });
                let bytes = event.cast(shape, cast, String::new);
                (event, bytes)
            }
            Item::Progress(event) => {
                self.shown.note(&event, self.terms.load);
                let bytes = event.bytes(shape);
                (event, bytes)
            }
            Item::State { from, last, .. } => {
                let cast = from.map_or(Cast::Plain, |from| Cast::State { from });
                let bytes = last.cast(shape, cast, String::new);
                (last, bytes)
            }
            Item::Text(span) => span.bytes(shape)?,
        };
        Some(Delivery { event, bytes })
    }

    fn push_urgent(&mut self, delivery: Delivery) {
        self.urgent_bytes += delivery.event.weight();
        self.urgent.push_back(delivery);
    }

    fn borrow(&mut self, now: Mono) {
        if let Some(bucket) = &mut self.bucket {
            bucket.borrow(now);
        }
    }

    /// I22: near the bound text is let go and everything is merged; past it the subscription ends.
    /// Merging looks at all that is held, so it is done once in a while: a subscriber that stalls
    /// must not cost more than one that listens (I21).
    fn relieve(&mut self, now: Mono) -> Result<(), Overflow> {
        self.texts.retain(|text| !text.is_empty());
        let nearly_full = |held: usize, max: usize| held > max / 4 * 3;
        let (events, bytes) = (self.pending_events(), self.pending_bytes());
        if !nearly_full(events, self.limits.max_events)
            && !nearly_full(bytes, self.limits.max_bytes)
        {
            self.merge_at = 0;
        } else if events >= self.merge_at || self.check(events, bytes).is_err() {
            let mut open: Vec<SessionId> = self.texts.iter().map(|text| text.session).collect();
            open.dedup();
            for session in open {
                self.push_out(session, Push::Flush, now);
            }
            self.queue.coalesce(Which::Each);
            self.merge_at = self.pending_events() + self.limits.max_events / 16;
        }
        self.check(self.pending_events(), self.pending_bytes())
    }

    fn check(&self, events: usize, bytes: usize) -> Result<(), Overflow> {
        // enforces: I4
        if events > self.limits.max_events || bytes > self.limits.max_bytes {
            return Err(Overflow { events, bytes });
        }
        Ok(())
    }
}
