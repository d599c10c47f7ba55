//! The audit chain: each record is bound to everything before it and to the journal's key.
//!
//! The key lies outside the data directory. With write access to the journal alone, neither the
//! link of a record nor the seal of a row beside the records can be computed.

use std::fmt;

use hmac::{Hmac, KeyInit, Mac};
use sha2::{Digest as _, Sha256};

/// A link of the chain.
pub type ChainHash = [u8; 32];

/// What stands before the first record of a store.
pub fn first(store: &str) -> ChainHash {
    let mut hash = Sha256::new_with_prefix(b"aaep-audit-v1\0");
    hash.update(store.as_bytes());
    hash.finalize().into()
}

/// The link of a record that was written before journals had keys: SHA-256 of the hash before, the
/// time in microseconds (8 bytes, little-endian) and the record. Anybody can compute it.
pub fn unkeyed(before: &ChainHash, at: i64, bytes: &[u8]) -> ChainHash {
    let mut hash = Sha256::new_with_prefix(before);
    hash.update(at.to_le_bytes());
    hash.update(bytes);
    hash.finalize().into()
}

/// The key of one journal.
#[derive(Clone)]
pub struct ChainKey {
    links: Hmac<Sha256>,
    rows: Hmac<Sha256>,
}

impl ChainKey {
    /// How long a key is.
    pub const BYTES: usize = 32;

    /// Links and rows get keys of their own, derived from this one.
    pub fn new(bytes: &[u8; Self::BYTES]) -> Self {
        let derived = |purpose: &[u8]| keyed(&tag(keyed(bytes), &[purpose]));
        Self { links: derived(b"aaep-journal-links-v2"), rows: derived(b"aaep-journal-rows-v2") }
    }

    // enforces: I26, I33
    /// The link of a record: HMAC-SHA-256 of the link before, the time in microseconds (8 bytes,
    /// little-endian) and the record.
    pub fn link(&self, before: &ChainHash, at: i64, bytes: &[u8]) -> ChainHash {
        tag(self.links.clone(), &[before, &at.to_le_bytes(), bytes])
    }

    // enforces: I33
    /// The seal of something beside the records. Each field goes in with its length.
    pub(crate) fn seal(&self, what: &str, fields: &[&[u8]]) -> ChainHash {
        let mut mac = self.rows.clone();
        for field in std::iter::once(&what.as_bytes()).chain(fields) {
            mac.update(&(field.len() as u64).to_le_bytes());
            mac.update(field);
        }
        mac.finalize().into_bytes().into()
    }
}

impl fmt::Debug for ChainKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ChainKey(…)")
    }
}

fn keyed(key: &ChainHash) -> Hmac<Sha256> {
    // HMAC fills a short key up with zeros, to one block of the hash.
    let mut block = [0; 64];
    block[..key.len()].copy_from_slice(key);
    Hmac::new((&block).into())
}

fn tag(mut mac: Hmac<Sha256>, parts: &[&[u8]]) -> ChainHash {
    for part in parts {
        mac.update(part);
    }
    mac.finalize().into_bytes().into()
}

/// Where trust begins: the last record that was there before the journal had its key. 0 and
/// [`first`] in a journal that always had one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Anchor {
    /// Its number.
    pub number: u64,
    /// Its unkeyed hash.
    pub hash: ChainHash,
}

impl Anchor {
    pub(crate) fn seal(&self, key: &ChainKey, store: &str) -> ChainHash {
        key.seal("anchor", &[store.as_bytes(), &self.number.to_le_bytes(), &self.hash])
    }

    // enforces: I26, I33
    /// Whether this record follows from the one before it. Without the key, records after the anchor
    /// cannot be told from forged ones, and count as following.
    pub(crate) fn follows(
        &self,
        key: Option<&ChainKey>,
        number: u64,
        before: &ChainHash,
        (at, bytes): (i64, &[u8]),
        hash: &ChainHash,
    ) -> bool {
        if number <= self.number {
            let whole = unkeyed(before, at, bytes) == *hash;
            return whole && (number < self.number || *hash == self.hash);
        }
        key.is_none_or(|key| key.link(before, at, bytes) == *hash)
    }
}

/// Eight bytes that tell whether these fields are as they were written. Not a defence: anybody can
/// compute it.
pub(crate) fn checksum(fields: &[&[u8]]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    hash.finalize()[..8].to_vec()
}

/// As hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| DIGITS[usize::from(digit)]).collect()
}

/// From hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<ChainHash> {
    let mut out = [0; 32];
    if text.len() != 64 || !text.is_ascii() {
        return None;
    }
    for (byte, at) in out.iter_mut().zip((0..64).step_by(2)) {
        *byte = u8::from_str_radix(&text[at..at + 2], 16).ok()?;
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    // covers: I26, I33
    #[test]
    fn a_link_depends_on_everything_before_it_on_its_time_on_its_record_and_on_the_key() {
        let (key, other) = (ChainKey::new(&[1; 32]), ChainKey::new(&[2; 32]));
        let start = first("a");
        let link = key.link(&start, 1, b"record");
        assert_ne!(start, first("b"));
        for other in [
            key.link(&first("b"), 1, b"record"),
            key.link(&start, 2, b"record"),
            key.link(&start, 1, b"Record"),
            other.link(&start, 1, b"record"),
            unkeyed(&start, 1, b"record"),
        ] {
            assert_ne!(link, other);
        }
        assert_eq!(from_hex(&hex(&link)), Some(link));
    }

    // The formula of docs/durability.md, computed with another implementation of HMAC.
    #[test]
    fn the_link_is_the_one_that_is_documented() {
        let key = ChainKey::new(&[7; 32]);
        let link = key.link(&first("0123456789abcdef0123456789abcdef"), 42, b"record");
        assert_eq!(hex(&link), "9c513d8f38f95d88c08c51a562a8860724c4bf7c1a5a493c31dc631fae307fdd");
    }

    // covers: I33
    #[test]
    fn a_seal_depends_on_every_field_and_on_where_each_ends() {
        let key = ChainKey::new(&[1; 32]);
        let seal = key.seal("call", &[b"ab", b"c"]);
        for other in [
            key.seal("call", &[b"a", b"bc"]),
            key.seal("call", &[b"ab", b"c", b""]),
            key.seal("start", &[b"ab", b"c"]),
            ChainKey::new(&[2; 32]).seal("call", &[b"ab", b"c"]),
        ] {
            assert_ne!(seal, other);
        }
    }
}
