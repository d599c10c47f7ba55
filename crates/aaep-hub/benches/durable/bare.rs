//! The least that durability can cost: append to a file, and sync it.

use std::io::Write;
use std::time::{Duration, Instant};

/// About the size of a record.
const RECORD: usize = 700;

/// How long each of `count` appends of a batch takes.
pub fn appends(count: usize, batch: usize) -> Vec<Duration> {
    let place = crate::place();
    let mut file = std::fs::File::create(place.path().join("bare")).expect("a file");
    let bytes = vec![7; RECORD * batch];
    let mut times = Vec::with_capacity(count);
    for _ in 0..count {
        let start = Instant::now();
        file.write_all(&bytes).expect("room");
        file.sync_data().expect("a sync");
        times.push(start.elapsed());
    }
    times
}
