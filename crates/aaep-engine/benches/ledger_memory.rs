//! What a request that waits takes in memory, with a million of them. A program of its own, because
//! counting slows every allocation down.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // it reads the clock

mod support;

use support::{Bench, SAMPLE, Shape};

fn main() {
    for per_session in [1, 50] {
        let shape = Shape { pending: 1_000_000, per_session };
        let mut bench = Bench::new(shape);
        let grown = allocation_counter::measure(|| bench.fill());
        let bytes = (grown.bytes_current as usize - bench.event_bytes) / shape.pending;
        println!(
            "{} requests wait, {per_session} in a session; each takes {bytes} bytes beside its event and arguments (wanted: 1024 at most)",
            shape.pending
        );
        let issue = allocation_counter::measure(|| drop(bench.issue()));
        let resolve = allocation_counter::measure(|| drop(bench.resolve()));
        let expire = allocation_counter::measure(|| drop(bench.expire()));
        for (what, counted) in [("issue", issue), ("resolve", resolve), ("expire", expire)] {
            println!(
                "{what}: {:.1} allocations, {} bytes",
                counted.count_total as f64 / SAMPLE as f64,
                counted.bytes_total as usize / SAMPLE
            );
        }
    }
}
