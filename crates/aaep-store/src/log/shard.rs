//! A log on numbered places: the keyed chain, epochs, doubt.

use super::entry::{
    Body, ChainHead, DamagedEntry, EntryDamage, LogEntry, MAX_ENTRY_BYTES, MAX_NODE_BYTES, decode,
    encode, fingerprint,
};
use super::parts::Parts;
use super::storage::{LogStorage, Put, Unavailable};
use super::{Appended, CannotRead, Log};
use crate::chain::{ChainHash, ChainKey};
use crate::unit::Unit;

/// So many entries are read at once.
const READ_AHEAD: usize = 256;

/// So often a store is asked again for entries that it should have: the first answer may be stale.
const ASK_AGAIN: usize = 3;

/// The log of one shard, as one node sees it.
#[derive(Debug)]
pub struct ShardLog<P> {
    pub(super) storage: P,
    shard: String,
    node: String,
    pub(super) key: ChainKey,
    /// As far as it was read or written, and verified.
    head: ChainHead,
    /// The epoch that this node has claimed and not lost.
    epoch: Option<u64>,
    /// What was sent and not answered: the bytes, and the head once they are there.
    doubt: Option<(Vec<u8>, ChainHead)>,
    /// The time that the next entry carries.
    at: i64,
    /// A place whose link is wanted, and the link once it was read.
    pub(super) wanted: Option<(u64, Option<ChainHash>)>,
}

impl<P: LogStorage> ShardLog<P> {
    /// The log of this shard, for this node. Nothing is read yet.
    pub fn new(storage: P, shard: &str, node: &str, key: ChainKey) -> Self {
        let mut end = node.len().min(MAX_NODE_BYTES);
        while !node.is_char_boundary(end) {
            end -= 1;
        }
        Self {
            storage,
            shard: shard.to_owned(),
            node: node[..end].to_owned(),
            key,
            head: ChainHead::empty(shard),
            epoch: None,
            doubt: None,
            at: 0,
            wanted: None,
        }
    }

    /// The places themselves, to be looked at.
    pub fn storage(&self) -> &P {
        &self.storage
    }

    /// The places themselves.
    pub fn storage_mut(&mut self) -> &mut P {
        &mut self.storage
    }

    /// How far this node knows the log.
    pub fn known(&self) -> &ChainHead {
        &self.head
    }

    /// The epoch that this node has claimed, until it is fenced.
    pub fn epoch(&self) -> Option<u64> {
        self.epoch
    }

    /// What the wall clock says, in microseconds since 1970: entries carry it. It decides nothing.
    pub fn set_time(&mut self, at: i64) {
        self.at = at;
    }

    /// Reads on to the end, verifying numbers, chain and epochs; hands each entry on.
    pub fn catch_up(&mut self, mut each: impl FnMut(LogEntry)) -> Result<u64, CannotRead> {
        let (known, found) = (self.head.place, self.storage.head()?);
        // A stale answer looks the same; the caller asks again.
        if found < known {
            return Err(CannotRead::OldCopy { known, found });
        }
        let mut again = ASK_AGAIN;
        loop {
            let batch = self.storage.get(self.head.place + 1, READ_AHEAD)?;
            if batch.is_empty() {
                if self.head.place >= found || again == 0 {
                    break;
                }
                again -= 1;
            }
            for bytes in batch {
                let (entry, head) = decode(&self.key, &self.head, &bytes)?;
                self.head = head;
                if let Some((place, found)) = &mut self.wanted
                    && *place == self.head.place
                {
                    *found = Some(self.head.hash);
                }
                each(entry);
            }
        }
        if self.head.place < found {
            let place = self.head.place + 1;
            return Err(DamagedEntry { place, why: EntryDamage::Missing }.into());
        }
        let ours = self.epoch.is_some_and(|epoch| self.is_in_force(epoch));
        self.epoch = self.epoch.filter(|_| ours);
        Ok(self.head.place)
    }

    /// Appends a claim of the shard at the end that was read. A caller that read less is refused.
    pub fn claim(&mut self, at: i64) -> Appended {
        self.at = at;
        let epoch = self.head.epoch + 1;
        self.send(epoch, Body::Claimed { key: fingerprint(&self.key) })
    }

    /// Appends this at the end that its author knows.
    pub(super) fn append_body(&mut self, expected: u64, body: Body) -> Appended {
        match self.epoch {
            Some(epoch) if expected == self.head.place => self.send(epoch, body),
            // Without a claim, or on another state than this node's own, nothing is sent.
            _ => Appended::Fenced,
        }
    }

    /// Appends that this node is done with the shard.
    pub fn release(&mut self) -> Appended {
        match self.epoch {
            Some(epoch) => self.send(epoch, Body::Released),
            None => Appended::Fenced,
        }
    }

    /// Settles the append in doubt: the same bytes for the same place, and no others.
    pub fn settle(&mut self) -> Appended {
        let Some((bytes, head)) = self.doubt.take() else {
            return Appended::Durable { head: self.head.place };
        };
        match self.storage.put(head.place, &bytes) {
            Put::Durable => self.advance(head),
            Put::Taken => {
                self.epoch = None;
                Appended::Fenced
            }
            // Not sent now; but it may be on its way since the time before.
            Put::InDoubt | Put::Refused(_) => {
                self.doubt = Some((bytes, head));
                Appended::InDoubt
            }
        }
    }

    /// Whether this node's claim of this epoch is the last thing that the log says of owners.
    fn is_in_force(&self, epoch: u64) -> bool {
        self.head.epoch == epoch && self.head.node == self.node && !self.head.released
    }

    fn advance(&mut self, head: ChainHead) -> Appended {
        let epoch = head.epoch;
        // What was in doubt may have been read, and more after it.
        if head.place > self.head.place {
            self.head = head;
        }
        self.epoch = self.is_in_force(epoch).then_some(epoch);
        Appended::Durable { head: self.head.place }
    }

    fn send(&mut self, epoch: u64, body: Body) -> Appended {
        let (place, node, at) = (self.head.place + 1, self.node.clone(), self.at);
        let entry = LogEntry { place, epoch, node, at, body };
        let (bytes, head) = encode(&self.key, &self.head, &entry);
        if let Some((sent, _)) = &self.doubt {
            // Other bytes for this place could both come to count.
            return if *sent == bytes { self.settle() } else { Appended::InDoubt };
        }
        if bytes.len() > MAX_ENTRY_BYTES {
            return Appended::Stuck(Unavailable::Misuse("an entry may have 900 KiB at most"));
        }
        match self.storage.put(place, &bytes) {
            Put::Refused(why) => Appended::Stuck(why),
            Put::Durable => self.advance(head),
            Put::Taken => {
                self.epoch = None;
                Appended::Fenced
            }
            Put::InDoubt => {
                self.doubt = Some((bytes, head));
                Appended::InDoubt
            }
        }
    }
}

impl<P: LogStorage> Log for ShardLog<P> {
    fn append(&mut self, expected: u64, units: &[Unit]) -> Appended {
        self.append_body(expected, Body::Units(units.to_vec()))
    }

    fn read_from(
        &mut self,
        after: u64,
        each: &mut dyn FnMut(u64, Vec<Unit>),
    ) -> Result<u64, CannotRead> {
        let mut head = ChainHead::empty(&self.shard);
        let mut parts = Parts::default();
        let (found, mut again) = (self.storage.head()?, ASK_AGAIN);
        loop {
            let batch = self.storage.get(head.place + 1, READ_AHEAD)?;
            if batch.is_empty() {
                if head.place >= found || again == 0 {
                    break;
                }
                again -= 1;
            }
            for bytes in batch {
                let (mut entry, next) = decode(&self.key, &head, &bytes)?;
                head = next;
                let garbled = DamagedEntry { place: entry.place, why: EntryDamage::Garbled };
                let units = parts.take(&mut entry).map_err(|_| garbled)?;
                if let Some(units) = units.filter(|_| entry.place > after) {
                    each(entry.place, units);
                }
            }
        }
        if head.place < found {
            let place = head.place + 1;
            return Err(DamagedEntry { place, why: EntryDamage::Missing }.into());
        }
        Ok(head.place)
    }

    fn head(&mut self) -> Result<u64, CannotRead> {
        Ok(self.storage.head()?)
    }
}
