//! The names of one object.

use smallvec::SmallVec;
use std::borrow::Cow;
use std::collections::BTreeSet;

use super::string::JsonString;

/// The names of one object, to find a second one of the same spelling without comparing all pairs.
#[derive(Default)]
pub(super) struct Names<'a> {
    marks: [u64; 4],
    few: SmallVec<[&'a str; 24]>,
    many: Option<BTreeSet<Cow<'a, str>>>,
}

impl<'a> Names<'a> {
    /// False when the name was there before.
    #[inline]
    pub(super) fn insert(&mut self, name: JsonString<'a>) -> bool {
        let simple = !name.escaped && self.many.is_none();
        if !simple || self.few.len() == self.few.inline_size() {
            return self.insert_among_many(name);
        }
        let mark = mark(name.raw);
        let (word, bit) = (usize::from(mark >> 6), 1 << (mark & 63));
        let new = self.marks[word] & bit == 0 || !self.few.contains(&name.raw);
        self.marks[word] |= bit;
        self.few.push(name.raw);
        new
    }

    /// An object with many names, or with one that is spelled with escapes.
    #[cold]
    fn insert_among_many(&mut self, name: JsonString<'a>) -> bool {
        let many = self.many.get_or_insert_default();
        many.extend(self.few.drain(..).map(Cow::Borrowed));
        many.insert(name.decode())
    }
}

/// One of 256 marks; names that differ mostly get different ones.
#[inline]
fn mark(name: &str) -> u8 {
    let [first, .., last] = name.as_bytes() else { return 0 };
    let sample = name.len() as u64 & 0xff | u64::from(*first) << 8 | u64::from(*last) << 16;
    // Fibonacci hashing: the top bits of the product depend on all of the sample.
    (sample.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 56) as u8
}
