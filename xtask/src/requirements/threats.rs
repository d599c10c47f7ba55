//! The threat table of `SECURITY.md`: every defence that is built names tests that fail without it, and
//! each of them is in the tree. A test that is renamed or taken out is noticed here.
//!
//! In the column of tests, what stands between backticks is a test function, a file, or a mutant of the
//! simulator, which is a sentence.

use std::collections::BTreeSet;
use std::path::Path;

use anyhow::Result;

use super::evidence::files_under;
use super::read;

pub(super) const DOCUMENT: &str = "SECURITY.md";
const MUTANTS: &str = "crates/aaep-sim/src/mutants.rs";

/// The columns of the table.
const HEAD: [&str; 4] = ["threat", "defence in short", "tests", "status"];

/// What a row may name.
pub(super) struct Evidence {
    tests: BTreeSet<String>,
    mutants: String,
}

impl Evidence {
    pub(super) fn gather(root: &Path) -> Result<Self> {
        let mut tests = BTreeSet::new();
        for path in files_under(root, "crates")? {
            if path.ends_with(".rs") {
                tests.extend(tests_of(&read(root, &path)?));
            }
        }
        Ok(Self { tests, mutants: read(root, MUTANTS)? })
    }

    fn has(&self, root: &Path, name: &str) -> bool {
        match name {
            _ if name.contains(' ') => self.mutants.contains(&format!("\"{name}\"")),
            _ if name.contains('/') => root.join(name).is_file(),
            _ => self.tests.contains(name),
        }
    }
}

/// The names of the test functions in a file.
fn tests_of(text: &str) -> Vec<String> {
    let mut is_test = false;
    let mut names = Vec::new();
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_test |= line.contains("test]") || line.contains("test(");
        } else if !line.starts_with("//") {
            let name = line.split_once("fn ").filter(|_| is_test).map(|(_, rest)| rest);
            let end = |name: &str| name.find(|c: char| !c.is_alphanumeric() && c != '_');
            names.extend(name.and_then(|name| Some(name[..end(name)?].to_owned())));
            is_test = false;
        }
    }
    names
}

/// What is wrong with the table in this document.
pub(super) fn problems(root: &Path, document: &str, known: &Evidence) -> Vec<String> {
    let mut lines = document.lines().map(cells).skip_while(|cells| *cells != HEAD).skip(2);
    let rows: Vec<Vec<&str>> = lines.by_ref().take_while(|cells| !cells.is_empty()).collect();
    let mut problems = Vec::new();
    if rows.is_empty() {
        problems.push(format!("{DOCUMENT}: there is no table with the columns {HEAD:?}"));
    }
    for row in rows {
        let [threat, _, tests, status] = row[..] else {
            problems.push(format!("{DOCUMENT}: not four cells in the row {row:?}"));
            continue;
        };
        let named: Vec<&str> = tests.split('`').skip(1).step_by(2).collect();
        if named.is_empty() && status.starts_with("built") {
            problems.push(format!("{DOCUMENT}: {threat:?} is built and names no test"));
        }
        for name in named.into_iter().filter(|name| !known.has(root, name)) {
            problems.push(format!("{DOCUMENT}: {threat:?} names {name:?}, which is not there"));
        }
    }
    problems
}

/// The cells of a line of a table; none if it is another line.
fn cells(line: &str) -> Vec<&str> {
    let inner = line.strip_prefix('|').and_then(|line| line.strip_suffix('|'));
    inner.map_or_else(Vec::new, |inner| inner.split('|').map(str::trim).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::root;

    #[test]
    fn every_test_in_the_threat_table_is_in_the_tree() {
        let known = Evidence::gather(&root()).unwrap();
        let document = read(&root(), DOCUMENT).unwrap();
        assert_eq!(problems(&root(), &document, &known), Vec::<String>::new());
    }

    #[test]
    fn a_row_without_a_test_or_with_one_that_is_gone_is_noticed() {
        let known = Evidence {
            tests: BTreeSet::from(["a_wolf_is_kept_out".to_owned()]),
            mutants: r#"mutant("I1", "lets wolves in", &[])"#.to_owned(),
        };
        let found = |rows: &str| {
            let head = "| threat | defence in short | tests | status |\n|---|---|---|---|\n";
            problems(&root(), &format!("# Threats\n\n{head}{rows}\n\nMore.\n"), &known)
        };
        let fine = "| wolves | a fence | `a_wolf_is_kept_out`, `lets wolves in`, `docs/hub.md` | built |\n| bears | | | planned |";
        assert_eq!(found(fine), Vec::<String>::new());
        for (wrong, what) in [
            ("| wolves | a fence | | built; mostly |", "names no test"),
            ("| wolves | a fence | `a_wolf_is_gone` | built |", "a_wolf_is_gone"),
            ("| wolves | a fence | `lets bears in` | built |", "lets bears in"),
            ("| wolves | a fence | `web/no.test.js` | built |", "web/no.test.js"),
            ("| wolves | `a_wolf_is_kept_out` | built |", "not four cells"),
            ("", "no table"),
        ] {
            let found = found(wrong);
            assert!(found.len() == 1 && found[0].contains(what), "{wrong}: {found:?}");
        }
    }

    #[test]
    fn tests_are_found_by_their_attribute() {
        let text = "#[test]\nfn one() {\n}\n    // covers: I1\n    #[tokio::test(flavor = \"x\")]\n    #[ignore]\n    async fn two() {\nfn three() {}\n";
        assert_eq!(tests_of(text), ["one", "two"]);
    }
}
