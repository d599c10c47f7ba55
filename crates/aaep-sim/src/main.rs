//! `aaep-sim`: runs the simulator; `aaep-sim --help` says how.
#![allow(clippy::disallowed_methods)] // a program for developers: it reads its arguments

use std::collections::BTreeMap;
use std::process::ExitCode;

use aaep_engine::Sound;
use aaep_sim::mutants::MUTANTS;
use aaep_sim::run_many;

const HELP: &str = "\
Runs the engine in a simulated world and checks what must hold, whatever happens.

aaep-sim [--schedules N] [--seed S] [--trace]   run N schedules with the seeds S, S+1, and so on
aaep-sim --mutants [--schedules N] [--seed S]   find every broken engine within N schedules
aaep-sim --crash-points                         crash at every point of a reference scenario

The same seed is the same schedule. Exit 0: everything holds; 1: something does not; 2: cannot run.
";

#[derive(Debug, PartialEq, Eq)]
enum Job {
    Schedules,
    Mutants,
    CrashPoints,
    Help,
}

#[derive(Debug, PartialEq, Eq)]
struct Options {
    job: Job,
    schedules: Option<u64>,
    seed: u64,
    trace: bool,
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match parse(&words) {
        Ok(options) => run(&options),
        Err(text) => {
            eprintln!("aaep-sim: {text}");
            ExitCode::from(2)
        }
    }
}

fn parse(words: &[String]) -> Result<Options, String> {
    let mut options = Options { job: Job::Schedules, schedules: None, seed: 1, trace: false };
    let mut words = words.iter();
    while let Some(word) = words.next() {
        let mut number = || {
            let value = words.next().ok_or(format!("{word} needs a number"))?;
            value.parse().map_err(|_| format!("{word} {value} is not a whole number"))
        };
        match word.as_str() {
            "--schedules" => options.schedules = Some(number()?),
            "--seed" => options.seed = number()?,
            "--trace" => options.trace = true,
            "--mutants" => options.job = Job::Mutants,
            "--crash-points" => options.job = Job::CrashPoints,
            "--help" | "-h" => options.job = Job::Help,
            other => return Err(format!("unknown argument {other:?}; --help lists what there is")),
        }
    }
    Ok(options)
}

fn run(options: &Options) -> ExitCode {
    let holds = match options.job {
        Job::Schedules => run_schedules(options),
        Job::Mutants => run_mutants(options),
        Job::CrashPoints => run_crash_points(),
        Job::Help => {
            print!("{HELP}");
            true
        }
    };
    if holds { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn run_schedules(options: &Options) -> bool {
    let count = options.schedules.unwrap_or(10_000);
    let seeds = (0..count).map(|index| options.seed.wrapping_add(index));
    let totals = run_many::<Sound>(seeds, options.trace);
    // One line for each kind; the numbers in their texts differ from seed to seed.
    let mut kinds: BTreeMap<String, (u64, &str, u64)> = BTreeMap::new();
    for (seed, violation) in &totals.violations {
        let words: String = violation.text.chars().filter(|c| !c.is_ascii_hexdigit()).collect();
        let first = (*seed, violation.text.as_str(), 0);
        kinds.entry(format!("{}: {words}", violation.invariant)).or_insert(first).2 += 1;
    }
    for (kind, (seed, text, times)) in kinds.iter().take(40) {
        let invariant = kind.split(':').next().unwrap_or_default();
        println!("{invariant}: {text}. Schedules with this: {times}.");
        println!("To see it again: aaep-sim --seed {seed} --schedules 1 --trace");
    }
    let violations = totals.violations.len();
    println!("schedules {}, steps {}, violations {violations}", totals.schedules, totals.steps);
    violations == 0
}

fn run_mutants(options: &Options) -> bool {
    let at_most = options.schedules.unwrap_or(20_000);
    let mut killed = 0;
    for mutant in MUTANTS {
        match mutant.hunt(options.seed, at_most) {
            Some(kill) => {
                killed += 1;
                println!(
                    "{}: an engine that {} was found out after {} schedules (seed {}): {}, {}.",
                    mutant.invariant,
                    mutant.about,
                    kill.schedules,
                    kill.seed,
                    kill.violation.invariant,
                    kill.violation.text,
                );
            }
            None => println!(
                "{}: an engine that {} was not found out within {at_most} schedules.",
                mutant.invariant, mutant.about
            ),
        }
    }
    println!("killed {killed} of {}", MUTANTS.len());
    killed == MUTANTS.len()
}

fn run_crash_points() -> bool {
    let found = aaep_sim::crash_points::run_all::<Sound>();
    for (point, violation) in found.violations.iter().take(20) {
        println!("{}: {}; {point:?}.", violation.invariant, violation.text);
    }
    let violations = found.violations.len();
    println!("crash points {}, violations {violations}", found.points);
    violations == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_command_that_a_failure_prints_is_understood() {
        let options = parse(&words("--seed 4711 --schedules 1 --trace")).unwrap();
        let expected = Options { job: Job::Schedules, schedules: Some(1), seed: 4711, trace: true };
        assert_eq!(options, expected);
    }

    #[test]
    fn what_is_not_understood_is_refused_rather_than_ignored() {
        assert!(parse(&words("--sed 1")).is_err());
        assert!(parse(&words("--seed")).is_err());
        assert!(parse(&words("--seed x")).is_err());
    }
}
