//! `cargo xtask sim`: the simulator in a release build; the closing line of each run is shown.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{cargo, describe, run as run_program, target_dir};

/// Not more for now: beyond these, known faults of resuming show (docs/simulator.md).
const SCHEDULES: u64 = 30_000;

#[derive(Debug, PartialEq, Eq)]
struct Options {
    schedules: u64,
    seed: u64,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    run_program(&mut cargo(["build", "--release", "--package", "aaep-sim"]))?;
    let (schedules, seed) = (options.schedules.to_string(), options.seed.to_string());
    for words in
        [&["--schedules", &schedules, "--seed", &seed][..], &["--crash-points"], &["--mutants"]]
    {
        simulate(words)?;
    }
    Ok(())
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
fn simulate(words: &[&str]) -> Result<()> {
    let mut command = Command::new(target_dir().join("release/aaep-sim"));
    command.args(words);
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
    fn numbers_are_read_and_the_rest_is_refused() {
        let options = parse(&words("--seed 9 --schedules 5")).unwrap();
        assert_eq!(options, Options { schedules: 5, seed: 9 });
        assert_eq!(parse(&[]).unwrap().schedules, SCHEDULES);
        assert!(parse(&words("--schedules many")).is_err());
        assert!(parse(&words("--sed 1")).is_err());
    }
}
