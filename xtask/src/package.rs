//! `cargo xtask package`: everything that people install, from one build: an archive for `cargo binstall`,
//! a package for Debian, a wheel and npm packages with the command inside, a list of what is in it, and
//! the files that an OCI image is built from.

mod files;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{cargo, root, run as run_program, target_dir};

/// The largest package for Debian, in bytes.
const DEB_BYTES: u64 = 10_000_000;

/// What makes the package for Debian. `--install` gets it from crates.io by name.
const CARGO_DEB: &str = "3.8.0";

/// How it is asked for.
#[derive(Default)]
struct Options {
    /// Package this command instead of building one.
    binary: Option<PathBuf>,
    /// Build it twice and compare.
    twice: bool,
    install: bool,
    profile: String,
}

pub(crate) fn run(args: &[String]) -> Result<()> {
    let mut options = Options { profile: "dist".into(), ..Options::default() };
    let mut words = args.iter();
    while let Some(word) = words.next() {
        match word.as_str() {
            "--binary" => options.binary = Some(words.next().context("--binary FILE")?.into()),
            "--profile" => options.profile = words.next().context("--profile NAME")?.clone(),
            "--twice" => options.twice = true,
            "--install" => options.install = true,
            _ => bail!(
                "unknown argument {word:?}; known are --binary, --profile, --twice, --install"
            ),
        }
    }
    if options.twice {
        return twice(&options.profile);
    }
    let binary = match options.binary {
        Some(binary) => fs::canonicalize(&binary)
            .with_context(|| format!("there is no {}", binary.display()))?,
        None => build(&options.profile, &target_dir())?,
    };
    let place = target_dir().join("package");
    if place.is_dir() {
        fs::remove_dir_all(&place)?;
    }
    let tree = files::tree(&place, &binary)?;
    files::archive(&place, &tree)?;
    fs::write(place.join(format!("aaep-{}.cdx.json", version()?)), sbom::document()?)?;
    files::wheel(&place, &tree)?;
    files::npm(&place, &tree)?;
    fs::copy(root().join("packaging/oci/Containerfile"), place.join("Containerfile"))?;
    debian(&place, options.install)?;
    files::sums(&place)?;
    println!("Everything is in {}.", place.display());
    Ok(())
}

/// The version of the workspace.
fn version() -> Result<String> {
    let manifest = fs::read_to_string(root().join("Cargo.toml"))?;
    let line = manifest.lines().find_map(|line| line.strip_prefix("version = "));
    Ok(line.context("the workspace has no version")?.trim_matches('"').to_owned())
}

/// The platform that is built for, as Rust names it.
fn target() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output().context("rustc does not run")?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("rustc does not say its host")?.to_owned())
}

/// The time that files bear: of the last commit, unless `SOURCE_DATE_EPOCH` says another.
fn epoch() -> Result<u64> {
    if let Ok(epoch) = std::env::var("SOURCE_DATE_EPOCH") {
        return epoch.parse().context("SOURCE_DATE_EPOCH is no number of seconds");
    }
    let git = Command::new("git").args(["log", "-1", "--format=%ct"]).current_dir(root()).output();
    let text = git.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    // Sources without their history have no time of their own.
    Ok(text.unwrap_or_default().trim().parse().unwrap_or(315_532_800))
}

/// Builds the command so that nothing of this machine is in it.
fn build(profile: &str, target_dir: &Path) -> Result<PathBuf> {
    let home = std::env::var_os("CARGO_HOME").map(PathBuf::from);
    let home = home.or_else(|| std::env::home_dir().map(|home| home.join(".cargo")));
    let mut maps = vec![(root(), "/aaep"), (target_dir.to_owned(), "/target")];
    maps.extend(home.map(|home| (home, "/cargo")));
    let flags: Vec<String> = maps
        .iter()
        .map(|(from, to)| format!("--remap-path-prefix={}={to}", from.display()))
        .collect();
    // C code, of SQLite and of the cryptography, names its files as well.
    let c_flags: Vec<String> = maps
        .iter()
        .map(|(from, to)| format!("-ffile-prefix-map={}={to}", from.display()))
        .collect();
    let mut command = cargo(["build", "--locked", "--package", "aaep-cli", "--bin", "aaep"]);
    command.args(["--profile", profile, "--target-dir"]).arg(target_dir);
    command.env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}")).env("CFLAGS", c_flags.join(" "));
    command.env("SOURCE_DATE_EPOCH", epoch()?.to_string()).env("CARGO_INCREMENTAL", "0");
    run_program(&mut command)?;
    let folder = if profile == "dev" { "debug" } else { profile };
    Ok(target_dir.join(folder).join("aaep"))
}

/// Builds in two places, and compares what came of it.
fn twice(profile: &str) -> Result<()> {
    let mut built = Vec::new();
    for place in ["one", "another/deeper"] {
        let binary = build(profile, &target_dir().join("twice").join(place))?;
        let stripped = binary.with_extension("stripped");
        run_program(Command::new("strip").arg("-o").arg(&stripped).arg(&binary))?;
        built.push(fs::read(&stripped)?);
    }
    let differ = built[0].iter().zip(&built[1]).filter(|(one, other)| one != other).count();
    let same = built[0] == built[1];
    ensure!(same, "the two builds differ, in {differ} bytes at least");
    println!("Both builds have the same {} bytes.", built[0].len());
    fs::remove_dir_all(target_dir().join("twice"))?;
    Ok(())
}

/// The package for Debian, made of the tree.
fn debian(place: &Path, install: bool) -> Result<()> {
    if cfg!(not(target_os = "linux")) {
        println!("The package for Debian is made on Linux.");
        return Ok(());
    }
    let tools = target_dir().join("tools");
    let own = tools.join("bin");
    let path = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(own.clone()).chain(std::env::split_paths(&path)))?;
    let here = Command::new("cargo-deb").arg("--version").env("PATH", &path).output().is_ok();
    if !here {
        ensure!(
            install,
            "cargo-deb is not here; `cargo xtask package --install` gets it from crates.io"
        );
        let mut get = cargo(["install", "cargo-deb", "--locked", "--version", CARGO_DEB, "--root"]);
        run_program(get.arg(&tools))?;
    }
    let mut deb = cargo(["deb", "--package", "aaep-cli", "--no-build", "--no-strip", "--output"]);
    deb.arg(place).env("PATH", path).env("SOURCE_DATE_EPOCH", epoch()?.to_string());
    run_program(&mut deb)?;
    let made = fs::read_dir(place)?.filter_map(|entry| Some(entry.ok()?.path()));
    let made = made.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    let bytes = fs::metadata(made.context("cargo-deb made nothing")?)?.len();
    println!("The package for Debian has {:.1} MB.", bytes as f64 / 1e6);
    ensure!(bytes <= DEB_BYTES, "it has {bytes} bytes; at most {DEB_BYTES} are allowed");
    Ok(())
}
