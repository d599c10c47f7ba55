//! How long records are kept: what is too old, or too much, is erased while the hub works.

use std::path::PathBuf;
use std::time::Duration;

use aaep_store::audit::{Plan, Which, plan};
use aaep_store::{ChainKey, Reader};
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

/// What the hub needs to know to erase records.
pub(crate) struct Retention {
    pub(crate) journal: PathBuf,
    pub(crate) key: ChainKey,
    /// Whether the clock can be believed. If not, nobody knows how old anything is.
    pub(crate) trusted: bool,
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
        if !self.trusted {
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
        let length = std::fs::metadata(&self.journal).ok()?.len();
        let most = max_megabytes << 20;
        (length > most).then(|| (most.saturating_mul(LEFT_PERCENT) / length) as u8)
    }

    async fn erase(&self, hub: &Hub, which: Which<'static>) {
        let (journal, key) = (self.journal.clone(), self.key.clone());
        // Reads and verifies everything, which takes a while.
        let planned = tokio::task::spawn_blocking(move || find(&journal, &key, which)).await;
        let plan = match planned {
            Ok(Ok(plan)) => plan,
            Ok(Err(why)) => return warn!("No records are erased: {why}"),
            Err(_) => return,
        };
        if plan.records == 0 {
            if let Which::AllBut(_) = which {
                warn!(
                    "The journal is larger than records.max_megabytes, and nothing in it can be erased yet."
                );
            }
            return;
        }
        let what = (plan.records, plan.sessions.len());
        match hub.call(move |core| core.erase(plan)).await {
            Ok(Ok(true)) => {
                info!(records = what.0, sessions = what.1, "records were erased");
                let _ = hub.call(|core| core.compact()).await;
            }
            Ok(Ok(false)) => {
                warn!("The clock jumped, so no records are erased until the next start.")
            }
            Ok(Err(refusal)) => warn!("No records are erased: {refusal}"),
            Err(_) => {}
        }
    }
}

fn find(journal: &std::path::Path, key: &ChainKey, which: Which<'_>) -> Result<Plan, String> {
    let reader = Reader::open(journal).map_err(|fault| fault.to_string())?;
    let over_before = clock::now().wall.as_micros() - DAY;
    plan(&reader, key, None, which, over_before).map_err(|bad| bad.to_string())
}
