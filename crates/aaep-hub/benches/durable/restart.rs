//! Starting: with nothing, and with a million requests that wait.

use std::path::Path;
use std::time::{Duration, Instant};

use aaep_engine::*;
use aaep_hub::start::JOURNAL_NAME;
use aaep_store::{ChainKey, Entry, Head, JournalFile, Options, Unit};
use aaep_types::{DescribedBy, EventKind, LanguageTag, Timestamp};

use crate::loops::{agent, start_hub};

const PENDING: usize = 1_000_000;
const PER_SESSION: usize = 50;

pub fn measure(runtime: &tokio::runtime::Runtime) {
    let mut empty = Vec::new();
    for _ in 0..9 {
        let place = crate::place();
        let start = Instant::now();
        let running = runtime.block_on(start_hub(Some(place.path())));
        empty.push(start.elapsed());
        runtime.block_on(running.stop()).expect("a good end");
    }
    let empty = crate::median(empty);
    println!("Starting with an empty store: {:.1} ms (wanted: 50)", empty.as_secs_f64() * 1e3);

    let place = crate::place();
    fill(place.path());
    let file = place.path().join("data").join(JOURNAL_NAME);
    let size = std::fs::metadata(file).expect("a journal").len();
    println!("A journal with {PENDING} pending requests: {} MB", size / 1_000_000);
    let mut times = Vec::new();
    for _ in 0..3 {
        let before = resident();
        let (start, used) = (Instant::now(), crate::processor_time());
        let running = runtime.block_on(start_hub(Some(place.path())));
        times.push(start.elapsed());
        println!(
            "  recovered in {:.2} s ({:.2} s of processor time), {} MB of memory",
            start.elapsed().as_secs_f64(),
            (crate::processor_time() - used).as_secs_f64(),
            resident().saturating_sub(before) / 1000
        );
        runtime.block_on(running.stop()).expect("a good end");
    }
    let middle = crate::median(times);
    println!(
        "  wanted: 3 s, aimed for: 1.5 s ({}, median)",
        if middle < Duration::from_secs(3) { "held" } else { "MISSED" }
    );
}

/// Kilobytes in memory; 0 where nobody tells.
fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.split_whitespace().next()?.parse().ok()).unwrap_or(0)
}

/// A journal as a hub with a million open questions leaves it.
fn fill(place: &Path) {
    let (data, heads) = (place.join("data"), place.join("state").join("heads"));
    std::fs::create_dir(&data).expect("a directory");
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let private = std::fs::Permissions::from_mode(0o700);
        std::fs::set_permissions(&data, private).expect("a mode");
    }
    // A hub that begins, so that everything a hub notes is there.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async { start_hub(Some(place)).await.stop().await }).expect("a good end");
    let file = JournalFile::open(&data.join(JOURNAL_NAME), Options::default()).expect("a journal");
    let key = ChainKey::read(&ChainKey::path_of(&heads, file.store())).expect("a key");
    let mut journal = file.with_key(key.expect("a key")).expect("a journal");
    let mut units = vec![Unit::default()];
    ask_all(|entry| {
        units[0].entries.push(entry);
        if units[0].entries.len() == 5000 {
            journal.keep(&units).expect("room");
            journal.tidy().expect("a disk");
            units[0].entries.clear();
        }
    });
    journal.keep(&units).expect("room");
    let mut head = Head::open(&heads, journal.store()).expect("a note");
    head.note(journal.position()).expect("a note");
}

fn ask_all(mut keep: impl FnMut(Entry)) {
    let wall = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("a clock");
    let wall = Timestamp::from_millis(wall.as_millis() as i64).expect("a time");
    let now = Now { boot: Boot(1), wall };
    let limits = Limits {
        sessions_per_user: usize::MAX,
        sessions_per_principal: usize::MAX,
        pending_requests_per_user: usize::MAX,
        pending_requests_per_principal: usize::MAX,
        pending_bytes_per_user: usize::MAX,
        pending_bytes_per_principal: usize::MAX,
        pending_per_session: PER_SESSION,
        prompts_per_window: u32::MAX,
        ..Limits::default()
    };
    let mut engine: Engine = Engine::new(Secrets { seed: [1; 32], token_key: [2; 32] }, limits);
    let agent = agent();
    let mut handle = |input: Input<'_>| {
        let answer = engine.handle(input, now).expect("nothing is refused here");
        while let Some(output) = engine.poll_output() {
            if let Output::Append { number, bytes } = output {
                engine.handle(Input::Persisted { number }, now).expect("a number");
                keep(Entry { number, bytes });
            }
        }
        answer
    };
    let mut session = None;
    for count in 0..PENDING {
        if count.is_multiple_of(PER_SESSION) {
            let open = Open {
                agent: &agent,
                producer: r#"{"agent_id":"worker"}"#,
                summary: "Working.",
                language: LanguageTag::parse("en").expect("a tag"),
                lease_seconds: 80_000,
                payload: "",
            };
            let Handled::Session(opened) = handle(Input::Open(open)) else { panic!("a session") };
            session = Some(opened);
        }
        let payload = format!(
            r#"{{"action":"Send {count} euros.","consequence":"They are gone.","timeout_seconds":80000,"default_decision":"reject","risk_level":"high","irreversible":true,"summary_normal":"Send them?"}}"#
        );
        handle(Input::Ask(Ask {
            agent: &agent,
            session: session.expect("one is open"),
            question: &AgentQuestion::read(
                EventKind::AwaitingConfirmation,
                "send",
                &format!(r#"{{"amount":"{count}"}}"#),
                &payload,
            ),
            described_by: DescribedBy::Agent,
        }));
    }
}
