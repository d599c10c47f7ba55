//! What is known of one connection.

use std::collections::BTreeMap;
use std::sync::Arc;

use aaep_types::resume::LeftOff;
use aaep_types::{EventId, SubscriptionId};

use super::backlog::Backlog;
use super::bounds::Bounds;
use super::bucket::Bucket;
use super::handshake::{AgreedTerms, SubscriptionState};
use super::memory::Memory;
use super::session::Session;
use crate::notification::{Agent, Identity};

/// A connection to a hub or a producer.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) name: Arc<str>,
    /// Who speaks when an event does not say.
    pub(super) agent: Agent,
    /// Whether it is who it says, where somebody has looked.
    pub(super) identity: Option<Identity>,
    pub(super) standing: SubscriptionState,
    /// Extensions that are not asked for any more, by their prefix (X8).
    pub(super) without: Vec<&'static str>,
    /// How often less was asked for.
    pub(super) smaller: u32,
    pub(super) terms: AgreedTerms,
    /// The settings, by their version, that were asked for last, and that are in force.
    pub(super) asked_version: u64,
    pub(super) agreed_version: u64,
    /// The terms are about to change, so nothing is known for certain.
    pub(super) renegotiating: bool,
    /// There was no handshake (D4).
    pub(super) bare: bool,
    pub(super) attached: bool,
    /// Whether it was attached at some time.
    pub(super) was_attached: bool,
    /// Goodbye was said.
    pub(super) leaving: bool,
    /// Whether the user knows that it is lost.
    pub(super) lost_told: bool,
    /// Until when a PIN that was typed on it counts.
    pub(super) unlocked_until: u64,
    /// The subscription is a new one: what waits is asked again.
    pub(super) fresh: bool,
    /// The last event that came, and the subscription on which it did.
    pub(super) left_off: Option<LeftOff>,
    /// What was missed follows: the hub goes on where we left off.
    pub(super) resumed: bool,
    pub(super) joining_until: u64,
    pub(super) clock: Clock,
    pub(super) heard: Memory,
    pub(super) sessions: BTreeMap<Arc<str>, Session>,
    /// Sessions whose end was heard: nothing that comes late brings one back.
    pub(super) ended: Memory,
    pub(super) backlog: Backlog,
    /// Bytes of text that wait for a boundary.
    pub(super) text_bytes: usize,
    /// What the producer may send by the terms.
    pub(super) allowed: Option<Bucket>,
    /// How much is noted of it.
    pub(super) notes: Bucket,
    /// When it was last noted that it sends more.
    pub(super) violation_noted: Option<u64>,
}

/// What the other side's clock says: an event cannot arrive before it was sent, so the largest
/// difference that was seen is the best guess.
#[derive(Debug, Default)]
pub(super) struct Clock {
    /// By what the hub says of its clock.
    dated: Option<i64>,
    /// By the stamps of events.
    stamped: Option<i64>,
}

/// How far the stamps of events may be ahead of what the hub says of its clock, which has whole
/// seconds only.
const AHEAD_MS: i64 = 2000;

impl Clock {
    /// The hub's Unix time when ours is 0.
    pub(super) fn offset(&self) -> Option<i64> {
        match (self.dated, self.stamped) {
            (Some(dated), Some(stamped)) if (dated..=dated + AHEAD_MS).contains(&stamped) => {
                Some(stamped)
            }
            (Some(dated), _) => Some(dated),
            (None, stamped) => stamped,
        }
    }

    pub(super) fn dated(&mut self, unix_ms: i64, now: u64) {
        let offset = unix_ms.saturating_sub(i64::try_from(now).unwrap_or(i64::MAX));
        // A clock that was set is believed; otherwise the answer was only slow.
        let set = self.dated.is_some_and(|dated| dated.abs_diff(offset) > AHEAD_MS.unsigned_abs());
        if set {
            self.stamped = None;
        }
        self.dated = if set { Some(offset) } else { self.dated.max(Some(offset)) };
    }

    /// True if the guess got better.
    pub(super) fn stamped(&mut self, unix_ms: i64, now: u64) -> bool {
        let before = self.offset();
        let offset = unix_ms.saturating_sub(i64::try_from(now).unwrap_or(i64::MAX));
        let limit = self.dated.map_or(i64::MAX, |dated| dated.saturating_add(AHEAD_MS));
        if offset <= limit {
            self.stamped = self.stamped.max(Some(offset));
        }
        self.offset() > before
    }
}

impl Link {
    pub(super) fn new(name: &str, bounds: &Bounds, now: u64) -> Self {
        let name: Arc<str> = name.into();
        Self {
            agent: Agent { id: name.clone(), name: name.clone() },
            name,
            identity: None,
            standing: SubscriptionState::Idle,
            without: Vec::new(),
            smaller: 0,
            terms: AgreedTerms::default(),
            asked_version: 0,
            agreed_version: 0,
            renegotiating: false,
            bare: false,
            attached: false,
            was_attached: false,
            leaving: false,
            lost_told: false,
            unlocked_until: 0,
            fresh: true,
            left_off: None,
            resumed: false,
            joining_until: 0,
            clock: Clock::default(),
            heard: Memory::new(bounds.event_ids),
            sessions: BTreeMap::new(),
            ended: Memory::new(bounds.sessions),
            backlog: Backlog::new(bounds, now),
            text_bytes: 0,
            allowed: None,
            notes: Bucket::new(bounds.notes_per_second, bounds.notes_burst, now),
            violation_noted: None,
        }
    }

    pub(super) fn subscription(&self) -> Option<SubscriptionId> {
        match self.standing {
            SubscriptionState::Subscribed(id) => Some(id),
            _ => None,
        }
    }

    /// Takes note of where we are. Where something may be held back, an event says nothing about
    /// others, so there is nothing to go on from.
    pub(super) fn note_place(&mut self, event: &str) {
        let holds = self.terms.holds || self.renegotiating;
        self.left_off = match (EventId::parse(event), self.subscription()) {
            (Ok(last_event), Some(id)) if !holds => {
                Some(LeftOff { last_event, subscription: Some(id) })
            }
            _ => None,
        };
    }

    pub(super) fn forget_subscription(&mut self) {
        self.standing = SubscriptionState::Idle;
        (self.attached, self.renegotiating) = (false, false);
    }

    /// D4: without a handshake the terms are the defaults, and replies may come. The subscription is
    /// filled in by the other side.
    pub(super) fn go_bare(&mut self) {
        if let Ok(id) = SubscriptionId::parse("sub_unnegotiated") {
            self.standing = SubscriptionState::Subscribed(id);
        }
        self.terms = AgreedTerms { confirm: true, clarify: true, ..AgreedTerms::default() };
        (self.fresh, self.bare) = (true, true);
    }

    /// Text of this output was left out.
    pub(super) fn mark_gap(&mut self, (session, output): &(Arc<str>, Arc<str>)) {
        let session = self.sessions.get_mut(session);
        let output = session.and_then(|session| session.outputs.get_mut(output));
        output.into_iter().for_each(|output| output.lose());
    }

    pub(super) fn deadline(&self, now: u64) -> Option<u64> {
        let orders = self.sessions.values().filter_map(|session| session.order.deadline());
        let doubts = self.sessions.values().filter_map(|session| session.confirm_by);
        orders.chain(doubts).chain(self.backlog.deadline(now)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: D9
    #[test]
    fn the_largest_difference_is_the_best_guess_and_the_hubs_word_bounds_it() {
        let mut clock = Clock::default();
        assert_eq!(clock.offset(), None);
        assert!(clock.stamped(1_000_000, 500), "an old event");
        assert!(clock.stamped(2_000_000, 600), "a newer one");
        assert!(!clock.stamped(1_500_000, 700));
        assert_eq!(clock.offset(), Some(1_999_400));
        clock.dated(3_000_000, 1000);
        assert_eq!(clock.offset(), Some(2_999_000));
        assert!(!clock.stamped(9_000_000, 1000), "a lie about the future");
        assert!(clock.stamped(3_000_900, 1100));
        assert_eq!(clock.offset(), Some(2_999_800));
    }
}
