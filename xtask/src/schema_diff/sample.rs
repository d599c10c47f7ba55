//! Values for a part of a schema: valid ones, at the edges above all, and near misses.

use serde_json::{Map, Value, json};

use super::pattern;
use super::random::Random;
use super::schemas::{Part, Schemas};

/// A value for the part; each choice goes wrong with a chance of `slip` percent.
pub(super) fn value(schemas: &Schemas, part: Part<'_>, slip: usize, random: &mut Random) -> Value {
    let part = schemas.resolve(part);
    if random.percent(slip / 4) {
        return anything(random);
    }
    let branches: Vec<_> = part.parts("oneOf").collect();
    if !branches.is_empty() {
        return value(schemas, *random.pick(&branches), slip, random);
    }
    if let Some(constant) = part.here.get("const") {
        return constant_or_other(schemas, constant, slip, random);
    }
    if let Some(choices) = part.here.get("enum").and_then(Value::as_array) {
        return constant_or_other(schemas, random.pick(choices), slip, random);
    }
    match part.text("type") {
        Some("string") => Value::String(text(part, slip, random)),
        Some("integer") => number(part, slip, random, &[0.0]),
        Some("number") => number(part, slip, random, &[0.0, 0.25, -0.125]),
        Some("boolean") => json!(random.percent(50)),
        Some("array") => array(schemas, part, slip, random),
        Some("object") => object(schemas, part, slip, random),
        _ if random.percent(50) => json!(random.pick(schemas.words())),
        _ => anything(random),
    }
}

/// Any JSON at all.
pub(super) fn anything(random: &mut Random) -> Value {
    let text = *random.pick(&ANYTHING);
    serde_json::from_str(text).unwrap_or_default()
}

#[rustfmt::skip] // one line for each JSON type
const ANYTHING: [&str; 37] = [
    "null", "true", "false",
    "0", "-0.0", "1", "1.0", "1.5", "-1", "1e2", "86400", "86401", "1e300", "-1e300", "5e-324",
    "9007199254740993", "18446744073709551615", "18446744073709551616", "-9223372036854775808",
    r#""""#, r#""accept""#, r#""reject""#, r#""critical""#, r#""1""#, r#""true""#, r#""\n""#,
    "[]", "[1, 1.0]", "[{}, {}]", "[null]", r#"["en", "en"]"#, "[[1], [1.0]]",
    "{}", r#"{"note": {"depth": [1, {"more": null}]}}"#, r#"{"a": 1}"#, r#"{"": {}}"#,
    r#"{"a/b~c": 0}"#,
];

fn constant_or_other(
    schemas: &Schemas,
    constant: &Value,
    slip: usize,
    random: &mut Random,
) -> Value {
    match constant {
        Value::String(_) if random.percent(slip) => json!(random.pick(schemas.words())),
        Value::String(text) if random.percent(slip) => Value::String(neighbour(text, random)),
        Value::Number(number) if random.percent(40) => json!(number.as_f64()),
        Value::Number(number) if random.percent(slip) => {
            json!(number.as_f64().map(|float| float + random.pick(&[0.5, -1.0, 1.0, 3.0])))
        }
        constant => constant.clone(),
    }
}

/// The text, one small edit away.
pub(super) fn neighbour(text: &str, random: &mut Random) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len() + 1);
    match random.below(8) {
        0 => return text.to_uppercase(),
        1 => return format!("{text}\n"),
        2 => return format!(" {text}"),
        3 => return text.replace(['.', '_', '-'], ""),
        4 if at < characters.len() => {
            characters.remove(at);
        }
        5 => characters.truncate(at),
        _ => characters.insert(at, *random.pick(&STRANGERS)),
    }
    characters.into_iter().collect()
}

/// Characters that one rule or another has an opinion on.
const STRANGERS: [char; 24] = [
    'a', 'Z', '0', '9', '_', '-', '.', ':', '/', '?', '#', '%', '@', '[', ']', ' ', '\n', '\r',
    '\u{2028}', 'é', '٣', '\u{301}', '😀', '\0',
];

fn text(part: Part<'_>, slip: usize, random: &mut Random) -> String {
    match (part.text("format"), part.text("pattern")) {
        (Some("date-time"), _) => date_time(slip, random),
        (Some("uri"), _) => uri(slip, random),
        (_, Some(pattern)) => pattern::sample(pattern, slip, random),
        _ => {
            let min = part.number("minLength").unwrap_or(0);
            let length = count(min, part.number("maxLength"), slip, random);
            // Numbered texts, so that a long list without repetition can be made of them.
            let max = part.number("maxLength");
            if random.percent(if max.is_none() { 70 } else { 30 }) && max.is_none_or(|max| max > 20)
            {
                return format!("text {}", random.below(1_000_000));
            }
            let alphabet = random.pick(&["a", "é", "😀", "aé😀", "\u{301}\n a"]);
            alphabet.chars().cycle().skip(random.below(3)).take(length).collect()
        }
    }
}

/// A length or number of items: within the limits and often on one; by a slip, just beyond.
fn count(min: i64, max: Option<i64>, slip: usize, random: &mut Random) -> usize {
    let short = min + random.below(4) as i64;
    let within = short.min(max.unwrap_or(short));
    let length = match (random.below(4), max) {
        (0, Some(max)) if random.percent(slip) => max + 1,
        (1, _) if random.percent(slip) => min - 1,
        (2, Some(max)) if random.percent(slip) => max + 1,
        (0, Some(max)) => max,
        (1, _) => min,
        _ => within,
    };
    usize::try_from(length).unwrap_or(0)
}

fn number(part: Part<'_>, slip: usize, random: &mut Random, fractions: &[f64]) -> Value {
    let min = part.number("minimum").unwrap_or(-5);
    let max = part.number("maximum");
    let base = match random.below(4) {
        0 => min,
        1 => max.unwrap_or(i64::MAX),
        2 => max.map_or(100, |max| min + (max - min) / 2),
        _ => min + random.below(9) as i64,
    };
    let step = if random.percent(slip) { *random.pick(&[-1, 1]) } else { 0 };
    let whole = base.saturating_add(step);
    if random.percent(slip / 4) {
        return random.pick(&[json!(u64::MAX), json!(1e300), json!(-1e300), json!(1e2)]).clone();
    }
    let fraction = if random.percent(slip) { 0.5 } else { *random.pick(fractions) };
    if fraction == 0.0 && random.percent(70) {
        return json!(whole);
    }
    json!(whole as f64 + fraction)
}

fn array(schemas: &Schemas, part: Part<'_>, slip: usize, random: &mut Random) -> Value {
    let min = part.number("minItems").unwrap_or(0);
    let max = part.number("maxItems").or(Some(3));
    let length = count(min, max, slip, random);
    let mut items: Vec<Value> = Vec::new();
    for place in part.parts("prefixItems").take(length) {
        items.push(value(schemas, place, slip, random));
    }
    let Some(item) = part.get("items") else {
        return Value::Array(items);
    };
    // Long arrays would hardly ever stay whole if each item slipped as often as a lone value does.
    let slip = slip / length.max(1);
    let mut attempts = 0;
    while items.len() < length {
        let next = value(schemas, item, slip, random);
        attempts += 1;
        if attempts > 8 * length || !items.contains(&next) || random.percent(slip) {
            items.push(next);
        }
    }
    Value::Array(items)
}

fn object(schemas: &Schemas, part: Part<'_>, slip: usize, random: &mut Random) -> Value {
    let required = schemas.required(part);
    let mut members = Map::new();
    let often = *random.pick(&[0, 20, 80]);
    for (name, member) in schemas.members(part) {
        let wanted = if required.contains(&name) {
            !random.percent(slip / 4)
        } else {
            random.percent(often)
        };
        if wanted {
            members.insert(name.to_owned(), value(schemas, member, slip / 2, random));
        }
    }
    if members.is_empty() && part.number("minProperties").is_some() && !random.percent(slip) {
        let all: Vec<_> = schemas.members(part).into_iter().collect();
        let (name, member) = random.pick(&all);
        members.insert((*name).to_owned(), value(schemas, *member, slip, random));
    }
    if random.percent(20)
        && part.get("additionalProperties").is_some_and(|part| part.here.is_object())
    {
        members.insert("corner".to_owned(), json!({"lamp": "on"}));
    }
    if random.percent(slip / 2) {
        members.insert("corner".to_owned(), anything(random));
    }
    Value::Object(members)
}

/// A date and time put together from good parts and bad ones.
pub(super) fn date_time(slip: usize, random: &mut Random) -> String {
    if random.percent(20) {
        return (*random.pick(&MOMENTS)).to_owned();
    }
    let mut part = |good: &[&str], bad: &[&str]| {
        let from = if random.percent(slip / 2) { bad } else { good };
        (*random.pick(from)).to_owned()
    };
    [
        part(
            &["2026", "2024", "2000", "0000", "9999"],
            &["1900", "2023", "26", "+2026", "２０２６"],
        ),
        part(&["-"], &["/", "", "−"]),
        part(&["01", "02", "04", "12", "09"], &["00", "13", "1", "aa"]),
        part(&["-"], &["/", ""]),
        part(&["01", "28", "30"], &["00", "29", "31", "32", "9"]),
        part(&["T", "T", "t"], &[" ", "", "TT", "_"]),
        part(&["00", "12", "23"], &["24", "-1", "7"]),
        part(&[":"], &["", "."]),
        part(&["00", "30", "59"], &["60", "5", "99"]),
        part(&[":"], &["", "."]),
        part(&["00", "30", "59"], &["60", "61", "5", "99"]),
        part(&["", "", ".0", ".123", ".123456", ".123456789012345"], &[".", ",5", ".1.2", ".x"]),
        part(
            &["Z", "z", "+00:00", "-00:00", "+05:30", "-08:00", "+23:59", "-23:59"],
            &["", "+24:00", "-01:60", "+0100", "+01", "Z\n", "ZZ", " Z", "UTC", "+1:00", "−01:00"],
        ),
    ]
    .concat()
}

/// Moments worth trying as they are.
const MOMENTS: [&str; 20] = [
    "2016-12-31T23:59:60Z",
    "2016-12-31t23:59:60.5z",
    "2016-12-31T15:59:60-08:00",
    "2017-01-01T05:29:60+05:30",
    "2017-01-01T00:58:60+00:59",
    "2017-01-01T23:58:60+23:59",
    "2016-12-31T00:00:60-23:59",
    "2016-12-31T22:59:60Z",
    "2016-12-31T23:58:60Z",
    "2016-12-31T23:59:60+01:00",
    "2026-06-15T23:59:60Z",
    "2024-02-29T00:00:00Z",
    "2023-02-29T00:00:00Z",
    "1900-02-29T00:00:00Z",
    "2000-02-29T00:00:00Z",
    "2026-02-03T09:30:00",
    "2026-02-03",
    "2026-02-03T09:30Z",
    "2026-02-03T09:30:00Z ",
    "2026-034T09:30:00Z",
];

pub(super) fn uri(slip: usize, random: &mut Random) -> String {
    let good = (*random.pick(&URIS)).to_owned();
    match random.below(3) {
        _ if !random.percent(slip) => format!("{good}{}", *random.pick(&["", "", "x", "1", "%20"])),
        0 => (*random.pick(&NOT_URIS)).to_owned(),
        _ => neighbour(&good, random),
    }
}

const URIS: [&str; 19] = [
    "https://desk.example/agents/one",
    "https://aaep-protocol.org/context/v1",
    "urn:example:lamp:v1",
    "mailto:help@desk.example",
    "HTTP://DESK.EXAMPLE:8080/a/b?c=d&e#f",
    "file:///tmp/x",
    "a:",
    "x+y-z.1:rest",
    "tel:+1-201-555-0123",
    "https://user:pw@desk.example/",
    "https://[2001:db8::1]:443/",
    "https://[::ffff:192.0.2.1]/",
    "https://[v1.fe80::a]/",
    "https://192.0.2.1/",
    "https://desk.example/%C3%A9",
    "https://desk.example?q=a?b/c",
    "data:text/plain,hi",
    "https://",
    "https:///path//x",
];

const NOT_URIS: [&str; 20] = [
    "",
    "desk.example",
    "/agents/one",
    "//desk.example/x",
    "?q",
    "#f",
    "1http://desk.example",
    "ht tp://desk.example",
    "https://desk.example/a b",
    "https://desk.example/é",
    "https://desk.example/%zz",
    "https://desk.example/%2",
    "https://[2001:db8::1/",
    "https://[12345::1]/",
    "https://desk.example:80x/",
    "https://a@b@c/",
    "https://desk.example/<x>",
    "https://desk.example/#a#b",
    ":nothing",
    "https://desk.example/\n",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_of_anything_is_json() {
        for text in ANYTHING {
            assert!(serde_json::from_str::<Value>(text).is_ok(), "{text}");
        }
    }
}
