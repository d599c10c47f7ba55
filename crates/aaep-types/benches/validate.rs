//! Full validation of single messages, side by side with what else could do part of the job:
//! `cargo xtask bench validate`.
//!
//! One thread, JSON Lines of about 550 bytes each; once all valid, once with 1 % invalid. The
//! contenders take turns, several rounds, and each one's best round counts, so that a noisy machine
//! disturbs all of them alike.
#![allow(clippy::disallowed_methods, clippy::expect_used, missing_docs)] // a benchmark reads the clock

mod support;

use std::hint::black_box;
use std::time::{Duration, Instant};

use support::events::{EVENTS, lines};
use support::{Contender, contenders, judge::Judge};

const ROUNDS: usize = 9;

fn main() {
    let judge = Judge::new();
    let contenders = contenders(&judge);
    for (name, lines, invalid) in
        [("all valid", lines(0), 0), ("1 % invalid", lines(100), EVENTS / 100)]
    {
        let bytes: usize = lines.iter().map(String::len).sum();
        println!("\n{EVENTS} events of {} bytes on average, {name}, one thread:", bytes / EVENTS);
        let best = race(&lines, &contenders);
        for ((label, accepts), best) in contenders.iter().zip(best) {
            let refused = lines.iter().filter(|line| !accepts(line)).count();
            // The bare parse finds nothing wrong; the others find all of it.
            assert!(refused == invalid || label.starts_with("serde_json"), "{label}: {refused}");
            let seconds = best.as_secs_f64();
            let (rate, speed) = (EVENTS as f64 / seconds, bytes as f64 / seconds / 1e6);
            println!("  {label:<44} {rate:>9.0} events/s {speed:>6.0} MB/s");
        }
        let ratio = |slow: usize| best[slow].as_secs_f64() / best[0].as_secs_f64();
        println!("  ours against the jsonschema crate: {:.1} times as fast (wanted: 6)", ratio(3));
        println!("  ours against the bare parse:       {:.1} times as fast (wanted: 2)", ratio(2));
    }
}

/// Each contender's best round.
fn race(lines: &[String], contenders: &[Contender<'_>; 4]) -> [Duration; 4] {
    let mut best = [Duration::MAX; 4];
    for _ in 0..ROUNDS {
        for (best, (_, accepts)) in best.iter_mut().zip(contenders) {
            let start = Instant::now();
            for line in lines {
                black_box(accepts(black_box(line)));
            }
            *best = (*best).min(start.elapsed());
        }
    }
    best
}
