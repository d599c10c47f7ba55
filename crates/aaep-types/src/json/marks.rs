//! Where strings can end: a sweep over the whole text, made once, that marks every quote, backslash
//! and control character with a bit. Reading a string is then a jump to the next mark.
//!
//! The sweep has no branches and the compiler turns it into vector instructions; looking at each
//! string byte by byte costs two to three times as much.

use smallvec::SmallVec;

/// One bit for every byte of a text.
#[derive(Debug)]
pub(super) struct Marks {
    words: SmallVec<[u64; 24]>,
}

const BLOCK: usize = 64;

impl Marks {
    pub(super) fn of(bytes: &[u8]) -> Self {
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        let mut words: SmallVec<_> = blocks.iter().map(mark).collect();
        let mut last = [b' '; BLOCK];
        last[..rest.len()].copy_from_slice(rest);
        words.push(mark(&last));
        Self { words }
    }

    /// The marks, for [`next`].
    pub(super) fn words(&self) -> &[u64] {
        &self.words
    }
}

/// The first mark at or after `at`; some place beyond the text when there is none.
#[inline]
pub(super) fn next(words: &[u64], at: usize) -> usize {
    match words.get(at / BLOCK).map_or(0, |word| word >> (at % BLOCK)) {
        0 => far(words, at),
        word => at + word.trailing_zeros() as usize,
    }
}

/// The same when it is not in the word that `at` is in.
fn far(words: &[u64], at: usize) -> usize {
    let rest = words.iter().enumerate().skip(at / BLOCK + 1);
    let found = rest.into_iter().find(|&(_, &word)| word != 0);
    found.map_or(usize::MAX, |(index, word)| index * BLOCK + word.trailing_zeros() as usize)
}

fn mark(block: &[u8; BLOCK]) -> u64 {
    // A plain loop: `array::map` is one call for each byte unless everything is optimized together.
    let mut flags = [0; BLOCK];
    for (flag, &byte) in flags.iter_mut().zip(block) {
        *flag = u8::from((byte == b'"') | (byte == b'\\') | (byte < 0x20));
    }
    let mut word = 0;
    for (index, eight) in flags.as_chunks::<8>().0.iter().enumerate() {
        // Multiplying shifts each of the eight flags to its place in the topmost byte.
        let bits = u64::from_le_bytes(*eight).wrapping_mul(0x0102_0408_1020_4080) >> 56;
        word |= bits << (index * 8);
    }
    word
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_that_can_end_a_run_is_marked_and_no_other() {
        for length in [0, 1, 63, 64, 65, 200] {
            for byte in 0..=255u8 {
                for place in 0..length {
                    let mut bytes = vec![b'x'; length];
                    bytes[place] = byte;
                    let marked = matches!(byte, b'"' | b'\\' | 0..=0x1f);
                    let found = next(Marks::of(&bytes).words(), 0);
                    assert_eq!(found, if marked { place } else { usize::MAX });
                }
            }
        }
    }

    #[test]
    fn the_next_mark_is_found_from_anywhere() {
        let bytes: Vec<u8> = (0..500).map(|at| if at % 97 == 5 { b'"' } else { b'a' }).collect();
        let marks = Marks::of(&bytes);
        for at in 0..510 {
            let wanted = (at..500).find(|at| at % 97 == 5).unwrap_or(usize::MAX);
            assert_eq!(next(marks.words(), at), wanted, "{at}");
        }
    }
}
