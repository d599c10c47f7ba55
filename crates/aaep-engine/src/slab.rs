//! Things with a number, found in one step.
//!
//! A million requests may wait at once, and what happens next concerns any of them. What that costs
//! is above all how many places in memory are visited that nobody visited lately. Here it is the
//! thing itself; the way there leads over eight bytes for each thing, where a tree would have a path
//! of nodes.

use hashbrown::HashTable;

use crate::ids::Number;

/// Where a thing lies. When it is taken out, another one may get its place.
pub(crate) type SlotIndex = u32;

/// Something with a number of our own making, which never changes.
pub(crate) trait Numbered {
    type Number: Number;
    fn number(&self) -> Self::Number;
}

/// Things by their numbers.
#[derive(Debug)]
pub(crate) struct Slab<T> {
    /// Boxed, so that growing moves pointers only.
    things: Vec<Option<Box<T>>>,
    free: Vec<SlotIndex>,
    numbers: KeyIndex,
    /// Where the last one was that was looked for; it is mostly the next one, too.
    last: SlotIndex,
}

impl<T> Default for Slab<T> {
    fn default() -> Self {
        Self { things: Vec::new(), free: Vec::new(), numbers: KeyIndex::default(), last: 0 }
    }
}

impl<T: Numbered> Slab<T> {
    pub(crate) fn get(&self, number: &T::Number) -> Option<&T> {
        self.at(self.place(*number)?)
    }

    pub(crate) fn get_mut(&mut self, number: &T::Number) -> Option<&mut T> {
        self.last = self.place(*number)?;
        self.things.get_mut(self.last as usize)?.as_deref_mut()
    }

    /// What lies at a place.
    pub(crate) fn at(&self, place: SlotIndex) -> Option<&T> {
        self.things.get(place as usize)?.as_deref()
    }

    /// The next one to be looked for lies here, probably.
    pub(crate) fn expect(&mut self, place: SlotIndex) {
        self.last = place;
    }

    /// Where the thing with this number lies.
    pub(crate) fn place(&self, number: T::Number) -> Option<SlotIndex> {
        let same = |place| self.at(place).is_some_and(|thing| thing.number() == number);
        if same(self.last) { Some(self.last) } else { self.numbers.find(number.bits(), same) }
    }

    /// Puts a thing in; one that had its number before is gone.
    pub(crate) fn insert(&mut self, thing: T) -> SlotIndex {
        let number = thing.number();
        self.remove(&number);
        let place = self.free.pop().unwrap_or_else(|| {
            self.things.push(None);
            // Fewer than 2^32: each takes some hundred bytes.
            (self.things.len() - 1) as SlotIndex
        });
        self.things[place as usize] = Some(Box::new(thing));
        self.numbers.insert(number.bits(), place);
        self.last = place;
        place
    }

    pub(crate) fn remove(&mut self, number: &T::Number) -> Option<T> {
        let place = self.place(*number)?;
        let thing = self.things.get_mut(place as usize)?.take()?;
        self.numbers.remove(number.bits(), place);
        self.free.push(place);
        Some(*thing)
    }

    pub(crate) fn len(&self) -> usize {
        self.things.len() - self.free.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them, in an order that means nothing but follows from what happened before alone.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.things.iter().filter_map(|thing| thing.as_deref())
    }

    /// The same, to be changed.
    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.things.iter_mut().filter_map(|thing| thing.as_deref_mut())
    }
}

/// From a key to a place; the key itself is in the thing. Only keys that the engine made are ever put
/// in, counted up or taken from an HMAC: nobody outside can choose them to collide.
#[derive(Debug, Default)]
pub(crate) struct KeyIndex(HashTable<Entry>);

/// The hash is kept, so that a growing index does not have to visit every thing.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    place: SlotIndex,
}

impl KeyIndex {
    pub(crate) fn find(&self, key: u128, same: impl Fn(SlotIndex) -> bool) -> Option<SlotIndex> {
        let hash = hash_of(key);
        let found = self.0.find(wide(hash), |entry| entry.hash == hash && same(entry.place));
        found.map(|entry| entry.place)
    }

    pub(crate) fn insert(&mut self, key: u128, place: SlotIndex) {
        let hash = hash_of(key);
        self.0.insert_unique(wide(hash), Entry { hash, place }, |entry| wide(entry.hash));
    }

    pub(crate) fn remove(&mut self, key: u128, place: SlotIndex) {
        if let Ok(entry) = self.0.find_entry(wide(hash_of(key)), |entry| entry.place == place) {
            entry.remove();
        }
    }
}

/// 2^64 divided by the golden ratio: numbers that follow each other, multiplied by it, lie far apart.
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Sixteen numbers in a row stay neighbours, so that what is made together lies together; such rows
/// are spread over the index.
fn hash_of(key: u128) -> u32 {
    let folded = key as u64 ^ (key >> 64) as u64;
    let row = (folded >> 4).wrapping_mul(GOLDEN) >> 36;
    (row << 4 | folded & 15) as u32
}

/// The index finds a place by the lowest bits and compares the topmost ones first, so those must
/// differ within a row.
fn wide(hash: u32) -> u64 {
    u64::from(hash).wrapping_mul(GOLDEN) & !0xffff_ffff | u64::from(hash)
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Number for u128 {
        fn bits(self) -> u128 {
            self
        }
    }

    impl Numbered for u128 {
        type Number = u128;

        fn number(&self) -> u128 {
            *self
        }
    }

    #[test]
    fn what_was_put_in_is_found_until_it_is_taken_out() {
        let numbers: Vec<u128> = (0..1000).map(|number| (number << 64) | (number * 7)).collect();
        let mut places = Slab::default();
        for number in &numbers {
            places.insert(*number);
        }
        for (index, number) in numbers.iter().enumerate().filter(|(index, _)| index % 3 == 0) {
            assert_eq!(places.remove(number), Some(*number), "{index}");
        }
        for (index, number) in numbers.iter().enumerate() {
            assert_eq!(places.get(number), (index % 3 != 0).then_some(number));
        }
        assert_eq!((places.len(), places.iter().count()), (666, 666));
    }

    #[test]
    fn a_place_is_used_again_and_nothing_is_found_by_an_old_number() {
        let mut places = Slab::default();
        let first = places.insert(1u128);
        assert_eq!(places.remove(&1), Some(1));
        assert_eq!(places.insert(2), first);
        assert_eq!((places.get(&1), places.get(&2), places.len()), (None, Some(&2), 1));
        assert_eq!(places.insert(2), first);
        assert_eq!(places.len(), 1);
    }

    #[test]
    fn numbers_at_any_distance_spread_over_an_index() {
        for distance in [1, 2, 3, 4, 16, 52, 256, 1024, 65_536, 1 << 20, 1 << 32, 1 << 64] {
            // An index of 4096 entries, half full: how many share the fullest sixteen?
            let mut rows = [0; 256];
            for index in 0..2048 {
                let key = (7 << 64) + index * distance;
                rows[wide(hash_of(key)) as usize % 4096 / 16] += 1;
            }
            assert!(rows.iter().max() <= Some(&32), "{distance}: {rows:?}");
        }
    }

    #[test]
    fn neighbours_differ_in_what_is_compared_first() {
        let firsts: std::collections::BTreeSet<u64> =
            (0..16).map(|number| wide(hash_of(number)) >> 57).collect();
        assert!(firsts.len() > 12);
    }
}
