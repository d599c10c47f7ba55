//! `aaep validate` beside the library that it stands on: `cargo xtask bench validate`.
//!
//! The command judges a file of mixed events; the library judges the same lines in this process, on
//! one thread. They take turns, and the median of the rounds' ratios counts, by processor time, since a
//! noisy machine disturbs both of a pair alike. Starting the program and reading the file is the
//! command's own cost. Then the same by the clock on the wall, on one core and on all.
#![allow(clippy::disallowed_methods, clippy::expect_used, missing_docs)] // a benchmark

#[allow(dead_code)]
#[path = "../../aaep-types/benches/support/events.rs"]
mod events;

use std::hint::black_box;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use events::EVENTS;

const ROUNDS: usize = 7;
/// How often the events stand in the file.
const TIMES: usize = 20;

fn main() {
    let lines = events::lines(0);
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    for _ in 0..TIMES {
        for line in &lines {
            writeln!(file, "{line}").expect("room");
        }
    }
    file.flush().expect("room");
    let count = (EVENTS * TIMES) as f64;
    for options in [&["validate"][..], &["validate", "--json"]] {
        let (mut library, mut command, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            let ours = processor_time(Whose::Own);
            for _ in 0..TIMES {
                for line in &lines {
                    black_box(aaep_types::validate(black_box(line.as_bytes())));
                }
            }
            let ours = processor_time(Whose::Own) - ours;
            let theirs = processor_time(Whose::Children);
            run(&mut aaep(options, file.path()));
            let theirs = processor_time(Whose::Children) - theirs;
            library.push(ours.as_secs_f64());
            command.push(theirs.as_secs_f64());
            ratios.push(ours.as_secs_f64() / theirs.as_secs_f64());
        }
        println!("aaep {} on {count} events of a file, by processor time:", options.join(" "));
        println!("  the library: {:.0} ns for each", median(&mut library) * 1e9 / count);
        println!("  the command: {:.0} ns for each", median(&mut command) * 1e9 / count);
        println!("  ratio of their rates: {:.2} (median; wanted: 0.8)", median(&mut ratios));
        let mut on_one = on_one_core(options, file.path());
        let has_taskset = on_one.output().is_ok_and(|done| done.status.success());
        if has_taskset {
            let one = best(|| on_one_core(options, file.path()));
            let all = best(|| aaep(options, file.path()));
            println!("  on one core {one:.2?}, on all {all:.2?} by the clock on the wall");
        }
    }
}

fn aaep(options: &[&str], file: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_aaep"));
    command.args(options).arg(file).stdout(Stdio::null());
    command
}

fn on_one_core(options: &[&str], file: &Path) -> Command {
    let mut command = Command::new("taskset");
    command.args(["-c", "0", env!("CARGO_BIN_EXE_aaep")]).args(options).arg(file);
    command.stdout(Stdio::null());
    command
}

fn run(command: &mut Command) {
    assert!(command.status().expect("a program").success());
}

fn best(command: impl Fn() -> Command) -> Duration {
    let once = |_| {
        let start = Instant::now();
        run(&mut command());
        start.elapsed()
    };
    (0..ROUNDS).map(once).min().unwrap_or_default()
}

#[derive(Clone, Copy)]
enum Whose {
    Own,
    /// Of those that have ended.
    Children,
}

/// User and system time, in ticks of 10 ms.
fn processor_time(whose: Whose) -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").expect("/proc");
    // After the name in brackets, the 12th and 13th are our own, the next two our children's.
    let fields = stat.rsplit_once(')').expect("a name").1.split_whitespace();
    let skip = if matches!(whose, Whose::Own) { 11 } else { 13 };
    let ticks = fields.skip(skip).take(2).map(|field| field.parse::<u64>().expect("ticks"));
    Duration::from_millis(ticks.sum::<u64>() * 10)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}
