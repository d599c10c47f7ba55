//! How long records are kept: what is too old, or too much, is erased while the hub works.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use aaep_engine::{Principal, Refusal};
use aaep_store::audit::{Plan, Which, plan};
use aaep_store::{ChainKey, Reader};
use tokio::sync::Mutex;
use tracing::{info, warn};

use crate::clock;
use crate::config::Records;
use crate::hub::Hub;

/// How often the journal's size is looked at.
const LOOK: Duration = Duration::from_secs(60 * 60);

/// How many looks lie between two at the age of records: a day.
const LOOKS_A_DAY: u32 = 24;

/// In microseconds. What ended less than a day ago is still needed: agents may repeat calls (C6).
const DAY: i64 = 24 * 60 * 60 * 1_000_000;

/// What is left of a journal that was too large, in percent of what is allowed.
const LEFT_PERCENT: u64 = 75;

/// What the words of an erasure may have, in bytes.
const NOTE_BYTES: usize = 256;

/// What the hub needs to know to erase records.
pub(crate) struct Eraser {
    pub(crate) journal: PathBuf,
    pub(crate) key: ChainKey,
    /// Whether the clock can be believed. If not, nobody knows how old anything is.
    pub(crate) trusted: bool,
    /// One erasure is found and written down before the next is looked for: nothing is erased twice.
    pub(crate) busy: Mutex<()>,
}

/// Why nothing was erased.
pub(crate) enum NotErased {
    /// In a sentence, for the administrator.
    Because(String),
    /// The hub stops.
    Stopped,
}

/// Erases what is too old or too much.
pub(crate) struct Retention {
    pub(crate) eraser: Arc<Eraser>,
    /// Whether erased records still take their room.
    pub(crate) to_compact: bool,
}

impl Retention {
    // enforces: S13
    /// Erases what is to be erased, again and again, until the hub stops.
    pub(crate) async fn run(self, hub: Hub) {
        if self.to_compact {
            let _ = hub.call(|core| core.compact()).await;
        }
        let Records { keep_days, max_megabytes } = hub.config().records;
        if keep_days.is_none() && max_megabytes.is_none() {
            return;
        }
        if !self.eraser.trusted {
            warn!(
                "No records are erased until the hub is started with a clock that can be trusted."
            );
            return;
        }
        let mut looks = 0_u32;
        loop {
            if let Some(days) = keep_days.filter(|_| looks.is_multiple_of(LOOKS_A_DAY)) {
                let before = clock::now().wall.as_micros() - i64::from(days.get()) * DAY;
                self.erase(&hub, Which::Before(before)).await;
            }
            if let Some(percent) = max_megabytes.and_then(|most| self.excess(u64::from(most.get())))
            {
                self.erase(&hub, Which::AllBut(percent)).await;
            }
            looks = looks.wrapping_add(1);
            tokio::select! {
                () = hub.stopping() => return,
                () = tokio::time::sleep(LOOK) => {}
            }
        }
    }

    /// The share of a journal that may stay if it is larger than it may be, in percent.
    fn excess(&self, max_megabytes: u64) -> Option<u8> {
        #[allow(clippy::disallowed_methods)] // the length of a file
        let length = std::fs::metadata(&self.eraser.journal).ok()?.len();
        let most = max_megabytes << 20;
        (length > most).then(|| (most.saturating_mul(LEFT_PERCENT) / length) as u8)
    }

    async fn erase(&self, hub: &Hub, which: Which<'static>) {
        let by = Wish { by: None, note: "".into(), confirmed: true };
        let all_but = matches!(which, Which::AllBut(_));
        match self.eraser.erase(hub, Erasable::of(which), by).await {
            Ok(plan) if plan.records == 0 && all_but => warn!(
                "The journal is larger than records.max_megabytes, and nothing in it can be erased yet."
            ),
            Ok(_) | Err(NotErased::Stopped) => {}
            Err(NotErased::Because(why)) => warn!("No records are erased: {why}"),
        }
    }
}

/// Which records, owned.
pub(crate) enum Erasable {
    Which(Which<'static>),
    OfUser(String),
}

impl Erasable {
    fn of(which: Which<'static>) -> Self {
        Self::Which(which)
    }

    fn which(&self) -> Which<'_> {
        match self {
            Self::Which(which) => *which,
            Self::OfUser(user) => Which::OfUser(user),
        }
    }
}

/// Who wants records to be erased.
pub(crate) struct Wish {
    /// The administrator; `None` for the hub itself.
    pub(crate) by: Option<Principal>,
    /// Their words, which stay.
    pub(crate) note: Arc<str>,
    /// Whether it is to be done, or only told.
    pub(crate) confirmed: bool,
}

impl Eraser {
    // enforces: S13
    /// Finds what can be erased, and erases it if that is wanted; gives what was found.
    pub(crate) async fn erase(
        &self,
        hub: &Hub,
        wanted: Erasable,
        wish: Wish,
    ) -> Result<Plan, NotErased> {
        let because = |why: &str| Err(NotErased::Because(why.to_owned()));
        if !self.trusted {
            return because("The hub was started with a clock that cannot be trusted.");
        }
        if let Erasable::OfUser(user) = &wanted
            && (wish.note.len() > NOTE_BYTES || wish.note.contains(user.as_str()))
        {
            return because(
                "The note stays in the journal: at most 256 bytes, and not the name of the person.",
            );
        }
        let _one = self.busy.lock().await;
        let (journal, key) = (self.journal.clone(), self.key.clone());
        // Reads and verifies everything, which takes a while.
        let planned =
            tokio::task::spawn_blocking(move || find(&journal, &key, wanted.which())).await;
        let plan = planned.map_err(|_| NotErased::Stopped)?.map_err(NotErased::Because)?;
        if plan.records == 0 || !wish.confirmed {
            return Ok(plan);
        }
        let (erased, Wish { by, note, .. }) = (plan.clone(), wish);
        let done = hub
            .call(move |core| {
                let done = core.erase(erased, note.clone())?;
                if let Some(by) = by.filter(|_| done) {
                    core.note_erasure(&by, &note);
                }
                Ok(done)
            })
            .await;
        match done {
            Ok(Ok(true)) => {
                info!(
                    records = plan.records,
                    sessions = plan.sessions.len(),
                    "records were erased"
                );
                let _ = hub.call(|core| core.compact()).await;
                Ok(plan)
            }
            Ok(Ok(false)) => because("The clock jumped; nothing is erased until the next start."),
            Ok(Err(refusal)) => Err(NotErased::Because(Refusal::to_string(&refusal))),
            Err(_) => Err(NotErased::Stopped),
        }
    }
}

fn find(journal: &std::path::Path, key: &ChainKey, which: Which<'_>) -> Result<Plan, String> {
    let reader = Reader::open(journal).map_err(|fault| fault.to_string())?;
    let over_before = clock::now().wall.as_micros() - DAY;
    plan(&reader, key, None, which, over_before).map_err(|bad| bad.to_string())
}
