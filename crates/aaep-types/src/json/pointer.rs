//! From a byte offset to a JSON pointer: only needed when something is wrong, so it may be slow.

use super::string::JsonString;

/// The JSON pointer (RFC 6901) of the innermost value or member that the byte at `offset` is in.
///
/// Works on broken text too, as far as it makes sense.
pub fn pointer_at(text: &str, offset: usize) -> String {
    let bytes = text.as_bytes();
    let mut stack: Vec<Step> = Vec::new();
    let mut at = 0;
    while at < bytes.len().min(offset) {
        match bytes[at] {
            b'"' => {
                let end = string_end(bytes, at + 1);
                if let Some(Step::Object { name, naming: true }) = stack.last_mut() {
                    let raw = text.get(at + 1..end).unwrap_or("");
                    *name = JsonString { raw, escaped: raw.contains('\\'), ascii: false }
                        .decode()
                        .into_owned();
                }
                at = end;
            }
            b'{' => stack.push(Step::Object { name: String::new(), naming: true }),
            b'[' => stack.push(Step::Array { index: 0 }),
            b'}' | b']' => drop(stack.pop()),
            b':' => {
                if let Some(Step::Object { naming, .. }) = stack.last_mut() {
                    *naming = false;
                }
            }
            b',' => match stack.last_mut() {
                Some(Step::Object { name, naming }) => {
                    name.clear();
                    *naming = true;
                }
                Some(Step::Array { index }) => *index += 1,
                None => {}
            },
            _ => {}
        }
        at += 1;
    }
    name_at(text, offset, stack.last_mut());
    stack.iter().map(Step::pointer).collect()
}

enum Step {
    Object { name: String, naming: bool },
    Array { index: usize },
}

impl Step {
    fn pointer(&self) -> String {
        match self {
            Step::Object { name, naming: true } if name.is_empty() => String::new(),
            Step::Object { name, .. } => format!("/{}", escape(name)),
            Step::Array { index } => format!("/{index}"),
        }
    }
}

/// A fault may stand on a member's name itself: then that member is meant.
fn name_at(text: &str, offset: usize, step: Option<&mut Step>) {
    let Some(Step::Object { name, naming: true }) = step else { return };
    if text.as_bytes().get(offset) == Some(&b'"') {
        let end = string_end(text.as_bytes(), offset + 1);
        let raw = text.get(offset + 1..end).unwrap_or("");
        *name = JsonString { raw, escaped: raw.contains('\\'), ascii: false }.decode().into_owned();
    }
}

/// A name as a pointer writes it.
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

fn string_end(bytes: &[u8], mut at: usize) -> usize {
    while at < bytes.len() && bytes[at] != b'"' {
        at += if bytes[at] == b'\\' { 2 } else { 1 };
    }
    at.min(bytes.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str, mark: &str) -> String {
        pointer_at(text, text.find(mark).expect("the mark is there"))
    }

    #[test]
    fn an_offset_inside_a_value_names_its_path() {
        let text = r#"{"a":{"b/c":[10,{"d~":"here"}]},"e":1}"#;
        assert_eq!(at(text, "here"), "/a/b~1c/1/d~0");
        assert_eq!(at(text, "10"), "/a/b~1c/0");
        assert_eq!(at(text, "1}"), "/e");
    }

    #[test]
    fn an_offset_on_a_name_names_that_member() {
        assert_eq!(at(r#"{"a":{"b":1,"c":2}}"#, "\"c\""), "/a/c");
    }

    #[test]
    fn commas_and_braces_inside_strings_do_not_count() {
        assert_eq!(at(r#"{"a":"},{\"","b":[0,"x"]}"#, "x"), "/b/1");
    }

    #[test]
    fn the_outermost_value_has_the_empty_pointer() {
        assert_eq!(pointer_at("nonsense", 3), "");
        assert_eq!(pointer_at("", 10), "");
        assert_eq!(pointer_at("\"\\", 2), "");
    }
}
