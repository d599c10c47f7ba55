//! `cargo xtask features`: every feature is documented and compiles alone, and an agent that talks to
//! a hub elsewhere links neither a server nor a store.

use std::collections::BTreeMap;
use std::fs;
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde_json::Value;

use crate::workspace::{cargo, root, run as run_program};

/// What is checked by itself: a package, its features, and what must not be among its dependencies.
const ALONE: &[(&str, &[&str], &[&str])] = &[
    ("aaep-transport", &[], &["tokio", "hyper"]),
    ("aaep-transport", &["client"], &["tower-service", "tonic"]),
    ("aaep-transport", &["server"], &["rustls-platform-verifier", "tonic"]),
    ("aaep-transport", &["client", "grpc"], &["axum"]),
    ("aaep-transport", &["server", "grpc"], &["rustls-platform-verifier"]),
    ("aaep-conformance", &[], &["tokio", "aaep-transport"]),
    ("aaep-conformance", &["suite"], &["aaep-engine", "aaep-hub", "aaep-store", "axum"]),
    ("aaep-store", &[], &["rusqlite"]),
    ("aaep-store", &["chain"], &["rusqlite"]),
    ("aaep-store", &["log"], &["rusqlite", "tokio"]),
    ("aaep-store", &["postgres"], &["rusqlite", "async-nats"]),
    ("aaep-store", &["jetstream"], &["rusqlite", "tokio-postgres"]),
    ("aaep-subscriber", &[], &["tokio", "aaep-transport"]),
    ("aaep-subscriber", &["client"], &["axum"]),
    ("aaep-agent", &[], &["aaep-hub", "aaep-store", "rusqlite", "tower-service", "axum"]),
    ("aaep-agent", &["policy"], &["aaep-hub", "aaep-store", "tower-service"]),
];

/// Features that no agent or subscriber may bring along, as `cargo tree` names them.
const NO_SERVER: &[&str] = &["hyper feature \"server\"", "aaep-transport feature \"server\""];

pub(crate) fn run(args: &[String]) -> Result<()> {
    if !args.is_empty() {
        bail!("features takes no arguments");
    }
    documented()?;
    for (package, features, unwanted) in ALONE {
        linked(package, features, unwanted)?;
        let mut command = cargo(["check", "--quiet", "--lib", "--no-default-features"]);
        let features = features.join(",");
        run_program(command.args(["--package", package, "--features", &features]))?;
    }
    println!("{} sets of features compile alone, and link what they should.", ALONE.len());
    Ok(())
}

/// What a package links with these features contains nothing that it should not.
fn linked(package: &str, features: &[&str], unwanted: &[&str]) -> Result<()> {
    let tree = tree(package, &features.join(","))?;
    let has = |name: &str| tree.lines().any(|line| line.split(' ').next() == Some(name));
    if let Some(found) = unwanted.iter().find(|name| has(name)) {
        bail!("{package} with the features {features:?} depends on {found}, and must not");
    }
    // The suite is a producer for the subscribers that it checks.
    let serves = package == "aaep-conformance" || features.contains(&"server");
    let is_client = package != "aaep-store" && !serves;
    if let Some(found) = NO_SERVER.iter().find(|name| is_client && tree.contains(**name)) {
        bail!("{package} with the features {features:?} links a server ({found})");
    }
    Ok(())
}

fn tree(package: &str, features: &str) -> Result<String> {
    let mut command =
        cargo(["tree", "--offline", "--edges", "normal,features", "--prefix", "none"]);
    command.args(["--no-default-features", "--package", package, "--features", features]);
    text_of(&mut command)
}

fn text_of(command: &mut Command) -> Result<String> {
    let output = command.output()?;
    if !output.status.success() {
        bail!("cargo failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).context("cargo printed what is no text")
}

/// Every feature of a published library has a row in its crate's page and its README.
fn documented() -> Result<()> {
    let metadata =
        text_of(&mut cargo(["metadata", "--offline", "--no-deps", "--format-version=1"]))?;
    let metadata: Value = serde_json::from_str(&metadata)?;
    let mut missing = Vec::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let name = package["name"].as_str().unwrap_or_default();
        let features: BTreeMap<String, Value> =
            serde_json::from_value(package["features"].clone())?;
        let folder = if name == "aaep-page" { "web".into() } else { format!("crates/{name}") };
        for feature in features.keys().filter(|name| *name != "default") {
            let is_library = root().join(&folder).join("src/lib.rs").is_file();
            let page = if is_library { "src/lib.rs" } else { "src/main.rs" };
            for file in [page, "README.md"] {
                let path = root().join(&folder).join(file);
                let text = fs::read_to_string(&path).unwrap_or_default();
                if !text.contains(&format!("`{feature}`")) {
                    missing.push(format!("{folder}/{file} says nothing of the feature {feature}"));
                }
            }
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => bail!("{}", missing.join("\n")),
    }
}
