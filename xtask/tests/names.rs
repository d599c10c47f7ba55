//! Names and comments that a Rust engineer reads without a dictionary: no type shadows a trait of std,
//! a name means one thing across the workspace, and the words of an earlier vocabulary stay away.
#![allow(clippy::unwrap_used, clippy::disallowed_methods)] // reads the sources

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Traits of std, and the two types that every Rust file has: a type of ours that shadows one makes a
/// reader look twice. `Error` is not here: a crate's one error type is called so by convention.
const STD: &str = "Any AsMut AsRef Borrow BorrowMut BufRead Clone Copy Debug Default Deref DerefMut \
    Display Drop Eq ExactSizeIterator Extend Fn FnMut FnOnce From FromIterator FromStr Future Hash \
    Hasher Index IndexMut Into IntoIterator Iterator Option Ord PartialEq PartialOrd Read Result Seek \
    Send Sized Sync Termination ToOwned ToString TryFrom TryInto Unpin Write";

/// Types and traits by words of an earlier vocabulary that says nothing to newcomers.
const VAGUE_TYPES: &str = "Again Bell Doors Errand Face Happening Heard Helper Keeper Known Lanes \
    Places Said Standing Wave";

/// The same for functions and closures.
const VAGUE_FUNCTIONS: &str = "alike discreet near pour stir want_body";

/// Names that meant several things at once; each has at most one definition in the workspace.
const ONE_MEANING: &str =
    "Answer Engine Fault Found Input Outcome Refused RequestHandle RequestId RequestOutcome";

/// Phrases that no comment and no document needs.
const PHRASES: [&str; 4] = ["whoever", "that nobody has", "is spared", "are spared"];

/// Documents that are made from something else, or keep what was heard word for word.
const MADE: [&str; 3] = ["docs/heard.md", "docs/requirements.md", "docs/rules.tsv"];

/// Public names that two crates use for two types, and why they may stay. A type that is only
/// re-exported is one type, and is not counted.
const SHARED: &[(&str, &str)] = &[
    (
        "Account Agent Call Choice Client Hub Manifest Presence Producer Progress Question Reply",
        "one noun of the protocol: on the wire, for an author, for a listener, in a configuration",
    ),
    (
        "Limits Log Options Secrets Settings",
        "what a crate can be told; nobody uses two crates' without their paths",
    ),
    (
        "Address Connection Proxy Refusal Server Transport",
        "one idea of networks and machines, for each kind of them",
    ),
    (
        "Finding Problem Report Schema Script Weight",
        "what checks say and use: of messages, streams, policies, journals and set-ups",
    ),
    ("PublicKey", "of a passkey and of a signature: other algorithms, other encodings"),
    (
        "Asked Delivery End Event Filter Guard Kind Label LogEntry Offer Open Output Plan Resumed Role \
         Sent Start Text Ticket View Watch Whole",
        "two meanings that their modules tell apart; rename one of them when it is changed anyway",
    ),
];

/// The names of [`SHARED`].
fn known() -> BTreeSet<&'static str> {
    SHARED.iter().flat_map(|(names, _)| names.split_whitespace()).collect()
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// Files with this ending below these folders, with their paths from the root.
fn files(folders: &[&str], ending: &str) -> Vec<(String, String)> {
    fn visit(root: &Path, folder: &Path, ending: &str, found: &mut Vec<(String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            if path.is_dir() {
                let foreign = ["target", "node_modules", "generated", "dist"].contains(&name);
                if !foreign && !name.starts_with('.') {
                    visit(root, &path, ending, found);
                }
            } else if name.ends_with(ending) {
                let place = path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/");
                found.push((place, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    let (root, mut found) = (root(), Vec::new());
    for folder in folders {
        visit(&root, &root.join(folder), ending, &mut found);
    }
    found.sort();
    found
}

fn sources() -> Vec<(String, String)> {
    let found = files(&["crates", "fuzz", "packages", "testing", "web", "xtask"], ".rs");
    assert!(found.len() > 900, "the sources are not where they were: {} files", found.len());
    found
}

/// What a line defines: a type or trait, or a function or closure.
#[derive(Debug, PartialEq)]
enum Defined<'a> {
    Type(&'a str),
    Function(&'a str),
}

fn defined(line: &str) -> Option<Defined<'_>> {
    let indented = line.starts_with(' ');
    let mut line = line.trim_start();
    if let Some(rest) = line.strip_prefix("pub") {
        line = match rest.strip_prefix('(') {
            Some(rest) => rest.split_once(')')?.1.trim_start(),
            None => rest.strip_prefix(' ')?,
        };
    }
    for word in ["const ", "async ", "unsafe "] {
        line = line.strip_prefix(word).unwrap_or(line);
    }
    let name =
        |rest: &str| rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
    let (word, rest) = line.split_once(' ')?;
    match word {
        "struct" | "enum" | "trait" | "union" => Some(Defined::Type(&rest[..name(rest)])),
        // Within a trait or its implementation, the trait chose the name.
        "type" if !indented => Some(Defined::Type(&rest[..name(rest)])),
        "fn" => Some(Defined::Function(&rest[..name(rest)])),
        "let" => {
            let rest = rest.strip_prefix("mut ").unwrap_or(rest);
            let closure = rest[name(rest)..].trim_start().strip_prefix("= ")?;
            let closure = closure.strip_prefix("move ").unwrap_or(closure);
            closure.starts_with('|').then(|| Defined::Function(&rest[..name(rest)]))
        }
        _ => None,
    }
}

#[test]
fn definitions_are_found() {
    assert_eq!(defined("pub(crate) struct Heard<'a> {"), Some(Defined::Type("Heard")));
    assert_eq!(defined("    enum From {"), Some(Defined::Type("From")));
    assert_eq!(defined("pub type Answer = ();"), Some(Defined::Type("Answer")));
    assert_eq!(defined("    type Error = ();"), None);
    assert_eq!(defined("    pub async fn pour(&self) {"), Some(Defined::Function("pour")));
    assert_eq!(defined("    let near = |held| held > 3;"), Some(Defined::Function("near")));
    assert_eq!(defined("    let near = 3;"), None);
    assert_eq!(defined("// struct Heard"), None);
}

#[test]
fn types_and_functions_have_names_of_the_field() {
    let among = |list: &str, name: &str| list.split_whitespace().any(|word| word == name);
    let mut wrong = Vec::new();
    for (path, text) in sources() {
        for (at, line) in text.lines().enumerate() {
            let why = match defined(line) {
                Some(Defined::Type(name)) if among(STD, name) => "shadows std",
                Some(Defined::Type(name)) if among(VAGUE_TYPES, name) => "says nothing",
                Some(Defined::Function(name)) if among(VAGUE_FUNCTIONS, name) => "says nothing",
                _ => continue,
            };
            wrong.push(format!("{path}:{}: {} ({why})", at + 1, line.trim()));
        }
    }
    assert!(wrong.is_empty(), "name these after what they are:\n{}", wrong.join("\n"));
}

#[test]
fn a_name_that_meant_several_things_means_one() {
    let mut places: BTreeMap<&str, Vec<String>> = BTreeMap::new();
    let sources = sources();
    for (path, text) in &sources {
        for (at, line) in text.lines().enumerate() {
            let Some(Defined::Type(name)) = defined(line) else { continue };
            if let Some(name) = ONE_MEANING.split_whitespace().find(|one| *one == name) {
                places.entry(name).or_default().push(format!("{path}:{}", at + 1));
            }
        }
    }
    let several: Vec<_> = places.iter().filter(|(_, places)| places.len() > 1).collect();
    assert!(several.is_empty(), "rename all but one of each: {several:#?}");
}

/// Of each library, the types that its listing names, with their definitions.
fn public_types() -> BTreeMap<String, BTreeMap<String, BTreeSet<String>>> {
    let mut types: BTreeMap<String, BTreeMap<String, BTreeSet<String>>> = BTreeMap::new();
    for (path, text) in files(&["docs/api"], ".txt") {
        let library = path.rsplit('/').next().unwrap().trim_end_matches(".txt").to_owned();
        for line in text.lines() {
            let Some((_, definition)) = line.split_once(": ") else { continue };
            let bare = definition.trim_start_matches("#[non_exhaustive]");
            if let Some(Defined::Type(name)) = defined(bare).filter(|_| bare.starts_with("pub ")) {
                let of = types.entry(name.to_owned()).or_default();
                of.entry(definition.to_owned()).or_default().insert(library.clone());
            }
        }
    }
    types
}

#[test]
fn two_libraries_share_a_public_name_only_for_a_reason() {
    let types = public_types();
    assert!(types.len() > 300, "the listings are not where they were");
    let mut shared = BTreeMap::new();
    for (name, definitions) in &types {
        let libraries: BTreeSet<_> = definitions.values().flatten().cloned().collect();
        // One definition in several listings is one type that is exported again.
        if definitions.len() > 1 && libraries.len() > 1 {
            shared.insert(name.as_str(), libraries);
        }
    }
    let known = known();
    let new: Vec<_> = shared.iter().filter(|(name, _)| !known.contains(*name)).collect();
    assert!(new.is_empty(), "rename one of each, or say in this test why both stay: {new:#?}");
    let gone: Vec<_> = known.iter().filter(|name| !shared.contains_key(*name)).collect();
    assert!(gone.is_empty(), "take these off the list: {gone:?}");
    assert!(SHARED.iter().all(|(_, why)| !why.is_empty()), "say why");
}

/// The comment of a line, if it has one. A string that holds two slashes is none.
fn comment(line: &str) -> Option<&str> {
    let starts =
        line.match_indices("//").find(|(at, _)| line[..*at].matches('"').count().is_multiple_of(2));
    starts.map(|(at, _)| &line[at..])
}

/// A phrase that a text holds outside of code; "so that nobody has to wait" is good English.
fn phrase(text: &str) -> Option<&'static str> {
    let words: String = text.split('`').step_by(2).collect();
    let words = words.to_lowercase().replace("that nobody has to", "");
    PHRASES.into_iter().find(|phrase| words.contains(phrase))
}

#[test]
fn comments_and_documents_use_plain_words() {
    assert_eq!(comment("a(\"http://x\") // Whoever"), Some("// Whoever"));
    assert_eq!(phrase("// Whoever comes"), Some("whoever"));
    assert_eq!(phrase("// so that nobody has to; `whoever_comes`"), None);
    let mut wrong = Vec::new();
    for (path, text) in sources().iter().filter(|(path, _)| path != "xtask/tests/names.rs") {
        for (at, line) in text.lines().enumerate() {
            if let Some(found) = comment(line).and_then(phrase) {
                wrong.push(format!("{path}:{}: {found}", at + 1));
            }
        }
    }
    for (path, text) in files(&["."], ".md") {
        if MADE.contains(&path.trim_start_matches("./")) {
            continue;
        }
        for (at, line) in text.lines().enumerate() {
            if let Some(found) = phrase(line) {
                wrong.push(format!("{path}:{}: {found}", at + 1));
            }
        }
    }
    assert!(wrong.is_empty(), "say who it is, or what happens:\n{}", wrong.join("\n"));
}
