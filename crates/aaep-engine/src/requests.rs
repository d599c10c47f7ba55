//! All requests, found by their number or by their token.
//!
//! A million may wait at once, and a reply concerns any of them. What such a reply costs is above all
//! how many places in memory it visits that nobody visited lately. Here that is the request itself:
//! the two indexes have eight bytes for each request, where a tree would have a path of nodes.

use hashbrown::HashTable;
use std::collections::BTreeSet;

use crate::clock::Boot;
use crate::request::Request;

/// Where a request lies. When it is forgotten, another one may get its place.
pub(crate) type Place = u32;

/// The requests. There is deliberately no way to go through them: their order would be that of a
/// hash. Whoever needs an order asks the sessions.
#[derive(Debug, Default)]
pub(crate) struct Requests {
    places: Vec<Option<Box<Request>>>,
    free: Vec<Place>,
    numbers: Index,
    tokens: Index,
    /// Those for which something is due: a countdown, or the end.
    due: BTreeSet<(Boot, Place)>,
}

impl Requests {
    pub(crate) fn get(&self, number: &u128) -> Option<&Request> {
        self.at(self.place(*number)?)
    }

    pub(crate) fn get_mut(&mut self, number: &u128) -> Option<&mut Request> {
        let place = self.place(*number)?;
        self.places.get_mut(place as usize)?.as_deref_mut()
    }

    /// The request that lies at a place.
    pub(crate) fn at(&self, place: Place) -> Option<&Request> {
        self.places.get(place as usize)?.as_deref()
    }

    /// Where the request with this number lies.
    pub(crate) fn place(&self, number: u128) -> Option<Place> {
        self.numbers.find(number, |place| self.at(place).is_some_and(|r| r.number == number))
    }

    /// The request that a reply with this token concerns.
    pub(crate) fn by_token(&self, token: u128) -> Option<&Request> {
        self.at(self.place_by_token(token)?)
    }

    fn place_by_token(&self, token: u128) -> Option<Place> {
        self.tokens.find(token, |place| self.at(place).is_some_and(|r| r.token == token))
    }

    /// Takes a request in, under its number and its token.
    pub(crate) fn insert(&mut self, request: Request) -> Place {
        let (number, token) = (request.number, request.token);
        self.remove(&number);
        let place = self.free.pop().unwrap_or_else(|| {
            self.places.push(None);
            // Fewer than 2^32: each takes some hundred bytes.
            (self.places.len() - 1) as Place
        });
        self.forget_token(token);
        self.places[place as usize] = Some(Box::new(request));
        self.numbers.insert(number, place);
        self.tokens.insert(token, place);
        place
    }

    /// Takes a request out; nothing finds it any more.
    pub(crate) fn remove(&mut self, number: &u128) -> Option<Box<Request>> {
        let place = self.place(*number)?;
        self.stop_timer(*number);
        let request = self.places.get_mut(place as usize)?.take()?;
        self.numbers.remove(*number, place);
        self.tokens.remove(request.token, place);
        self.free.push(place);
        Some(request)
    }

    /// Something is due when the request says so.
    pub(crate) fn set_timer(&mut self, number: u128) {
        self.due.extend(self.timer(number));
    }

    /// To be called before anything changes that the time depends on.
    pub(crate) fn stop_timer(&mut self, number: u128) {
        if let Some(timer) = self.timer(number) {
            self.due.remove(&timer);
        }
    }

    fn timer(&self, number: u128) -> Option<(Boot, Place)> {
        let place = self.place(number)?;
        Some((self.at(place)?.due(), place))
    }

    /// When something is due next.
    pub(crate) fn next_due(&self) -> Option<Boot> {
        self.due.first().map(|(at, _)| *at)
    }

    /// The request for which something is due first; its timer is gone.
    pub(crate) fn take_due(&mut self) -> Option<u128> {
        let (_, place) = self.due.pop_first()?;
        self.at(place).map(|request| request.number)
    }

    /// From now on a request is answered with another token; nothing finds it by the old one.
    pub(crate) fn change_token(&mut self, number: u128, token: u128) {
        let Some(place) = self.place(number) else { return };
        let Some(Some(request)) = self.places.get_mut(place as usize) else { return };
        self.tokens.remove(std::mem::replace(&mut request.token, token), place);
        self.forget_token(token);
        self.tokens.insert(token, place);
    }

    /// No two requests have the same token; if they had, the newer one would count.
    fn forget_token(&mut self, token: u128) {
        if let Some(older) = self.place_by_token(token) {
            self.tokens.remove(token, older);
        }
    }
}

/// From a key to a place; the key itself is in the request. Only keys that the engine made are ever
/// put in, counted up or taken from an HMAC: nobody outside can choose them to collide.
#[derive(Debug, Default)]
struct Index(HashTable<Entry>);

/// The hash is kept, so that a growing index does not have to visit every request.
#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u32,
    place: Place,
}

impl Index {
    fn find(&self, key: u128, same: impl Fn(Place) -> bool) -> Option<Place> {
        let hash = hash_of(key);
        let found = self.0.find(wide(hash), |entry| entry.hash == hash && same(entry.place));
        found.map(|entry| entry.place)
    }

    fn insert(&mut self, key: u128, place: Place) {
        let hash = hash_of(key);
        self.0.insert_unique(wide(hash), Entry { hash, place }, |entry| wide(entry.hash));
    }

    fn remove(&mut self, key: u128, place: Place) {
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
