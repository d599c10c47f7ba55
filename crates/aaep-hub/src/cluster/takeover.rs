//! Reading the log and claiming it, and what a node notes of it outside the store: so that a log that
//! was put back from an old copy is noticed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aaep_store::log::{
    Body, CannotOwn, ChainHead, CopyOfLog, LogStorage as _, ShardKeeper, ShardLog, SharedHead,
    decode,
};
use aaep_store::{CannotOpen, ChainKey, Head, HeadCheck, Noted, Options, Sqlite};
use tokio::time::Instant;
use tracing::{info, warn};

use super::SHARD;
use super::lease::wall_micros;
use super::store::{AnyStorage, Store, on_thread};
use crate::start::{self, DataDirectory, HEADS_NAME};
use crate::{Fault, files};

/// How long a store may be away in the middle of a takeover.
const PATIENCE: Duration = Duration::from_secs(20);

/// How often a node notes how far another's log is.
const LOOK: Duration = Duration::from_secs(1);

/// So often in a row a log has to look old before anybody is alarmed: a single reading may be behind.
const SURE: u32 = 3;

// enforces: I33
/// Refuses a log that was begun with another key, before anything is owned.
pub(super) fn can_read(mut places: AnyStorage, key: &ChainKey) -> Result<(), Fault> {
    let system = |what: String| Fault::System { what };
    let first = places.get(1, 1).map_err(|why| system(why.to_string()))?;
    match first.first().map(|bytes| decode(key, &ChainHead::empty(SHARD), bytes)) {
        Some(Err(damaged)) => Err(system(damaged.to_string())),
        _ => Ok(()),
    }
}

/// Reads the log into a copy of its own, and claims it; says how it stands to what was noted of it.
pub(super) fn take_over(
    store: &Store,
    key: ChainKey,
    name: &str,
    place: &Path,
    head: SharedHead,
) -> Result<(Sqlite, ShardKeeper<AnyStorage>, HeadCheck), Fault> {
    // The log is what counts: the copy is made anew each time.
    if place.exists() {
        fs::remove_dir_all(place).map_err(|error| files::cannot_write(place, &error))?;
    }
    files::create_private_directory(place)?;
    let path = place.join(start::JOURNAL_NAME);
    let failed = |fault: CannotOpen| start::journal::cannot_open(&path, &fault);
    let journal = Sqlite::open(&path, Options::default(), &key).map_err(failed)?;
    let mut log = ShardLog::new(store.places(SHARD), SHARD, name, key);
    let noted = look(&head);
    if let Some(noted) = noted {
        log.look_out_for(noted);
    }
    let (mut entries, mut has_units) = (0_u64, false);
    let copied = |why| Fault::System { what: CannotOwn::Reader(why).to_string() };
    let mut copy = CopyOfLog::new(journal).map_err(copied)?;
    let each = |entry: aaep_store::log::LogEntry| {
        entries += 1;
        has_units |= matches!(entry.body, Body::Units(_) | Body::Part { .. });
        copy.take(entry)
    };
    let mut keeper = ShardKeeper::take_over(log, wall_micros(), PATIENCE, each)
        .map_err(|why: CannotOwn| Fault::System { what: why.to_string() })?;
    let journal = copy.finish().map_err(copied)?;
    let check = keeper.log().head_check(noted, has_units);
    let mended = keeper.log().storage().mended();
    if mended > 0 {
        warn!(
            "{mended} entries of the log were missing on a replica of the store, and were read from another. Nothing was lost. Have the disks of the servers checked."
        );
    }
    info!(entries, ?check, "the log was read to its end and claimed");
    // The next note is written once what follows from this is durable.
    keeper.note_in(head);
    Ok((journal, keeper, check))
}

/// Opens the note of how far the log is, and what watches it while another node owns it.
pub(super) fn watch(
    store: &Store,
    data: &DataDirectory,
    key: &ChainKey,
) -> Result<(SharedHead, Watch), Fault> {
    let directory = data.path().join(HEADS_NAME);
    let opened = Head::open(&directory, SHARD);
    let head = opened.map_err(|fault| start::journal::cannot_open(&directory, &fault))?;
    let path = head.path().to_owned();
    let log = ShardLog::new(store.places(SHARD), SHARD, "", key.clone());
    let watch = Watch { log: Some(log), path, looked: None, old: 0 };
    Ok((Arc::new(Mutex::new(head)), watch))
}

fn look(head: &SharedHead) -> Option<Noted> {
    let head = head.lock().unwrap_or_else(PoisonError::into_inner);
    Head::look(head.path().parent()?, SHARD)
}

/// Notes how far the log is while another node owns it.
#[derive(Debug)]
pub(super) struct Watch {
    log: Option<ShardLog<AnyStorage>>,
    path: PathBuf,
    looked: Option<Instant>,
    /// How often in a row the log looked like an old copy.
    old: u32,
}

impl Watch {
    // enforces: I2
    /// Looks, once in a while. What was noted stays if the log in the store is not the one that went on
    /// from there; then this gives a sentence for the operator.
    pub(super) async fn look(&mut self, head: &SharedHead) -> Result<Option<String>, Fault> {
        if self.looked.is_none_or(|looked| looked.elapsed() >= LOOK)
            && let Some(mut log) = self.log.take()
        {
            self.looked = Some(Instant::now());
            let head = head.clone();
            let (log, is_old) = on_thread(move || {
                let is_old = note(&mut log, &head);
                (log, is_old)
            })
            .await?;
            self.log = Some(log);
            match is_old {
                Some(true) => self.old += 1,
                Some(false) => self.old = 0,
                None => {}
            }
        }
        Ok((self.old >= SURE).then(|| {
            format!(
                "The log in the store is not the one that this node has seen: it is an old copy, or its end was lost. When this node takes over, every question is rejected and every session ends. Has another node done that already? Then stop this node, remove {}, and start it again.",
                self.path.display()
            )
        }))
    }
}

/// Whether the log is an old copy; `None` if the store does not say.
fn note(log: &mut ShardLog<AnyStorage>, head: &SharedHead) -> Option<bool> {
    let noted = look(head);
    let (check, now) = log.observe(noted).ok()?;
    match (check, now) {
        (HeadCheck::Behind { .. } | HeadCheck::Different { .. }, _) => Some(true),
        (_, Some(now)) if noted != Some(now) => {
            let mut head = head.lock().unwrap_or_else(PoisonError::into_inner);
            if let Err(error) = head.note(now) {
                warn!("How far the log is could not be noted: {error}");
            }
            Some(false)
        }
        _ => Some(false),
    }
}
