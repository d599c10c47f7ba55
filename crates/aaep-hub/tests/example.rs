//! The example file says what is true.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests
#![allow(clippy::disallowed_methods)] // real files

use aaep_hub::config::{Config, Flags, Surroundings, load};

const EXAMPLE: &str = include_str!("../aaep.example.toml");

/// The example with every key turned on.
fn turned_on() -> String {
    let line = |line: &'static str| match line.strip_prefix('#') {
        Some(key) if !key.is_empty() && !key.starts_with(' ') => key,
        _ => line,
    };
    EXAMPLE.lines().map(line).collect::<Vec<_>>().join("\n")
}

#[test]
fn the_example_is_the_defaults() {
    assert_eq!(toml::from_str::<Config>(EXAMPLE).unwrap(), Config::default());
}

#[test]
fn the_example_with_every_key_turned_on_is_a_configuration() {
    let config: Config = toml::from_str(&turned_on()).unwrap();
    assert_eq!((config.principals.len(), config.issuers.len()), (4, 2));
    assert!(config.tls.files().is_some() && config.data.is_some());
}

#[test]
fn what_is_printed_can_be_read_back() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("aaep.toml");
    std::fs::write(&file, turned_on()).unwrap();
    let flags = Flags { config: Some(file), ..Flags::default() };
    let config = load(&flags, &Surroundings::default()).unwrap().config;
    let printed = config.to_toml().unwrap();
    assert!(printed.contains("token_sha256 = \"…\"") && !printed.contains(&"0".repeat(64)));
    let again: Config = toml::from_str(&printed.replace('…', &"0".repeat(64))).unwrap();
    assert_eq!(again, config);
}

const HUB_DOCS: &str = include_str!("../../../docs/hub.md");

// covers: I22, I29
#[test]
fn every_bound_is_in_the_table_for_people() {
    let bounds = HUB_DOCS.split_once("\n## Bounds\n").expect("the section").1;
    let bounds = bounds.split("\n## ").next().unwrap();
    let printed = toml::Value::try_from(Config::default()).unwrap();
    let names = printed["limits"].as_table().unwrap().keys();
    let missing: Vec<&String> = names
        .filter(|name| {
            // The shares of a bound stand in its row.
            let share = ["_per_user", "_per_principal"].iter().find_map(|end| {
                name.strip_suffix(end).filter(|bound| bounds.contains(&format!("`{bound}`")))
            });
            share.is_none() && !bounds.contains(&format!("`{name}`"))
        })
        .collect();
    assert!(missing.is_empty(), "docs/hub.md says nothing of {missing:?}");
}
