//! `cargo xtask at`: the page with a real screen reader, on a desktop without screen and
//! loudspeaker. What is heard is compared with the transcripts in `web/heard`, and `docs/heard.md`
//! is made from them.

use std::fmt::Write as _;
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::page;
use crate::workspace::{answers, root, run as run_program};

/// What is needed beside Chromium and Node.js, as Debian names it.
const PACKAGES: &[&str] = &[
    "orca",
    "at-spi2-core",
    "xvfb",
    "dbus",
    "speech-dispatcher",
    "openbox",
    "xdotool",
    "firefox-esr",
    "libglib2.0-bin",
];

/// The programs that those packages bring.
const PROGRAMS: &[&str] =
    &["orca", "Xvfb", "dbus-daemon", "speech-dispatcher", "openbox", "xdotool", "firefox-esr"];

const BROWSERS: &[&str] = &["chromium", "firefox"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    for arg in args {
        if arg != "--write" && !BROWSERS.contains(&arg.as_str()) {
            bail!("unknown argument {arg:?}; known are {} and --write", BROWSERS.join(", "));
        }
    }
    if let Some(why) = page::missing() {
        bail!("nothing can be heard: {why}");
    }
    if !PROGRAMS.iter().all(|program| is_installed(program)) {
        if !page::can_install() {
            bail!("nothing can be heard: install {}", PACKAGES.join(", "));
        }
        page::install(PACKAGES)?;
    }
    let ready = page::prepare()?;
    run_program(ready.node().arg("at/run.js").args(args))?;
    document()
}

fn is_installed(program: &str) -> bool {
    let found = Command::new("sh").args(["-c", "command -v \"$0\"", program]).output();
    found.is_ok_and(|output| output.status.success()) || answers(program)
}

/// Writes `docs/heard.md`: the transcripts, for people.
fn document() -> Result<()> {
    let folder = root().join("web").join("heard");
    let mut files: Vec<_> = std::fs::read_dir(&folder)?
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "txt"))
        .collect();
    files.sort();
    let mut out = String::from(HEAD);
    for file in files {
        let name = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let text = std::fs::read_to_string(&file)
            .with_context(|| format!("could not read {}", file.display()))?;
        let (about, heard) = text.split_once("\n\n").unwrap_or(("", &text));
        let (browser, scenario) = name.split_once('-').unwrap_or(("", &name));
        let (browser, scenario) = (capital(browser), scenario.replace('-', " "));
        write!(out, "\n## {browser}: {scenario}\n\n{about}\n\n```text\n{heard}```\n")?;
    }
    let path = root().join("docs").join("heard.md");
    std::fs::write(&path, out).with_context(|| format!("could not write {}", path.display()))
}

fn capital(name: &str) -> String {
    let mut letters = name.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

const HEAD: &str = "# What is heard

Made by `cargo xtask at` from the transcripts in `web/heard`: the page with Orca, a real screen \
reader, on Debian. A line with `>` is what happens or what the person does; the lines below it are \
what they hear, in order. \"Browse mode\" and \"Focus mode\" are Orca's own. NVDA, JAWS and \
VoiceOver were not run.
";
