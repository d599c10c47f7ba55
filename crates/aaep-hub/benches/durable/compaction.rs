//! Confirmations while a million records are taken out of the journal, beside the same ones afterwards.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aaep_engine::{Asked, Erasure, Opened, Outcome, Record, RecordedEvents, RequestId};
use aaep_hub::start::JOURNAL_NAME;
use aaep_store::{ChainKey, Entry, Head, JournalFile, Options, Sqlite, Unit};
use aaep_types::{Presence, SessionId};

use crate::loops::{Confirming, start_hub};

const ERASED: u64 = 1_000_000;

/// Records that stay.
const KEPT: u64 = 100_000;

/// Records of a session.
const PER_SESSION: u64 = 20;

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
    let (data, heads) = (place.join("data"), place.join("state").join("heads"));
    // A hub that begins, so that everything a hub notes is there.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { start_hub(Some(place)).await.stop().await }).expect("a good end");
    let file = JournalFile::open(&data.join(JOURNAL_NAME), Options::default()).expect("a journal");
    let key = ChainKey::read(&ChainKey::path_of(&heads, file.store())).expect("a key");
    let mut journal = file.with_key(key.expect("a key")).expect("a journal");
    let first = journal.head().0 + 1;
    for session in 0..(ERASED + KEPT) / PER_SESSION {
        for number in 0..PER_SESSION {
            keep(&mut journal, &record(session, number), number + 1 == PER_SESSION);
        }
    }
    // A part of them stays, in between.
    let runs = (0..ERASED / 1000).map(|part| {
        let first = first + part * 1100;
        (first, first + 999)
    });
    let erased = Record::Erased { why: Erasure::Age, note: "".into(), runs: runs.collect() };
    keep(&mut journal, &erased, true);
    UNIT.take();
    let mut head = Head::open(&heads, journal.store()).expect("a note");
    head.note(journal.position()).expect("a note");
}

thread_local! {
    static UNIT: std::cell::RefCell<Unit> = std::cell::RefCell::default();
}

fn keep(journal: &mut Sqlite, record: &Record, end: bool) {
    UNIT.with_borrow_mut(|unit| {
        let number = journal.head().0 + 1 + unit.entries.len() as u64;
        unit.entries.push(Entry { number, bytes: record.encode(number) });
        if unit.entries.len() >= 5000 || end && matches!(record, Record::Erased { .. }) {
            journal.keep(std::slice::from_ref(unit)).expect("room");
            journal.tidy().expect("a disk");
            unit.entries.clear();
        }
    });
}

fn record(session: u64, number: u64) -> Record {
    let id: Arc<str> = SessionId::from_bits(u128::from(session) + 1).to_string().into();
    let request = RequestId::from_bits((u128::from(session) << 32) | (u128::from(number / 2) + 1));
    if number == 0 {
        return Record::Opened(Opened {
            session: id,
            agent: "worker".into(),
            user: "someone".into(),
            producer: r#"{"agent_id":"worker"}"#.into(),
            language: "en".into(),
            lease_seconds: 60,
            event: r#"{"type":"aaep:agent.session.started","summary_normal":"Working."}"#.into(),
            stamp: 1,
        });
    }
    let said = RecordedEvents::default();
    match number {
        last if last + 1 == PER_SESSION => Record::Ended { session: id, said },
        odd if odd % 2 == 1 => Record::Asked(Asked {
            request,
            session: id,
            confirmation: true,
            tool: "delete_file".into(),
            arguments: format!(r#"{{"path":"{number}.txt"}}"#).into(),
            event: r#""action":"Delete a file","consequence":"It is gone.","risk_level":"high","irreversible":true,"timeout_seconds":300,"default_decision":"reject","summary_normal":"May I delete a file?""#.into(),
            stamp: 1,
            timeout_seconds: 300,
            default_accept: false,
            irreversible: true,
            account: "".into(),
            needs: Presence::None,
            said,
        }),
        _ => Record::Resolved {
            request: RequestId::from_bits(request.bits() - 1),
            outcome: Outcome::Rejected,
            runs: false,
            by: "reader".into(),
            response: "".into(),
            reply: "".into(),
            presence: Presence::None,
            assertion: Default::default(),
            said,
        },
    }
}
