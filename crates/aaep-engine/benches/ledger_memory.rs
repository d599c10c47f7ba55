//! What a request that waits takes in memory, with a million of them. A program of its own, because
//! counting slows every allocation down.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // it reads the clock

mod support;

use support::{Bench, PENDING};

fn main() {
    let mut bench = Bench::new();
    let grown = allocation_counter::measure(|| bench.fill());
    let bytes = (grown.bytes_current as usize - bench.event_bytes) / PENDING;
    println!(
        "{PENDING} requests wait; each takes {bytes} bytes beside its event and arguments (wanted: 1024 at most)"
    );
}
