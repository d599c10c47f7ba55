//! Reads one file, Rust or a script of the page, for `rule::E7`, `// enforces: E7`, `// covers: E7`, and for the lines of the
//! `object!` tables, each of which names the rule that a wrong or missing member breaks.
//!
//! It works line by line on formatted code, which is all this repository accepts: a test module
//! ends at the closing brace that stands as far in as its `mod`.

use super::evidence::Evidence;
use super::ids::{is_id, named_as_constants, parse_list};

/// Adds what the file enforces and covers to the evidence.
pub(super) fn scan(path: &str, text: &str, evidence: &mut Evidence) {
    let lines: Vec<&str> = text.lines().collect();
    let mut tests = TestModules::new(path);
    for (index, line) in lines.iter().enumerate() {
        let in_test = tests.enter(line);
        if let Some(list) = annotation(line, "// covers:") {
            let test = test_below(&lines[index + 1..]);
            let test = test.map(|(name, below)| (name, index + 2 + below));
            cover(path, list, test, in_test, evidence);
        }
        if let Some(list) = annotation(line, "// enforces:") {
            enforce((path, index + 1), list, in_test, evidence);
        }
        if !in_test && !defines_the_rules(path) {
            let code = without_comment(line);
            for id in named_as_constants(code).into_iter().chain(member_rule(code)) {
                evidence.enforced(&id, path, index + 1);
            }
        }
    }
}

/// How many rules one place enforces at most; more of them say nothing about the place.
const FEW: usize = 5;

fn cover(
    path: &str,
    list: &str,
    test: Option<(&str, usize)>,
    in_test: bool,
    evidence: &mut Evidence,
) {
    let Some((test, line)) = test.filter(|_| in_test) else {
        evidence.problem(format!(
            "{path}: `// covers:{list}` does not stand directly above the #[test] of a test"
        ));
        return;
    };
    match parse_list(list) {
        Ok(ids) => ids.iter().for_each(|id| evidence.covered(id, test, path, line)),
        Err(error) => evidence.problem(format!("{path}: `// covers:{list}`: {error}")),
    }
}

fn enforce((path, line): (&str, usize), list: &str, in_test: bool, evidence: &mut Evidence) {
    if in_test {
        evidence.problem(format!("{path}: `// enforces:{list}` in a test; tests say `covers`"));
        return;
    }
    match parse_list(list) {
        Ok(ids) if ids.len() > FEW => evidence.problem(format!(
            "{path}: `// enforces:{list}` names more than {FEW} rules; mark the place of each"
        )),
        Ok(ids) => ids.iter().for_each(|id| evidence.enforced(id, path, line)),
        Err(error) => evidence.problem(format!("{path}: `// enforces:{list}`: {error}")),
    }
}

/// The rule in a line of an `object!` table, such as `required reason: Summary<'a>, T23;`.
fn member_rule(code: &str) -> Option<String> {
    let code = code.trim();
    let member = code.strip_prefix("required ").or_else(|| code.strip_prefix("optional "))?;
    let (_, id) = member.strip_suffix(';')?.rsplit_once(", ")?;
    is_id(id).then(|| id.to_owned())
}

/// The constants' own definitions enforce nothing.
fn defines_the_rules(path: &str) -> bool {
    path.ends_with("/src/rule.rs") || path.contains("/src/rule/")
}

fn annotation<'a>(line: &'a str, marker: &str) -> Option<&'a str> {
    line.find(marker).map(|at| &line[at + marker.len()..])
}

/// The line up to its comment; the `//` of an address starts none.
fn without_comment(line: &str) -> &str {
    let start = line.match_indices("//").find(|(at, _)| !line[..*at].ends_with(':'));
    start.map_or(line, |(at, _)| &line[..at])
}

/// The name of the test whose attributes and comments begin on the first of these lines, and on which
/// of them it stands.
fn test_below<'a>(lines: &[&'a str]) -> Option<(&'a str, usize)> {
    let mut is_test = false;
    for (at, line) in lines.iter().map(|line| line.trim()).enumerate() {
        if line.starts_with("#[") {
            is_test |= line.contains("test]") || line.contains("test(");
        } else if !line.starts_with("//") {
            if let Some(name) = line.strip_prefix("test(") {
                return named_in_script(name).map(|name| (name, at));
            }
            let name = line.split_once("fn ")?.1;
            let end = name.find(|c: char| !c.is_alphanumeric() && c != '_')?;
            return is_test.then_some((&name[..end], at));
        }
    }
    None
}

/// The name of a test of the page: `"a sentence", async () => {`.
fn named_in_script(rest: &str) -> Option<&str> {
    let quote = rest.chars().next().filter(|first| matches!(first, '"' | '`'))?;
    rest.get(1..)?.split_once(quote).map(|(name, _)| name)
}

/// Follows where `#[cfg(test)]` items begin and end.
struct TestModules {
    whole_file: bool,
    attribute_seen: bool,
    /// How far in the open test item stands.
    open_at: Option<usize>,
}

impl TestModules {
    fn new(path: &str) -> Self {
        let whole_file = path.contains("/tests/") || path.ends_with("/tests.rs");
        Self { whole_file, attribute_seen: false, open_at: None }
    }

    /// Whether this line belongs to a test.
    fn enter(&mut self, line: &str) -> bool {
        let trimmed = line.trim_start();
        let indent = line.len() - trimmed.len();
        if let Some(open_at) = self.open_at {
            if indent == open_at && trimmed == "}" {
                self.open_at = None;
            }
            return true;
        }
        if trimmed.starts_with("#[cfg(test)]") || trimmed.starts_with("#[cfg(all(test") {
            self.attribute_seen = true;
        } else if self.attribute_seen && !trimmed.starts_with("#[") && !trimmed.starts_with("//") {
            self.attribute_seen = false;
            if trimmed.ends_with('{') {
                self.open_at = Some(indent);
                return true;
            }
        }
        self.whole_file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scanned(path: &str, text: &str) -> Evidence {
        let mut evidence = Evidence::default();
        scan(path, text, &mut evidence);
        evidence
    }

    const LIB: &str = "crates/t/src/id.rs";

    #[test]
    fn a_constant_in_code_is_enforcement() {
        let evidence = scanned(LIB, "if bad { report(rule::E7, \"https://x\", rule::E9) }\n");
        assert_eq!(evidence.enforcers("E7"), [LIB]);
        assert_eq!(evidence.enforcers("E9"), [LIB]);
    }

    #[test]
    fn a_line_of_a_table_of_members_is_enforcement() {
        let text = "        /// Why, see rule E9.\n        required reason: Text<'a, 1, 8>, T23;\n        \
                    optional context as \"@context\": Context<'a>, E3;\n";
        let evidence = scanned(LIB, text);
        assert_eq!(evidence.enforcers("T23"), [LIB]);
        assert_eq!(evidence.enforcers("E3"), [LIB]);
        assert!(evidence.enforcers("E9").is_empty());
    }

    #[test]
    fn a_line_that_only_looks_like_a_member_is_not_enforcement() {
        for text in ["required reason, E7\n", "let required = (a, E7);\n", "optional x: T, Rule;\n"]
        {
            assert!(scanned(LIB, text).enforcers("E7").is_empty(), "{text}");
        }
    }

    #[test]
    fn a_constant_in_a_comment_or_a_test_is_not_enforcement() {
        let text = "/// See rule::E7.\nfn f() {} // rule::E8\n\n#[cfg(test)]\nmod tests {\n    \
                    fn g() {\n        rule::E9;\n    }\n}\n";
        let evidence = scanned(LIB, text);
        for id in ["E7", "E8", "E9"] {
            assert!(evidence.enforcers(id).is_empty(), "{id}");
        }
    }

    #[test]
    fn code_after_a_test_module_counts_again() {
        let text = "#[cfg(test)]\nmod tests {\n    fn f() {\n    }\n}\n\nconst X: R = rule::E7;\n";
        assert_eq!(scanned(LIB, text).enforcers("E7"), [LIB]);
    }

    #[test]
    fn a_test_module_in_its_own_file_does_not_turn_the_rest_into_tests() {
        let text = "#[cfg(test)]\nmod tests;\n\nfn f() {\n    rule::E7\n}\n";
        assert_eq!(scanned(LIB, text).enforcers("E7"), [LIB]);
    }

    #[test]
    fn the_module_that_defines_the_rules_enforces_none() {
        let text = "pub const ALL: &[Rule] = &[rule::E7];\n";
        assert!(scanned("crates/t/src/rule.rs", text).enforcers("E7").is_empty());
    }

    #[test]
    fn a_comment_can_say_what_code_enforces() {
        let evidence = scanned(LIB, "// enforces: D21, E19\nlet kept = rest;\n");
        assert_eq!(evidence.enforcers("D21"), [LIB]);
        assert_eq!(evidence.enforcers("E19"), [LIB]);
    }

    #[test]
    fn a_place_that_claims_too_many_rules_is_a_problem() {
        let evidence = scanned(LIB, "// enforces: E1, E2, E3, E4, E5, E6\nlet kept = rest;\n");
        assert_eq!(evidence.problems().len(), 1);
        assert!(evidence.enforcers("E1").is_empty());
    }

    #[test]
    fn every_place_has_its_line() {
        let text = "// enforces: D21\nlet kept = rule::E7;\n";
        let evidence = scanned(LIB, text);
        assert_eq!(evidence.places("D21").next().unwrap().line, 1);
        assert_eq!(evidence.places("E7").next().unwrap().line, 2);
        let text = "// covers: T1\n#[test]\nfn one_start() {}\n";
        let evidence = scanned("crates/t/tests/order.rs", text);
        assert_eq!(evidence.tests("T1").next().unwrap().1.line, 3);
    }

    #[test]
    fn a_covering_comment_is_recorded_with_the_name_of_its_test() {
        let text = "#[cfg(test)]\nmod tests {\n    // covers: E7\n    // covers: E9\n    #[test]\n    \
                    #[should_panic]\n    fn ids_are_short() {\n    }\n}\n";
        let evidence = scanned(LIB, text);
        assert_eq!(evidence.coverers("E7"), ["ids_are_short"]);
        assert_eq!(evidence.coverers("E9"), ["ids_are_short"]);
        assert!(evidence.problems().is_empty());
    }

    #[test]
    fn a_test_of_the_page_covers_under_its_sentence() {
        let text = "// covers: L7\ntest(\"a sentence, with a comma\", async () => {\n";
        let evidence = scanned("web/tests/browser/a.test.js", text);
        assert_eq!(evidence.coverers("L7"), ["a sentence, with a comma"]);
        assert!(evidence.problems().is_empty());
        let evidence = scanned("web/tests/browser/a.test.js", "// covers: L7\nconst test = 1;\n");
        assert_eq!(evidence.problems().len(), 1);
    }

    #[test]
    fn every_function_under_tests_may_cover() {
        let text = "// covers: T1\n#[tokio::test]\nasync fn one_start() {}\n";
        assert_eq!(scanned("crates/t/tests/order.rs", text).coverers("T1"), ["one_start"]);
    }

    #[test]
    fn a_covering_comment_without_a_test_below_is_a_problem() {
        for text in ["// covers: E7\nfn helper() {}\n", "// covers: E7\n\n#[test]\nfn t() {}\n"] {
            let evidence = scanned("crates/t/tests/order.rs", text);
            assert_eq!(evidence.problems().len(), 1, "{text}");
            assert!(evidence.coverers("E7").is_empty());
        }
    }

    #[test]
    fn an_annotation_on_the_wrong_side_is_a_problem() {
        assert_eq!(scanned(LIB, "// covers: E7\n#[test]\nfn t() {}\n").problems().len(), 1);
        assert_eq!(scanned("crates/t/tests/a.rs", "// enforces: E7\n").problems().len(), 1);
    }
}
