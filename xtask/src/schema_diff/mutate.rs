//! Documents to judge: examples and samples, with a few things changed.

use aaep_conformance::published::{self, Schema};
use serde_json::{Value, json};

use super::random::Random;
use super::sample;
use super::schemas::{Part, Schemas};

/// One document, and the schema it was made from.
pub(super) fn document(
    schemas: &Schemas,
    examples: &[(Schema, Value)],
    random: &mut Random,
) -> (Schema, Value) {
    let all: Vec<_> = published::all().collect();
    let schema = *random.pick(&all);
    let own: Vec<_> = examples.iter().filter(|(from, _)| *from == schema).collect();
    let mut document = if own.is_empty() || random.percent(25) {
        sample::value(schemas, schemas.root(schema), *random.pick(&[0, 0, 4, 10]), random)
    } else {
        random.pick(&own).1.clone()
    };
    let edits = *random.pick(&[0, 1, 1, 1, 1, 2, 2, 3]);
    for _ in 0..edits {
        if random.percent(65) {
            fill_in(schemas, schemas.root(schema), &mut document, random);
        } else {
            damage(schemas, &mut document, random);
        }
    }
    (schema, document)
}

/// A place that a schema speaks of, whether there is a value or not.
struct Place<'a> {
    /// The way to the place from the document's root.
    way: Vec<Step>,
    part: Part<'a>,
}

#[derive(Clone)]
enum Step {
    Member(String),
    Item(usize),
}

/// Puts a value made for it, or nearly, into a place that the schema speaks of.
fn fill_in(schemas: &Schemas, root: Part<'_>, document: &mut Value, random: &mut Random) {
    let mut places = Vec::new();
    find_places(schemas, root, document, &mut Vec::new(), &mut places);
    places.retain(|place| !place.way.is_empty());
    if places.is_empty() {
        return;
    }
    let place = random.pick(&places);
    let slip = *random.pick(&[0, 0, 15, 40, 80]);
    let value = sample::value(schemas, place.part, slip, random);
    put(document, &place.way, value);
}

fn find_places<'a>(
    schemas: &'a Schemas,
    part: Part<'a>,
    value: &Value,
    way: &mut Vec<Step>,
    places: &mut Vec<Place<'a>>,
) {
    let part = schemas.resolve(part);
    places.push(Place { way: way.clone(), part });
    for branch in part.parts("oneOf") {
        find_places(schemas, branch, value, way, places);
    }
    match value {
        Value::Object(members) => {
            for (name, member) in schemas.members(part) {
                way.push(Step::Member(name.to_owned()));
                match members.get(name) {
                    Some(value) => find_places(schemas, member, value, way, places),
                    None => places.push(Place { way: way.clone(), part: member }),
                }
                way.pop();
            }
        }
        Value::Array(items) => {
            let first: Vec<_> = part.parts("prefixItems").collect();
            for (at, item) in items.iter().enumerate().take(4) {
                if let Some(part) = first.get(at).copied().or_else(|| part.get("items")) {
                    way.push(Step::Item(at));
                    find_places(schemas, part, item, way, places);
                    way.pop();
                }
            }
        }
        _ => {}
    }
}

fn put(document: &mut Value, way: &[Step], value: Value) {
    let Some((last, before)) = way.split_last() else {
        *document = value;
        return;
    };
    match (walk(document, before), last) {
        (Some(Value::Object(members)), Step::Member(name)) => {
            members.insert(name.clone(), value);
        }
        (Some(Value::Array(items)), Step::Item(at)) if *at < items.len() => items[*at] = value,
        _ => {}
    }
}

fn walk<'v>(document: &'v mut Value, way: &[Step]) -> Option<&'v mut Value> {
    way.iter().try_fold(document, |value, step| match step {
        Step::Member(name) => value.get_mut(name),
        Step::Item(at) => value.get_mut(at),
    })
}

/// Changes something without asking any schema.
fn damage(schemas: &Schemas, document: &mut Value, random: &mut Random) {
    let mut ways = Vec::new();
    find_ways(document, &mut Vec::new(), &mut ways);
    let way = random.pick(&ways).clone();
    let other = random.pick(&ways).clone();
    match random.below(12) {
        0 => swap(document, &way, &other),
        1 => put(document, &way, sample::anything(random)),
        2 => set_type(document, random),
        3 => set_context(document, random),
        4 => rename(document, &way, random),
        5 => {
            if let Some(Value::Object(members)) =
                walk(document, &way[..way.len().saturating_sub(1)])
            {
                members.insert((*random.pick(&NAMES)).to_owned(), sample::anything(random));
            }
        }
        6 => remove(document, &way),
        _ => {
            if let Some(value) = walk(document, &way) {
                change(schemas, value, random);
            }
        }
    }
}

/// Names for members that nobody asked for, or that belong elsewhere.
const NAMES: [&str; 12] = [
    "corner",
    "",
    "Type",
    "type ",
    "a/b~c",
    "summary_normal_yo",
    "aaep_custom",
    "@id",
    "choices",
    "progress",
    "risk_level",
    "response",
];

fn find_ways(value: &Value, way: &mut Vec<Step>, ways: &mut Vec<Vec<Step>>) {
    ways.push(way.clone());
    match value {
        Value::Object(members) => {
            for (name, value) in members {
                way.push(Step::Member(name.clone()));
                find_ways(value, way, ways);
                way.pop();
            }
        }
        Value::Array(items) => {
            for (at, value) in items.iter().enumerate().take(4) {
                way.push(Step::Item(at));
                find_ways(value, way, ways);
                way.pop();
            }
        }
        _ => {}
    }
}

fn swap(document: &mut Value, one: &[Step], other: &[Step]) {
    let (Some(first), Some(second)) =
        (walk(document, one).cloned(), walk(document, other).cloned())
    else {
        return;
    };
    put(document, one, second);
    put(document, other, first);
}

fn set_type(document: &mut Value, random: &mut Random) {
    let names: Vec<&str> = published::CoreEvent::ALL
        .iter()
        .map(|event| event.type_name())
        .chain(published::HandshakeMessage::ALL.iter().map(|kind| kind.type_name()))
        .chain(["aaep:agent.new.thing", "desk:lamp.lit", "x", "", "subscription.close"])
        .collect();
    let name = random.pick(&names);
    let name =
        if random.percent(20) { sample::neighbour(name, random) } else { (*name).to_owned() };
    put(document, &[Step::Member("type".to_owned())], Value::String(name));
}

fn set_context(document: &mut Value, random: &mut Random) {
    let core = "https://aaep-protocol.org/context/v1";
    let choices = [
        json!(core),
        json!([core]),
        json!([core, core]),
        json!([core, sample::uri(50, random)]),
        json!([core, "urn:example:lamp:v1", sample::uri(50, random)]),
        json!([sample::uri(0, random), core]),
        json!([core, null]),
        json!([core, {}]),
        json!([sample::neighbour(core, random)]),
        json!(sample::neighbour(core, random)),
        json!([]),
        json!({"@vocab": core}),
    ];
    put(document, &[Step::Member("@context".to_owned())], random.pick(&choices).clone());
}

/// Moves a member to another name, or copies it there.
fn rename(document: &mut Value, way: &[Step], random: &mut Random) {
    let Some((Step::Member(name), before)) = way.split_last() else {
        return;
    };
    if let Some(Value::Object(members)) = walk(document, before) {
        let to = sample::neighbour(name, random);
        let kept = random.percent(50);
        if let Some(value) = if kept { members.get(name).cloned() } else { members.remove(name) } {
            members.insert(to, value);
        }
    }
}

fn remove(document: &mut Value, way: &[Step]) {
    let Some((last, before)) = way.split_last() else {
        return;
    };
    match (walk(document, before), last) {
        (Some(Value::Object(members)), Step::Member(name)) => {
            members.shift_remove(name);
        }
        (Some(Value::Array(items)), Step::Item(at)) if *at < items.len() => {
            items.remove(*at);
        }
        _ => {}
    }
}

/// Changes a value within its own JSON type, more or less.
fn change(schemas: &Schemas, value: &mut Value, random: &mut Random) {
    match value {
        Value::Null => *value = sample::anything(random),
        Value::Bool(it) => {
            *value = if random.percent(70) { json!(!*it) } else { json!(it.to_string()) }
        }
        Value::Number(number) => {
            let float = number.as_f64().unwrap_or(0.0);
            let choices = [
                json!(float),
                json!(float + 0.5),
                json!(-float),
                json!(number.to_string()),
                json!(0),
                json!(-1),
                json!(1.0),
                json!(86_400),
                json!(86_401),
                json!(1e2),
                json!(1e300),
            ];
            *value = random.pick(&choices).clone();
        }
        Value::String(text) => {
            *value = json!(match random.below(9) {
                6 => random.pick(schemas.words()).clone(),
                0 => String::new(),
                1 => format!("{text}\n"),
                2 => sample::date_time(30, random),
                3 => sample::uri(30, random),
                4 => "😀".repeat(*random.pick(&[64, 65, 256, 257])),
                5 => "é".repeat(*random.pick(&[1_024, 1_025, 4_096, 4_097, 16_384, 16_385])),
                _ => sample::neighbour(text, random),
            });
        }
        Value::Array(items) => match random.below(5) {
            0 => items.clear(),
            1 => items.extend(items.clone()),
            2 => items.push(sample::anything(random)),
            3 => items.truncate(1),
            _ => items.extend(items.first().cloned()),
        },
        Value::Object(members) => match random.below(3) {
            0 => members.clear(),
            _ => {
                members.insert((*random.pick(&NAMES)).to_owned(), sample::anything(random));
            }
        },
    }
}
