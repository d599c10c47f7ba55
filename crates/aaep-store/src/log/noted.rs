//! How a log stands to what a node has noted of it outside the store.

use super::ShardLog;
use super::entry::link_of;
use super::storage::{LogStorage, Unavailable};
use crate::chain::ChainHash;
use crate::head::{HeadCheck, Noted};

impl<P: LogStorage> ShardLog<P> {
    /// Asks [`ShardLog::catch_up`] to remember what the log says at the place that was noted.
    pub fn look_out_for(&mut self, noted: Noted) {
        self.wanted = Some((noted.number, None));
    }

    // enforces: I2, I33
    /// How the log, as far as it was read, stands to what was noted. `has_units` says whether anything
    /// was ever kept in it.
    pub fn head_check(&self, noted: Option<Noted>, has_units: bool) -> HeadCheck {
        HeadCheck::of(u64::from(has_units), noted, self.wanted.and_then(|(_, found)| found))
    }

    /// What is to be noted of the log, as far as this node knows it.
    pub fn position(&self) -> Noted {
        let head = self.known();
        Noted::at(head.place, head.hash)
    }

    /// How the log in the store stands to what was noted, and where it ends now; what is between is not
    /// read. A reading that is behind looks like a log that lost its end: ask more than once.
    pub fn observe(
        &mut self,
        noted: Option<Noted>,
    ) -> Result<(HeadCheck, Option<Noted>), Unavailable> {
        let end = self.storage.head()?;
        let found = match noted {
            Some(noted) => self.link_at(noted.number)?,
            None => None,
        };
        let now = self.link_at(end)?.map(|link| Noted::at(end, link));
        Ok((HeadCheck::of(end, noted, found), now))
    }

    fn link_at(&mut self, place: u64) -> Result<Option<ChainHash>, Unavailable> {
        if place == 0 {
            return Ok(None);
        }
        let found = self.storage.get(place, 1)?;
        Ok(found.first().and_then(|bytes| link_of(&self.key, place, bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Appended, Log as _, MemoryStorage, MemoryStore};
    use super::*;
    use crate::chain::ChainKey;
    use crate::unit::Unit;

    fn log(store: &MemoryStore, node: &str) -> ShardLog<MemoryStorage> {
        ShardLog::new(store.storage("s"), "s", node, ChainKey::new(&[7; 32]))
    }

    /// A log with so many entries, and its author's view of it.
    fn with_entries(store: &MemoryStore, entries: u64) -> ShardLog<MemoryStorage> {
        let mut log = log(store, "a");
        assert_eq!(log.claim(0), Appended::Durable { head: 1 });
        for place in 1..entries {
            assert_eq!(
                log.append(place, &[Unit::default()]),
                Appended::Durable { head: place + 1 }
            );
        }
        log
    }

    // covers: I2, I33
    #[test]
    fn a_log_that_is_shorter_or_another_than_was_noted_is_told_from_one_that_went_on() {
        let store = MemoryStore::default();
        let noted = with_entries(&store, 5).position();
        let check = |store: &MemoryStore, noted: Option<Noted>| {
            let mut new = log(store, "b");
            noted.inspect(|noted| new.look_out_for(*noted));
            let end = new.catch_up(|_| {}).unwrap();
            let (observed, _) = log(store, "c").observe(noted).unwrap();
            let read = new.head_check(noted, end > 0);
            assert_eq!(read, observed);
            read
        };
        assert_eq!(check(&store, Some(noted)), HeadCheck::Same);
        assert_eq!(check(&store, None), HeadCheck::Unknown);
        assert_eq!(check(&MemoryStore::default(), None), HeadCheck::New);
        let longer = MemoryStore::default();
        with_entries(&longer, 9);
        assert_eq!(check(&longer, Some(noted)), HeadCheck::Same);
        let shorter = MemoryStore::default();
        with_entries(&shorter, 4);
        assert_eq!(check(&shorter, Some(noted)), HeadCheck::Behind { noted: 5 });
        let other = Noted { hash: [1; 32], ..noted };
        assert_eq!(check(&store, Some(other)), HeadCheck::Different { noted: 5 });
    }

    #[test]
    fn an_observer_learns_the_end_and_believes_no_entry_without_the_key() {
        let store = MemoryStore::default();
        let end = with_entries(&store, 3).position();
        assert_eq!(log(&store, "b").observe(None).unwrap(), (HeadCheck::Unknown, Some(end)));
        let mut stranger = ShardLog::new(store.storage("s"), "s", "b", ChainKey::new(&[8; 32]));
        assert_eq!(stranger.observe(None).unwrap().1, None);
    }
}
