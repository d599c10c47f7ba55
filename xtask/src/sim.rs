//! `cargo xtask sim`: the simulator in a release build; the closing line of each run is shown.

use std::process::Command;

use anyhow::{Context, Result, anyhow, bail};

use crate::workspace::{cargo, describe, run as run_program, target_dir};

/// Four to seven minutes on two cores.
const SCHEDULES: u64 = 300_000;

#[derive(Debug, PartialEq, Eq)]
struct Options {
    schedules: u64,
    seed: u64,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    run_program(&mut cargo(["build", "--release", "--package", "aaep-sim"]))?;
    let [first, second] = halves(&options).map(|half| {
        let Options { schedules, seed } = half;
        format!("--schedules {schedules} --seed {seed}")
    });
    // One schedule needs nothing of another: two processors share them.
    let half = std::thread::spawn(move || simulate(&first));
    let other = simulate(&second);
    half.join().map_err(|_| anyhow!("a half of the schedules ended in a panic"))??;
    other?;
    simulate("--crash-points")?;
    simulate("--mutants")
}

/// The same schedules in two runs.
fn halves(options: &Options) -> [Options; 2] {
    let first = options.schedules / 2;
    let seed = options.seed.wrapping_add(first);
    let second = Options { schedules: options.schedules - first, seed };
    [Options { schedules: first, seed: options.seed }, second]
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options { schedules: SCHEDULES, seed: 1 };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        let place = match word.as_str() {
            "--schedules" => &mut options.schedules,
            "--seed" => &mut options.seed,
            _ => bail!("unknown argument {word:?}; known are --schedules N and --seed S"),
        };
        let value = words.next().with_context(|| format!("{word} needs a number"))?;
        *place = value.parse().with_context(|| format!("{word} {value} is no whole number"))?;
    }
    Ok(options)
}

/// One run: its last line if everything holds, all of it if not.
fn simulate(words: &str) -> Result<()> {
    let mut command = Command::new(target_dir().join("release/aaep-sim"));
    command.args(words.split(' '));
    let shown = describe(&command);
    let output = command.output().with_context(|| format!("could not start `{shown}`"))?;
    let text = String::from_utf8_lossy(&output.stdout);
    if !output.status.success() {
        bail!("`{shown}` found something:\n{}", text.trim_end());
    }
    println!("{shown}: {}", text.lines().last().unwrap_or_default());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn the_halves_are_the_whole() {
        let [first, second] = halves(&Options { schedules: 7, seed: 10 });
        assert_eq!(first, Options { schedules: 3, seed: 10 });
        assert_eq!(second, Options { schedules: 4, seed: 13 });
    }

    #[test]
    fn numbers_are_read_and_the_rest_is_refused() {
        let options = parse(&words("--seed 9 --schedules 5")).unwrap();
        assert_eq!(options, Options { schedules: 5, seed: 9 });
        assert_eq!(parse(&[]).unwrap().schedules, SCHEDULES);
        assert!(parse(&words("--schedules many")).is_err());
        assert!(parse(&words("--sed 1")).is_err());
    }
}
