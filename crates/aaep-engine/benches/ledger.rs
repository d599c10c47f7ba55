//! The time to issue, resolve and expire one request while many wait: `cargo xtask bench engine`.
#![allow(clippy::disallowed_methods, clippy::expect_used, dead_code, missing_docs)] // it reads the clock

mod support;

use std::time::Instant;

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
        let questions = bench.questions();
        issuing.push(micros(sample, || bench.issue(&questions)));
        bench.note_tokens();
        let replies = bench.replies();
        resolving.push(micros(sample, || bench.resolve(&replies)));
    }
    let count = sample / (ROUNDS + 1);
    for _ in 0..ROUNDS {
        expiring.push(micros(count, || bench.expire(count)));
    }
    show("issuing one", issuing);
    show("resolving one", resolving);
    show("expiring one", expiring);
    let start = Instant::now();
    let count = bench.expire_at_once();
    let each = start.elapsed().as_secs_f64() * 1e6 / count as f64;
    println!("  expiring {count} at once: {each:.2} each");
}

fn show(what: &str, mut rounds: Vec<f64>) {
    rounds.sort_by(f64::total_cmp);
    println!("  {what}: {:.2}, {:.2}", rounds[ROUNDS / 2], rounds[0]);
}

fn micros(count: usize, work: impl FnOnce()) -> f64 {
    let start = Instant::now();
    work();
    start.elapsed().as_secs_f64() * 1e6 / count as f64
}
