//! The files that people install, in the shapes that their tools want.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use super::{epoch, target, version};
use crate::workspace::{root, run as run_program, target_dir};

/// Shells, and how each wants its file of completions to be called.
const SHELLS: [(&str, &str); 5] = [
    ("bash", "aaep"),
    ("zsh", "_aaep"),
    ("fish", "aaep.fish"),
    ("elvish", "aaep.elv"),
    ("powershell", "_aaep.ps1"),
];

/// Files of the repository, and where they are in the tree.
const COPIED: [(&str, &str); 9] = [
    ("README.md", "README.md"),
    ("CHANGELOG.md", "CHANGELOG.md"),
    ("LICENSE-MIT", "LICENSE-MIT"),
    ("LICENSE-APACHE", "LICENSE-APACHE"),
    ("crates/aaep-hub/aaep.example.toml", "aaep.example.toml"),
    ("packaging/proxy/nginx.conf", "proxy/nginx.conf"),
    ("packaging/proxy/Caddyfile", "proxy/Caddyfile"),
    ("packaging/grafana/aaep-hub.json", "grafana/aaep-hub.json"),
    ("packaging/systemd/system/aaep-hub.service", "systemd/system/aaep-hub.service"),
];

fn copy(from: &Path, to: &Path, mode: u32) -> Result<()> {
    fs::create_dir_all(to.parent().context("a file has a folder")?)?;
    fs::copy(from, to).with_context(|| format!("cannot copy {}", from.display()))?;
    set_mode(to, mode)
}

#[cfg(unix)]
fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(fs::set_permissions(path, fs::Permissions::from_mode(mode))?)
}

#[cfg(not(unix))]
fn set_mode(_: &Path, _: u32) -> Result<()> {
    Ok(())
}

/// The name of the archive, without its ending.
fn name() -> Result<String> {
    Ok(format!("aaep-{}-{}", version()?, target()?))
}

/// Puts the tree together that archive and packages are made of. It lies where cargo-deb looks for what
/// was built, so that the place of the target directory does not matter.
pub(super) fn tree(place: &Path, binary: &Path) -> Result<PathBuf> {
    fs::create_dir_all(place)?;
    let tree = target_dir().join("release/package");
    if tree.is_dir() {
        fs::remove_dir_all(&tree)?;
    }
    fs::create_dir_all(&tree)?;
    let command = tree.join("aaep");
    run_program(Command::new("strip").arg("-o").arg(&command).arg(binary))?;
    set_mode(&command, 0o755)?;
    for (from, to) in COPIED {
        copy(&root().join(from), &tree.join(to), 0o644)?;
    }
    let user = "packaging/systemd/user/aaep-hub.service";
    copy(&root().join(user), &tree.join("systemd/user/aaep-hub.service"), 0o644)?;
    let man = tree.join("man");
    run_program(Command::new(&command).args(["man", "--out"]).arg(&man).stdout(Stdio::null()))?;
    for page in fs::read_dir(&man)? {
        // As Debian has them, and without the time of packing.
        run_program(Command::new("gzip").args(["-n9"]).arg(page?.path()))?;
    }
    fs::create_dir_all(tree.join("completions"))?;
    for (shell, file) in SHELLS {
        let made = Command::new(&command).args(["completions", shell]).output()?;
        ensure!(made.status.success(), "there are no completions for {shell}");
        fs::write(tree.join("completions").join(file), made.stdout)?;
    }
    Ok(tree)
}

/// The archive for people and for `cargo binstall`: the same files are the same bytes.
pub(super) fn archive(place: &Path, tree: &Path) -> Result<()> {
    let name = name()?;
    let file = place.join(format!("{name}.tar.gz"));
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner", "--format=gnu"]);
    tar.arg(format!("--mtime=@{}", epoch()?)).arg(format!("--transform=s,^\\.,{name},"));
    tar.arg("--use-compress-program=gzip -n9").arg("-cf").arg(&file).arg("-C").arg(tree).arg(".");
    run_program(&mut tar)?;
    // Where `cargo binstall` is told to look.
    let listed = Command::new("tar").arg("-tf").arg(&file).output()?;
    let listed = String::from_utf8(listed.stdout)?;
    ensure!(listed.lines().any(|line| line == format!("{name}/aaep")), "{listed}");
    Ok(())
}

/// A wheel with nothing but the command in it.
pub(super) fn wheel(place: &Path, tree: &Path) -> Result<()> {
    let mut make = Command::new("python3");
    make.arg(root().join("packaging/wheel/make.py")).arg(tree.join("aaep")).arg(place);
    make.arg(version()?).env("SOURCE_DATE_EPOCH", epoch()?.to_string());
    run_program(&mut make)
}

/// Two packages for npm: what people name, and the command for this platform.
pub(super) fn npm(place: &Path, tree: &Path) -> Result<()> {
    let work = place.join("npm");
    let (platform, version) = (npm_platform()?, version()?);
    let written = |path: &Path, text: String| -> Result<()> {
        fs::create_dir_all(path.parent().context("a file has a folder")?)?;
        Ok(fs::write(path, text)?)
    };
    let filled = |name: &str| -> Result<String> {
        let text = fs::read_to_string(root().join("packaging/npm").join(name))?;
        let (os, cpu) = platform.split_once('-').context("a platform has two parts")?;
        let text = text.replace("@VERSION@", &version).replace("@PLATFORM@", &platform);
        Ok(text.replace("@OS@", os).replace("@CPU@", cpu))
    };
    written(&work.join("aaep/package.json"), filled("aaep/package.json")?)?;
    written(&work.join("aaep/README.md"), filled("aaep/README.md")?)?;
    copy(&root().join("packaging/npm/aaep/aaep.js"), &work.join("aaep/aaep.js"), 0o755)?;
    written(&work.join("platform/package.json"), filled("platform/package.json")?)?;
    written(&work.join("platform/README.md"), filled("platform/README.md")?)?;
    copy(&tree.join("aaep"), &work.join("platform/aaep"), 0o755)?;
    for folder in ["aaep", "platform"] {
        for licence in ["LICENSE-MIT", "LICENSE-APACHE"] {
            copy(&root().join(licence), &work.join(folder).join(licence), 0o644)?;
        }
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", "--pack-destination"]).arg(place);
        run_program(pack.current_dir(work.join(folder)))?;
    }
    fs::remove_dir_all(work)?;
    Ok(())
}

/// This platform, as Node names it.
fn npm_platform() -> Result<String> {
    let ask = "process.stdout.write(`${process.platform}-${process.arch}`)";
    let output = Command::new("node").args(["-e", ask]).output().context("node does not run")?;
    Ok(String::from_utf8(output.stdout)?)
}

/// The sums of everything.
pub(super) fn sums(place: &Path) -> Result<()> {
    let mut names: Vec<_> = fs::read_dir(place)?
        .filter_map(|entry| Some(entry.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| place.join(name).is_file())
        .collect();
    names.sort_unstable();
    let sums = Command::new("sha256sum").args(&names).current_dir(place).output()?;
    ensure!(sums.status.success(), "sha256sum failed");
    fs::write(place.join("SHA256SUMS"), &sums.stdout)?;
    print!("{}", String::from_utf8_lossy(&sums.stdout));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What `cargo binstall` is told, with what it fills in.
    fn told(key: &str) -> String {
        let manifest = fs::read_to_string(root().join("crates/aaep-cli/Cargo.toml")).unwrap();
        let line = manifest.lines().find_map(|line| line.strip_prefix(&format!("{key} = \"")));
        let filled = [
            ("{ repo }", "https://example.org/aaep".to_owned()),
            ("{ version }", version().unwrap()),
            ("{ target }", target().unwrap()),
            ("{ bin }", "aaep".to_owned()),
            ("{ binary-ext }", String::new()),
        ];
        let text = line.unwrap().trim_end_matches('"').to_owned();
        filled.into_iter().fold(text, |text, (name, value)| text.replace(name, &value))
    }

    #[test]
    fn cargo_binstall_looks_for_the_archive_that_is_made() {
        let (url, name) = (told("pkg-url"), name().unwrap());
        assert_eq!(url.rsplit_once('/').unwrap().1, format!("{name}.tar.gz"));
        assert!(url.starts_with("https://example.org/aaep/releases/"), "{url}");
        assert_eq!(told("bin-dir"), format!("{name}/aaep"), "as `archive` puts it there");
    }
}
