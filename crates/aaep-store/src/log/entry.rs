//! One entry of a log: one group commit, bound to everything before it and to the cluster's key.

use std::fmt;

use super::wire::{Reader, Writer};
use crate::chain::{ChainHash, ChainKey, first};
use crate::unit::Unit;

/// The format that this version writes, and the only one that it reads.
const FORMAT: u8 = 1;

/// What every entry begins with.
const MAGIC: &[u8; 5] = b"aaepL";

/// How long the name of a node may be, in bytes.
pub const MAX_NODE_BYTES: usize = 64;

/// How long an entry may be, in bytes: what every store takes in one piece.
pub const MAX_ENTRY_BYTES: usize = 900 * 1024;

/// Eight bytes that tell one chain key from another and say nothing else about it.
pub type KeyFingerprint = [u8; 8];

/// The fingerprint of this key.
pub fn fingerprint(key: &ChainKey) -> KeyFingerprint {
    let seal = key.seal("fingerprint", &[]);
    let mut print = KeyFingerprint::default();
    print.copy_from_slice(&seal[..8]);
    print
}

/// What an entry says.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Body {
    /// A node takes the shard over: from here on only entries of its epoch follow.
    Claimed {
        /// The key with which it writes.
        key: KeyFingerprint,
    },
    /// What one group commit keeps.
    Units(Vec<Unit>),
    /// A part of what one group commit keeps, which is too much for one entry. Without the last part, of
    /// the same epoch, nothing of it counts.
    Part {
        /// Whether the group commit is whole with this.
        is_last: bool,
        /// The bytes of this part.
        bytes: Vec<u8>,
    },
    /// The node is done with the shard; anybody may claim it without waiting for a lease.
    Released,
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogEntry {
    /// Where it stands; the first is 1.
    pub place: u64,
    /// The epoch of its author; each claim begins a higher one.
    pub epoch: u64,
    /// Who wrote it.
    pub node: String,
    /// When, in microseconds since 1970 on its author's clock.
    pub at: i64,
    /// What it says.
    pub body: Body,
}

/// How far a chain is: the place of its last entry, that entry's link, and the epoch in force.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainHead {
    /// The place of the last entry; 0 if there is none.
    pub place: u64,
    /// Its link.
    pub hash: ChainHash,
    /// The highest epoch that was claimed; 0 if none was.
    pub epoch: u64,
    /// Who claimed it.
    pub node: String,
    /// Whether its owner has released it since.
    pub released: bool,
}

impl ChainHead {
    /// The head of an empty log of this shard.
    pub fn empty(shard: &str) -> Self {
        let hash = first(shard);
        Self { place: 0, hash, epoch: 0, node: String::new(), released: true }
    }
}

/// Why an entry cannot be believed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EntryDamage {
    /// There is no entry at this place, and there are later ones.
    Missing,
    /// It is shorter or longer than it says, or says what no entry says.
    Garbled,
    /// It is no entry, or one of a version that this one cannot read.
    Format(u8),
    /// It was written for another place.
    Misplaced {
        /// The place for which it was written.
        written_for: u64,
    },
    /// It does not follow from the entry before it.
    NotLinked,
    /// Something in it was changed, or it was written with another key.
    NotSealed,
    /// The owner says itself that it wrote with another key.
    OtherKey {
        /// The fingerprint of the key with which it was written.
        written: KeyFingerprint,
        /// The fingerprint of this node's key.
        ours: KeyFingerprint,
    },
    /// It is of an epoch that was not in force: its author was fenced, or never claimed the shard.
    Epoch {
        /// The epoch in the entry.
        written: u64,
        /// The epoch in force.
        in_force: u64,
    },
}

/// An entry that cannot be believed, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DamagedEntry {
    /// Its place.
    pub place: u64,
    /// What is wrong.
    pub why: EntryDamage,
}

impl fmt::Display for DamagedEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, why } = self;
        write!(f, "Entry {place} of the log cannot be believed: ")?;
        match why {
            EntryDamage::Missing => f.write_str("it is missing, and later ones are there")?,
            EntryDamage::Garbled => f.write_str("its bytes are not those of an entry")?,
            EntryDamage::Format(format) => {
                write!(f, "it has format {format}, and this version reads format {FORMAT}")?;
            }
            EntryDamage::Misplaced { written_for } => {
                write!(f, "it was written for place {written_for}")?;
            }
            EntryDamage::NotLinked => f.write_str("it does not follow from the one before it")?,
            EntryDamage::NotSealed => {
                f.write_str("it was changed, or written with another key")?;
            }
            EntryDamage::OtherKey { written, ours } => {
                f.write_str("it was written with the key ")?;
                written.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                f.write_str(", and the key here is ")?;
                ours.iter().try_for_each(|byte| write!(f, "{byte:02x}"))?;
                return f.write_str(". Give every node of the cluster the same key.");
            }
            EntryDamage::Epoch { written, in_force } => {
                write!(f, "its epoch is {written}, and {in_force} was in force")?;
            }
        }
        f.write_str(". The shard stays closed; restore the log from a whole replica.")
    }
}

impl std::error::Error for DamagedEntry {}

// enforces: I26, I33
/// The bytes of an entry that follows this head, and the head after it.
pub fn encode(key: &ChainKey, head: &ChainHead, entry: &LogEntry) -> (Vec<u8>, ChainHead) {
    let mut out = Writer::default();
    out.fixed(MAGIC);
    out.fixed(&[FORMAT]);
    out.fixed(&entry.place.to_le_bytes());
    out.fixed(&entry.epoch.to_le_bytes());
    out.fixed(&entry.at.to_le_bytes());
    out.fixed(&head.hash);
    out.bytes(entry.node.as_bytes());
    match &entry.body {
        Body::Claimed { key } => {
            out.fixed(&[1]);
            out.fixed(key);
        }
        Body::Units(units) => {
            out.fixed(&[2]);
            out.units(units);
        }
        Body::Released => out.fixed(&[3]),
        Body::Part { is_last, bytes } => {
            out.fixed(&[if *is_last { 5 } else { 4 }]);
            out.bytes(bytes);
        }
    }
    let hash = key.link(&head.hash, entry.at, &out.0);
    out.fixed(&hash);
    (out.0, after(head, entry, hash))
}

// enforces: I26, I33
/// Reads the entry that follows this head, and gives the head after it. What is not exactly what a
/// holder of the key wrote for this place and in the epoch in force is damage.
pub fn decode(
    key: &ChainKey,
    head: &ChainHead,
    bytes: &[u8],
) -> Result<(LogEntry, ChainHead), DamagedEntry> {
    let place = head.place + 1;
    let damaged = |why| DamagedEntry { place, why };
    let garbled = || damaged(EntryDamage::Garbled);
    let cut = bytes.len().checked_sub(32).ok_or_else(garbled)?;
    let (sealed, seal) = bytes.split_at(cut);
    let mut reader = Reader(sealed);
    if reader.array() != Some(*MAGIC) {
        return Err(garbled());
    }
    match reader.byte().ok_or_else(garbled)? {
        FORMAT => {}
        other => return Err(damaged(EntryDamage::Format(other))),
    }
    let (entry, before) =
        fields(&mut reader).filter(|_| reader.0.is_empty()).ok_or_else(garbled)?;
    if key.link(&before, entry.at, sealed)[..] != *seal {
        let ours = fingerprint(key);
        return Err(damaged(match entry.body {
            Body::Claimed { key: written } if written != ours => {
                EntryDamage::OtherKey { written, ours }
            }
            _ => EntryDamage::NotSealed,
        }));
    }
    if entry.place != place {
        return Err(damaged(EntryDamage::Misplaced { written_for: entry.place }));
    }
    if before != head.hash {
        return Err(damaged(EntryDamage::NotLinked));
    }
    let claims = matches!(entry.body, Body::Claimed { .. });
    let ours = entry.epoch == head.epoch && entry.node == head.node && !head.released;
    if if claims { entry.epoch <= head.epoch } else { !ours } {
        let (written, in_force) = (entry.epoch, head.epoch);
        return Err(damaged(EntryDamage::Epoch { written, in_force }));
    }
    let mut hash = ChainHash::default();
    hash.copy_from_slice(seal);
    let head = after(head, &entry, hash);
    Ok((entry, head))
}

/// The link of an entry that a holder of the key wrote for this place. Whether it follows from the one
/// before is not looked at.
#[cfg_attr(not(feature = "sqlite"), allow(dead_code))] // only nodes with a disk note anything
pub(super) fn link_of(key: &ChainKey, place: u64, bytes: &[u8]) -> Option<ChainHash> {
    let (sealed, seal) = bytes.split_at(bytes.len().checked_sub(32)?);
    let mut reader = Reader(sealed);
    let known = reader.array() == Some(*MAGIC) && reader.byte() == Some(FORMAT);
    let (entry, before) = fields(&mut reader).filter(|_| known && reader.0.is_empty())?;
    let link = key.link(&before, entry.at, sealed);
    (entry.place == place && link[..] == *seal).then_some(link)
}

fn fields(reader: &mut Reader<'_>) -> Option<(LogEntry, ChainHash)> {
    let (place, epoch) = (reader.number()?, reader.number()?);
    let at = i64::from_le_bytes(reader.array()?);
    let before = reader.array()?;
    let node = reader.text().filter(|node| node.len() <= MAX_NODE_BYTES)?;
    let body = match reader.byte()? {
        1 => Body::Claimed { key: reader.array()? },
        2 => Body::Units(reader.units()?),
        3 => Body::Released,
        part @ (4 | 5) => Body::Part { is_last: part == 5, bytes: reader.bytes()?.to_vec() },
        _ => return None,
    };
    Some((LogEntry { place, epoch, node, at, body }, before))
}

fn after(head: &ChainHead, entry: &LogEntry, hash: ChainHash) -> ChainHead {
    let (place, released) = (entry.place, matches!(entry.body, Body::Released));
    let claims = matches!(entry.body, Body::Claimed { .. });
    let (epoch, node) =
        if claims { (entry.epoch, entry.node.clone()) } else { (head.epoch, head.node.clone()) };
    ChainHead { place, hash, epoch, node, released }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::Entry;
    use crate::unit::{KeptCall, Note};

    fn key() -> ChainKey {
        ChainKey::new(&[7; 32])
    }

    fn entry(place: u64, epoch: u64, body: Body) -> LogEntry {
        LogEntry { place, epoch, node: "a".into(), at: 42, body }
    }

    fn units() -> Body {
        let call = KeptCall {
            agent: "a".into(),
            path: "b".into(),
            key: "c".into(),
            session: "d".into(),
            body: [3; 32],
            status: 201,
            answer: "{}".into(),
        };
        let notes = vec![
            Note::Call(call),
            Note::ForgetCall { agent: "a".into(), path: "b".into(), key: "c".into() },
            Note::ForgetCalls { session: "d".into() },
            Note::ClockJumped,
        ];
        let entries =
            vec![Entry { number: 1, bytes: vec![1, 2, 3] }, Entry { number: 2, bytes: vec![] }];
        Body::Units(vec![Unit { entries, notes }, Unit::default()])
    }

    /// A claim, and units after it.
    fn log() -> (Vec<Vec<u8>>, Vec<ChainHead>) {
        let part = |is_last| Body::Part { is_last, bytes: vec![1, 2, 3] };
        let claimed = Body::Claimed { key: fingerprint(&key()) };
        let bodies = [claimed, units(), part(false), part(true), Body::Released];
        let (mut log, mut heads) = (Vec::new(), vec![ChainHead::empty("s")]);
        for (place, body) in (1..).zip(bodies) {
            let (bytes, head) = encode(&key(), &heads[heads.len() - 1], &entry(place, 1, body));
            log.push(bytes);
            heads.push(head);
        }
        (log, heads)
    }

    fn why(head: &ChainHead, bytes: &[u8]) -> EntryDamage {
        let damaged = decode(&key(), head, bytes).unwrap_err();
        assert_eq!(damaged.place, head.place + 1);
        damaged.why
    }

    #[test]
    fn what_was_encoded_is_decoded_with_every_unit_and_note() {
        let (log, heads) = log();
        for (index, bytes) in log.iter().enumerate() {
            let (read, head) = decode(&key(), &heads[index], bytes).unwrap();
            assert_eq!(head, heads[index + 1]);
            if index == 1 {
                assert_eq!(read, entry(2, 1, units()));
            }
        }
    }

    // covers: I26, I33
    #[test]
    fn every_flipped_bit_and_every_cut_is_noticed() {
        let (log, heads) = log();
        for (head, bytes) in heads.iter().zip(&log) {
            for bit in 0..bytes.len() * 8 {
                let mut bytes = bytes.clone();
                bytes[bit / 8] ^= 1 << (bit % 8);
                decode(&key(), head, &bytes).unwrap_err();
            }
            for cut in 0..bytes.len() {
                decode(&key(), head, &bytes[..cut]).unwrap_err();
            }
            decode(&key(), head, &[&bytes[..], &[0]].concat()).unwrap_err();
        }
    }

    // covers: I26
    #[test]
    fn damage_is_named_for_what_it_is() {
        let (log, heads) = log();
        assert_eq!(why(&heads[1], b"hello"), EntryDamage::Garbled);
        let mut newer = log[1].clone();
        newer[5] = 2;
        assert_eq!(why(&heads[1], &newer), EntryDamage::Format(2));
        assert_eq!(why(&heads[0], &log[1]), EntryDamage::Misplaced { written_for: 2 });
        let other = ChainHead { hash: [1; 32], ..heads[1].clone() };
        assert_eq!(why(&other, &log[1]), EntryDamage::NotLinked);
        let (forged, _) = encode(&ChainKey::new(&[8; 32]), &heads[1], &entry(2, 1, units()));
        assert_eq!(why(&heads[1], &forged), EntryDamage::NotSealed);
    }

    #[test]
    fn an_entry_of_an_epoch_that_is_not_in_force_is_damage() {
        let (_, heads) = log();
        let out_of_force = |head: &ChainHead, epoch, body| {
            let (bytes, _) = encode(&key(), head, &entry(head.place + 1, epoch, body));
            matches!(why(head, &bytes), EntryDamage::Epoch { .. })
        };
        let claim = || Body::Claimed { key: [0; 8] };
        assert!(out_of_force(&heads[0], 1, units()), "nobody claimed it");
        assert!(out_of_force(&heads[1], 0, units()), "a zombie");
        assert!(out_of_force(&heads[1], 2, units()), "an epoch without a claim");
        assert!(out_of_force(&heads[1], 1, claim()), "the same epoch twice");
        assert!(out_of_force(&heads[5], 1, units()), "after the release");
        let other = ChainHead { node: "b".into(), ..heads[1].clone() };
        assert!(out_of_force(&other, 1, units()), "another node's epoch");
    }

    #[test]
    fn one_entry_alone_gives_its_link_if_it_is_sealed_and_at_its_place() {
        let (log, heads) = log();
        for (place, bytes) in (1..).zip(&log) {
            assert_eq!(link_of(&key(), place, bytes), Some(heads[place as usize].hash));
            assert_eq!(link_of(&key(), place + 1, bytes), None);
            assert_eq!(link_of(&ChainKey::new(&[8; 32]), place, bytes), None);
            assert_eq!(link_of(&key(), place, &bytes[..bytes.len() - 1]), None);
        }
        assert_eq!(link_of(&key(), 1, b"hello"), None);
    }

    #[test]
    fn a_length_that_claims_more_than_is_there_makes_no_room() {
        assert_eq!(Reader(&[255, 255, 255, 255, 0]).units(), None);
    }
}
