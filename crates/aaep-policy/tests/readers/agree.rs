//! Whether a policy judges what another reader of JSON reads. The fuzz target `readers` uses this
//! file too.

use aaep_policy::Policy;
use serde_json::Value;

/// What another reader found at a place: a text, a number as it prints it, or a flag.
#[derive(Clone, Debug, PartialEq)]
pub enum Leaf {
    Text(String),
    Number(String),
    Flag(bool),
}

/// Every value that serde_json reads, with its pointer; `null` counts as missing everywhere.
pub fn leaves(value: &Value) -> Vec<(String, Leaf)> {
    let mut all = Vec::new();
    walk(value, String::new(), &mut all);
    all
}

fn walk(value: &Value, pointer: String, all: &mut Vec<(String, Leaf)>) {
    match value {
        Value::Null => {}
        Value::Bool(flag) => all.push((pointer, Leaf::Flag(*flag))),
        Value::Number(number) => all.push((pointer, Leaf::Number(number.to_string()))),
        Value::String(text) => all.push((pointer, Leaf::Text(text.clone()))),
        Value::Array(list) => {
            for (index, item) in list.iter().enumerate() {
                walk(item, format!("{pointer}/{index}"), all);
            }
        }
        Value::Object(members) => {
            for (name, item) in members {
                let name = name.replace('~', "~0").replace('/', "~1");
                walk(item, format!("{pointer}/{name}"), all);
            }
        }
    }
}

/// A text as TOML writes it, which is nearly as JSON does.
fn quoted(text: &str) -> String {
    serde_json::to_string(text).unwrap_or_default().replace('\u{7f}', "\\u007f")
}

/// What the policy makes of a value that another reader found in this document: `Some(false)` if it
/// judges another one, `None` if it judges none there or no rule can name it.
pub fn agrees(document: &str, (pointer, leaf): &(String, Leaf)) -> Option<bool> {
    let wanted = match leaf {
        Leaf::Text(text) => quoted(text),
        Leaf::Number(number) => format!("{{ at_least = {number}, at_most = {number} }}"),
        Leaf::Flag(flag) => flag.to_string(),
    };
    let rule = format!(
        "[[rule]]\ntool = \"t\"\nwhere = {{ {} = {wanted} }}\nrisk_level = \"low\"\nreversibility = \"reversible\"\nverdict = \"silent\"\n",
        quoted(pointer)
    );
    let ruling = Policy::parse(&rule).ok()?.decide("t", document);
    if ruling.rule.is_some() {
        return Some(true);
    }
    ruling.why().iter().any(|line| line.contains("does not count")).then_some(false)
}
