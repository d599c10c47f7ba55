//! What durability costs, beside a bare append with `fdatasync` on the same disk:
//! `cargo xtask bench durable`.
//!
//! Rounds take turns; times and rates are medians over all of them, by the clock on the wall, since a
//! disk is waited for. The processor time of this process, load and hub together, is shown beside.
//!
//! `one`, `many`, `restart`, `compaction` or `erasing` as an argument measures only that.
//!
//! `AAEP_BENCH_DIR` names the directory (and so the disk) to measure; the temporary one by default.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // a benchmark
#![allow(clippy::disallowed_methods, clippy::disallowed_types)] // with files and clocks

/// As in the command.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod bare;
mod compaction;
mod erasing;
mod loops;
mod records;
mod restart;

use std::path::PathBuf;
use std::time::Duration;

/// A directory on the disk that is measured.
pub fn place() -> tempfile::TempDir {
    let base = std::env::var_os("AAEP_BENCH_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    tempfile::tempdir_in(base).expect("a directory")
}

pub fn median(mut times: Vec<Duration>) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Processor time of this process so far, of all threads, in ticks of 10 ms; none where nobody tells.
pub fn processor_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // After the name in brackets: user and system time are the 12th and 13th.
    let after = stat.rsplit_once(')').map_or("", |(_, after)| after);
    let ticks = after.split_whitespace().skip(11).take(2).filter_map(|t| t.parse::<u64>().ok());
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    // `cargo bench` adds flags of its own.
    let only = std::env::args().skip(1).find(|argument| !argument.starts_with('-'));
    let wants = |name: &str| only.as_deref().is_none_or(|only| only == name);
    if wants("one") {
        one_at_a_time(&runtime);
    }
    if wants("many") {
        many_at_a_time(&runtime);
    }
    if wants("restart") {
        restart::measure(&runtime);
    }
    if wants("compaction") {
        compaction::measure(&runtime);
    }
    if wants("erasing") {
        erasing::measure();
    }
}

/// In rounds that take turns, so that what else the machine does hits all alike.
const ROUNDS: usize = 5;

fn one_at_a_time(runtime: &tokio::runtime::Runtime) {
    let (mut bare, mut forgetful, mut durable) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        bare.extend(bare::appends(500, 1));
        forgetful.extend(runtime.block_on(loops::one_at_a_time(false, 500)));
        durable.extend(runtime.block_on(loops::one_at_a_time(true, 500)));
    }
    let (bare, forgetful, durable) = (median(bare), median(forgetful), median(durable));
    let allowed = 3 * bare + forgetful;
    println!("One confirmation from request to resolution, one at a time, p50:");
    println!("  a bare append with fdatasync: {:.0} µs", micros(bare));
    println!("  the loop without durability: {:.0} µs", micros(forgetful));
    println!("  the loop with it (two durable steps): {:.0} µs", micros(durable));
    println!(
        "  1.5 x two bare appends plus the loop: {:.0} µs ({})",
        micros(allowed),
        if durable <= allowed { "held" } else { "MISSED" }
    );
}

const AT_ONCE: usize = 64;

fn many_at_a_time(runtime: &tokio::runtime::Runtime) {
    let (mut bare, mut durable, mut used) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let times = bare::appends(300, AT_ONCE);
        // A resolution is two records.
        bare.push(
            (times.len() * AT_ONCE) as f64 / 2.0 / times.iter().sum::<Duration>().as_secs_f64(),
        );
        let before = processor_time();
        durable.push(runtime.block_on(loops::many_at_a_time(AT_ONCE, 20_000)));
        used.push((processor_time() - before) / 20_000);
    }
    let middle = |rates: &mut Vec<f64>| {
        rates.sort_unstable_by(f64::total_cmp);
        rates[rates.len() / 2]
    };
    let (bare, durable) = (middle(&mut bare), middle(&mut durable));
    let wanted = f64::min(20_000.0, 0.6 * bare);
    println!("{AT_ONCE} confirmations at a time, through hub and store:");
    println!("  bare appends in batches of {AT_ONCE}, two for each: {bare:.0} a second");
    println!("  durable resolutions: {durable:.0} a second");
    println!("  processor time for each, load and hub: {:.0} µs", micros(median(used)));
    println!("  wanted: {wanted:.0} ({})", if durable >= wanted { "held" } else { "MISSED" });
}
