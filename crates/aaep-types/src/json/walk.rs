//! One pass over every value of a text, with the path to each.

use std::ops::ControlFlow;

use super::fault::{JsonFault, JsonFaultKind};
use super::marks::Marks;
use super::scan::{Raw, Scanner};
use super::string::JsonString;

/// One step on the way to a value.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Step<'a> {
    /// A member of an object, by its name as written.
    Name(JsonString<'a>),
    /// An element of an array, from 0.
    Index(usize),
}

/// Visits every value that holds no others, empty objects and arrays included, in the order of the
/// text. The work is linear in what is visited; `visit` ends it with [`ControlFlow::Break`].
pub fn walk<'a>(
    text: &'a str,
    max_depth: usize,
    mut visit: impl FnMut(&[Step<'a>], Raw<'a>) -> ControlFlow<()>,
) -> Result<(), Box<JsonFault>> {
    let marks = Marks::of(text.as_bytes());
    let mut scanner = Scanner::new(text, marks.words(), max_depth);
    let mut path: Vec<Step<'a>> = Vec::new();
    scanner.skip_space();
    loop {
        if path.len() > max_depth {
            return Err(scanner.fatal(JsonFaultKind::TooDeep));
        }
        let leaf = match scanner.peek() {
            None if path.is_empty() => return Err(scanner.fatal(JsonFaultKind::Nothing)),
            Some(b'{') if !scanner.is_empty_container() => {
                path.push(Step::Name(scanner.name()?));
                continue;
            }
            Some(b'[') if !scanner.is_empty_container() => {
                path.push(Step::Index(0));
                continue;
            }
            _ => scanner.value()?,
        };
        if visit(&path, leaf).is_break() {
            return Ok(());
        }
        if !next(&mut scanner, &mut path)? {
            break;
        }
    }
    match scanner.peek() {
        None => Ok(()),
        Some(_) => Err(scanner.fatal(JsonFaultKind::Trailing)),
    }
}

/// Goes from the end of a value to the beginning of the next; false after the last one.
fn next<'a>(
    scanner: &mut Scanner<'a, '_>,
    path: &mut Vec<Step<'a>>,
) -> Result<bool, Box<JsonFault>> {
    loop {
        scanner.skip_space();
        let Some(step) = path.last_mut() else { return Ok(false) };
        let closer = if matches!(step, Step::Name(_)) { b'}' } else { b']' };
        if scanner.peek() == Some(closer) {
            scanner.expect(closer)?;
            path.pop();
            continue;
        }
        scanner.expect(b',')?;
        scanner.skip_space();
        match step {
            Step::Name(name) => *name = scanner.name()?,
            Step::Index(index) => *index += 1,
        }
        return Ok(true);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn leaves(text: &str) -> Result<Vec<String>, JsonFaultKind> {
        let mut all = Vec::new();
        let walked = walk(text, 8, |path, leaf| {
            let mut line = String::new();
            for step in path {
                match step {
                    Step::Name(name) => line.push_str(&format!("/{}", name.decode())),
                    Step::Index(index) => line.push_str(&format!("/{index}")),
                }
            }
            all.push(format!("{line} {}", leaf.type_name()));
            ControlFlow::Continue(())
        });
        walked.map(|()| all).map_err(|fault| fault.kind)
    }

    #[test]
    fn every_value_is_visited_with_its_path() {
        let text = r#" { "a" : [ 1 , { "b" : "x" } , [ ] ] , "c" : { } , "d" : null } "#;
        assert_eq!(
            leaves(text).unwrap(),
            ["/a/0 a number", "/a/1/b a string", "/a/2 an array", "/c an object", "/d null"]
        );
        assert_eq!(leaves("7").unwrap(), [" a number"]);
        assert_eq!(leaves("[[]]").unwrap(), ["/0 an array"]);
    }

    #[test]
    fn what_is_not_json_is_not_walked_to_its_end() {
        for (text, kind) in [
            ("", JsonFaultKind::Nothing),
            ("{} x", JsonFaultKind::Trailing),
            ("[1,]", JsonFaultKind::Unexpected),
            ("{\"a\":1,}", JsonFaultKind::Unexpected),
            ("{\"a\" 1}", JsonFaultKind::Unexpected),
            ("[1", JsonFaultKind::Unfinished),
            ("[1}", JsonFaultKind::Unexpected),
        ] {
            assert_eq!(leaves(text), Err(kind), "{text}");
        }
        assert_eq!(leaves(&"[".repeat(100_000)), Err(JsonFaultKind::TooDeep));
    }
}
