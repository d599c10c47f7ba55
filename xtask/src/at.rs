//! `cargo xtask at`: the page with a real screen reader, on a desktop without screen and
//! loudspeaker, and the terminal with real speech and braille. What is heard and felt is compared with
//! transcripts, from which `docs/heard.md` is made.

mod chroot;
mod document;

use std::process::Command;

use anyhow::{Result, bail};

use crate::workspace::{answers, run as run_program};
use crate::{page, voices};

/// What is needed beside Chromium and Node.js: each program, and Debian's package that has it.
const PROGRAMS: &[(&str, &str)] = &[
    ("orca", "orca"),
    ("/usr/libexec/at-spi-bus-launcher", "at-spi2-core"),
    ("Xvfb", "xvfb"),
    ("dbus-daemon", "dbus"),
    ("speech-dispatcher", "speech-dispatcher"),
    ("openbox", "openbox"),
    ("xdotool", "xdotool"),
    ("firefox-esr", "firefox-esr"),
    ("gsettings", "libglib2.0-bin"),
    ("pgrep", "procps"),
    ("brltty", "brltty"),
    ("lxterminal", "lxterminal"),
];

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [only] if only == "--check" => return document::check(),
        [only] if only == "--document" => return document::write(),
        _ => {}
    }
    let writes = args.iter().any(|arg| arg == "--write");
    let names_scenarios = args.iter().any(|arg| ["--only", "--quick"].contains(&arg.as_str()));
    let names_window =
        args.iter().any(|arg| ["chromium", "firefox", "lxterminal"].contains(&arg.as_str()));
    let measures = args.iter().any(|arg| arg == "--measure");
    let newer = args.iter().any(|arg| arg == "--orca48");
    if !(names_scenarios || names_window || measures || newer) {
        if let Some(why) = voices::missing() {
            bail!("nothing can be heard: {why}");
        }
        voices::transcripts(writes)?;
    }
    if args.iter().any(|arg| arg == "terminal") {
        return document::write();
    }
    let script = if measures { "at/measure.js" } else { "at/run.js" };
    let rest: Vec<_> =
        args.iter().filter(|arg| !["--measure", "--orca48"].contains(&arg.as_str())).collect();
    if newer {
        let folder = chroot::prepare()?;
        page::prepare()?;
        chroot::play(&folder, script, &rest)?;
    } else {
        if let Err(why) = prepare() {
            bail!("nothing can be heard: {why}");
        }
        run_program(page::prepare()?.node().arg(script).args(rest))?;
    }
    if measures { Ok(()) } else { document::write() }
}

/// Some scenarios in both browsers; the reason, where none can be played.
pub(crate) fn test() -> Result<Option<String>> {
    document::check()?;
    if let Err(why) = prepare() {
        return Ok(Some(why));
    }
    let ready = page::prepare()?;
    let status = ready.node().args(["at/run.js", "--quick", "--tries", TRIES]).status()?;
    match status.code() {
        Some(0) => Ok(None),
        Some(UNKNOWN_ORCA) => Ok(Some("no transcripts are kept for this version of Orca".into())),
        _ => bail!("something else was heard than what is kept in web/heard; see above"),
    }
}

/// How often a scenario is played at most: the machine may be busy.
const TRIES: &str = "5";

/// How `at/run.js` ends where nothing is kept to compare with.
const UNKNOWN_ORCA: i32 = 3;

/// Installs what is missing; the reason, where that cannot be done.
fn prepare() -> Result<(), String> {
    if cfg!(not(target_os = "linux")) {
        return Err("Orca runs on Linux".into());
    }
    if let Some(why) = page::missing() {
        return Err(why);
    }
    let lacking: Vec<_> = PROGRAMS
        .iter()
        .filter(|(program, _)| !is_installed(program))
        .map(|(_, package)| *package)
        .collect();
    if !lacking.is_empty() {
        let names = lacking.join(", ");
        if !page::can_install() {
            return Err(format!(
                "not installed, and only root can install it with apt-get: {names}"
            ));
        }
        page::install(&lacking).map_err(|error| format!("{names}: {error:#}"))?;
    }
    if is_running("orca") {
        return Err("Orca is running already, and starts only once for each user".into());
    }
    Ok(())
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    found.is_ok_and(|output| output.status.success()) || answers(program)
}

/// Whether this user has such a process.
fn is_running(program: &str) -> bool {
    let found =
        Command::new("sh").args(["-c", "pgrep -u \"$(id -u)\" -x \"$0\"", program]).output();
    found.is_ok_and(|output| output.status.success())
}
