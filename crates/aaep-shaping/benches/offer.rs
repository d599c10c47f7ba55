//! One event offered to 1,000 subscriptions of 8 distinct shapes: `cargo xtask bench offer`.
//!
//! Each event is prepared, offered to every subscription, and its bytes are fetched. The best of
//! several rounds counts, so that a noisy machine disturbs little.
#![allow(clippy::disallowed_methods, clippy::expect_used, missing_docs)] // a benchmark reads the clock

use aaep_shaping::{Mono, Prepared, Preparer, Shape, Shaper, Terms};
use aaep_types::{LanguageTag, Verbosity};
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

const SUBSCRIPTIONS: usize = 1000;
const EVENTS: u64 = 200;
const ROUNDS: usize = 9;

fn main() {
    println!("{SUBSCRIPTIONS} subscriptions of 8 shapes, one thread, best of {ROUNDS} rounds:");
    report("state.changed in three languages", state, Some(8));
    report("state.changed in one language", |number| strip(&state(number)), None);
    report("output.streaming, a word at a time", chunk, None);
}

fn report(label: &str, event: impl Fn(u64) -> String, serialised: Option<usize>) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        let round = round(&event, serialised);
        best = (best.0.min(round.0), best.1.min(round.1));
    }
    let offers = (EVENTS as usize * SUBSCRIPTIONS) as u128;
    println!(
        "  {label:<36} {:>4} ns per subscription (wanted: 250), {:>6} ns to prepare",
        best.1.as_nanos() / offers,
        best.0.as_nanos() / u128::from(EVENTS),
    );
}

fn round(event: &impl Fn(u64) -> String, serialised: Option<usize>) -> (Duration, Duration) {
    let mut preparer = Preparer::new();
    let events: Vec<String> = (1..=EVENTS).map(event).collect();
    let start = Instant::now();
    let events: Vec<Arc<Prepared>> =
        events.into_iter().map(|json| preparer.prepare(json).expect("valid")).collect();
    let prepared = start.elapsed();
    let mut shapers = shapers();
    let start = Instant::now();
    for (tick, event) in events.iter().enumerate() {
        let now = Mono::from_micros(tick as u64 * 1000);
        for shaper in &mut shapers {
            shaper.offer(event, now).expect("within bounds");
            while let Some(delivery) = shaper.poll_output(now) {
                black_box(delivery);
            }
        }
    }
    let offered = start.elapsed();
    if let Some(wanted) = serialised {
        assert!(events.iter().all(|event| event.serialisations() == wanted));
    }
    (prepared, offered)
}

fn shapers() -> Vec<Shaper> {
    let mut shapes = Vec::new();
    for languages in [["en", "fr"], ["fr", "en"], ["yo-NG", "en"], ["sw", "yo"]] {
        for verbosity in [Verbosity::Terse, Verbosity::Normal] {
            let tags = languages.map(|tag| LanguageTag::parse(tag).expect("a tag"));
            shapes.push(move || Shape::new(Some(verbosity), &tags));
        }
    }
    let terms = |number: usize| Terms { shape: shapes[number % 8](), ..Terms::default() };
    (0..SUBSCRIPTIONS).map(|number| Shaper::new(terms(number), Mono::START)).collect()
}

fn event(number: u64, kind: &str, members: &str) -> String {
    format!(
        r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{kind}","event_id":"evt_{number:032x}","session_id":"sess_1","sequence_number":{number},"timestamp":"2026-05-24T14:22:11.342Z","producer":{{"agent_id":"tidy"}},"localization_hints":{{"primary_language":"en"}},{members}}}"#
    )
}

fn state(number: u64) -> String {
    event(
        number,
        "state.changed",
        r#""from_state":"thinking","to_state":"deciding","summary_terse":"Deciding","summary_normal":"Deciding which file to open.","summary_detailed":"Deciding which of the three files to open first.","summary_terse_fr":"Choix","summary_normal_fr":"Je choisis un fichier.","summary_detailed_fr":"Je choisis lequel des trois fichiers ouvrir.","summary_terse_yo":"Yan","summary_normal_yo":"Mo ń yan fáìlì.","summary_detailed_yo":"Mo ń yan fáìlì tí màá ṣí.""#,
    )
}

/// The same in one language, with one summary: nothing to shape.
fn strip(json: &str) -> String {
    let members = r#""from_state":"thinking","to_state":"deciding","summary_normal":"Deciding which file to open.""#;
    let head = json.split(r#""from_state""#).next().unwrap_or_default();
    format!("{head}{members}}}")
}

fn chunk(number: u64) -> String {
    let text = if number.is_multiple_of(10) { " over. And" } else { " again" };
    // Nine words of six letters and one of ten in each sentence.
    let position: u64 = (1..number).map(|n| if n.is_multiple_of(10) { 10 } else { 6 }).sum();
    let members = format!(r#""chunk":"{text}","position":{position},"complete":false"#);
    event(number, "output.streaming", &members)
}
