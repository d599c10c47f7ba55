//! Which keys differ between two configurations.

use std::collections::BTreeSet;

use toml::{Table, Value};

use super::Config;
use crate::Fault;

impl Config {
    /// The keys that `other` has otherwise, such as `listen` or `tls.key`, in alphabetical order.
    pub(crate) fn changes(&self, other: &Self) -> Result<Vec<String>, Fault> {
        let table = |config: &Self| {
            Table::try_from(config).map_err(|error| Fault::System {
                what: format!("The configuration cannot be compared: {error}."),
            })
        };
        let mut changed = Vec::new();
        compare(&table(self)?, &table(other)?, "", &mut changed);
        Ok(changed)
    }
}

fn compare(one: &Table, other: &Table, section: &str, changed: &mut Vec<String>) {
    let keys: BTreeSet<_> = one.keys().chain(other.keys()).collect();
    for key in keys {
        let empty = Table::new();
        let name = format!("{section}{key}");
        match (one.get(key), other.get(key)) {
            (one, other) if one == other => {}
            (Some(Value::Table(one)), Some(Value::Table(other))) => {
                compare(one, other, &format!("{name}."), changed);
            }
            (Some(Value::Table(one)), None) => compare(one, &empty, &format!("{name}."), changed),
            (None, Some(Value::Table(other))) => {
                compare(&empty, other, &format!("{name}."), changed);
            }
            _ => changed.push(name),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn it_names_what_differs_and_nothing_else() {
        let one = Config::default();
        assert!(one.changes(&one).unwrap().is_empty());
        let mut other = one.clone();
        other.listen = vec!["127.0.0.1:1".parse().unwrap()];
        other.ephemeral = !one.ephemeral;
        other.tls.key = Some("key.pem".into());
        assert_eq!(one.changes(&other).unwrap(), ["ephemeral", "listen", "tls.key"]);
        assert_eq!(other.changes(&one).unwrap(), ["ephemeral", "listen", "tls.key"]);
    }
}
