//! The hub under load, side by side with the barest axum that does the same job:
//! `cargo xtask bench hub`.
//!
//! Servers are processes of their own; the load is this one, one thread with raw sockets. Everything
//! runs on the same machine over loopback, plain HTTP. Hub and bare axum take turns, several rounds,
//! and the median of the rounds' ratios counts, since a noisy machine disturbs both of a pair alike. Processor time of
//! the servers is shown beside, since it suffers less from neighbours than time on the wall.
//!
//! One part alone: `cargo bench -p aaep-hub --bench hub -- fan-out` (or held, confirm, stalled, grpc).
//! `AAEP_BENCH_ROUNDS=3` makes it shorter; `AAEP_BENCH_WITH="valgrind --tool=callgrind"` starts the
//! servers under a profiler.
#![allow(clippy::disallowed_methods, clippy::disallowed_types, missing_docs)] // a benchmark
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // it stops at the first surprise

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod audience;
mod bare;
mod confirm;
mod events;
mod fan_out;
mod grpc;
mod held;
mod numbers;
mod ours;
mod server;
mod stalled;
mod wire;

use server::Side;

/// A part of the benchmark: its name, and what it does; it returns its closing line.
type Part = (&'static str, fn() -> String);

const PARTS: [Part; 5] = [
    ("fan-out", fan_out::run),
    ("held", held::run),
    ("confirm", confirm::run),
    ("stalled", stalled::run),
    ("grpc", grpc::run),
];

fn main() {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    match words.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["serve", side] => server::serve(Side::named(side)),
        ref names => {
            let wanted = |name: &str| names.is_empty() || names.contains(&name);
            let lines: Vec<String> =
                PARTS.iter().filter(|part| wanted(part.0)).map(|part| part.1()).collect();
            println!();
            lines.iter().for_each(|line| println!("{line}"));
        }
    }
}
