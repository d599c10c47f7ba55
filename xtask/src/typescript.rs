//! `cargo xtask typescript`: the packages `@aaep/agent` and `@aaep/subscriber`, built, packed, installed
//! into a fresh directory, and used from there with the real hub.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};

use crate::workspace::{cargo, root, run as run_program, target_dir};
use crate::{page, python};

/// What the tests use besides the two packages; the versions are those of `package.json`.
const BESIDE: [&str; 10] = [
    "@ag-ui/client",
    "@ag-ui/core",
    "ai",
    "esbuild",
    "playwright-core",
    "react",
    "react-dom",
    "rxjs",
    "vue",
    "zod",
];

/// What is packed with each package.
const LICENCES: [&str; 2] = ["LICENSE-APACHE", "LICENSE-MIT"];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if let Some(why) = missing() {
        bail!(why);
    }
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => test(),
        ["--write"] => {
            let program = program()?;
            types(&program, &[])
        }
        _ => bail!("typescript takes --write, or nothing"),
    }
}

/// Why it cannot be run here; `None` if it can.
pub(crate) fn missing() -> Option<String> {
    page::missing_node()
}

fn packages() -> PathBuf {
    root().join("packages/typescript")
}

fn place() -> PathBuf {
    target_dir().join("typescript")
}

fn program() -> Result<PathBuf> {
    run_program(&mut cargo(["build", "--quiet", "--package", "aaep-cli"]))?;
    Ok(target_dir().join("debug/aaep"))
}

/// The types of the messages, made from our schemas, or compared with them.
fn types(program: &Path, options: &[&str]) -> Result<()> {
    let schemas = place().join("schemas");
    run_program(Command::new(program).args(["schema", "--out"]).arg(&schemas))?;
    let mut make = Command::new("node");
    run_program(make.arg(packages().join("tools/types.mjs")).arg(schemas).args(options))
}

pub(crate) fn test() -> Result<()> {
    let (program, packages) = (program()?, packages());
    page::install_packages(&packages)?;
    types(&program, &["--check"])?;
    build(&packages)?;
    let fresh = install(&packages, "fresh")?;
    for folder in ["tests", "examples"] {
        for entry in std::fs::read_dir(packages.join(folder))? {
            let entry = entry?;
            std::fs::copy(entry.path(), fresh.join(entry.file_name()))?;
        }
    }
    let mut tests = Command::new("node");
    tests.args(["--test", "--test-reporter=tap", "--test-timeout=180000"]).current_dir(&fresh);
    tests.args([
        "agent.test.js",
        "adapters.test.js",
        "blocking.test.js",
        "conformance.test.js",
        "subscriber.test.js",
        "types.test.js",
        "vectors.test.js",
    ]);
    run_program(tests.env("AAEP_PROGRAM", program).env("AAEP_REPOSITORY", root()))
}

/// What a confirmation through each package costs, beside the Rust library. `AAEP_PROGRAM` names a hub;
/// without it one is built with all optimizations.
pub(crate) fn bench(args: &[String]) -> Result<()> {
    if let Some(why) = missing().or_else(python::missing) {
        bail!(why);
    }
    let hub = match std::env::var_os("AAEP_PROGRAM") {
        Some(program) => program.into(),
        None => {
            run_program(&mut cargo(["build", "--release", "--quiet", "--package", "aaep-cli"]))?;
            target_dir().join("release/aaep")
        }
    };
    let packages = packages();
    page::install_packages(&packages)?;
    build(&packages)?;
    let fresh = install(&packages, "bench")?;
    std::fs::copy(packages.join("tests/hub.js"), fresh.join("hub.js"))?;
    for name in ["run.mjs", "confirm.mjs", "confirm.py"] {
        std::fs::copy(root().join("packages/bench").join(name), fresh.join(name))?;
    }
    let (python, rust) = python::for_bench()?;
    let mut bench = Command::new("node");
    bench.arg("run.mjs").args([rust, python]).args(args).current_dir(&fresh);
    run_program(bench.env("AAEP_PROGRAM", hub))
}

/// Both packages, in their folders `dist`.
fn build(packages: &Path) -> Result<()> {
    let element = place().join("element");
    let files = element.to_str().context("the target directory has a name that is no text")?;
    run_program(&mut cargo([
        "run",
        "--quiet",
        "-p",
        "aaep-page",
        "--example",
        "files",
        "--",
        files,
    ]))?;
    for (package, licence) in
        ["agent", "subscriber"].into_iter().flat_map(|one| LICENCES.map(|name| (one, name)))
    {
        std::fs::copy(root().join(licence), packages.join(package).join(licence))?;
    }
    let mut made = Command::new("node");
    run_program(made.arg(packages.join("tools/element.mjs")).arg(&element))?;
    for package in ["agent", "subscriber", "subscriber/tsconfig.check.json"] {
        let mut compiler = Command::new("node");
        compiler.arg(packages.join("node_modules/typescript/bin/tsc")).arg("--project");
        run_program(compiler.arg(packages.join(package)))?;
    }
    Ok(())
}

/// Both packages as they are published, in this folder.
pub(crate) fn pack(place: &Path) -> Result<()> {
    let packages = packages();
    page::install_packages(&packages)?;
    build(&packages)?;
    archives(&packages, place)
}

fn archives(packages: &Path, place: &Path) -> Result<()> {
    for package in ["agent", "subscriber"] {
        let mut pack = Command::new("npm");
        pack.args(["pack", "--silent", "--pack-destination"]).arg(place);
        run_program(pack.current_dir(packages.join(package)))?;
        packed(&place.join(format!("aaep-{package}-0.1.0.tgz")))?;
    }
    Ok(())
}

/// A fresh directory with both, as they are published, and what the tests use besides.
fn install(packages: &Path, name: &str) -> Result<PathBuf> {
    let fresh = place().join(name);
    if fresh.is_dir() {
        std::fs::remove_dir_all(&fresh)?;
    }
    std::fs::create_dir_all(&fresh)?;
    std::fs::write(fresh.join("package.json"), "{ \"private\": true, \"type\": \"module\" }\n")?;
    let mut install = Command::new("npm");
    install.args(["install", "--ignore-scripts", "--no-audit", "--no-fund", "--silent"]);
    archives(packages, &fresh)?;
    for package in ["agent", "subscriber"] {
        install.arg(format!("./aaep-{package}-0.1.0.tgz"));
    }
    let listed = std::fs::read_to_string(packages.join("package.json"))?;
    for name in BESIDE.iter().chain(&["typescript", "@types/node"]) {
        install.arg(format!("{name}@{}", version(&listed, name)?));
    }
    run_program(install.current_dir(&fresh))?;
    Ok(fresh)
}

/// Whether everything that a package needs is in it, and nothing else.
fn packed(archive: &Path) -> Result<()> {
    let list = Command::new("tar").arg("-tzf").arg(archive).output()?;
    ensure!(list.status.success(), "{} cannot be read", archive.display());
    let names = String::from_utf8(list.stdout)?;
    let names: Vec<_> =
        names.lines().map(|name| name.strip_prefix("package/").unwrap_or(name)).collect();
    let beside = ["package.json", "README.md", LICENCES[0], LICENCES[1]];
    for needed in beside.into_iter().chain(["dist/index.js", "dist/index.d.ts"]) {
        ensure!(names.contains(&needed), "{} has no {needed}", archive.display());
    }
    let stray = names.iter().find(|name| !name.starts_with("dist/") && !beside.contains(name));
    ensure!(stray.is_none(), "{} has {stray:?} in it", archive.display());
    Ok(())
}

/// The version of a package that `package.json` names.
fn version<'a>(listed: &'a str, name: &str) -> Result<&'a str> {
    let found =
        listed.split_once(&format!("\"{name}\": \"")).and_then(|(_, rest)| rest.split_once('"'));
    found.map(|(version, _)| version).with_context(|| format!("package.json names no {name}"))
}
