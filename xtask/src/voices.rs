//! `cargo xtask voices`: speech and braille with the real programs.

use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{answers, cargo, run as run_program};

/// Each program, and the package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("speech-dispatcher", "speech-dispatcher"),
    ("espeak-ng", "espeak-ng"),
    ("brltty", "brltty"),
    ("dbus-daemon", "dbus-daemon"),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("voices takes no arguments");
    }
    match missing() {
        Some(why) => bail!(why),
        None => test(),
    }
}

/// Why it cannot be run here; `None` if it can, perhaps after installing something.
pub(crate) fn missing() -> Option<String> {
    if cfg!(not(target_os = "linux")) {
        return Some("the voices are tried on Linux".into());
    }
    let lacking = lacking();
    let names = lacking.join(", ");
    let can_install = crate::fuzz::is_root() && answers("apt-get");
    (!lacking.is_empty() && !can_install)
        .then(|| format!("not installed, and only root can install it with apt-get: {names}"))
}

fn lacking() -> Vec<&'static str> {
    PROGRAMS.iter().filter(|(program, _)| !answers(program)).map(|(_, package)| *package).collect()
}

pub(crate) fn test() -> Result<()> {
    let lacking = lacking();
    if !lacking.is_empty() {
        println!("Installing {} with apt-get.", lacking.join(", "));
        run_program(Command::new("apt-get").args(["update", "--quiet"]))?;
        let mut install = Command::new("apt-get");
        install.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(lacking);
        run_program(&mut install).context("the voices need these packages")?;
    }
    // With the programs here, a test that would be skipped is a failure.
    run_program(cargo(["test", "--package", "aaep-voice"]).env("AAEP_VOICES", "required"))?;
    let mut listen =
        cargo(["test", "--package", "aaep-cli", "--test", "listen", "--", "voices::", "notify::"]);
    run_program(listen.env("AAEP_VOICES", "required"))
}
