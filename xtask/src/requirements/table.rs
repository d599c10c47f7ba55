//! Renders `docs/requirements.md`. No line numbers: they rot with every edit.

use super::evidence::Evidence;
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
        list(&evidence.enforcers(&rule.id)),
        list(&evidence.coverers(&rule.id)),
    )
}

fn list(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    quoted.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_shows_the_rule_its_enforcement_and_its_coverage() {
        let rules = Rules::parse("## 3 Envelope\nE7\t3.2.3\tM\tP\ttypes\tOne | two.\n").unwrap();
        let mut evidence = Evidence::default();
        evidence.enforced("E7", "crates/t/src/id.rs");
        evidence.covered("E7", "ids_are_short", "crates/t/src/id.rs");
        evidence.covered("E7", "vectors/invalid/E7.x.json", "vectors/invalid/E7.x.json");
        let text = render(&rules, &evidence);
        let row = "| E7 | 3.2.3 | must | P | types | One \\| two. | `crates/t/src/id.rs` | \
                   `ids_are_short`, `vectors/invalid/E7.x.json` |";
        assert!(text.contains(row), "{text}");
        assert!(text.contains("## 3 Envelope\n"));
        assert!(text.contains("Of 1 rules, decisions and invariants, 1 are enforced"));
    }
}
