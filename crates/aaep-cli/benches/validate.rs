//! `aaep validate` beside the library that it stands on, and `aaep check` beside `aaep validate`:
//! `cargo xtask bench validate`.
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
    check_beside_validate();
}

/// Sessions in the stream that `aaep check` judges, one after the other, and events in each.
const SESSIONS: usize = 2000;
const IN_SESSION: usize = 52;

/// A lawful stream: whole sessions, each with states, tools and text.
fn stream(sessions: usize) -> tempfile::NamedTempFile {
    let mut file = tempfile::NamedTempFile::new().expect("a file");
    let mut out = std::io::BufWriter::new(&mut file);
    let mut at = 0_u64;
    for session in 0..sessions {
        for number in 0..IN_SESSION {
            at += 1;
            let (seconds, millis) = (at / 1000, at % 1000);
            let (hours, minutes) = (seconds / 3600, seconds / 60 % 60);
            let more = match number {
                0 => ("session.started", r#""summary_normal":"Begun.""#.to_owned()),
                _ if number + 1 == IN_SESSION => {
                    ("session.completed", r#""summary_normal":"Done.""#.to_owned())
                }
                _ => match number % 5 {
                    1 => (
                        "progress.updated",
                        format!(
                            r#""progress":{{"percent":{number}}},"summary_normal":"Going on with the letters.""#
                        ),
                    ),
                    2 => (
                        "tool.invoked",
                        format!(
                            r#""tool":"read_file","tool_call_id":"call_{number}","irreversible":false,"risk_level":"low","summary_normal":"Reading.""#
                        ),
                    ),
                    3 => (
                        "tool.completed",
                        format!(
                            r#""tool":"read_file","tool_call_id":"call_{}","status":"success","summary_normal":"Read.""#,
                            number - 1
                        ),
                    ),
                    _ => (
                        "output.streaming",
                        format!(
                            r#""output_id":"out_{number}","chunk":"A sentence of some length, as agents write them.","position":0,"complete":true"#
                        ),
                    ),
                },
            };
            writeln!(
                out,
                r#"{{"@context":"https://aaep-protocol.org/context/v1","aaep_version":"1.0.0","type":"aaep:agent.{}","event_id":"evt_{at}","session_id":"sess_{session}","sequence_number":{number},"timestamp":"2026-05-24T{hours:02}:{minutes:02}:{:02}.{millis:03}Z","producer":{{"agent_id":"tidy"}},"localization_hints":{{"primary_language":"en"}},{}}}"#,
                more.0,
                seconds % 60,
                more.1
            )
            .expect("room");
        }
    }
    out.flush().expect("room");
    drop(out);
    file
}

fn check_beside_validate() {
    let file = stream(SESSIONS);
    let count = (SESSIONS * IN_SESSION) as f64;
    let said = aaep(&["check"], file.path()).stdout(Stdio::piped()).output().expect("a program");
    let said = String::from_utf8_lossy(&said.stdout).into_owned();
    let (mut costs, mut walls) = ([vec![], vec![]], [vec![], vec![]]);
    for _ in 0..ROUNDS {
        for (at, name) in ["check", "validate"].into_iter().enumerate() {
            let (used, begun) = (processor_time(Whose::Children), Instant::now());
            let _ = aaep(&[name], file.path()).status().expect("a program");
            walls[at].push(begun.elapsed().as_secs_f64());
            costs[at].push((processor_time(Whose::Children) - used).as_secs_f64());
        }
    }
    println!(
        "aaep check on {count} events of {SESSIONS} sessions ({}):",
        said.trim().lines().last().unwrap_or_default()
    );
    let ratio = |of: &[Vec<f64>; 2]| {
        let mut pairs: Vec<f64> =
            of[1].iter().zip(&of[0]).map(|(validate, check)| validate / check).collect();
        median(&mut pairs)
    };
    let (by_processor, by_clock) = (ratio(&costs), ratio(&walls));
    println!(
        "  check: {:.0} ns for each, validate: {:.0} ns, by processor time",
        median(&mut costs[0]) * 1e9 / count,
        median(&mut costs[1]) * 1e9 / count
    );
    println!(
        "  ratio of their rates: {by_processor:.2} by processor time (wanted: 0.5), {by_clock:.2} by the clock on the wall, where validate takes every core"
    );
    // Ten times the sessions, and never more than one that is open.
    let large = stream(10 * SESSIONS);
    let memory = |file: &Path| peak(&mut aaep(&["check"], file));
    if let (Some(small), Some(large)) = (memory(file.path()), memory(large.path())) {
        println!("  memory: {small} kB at its peak, and {large} kB for ten times as many sessions");
    }
}

/// The most memory that a program had at once, in kB, where the system tells.
fn peak(command: &mut Command) -> Option<u64> {
    let mut child = command.spawn().expect("a program");
    let status = format!("/proc/{}/status", child.id());
    let mut most = None;
    while child.try_wait().expect("a program").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        most = most.max(now);
        std::thread::sleep(Duration::from_millis(2));
    }
    most
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
