//! The ledger with a million requests waiting: the time to issue, resolve and expire one at that
//! size: `cargo xtask bench engine`.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // it reads the clock

mod support;

use std::time::{Duration, Instant};

use support::{Bench, SAMPLE, Shape};

fn main() {
    let args: Vec<usize> = std::env::args().filter_map(|a| a.parse().ok()).collect();
    let shapes = match args[..] {
        [pending, per_session] => vec![Shape { pending, per_session }],
        _ => vec![
            Shape { pending: 40_000, per_session: 1 },
            Shape { pending: 40_000, per_session: 50 },
            Shape { pending: 1_000_000, per_session: 1 },
            Shape { pending: 1_000_000, per_session: 50 },
        ],
    };
    for shape in shapes {
        let mut bench = Bench::new(shape);
        bench.fill();
        eprintln!("{:?}", Instant::now());
        let issued = bench.issue();
        eprintln!("{:?}", Instant::now());
        let resolved = bench.resolve();
        eprintln!("{:?}", Instant::now());
        let (expired, count) = bench.expire();
        eprintln!("{:?}", Instant::now());
        let (burst, many) = bench.expire_at_once();
        eprintln!("{:?}", Instant::now());
        println!(
            "{} wait, {} a session: issuing {:.2} resolving {:.2} expiring {:.2} ({count}) at once {:.2} ({many})",
            shape.pending,
            shape.per_session,
            micros(issued, SAMPLE),
            micros(resolved, SAMPLE),
            micros(expired, count),
            micros(burst, many),
        );
    }
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}
