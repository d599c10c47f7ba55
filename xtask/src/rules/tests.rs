//! Which tests are asked about a rule.

use std::collections::BTreeMap;

use crate::requirements::Place;

/// A test program, and the tests in it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Target {
    /// Tests of the package that enforces come first, those of the whole command last.
    rank: u8,
    pub(super) package: String,
    /// Empty for the tests beside the code.
    pub(super) name: String,
    /// An empty name is all of them.
    pub(super) tests: Vec<String>,
}

impl Target {
    pub(super) fn key(&self) -> (String, String) {
        (self.package.clone(), self.name.clone())
    }
}

/// The programs that hold these tests, the quickest first.
pub(super) fn targets(covered: &[(String, Place)], enforced: &str) -> Vec<Target> {
    let mut found: BTreeMap<(String, String), Vec<String>> = BTreeMap::new();
    for (test, place) in covered {
        let Some(key) = target_of(&place.path) else { continue };
        let vector = place.path.starts_with("vectors/");
        found.entry(key).or_default().push(if vector { String::new() } else { test.clone() });
    }
    let home = package_of(enforced);
    let mut all: Vec<Target> = found
        .into_iter()
        .map(|((package, name), tests)| {
            let rank = match (home == Some(&*package), &*package) {
                (true, _) => u8::from(!name.is_empty()),
                (_, "aaep-cli") => 3,
                _ => 2,
            };
            let all = tests.iter().any(String::is_empty);
            Target { rank, package, name, tests: if all { Vec::new() } else { tests } }
        })
        .collect();
    all.sort();
    all
}

/// `crates/aaep-types/...` is of the package `aaep-types`.
pub(super) fn package_of(path: &str) -> Option<&str> {
    path.strip_prefix("crates/")?.split_once('/').map(|(package, _)| package)
}

/// The package and the name of the program that a test of this file belongs to; vectors have runners of
/// their own.
fn target_of(path: &str) -> Option<(String, String)> {
    if let Some(vector) = path.strip_prefix("vectors/") {
        let (package, name) = match vector.split('/').next()? {
            "streams" => ("aaep-conformance", "streams"),
            "valid" | "warning" | "invalid" => ("aaep-types", "vectors"),
            _ => return None,
        };
        return Some((package.to_owned(), name.to_owned()));
    }
    let package = package_of(path)?;
    let inside = path.split_once(&format!("{package}/"))?.1;
    let name = inside.strip_prefix("tests/").map_or("", |test| {
        let name = test.split('/').next().unwrap_or(test);
        name.strip_suffix(".rs").unwrap_or(name)
    });
    Some((package.to_owned(), name.to_owned()))
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_test_is_asked_for_where_it_stands() {
        let of = |path: &str| target_of(path).map(|(package, name)| format!("{package}/{name}"));
        assert_eq!(of("crates/aaep-types/src/id.rs").as_deref(), Some("aaep-types/"));
        assert_eq!(
            of("crates/aaep-engine/tests/consent.rs").as_deref(),
            Some("aaep-engine/consent")
        );
        assert_eq!(of("crates/aaep-cli/tests/hub/agents.rs").as_deref(), Some("aaep-cli/hub"));
        assert_eq!(of("vectors/invalid/E7.x.json").as_deref(), Some("aaep-types/vectors"));
        assert_eq!(of("vectors/warning/E20.x.json").as_deref(), Some("aaep-types/vectors"));
        assert_eq!(
            of("vectors/streams/bad/T1.x.jsonl").as_deref(),
            Some("aaep-conformance/streams")
        );
        assert_eq!(of("web/tests/unit/a.test.js"), None);
    }

    #[test]
    fn the_tests_of_the_same_package_come_first_and_those_of_the_command_last() {
        let place = |path: &str| Place { path: path.into(), line: 1 };
        let covered = [
            ("far".to_owned(), place("crates/aaep-cli/tests/hub/a.rs")),
            ("far".to_owned(), place("crates/aaep-conformance/tests/lawful.rs")),
            ("near".to_owned(), place("crates/aaep-types/src/id.rs")),
            ("nearer".to_owned(), place("crates/aaep-types/src/text.rs")),
            ("vectors/valid/E7.json".to_owned(), place("vectors/valid/E7.json")),
        ];
        let targets = targets(&covered, "crates/aaep-types/src/id.rs");
        assert_eq!(targets[0].tests, ["near", "nearer"]);
        assert_eq!((&*targets[1].name, targets[1].tests.len()), ("vectors", 0));
        assert_eq!(targets[2].package, "aaep-conformance");
        assert_eq!(targets[3].package, "aaep-cli");
    }
}
