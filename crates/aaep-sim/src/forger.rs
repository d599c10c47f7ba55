//! Somebody who writes to the journal while the hub is down, and does not have its key.

use aaep_engine::{Outcome, Record, RecordedEvents, RequestId, Rules};
use aaep_store::chain::{self, ChainHash, ChainKey};
use aaep_types::Presence;

use crate::disk::Disk;
use crate::mutation::{self, Mutation};
use crate::world::World;

/// The name of the store, which everybody can read.
const STORE: &str = "simulated";

/// What makes a journal the hub's own.
#[derive(Debug)]
pub(crate) struct Seals {
    key: ChainKey,
    /// The link of each record, as it lies on the disk beside it.
    links: Vec<ChainHash>,
    /// What the hub really wrote.
    wrote: Vec<Vec<u8>>,
    /// The journal before somebody tampered with it, for its owner to put back.
    untampered: Option<(Disk, Vec<ChainHash>)>,
}

impl Seals {
    pub(crate) fn new(key: [u8; 32]) -> Self {
        let (links, wrote) = (Vec::new(), Vec::new());
        Self { key: ChainKey::new(&key), links, wrote, untampered: None }
    }

    /// The hub wrote this.
    pub(crate) fn wrote(&mut self, bytes: &[u8]) {
        self.links.push(self.key.link(&last(&self.links), 0, bytes));
        self.wrote.push(bytes.to_vec());
    }

    /// Whether every record was written with the key.
    fn hold(&self, records: &[&[u8]]) -> bool {
        let mut before = chain::first(STORE);
        records.iter().zip(&self.links).all(|(bytes, link)| {
            let follows = self.key.link(&before, 0, bytes) == *link;
            before = *link;
            follows
        })
    }
}

fn last(links: &[ChainHash]) -> ChainHash {
    links.last().copied().unwrap_or_else(|| chain::first(STORE))
}

impl<R: Rules> World<'_, R> {
    /// I33: whether the hub starts from these records. If it does, each must be its own.
    pub(crate) fn believes(&mut self, records: &[&[u8]]) -> bool {
        let seals = &mut self.seals;
        let refused = !mutation::is(Mutation::BelievesForgeries) && !seals.hold(records);
        let wrote = seals.wrote.iter().map(Vec::as_slice);
        let own = records.len() <= seals.wrote.len()
            && records.iter().copied().eq(wrote.take(records.len()));
        let tampered = seals.untampered.take();
        if !refused {
            seals.links.truncate(records.len());
            seals.wrote.truncate(records.len());
            self.oracle
                .demand(own, "I33", || "a record that the hub never wrote was believed".into());
            return true;
        }
        self.note(|| "the journal was not written with its key; nothing was started".into());
        self.oracle.demand(!own, "I33", || "records that the hub wrote were refused".into());
        if let Some((disk, links)) = tampered {
            (self.disk, self.seals.links) = (disk, links);
        }
        false
    }

    /// Appends an accept, puts one in the place of another record, or takes a record away; everything is
    /// repaired that needs no key.
    pub(crate) fn somebody_forges(&mut self) {
        let Ok(tail) = self.disk.clone().open() else { return };
        let mut records: Vec<Record> = tail
            .records(self.disk.contents())
            .filter_map(|bytes| Record::decode(bytes).ok())
            .map(|(_, record, _)| record)
            .collect();
        let requests: Vec<RequestId> = self.oracle.requests.keys().copied().collect();
        let Some(&request) = self.random.pick(&requests) else { return };
        if records.is_empty() || self.seals.untampered.is_some() {
            return;
        }
        let accept = Record::Resolved {
            request,
            outcome: Outcome::Accepted,
            runs: true,
            by: "mallory".into(),
            response: "".into(),
            reply: "".into(),
            presence: Presence::None,
            assertion: Default::default(),
            said: RecordedEvents::default(),
        };
        let at = self.random.below(records.len());
        match self.random.below(3) {
            0 => records.push(accept),
            1 => records[at] = accept,
            // Without the last one it would be an old copy, which only a note outside could tell.
            _ if at + 1 < records.len() => drop(records.remove(at)),
            _ => return,
        }
        self.note(|| "somebody writes to the journal".into());
        let unkeyed = self.random.one_in(2);
        let own = ChainKey::new(&self.random.bytes());
        let before = (self.disk.clone(), self.seals.links.clone());
        let mut file = Vec::new();
        let mut links: Vec<ChainHash> = Vec::new();
        for (index, record) in records.iter().enumerate() {
            let bytes = record.encode(index as u64 + 1);
            let (end, same) = (file.len() + bytes.len(), before.0.contents());
            let old = self.seals.links.get(index).filter(|_| {
                // What comes before the change keeps its link.
                same.get(..end) == Some(&[&file[..], &bytes[..]].concat())
            });
            links.push(match old {
                Some(link) => *link,
                None if unkeyed => chain::unkeyed(&last(&links), 0, &bytes),
                None => own.link(&last(&links), 0, &bytes),
            });
            file.extend(bytes);
        }
        // One of several that are alike was taken away: that is an old copy, too.
        if before.0.contents().starts_with(&file) {
            return;
        }
        self.disk.write_over(file);
        self.seals.links = links;
        self.seals.untampered = Some(before);
    }
}
