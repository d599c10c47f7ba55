//! What the environment says, key by key. The scheme is explained on the page of this module's
//! parent.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use toml::{Table, Value};

use super::Config;
use super::source::sentence;
use crate::Fault;

/// Names the configuration file.
pub(super) const CONFIG_VARIABLE: &str = "AAEP_CONFIG";

const PREFIX: &str = "AAEP_";

/// Variables with a name of their own, and the key each stands for.
const SHORT: [(&str, &str); 1] = [("AAEP_LOG", "log.level")];

/// What a configuration is read from, besides files: the environment and the current directory.
#[derive(Clone, Debug, Default)]
pub struct Surroundings {
    /// Environment variables.
    pub variables: BTreeMap<String, String>,
    /// Where relative paths start.
    pub directory: PathBuf,
}

impl Surroundings {
    /// Those of this process.
    pub fn of_process() -> Result<Self, Fault> {
        let mut variables = BTreeMap::new();
        for (name, value) in std::env::vars_os() {
            let Some(name) = name.to_str() else { continue };
            match value.into_string() {
                Ok(value) => drop(variables.insert(name.to_owned(), value)),
                Err(_) if name.starts_with(PREFIX) => {
                    return Err(refused(name, "", "Its value is not UTF-8.", "Write it as UTF-8."));
                }
                Err(_) => {}
            }
        }
        let directory = std::env::current_dir().map_err(|error| Fault::System {
            what: format!("The current directory cannot be found: {error}."),
        })?;
        Ok(Self { variables, directory })
    }
}

/// Which keys were set over the file, and by what.
pub(super) type SetBy = BTreeMap<String, String>;

/// Lays the environment over a configuration.
pub(super) fn overlay(
    config: Config,
    variables: &BTreeMap<String, String>,
    warnings: &mut Vec<String>,
) -> Result<(Config, SetBy), Fault> {
    let known = known()?;
    let mut table = config.to_table()?;
    let mut set_by = SetBy::new();
    for (name, text) in variables.iter().filter(|(name, _)| name.starts_with(PREFIX)) {
        if name == CONFIG_VARIABLE {
            continue;
        }
        let Some((key, kind)) = known.get(name) else {
            warnings.extend(unknown(name, &known)?);
            continue;
        };
        let value = read(name, key, *kind, text)?;
        // Alone first, so that what is wrong is blamed on this variable.
        let mut alone = Table::new();
        insert(&mut alone, key, value.clone());
        Config::deserialize(Value::Table(alone)).map_err(|error| {
            refused(name, key, &sentence(error.message()), "Correct the variable, or unset it.")
        })?;
        insert(&mut table, key, value);
        set_by.insert(key.clone(), place(name));
    }
    let config = Config::deserialize(Value::Table(table)).map_err(|error| Fault::System {
        what: format!("The configuration cannot be put together: {}.", error.message()),
    })?;
    Ok((config, set_by))
}

/// How a variable's text becomes a value.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    YesNo,
    List,
    /// Not from the environment.
    Tables,
}

/// Every variable, with its key and kind.
fn known() -> Result<BTreeMap<String, (String, Kind)>, Fault> {
    let mut known = BTreeMap::new();
    for (section, value) in Config::with_every_key().to_table()? {
        match value {
            Value::Table(inner) => {
                for (key, value) in inner {
                    let name = format!("{PREFIX}{section}__{key}").to_uppercase();
                    known.insert(name, (format!("{section}.{key}"), kind(&value)));
                }
            }
            value => {
                let name = format!("{PREFIX}{section}").to_uppercase();
                known.insert(name, (section, kind(&value)));
            }
        }
    }
    for (name, key) in SHORT {
        known.insert(name.into(), (key.into(), Kind::Text));
    }
    Ok(known)
}

fn kind(value: &Value) -> Kind {
    match value {
        Value::Integer(_) => Kind::Number,
        Value::Boolean(_) => Kind::YesNo,
        Value::Array(items) if items.iter().any(Value::is_table) => Kind::Tables,
        Value::Array(_) => Kind::List,
        _ => Kind::Text,
    }
}

fn read(name: &str, key: &str, kind: Kind, text: &str) -> Result<Value, Fault> {
    let wrong = |what: &str, remedy: &str| refused(name, key, what, remedy);
    match kind {
        Kind::Text => Ok(Value::from(text)),
        Kind::Number => text
            .parse::<i64>()
            .map(Value::from)
            .map_err(|_| wrong("It is not a whole number.", "Write digits only, such as 1048576.")),
        Kind::YesNo => text
            .parse::<bool>()
            .map(Value::from)
            .map_err(|_| wrong("It is neither true nor false.", "Write `true` or `false`.")),
        Kind::List => {
            let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
            Ok(Value::Array(parts.map(Value::from).collect()))
        }
        Kind::Tables => Err(wrong(
            "It cannot be set by the environment.",
            "Write it into the configuration file, and name that file in AAEP_CONFIG.",
        )),
    }
}

/// What to do about a variable that sets nothing: refuse what was surely meant as a setting, since
/// somebody relies on it, and mention the rest.
fn unknown(name: &str, known: &BTreeMap<String, (String, Kind)>) -> Result<Option<String>, Fault> {
    let bare = |name: &str| name.replace('_', "");
    if let Some(meant) = known.keys().find(|other| bare(other) == bare(name)) {
        return Err(refused(
            name,
            "",
            "There is no such setting.",
            &format!("{meant} was probably meant."),
        ));
    }
    if name.contains("__") {
        let remedy = "Unset it, or correct it; `aaep hub --print-config` shows every key.";
        return Err(refused(name, "", "There is no such setting.", remedy));
    }
    // What other commands read.
    if matches!(name, "AAEP_URL" | "AAEP_TOKEN" | "AAEP_TOKEN_FILE") {
        return Ok(None);
    }
    Ok(Some(format!("The environment variable {name} is no setting of the hub and was ignored.")))
}

fn insert(table: &mut Table, key: &str, value: Value) {
    match key.split_once('.') {
        None => drop(table.insert(key.into(), value)),
        Some((section, key)) => {
            let section = table.entry(section).or_insert_with(|| Value::Table(Table::new()));
            if let Value::Table(section) = section {
                section.insert(key.into(), value);
            }
        }
    }
}

fn place(name: &str) -> String {
    format!("The environment variable {name}")
}

fn refused(name: &str, key: &str, what: &str, remedy: &str) -> Fault {
    Fault::Config { place: place(name), key: key.into(), what: what.into(), remedy: remedy.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_key_but_lists_of_tables_can_be_set_by_the_environment() {
        let known = known().unwrap();
        let fixed: Vec<_> = known
            .iter()
            .filter(|(_, (_, kind))| *kind == Kind::Tables)
            .map(|(name, _)| name)
            .collect();
        assert_eq!(fixed, ["AAEP_HEARING", "AAEP_ISSUERS", "AAEP_PRINCIPALS"]);
        assert_eq!(known["AAEP_LISTEN"].0, "listen");
        assert_eq!(known["AAEP_TLS__KEY"].0, "tls.key");
        assert_eq!(known["AAEP_LIMITS__PROMPT_WINDOW_SECONDS"].0, "limits.prompt_window_seconds");
    }

    #[test]
    fn every_variable_reaches_its_key() {
        // Setting each key to the value it has in the full configuration must leave that value.
        let full = Config::with_every_key().to_table().unwrap();
        for (name, (key, kind)) in known().unwrap() {
            if kind == Kind::Tables || name == "AAEP_LOG" {
                continue;
            }
            let (section, inner) = key.split_once('.').unwrap_or((&key, ""));
            let value = if inner.is_empty() { &full[section] } else { &full[section][inner] };
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Array(items) => {
                    items.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(", ")
                }
                other => other.to_string(),
            };
            let variables = BTreeMap::from([(name.clone(), text)]);
            let (config, set_by) = overlay(Config::default(), &variables, &mut Vec::new()).unwrap();
            assert_eq!(set_by[&key], place(&name));
            let table = config.to_table().unwrap();
            let now = if inner.is_empty() { &table[section] } else { &table[section][inner] };
            assert_eq!(now, value, "{name}");
        }
    }
}
