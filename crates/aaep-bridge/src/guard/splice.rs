//! Pieces put into somebody's settings, and taken out again: everything else stays as it is, to the
//! byte.

use aaep_types::json::Members;
use serde_json::Value;

/// How deep a settings file may be.
const DEPTH: usize = 127;

/// Why nothing can be put into a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum NoPlace {
    /// It is no JSON object, or says something twice.
    NotReadable,
    /// Something else stands where our piece would.
    Taken(String),
}

/// A piece of text, and where it goes.
struct Piece {
    at: usize,
    text: String,
}

/// Puts `groups`, lists by the names of events, into the object `hooks` of a settings file. Returns the
/// new text and the pieces that are new in it.
pub(super) fn insert(
    text: &str,
    groups: &[(&str, Value)],
) -> Result<(String, Vec<String>), NoPlace> {
    check(text)?;
    let bytes = text.as_bytes();
    let root = blank(bytes, 0);
    let mut pieces = Vec::new();
    match member(text, root, "hooks") {
        None => {
            let hooks: serde_json::Map<String, Value> = groups
                .iter()
                .map(|(event, group)| ((*event).to_owned(), Value::Array(vec![group.clone()])))
                .collect();
            let hooks = format!("\"hooks\": {}", pretty(&Value::Object(hooks), 1));
            pieces.push(first_in(bytes, root, &hooks, 1));
        }
        Some(hooks) if bytes[hooks] == b'{' => {
            let mut missing = Vec::new();
            for (event, group) in groups {
                match member(text, hooks, event) {
                    None => missing.push(format!(
                        "\"{event}\": {}",
                        pretty(&Value::Array(vec![group.clone()]), 2)
                    )),
                    Some(list) if bytes[list] == b'[' => {
                        pieces.push(first_in(bytes, list, &pretty(group, 3), 3));
                    }
                    Some(_) => return Err(NoPlace::Taken(format!("hooks.{event}"))),
                }
            }
            if !missing.is_empty() {
                let missing = missing.join(",\n    ");
                pieces.push(first_in(bytes, hooks, &missing, 2));
            }
        }
        Some(_) => return Err(NoPlace::Taken("hooks".into())),
    }
    pieces.sort_by_key(|piece| std::cmp::Reverse(piece.at));
    let mut out = text.to_owned();
    for piece in &pieces {
        out.insert_str(piece.at, &piece.text);
    }
    let readable = serde_json::from_str::<Value>(&out).is_ok();
    match readable {
        true => Ok((out, pieces.into_iter().map(|piece| piece.text).collect())),
        false => Err(NoPlace::NotReadable),
    }
}

/// Takes pieces out again. None if one is not there exactly once.
pub(super) fn cut(text: &str, pieces: &[String]) -> Option<String> {
    let mut out = text.to_owned();
    for piece in pieces {
        let mut places = out.match_indices(piece.as_str());
        let (at, _) = places.next()?;
        if places.next().is_some() {
            return None;
        }
        out.replace_range(at..at + piece.len(), "");
    }
    Some(out)
}

fn check(text: &str) -> Result<(), NoPlace> {
    let object = serde_json::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    let members = Members::whole(text, DEPTH).ok().flatten();
    let plain = members.is_some_and(|members| members.ambiguity().is_none());
    if object && plain { Ok(()) } else { Err(NoPlace::NotReadable) }
}

fn pretty(value: &Value, depth: usize) -> String {
    let text = serde_json::to_string_pretty(value).unwrap_or_default();
    text.replace('\n', &format!("\n{}", "  ".repeat(depth)))
}

/// A piece that comes first in the object or list that begins here.
fn first_in(bytes: &[u8], open: usize, text: &str, depth: usize) -> Piece {
    let empty = matches!(bytes.get(blank(bytes, open + 1)), Some(b'}' | b']'));
    let (space, outer) = ("  ".repeat(depth), "  ".repeat(depth.saturating_sub(1)));
    let end = if empty { format!("\n{outer}") } else { ",".to_owned() };
    Piece { at: open + 1, text: format!("\n{space}{text}{end}") }
}

/// Where the value of this member begins, in the object that begins at `open`. The text is known to be
/// JSON.
fn member(text: &str, open: usize, name: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    let mut at = blank(bytes, open + 1);
    while bytes.get(at) == Some(&b'"') {
        let end = value_end(bytes, at);
        let key: String = serde_json::from_str(text.get(at..end)?).ok()?;
        let value = blank(bytes, blank(bytes, end) + 1);
        if key == name {
            return Some(value);
        }
        at = blank(bytes, value_end(bytes, value));
        if bytes.get(at) == Some(&b',') {
            at = blank(bytes, at + 1);
        }
    }
    None
}

fn blank(bytes: &[u8], mut at: usize) -> usize {
    while bytes.get(at).is_some_and(u8::is_ascii_whitespace) {
        at += 1;
    }
    at
}

/// Where the value that begins here ends.
fn value_end(bytes: &[u8], start: usize) -> usize {
    let (mut at, mut depth, mut quoted) = (start, 0_usize, false);
    while let Some(&byte) = bytes.get(at) {
        match byte {
            b'\\' if quoted => at += 1,
            b'"' => {
                quoted = !quoted;
                if !quoted && depth == 0 {
                    return at + 1;
                }
            }
            _ if quoted => {}
            b'{' | b'[' => depth += 1,
            b'}' | b']' if depth == 0 => return at,
            b'}' | b']' => {
                depth -= 1;
                if depth == 0 {
                    return at + 1;
                }
            }
            b',' if depth == 0 => return at,
            _ if depth == 0 && byte.is_ascii_whitespace() => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn groups() -> Vec<(&'static str, Value)> {
        vec![("Before", json!({ "n": 1 })), ("After", json!({ "n": 2 }))]
    }

    #[test]
    fn pieces_go_in_and_come_out_to_the_byte() {
        for text in [
            "{}",
            "{ }\n",
            "\n\t{\"a\" : 1.50 , \"b\":[1,2]}",
            r#"{"hooks":{}}"#,
            r#"{"x":"}{\"","hooks" : { "Before":[ ], "After" : [{"y":"]"}] } ,"z":null}"#,
            "{\r\n  \"hooks\": {\r\n    \"Other\": [1]\r\n  }\r\n}\r\n",
            r#"{"h\u006foks":{"Before":[7]}}"#,
        ] {
            let (with, pieces) = insert(text, &groups()).unwrap();
            let value: Value = serde_json::from_str(&with).unwrap();
            assert_eq!(value["hooks"]["Before"][0], json!({ "n": 1 }), "{with}");
            assert_eq!(value["hooks"]["After"][0], json!({ "n": 2 }), "{with}");
            assert_eq!(cut(&with, &pieces).unwrap(), text);
            // What somebody adds meanwhile stays.
            let later = format!("{}  ", with.replacen('{', "{\"later\":1,", 1));
            let cut = cut(&later, &pieces);
            assert!(cut.is_none_or(|text| text.contains("later")), "{later}");
        }
    }

    #[test]
    fn what_cannot_be_read_in_one_way_only_is_left_alone() {
        for text in ["", "[]", "{", "{\"a\":1,}", "// x\n{}", r#"{"a":1,"a":2}"#] {
            assert_eq!(insert(text, &groups()), Err(NoPlace::NotReadable), "{text}");
        }
        for text in [r#"{"hooks":[]}"#, r#"{"hooks":{"After":{}}}"#] {
            assert!(matches!(insert(text, &groups()), Err(NoPlace::Taken(_))), "{text}");
        }
        assert_eq!(cut("aa", &["a".into()]), None);
        assert_eq!(cut("b", &["a".into()]), None);
    }
}
