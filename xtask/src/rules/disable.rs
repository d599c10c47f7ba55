//! Takes away what a marker marks, mechanically: a guard no longer fires, or a function gives its
//! trivial value.
//!
//! It works on lines of formatted code, like the rest of the table: a block ends at the closing brace
//! that stands as far in as its first line.

/// A false condition and a true one that no compiler looks through.
const NEVER: &str = "std::hint::black_box(false)";
const ALWAYS: &str = "std::hint::black_box(true)";

/// The file without what is marked on this line (from 0), in each way that is known; none if no way is.
pub(super) fn without_marked(text: &str, marker: usize) -> Vec<String> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = marked(&lines, marker) else { return Vec::new() };
    let line = lines[at].trim_start();
    let edits = if is_function(line) {
        function(&lines, at)
    } else if line.starts_with("if ") {
        guard(&lines, at).into_iter().collect()
    } else if lines[marker].contains("rule::") {
        enclosing_guard(&lines, marker).into_iter().collect()
    } else {
        statement(&lines, at).into_iter().collect()
    };
    edits.into_iter().map(|edit| edit.apply(&lines)).collect()
}

/// Lines that are replaced by others.
struct Edit {
    from: usize,
    to: usize,
    by: Vec<String>,
}

impl Edit {
    fn apply(&self, lines: &[&str]) -> String {
        let by = self.by.iter().map(String::as_str);
        let all =
            lines[..self.from].iter().copied().chain(by).chain(lines[self.to..].iter().copied());
        all.flat_map(|line| [line, "\n"]).collect()
    }
}

/// The first line of code at or below a marker.
fn marked(lines: &[&str], marker: usize) -> Option<usize> {
    (marker..lines.len()).find(|&at| {
        let line = lines[at].trim_start();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("#[")
    })
}

fn is_function(line: &str) -> bool {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = match line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => rest,
        None => line,
    };
    let line = line.strip_prefix("const ").unwrap_or(line);
    line.strip_prefix("async ").unwrap_or(line).starts_with("fn ")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

/// The last line of the header that begins here: it ends with the opening brace.
fn header(lines: &[&str], at: usize) -> Option<usize> {
    let far = lines.len().min(at + 24);
    (at..far).find(|&line| lines[line].trim_end().ends_with('{') && !lines[line].contains("=> {"))
}

/// Where the block that is opened on this line is closed.
fn end(lines: &[&str], at: usize) -> Option<usize> {
    let depth = indent(lines[at]);
    (at + 1..lines.len())
        .find(|&line| indent(lines[line]) == depth && lines[line].trim_start().starts_with('}'))
}

/// `if bad {` that never fires.
fn guard(lines: &[&str], at: usize) -> Option<Edit> {
    let last = header(lines, at)?;
    let whole: Vec<&str> = lines[at..=last].iter().map(|line| line.trim()).collect();
    let condition = whole.join(" ");
    let condition = condition.strip_prefix("if ")?.strip_suffix('{')?.trim();
    // A pattern binds names that the block uses.
    if condition.contains("let ") {
        return None;
    }
    let space = " ".repeat(indent(lines[at]));
    let by = vec![format!("{space}if {NEVER} && ({condition}) {{")];
    Some(Edit { from: at, to: last + 1, by })
}

/// The innermost `if` around a line that names its rule.
fn enclosing_guard(lines: &[&str], at: usize) -> Option<Edit> {
    let mut depth = indent(lines[at]);
    for line in (0..at).rev() {
        let code = lines[line].trim_start();
        if code.is_empty() || indent(lines[line]) >= depth {
            continue;
        }
        depth = indent(lines[line]);
        if code.starts_with("if ") {
            return guard(lines, line);
        }
        if is_function(code) {
            return None;
        }
    }
    None
}

/// A function that does nothing: one edit for each trivial value; or with guards that never fire.
fn function(lines: &[&str], at: usize) -> Vec<Edit> {
    let Some(last) = header(lines, at) else { return Vec::new() };
    let whole: Vec<&str> = lines[at..=last].iter().map(|line| line.trim()).collect();
    let whole = whole.join(" ");
    let gives =
        whole.rsplit_once("-> ").map_or("()", |(_, rest)| rest.trim_end_matches('{').trim());
    let values = trivial(gives);
    if values.is_empty() {
        return inner_guards(lines, last).into_iter().collect();
    }
    let early = |value: &&str| Edit {
        from: last + 1,
        to: last + 1,
        by: vec![format!("if {ALWAYS} {{ return {value}; }}")],
    };
    values.iter().map(early).collect()
}

/// What a function of this type gives that does nothing. Of a yes or no, both.
fn trivial(gives: &str) -> &'static [&'static str] {
    match gives {
        "()" => &["()"],
        "bool" => &["true", "false"],
        "usize" | "u8" | "u32" | "u64" | "u128" | "i64" | "String" | "Arc<str>" => {
            &["Default::default()"]
        }
        _ if gives.starts_with("Option<") => &["None"],
        _ if gives.starts_with("Result<(), ") => &["Ok(())"],
        _ if gives.starts_with("Vec<") || gives.starts_with("Cow<") => &["Default::default()"],
        _ => &[],
    }
}

/// Every guard of a function that refuses something never fires.
fn inner_guards(lines: &[&str], open: usize) -> Option<Edit> {
    let close = end(lines, open)?;
    let (mut by, mut at, mut found) = (Vec::new(), open + 1, false);
    while at < close {
        let refuses = lines[at].trim_start().starts_with("if ")
            && header(lines, at)
                .is_some_and(|last| lines[last + 1].trim_start().starts_with("return Err("));
        match guard(lines, at).filter(|_| refuses) {
            Some(edit) => {
                by.extend(edit.by);
                at = edit.to;
                found = true;
            }
            None => {
                by.push(lines[at].to_owned());
                at += 1;
            }
        }
    }
    found.then_some(Edit { from: open + 1, to: close, by })
}

/// A statement that is left out: a call or an assignment, nothing that binds a name.
fn statement(lines: &[&str], at: usize) -> Option<Edit> {
    let (code, depth) = (lines[at].trim_start(), indent(lines[at]));
    if ["let ", "return", "match ", "for ", "while ", "}"].iter().any(|word| code.starts_with(word))
    {
        return None;
    }
    let ends =
        |line: &usize| indent(lines[*line]) == depth && lines[*line].trim_end().ends_with(';');
    let last = (at..lines.len().min(at + 24)).find(ends)?;
    Some(Edit { from: at, to: last + 1, by: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> String {
        let marker =
            text.lines().position(|line| line.contains("enforces") || line.contains("rule::"));
        without_marked(text, marker.unwrap()).into_iter().next().unwrap_or_default()
    }

    #[test]
    fn a_guard_never_fires() {
        let text = "    // enforces: E7\n    // Why.\n    if a\n        || b\n    {\n        return;\n    }\n";
        assert!(
            one(text).contains("if std::hint::black_box(false) && (a || b) {\n        return;")
        );
        let named = "    if a {\n        report(\n            rule::E7,\n        );\n    }\n";
        assert!(one(named).contains("black_box(false) && (a) {"));
    }

    #[test]
    fn a_function_gives_its_trivial_value() {
        let text = "// enforces: E7\n/// Says.\npub(crate) fn f(\n    a: u8,\n) -> Result<(), E> {\n    g()\n}\n";
        assert!(one(text).contains("{\nif std::hint::black_box(true) { return Ok(()); }\n    g()"));
        let text = "// enforces: E7\nfn f() -> bool {\n    g()\n}\n";
        assert_eq!(without_marked(text, 0).len(), 2);
    }

    #[test]
    fn a_function_of_another_type_loses_the_guards_that_refuse() {
        let text = "// enforces: E7\nfn f(a: u8) -> Result<u8, E> {\n    if a > 1 {\n        return Err(e);\n    }\n    if a > 2 {\n        b();\n    }\n    Ok(a)\n}\n";
        let disabled = one(text);
        assert!(disabled.contains("black_box(false) && (a > 1) {"), "{disabled}");
        assert!(disabled.contains("    if a > 2 {"), "{disabled}");
    }

    #[test]
    fn a_statement_is_left_out_unless_it_binds_a_name() {
        assert_eq!(
            one("fn f() {\n    // enforces: E7\n    a.b(\n        1,\n    );\n    c();\n}\n"),
            "fn f() {\n    // enforces: E7\n    c();\n}\n"
        );
        assert_eq!(one("fn f() {\n    // enforces: E7\n    let a = 1;\n}\n"), "");
        assert_eq!(
            one(
                "fn f() {\n    // enforces: E7\n    if let Some(a) = b {\n        c(a);\n    }\n}\n"
            ),
            ""
        );
    }
}
