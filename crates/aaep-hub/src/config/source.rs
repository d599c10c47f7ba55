//! A configuration file, and where in it each key stands.

use std::ops::Range;
use std::path::{Path, PathBuf};

use toml::de::{DeTable, DeValue};

use super::Config;
use crate::Fault;
use crate::files;

/// The largest configuration file, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

const REMEDY: &str =
    "Correct it, or take it out to use the default; aaep.example.toml explains every key.";

/// A configuration file as it was read.
pub(super) struct Source {
    path: PathBuf,
    text: String,
}

impl Source {
    pub(super) fn read(path: &Path) -> Result<Self, Fault> {
        let bytes = files::read_trusted(path, MAX_BYTES)?;
        let text = String::from_utf8(bytes).map_err(|error| {
            let good = error.utf8_error().valid_up_to();
            let line = line_at(error.as_bytes(), good);
            Fault::file(path, format!("Line {line} is not UTF-8."), "Save the file as UTF-8.")
        })?;
        Ok(Self { path: path.to_owned(), text })
    }

    /// Reads it; paths in it start at its own directory.
    pub(super) fn config(&self) -> Result<Config, Fault> {
        let mut config: Config = toml::from_str(&self.text).map_err(|error| {
            let at = error.span().unwrap_or(0..0);
            Fault::Config {
                place: self.place(at.start),
                key: self.key_at(&at),
                what: sentence(error.message()),
                remedy: REMEDY.into(),
            }
        })?;
        config.resolve(self.path.parent().unwrap_or(Path::new("")));
        Ok(config)
    }

    /// File and line of a key such as `tls.key` or `principals.1.name`, counted from 0.
    pub(super) fn place_of(&self, key: &str) -> Option<String> {
        let (table, _) = DeTable::parse_recoverable(&self.text);
        let mut at = None;
        let mut value: Option<&DeValue<'_>> = None;
        for part in key.split('.') {
            match value {
                None => {
                    let (name, found) = table.get_ref().get_key_value(part)?;
                    (at, value) = (Some(name.span().start), Some(found.get_ref()));
                }
                Some(DeValue::Table(inner)) => match inner.get_key_value(part) {
                    Some((name, found)) => {
                        (at, value) = (Some(name.span().start), Some(found.get_ref()));
                    }
                    // A key that is missing is missed where its section begins.
                    None => break,
                },
                Some(DeValue::Array(items)) => {
                    let found = items.get(part.parse::<usize>().ok()?)?;
                    (at, value) = (Some(found.span().start), Some(found.get_ref()));
                }
                Some(_) => break,
            }
        }
        at.map(|offset| self.place(offset))
    }

    fn place(&self, offset: usize) -> String {
        format!("{}, line {}", self.path.display(), line_at(self.text.as_bytes(), offset))
    }

    /// The key whose name or value lies at this place; empty where there is none.
    fn key_at(&self, at: &Range<usize>) -> String {
        let (table, errors) = DeTable::parse_recoverable(&self.text);
        if !errors.is_empty() {
            return String::new();
        }
        let mut path = Vec::new();
        find(table.get_ref(), at, &mut path);
        path.join(".")
    }
}

/// Follows the names of the keys around a place, outermost first.
fn find<'t>(table: &'t DeTable<'_>, at: &Range<usize>, path: &mut Vec<&'t str>) -> bool {
    let holds = |span: Range<usize>| span.start <= at.start && at.end <= span.end;
    for (name, value) in table {
        path.push(name.get_ref());
        let inside = match value.get_ref() {
            DeValue::Table(inner) => find(inner, at, path),
            DeValue::Array(items) => items.iter().any(|item| match item.get_ref() {
                DeValue::Table(inner) => find(inner, at, path),
                _ => false,
            }),
            _ => false,
        };
        if inside || holds(name.span()) || holds(value.span()) {
            return true;
        }
        path.pop();
    }
    false
}

fn line_at(text: &[u8], offset: usize) -> usize {
    1 + text.iter().take(offset).filter(|byte| **byte == b'\n').count()
}

/// What the reader says in the words of programmers, and how people say it.
const PLAINER: [(&str, &str); 7] = [
    ("unknown field", "there is no key"),
    (", expected one of", "; the possible ones are"),
    ("unknown variant", "there is no choice"),
    ("missing field", "there must also be a key"),
    ("a sequence", "a list in brackets"),
    ("usize", "a whole number"),
    ("a boolean", "true or false"),
];

/// Makes a message of the reader a sentence on one line.
pub(super) fn sentence(message: &str) -> String {
    let mut text = message.split_whitespace().collect::<Vec<_>>().join(" ");
    for (theirs, ours) in PLAINER {
        text = text.replace(theirs, ours);
    }
    for number in ["u64", "u32"] {
        text = text.replace(&format!("expected {number}"), "expected a whole number");
    }
    let mut characters = text.chars();
    match characters.next() {
        Some(first) => format!("{}{}.", first.to_uppercase(), characters.as_str()),
        None => "It cannot be read.".into(),
    }
}
