//! Allocations per event, for the same contenders as `validate`. A program of its own, because
//! counting slows every allocation down.
#![allow(clippy::expect_used, missing_docs)]

mod support;

use std::hint::black_box;

use support::events::{EVENTS, lines};
use support::{contenders, judge::Judge};

fn main() {
    let judge = Judge::new();
    let lines = lines(0);
    println!("\nallocations per event, all valid:");
    for (label, accepts) in contenders(&judge) {
        let counted = allocation_counter::measure(|| {
            for line in &lines {
                black_box(accepts(black_box(line)));
            }
        });
        println!("  {label:<44} {:>6.1}", counted.count_total as f64 / EVENTS as f64);
    }
}
