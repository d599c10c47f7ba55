//! The audit chain: each record is bound to everything before it.

use sha2::{Digest as _, Sha256};

/// A link of the chain.
pub type Hash = [u8; 32];

/// What stands before the first record of a store.
pub fn first(store: &str) -> Hash {
    let mut hash = Sha256::new_with_prefix(b"aaep-audit-v1\0");
    hash.update(store.as_bytes());
    finish(hash)
}

// enforces: I26
/// SHA-256 of the hash before, the time in microseconds (8 bytes, little-endian) and the record.
pub fn next(before: &Hash, at: i64, bytes: &[u8]) -> Hash {
    let mut hash = Sha256::new_with_prefix(before);
    hash.update(at.to_le_bytes());
    hash.update(bytes);
    finish(hash)
}

/// Eight bytes that tell whether these fields are as they were written.
pub(crate) fn checksum(fields: &[&[u8]]) -> Vec<u8> {
    let mut hash = Sha256::new();
    for field in fields {
        hash.update((field.len() as u64).to_le_bytes());
        hash.update(field);
    }
    finish(hash)[..8].to_vec()
}

fn finish(hash: Sha256) -> Hash {
    let mut out = [0; 32];
    out.copy_from_slice(&hash.finalize());
    out
}

/// As hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    const DIGITS: [char; 16] =
        ['0', '1', '2', '3', '4', '5', '6', '7', '8', '9', 'a', 'b', 'c', 'd', 'e', 'f'];
    let digits = bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]);
    digits.map(|digit| DIGITS[usize::from(digit)]).collect()
}

/// From hexadecimal digits.
pub(crate) fn from_hex(text: &str) -> Option<Hash> {
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

    // covers: I26
    #[test]
    fn a_link_depends_on_everything_before_it_on_its_time_and_on_its_record() {
        let start = first("a");
        let link = next(&start, 1, b"record");
        assert_ne!(start, first("b"));
        for other in [
            next(&first("b"), 1, b"record"),
            next(&start, 2, b"record"),
            next(&start, 1, b"Record"),
        ] {
            assert_ne!(link, other);
        }
        assert_eq!(from_hex(&hex(&link)), Some(link));
    }
}
