//! `cargo xtask python`: the Python package, built as a wheel, installed into a fresh environment, and
//! used from there with the real hub, alone and under every framework that has an adapter.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};

use crate::workspace::{answers, cargo, root, run as run_program, target_dir};

/// The largest wheel, in bytes.
const WHEEL_BYTES: u64 = 8 * 1024 * 1024;

/// From `pip install` to the first heard event: 20 seconds are the aim, on a machine with nothing else
/// to do.
const FIRST_EVENT: Duration = Duration::from_secs(60);

/// What builds and judges the package, and in which versions.
const TOOLS: [(&str, &str); 3] =
    [("maturin", "maturin>=1.9,<2"), ("mypy", "mypy>=1.11,<2"), ("twine", "twine>=6,<8")];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("python takes no arguments");
    }
    match missing() {
        Some(why) => bail!(why),
        None => test(),
    }
}

/// Why it cannot be run here; `None` if it can.
pub(crate) fn missing() -> Option<String> {
    if cfg!(not(unix)) {
        return Some("the Python package is tried on Unix".into());
    }
    if !answers("python3") {
        return Some("there is no python3 here".into());
    }
    let probe = "import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))";
    let found = Command::new("python3").args(["-c", probe]).output();
    if !found.is_ok_and(|found| found.status.success()) {
        return Some("python3 is older than 3.10, or has no venv".into());
    }
    tools().err().map(|why| format!("maturin cannot be installed: {why:#}"))
}

/// What builds and judges the package, in an environment of its own that is kept.
fn tools() -> Result<()> {
    let place = target_dir().join("python/tools");
    if !TOOLS.iter().all(|(program, _)| place.join("bin").join(program).is_file()) {
        environment(&place)?;
        run_program(pip(&place).args(TOOLS.map(|(_, version)| version)))?;
    }
    Ok(())
}

fn environment(place: &Path) -> Result<()> {
    run_program(Command::new("python3").args(["-m", "venv", "--clear"]).arg(place))
}

fn pip(environment: &Path) -> Command {
    let mut command = Command::new(environment.join("bin/pip"));
    command.args(["--quiet", "--disable-pip-version-check", "install"]);
    command
}

/// An interpreter with the package, and the same confirmations with the Rust library.
pub(crate) fn for_bench() -> Result<(PathBuf, PathBuf)> {
    let place = target_dir().join("python");
    let wheels = build()?;
    let fresh = place.join("work/bench");
    environment(&fresh)?;
    run_program(pip(&fresh).arg("--no-index").arg(wheel(&wheels)?.path()))?;
    let mut example = cargo(["build", "--release", "--quiet", "--example", "confirm"]);
    example
        .args(["--features", "pyo3/extension-module"])
        .env("CARGO_TARGET_DIR", place.join("target"));
    run_program(example.current_dir(root().join("packages/python")))?;
    Ok((fresh.join("bin/python"), place.join("target/release/examples/confirm")))
}

/// The folder with the wheel, built anew.
fn build() -> Result<PathBuf> {
    let (place, package) = (target_dir().join("python"), root().join("packages/python"));
    let work = place.join("work");
    if work.is_dir() {
        std::fs::remove_dir_all(&work)?;
    }
    let wheels = work.join("wheels");
    std::fs::create_dir_all(&wheels)?;
    let mut build = Command::new(place.join("tools/bin/maturin"));
    build.args(["build", "--release", "--quiet", "--out"]).arg(&wheels).current_dir(&package);
    run_program(build.env("CARGO_TARGET_DIR", place.join("target")))?;
    Ok(wheels)
}

fn wheel(wheels: &Path) -> Result<std::fs::DirEntry> {
    Ok(std::fs::read_dir(wheels)?.next().context("maturin made no wheel")??)
}

/// The wheel, in this folder.
pub(crate) fn pack(place: &Path) -> Result<()> {
    let wheel = wheel(&build()?)?;
    let twine = target_dir().join("python/tools/bin/twine");
    run_program(Command::new(twine).args(["check", "--strict"]).arg(wheel.path()))?;
    std::fs::copy(wheel.path(), place.join(wheel.file_name()))?;
    Ok(())
}

pub(crate) fn test() -> Result<()> {
    let (place, package) = (target_dir().join("python"), root().join("packages/python"));
    let (tools, work) = (place.join("tools/bin"), place.join("work"));
    let wheels = build()?;
    let mut judge = Command::new(tools.join("mypy"));
    judge.arg("--config-file").arg(package.join("pyproject.toml"));
    run_program(judge.arg(package.join("python/aaep")).current_dir(&place))?;
    let wheel = wheel(&wheels)?;
    let bytes = wheel.metadata()?.len();
    println!("The wheel has {:.1} MB.", bytes as f64 / 1e6);
    if bytes > WHEEL_BYTES {
        bail!("the wheel has {bytes} bytes; at most {WHEEL_BYTES} are allowed");
    }
    run_program(Command::new(tools.join("twine")).args(["check", "--strict"]).arg(wheel.path()))?;
    run_program(&mut cargo(["build", "--package", "aaep-cli"]))?;
    let fresh = work.join("fresh");
    environment(&fresh)?;
    let began = Instant::now();
    run_program(pip(&fresh).arg("--no-index").arg(wheel.path()))?;
    let mut first = Command::new(fresh.join("bin/python"));
    first.arg(package.join("tests/first_event.py")).current_dir(&work);
    run_program(first.env("AAEP_PROGRAM", target_dir().join("debug/aaep")))?;
    let first = began.elapsed();
    println!("From pip install to the first heard event: {:.1} s.", first.as_secs_f64());
    if first > FIRST_EVENT {
        bail!("from pip install to the first heard event it takes longer than {FIRST_EVENT:?}");
    }
    let python = |script: &str| {
        let mut python = Command::new(fresh.join("bin/python"));
        python.arg(package.join("tests").join(script)).current_dir(&work);
        python.env("AAEP_PROGRAM", target_dir().join("debug/aaep"));
        python
    };
    // Alone first: the package needs nothing.
    let vectors = root().join("crates/aaep-subscriber/vectors");
    let mut behaviour = python("behaviour.py");
    run_program(behaviour.env("AAEP_VECTORS", vectors).env("AAEP_DOCS", root().join("docs")))?;
    run_program(python("conformance.py").env("AAEP_DOCS", root().join("docs")))?;
    run_program(python("record.py").arg(root().join("packages/vectors/agent.json")))?;
    run_program(python("redaction.py").arg(root().join("packages/vectors/redaction.json")))?;
    run_program(pip(&fresh).arg("--requirement").arg(package.join("tests/requirements.txt")))?;
    run_program(python("adapters.py").arg(package.join("examples")))?;
    run_program(&mut python("frameworks.py"))
}
