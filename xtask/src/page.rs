//! `cargo xtask page`: the page's scripts, checked, and tried in a real browser against the real
//! command. What is served needs none of this.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::workspace::{answers, cargo, root, run as run_program, target_dir};

/// Where Debian puts its Chromium; `AAEP_CHROMIUM` names another.
const CHROMIUM: &str = "/usr/bin/chromium";

/// The oldest Node.js that runs the tests.
const NODE: u32 = 20;

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("page takes no arguments");
    }
    match missing() {
        Some(why) => bail!("the page cannot be tried: {why}"),
        None => test(),
    }
}

/// Why it cannot be tried here; `None` if it can, perhaps after installing something.
pub(crate) fn missing() -> Option<String> {
    if let Some(why) = missing_node() {
        return Some(why);
    }
    if !chromium().is_file() && !can_install() {
        return Some(format!(
            "there is no Chromium at {}; install it, or name another with AAEP_CHROMIUM",
            chromium().display()
        ));
    }
    let installed = install_browser().and_then(|()| install_packages(&root().join("web")));
    installed.err().map(|why| format!("{why:#}"))
}

/// Why scripts cannot be run here; `None` if they can.
pub(crate) fn missing_node() -> Option<String> {
    if !answers("node") || !answers("npm") {
        return Some(format!("node or npm does not run; install Node.js {NODE} or newer"));
    }
    let ask = format!("process.exit(parseInt(process.versions.node) < {NODE} ? 1 : 0)");
    let new_enough = Command::new("node").args(["-e", &ask]).status();
    let new_enough = new_enough.is_ok_and(|status| status.success());
    (!new_enough).then(|| format!("node is older than {NODE}"))
}

fn chromium() -> PathBuf {
    std::env::var_os("AAEP_CHROMIUM").map_or_else(|| CHROMIUM.into(), PathBuf::from)
}

/// Whether a missing Chromium can be installed: by apt, by root.
pub(crate) fn can_install() -> bool {
    let id = Command::new("id").arg("-u").output();
    let root = id.is_ok_and(|output| output.stdout.trim_ascii() == b"0");
    root && answers("apt-get") && std::env::var_os("AAEP_CHROMIUM").is_none()
}

/// Types, unit tests, then the browser.
pub(crate) fn test() -> Result<()> {
    let ready = prepare()?;
    run_program(ready.node().arg(ready.web.join("node_modules/typescript/bin/tsc")))?;
    run_program(ready.node().args(["--test", "--test-reporter=tap", "tests/unit/"]))?;
    // One file after the other: each has a browser of its own.
    let browser = ["--test", "--test-reporter=tap", "--test-concurrency=1", "tests/browser/"];
    run_program(ready.node().args(browser))
}

/// What axe-core finds in the site of the documentation.
pub(crate) fn look_at_book(site: &Path) -> Result<()> {
    let mut node = Command::new("node");
    node.current_dir(root().join("web")).env("AAEP_CHROMIUM", chromium()).env("AAEP_BOOK", site);
    run_program(node.args(["--test", "--test-reporter=tap", "tests/book.test.js"]))
}

/// What it costs in the browser.
pub(crate) fn bench() -> Result<()> {
    if let Some(why) = missing() {
        bail!("the page cannot be measured: {why}");
    }
    let ready = prepare()?;
    run_program(ready.node().arg("tests/bench.js"))
}

/// Everything that is needed, in its place: made by [`prepare`] once nothing is [`missing`].
pub(crate) struct Ready {
    web: PathBuf,
    binary: PathBuf,
}

impl Ready {
    pub(crate) fn node(&self) -> Command {
        let mut node = Command::new("node");
        node.current_dir(&self.web).env("AAEP_BIN", &self.binary);
        node.env("AAEP_CHROMIUM", chromium());
        node
    }
}

pub(crate) fn prepare() -> Result<Ready> {
    let web = root().join("web");
    run_program(&mut cargo(["build", "--quiet", "--package", "aaep-cli"]))?;
    let binary = target_dir().join("debug").join("aaep");
    Ok(Ready { web, binary })
}

fn install_browser() -> Result<()> {
    if chromium().is_file() { Ok(()) } else { install(&["chromium"]) }
}

/// Installs packages of the system.
pub(crate) fn install(packages: &[&str]) -> Result<()> {
    println!("Installing with apt-get: {}.", packages.join(", "));
    let install = || {
        let mut apt = Command::new("apt-get");
        apt.args(["install", "--yes", "--quiet", "--no-install-recommends"]).args(packages);
        run_program(apt.env("DEBIAN_FRONTEND", "noninteractive"))
    };
    if install().is_err() {
        // The lists may be missing or old.
        run_program(Command::new("apt-get").args(["update", "--quiet"]))?;
        install().context("the packages could not be installed; is the network there?")?;
    }
    Ok(())
}

/// The packages of `package-lock.json` in a folder, once; again when it changes.
pub(crate) fn install_packages(web: &Path) -> Result<()> {
    let lock = std::fs::read_to_string(web.join("package-lock.json"))?;
    let stamp = web.join("node_modules").join("installed.txt");
    if std::fs::read_to_string(&stamp).is_ok_and(|found| found == lock) {
        return Ok(());
    }
    println!("Installing the packages of {}.", web.join("package-lock.json").display());
    let mut npm = Command::new("npm");
    npm.args(["ci", "--ignore-scripts", "--no-audit", "--no-fund"]).current_dir(web);
    run_program(&mut npm).context("the packages could not be installed; is the network there?")?;
    std::fs::write(&stamp, lock).with_context(|| format!("could not write {}", stamp.display()))
}
