//! Structural mutations: documents of the vectors with a few things changed, always the same ones.

use serde_json::{Map, Value, json};

/// A small generator (xorshift), so that a run can be repeated.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    pub fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % bound.max(1)
    }

    pub fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

#[rustfmt::skip] // one word a line would fill pages
const NAMES: &[&str] = &[
    "corner", "aaep_corner", "@id", "@graph", "extensions", "summary_normal_yo",
    "summary_terse_x1", "summary_detailed_de_AT", "summary_normal_de-a-b",
    "summary_normal_english", "question_fr", "urgency", "sequence_number", "other", "description",
    "chunk_yo", "tool_yo", "a/b~c", "",
];

#[rustfmt::skip] // one word a line would fill pages
const STRINGS: &[&str] = &[
    "", "x", " ", "critical", "Critical", "normal", "background", "high", "medium", "low",
    "accept", "reject", "irreversible", "reversible", "reversible_with_effort", "multiple_choice",
    "freetext", "yes_no", "true", "3", "user", "success", "timeout", "human", "sentence", "none",
    "terse", "auto", "ltr", "unknown", "rate_limit", "evt_1", "sess_1", "call_1", "out_1",
    "sub_1", "rpl_1", "rpl_", "evt_1\n", "sess_é", "en", "EN", "en-US", "en_US", "e", "x-a",
    "i-klingon", "zh-Hant-TW", "a-b", "Latn", "latn", "text/plain", "text/", "AB_1", "ab_1",
    "1.0.0", "1.1.0", "2.0.0", "1.0", "1.0.0-a", "1.0.0-01", "1.0.0+b", "2026-05-24T14:22:11Z",
    "2026-05-24T14:22:11.3Z", "2026-05-24t14:22:11z", "2026-02-29T00:00:00Z",
    "2024-02-29T00:00:00.000Z", "2026-05-24T24:00:00Z", "2026-05-24T14:22:11",
    "2026-05-24T14:22:60Z", "2026-12-31T23:59:60Z", "2027-01-01T00:59:60+01:00", "2026-05-24",
    "2026-05-24T14:22:11.123456+23:59", "2026-05-24T14:22:11+24:00", "0000-01-01T00:00:00Z",
    "2026-05-24T14:22:11-00:00", "2026-05-24T14:22:11.123456789Z", "2026-05-24T14:22:11.Z",
    "https://example.org/x", "urn:x:y", "example.org", "//x", "https://exa mple.org",
    "https://é.org", "mailto:a@b", "http://[::1", "http://[::1]:80/", "a:", "1a:b", "a:b%zz",
    "https://aaep-protocol.org/context/v1", "aaep:agent.tool.invoked",
    "https://aaep-protocol.org/types/agent.tool.invoked", "aaep:x", "soil:x",
    "https://aaep-protocol.org/vocab/v1#agent.nothing", "xsd:x", "rdf:", "@a:b", "soil:x.reply",
    "a b:c", "https://example.org/#t", "subscription.close", "confirmation.reply",
    "aaep:producer.manifest", "subscription.other", "Two words.", "שלום", "e\u{301}", "\u{202e}x",
    "a\u{0}b", "eyJ9.e30.c2ln",
];

/// Written into the text as they stand: a parsed number would lose its spelling.
#[rustfmt::skip] // one word a line would fill pages
const NUMBERS: &[&str] = &[
    "0", "1", "2", "3", "4", "-1", "-0", "0.0", "-0.0", "1.0", "1e2", "1E+2", "3.5", "100",
    "100.0", "100.5", "1e-3", "86400", "86401", "86400000", "86400001", "100000", "100001", "50",
    "49", "1000", "1001", "9007199254740992", "9007199254740993", "9007199254740991.0",
    "9.007199254740992e15", "9.1e15", "-9007199254740992", "18446744073709551615", "1e300",
    "1e999", "0.1e1", "5e-324",
];

const LENGTHS: &[usize] =
    &[1, 2, 4, 63, 64, 65, 68, 69, 70, 255, 256, 257, 1024, 1025, 4096, 4097, 16384, 16385];
const COUNTS: &[usize] = &[0, 1, 2, 3, 4, 5, 16, 17, 32, 33, 64, 65, 256, 257];

/// A step towards a value.
#[derive(Clone)]
enum Step {
    Name(String),
    Index(usize),
}

/// The documents that mutations start from and borrow members of.
pub struct Mutator {
    sound: Vec<Value>,
    broken: Vec<Value>,
}

impl Mutator {
    pub fn new(sound: Vec<Value>, broken: Vec<Value>) -> Self {
        Self { sound, broken }
    }

    /// The text of one more document with one to three changes.
    pub fn text(&self, random: &mut Random) -> String {
        // What is broken already is mostly rejected for that; a few show that reasons add up.
        let from = if random.below(8) == 0 { &self.broken } else { &self.sound };
        let mut document = random.pick(from).clone();
        for _ in 0..*random.pick(&[1, 1, 1, 1, 2, 3]) {
            self.change(&mut document, random);
        }
        with_numbers(&document)
    }

    fn change(&self, document: &mut Value, random: &mut Random) {
        let mut ways = Vec::new();
        find(document, &mut Vec::new(), &mut ways);
        // Half of the changes are at the outermost level, where most rules are.
        let outer: Vec<_> = ways.iter().filter(|way| way.len() <= 1).cloned().collect();
        let among = if random.below(2) == 0 { &outer } else { &ways };
        let way = random.pick(among).clone();
        let other = random.pick(&ways).clone();
        match random.below(15) {
            0 => remove(document, &way),
            1 => rename(document, &way, random),
            2 => set(document, &way, retyped(random)),
            3 => set(document, &way, json!(of_length(random))),
            4 => add(document, &way, NAMES[random.below(NAMES.len())], value(random)),
            5 | 6 => set(document, &way, json!(random.pick(STRINGS))),
            7 => set(document, &way, number(random)),
            8 => swap(document, &way, &other),
            9 => resize(document, &way, random),
            _ => self.borrow(document, random),
        }
    }

    /// Takes a member over from another document, mostly one of the same type.
    fn borrow(&self, document: &mut Value, random: &mut Random) {
        let kin: Vec<_> =
            self.sound.iter().filter(|other| other["type"] == document["type"]).collect();
        let lender = match random.below(5) {
            0 => random.pick(&self.sound),
            _ if kin.is_empty() => return,
            _ => random.pick(&kin),
        };
        let Some(lent) = lender.as_object() else { return };
        if let Some((name, value)) = lent.iter().nth(random.below(lent.len())) {
            add(document, &[], name, value.clone());
        }
    }
}

fn find(value: &Value, way: &mut Vec<Step>, ways: &mut Vec<Vec<Step>>) {
    ways.push(way.clone());
    let mut enter = |step: Step, value: &Value| {
        way.push(step);
        find(value, way, ways);
        way.pop();
    };
    match value {
        Value::Object(members) => {
            members.iter().for_each(|(name, value)| enter(Step::Name(name.clone()), value))
        }
        Value::Array(items) => {
            items.iter().enumerate().take(3).for_each(|(at, value)| enter(Step::Index(at), value))
        }
        _ => {}
    }
}

fn walk<'v>(document: &'v mut Value, way: &[Step]) -> Option<&'v mut Value> {
    way.iter().try_fold(document, |value, step| match step {
        Step::Name(name) => value.get_mut(name),
        Step::Index(at) => value.get_mut(at),
    })
}

fn set(document: &mut Value, way: &[Step], value: Value) {
    // The whole document stays an object: what is none is tested elsewhere.
    if let Some(place) = walk(document, way).filter(|_| !way.is_empty()) {
        *place = value;
    }
}

fn remove(document: &mut Value, way: &[Step]) {
    let Some((last, parent)) = way.split_last() else { return };
    match (walk(document, parent), last) {
        (Some(Value::Object(members)), Step::Name(name)) => drop(members.shift_remove(name)),
        (Some(Value::Array(items)), Step::Index(at)) => drop(items.remove(*at)),
        _ => {}
    }
}

fn rename(document: &mut Value, way: &[Step], random: &mut Random) {
    let Some((Step::Name(old), parent)) = way.split_last() else { return };
    let Some(Value::Object(members)) = walk(document, parent) else { return };
    let new = match random.below(5) {
        0 => old.to_uppercase(),
        1 => format!("{old}s"),
        2 => format!("{old}_de"),
        3 => format!("{old}_pt_BR"),
        _ => (*random.pick(NAMES)).to_owned(),
    };
    let renamed: Map<_, _> = members
        .iter()
        .map(|(name, value)| (if name == old { new.clone() } else { name.clone() }, value.clone()))
        .collect();
    *members = renamed;
}

/// Adds a member to the object at or above the place.
fn add(document: &mut Value, way: &[Step], name: &str, value: Value) {
    for length in (0..=way.len()).rev() {
        if let Some(Value::Object(members)) = walk(document, &way[..length]) {
            members.insert(name.to_owned(), value);
            return;
        }
    }
}

fn swap(document: &mut Value, one: &[Step], other: &[Step]) {
    let (Some(a), Some(b)) = (walk(document, one).cloned(), walk(document, other).cloned()) else {
        return;
    };
    set(document, one, b);
    set(document, other, a);
}

fn resize(document: &mut Value, way: &[Step], random: &mut Random) {
    let count = *random.pick(COUNTS);
    let different = random.below(3) > 0;
    match walk(document, way) {
        Some(Value::Array(items)) => {
            let first = items.first().cloned().unwrap_or(json!("en"));
            let alter = |number: usize| match &first {
                Value::String(text) if different => json!(format!("{text}{number}")),
                Value::Object(members) if different => {
                    let mut members = members.clone();
                    members.insert("value".into(), json!(format!("v{number}")));
                    Value::Object(members)
                }
                other => other.clone(),
            };
            *items = (0..count).map(alter).collect();
        }
        Some(place) => *place = json!([place.clone()]),
        None => {}
    }
}

fn of_length(random: &mut Random) -> String {
    let length = *random.pick(LENGTHS);
    let prefix = *random.pick(&["", "", "", "evt_", "sess_", "call_", "rpl_", "sub_"]);
    let letter = *random.pick(&["a", "a", "Z", "é", "😀"]);
    prefix.to_owned() + &letter.repeat(length.saturating_sub(prefix.len()))
}

fn number(random: &mut Random) -> Value {
    json!(format!("<<{}>>", random.pick(NUMBERS)))
}

fn retyped(random: &mut Random) -> Value {
    let values = [
        json!(null),
        json!(true),
        json!(false),
        json!(1),
        json!(""),
        json!("x"),
        json!([]),
        json!({}),
        json!([null]),
        json!({ "a": 1 }),
        json!(["en"]),
        json!([[]]),
        json!({ "soil": {} }),
    ];
    random.pick(&values).clone()
}

fn value(random: &mut Random) -> Value {
    match random.below(3) {
        0 => json!(random.pick(STRINGS)),
        1 => number(random),
        _ => retyped(random),
    }
}

/// A string of the list, with a few characters dropped, doubled or exchanged.
pub fn near_string(random: &mut Random) -> String {
    let mut text: Vec<char> = random.pick(STRINGS).chars().collect();
    let letters: Vec<char> = "aZ09.:/-_+~#?%@[]TtZz \n\u{e9}".chars().collect();
    for _ in 0..random.below(3) {
        let at = random.below(text.len() + 1);
        match random.below(3) {
            0 if at < text.len() => drop(text.remove(at)),
            1 if at < text.len() => text[at] = *random.pick(&letters),
            _ => text.insert(at, *random.pick(&letters)),
        }
    }
    text.into_iter().collect()
}

/// The document's text, with the numbers as they are spelled.
fn with_numbers(document: &Value) -> String {
    document.to_string().replace("\"<<", "").replace(">>\"", "")
}
