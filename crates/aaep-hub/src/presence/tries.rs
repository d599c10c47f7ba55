//! How often a PIN may be tried: slower and slower, never locked out for good.

use std::collections::{BTreeMap, BTreeSet};

use aaep_engine::Boot;
use aaep_types::SubscriptionId;

/// Wrong ones that cost no time.
const FREE: u32 = 3;

/// The longest wait, in seconds.
const LONGEST: u64 = 300;

/// After so long without a wrong one, those before are forgotten.
const FORGOTTEN_SECONDS: u64 = 60 * 60;

/// Subscriptions whose own tries are remembered.
const REMEMBERED: usize = 256;

/// Subscriptions that wait only for their own tries: opening a thousand before the first guess
/// does not get a thousand times as many.
const MAX_ELDERS: usize = 8;

/// A count of wrong tries, and when another is looked at.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    wrong: u32,
    open_at: Boot,
    last: Boot,
}

impl Count {
    fn wait_seconds(wrong: u32) -> u64 {
        match wrong {
            0..FREE => 0,
            more => 1u64.checked_shl(more - FREE).unwrap_or(LONGEST).min(LONGEST),
        }
    }

    fn refresh(&mut self, now: Boot) {
        if now >= self.last.after_seconds(FORGOTTEN_SECONDS) {
            *self = Self::default();
        }
    }

    fn is_open(&self, now: Boot) -> bool {
        now >= self.open_at
    }

    /// Counts one as wrong before anybody has looked at it, so that a thousand at once are not all
    /// looked at.
    fn spend(&mut self, now: Boot) {
        self.wrong = self.wrong.saturating_add(1);
        self.last = now;
        self.open_at = now.after_seconds(Self::wait_seconds(self.wrong));
    }

    fn left(&self, now: Boot) -> u64 {
        self.open_at.0.saturating_sub(now.0).div_ceil(1_000_000)
    }
}

/// The tries of one user.
#[derive(Debug, Default)]
pub(super) struct Tries {
    all: Count,
    /// When the first wrong one came of those that count.
    since: Option<Boot>,
    own: BTreeMap<SubscriptionId, Count>,
    /// Those that were there before the first wrong one, and tried.
    elders: BTreeSet<SubscriptionId>,
}

impl Tries {
    /// Whether a PIN is looked at that comes on this subscription, which is heard since then; if not,
    /// how many seconds it has to wait. One that is looked at counts as wrong until it was
    /// [`right`](Self::right).
    ///
    /// A subscription that was there before the first wrong try waits only for its own:
    /// guesses elsewhere lock out nobody who was there before.
    pub(super) fn admit(
        &mut self,
        id: SubscriptionId,
        heard_since: Boot,
        now: Boot,
    ) -> Result<(), u64> {
        self.all.refresh(now);
        if self.all.wrong == 0 {
            self.since = None;
            self.elders.clear();
        }
        let before = self.since.is_none_or(|since| heard_since < since);
        let elder = before && (self.elders.contains(&id) || self.elders.len() < MAX_ELDERS);
        let mut own = self.own.get(&id).copied().unwrap_or_default();
        own.refresh(now);
        let binding =
            if elder { own } else { Count { open_at: own.open_at.max(self.all.open_at), ..own } };
        if !binding.is_open(now) {
            return Err(binding.left(now).max(1));
        }
        self.since.get_or_insert(now);
        if elder {
            self.elders.insert(id);
        }
        own.spend(now);
        self.all.spend(now);
        if self.own.len() >= REMEMBERED && !self.own.contains_key(&id) {
            // Who is forgotten has the wait of all.
            self.own.pop_first();
        }
        self.own.insert(id, own);
        Ok(())
    }

    /// It was right.
    pub(super) fn right(&mut self, id: SubscriptionId) {
        self.own.remove(&id);
        self.all.wrong = self.all.wrong.saturating_sub(1);
        if self.all.wrong == 0 {
            self.all = Count::default();
        }
    }

    /// How many were wrong, and how long this subscription waits now.
    pub(super) fn wrong(&self, id: SubscriptionId, now: Boot) -> (u32, u64) {
        (self.all.wrong, self.own.get(&id).map_or(0, |own| own.left(now)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(bits: u128) -> SubscriptionId {
        SubscriptionId::from_bits(bits)
    }

    // covers: I34
    #[test]
    fn ten_thousand_tries_take_a_month_and_never_lock_the_person_out() {
        let mut tries = Tries::default();
        let mut now = Boot(1_000_000);
        let person = (id(1), Boot(0));
        let begun = now;
        let mut waited = 0;
        for _ in 0..10_000 {
            while let Err(seconds) = tries.admit(id(2), now, now) {
                assert!((1..=LONGEST).contains(&seconds));
                waited += 1;
                now = now.after_seconds(seconds);
            }
        }
        let days = (now.0 - begun.0) / 1_000_000 / 86_400;
        assert!(days >= 34 && waited > 9_000, "{days} days, {waited} waits");
        // The person, who was there before, is looked at at once; and again after the right one.
        assert_eq!(tries.admit(person.0, person.1, now), Ok(()));
        tries.right(person.0);
        assert_eq!(tries.admit(person.0, person.1, now), Ok(()));
        // Who comes anew waits like everybody else, and not for ever.
        let late = tries.admit(id(3), now, now).unwrap_err();
        assert!(late <= LONGEST);
        assert_eq!(tries.admit(id(3), now, now.after_seconds(LONGEST)), Ok(()));
    }

    // covers: I34
    #[test]
    fn a_new_connection_for_each_guess_is_no_quicker() {
        let mut tries = Tries::default();
        let now = Boot(1_000_000);
        let looked_at = (0..10_000).filter(|n| tries.admit(id(100 + n), now, now).is_ok()).count();
        assert!(looked_at <= FREE as usize + 1, "{looked_at} at once");
        assert!(tries.own.len() <= REMEMBERED);
        // Nor is it to have opened them all before.
        let mut tries = Tries::default();
        let looked_at =
            (0..10_000).filter(|n| tries.admit(id(n % 100), Boot(0), now).is_ok()).count();
        assert!(looked_at <= MAX_ELDERS * (FREE as usize + 1), "{looked_at} at once");
    }

    #[test]
    fn a_slip_or_two_costs_nothing_and_is_forgotten() {
        let mut tries = Tries::default();
        let now = Boot(1_000_000);
        for _ in 0..FREE {
            assert_eq!(tries.admit(id(1), Boot(0), now), Ok(()));
        }
        assert_eq!(tries.wrong(id(1), now), (FREE, 1));
        let later = now.after_seconds(FORGOTTEN_SECONDS);
        assert_eq!(tries.admit(id(1), Boot(0), later), Ok(()));
        assert_eq!(tries.wrong(id(1), later).0, 1);
    }
}
