//! `cargo xtask agents`: the bridges with the real programs, driven by a scripted model.

use std::path::PathBuf;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{answers, cargo, root, run as run_program};

/// The programs, at the versions that were measured.
const PACKAGES: &[&str] = &[
    "@anthropic-ai/claude-code@2.1.325",
    "@openai/codex@0.166.0",
    "@google/gemini-cli@0.61.0",
    "@modelcontextprotocol/server-everything@2026.8.31",
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("agents takes no arguments");
    }
    match missing() {
        Some(why) => bail!(why),
        None => test(),
    }
}

/// Why it cannot be run here; `None` if it can, perhaps after installing something.
pub(crate) fn missing() -> Option<String> {
    if cfg!(not(target_os = "linux")) {
        return Some("the programs are tried on Linux".into());
    }
    if !answers("npm") {
        return Some("npm is not installed".into());
    }
    let directory = directory();
    if is_installed(&directory) || install(&directory).is_ok() {
        return None;
    }
    Some("npm cannot install the programs: is its registry out of reach?".into())
}

fn directory() -> PathBuf {
    root().join("target").join("agents")
}

/// A note of what is there, written last.
fn note(directory: &std::path::Path) -> PathBuf {
    directory.join("installed.txt")
}

fn is_installed(directory: &std::path::Path) -> bool {
    std::fs::read_to_string(note(directory)).is_ok_and(|text| text == PACKAGES.join("\n"))
}

fn install(directory: &std::path::Path) -> Result<()> {
    println!("Installing {} with npm.", PACKAGES.join(", "));
    std::fs::create_dir_all(directory)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(directory);
    run_program(npm.args(PACKAGES)).context("the bridges are tried with these programs")?;
    std::fs::write(note(directory), PACKAGES.join("\n"))?;
    Ok(())
}

pub(crate) fn test() -> Result<()> {
    let mut tests = cargo(["test", "--package", "aaep-cli", "--test", "hooks", "real::"]);
    run_program(tests.env("AAEP_AGENTS", directory()))
}
