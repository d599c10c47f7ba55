//! `cargo xtask requirements`: the table that shows where each rule is enforced and covered.
//!
//! `docs/rules.tsv` says which rules exist. The code says where it enforces them, the tests and
//! the vectors say what they cover. `docs/requirements.md` is made from these and never by hand.

mod evidence;
mod gaps;
mod ids;
mod rules;
mod source;
mod table;
mod threats;

use std::path::Path;

use anyhow::{Context, Result, bail};

use self::evidence::Evidence;
use self::rules::Rules;
use crate::workspace::root;

pub(crate) use self::evidence::Place;

/// The rules, and where the repository enforces and covers them.
pub(crate) struct Table(Rules, Evidence);

impl Table {
    pub(crate) fn read() -> Result<Self> {
        let (rules, evidence) = load(&root())?;
        Ok(Self(rules, evidence))
    }

    /// Every rule that is enforced and covered, in the order of the table.
    pub(crate) fn ids(&self) -> impl Iterator<Item = &str> {
        let ids = self.0.all().map(|rule| rule.id.as_str());
        ids.filter(|id| !self.enforced(id).is_empty() && !self.covered(id).is_empty())
    }

    /// The places that enforce a rule.
    pub(crate) fn enforced(&self, id: &str) -> Vec<Place> {
        self.1.places(id).cloned().collect()
    }

    /// The tests that cover it, by their names.
    pub(crate) fn covered(&self, id: &str) -> Vec<(String, Place)> {
        self.1.tests(id).map(|(name, place)| (name.to_owned(), place.clone())).collect()
    }
}

const RULES: &str = "docs/rules.tsv";
const TABLE: &str = "docs/requirements.md";

pub(crate) fn run(args: &[String]) -> Result<()> {
    match args {
        [] => write(),
        [flag] if flag == "--check" => check(),
        _ => bail!("unknown arguments; known is --check"),
    }
}

/// Writes the table, whatever gaps it shows: a gap is easier to close when it can be seen.
fn write() -> Result<()> {
    let root = root();
    let (rules, evidence) = load(&root)?;
    std::fs::write(root.join(TABLE), table::render(&rules, &evidence))
        .with_context(|| format!("could not write {TABLE}"))?;
    println!("Wrote {TABLE}.");
    fail_on(gaps::misnamed(&rules, &evidence))?;
    let gaps = gaps::missing(&rules, &evidence).len();
    if gaps > 0 {
        println!("{gaps} gaps in built parts; `cargo xtask requirements --check` lists them.");
    }
    Ok(())
}

/// Fails on a stale table, on an annotation that names no rule, and on any gap in a built part.
pub(crate) fn check() -> Result<()> {
    let root = root();
    let (rules, evidence) = load(&root)?;
    let mut problems = gaps::misnamed(&rules, &evidence);
    problems.extend(gaps::unexplained(&rules, &read(&root, gaps::DECISIONS)?, 'D'));
    problems.extend(gaps::unexplained(&rules, &read(&root, gaps::INVARIANTS)?, 'I'));
    let constants = read(&root, gaps::CONSTANTS).unwrap_or_default(); // no code, no difference
    problems.extend(gaps::differing_sections(&rules, &constants));
    problems.extend(gaps::missing(&rules, &evidence));
    let security = read(&root, threats::DOCUMENT)?;
    problems.extend(threats::problems(&root, &security, &threats::Evidence::gather(&root)?));
    // A missing table is a stale one.
    let on_disk = read(&root, TABLE).unwrap_or_default();
    if on_disk != table::render(&rules, &evidence) {
        problems.push(format!("{TABLE} is out of date: run `cargo xtask requirements`"));
    }
    fail_on(problems)
}

fn load(root: &Path) -> Result<(Rules, Evidence)> {
    let rules = Rules::parse(&read(root, RULES)?).context(RULES)?;
    Ok((rules, evidence::gather(root)?))
}

fn read(root: &Path, path: &str) -> Result<String> {
    std::fs::read_to_string(root.join(path)).with_context(|| format!("could not read {path}"))
}

fn fail_on(problems: Vec<String>) -> Result<()> {
    if problems.is_empty() {
        return Ok(());
    }
    for problem in &problems {
        eprintln!("{problem}");
    }
    bail!("{} problems with the requirements, listed above", problems.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_on_disk_can_be_read() {
        let rules = Rules::parse(&read(&root(), RULES).unwrap()).unwrap();
        assert!(rules.find("E1").is_some() && rules.find("V2").is_some());
    }

    #[test]
    fn every_decision_and_every_invariant_is_explained_in_its_document() {
        let rules = Rules::parse(&read(&root(), RULES).unwrap()).unwrap();
        for (document, letter) in [(gaps::DECISIONS, 'D'), (gaps::INVARIANTS, 'I')] {
            let text = read(&root(), document).unwrap();
            assert_eq!(gaps::unexplained(&rules, &text, letter), Vec::<String>::new());
        }
    }
}
