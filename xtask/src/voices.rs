//! `cargo xtask voices`: speech and braille with the real programs.

use anyhow::{Result, bail};

use crate::page;
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
    if lacking.is_empty() {
        return None;
    }
    let names = lacking.join(", ");
    if !page::can_install() {
        return Some(format!("not installed, and only root can install it with apt-get: {names}"));
    }
    page::install(&lacking).err().map(|error| format!("{names}: {error:#}"))
}

fn lacking() -> Vec<&'static str> {
    PROGRAMS.iter().filter(|(program, _)| !answers(program)).map(|(_, package)| *package).collect()
}

pub(crate) fn test() -> Result<()> {
    // With the programs here, a test that would be skipped is a failure.
    run_program(cargo(["test", "--package", "aaep-voice"]).env("AAEP_VOICES", "required"))?;
    listen(&["voices::", "bad_input::", "heard::", "notify::"], false)
}

/// What is heard and felt in the terminal, compared with the transcripts, or kept.
pub(crate) fn transcripts(write: bool) -> Result<()> {
    listen(&["heard::"], write)
}

fn listen(tests: &[&str], write: bool) -> Result<()> {
    let mut command = cargo(["test", "--package", "aaep-cli", "--test", "listen", "--"]);
    command.args(tests).env("AAEP_VOICES", "required");
    run_program(command.env("AAEP_HEARD", if write { "write" } else { "compare" }))
}
