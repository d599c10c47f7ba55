//! The ledger with a million requests waiting: the time to issue, resolve and expire one at that
//! size: `cargo xtask bench engine`.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // it reads the clock

mod support;

use std::time::Duration;

use support::{Bench, PENDING, SAMPLE};

fn main() {
    let mut bench = Bench::new();
    bench.fill();
    println!("{PENDING} requests wait:");
    let issued = bench.issue(SAMPLE);
    println!("issuing one:   {:>6.2} µs (wanted: 5 at most)", micros(issued, SAMPLE));
    let resolved = bench.resolve(SAMPLE);
    println!("resolving one: {:>6.2} µs (wanted: 5 at most)", micros(resolved, SAMPLE));
    let (expired, count) = bench.expire();
    println!(
        "expiring one:  {:>6.2} µs (wanted: 5 at most; {count} expired)",
        micros(expired, count)
    );
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}
