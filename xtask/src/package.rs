//! `cargo xtask package`: everything that people install, from one build: an archive for `cargo binstall`,
//! a package for Debian, a wheel and npm packages with the command inside, a list of what is in it, and
//! the files that an OCI image is built from.

mod files;
mod sbom;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{answers, cargo, root, run as run_program, target_dir};
use crate::{python, typescript};

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
    /// An unoptimized command, compressed in a hurry: for the tests.
    quick: bool,
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
    let binary = match &options.binary {
        Some(binary) => {
            fs::canonicalize(binary).with_context(|| format!("there is no {}", binary.display()))?
        }
        None => build(&options.profile, &target_dir())?,
    };
    let place = target_dir().join("package");
    empty(&place)?;
    commands(&place, &binary, &options)?;
    libraries(&place)?;
    files::sums(&place)?;
    println!("Everything is in {}.", place.display());
    Ok(())
}

fn empty(place: &Path) -> Result<()> {
    if place.is_dir() {
        fs::remove_dir_all(place)?;
    }
    Ok(fs::create_dir_all(place)?)
}

/// Everything that has the command in it.
fn commands(place: &Path, binary: &Path, options: &Options) -> Result<()> {
    let tree = files::tree(place, binary)?;
    files::archive(place, &tree)?;
    fs::write(place.join(format!("aaep-{}.cdx.json", version()?)), sbom::document()?)?;
    files::wheel(place, &tree)?;
    files::npm(place, &tree)?;
    fs::copy(root().join("packaging/oci/Containerfile"), place.join("Containerfile"))?;
    debian(place, options)
}

/// The libraries for Python and TypeScript. What cannot be built here is said and left out.
fn libraries(place: &Path) -> Result<()> {
    match python::missing() {
        Some(why) => println!("Without the Python package: {why}."),
        None => python::pack(place)?,
    }
    match typescript::missing() {
        Some(why) => println!("Without the npm packages: {why}."),
        None => typescript::pack(place)?,
    }
    Ok(())
}

/// Why nothing can be packed here; `None` if it can.
pub(crate) fn missing() -> Option<String> {
    if cfg!(not(target_os = "linux")) {
        return Some("the packages are tried on Linux".into());
    }
    let programs = ["dpkg", "gzip", "npm", "python3", "strip", "tar"];
    let lacking: Vec<&str> = programs.into_iter().filter(|program| !answers(program)).collect();
    (!lacking.is_empty()).then(|| format!("not installed: {}", lacking.join(", ")))
}

/// Packs an unoptimized command twice, compares, and installs it from what came of it. The libraries have
/// steps of their own.
pub(crate) fn test() -> Result<()> {
    run_program(&mut cargo(["build", "--package", "aaep-cli"]))?;
    let binary = target_dir().join("debug/aaep");
    let options = Options { install: true, quick: true, ..Options::default() };
    let [place, again] = ["packed", "packed-again"].map(|name| target_dir().join(name));
    empty(&place)?;
    commands(&place, &binary, &options)?;
    empty(&again)?;
    let tree = files::tree(&again, &binary)?;
    files::archive(&again, &tree)?;
    files::wheel(&again, &tree)?;
    debian(&again, &options)?;
    same(&again, &place)?;
    fs::remove_dir_all(&again)?;
    let mut publish =
        cargo(["publish", "--workspace", "--dry-run", "--no-verify", "--allow-dirty"]);
    // Cargo's own place for this is where ours for packages is.
    run_program(publish.args(["--quiet", "--target-dir"]).arg(target_dir().join("publish")))?;
    run_program(Command::new("sh").arg(root().join("packaging/try.sh")).arg("--quick").arg(&place))
}

/// Whether the files of one folder are the same in the other, to the byte.
fn same(one: &Path, other: &Path) -> Result<()> {
    let mut count = 0;
    for entry in fs::read_dir(one)? {
        let entry = entry?;
        let again = fs::read(other.join(entry.file_name()))
            .with_context(|| format!("{} was made once only", entry.path().display()))?;
        let name = entry.file_name();
        ensure!(
            fs::read(entry.path())? == again,
            "{} differs when it is packed again",
            name.display()
        );
        count += 1;
    }
    ensure!(
        count == 3,
        "archive, wheel and package for Debian are packed again, not {count} files"
    );
    println!("Archive, wheel and package for Debian are the same when they are packed again.");
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
fn debian(place: &Path, options: &Options) -> Result<()> {
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
            options.install,
            "cargo-deb is not here; `cargo xtask package --install` gets it from crates.io"
        );
        let mut get = cargo(["install", "cargo-deb", "--locked", "--version", CARGO_DEB, "--root"]);
        run_program(get.arg(&tools))?;
    }
    let mut deb = cargo(["deb", "--package", "aaep-cli", "--no-build", "--no-strip"]);
    if options.quick {
        deb.arg("--fast");
    }
    deb.arg("--output").arg(place).env("PATH", path).env("SOURCE_DATE_EPOCH", epoch()?.to_string());
    run_program(&mut deb)?;
    let made = fs::read_dir(place)?.filter_map(|entry| Some(entry.ok()?.path()));
    let made = made.into_iter().find(|path| path.extension().is_some_and(|kind| kind == "deb"));
    let bytes = fs::metadata(made.context("cargo-deb made nothing")?)?.len();
    println!("The package for Debian has {:.1} MB.", bytes as f64 / 1e6);
    // What is not optimized is larger, and nobody installs it.
    ensure!(
        options.quick || bytes <= DEB_BYTES,
        "it has {bytes} bytes; at most {DEB_BYTES} are allowed"
    );
    Ok(())
}
