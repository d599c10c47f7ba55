//! Renders `docs/requirements.md`, with a link to the line of every place and every test.

use super::evidence::{Evidence, Place};
use super::rules::{Rule, Rules};

const INTRODUCTION: &str = "\
# Every rule, where it is enforced and what covers it

Made by `cargo xtask requirements` from `docs/rules.tsv`, the code, the tests and the vectors. Do \
not edit it by hand. Section numbers are the specification's; decisions are explained in \
[DESIGN.md](../DESIGN.md), invariants in [invariants.md](invariants.md).

Side: P producer, S subscriber, B both. A rule of a part that is not built yet has empty last \
columns.
";

pub(super) fn render(rules: &Rules, evidence: &Evidence) -> String {
    let mut text = INTRODUCTION.to_owned();
    text.push_str(&format!("\n{}\n", summary(rules, evidence)));
    for chapter in &rules.chapters {
        text.push_str(&format!("\n## {}\n\n", chapter.title));
        text.push_str("| id | § | force | side | parts | rule | enforced in | covered by |\n");
        text.push_str("|---|---|---|---|---|---|---|---|\n");
        for rule in &chapter.rules {
            text.push_str(&row(rule, evidence));
        }
    }
    text
}

fn summary(rules: &Rules, evidence: &Evidence) -> String {
    let total = rules.all().count();
    let enforced = rules.all().filter(|rule| !evidence.enforcers(&rule.id).is_empty()).count();
    let covered = rules.all().filter(|rule| !evidence.coverers(&rule.id).is_empty()).count();
    let built: Vec<&str> = rules.built.iter().map(|built| built.part.as_str()).collect();
    format!(
        "Built parts: {}. Of {total} rules, decisions and invariants, {enforced} are enforced and \
         {covered} are covered.",
        built.join(", ")
    )
}

fn row(rule: &Rule, evidence: &Evidence) -> String {
    format!(
        "| {} | {} | {} | {} | {} | {} | {} | {} |\n",
        rule.id,
        rule.section,
        rule.force.name(),
        rule.side,
        rule.parts.join(", "),
        // A bare pipe would end the cell.
        rule.text.replace('|', "\\|"),
        enforced(rule, evidence),
        covered(rule, evidence),
    )
}

/// Of each file the first place, under the file's name.
fn enforced(rule: &Rule, evidence: &Evidence) -> String {
    let mut links: Vec<String> = Vec::new();
    let mut known = "";
    for place in evidence.places(&rule.id) {
        if place.path != known {
            links.push(link(&place.path, place));
        }
        known = &place.path;
    }
    links.join(", ")
}

fn covered(rule: &Rule, evidence: &Evidence) -> String {
    let links: Vec<String> =
        evidence.tests(&rule.id).map(|(name, place)| link(name, place)).collect();
    links.join(", ")
}

fn link(name: &str, place: &Place) -> String {
    format!("[`{name}`](../{}#L{})", place.path, place.line)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_rule_its_enforcement_and_its_coverage() {
        let rules = Rules::parse("## 3 Envelope\nE7\t3.2.3\tM\tP\ttypes\tOne | two.\n").unwrap();
        let mut evidence = Evidence::default();
        evidence.enforced("E7", "crates/t/src/id.rs", 12);
        evidence.enforced("E7", "crates/t/src/id.rs", 40);
        evidence.covered("E7", "ids_are_short", "crates/t/src/id.rs", 50);
        evidence.covered("E7", "vectors/invalid/E7.x.json", "vectors/invalid/E7.x.json", 1);
        let text = render(&rules, &evidence);
        let row = "| E7 | 3.2.3 | must | P | types | One \\| two. | \
                   [`crates/t/src/id.rs`](../crates/t/src/id.rs#L12) | \
                   [`ids_are_short`](../crates/t/src/id.rs#L50), \
                   [`vectors/invalid/E7.x.json`](../vectors/invalid/E7.x.json#L1) |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("## 3 Envelope\n"));
        assert!(text.contains("Of 1 rules, decisions and invariants, 1 are enforced"));
    }
}
