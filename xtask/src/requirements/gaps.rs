//! What is missing or wrong.

use super::evidence::Evidence;
use super::ids::is_id;
use super::rules::Rules;

/// Where the reasons of the decisions are.
pub(super) const DECISIONS: &str = "DESIGN.md";
/// Where the invariants are stated in full.
pub(super) const INVARIANTS: &str = "docs/invariants.md";
/// Where the code lists the rules, as lines like `E7 "3.2.3"`.
pub(super) const CONSTANTS: &str = "crates/aaep-types/src/rule.rs";

/// Annotations that cannot be read, and ids that no rule has.
pub(super) fn misnamed(rules: &Rules, evidence: &Evidence) -> Vec<String> {
    let mut problems = evidence.problems().to_vec();
    for (id, path) in evidence.named() {
        if rules.find(id).is_none() {
            problems.push(format!("{path}: names {id}, which docs/rules.tsv does not have"));
        }
    }
    problems
}

/// Binding rules of built parts that nobody enforces there, or that nothing covers.
pub(super) fn missing(rules: &Rules, evidence: &Evidence) -> Vec<String> {
    let mut gaps = Vec::new();
    for rule in rules.all().filter(|rule| rule.force.binds()) {
        let mut bound = false;
        for built in rules.built.iter().filter(|built| rule.parts.contains(&built.part)) {
            bound = true;
            let inside = format!("{}/", built.folder);
            if !evidence.enforcers(&rule.id).iter().any(|path| path.starts_with(&inside)) {
                let (id, folder, part) = (&rule.id, &built.folder, &built.part);
                gaps.push(format!("{id}: nothing in {folder} (part {part}) enforces it"));
            }
        }
        if bound && evidence.coverers(&rule.id).is_empty() {
            gaps.push(format!("{}: no test and no vector covers it", rule.id));
        }
    }
    gaps
}

/// Decisions (`D`) or invariants (`I`) that their document does not explain.
pub(super) fn unexplained(rules: &Rules, document: &str, letter: char) -> Vec<String> {
    let explained =
        |id: &str| document.contains(&format!("\n### {id}. ")) || document.contains(&row(id));
    rules
        .all()
        .filter(|rule| rule.id.starts_with(letter) && !explained(&rule.id))
        .map(|rule| format!("{}: its document does not explain it", rule.id))
        .collect()
}

/// Constants of the code whose section is not the one of `docs/rules.tsv`, or that it lacks.
pub(super) fn differing_sections(rules: &Rules, constants: &str) -> Vec<String> {
    let mut problems = Vec::new();
    for line in constants.lines() {
        let Some((id, section)) = line.trim().split_once(' ') else { continue };
        let section = section.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        let (true, Some(section)) = (is_id(id), section) else { continue };
        match rules.find(id) {
            Some(rule) if rule.section == section => {}
            Some(rule) => problems.push(format!(
                "{CONSTANTS}: {id} is in §{section}, docs/rules.tsv says §{}",
                rule.section
            )),
            None => problems.push(format!("{CONSTANTS}: docs/rules.tsv does not have {id}")),
        }
    }
    problems
}

fn row(id: &str) -> String {
    format!("\n| {id} |")
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: &str = "built\ttypes\tcrates/t\n## 3\nE7\t3\tM\tP\ttypes,engine\tText.\n\
                        E8\t3\tS\tP\ttypes\tText.\nE9\t3\tM\tP\tengine\tText.\n## D\n\
                        D1\t3\tD\t-\ttypes\tText.\n";

    fn rules() -> Rules {
        Rules::parse(FILE).unwrap()
    }

    #[test]
    fn only_binding_rules_of_built_parts_are_missed() {
        let gaps = missing(&rules(), &Evidence::default());
        let about = |id: &str| gaps.iter().filter(|gap| gap.starts_with(id)).count();
        assert_eq!((about("E7"), about("E8"), about("E9"), about("D1")), (2, 0, 0, 2));
    }

    #[test]
    fn enforcement_in_another_folder_does_not_count_for_the_part() {
        let mut evidence = Evidence::default();
        evidence.covered("E7", "vectors/invalid/E7.x.json", "vectors/invalid/E7.x.json", 1);
        evidence.enforced("E7", "crates/other/src/lib.rs", 1);
        assert!(missing(&rules(), &evidence).iter().any(|gap| gap.starts_with("E7")));
        evidence.enforced("E7", "crates/t/src/id.rs", 1);
        assert!(!missing(&rules(), &evidence).iter().any(|gap| gap.starts_with("E7")));
    }

    #[test]
    fn an_unknown_id_is_reported_with_the_file_that_names_it() {
        let mut evidence = Evidence::default();
        evidence.covered("E99", "some_test", "crates/t/tests/a.rs", 1);
        let problems = misnamed(&rules(), &evidence);
        assert_eq!(problems.len(), 1);
        assert!(problems[0].starts_with("crates/t/tests/a.rs: names E99"));
    }

    #[test]
    fn the_code_and_the_table_agree_on_sections() {
        assert!(differing_sections(&rules(), "rules! {\n    E7 \"3\"\n}\n").is_empty());
        assert_eq!(differing_sections(&rules(), "    E7 \"4\"\n    E99 \"3\"\n").len(), 2);
    }

    #[test]
    fn a_decision_needs_a_heading_of_its_own() {
        assert_eq!(unexplained(&rules(), "\n### D10. Other\n", 'D').len(), 1);
        assert!(unexplained(&rules(), "\n### D1. Why\n", 'D').is_empty());
    }
}
