//! One node: the real owner and log, a lease, a ledger, and clocks of its own.

use std::collections::VecDeque;

use aaep_store::log::{
    Appended, Body, CannotRead, ChainHead, Lease, LogEntry, LogStorage as _, MemoryFault,
    MemoryStore, Owner, OwnerAction, OwnerEvent, ShardLog, Stage, encode, fingerprint,
};
use aaep_store::log::{Leases as _, Log as _};
use aaep_store::{ChainKey, Unit};

use super::Broken;
use super::ledger::{Clocks, Kept, Ledger, Micros};
use super::oracle::{Oracle, read};
use super::store::Store;
use super::world::SHARD;

/// A node that is further off the store's time than this owns nothing: so no two owners' clocks are
/// further apart than the margin of their deadlines.
const MAX_OFF: Micros = 1_000_000;

pub(super) struct Node {
    pub(super) index: usize,
    name: String,
    store: MemoryStore,
    key: ChainKey,
    broken: Option<Broken>,
    pub(super) owner: Owner,
    log: ShardLog<Store>,
    pub(super) todo: VecDeque<OwnerAction>,
    rests: bool,
    /// What was read of the log.
    facts: Vec<Kept>,
    pub(super) ledger: Option<Ledger>,
    /// What the ledger wants kept, since it recovered; so much of it was told.
    kept: Vec<Kept>,
    told: u64,
    lease: Option<Lease>,
    /// The longest log that it knew of and the highest number that was told, on its own disk.
    pub(super) noted: (u64, u64),
    /// How far its clock on the wall is off.
    pub(super) off: Micros,
    /// How far it was off when the store's time was seen last; deadlines go by that, since a clock may
    /// be set at any moment.
    checked: Micros,
    pub(super) sleeps_until: Micros,
    pub(super) progress: u64,
    pub(super) takeovers: u64,
}

impl Node {
    pub(super) fn new(
        index: usize,
        store: &MemoryStore,
        key: ChainKey,
        broken: Option<Broken>,
    ) -> Self {
        let name = format!("node-{index}");
        let log = new_log(store, &name, &key, broken);
        Self {
            index,
            name,
            store: store.clone(),
            key,
            broken,
            owner: Owner::default(),
            log,
            todo: VecDeque::new(),
            rests: false,
            facts: Vec::new(),
            ledger: None,
            kept: Vec::new(),
            told: 0,
            lease: None,
            noted: (0, 0),
            off: 0,
            checked: 0,
            sleeps_until: 0,
            progress: 0,
            takeovers: 0,
        }
    }

    fn is(&self, broken: Broken) -> bool {
        self.broken == Some(broken)
    }

    pub(super) fn clocks(&self, now: Micros) -> Clocks {
        // The boot clocks of two machines have nothing in common.
        Clocks { boot: now + self.index as Micros * 77_000_000, wall: now + self.checked }
    }

    /// Everything but what is on its disk is gone.
    pub(super) fn crash(&mut self) {
        let (noted, off, progress) = (self.noted, self.off, self.progress);
        let (until, takeovers) = (self.sleeps_until, self.takeovers);
        *self = Self::new(self.index, &self.store, self.key.clone(), self.broken);
        (self.noted, self.off, self.progress) = (noted, off, progress);
        (self.sleeps_until, self.takeovers) = (until, takeovers);
    }

    fn handle(&mut self, event: OwnerEvent) {
        self.todo.extend(self.owner.handle(event));
    }

    /// Takes or renews the lease; a node whose clock is off does not.
    pub(super) fn tend_lease(&mut self, now: Micros) {
        let wall = now + self.off;
        let taken = match &self.lease {
            Some(lease) => self.store.leases().renew(lease),
            None => self.store.leases().take(SHARD, &self.name),
        };
        let Ok(lease) = taken else {
            self.lease = None;
            return self.handle(OwnerEvent::LeaseLost);
        };
        // The store's clock shows the true time here.
        let is_off = (lease.store_time - wall).abs() > MAX_OFF;
        self.lease = Some(lease);
        if is_off && !self.is(Broken::IgnoresSkew) {
            if let Some(lease) = self.lease.take() {
                let _ = self.store.leases().give_back(&lease);
            }
            self.handle(OwnerEvent::Drain);
            return;
        }
        self.checked = self.off;
        if self.owner.stage() == Stage::Idle && self.todo.is_empty() {
            self.log = new_log(&self.store, &self.name, &self.key, self.broken);
            self.facts.clear();
            self.handle(OwnerEvent::LeaseTaken);
        }
    }

    /// Something is to be kept, and told after it was.
    pub(super) fn submit(&mut self, kept: Kept) {
        self.kept.push(kept);
        self.handle(OwnerEvent::Submitted);
    }

    /// Does the next thing that the owner asks for.
    pub(super) fn act(&mut self, fault: Option<MemoryFault>, now: Micros, oracle: &mut Oracle) {
        if std::mem::take(&mut self.rests) {
            return self.handle(OwnerEvent::PauseOver);
        }
        let Some(action) = self.todo.pop_front() else { return };
        self.store.spare(SHARD);
        let is_read = matches!(action, OwnerAction::ReadToEnd);
        if let Some(fault) = fault
            && is_read == matches!(fault, MemoryFault::StaleRead(_))
        {
            self.store.inject(SHARD, fault);
        }
        let wall = self.clocks(now).wall;
        self.log.set_time(now);
        let believed = self
            .lease
            .as_ref()
            .is_some_and(|lease| wall < lease.store_time + MemoryStore::LEASE_MICROS);
        match action {
            OwnerAction::ReadToEnd => self.read(),
            OwnerAction::Claim => {
                self.expect(believed, true);
                let answer = self.log.claim(now);
                self.handle(OwnerEvent::Appended(answer));
            }
            OwnerAction::Append { expected, from, to } => {
                self.append(expected, from, to, believed, oracle)
            }
            OwnerAction::Settle => self.settle(believed),
            OwnerAction::Tell { up_to } => self.tell(up_to, oracle),
            OwnerAction::Recover => self.recover(now, oracle),
            OwnerAction::DropEngine => self.drop_engine(),
            OwnerAction::Release => {
                self.expect(believed, false);
                let answer = self.log.release();
                self.handle(OwnerEvent::Appended(answer));
            }
            OwnerAction::GiveBackLease => {
                if let Some(lease) = self.lease.take() {
                    let _ = self.store.leases().give_back(&lease);
                }
            }
            OwnerAction::Pause => self.rests = true,
        }
        self.store.spare(SHARD);
    }

    /// The log's storage is inside it: what a broken rule needs to know goes there with a new log, and
    /// only where the rule is broken.
    fn expect(&mut self, has_lease: bool, claims: bool) {
        self.log.storage_mut().has_lease = has_lease;
        self.log.storage_mut().claims = claims;
    }

    fn read(&mut self) {
        let facts = &mut self.facts;
        let read = self.log.catch_up(|entry| {
            if let Body::Units(units) = entry.body {
                facts.extend(units.iter().flat_map(|unit| &unit.entries).filter_map(Kept::read));
            }
        });
        match read {
            Ok(_) => self.handle(OwnerEvent::ReadToEnd),
            Err(CannotRead::Unavailable(_)) => self.handle(OwnerEvent::CannotRead),
            Err(_) => {
                if self.is(Broken::ClaimsWithOtherKey) {
                    self.claim_anyhow();
                }
                self.handle(OwnerEvent::Damaged);
            }
        }
    }

    fn claim_anyhow(&mut self) {
        let mut storage = self.store.storage(SHARD);
        let place = storage.head().unwrap_or_default();
        let before = ChainHead { place, ..ChainHead::empty(SHARD) };
        let body = Body::Claimed { key: fingerprint(&self.key) };
        let entry =
            LogEntry { place: place + 1, epoch: 1_000, node: self.name.clone(), at: 0, body };
        let _ = storage.put(place + 1, &encode(&self.key, &before, &entry).0);
    }

    fn units(&self, from: u64, to: u64) -> Vec<Unit> {
        let kept = self.kept.get(from as usize..to as usize).unwrap_or_default();
        kept.iter().map(|kept| Unit { entries: vec![kept.entry()], notes: Vec::new() }).collect()
    }

    fn append(&mut self, expected: u64, from: u64, to: u64, believed: bool, oracle: &mut Oracle) {
        let units = self.units(from, to);
        self.expect(believed, false);
        if self.is(Broken::TellsEarly) {
            self.tell(to, oracle);
        }
        let before = self.log.known().clone();
        let epoch = self.log.epoch();
        let mut answer = self.log.append(expected, &units);
        if answer == Appended::InDoubt
            && self.is(Broken::TwoInFlight)
            && let Some(epoch) = epoch
        {
            self.send_another(&before, epoch, units);
        }
        if answer == Appended::Fenced && self.is(Broken::ServesFenced) {
            answer = Appended::Durable { head: expected + 1 };
        }
        self.handle(OwnerEvent::Appended(answer));
    }

    /// A second append, behind one that was not answered.
    fn send_another(&self, before: &ChainHead, epoch: u64, units: Vec<Unit>) {
        let entry = |place: u64, units: Vec<Unit>| LogEntry {
            place,
            epoch,
            node: self.name.clone(),
            at: 0,
            body: Body::Units(units),
        };
        let (_, first) = encode(&self.key, before, &entry(before.place + 1, units));
        let (bytes, _) = encode(&self.key, &first, &entry(first.place + 1, vec![Unit::default()]));
        self.store.spare(SHARD);
        self.store.inject(SHARD, MemoryFault::Delayed);
        let _ = self.store.storage(SHARD).put(first.place + 1, &bytes);
    }

    fn settle(&mut self, believed: bool) {
        self.expect(believed, false);
        if self.is(Broken::NewPlaceAfterDoubt) && self.owner.stage() == Stage::Serving {
            self.log = new_log(&self.store, &self.name, &self.key, self.broken);
            let units = self.units(self.told, self.kept.len() as u64);
            let read = self.log.catch_up(|_| {});
            let _ = self.log.claim(0);
            let answer = self.log.append(read.unwrap_or_default() + 1, &units);
            return self.handle(OwnerEvent::Appended(answer));
        }
        let answer = self.log.settle();
        self.handle(OwnerEvent::Appended(answer));
    }

    fn tell(&mut self, up_to: u64, oracle: &mut Oracle) {
        let event =
            self.kept[..up_to.min(self.kept.len() as u64) as usize].last().map(|kept| kept.event);
        self.note(event.unwrap_or_default());
        let log = read(&self.store);
        while self.told < up_to {
            let Some(kept) = self.kept.get(self.told as usize) else { break };
            oracle.tells(kept, &log);
            self.told += 1;
        }
    }

    /// How far the log is, is noted before anybody hears of it.
    fn note(&mut self, event: u64) {
        let (place, told) = self.noted;
        self.noted = (place.max(self.log.known().place), told.max(event));
    }

    fn recover(&mut self, now: Micros, oracle: &mut Oracle) {
        self.takeovers += 1;
        // The claim is the last entry.
        let is_old = self.noted.0 >= self.log.known().place && !self.is(Broken::IgnoresHeads);
        let told = is_old.then_some(self.noted.1);
        let skips = !self.is(Broken::SkipsNoNumbers);
        let epoch = if skips { self.log.known().epoch } else { 0 };
        let (ledger, withdrawn) = Ledger::recover(&self.facts, self.clocks(now), told, epoch);
        self.note(ledger.told());
        self.drop_engine();
        self.ledger = Some(ledger);
        for kept in withdrawn {
            oracle.decided(&kept, now);
            self.submit(kept);
        }
    }

    fn drop_engine(&mut self) {
        self.ledger = None;
        self.kept.clear();
        self.told = 0;
    }
}

fn new_log(
    store: &MemoryStore,
    name: &str,
    key: &ChainKey,
    broken: Option<Broken>,
) -> ShardLog<Store> {
    let inner = store.storage(SHARD);
    let storage = Store { inner, broken, claims: false, has_lease: false };
    ShardLog::new(storage, SHARD, name, key.clone())
}
