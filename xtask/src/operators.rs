//! `cargo xtask operators`: a hub behind the real proxies.

use std::path::Path;

use anyhow::{Result, bail};

use crate::page;
use crate::workspace::{answers, cargo, run as run_program};

/// Each program, and the package that has it.
const PROGRAMS: &[(&str, &str)] = &[("nginx", "nginx-light"), ("caddy", "caddy")];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("operators takes no arguments");
    }
    match missing() {
        Some(why) => bail!(why),
        None => test(),
    }
}

/// Why it cannot be run here; `None` if it can, perhaps after installing something.
pub(crate) fn missing() -> Option<String> {
    if cfg!(not(target_os = "linux")) {
        return Some("the proxies are tried on Linux".into());
    }
    let lacking: Vec<&str> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_here(program))
        .map(|(_, package)| *package)
        .collect();
    if lacking.is_empty() {
        return None;
    }
    let names = lacking.join(", ");
    if !page::can_install() {
        return Some(format!("not installed, and only root can install it with apt-get: {names}"));
    }
    page::install(&lacking).err().map(|error| format!("{names}: {error:#}"))
}

/// nginx has another word for its version, and may be where only root looks.
fn is_here(program: &str) -> bool {
    let places = ["/usr/bin", "/usr/sbin", "/usr/local/bin"];
    answers(program) || places.iter().any(|place| Path::new(place).join(program).is_file())
}

pub(crate) fn test() -> Result<()> {
    // With the programs here, a test that would be skipped is a failure.
    let mut tests = cargo(["test", "--package", "aaep-cli", "--test", "hub", "--", "proxies::"]);
    run_program(tests.env("AAEP_PROXIES", "required"))
}
