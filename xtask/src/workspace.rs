//! Where things are, and how other programs are run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

/// The folder that holds the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    // xtask is a direct child of the root, wherever it is called from.
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// The folder for everything that can be made again.
pub(crate) fn target_dir() -> PathBuf {
    match std::env::var_os("CARGO_TARGET_DIR") {
        Some(dir) => root().join(dir), // an absolute path stays as it is
        None => root().join("target"),
    }
}

/// The same cargo that started us, in the root of the workspace.
pub(crate) fn cargo<'a>(args: impl IntoIterator<Item = &'a str>) -> Command {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| OsString::from("cargo"));
    let mut command = Command::new(cargo);
    command.args(args).current_dir(root());
    command
}

/// Runs a program to its end and shows what it prints.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let shown = describe(command);
    let status = command.status().with_context(|| format!("could not start `{shown}`"))?;
    if !status.success() {
        bail!("`{shown}` failed ({status})");
    }
    Ok(())
}

/// Whether a program is there and answers `--version`.
pub(crate) fn answers(program: impl AsRef<std::ffi::OsStr>) -> bool {
    Command::new(program)
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok_and(|status| status.success())
}

/// The command as one would type it.
pub(crate) fn describe(command: &Command) -> String {
    let program = Path::new(command.get_program()).file_name().unwrap_or(command.get_program());
    let mut words = vec![program.to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|arg| arg.to_string_lossy().into_owned()));
    words.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every manifest of the workspace, and that of the fuzz targets.
    fn manifests() -> Vec<PathBuf> {
        let folders = ["", "web", "xtask", "fuzz"].map(|folder| root().join(folder));
        let crates = std::fs::read_dir(root().join("crates")).unwrap();
        let crates = crates.map(|entry| entry.unwrap().path());
        let all = folders.into_iter().chain(crates).map(|folder| folder.join("Cargo.toml"));
        all.filter(|path| path.exists()).collect()
    }

    // covers: S1, I1
    #[test]
    fn only_the_simulator_may_weaken_the_rules_of_the_engine() {
        let found: Vec<String> = manifests()
            .into_iter()
            .filter(|path| std::fs::read_to_string(path).unwrap().contains("mutants"))
            .filter_map(|path| Some(path.parent()?.file_name()?.to_string_lossy().into_owned()))
            .collect();
        let mut found: Vec<&str> = found.iter().map(String::as_str).collect();
        found.sort_unstable();
        assert_eq!(found, ["aaep-engine", "aaep-sim"], "`mutants` is for the simulator alone");
    }
}
