//! `cargo xtask fuzz`: runs the targets of `fuzz/` with libFuzzer on the stable compiler.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use crate::workspace::{answers, cargo, describe, root, run as run_program, target_dir};

struct Options {
    seconds: u32,
    targets: Vec<String>,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let options = parse(args)?;
    let known = targets_in(&root().join("fuzz/fuzz_targets"))?;
    if known.is_empty() && options.targets.is_empty() {
        println!("There are no fuzz targets yet: fuzz/fuzz_targets holds no .rs file.");
        return Ok(());
    }
    let chosen = choose(&known, &options.targets)?;
    ensure_cpp_compiler()?;
    ensure_cargo_fuzz()?;
    for target in chosen {
        run_target(target, options.seconds)?;
    }
    Ok(())
}

fn parse(args: &[String]) -> Result<Options> {
    let mut options = Options { seconds: 20, targets: Vec::new() };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--seconds" => {
                let value = words.next().context("--seconds needs a number")?;
                options.seconds = match value.parse() {
                    // libFuzzer takes 0 for "without end".
                    Ok(seconds) if seconds > 0 => seconds,
                    _ => bail!("--seconds {value} is not a whole number above 0"),
                };
            }
            flag if flag.starts_with('-') => {
                bail!("unknown argument {flag:?}; known are --seconds N and names of targets")
            }
            target => options.targets.push(target.to_owned()),
        }
    }
    Ok(options)
}

/// The names of the fuzz targets, in alphabetical order; none if the folder does not exist.
fn targets_in(folder: &Path) -> Result<Vec<String>> {
    if !folder.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in
        folder.read_dir().with_context(|| format!("could not read {}", folder.display()))?
    {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "rs")
            && let Some(stem) = path.file_stem()
        {
            names.push(stem.to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}

fn choose<'a>(known: &'a [String], asked: &'a [String]) -> Result<&'a [String]> {
    if let Some(unknown) = asked.iter().find(|name| !known.contains(name)) {
        bail!("there is no fuzz target {unknown:?}; there are: {}", known.join(", "));
    }
    Ok(if asked.is_empty() { known } else { asked })
}

/// libFuzzer is C++ and is compiled along with the targets.
fn ensure_cpp_compiler() -> Result<()> {
    if answers("c++") {
        return Ok(());
    }
    let hint = "fuzzing needs a C++ compiler: install g++ or clang, so that `c++ --version` works";
    if !is_root() || !answers("apt-get") {
        bail!("{hint}");
    }
    println!("Installing g++ with apt-get, because libFuzzer needs a C++ compiler.");
    run_program(Command::new("apt-get").args(["update", "--quiet"]))?;
    run_program(Command::new("apt-get").args(["install", "--yes", "--quiet", "g++"])).context(hint)
}

pub(crate) fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn tools() -> PathBuf {
    target_dir().join("tools")
}

fn ensure_cargo_fuzz() -> Result<()> {
    if tools().join("bin/cargo-fuzz").is_file() {
        return Ok(());
    }
    println!("Installing cargo-fuzz into {}.", tools().display());
    let mut command = cargo(["install", "cargo-fuzz", "--locked", "--root"]);
    run_program(command.arg(tools()))
        .context("cargo-fuzz could not be installed; it needs a connection to crates.io once")
}

/// `cargo fuzz` asks for a nightly compiler; without a sanitizer the stable one does, if it is
/// told to accept the coverage flags.
fn cargo_fuzz(verb: &str, target: &str) -> Command {
    let mut command = Command::new(tools().join("bin/cargo-fuzz"));
    command.args([verb, "--sanitizer", "none", target]);
    command.current_dir(root()).env("RUSTC_BOOTSTRAP", "1");
    command
}

fn run_target(target: &str, seconds: u32) -> Result<()> {
    println!("Building fuzz target {target}.");
    run_program(&mut cargo_fuzz("build", target))?;
    println!("Fuzzing {target} for {seconds} seconds.");
    let mut command = cargo_fuzz("run", target);
    for corpus in corpora(target)? {
        command.arg(corpus);
    }
    command.arg("--").arg(format!("-max_total_time={seconds}"));
    command.args(["-seed=1", "-timeout=10", "-print_final_stats=1"]);
    // libFuzzer prints a line per discovery: too much to listen to, and needed only if it fails.
    let output = command.stdin(Stdio::null()).output()?;
    let log = String::from_utf8_lossy(&output.stderr);
    if !output.status.success() {
        eprintln!("{}", last_lines(&log, 100));
        bail!("fuzz target {target} failed; its input was kept, and the lines above say where");
    }
    match executions(&log) {
        Some(count) if count > 0 => println!("{target}: {count} executions, nothing found."),
        _ => bail!("`{}` ended without executing anything", describe(&command)),
    }
    Ok(())
}

/// Where inputs come from. libFuzzer writes what it finds into the first folder and only reads
/// the others, so the vectors stay as they are.
fn corpora(target: &str) -> Result<Vec<PathBuf>> {
    let own = root().join("fuzz/corpus").join(target);
    std::fs::create_dir_all(&own).with_context(|| format!("could not make {}", own.display()))?;
    let vectors = root().join("vectors");
    Ok(if vectors.is_dir() { vec![own, vectors] } else { vec![own] })
}

fn executions(log: &str) -> Option<u64> {
    let line = log.lines().find_map(|line| line.strip_prefix("stat::number_of_executed_units:"))?;
    line.trim().parse().ok()
}

fn last_lines(text: &str, count: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> Vec<String> {
        text.split_whitespace().map(str::to_owned).collect()
    }

    #[test]
    fn seconds_and_targets_are_read_in_any_order() {
        let options = parse(&words("event --seconds 5 reply")).unwrap();
        assert_eq!((options.seconds, options.targets), (5, words("event reply")));
    }

    #[test]
    fn a_run_without_end_is_refused() {
        assert!(parse(&words("--seconds 0")).is_err());
    }

    #[test]
    fn an_unknown_target_is_refused_with_the_list() {
        let known = words("event reply");
        let error = choose(&known, &words("evnt")).unwrap_err().to_string();
        assert!(error.contains("event, reply"), "{error}");
    }

    #[test]
    fn a_missing_folder_holds_no_targets() {
        assert!(targets_in(&root().join("no/such/folder")).unwrap().is_empty());
    }

    #[test]
    fn executions_are_read_from_the_final_statistics() {
        let log = "#2 INITED\nstat::number_of_executed_units: 1234\nstat::peak_rss_mb: 27\n";
        assert_eq!(executions(log), Some(1234));
        assert_eq!(executions("nothing"), None);
    }
}
