//! What a request that waits takes in memory, with a million of them, and how often memory is asked
//! for. A program of its own, because counting slows every allocation down.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // see `support`

mod support;

use allocation_counter::measure;
use support::{Bench, Shape};

fn main() {
    for per_session in [1, 50] {
        let shape = Shape { pending: 1_000_000, per_session };
        let mut bench = Bench::new(shape);
        let mut kept = 0;
        let grown = measure(|| kept = bench.fill());
        let bytes = (grown.bytes_current as usize - kept) / shape.pending;
        println!(
            "{} requests wait, {per_session} in each session. One takes {bytes} bytes beside its event and arguments, its part of the session counted (wanted: 1024 at most).",
            shape.pending
        );
        let sample = shape.sample();
        let (mut issued, mut resolved) = (0, 0);
        bench.issue(&mut |work| issued += measure(work).count_total);
        bench.resolve(&mut |work| resolved += measure(work).count_total);
        let expired = measure(|| bench.expire(1000)).count_total;
        println!(
            "Allocations: {:.1} to issue one, {:.1} to resolve one, {:.1} to expire one.",
            issued as f64 / sample as f64,
            resolved as f64 / sample as f64,
            expired as f64 / 1000.0
        );
    }
}
