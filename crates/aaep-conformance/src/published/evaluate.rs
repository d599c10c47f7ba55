//! Walks a message along a table and collects every violation.

use serde_json::{Map, Number, Value};

use super::table::{CORE_CONTEXT, Kind, LONGEST_RESPONSE, List, Member, Object, Others, Rule};
use super::{Violation, formats, uniqueness};

/// Judges a whole message by an object's table.
pub(super) fn object(table: &Object, message: &Value) -> Vec<Violation> {
    let mut walk = Walk::default();
    match message {
        Value::Object(members) => walk.members(table, members),
        _ => walk.blame("Make the message a JSON object.".to_owned()),
    }
    walk.violations
}

/// Where the walk is, and what it has found. It goes as deep as the tables do, and no deeper.
#[derive(Default)]
struct Walk {
    pointer: String,
    violations: Vec<Violation>,
}

impl Walk {
    fn blame(&mut self, text: String) {
        self.violations.push(Violation { pointer: self.pointer.clone(), text });
    }

    /// Judges one member or item, with the pointer on it.
    fn step_into(&mut self, token: &str, judge: impl FnOnce(&mut Self)) {
        let length = self.pointer.len();
        self.pointer.push('/');
        // RFC 6901 §3: `~` and `/` are escaped, in this order.
        self.pointer.push_str(&token.replace('~', "~0").replace('/', "~1"));
        judge(self);
        self.pointer.truncate(length);
    }

    /// Missing members in the table's order, then those that are there, in the message's.
    fn members(&mut self, table: &Object, members: &Map<String, Value>) {
        for row in table.rows().filter(|row| row.required && !members.contains_key(row.name)) {
            self.blame(format!("Add `{}`: it has to be {}.", row.name, row.kind));
        }
        for (name, value) in members {
            self.step_into(name, |walk| match table.rows().find(|row| row.name == name) {
                Some(row) => walk.value(row.kind, value),
                None => walk.other(table.others, value),
            });
        }
        if let Some(rule) = table.rule {
            self.rule(rule, members);
        }
    }

    /// A member that has no row.
    fn other(&mut self, others: Others, value: &Value) {
        match others {
            Others::Anything => {}
            Others::Objects if value.is_object() => {}
            Others::Objects => {
                self.blame("Remove this, or make it an object if it is an extension's.".to_owned());
            }
            Others::Forbidden => {
                self.blame("Remove this: no such member is allowed here.".to_owned());
            }
        }
    }

    fn rule(&mut self, rule: Rule, members: &Map<String, Value>) {
        match rule {
            Rule::NotEmpty if members.is_empty() => {
                self.blame("Add at least one member to this object.".to_owned());
            }
            Rule::IrreversibleDefaultsToReject if accepts_the_irreversible(members) => {
                self.step_into("default_decision", |walk| {
                    walk.blame(
                        "Make this `reject`: an irreversible action of medium or high risk is \
                         never accepted by default (§6.4.1)."
                            .to_owned(),
                    );
                });
            }
            Rule::NotEmpty | Rule::IrreversibleDefaultsToReject => {}
        }
    }

    fn value(&mut self, kind: Kind, value: &Value) {
        match (kind, value) {
            (Kind::Object(table), Value::Object(members)) => self.members(table, members),
            (Kind::List(list), Value::Array(items)) => self.list(list, items),
            (Kind::Context, Value::Array(items)) => self.context(items),
            _ if fits(kind, value) => {}
            _ => self.blame(format!("Make this {kind}.")),
        }
    }

    fn list(&mut self, list: &List, items: &[Value]) {
        if items.len() < list.min || list.max.is_some_and(|max| items.len() > max) {
            self.blame(format!("Make this {list}."));
        }
        for (at, item) in items.iter().enumerate() {
            self.step_into(&at.to_string(), |walk| walk.value(list.item, item));
        }
        if list.unique {
            for at in uniqueness::repeated(items) {
                self.step_into(&at.to_string(), |walk| {
                    walk.blame("Remove this item: it repeats an earlier one.".to_owned());
                });
            }
        }
    }

    /// §3.2.1: the core context comes first, and what follows are URIs.
    fn context(&mut self, items: &[Value]) {
        if items.is_empty() {
            self.blame(format!("Make this {}.", Kind::Context));
        }
        for (at, item) in items.iter().enumerate() {
            let kind = if at == 0 { Kind::Exactly(CORE_CONTEXT) } else { Kind::Uri };
            self.step_into(&at.to_string(), |walk| walk.value(kind, item));
        }
    }
}

impl Object {
    /// The object's own rows, then the shared ones that none of them replaces.
    fn rows(&self) -> impl Iterator<Item = &Member> {
        let replaced = |row: &&Member| !self.members.iter().any(|own| own.name == row.name);
        self.members.iter().chain(self.shared.iter().filter(replaced))
    }
}

/// Whether a value that holds no rows of its own is of the kind asked for.
fn fits(kind: Kind, value: &Value) -> bool {
    match (kind, value) {
        (Kind::Text { min, max }, Value::String(text)) => has_length(text, min, max),
        (Kind::Exactly(expected), Value::String(text)) => text == expected,
        (Kind::OneOf(choices), Value::String(text)) => choices.contains(&text.as_str()),
        (Kind::Shaped(shape), Value::String(text)) => shape.fits(text),
        (Kind::DateTime, Value::String(text)) => formats::is_date_time(text),
        (Kind::Uri, Value::String(text)) => formats::is_uri(text),
        (Kind::Integer { min, max }, Value::Number(number)) => {
            is_integer(number) && is_within(number, min, max)
        }
        (Kind::Number { min, max }, Value::Number(number)) => is_within(number, min, Some(max)),
        (Kind::Context, Value::String(text)) => text == CORE_CONTEXT,
        (Kind::Response, Value::String(text)) => has_length(text, 1, Some(LONGEST_RESPONSE)),
        (Kind::Boolean | Kind::Response, Value::Bool(_))
        | (Kind::AnyObject, Value::Object(_))
        | (Kind::Response, Value::Number(_)) => true,
        _ => false,
    }
}

/// Lengths count code points, so that a text may be as long in one script as in another.
fn has_length(text: &str, min: usize, max: Option<usize>) -> bool {
    let length = text.chars().count();
    length >= min && max.is_none_or(|max| length <= max)
}

/// `1.0` and `1e2` are integers too.
fn is_integer(number: &Number) -> bool {
    number.is_i64() || number.is_u64() || number.as_f64().is_some_and(|float| float.fract() == 0.0)
}

/// The bounds are small, so that comparing as floats cannot round a number across one.
fn is_within(number: &Number, min: u32, max: Option<u32>) -> bool {
    number.as_f64().is_some_and(|float| {
        float >= f64::from(min) && max.is_none_or(|max| float <= f64::from(max))
    })
}

// enforces: C16
/// Looks at the members as they are, well-formed or not: a broken one is reported by its own row.
fn accepts_the_irreversible(members: &Map<String, Value>) -> bool {
    let text = |name| members.get(name).and_then(Value::as_str);
    members.get("irreversible") == Some(&Value::Bool(true))
        && matches!(text("risk_level"), Some("medium" | "high"))
        && text("default_decision") == Some("accept")
}
