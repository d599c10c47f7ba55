//! The time to issue, resolve and expire one request while many wait: `cargo xtask bench engine`.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // it reads the clock

mod support;

use std::time::{Duration, Instant};

use support::{Bench, Shape};

const ROUNDS: usize = 5;

fn main() {
    println!("Microseconds for one request, the median of {ROUNDS} rounds, then the best of them.");
    println!("Wanted with a million waiting: 5 at most for issuing, resolving and expiring.");
    for pending in [40_000, 1_000_000] {
        for per_session in [1, 50] {
            measure(Shape { pending, per_session });
        }
    }
}

fn measure(shape: Shape) {
    let mut bench = Bench::new(shape);
    let sample = shape.sample();
    bench.fill();
    println!("{} requests wait, {} in each session:", shape.pending, shape.per_session);
    let (mut issuing, mut resolving, mut expiring) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let mut time = Duration::ZERO;
        bench.issue(&mut |work| time += timed(work));
        issuing.push(micros(time, sample));
        time = Duration::ZERO;
        bench.resolve(&mut |work| time += timed(work));
        resolving.push(micros(time, sample));
    }
    let count = sample / (ROUNDS + 1);
    for _ in 0..ROUNDS {
        expiring.push(micros(timed(|| bench.expire(count)), count));
    }
    show("issuing one", issuing);
    show("resolving one", resolving);
    show("expiring one", expiring);
    let mut count = 0;
    let time = timed(|| count = bench.expire_at_once());
    println!("  expiring {count} at once: {:.2} each", micros(time, count));
}

fn show(what: &str, mut rounds: Vec<f64>) {
    rounds.sort_by(f64::total_cmp);
    println!("  {what}: {:.2}, {:.2}", rounds[ROUNDS / 2], rounds[0]);
}

fn timed(work: impl FnOnce()) -> Duration {
    let start = Instant::now();
    work();
    start.elapsed()
}

fn micros(time: Duration, count: usize) -> f64 {
    time.as_secs_f64() * 1e6 / count as f64
}
