//! `cargo xtask guests`: the published Python packages run against `aaep demo`, and `aaep listen`
//! against the published producer.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{answers, cargo, run as run_program, target_dir};

/// What is installed, by name and version: another version may behave otherwise, and
/// docs/guests.md would no longer be true. The last two judge `/openapi.json`, and make a client
/// of it.
const PACKAGES: [&str; 6] = [
    "aaep-conformance==1.0.0",
    "aaep-tools==1.0.0",
    "aaep-cli-debug==1.0.0",
    "aaep-minimal-producer==1.0.0",
    "openapi-spec-validator==0.9.0",
    "openapi-python-client==0.29.1",
];

/// The oldest Python that they run on.
const PYTHON: (u32, u32) = (3, 10);

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("guests takes no arguments");
    }
    match missing() {
        Some(why) => bail!("the guests cannot come: {why}"),
        None => test(),
    }
}

/// Why they cannot be run here, if they cannot.
pub(crate) fn missing() -> Option<String> {
    if !answers("python3") {
        return Some("python3 does not run; install Python 3.10 or newer".into());
    }
    let (major, minor) = PYTHON;
    let ask =
        format!("import sys, venv, ensurepip; sys.exit(sys.version_info < ({major}, {minor}))");
    let new_enough = Command::new("python3").args(["-c", &ask]).output();
    match new_enough {
        Ok(output) if output.status.success() => None,
        _ => Some(format!("python3 is older than {major}.{minor}, or comes without venv and pip")),
    }
}

/// Installs them, once, and runs the tests that need them, one after the other: the suite measures
/// time.
pub(crate) fn test() -> Result<()> {
    // Python and JavaScript read what a policy judges.
    let mut readers = cargo(["test", "--package", "aaep-policy", "--test", "readers", "guests::"]);
    run_program(readers.args(["--", "--ignored", "--nocapture"]))?;
    let home = installed(&target_dir().join("guests"))?;
    for part in ["demo", "hub", "listen", "conformance"] {
        let mut tests = cargo(["test", "--package", "aaep-cli", "--test", part, "guests::"]);
        tests.args(["--", "--ignored", "--nocapture", "--test-threads", "1"]);
        run_program(tests.env("AAEP_GUESTS", &home))?;
    }
    Ok(())
}

/// The virtual environment with the packages; made anew if it holds others.
fn installed(home: &Path) -> Result<PathBuf> {
    let stamp = home.join("installed.txt");
    let wanted = PACKAGES.join("\n");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == wanted) {
        return Ok(home.to_owned());
    }
    println!("Installing {} into {}.", PACKAGES.join(", "), home.display());
    run_program(Command::new("python3").args(["-m", "venv", "--clear"]).arg(home))?;
    let mut pip = Command::new(home.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check"]).args(PACKAGES);
    run_program(&mut pip).context("the packages could not be installed; is the network there?")?;
    std::fs::write(&stamp, wanted)
        .with_context(|| format!("could not write {}", stamp.display()))?;
    Ok(home.to_owned())
}
