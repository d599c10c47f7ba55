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
    "opencode-ai@1.18.33",
    "@qwen-code/qwen-code@0.24.4",
    "@moonshot-ai/kimi-code@2.1.0",
    "@github/copilot@1.0.102",
    "@modelcontextprotocol/server-everything@2026.8.31",
    "@modelcontextprotocol/server-filesystem@2026.8.31",
    "@modelcontextprotocol/sdk@1.32.2",
];

/// The Node that some of them need; the machine's may be older.
const NODE: &str = "22.23.3";

/// Of Python: a client and a server of the Model Context Protocol that speak its newest version.
const PYTHON_PACKAGE: &str = "mcp==2.3.0";

/// Adapters that make agents of the Agent Client Protocol of two programs, and its library for editors.
/// They use the programs above, and need none of their own.
const ACP_PACKAGES: &[&str] = &[
    "@agentclientprotocol/claude-agent-acp@0.99.1",
    "@agentclientprotocol/codex-acp@2.6.0",
    "@agentclientprotocol/sdk@2.4.0",
];

/// What opencode fetches at its first start, before it loads plugins.
const OPENCODE_PACKAGE: &str = "@opencode-ai/plugin@1.18.33";

fn packages() -> Vec<String> {
    let arch = if cfg!(target_arch = "aarch64") { "arm64" } else { "x64" };
    let node = format!("node-linux-{arch}@{NODE}");
    PACKAGES.iter().map(|package| (*package).to_owned()).chain([node]).collect()
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let write = match args {
        [] => false,
        [flag] if flag == "--write" => true,
        _ => bail!("agents takes --write and nothing else"),
    };
    if let Some(why) = missing() {
        bail!(why);
    }
    if write {
        let mut heard =
            cargo(["test", "--package", "aaep-cli", "--test", "hooks", "--", "heard::"]);
        return run_program(heard.env("AAEP_AGENTS", directory()).env("AAEP_HEARD_WRITE", "1"));
    }
    test()
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
    let programs = is_installed(&directory) || install(&directory).is_ok();
    if programs
        && (has_opencode_package(&directory) || install_opencode_package(&directory).is_ok())
    {
        return None;
    }
    Some("npm or pip cannot install the programs: are their registries out of reach?".into())
}

fn directory() -> PathBuf {
    root().join("target").join("agents")
}

/// A note of what is there, written last.
fn note(directory: &std::path::Path) -> PathBuf {
    directory.join("installed.txt")
}

fn is_installed(directory: &std::path::Path) -> bool {
    std::fs::read_to_string(note(directory)).is_ok_and(|text| text == wanted())
}

fn wanted() -> String {
    format!("{}\n{}\n{PYTHON_PACKAGE}", packages().join("\n"), ACP_PACKAGES.join("\n"))
}

fn install(directory: &std::path::Path) -> Result<()> {
    println!("Installing {} with npm.", packages().join(", "));
    std::fs::create_dir_all(directory)?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--prefix"]).arg(directory);
    run_program(npm.args(packages())).context("the bridges are tried with these programs")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--no-save", "--omit=optional", "--prefix"]);
    let adapters = directory.join("acp");
    std::fs::create_dir_all(&adapters)?;
    run_program(npm.arg(adapters).args(ACP_PACKAGES))
        .context("the proxy is tried with these packages")?;
    let python = directory.join("python");
    run_program(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python))?;
    let mut pip = Command::new(python.join("bin").join("python"));
    pip.args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PYTHON_PACKAGE]);
    run_program(&mut pip).context("the proxy is tried with this package")?;
    std::fs::write(note(directory), wanted())?;
    Ok(())
}

fn has_opencode_package(directory: &std::path::Path) -> bool {
    directory.join("opencode").join("node_modules").join(".package-lock.json").is_file()
}

fn install_opencode_package(directory: &std::path::Path) -> Result<()> {
    let opencode = directory.join("opencode");
    std::fs::create_dir_all(&opencode)?;
    std::fs::write(opencode.join("package.json"), "{}\n")?;
    let mut npm = Command::new("npm");
    npm.args(["install", "--no-audit", "--no-fund", "--save-exact", "--prefix"]).arg(&opencode);
    run_program(npm.arg(OPENCODE_PACKAGE)).context("opencode fetches this by itself")?;
    Ok(())
}

pub(crate) fn test() -> Result<()> {
    let mut tests = cargo(["test", "--package", "aaep-cli", "--test", "hooks", "--"]);
    run_program(tests.args(["real", "matrix::", "heard::"]).env("AAEP_AGENTS", directory()))
}

/// `cargo xtask guard-matrix`: what each program does when its hook says something, or fails.
pub(crate) fn matrix(args: &[String]) -> Result<()> {
    // A part is for looking at; the whole goes into the document.
    let only = match args {
        [] => None,
        [programs] => Some(programs),
        _ => bail!("guard-matrix takes the names of programs with commas between them, or nothing"),
    };
    if let Some(why) = missing() {
        bail!(why);
    }
    let table = directory().join("matrix.md");
    let _ = std::fs::remove_file(&table);
    let mut tests =
        cargo(["test", "--package", "aaep-cli", "--test", "hooks", "--", "--nocapture"]);
    tests.arg("matrix::the_table").env("AAEP_AGENTS", directory()).env("AAEP_MATRIX", &table);
    if let Some(programs) = only {
        tests.env("AAEP_MATRIX_PROGRAMS", programs);
    }
    let tried = run_program(&mut tests);
    let made = std::fs::read_to_string(&table).context("no table was made")?;
    if only.is_some() {
        println!("{made}");
        return tried;
    }
    let date = Command::new("date").args(["-u", "+%Y-%m-%d"]).output()?.stdout;
    let date = String::from_utf8(date)?;
    let document = format!("{HEAD}\nMeasured on {}.\n\n{made}", date.trim());
    std::fs::write(root().join("docs").join("guard-matrix.md"), document)?;
    tried
}

const HEAD: &str = "\
# What each program does when its hook fails

Made by `cargo xtask guard-matrix`, which installs the published programs, has a scripted model want one file made outside the project, and looks whether it is there afterwards. Each program is started so that nothing but its hook would stop it. The hook is set up as `aaep guard` does it: Claude Code with `onFailure: \"block\"`, opencode with our plugin.

*Blocked* means that the file was not made, *runs* that it was, *waits* that the program waited for the hook until it was stopped after 150 seconds. Of two calls at once, it is told whether the one with the no ran; the one with the yes has to.

What is seen is what the hook alone does. Behind its door (`aaep guard run`), a program asks over a protocol that fails closed; that is tried by `aaep guard` itself, and by the tests.

What `aaep hook` answers has to hold with every program; otherwise the command fails. Everything below that is why it says no in every form at once, and why [a hook is no sandbox](bridges.md#can-the-agent-get-around-it).
";
