//! Confirmations while a million records are taken out of the journal, beside the same ones afterwards.

use std::path::Path;
use std::time::{Duration, Instant};

use aaep_engine::{Erasure, Record};
use aaep_hub::start::JOURNAL_NAME;
use aaep_store::Head;

use crate::loops::{Confirming, start_hub};
use crate::records::{PER_SESSION, begin, keep, keep_session, write};

const ERASED: u64 = 1_000_000;

/// Records that stay.
const KEPT: u64 = 100_000;

pub fn measure(runtime: &tokio::runtime::Runtime) {
    let place = crate::place();
    let file = place.path().join("data").join(JOURNAL_NAME);
    let length = || std::fs::metadata(&file).map_or(0, |metadata| metadata.len() / 1_000_000);
    fill(place.path());
    let before = length();
    // The hub finds what was erased, and takes its bytes away.
    let (during, after, took) = runtime.block_on(async {
        let running = start_hub(Some(place.path())).await;
        let mut confirming = Confirming::new(running.hub()).await;
        let unfinished = file.with_extension("db-compact");
        let (start, mut during) = (Instant::now(), Vec::new());
        while unfinished.exists() || during.is_empty() {
            during.push(confirming.once().await);
        }
        let took = start.elapsed();
        let mut after = Vec::new();
        while after.len() < during.len().max(1000) {
            after.push(confirming.once().await);
        }
        drop(confirming);
        running.stop().await.expect("a good end");
        (during, after, took)
    });
    println!(
        "{ERASED} erased records taken out of a journal of {before} MB ({} MB left), in {:.1} s:",
        length(),
        took.as_secs_f64()
    );
    let (count, worst) = (during.len(), during.iter().max().copied().unwrap_or_default());
    let (during, after) = (percentile(during), percentile(after));
    println!(
        "  {count} confirmations meanwhile, p99: {:.0} µs, longest: {:.1} ms",
        crate::micros(during),
        worst.as_secs_f64() * 1e3
    );
    println!("  as many afterwards, p99: {:.0} µs", crate::micros(after));
    let held = during <= 2 * after;
    println!("  wanted: at most twice as long ({})", if held { "held" } else { "MISSED" });
}

fn percentile(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[(times.len() * 99 / 100).min(times.len() - 1)]
}

/// A journal with sessions that are over, and an erasure of most of them.
fn fill(place: &Path) {
    let (mut journal, _) = begin(place);
    let first = journal.head().0 + 1;
    for session in 0..(ERASED + KEPT) / PER_SESSION {
        keep_session(&mut journal, session, "someone");
    }
    // A part of them stays, in between.
    let runs = (0..ERASED / 1000).map(|part| {
        let first = first + part * 1100;
        (first, first + 999)
    });
    let erased = Record::Erased { why: Erasure::Age, note: "".into(), runs: runs.collect() };
    keep(&mut journal, &erased);
    write(&mut journal);
    let mut head = Head::open(&place.join("state").join("heads"), journal.store()).expect("a note");
    head.note(journal.position()).expect("a note");
}
