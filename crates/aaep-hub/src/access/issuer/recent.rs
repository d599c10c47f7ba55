//! Tokens that were verified, so that each signature is looked at once.

use std::collections::BTreeMap;

use aaep_engine::Principal;

use crate::access::TokenHash;

/// How many tokens are remembered in one of the two maps.
const REMEMBERED: usize = 16 << 10;

/// What a signature vouched for. Whether the time is right is asked each time.
#[derive(Clone)]
pub(super) struct Verified {
    pub(super) principal: Principal,
    /// In milliseconds of the wall clock, as the end.
    pub(super) begins: i64,
    pub(super) expires: i64,
}

/// Two maps: when the newer is full, the older is forgotten.
#[derive(Default)]
pub(super) struct Recent {
    newer: BTreeMap<TokenHash, Verified>,
    older: BTreeMap<TokenHash, Verified>,
}

impl Recent {
    pub(super) fn get(&mut self, hash: &TokenHash) -> Option<Verified> {
        if let Some(verified) = self.newer.get(hash) {
            return Some(verified.clone());
        }
        let verified = self.older.remove(hash)?;
        self.insert(*hash, verified.clone());
        Some(verified)
    }

    pub(super) fn insert(&mut self, hash: TokenHash, verified: Verified) {
        if self.newer.len() >= REMEMBERED {
            self.older = std::mem::take(&mut self.newer);
        }
        self.newer.insert(hash, verified);
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
