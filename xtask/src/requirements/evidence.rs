//! What the repository shows for each rule: files that enforce it, tests and vectors that cover it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context, Result};

use super::{ids, source};

/// Where code is looked for. `xtask` and `fuzz` check the project; they are not the protocol.
const CODE: &[&str] = &["crates", "web"];
const VECTORS: &str = "vectors";

/// A line of a file, from 1.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    pub(crate) path: String,
    pub(crate) line: usize,
}

/// Sorted throughout, so that the table comes out the same everywhere.
#[derive(Debug, Default)]
pub(super) struct Evidence {
    enforced: BTreeMap<String, BTreeSet<Place>>,
    /// Test names and vector files, each with the place where it was found.
    covered: BTreeMap<String, BTreeMap<String, Place>>,
    problems: Vec<String>,
}

impl Evidence {
    pub(super) fn enforced(&mut self, id: &str, path: &str, line: usize) {
        let place = Place { path: path.to_owned(), line };
        self.enforced.entry(id.to_owned()).or_default().insert(place);
    }

    pub(super) fn covered(&mut self, id: &str, by: &str, path: &str, line: usize) {
        let place = Place { path: path.to_owned(), line };
        self.covered.entry(id.to_owned()).or_default().insert(by.to_owned(), place);
    }

    pub(super) fn problem(&mut self, text: String) {
        self.problems.push(text);
    }

    pub(super) fn problems(&self) -> &[String] {
        &self.problems
    }

    /// The files that enforce the rule.
    pub(super) fn enforcers(&self, id: &str) -> Vec<&str> {
        let mut paths: Vec<&str> = self.places(id).map(|place| place.path.as_str()).collect();
        paths.dedup();
        paths
    }

    /// The places that enforce the rule.
    pub(super) fn places(&self, id: &str) -> impl Iterator<Item = &Place> {
        self.enforced.get(id).into_iter().flatten()
    }

    /// The tests and vectors that cover the rule, and where they are.
    pub(super) fn tests(&self, id: &str) -> impl Iterator<Item = (&str, &Place)> {
        let tests = self.covered.get(id).into_iter().flatten();
        tests.map(|(name, place)| (name.as_str(), place))
    }

    /// The tests and vectors that cover the rule.
    pub(super) fn coverers(&self, id: &str) -> Vec<&str> {
        self.covered.get(id).into_iter().flat_map(BTreeMap::keys).map(String::as_str).collect()
    }

    /// Every id that is named anywhere, with one file that names it.
    pub(super) fn named(&self) -> impl Iterator<Item = (&str, &str)> {
        let enforced = self.enforced.iter().map(|(id, paths)| (id, paths.first()));
        let covered = self.covered.iter().map(|(id, by)| (id, by.values().next()));
        enforced.chain(covered).filter_map(|(id, place)| Some((id.as_str(), &*place?.path)))
    }
}

/// Reads the whole repository.
pub(super) fn gather(root: &Path) -> Result<Evidence> {
    let mut evidence = Evidence::default();
    for folder in CODE {
        for path in files_under(root, folder)? {
            let code = path.ends_with(".rs") || path.ends_with(".js");
            if code && !path.contains("/benches/") && !path.contains("/examples/") {
                let text = std::fs::read_to_string(root.join(&path))
                    .with_context(|| format!("could not read {path}"))?;
                source::scan(&path, &text, &mut evidence);
            }
        }
    }
    for path in files_under(root, VECTORS)? {
        if let Some(id) = vector_rule(&path) {
            evidence.covered(id, &path, &path, 1);
        }
    }
    Ok(evidence)
}

/// The rule that a vector's name begins with: `vectors/invalid/E7.too-long.json` covers E7.
fn vector_rule(path: &str) -> Option<&str> {
    if !path.ends_with(".json") && !path.ends_with(".jsonl") {
        return None;
    }
    let (id, _) = path.rsplit('/').next()?.split_once('.')?;
    ids::is_id(id).then_some(id)
}

/// Every file under a folder, with `/` between the names; none if the folder does not exist.
pub(super) fn files_under(root: &Path, folder: &str) -> Result<BTreeSet<String>> {
    let mut files = BTreeSet::new();
    if !root.join(folder).is_dir() {
        return Ok(files);
    }
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        let entries = root.join(&folder).read_dir();
        for entry in entries.with_context(|| format!("could not read {folder}"))? {
            let entry = entry?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{folder}/{name}");
            match entry.file_type()?.is_dir() {
                true if name == "target" || name == "node_modules" => {}
                true => folders.push(path),
                false => _ = files.insert(path),
            }
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vector_covers_the_rule_its_name_begins_with() {
        assert_eq!(vector_rule("vectors/invalid/E7.too-long.json"), Some("E7"));
        assert_eq!(vector_rule("vectors/streams/bad/T1.two-starts.jsonl"), Some("T1"));
        assert_eq!(vector_rule("vectors/valid/full-event.json"), None);
        assert_eq!(vector_rule("vectors/README.md"), None);
    }

    #[test]
    fn a_folder_that_does_not_exist_holds_no_files() {
        assert!(files_under(Path::new("/no/such"), "folder").unwrap().is_empty());
    }

    #[test]
    fn files_are_named_from_the_root_down() {
        let root = crate::workspace::root();
        assert!(files_under(&root, "xtask").unwrap().contains("xtask/src/main.rs"));
    }
}
