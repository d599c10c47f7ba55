//! Changes one member of a JSON text, and leaves every other byte of every value as it is.

use aaep_types::json::{Members, Raw, Writer};

/// How deep a message may be: what the JSON library reads, too.
pub(super) const DEPTH: usize = 127;

/// The same object with this member set to this JSON value; objects on the way are made where they
/// are missing. None if the text is no object, or something on the way is none.
pub(super) fn set(text: &str, path: &[&str], value: &str) -> Option<String> {
    let (first, rest) = path.split_first()?;
    let members = Members::whole(text, DEPTH).ok().flatten()?;
    let mut out = Writer::with_capacity(text.len() + value.len() + 64);
    let mut found = false;
    out.open('{');
    for member in members.iter() {
        out.name(&member.name);
        match (member.name == *first, rest.is_empty(), member.value) {
            (true, true, _) => out.json(value),
            (true, false, Raw::Object(inner)) => out.json(&set(inner, rest, value)?),
            (true, false, _) => return None,
            (false, _, other) => out.raw(other),
        }
        found |= member.name == *first;
        out.comma();
    }
    if !found {
        out.name(first);
        match rest.is_empty() {
            true => out.json(value),
            false => out.json(&set("{}", rest, value)?),
        }
        out.comma();
    }
    out.close('}');
    Some(out.finish())
}

/// Whether different programs may read this differently: two members of one name, for example.
pub(super) fn is_ambiguous(text: &str) -> bool {
    let members = Members::whole(text.trim(), DEPTH).ok().flatten();
    members.is_none_or(|members| members.ambiguity().is_some())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_member_changes_and_numbers_stay_as_they_were_written() {
        let text =
            r#"{"id": 1, "params": {"n": 1.50, "big": 2227777777727777777769, "name": "a\u00e4"}}"#;
        let id = set(text, &["id"], "\"x\"").unwrap();
        assert_eq!(
            id,
            r#"{"id":"x","params":{"n": 1.50, "big": 2227777777727777777769, "name": "a\u00e4"}}"#
        );
        let inner = set(text, &["params", "name"], "\"b\"").unwrap();
        assert!(inner.contains("1.50") && inner.contains("2227777777727777777769"), "{inner}");
        assert!(inner.ends_with(r#""name":"b"}}"#), "{inner}");
        let made = set(text, &["params", "_meta", "a/b"], "{}").unwrap();
        assert!(made.ends_with(r#""_meta":{"a/b":{}}}}"#), "{made}");
        assert_eq!(set(text, &["id", "x"], "1"), None);
        assert_eq!(set("[]", &["id"], "1"), None);
        assert_eq!(set("{}", &["id"], "1").unwrap(), r#"{"id":1}"#);
    }
}
