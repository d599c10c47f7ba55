//! Outputs on their way out. Each session has a queue; an output that relies on a record waits in it
//! until that record is durable, and what comes after it waits behind it, so that the order holds.
//! Over all sessions, what relies on records leaves in the order of the records, which is the order in
//! which a restart says it again: a returning subscriber is told what came after the last event it got.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::ids::SessionKey;
use crate::io::Output;

/// How many outputs usually rely on one record: two events and the decision.
const USUAL: usize = 3;

#[derive(Debug, Default)]
pub(crate) struct DurabilityQueue {
    /// Each output with the record that it relies on; 0 for none.
    ready: VecDeque<(u64, Output)>,
    held: BTreeMap<SessionKey, VecDeque<(u64, Output)>>,
    /// What the first output of each session waits for; sessions go on in this order.
    heads: BTreeSet<(u64, SessionKey)>,
    /// Answers to messages; they belong to no session.
    noted: VecDeque<(u64, Output)>,
    /// Records whose events have not all left yet, oldest first, and how many are left of each.
    untold: VecDeque<(u64, u32)>,
    persisted: u64,
    /// What every output of a session waits for at least.
    floor: u64,
}

impl DurabilityQueue {
    /// Ready at once, whatever else waits: journal records.
    pub(crate) fn push_now(&mut self, output: Output) {
        self.ready.push_back((0, output));
    }

    /// From now on no output of a session is ready before this record is durable.
    pub(crate) fn hold_until(&mut self, number: u64) {
        self.floor = number;
    }

    /// Ready when the record `needs` is durable and everything before it in the session is out.
    /// Records come in the order of their numbers.
    pub(crate) fn push(&mut self, session: SessionKey, needs: u64, output: Output) {
        if needs > 0 && matches!(output, Output::Event(_)) {
            match self.untold.back_mut() {
                Some((record, left)) if *record == needs => *left += 1,
                _ => self.untold.push_back((needs, 1)),
            }
        }
        match self.held.get_mut(&session) {
            Some(queue) => queue.push_back((needs, output)),
            None if needs.max(self.floor) <= self.persisted => {
                self.ready.push_back((needs, output));
            }
            None => {
                // What relies on nothing but the floor came after what is said again.
                let needs_first = if needs == 0 { self.floor } else { needs };
                self.heads.insert((needs_first, session));
                let mut queue = VecDeque::with_capacity(USUAL);
                queue.push_back((needs, output));
                self.held.insert(session, queue);
            }
        }
    }

    /// Ready when the record `needs` is durable.
    pub(crate) fn push_noted(&mut self, needs: u64, output: Output) {
        if needs <= self.persisted {
            self.ready.push_back((0, output));
        } else {
            self.noted.push_back((needs, output));
        }
    }

    /// Records up to this number are durable.
    pub(crate) fn persisted(&mut self, number: u64) {
        self.persisted = self.persisted.max(number);
        let durable = self.persisted;
        while let Some((_, output)) = self.noted.pop_front_if(|(needs, _)| *needs <= durable) {
            self.ready.push_back((0, output));
        }
        if self.floor > durable {
            return;
        }
        // enforces: I19, I32
        while let Some(&(needs, session)) =
            self.heads.first().filter(|(needs, _)| *needs <= durable)
        {
            self.heads.remove(&(needs, session));
            self.release(session, needs);
        }
    }

    /// Lets out of a queue what relies on this record, and what follows it and relies on none.
    fn release(&mut self, session: SessionKey, record: u64) {
        let Some(queue) = self.held.get_mut(&session) else { return };
        while let Some(next) = queue.pop_front_if(|(needs, _)| *needs <= record) {
            self.ready.push_back(next);
        }
        match queue.front() {
            Some((needs, _)) => drop(self.heads.insert((*needs, session))),
            None => drop(self.held.remove(&session)),
        }
    }

    pub(crate) fn pop(&mut self) -> Option<Output> {
        let (needs, output) = self.ready.pop_front()?;
        if needs > 0 && matches!(output, Output::Event(_)) {
            self.tell(needs);
        }
        Some(output)
    }

    fn tell(&mut self, record: u64) {
        if let Ok(at) = self.untold.binary_search_by_key(&record, |(record, _)| *record) {
            self.untold[at].1 -= 1;
        }
        while self.untold.pop_front_if(|(_, left)| *left == 0).is_some() {}
    }

    /// The first record whose events have not all left.
    pub(crate) fn first_untold(&self) -> Option<u64> {
        self.untold.front().map(|(record, _)| *record)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(call: u64) -> Output {
        Output::Noted { call }
    }

    // covers: I10, I19
    #[test]
    fn what_follows_a_held_output_of_its_session_waits_behind_it() {
        let (one, two) = (SessionKey::from_bits(1), SessionKey::from_bits(2));
        let mut durability = DurabilityQueue::default();
        durability.push(one, 1, noted(1));
        durability.push(one, 0, noted(2));
        durability.push(two, 0, noted(3));
        assert_eq!(durability.pop(), Some(noted(3)));
        assert_eq!(durability.pop(), None);
        durability.persisted(1);
        assert_eq!((durability.pop(), durability.pop()), (Some(noted(1)), Some(noted(2))));
    }

    // covers: I19, I32
    #[test]
    fn what_relies_on_records_leaves_in_their_order_over_all_sessions() {
        let (one, two, three) = (1, 2, 3);
        let mut durability = DurabilityQueue::default();
        for (session, needs) in [(two, 1), (one, 2), (two, 0), (two, 3), (one, 4)] {
            durability.push(SessionKey::from_bits(session), needs, noted(needs));
        }
        durability.persisted(3);
        let mut left = || std::iter::from_fn(|| durability.pop()).collect::<Vec<_>>();
        assert_eq!(left(), [1, 0, 2, 3].map(noted));
        // After a restart, what is said again comes before what is new.
        let mut durability = DurabilityQueue::default();
        durability.persisted(6);
        durability.hold_until(7);
        for (session, needs) in [(three, 5), (two, 6), (one, 0), (two, 8)] {
            durability.push(SessionKey::from_bits(session), needs, noted(needs));
        }
        assert_eq!(durability.pop(), None);
        durability.persisted(8);
        let mut left = || std::iter::from_fn(|| durability.pop()).collect::<Vec<_>>();
        assert_eq!(left(), [5, 6, 0, 8].map(noted));
    }
}
