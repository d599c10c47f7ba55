//! A list of everything that goes into the command, as CycloneDX 1.6 in JSON: from what Cargo says of its
//! dependencies, and the checksums of Cargo.lock.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::workspace::{cargo, root};

/// The crate that is the command.
const COMMAND: &str = "aaep-cli";

pub(super) fn document() -> Result<String> {
    let target = super::target()?;
    let mut ask = cargo(["metadata", "--format-version", "1", "--locked", "--filter-platform"]);
    let output = ask.arg(&target).output()?;
    ensure!(output.status.success(), "cargo metadata: {}", String::from_utf8_lossy(&output.stderr));
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    let lock = std::fs::read_to_string(root().join("Cargo.lock"))?;
    let document = of(&metadata, &checksums(&lock), super::epoch()?)?;
    Ok(serde_json::to_string_pretty(&document)? + "\n")
}

/// The checksum of each crate of a registry, by name and version.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |block: &str, key: &str| {
        let line = block.lines().find_map(|line| line.strip_prefix(key))?;
        Some(line.strip_prefix(" = ")?.trim_matches('"').to_owned())
    };
    let blocks = lock.split("[[package]]").skip(1);
    let found = blocks.filter_map(|block| {
        let named = (value(block, "name")?, value(block, "version")?);
        Some((named, value(block, "checksum")?))
    });
    found.collect()
}

fn of(
    metadata: &Value,
    checksums: &BTreeMap<(String, String), String>,
    epoch: u64,
) -> Result<Value> {
    let packages = metadata["packages"].as_array().context("no packages")?;
    let package = |id: &str| packages.iter().find(|package| package["id"] == id);
    let root = packages.iter().find(|package| package["name"] == COMMAND).context("no command")?;
    let nodes = metadata["resolve"]["nodes"].as_array().context("no dependencies")?;
    // What is only for tests and builds is in nothing that is installed.
    let needed_by = |id: &str| -> Vec<&str> {
        let node = nodes.iter().find(|node| node["id"] == id);
        let all = node.and_then(|node| node["deps"].as_array()).into_iter().flatten();
        let normal = all.filter(|dependency| {
            let kinds = dependency["dep_kinds"].as_array().into_iter().flatten();
            kinds.into_iter().any(|kind| kind["kind"].is_null())
        });
        normal.filter_map(|dependency| dependency["pkg"].as_str()).collect()
    };
    let (mut seen, mut open) = (BTreeSet::new(), vec![root["id"].as_str().context("no id")?]);
    while let Some(id) = open.pop() {
        if seen.insert(id) {
            open.extend(needed_by(id));
        }
    }
    let reference = |id: &str| {
        let package = package(id)?;
        Some(format!("pkg:cargo/{}@{}", package["name"].as_str()?, package["version"].as_str()?))
    };
    let component = |id: &str| {
        let package = package(id)?;
        let (name, version) = (package["name"].as_str()?, package["version"].as_str()?);
        let mut component = json!({
            "type": if id == root["id"] { "application" } else { "library" },
            "bom-ref": reference(id)?,
            "name": name,
            "version": version,
            "purl": reference(id)?,
        });
        if let Some(licence) = package["license"].as_str() {
            // Old crates write a slash where SPDX has a word.
            component["licenses"] = json!([{ "expression": licence.replace('/', " OR ") }]);
        }
        if let Some(sum) = checksums.get(&(name.to_owned(), version.to_owned())) {
            component["hashes"] = json!([{ "alg": "SHA-256", "content": sum }]);
        }
        Some(component)
    };
    let own = root["id"].as_str().unwrap_or_default();
    let mut components: Vec<Value> =
        seen.iter().filter(|id| **id != own).filter_map(|id| component(id)).collect();
    components.sort_by_key(|component| component["bom-ref"].to_string());
    let mut dependencies: Vec<Value> = seen
        .iter()
        .filter_map(|id| {
            let mut on: Vec<String> = needed_by(id).into_iter().filter_map(reference).collect();
            on.sort();
            on.dedup();
            Some(json!({ "ref": reference(id)?, "dependsOn": on }))
        })
        .collect();
    dependencies.sort_by_key(|dependency| dependency["ref"].to_string());
    ensure!(components.len() > 50, "only {} crates were found", components.len());
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "timestamp": timestamp(epoch),
            "component": component(own).context("no command")?,
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// Seconds of Unix time as CycloneDX writes them.
fn timestamp(epoch: u64) -> String {
    let (days, seconds) = (epoch / 86_400, epoch % 86_400);
    // Days since the first of March of the year 0: leap days come last in a year then.
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted + 2) / 5 + 1;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year + era * 400 + u64::from(month <= 2);
    let (hour, minute, second) = (seconds / 3600, seconds % 3600 / 60, seconds % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_others_read_them() {
        assert_eq!(timestamp(0), "1970-01-01T00:00:00Z");
        assert_eq!(timestamp(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(timestamp(1_770_111_000), "2026-02-03T09:30:00Z");
    }

    #[test]
    fn the_list_has_what_is_linked_with_checksums_and_nothing_of_the_tests() {
        let document: Value = serde_json::from_str(&document().unwrap()).unwrap();
        let components = document["components"].as_array().unwrap();
        let named = |name: &str| components.iter().find(|component| component["name"] == name);
        let tokio = named("tokio").unwrap();
        assert_eq!(tokio["hashes"][0]["content"].as_str().unwrap().len(), 64);
        assert_eq!(tokio["licenses"][0]["expression"], "MIT");
        assert!(named("aaep-hub").is_some(), "our own are in it");
        assert!(named("proptest").is_none() && named("aaep-sim").is_none());
        let own = &document["metadata"]["component"];
        assert_eq!((&own["name"], &own["type"]), (&json!("aaep-cli"), &json!("application")));
        // Every reference leads somewhere.
        let known: BTreeSet<&str> = components
            .iter()
            .chain([own])
            .map(|component| component["bom-ref"].as_str().unwrap())
            .collect();
        for dependency in document["dependencies"].as_array().unwrap() {
            for on in dependency["dependsOn"].as_array().unwrap() {
                assert!(known.contains(on.as_str().unwrap()), "{on}");
            }
        }
    }
}
