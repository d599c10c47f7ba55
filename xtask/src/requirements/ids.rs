//! Rule ids: a capital letter and a number, like `E7`.

/// Whether the text looks like an id; whether such a rule exists is another question.
pub(super) fn is_id(text: &str) -> bool {
    let mut chars = text.chars();
    chars.next().is_some_and(|first| first.is_ascii_uppercase())
        && !chars.as_str().is_empty()
        && chars.all(|digit| digit.is_ascii_digit())
}

/// Reads `E7, E9`; an element that is no id is an error that names it.
pub(super) fn parse_list(text: &str) -> Result<Vec<String>, String> {
    text.split(',')
        .map(str::trim)
        .map(|id| {
            if is_id(id) {
                Ok(id.to_owned())
            } else {
                Err(format!("{id:?} is no rule id; write ids separated by commas and nothing else"))
            }
        })
        .collect()
}

/// Every `rule::E7` in a line of code; other items of that module are passed over, and so are
/// patterns, which only tell rules apart.
pub(super) fn named_as_constants(code: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let code = match code.split_once("=>") {
        Some((_pattern, value)) => value,
        None if code.trim_start().starts_with('|') => return Vec::new(),
        None => code,
    };
    let mut found = Vec::new();
    for (at, prefix) in code.match_indices("rule::") {
        if code[..at].ends_with(is_word) {
            continue;
        }
        let rest = &code[at + prefix.len()..];
        let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
        if is_id(name) {
            found.push(name.to_owned());
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_is_one_capital_and_a_number() {
        assert!(is_id("E7") && is_id("D35"));
        for other in ["", "E", "7", "e7", "E7a", "ALL", "E 7", "É7"] {
            assert!(!is_id(other), "{other}");
        }
    }

    #[test]
    fn a_list_with_anything_else_in_it_is_refused() {
        assert_eq!(parse_list(" E7, E9 ").unwrap(), ["E7", "E9"]);
        assert!(parse_list("E7 and E9").is_err());
        assert!(parse_list("E7,").is_err());
    }

    #[test]
    fn constants_are_found_wherever_they_stand() {
        let code = "f(crate::rule::E7, rule::T13, subrule::E9, rule::Rule, rule::ALL)";
        assert_eq!(named_as_constants(code), ["E7", "T13"]);
    }

    #[test]
    fn a_pattern_names_no_rule_but_the_value_behind_it_does() {
        assert!(named_as_constants("rule::E17 | rule::E24 => 7,").is_empty());
        assert!(named_as_constants("    | rule::E24").is_empty());
        assert_eq!(named_as_constants("FaultKind::TooDeep => rule::E21,"), ["E21"]);
    }
}
