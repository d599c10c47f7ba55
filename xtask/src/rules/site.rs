//! Finds ways to take away what a marker marks: a guard never fires, a function gives its trivial value,
//! a statement is left out.
//!
//! It works on lines of formatted code, like the rest of the table: a block ends at the closing brace
//! that stands as far in as its first line. Nothing is replaced and no line is added: each way is text
//! that is put in, so that many ways live side by side in one build, and a compiler's error names the
//! line that we know.

/// Text that goes in at a line and a column, both from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Insertion {
    pub(super) line: usize,
    pub(super) column: usize,
    pub(super) text: String,
}

/// One way to take something away.
pub(super) type Way = Vec<Insertion>;

/// Every way to take away what is marked on this line (from 0). `off` is an expression that is true
/// while the way is to be gone.
pub(super) fn ways(text: &str, marker: usize, mut off: impl FnMut() -> String) -> Vec<Way> {
    let lines: Vec<&str> = text.lines().collect();
    let Some(at) = marked(&lines, marker) else { return Vec::new() };
    let source = Source { lines };
    let code = source.lines[at].trim_start();
    if is_member(code) {
        return Vec::new();
    }
    if is_function(code) {
        return source.function(at, &mut off);
    }
    let way = if source.lines[marker].contains("rule::") {
        source.enclosing_guard(marker, &off()).or_else(|| source.statement(at, &off()))
    } else if code.starts_with("if ") {
        source.guard(at, &off())
    } else if code.contains(" => ") {
        source.arm(at, &off())
    } else if code.starts_with("let ") {
        source.binding(at, &off())
    } else {
        source.statement(at, &off()).or_else(|| source.value(at, &off()))
    };
    way.into_iter().collect()
}

/// The text with what goes in.
pub(super) fn apply<'a>(text: &str, ways: impl Iterator<Item = &'a Way>) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let mut all: Vec<&Insertion> = ways.flatten().collect();
    all.sort_by_key(|insertion| std::cmp::Reverse((insertion.line, insertion.column)));
    for Insertion { line, column, text } in all {
        lines[*line].insert_str(*column, text);
    }
    lines.join("\n") + "\n"
}

/// The first line of code at or below a marker.
fn marked(lines: &[&str], marker: usize) -> Option<usize> {
    (marker..lines.len()).find(|&at| {
        let line = lines[at].trim_start();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("#[")
    })
}

/// Whether the line is one of an `object!` table. What it enforces is switched off where problems are
/// reported.
pub(super) fn is_member(line: &str) -> bool {
    let line = line.trim_start();
    line.starts_with("required ") || line.starts_with("optional ")
}

fn is_function(line: &str) -> bool {
    let line = line.strip_prefix("pub ").unwrap_or(line);
    let line = match line.strip_prefix("pub(").and_then(|rest| rest.split_once(") ")) {
        Some((_, rest)) => rest,
        None => line,
    };
    line.strip_prefix("async ").unwrap_or(line).starts_with("fn ")
}

fn indent(line: &str) -> usize {
    line.len() - line.trim_start().len()
}

struct Source<'a> {
    lines: Vec<&'a str>,
}

impl Source<'_> {
    fn insert(line: usize, column: usize, text: String) -> Insertion {
        Insertion { line, column, text }
    }

    /// The last line of the header that begins here: it ends with the opening brace.
    fn header(&self, at: usize) -> Option<usize> {
        let depth = indent(self.lines[at]);
        let far = self.lines.len().min(at + 24);
        (at..far).find(|&line| {
            self.lines[line].trim_end().ends_with('{')
                && !self.lines[line].contains("=> {")
                && (line == at || indent(self.lines[line]) == depth)
        })
    }

    /// Where the block that is opened on this line is closed.
    fn end(&self, at: usize) -> Option<usize> {
        let depth = indent(self.lines[at]);
        (at + 1..self.lines.len()).find(|&line| {
            indent(self.lines[line]) == depth && self.lines[line].trim_start().starts_with('}')
        })
    }

    /// `if bad {` that never fires.
    fn guard(&self, at: usize, off: &str) -> Option<Way> {
        let last = self.header(at)?;
        let start = self.lines[at].find("if ")? + 3;
        let end = self.lines[last].rfind('{')?;
        let whole = self.lines[at..=last].join(" ");
        // Patterns stand in a chain; nothing else in it binds weaker than `&&`.
        let (open, close) = if whole.contains("let ") { ("", "") } else { ("(", ")") };
        Some(vec![
            Self::insert(at, start, format!("!{off} && {open}")),
            Self::insert(last, end, close.to_owned()),
        ])
    }

    /// The innermost `if` around a line that names its rule.
    fn enclosing_guard(&self, at: usize, off: &str) -> Option<Way> {
        let mut depth = indent(self.lines[at]) + 1;
        for line in (0..=at).rev() {
            let code = self.lines[line].trim_start();
            if code.is_empty() || indent(self.lines[line]) >= depth {
                continue;
            }
            depth = indent(self.lines[line]);
            if code.starts_with("if ") || code.starts_with("} else if ") {
                return self.guard(line, off);
            }
            if line != at && code.contains(" => ") && !code.starts_with("(") {
                return self.arm(line, off);
            }
            if is_function(code) {
                return None;
            }
        }
        None
    }

    /// An arm of a `match` that no value takes.
    fn arm(&self, at: usize, off: &str) -> Option<Way> {
        let line = self.lines[at];
        let arrow = line.find(" => ")?;
        Some(match line[..arrow].find(" if ") {
            Some(condition) => vec![
                Self::insert(at, condition + 4, format!("!{off} && (")),
                Self::insert(at, arrow, ")".to_owned()),
            ],
            None => vec![Self::insert(at, arrow, format!(" if !{off}"))],
        })
    }

    /// A function that does nothing: one way for each trivial value; or whose guards never fire.
    fn function(&self, at: usize, off: &mut impl FnMut() -> String) -> Vec<Way> {
        let Some(last) = self.header(at) else { return Vec::new() };
        let whole: Vec<&str> = self.lines[at..=last].iter().map(|line| line.trim()).collect();
        let whole = whole.join(" ");
        let gives =
            whole.rsplit_once("-> ").map_or("()", |(_, rest)| rest.trim_end_matches('{').trim());
        let brace = self.lines[last].trim_end().len();
        let early = |value: &&str, off: String| {
            vec![Self::insert(last, brace, format!(" if {off} {{ return {value}; }}"))]
        };
        let mut ways: Vec<Way> = trivial(gives).iter().map(|value| early(value, off())).collect();
        if !matches!(gives, "()" | "bool") {
            ways.extend(self.refusals(last, &off()));
        }
        ways
    }

    /// Everything in a function that refuses: guards that return, and statements that end with `?`.
    fn refusals(&self, open: usize, off: &str) -> Option<Way> {
        let close = self.end(open)?;
        let (mut way, mut at) = (Vec::new(), open + 1);
        while at < close {
            let code = self.lines[at].trim_start();
            let returns = |last: usize| {
                let first = self.lines.get(last + 1).map_or("", |line| line.trim_start());
                first.starts_with("return Err(") || first.starts_with("return None")
            };
            if code.starts_with("if ") && self.header(at).is_some_and(returns) {
                way.extend(self.guard(at, off)?);
            } else if code.ends_with("?;") && !code.contains(" = ") && !code.starts_with('.') {
                way.extend(self.statement(at, off).unwrap_or_default());
            }
            at += 1;
        }
        (!way.is_empty()).then_some(way)
    }

    /// Where the statement that begins here ends: its line, and the column of its semicolon.
    fn semicolon(&self, at: usize) -> Option<(usize, usize)> {
        let depth = indent(self.lines[at]);
        let ends = |&line: &usize| {
            let code = without_comment(self.lines[line]);
            (line == at || indent(code) == depth || code.trim_start().starts_with('.'))
                && code.ends_with(';')
        };
        let last = (at..self.lines.len().min(at + 40)).find(ends)?;
        Some((last, without_comment(self.lines[last]).len() - 1))
    }

    /// A statement that is left out: a call, an assignment, a loop or a return.
    fn statement(&self, at: usize, off: &str) -> Option<Way> {
        let code = self.lines[at].trim_start();
        if code.starts_with("let ") || code.starts_with('}') || code.starts_with("pub ") {
            return None;
        }
        let (last, end) = if ["for ", "while ", "match "].iter().any(|it| code.starts_with(it)) {
            let last = self.end(self.header(at)?)?;
            (last, self.lines[last].trim_end().len())
        } else {
            let (last, semicolon) = self.semicolon(at)?;
            (last, semicolon + 1)
        };
        Some(vec![
            Self::insert(at, indent(self.lines[at]), format!("if !{off} {{ ")),
            Self::insert(last, end, " }".to_owned()),
        ])
    }

    /// `let x = value;` that gives the default.
    fn binding(&self, at: usize, off: &str) -> Option<Way> {
        let (last, semicolon) = self.semicolon(at)?;
        let line = self.lines[at];
        let equals = line.find(" = ").or_else(|| line.ends_with(" =").then(|| line.len() - 2))?;
        if self.lines[at..=last]
            .iter()
            .any(|line| line.contains(" else {") && !line.contains("if "))
        {
            return None;
        }
        Some(vec![
            Self::insert(at, equals + 2, format!(" if {off} {{ Default::default() }} else {{ ")),
            Self::insert(last, semicolon, " }".to_owned()),
        ])
    }

    /// The last expression of a block, as its default.
    fn value(&self, at: usize, off: &str) -> Option<Way> {
        let depth = indent(self.lines[at]);
        let close = (at + 1..self.lines.len().min(at + 24))
            .find(|&line| indent(self.lines[line]) < depth && !self.lines[line].is_empty())?;
        if !self.lines[close].trim_start().starts_with('}') {
            return None;
        }
        let last = close - 1;
        Some(vec![
            Self::insert(at, depth, format!("if {off} {{ Default::default() }} else {{ ")),
            Self::insert(last, without_comment(self.lines[last]).len(), " }".to_owned()),
        ])
    }
}

/// The line up to its comment.
fn without_comment(line: &str) -> &str {
    line.find(" // ").map_or(line, |at| &line[..at]).trim_end()
}

/// What a function of this type gives that does nothing. Of a yes or no, both.
fn trivial(gives: &str) -> &'static [&'static str] {
    match gives {
        "()" => &["()"],
        "bool" => &["true", "false"],
        "io::Result<()>" => &["Ok(())"],
        "Self" => &[],
        _ if gives.starts_with("Option<") => &["None"],
        _ if gives.starts_with("Result<(), ") => &["Ok(())"],
        _ if gives.starts_with("Result<") || gives.starts_with("Poll<") => &[],
        _ => &["Default::default()"],
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text with the first way of its marker.
    fn first(text: &str) -> String {
        let marker =
            text.lines().position(|line| line.contains("enforces") || line.contains("rule::"));
        let ways = ways(text, marker.unwrap(), || "off()".to_owned());
        ways.first().map_or_else(String::new, |way| apply(text, [way].into_iter()))
    }

    #[test]
    fn a_guard_never_fires() {
        let text = "    // enforces: E7\n    // Why.\n    if a\n        || b\n    {\n        return;\n    }\n";
        assert!(first(text).contains("if !off() && (a\n        || b\n    ){\n        return;"));
        let named = "    if a {\n        report(\n            rule::E7,\n        );\n    }\n";
        assert!(first(named).contains("if !off() && (a ){"));
        let pattern = "    // enforces: E7\n    if let Some(a) = b {\n        c(a);\n    }\n";
        assert!(first(pattern).contains("if !off() && let Some(a) = b {"));
    }

    #[test]
    fn a_function_gives_its_trivial_value() {
        let text = "// enforces: E7\n/// Says.\npub(crate) fn f(\n    a: u8,\n) -> Result<(), E> {\n    g()\n}\n";
        assert!(first(text).contains("{ if off() { return Ok(()); }\n    g()"));
        let text = "// enforces: E7\nfn f() -> bool {\n    g()\n}\n";
        assert_eq!(ways(text, 0, || "off()".to_owned()).len(), 2);
    }

    #[test]
    fn a_function_of_another_type_loses_what_refuses() {
        let text = "// enforces: E7\nfn f(a: u8) -> Result<u8, E> {\n    if a > 1 {\n        return Err(e);\n    }\n    g(a)?;\n    if a > 2 {\n        b();\n    }\n    Ok(a)\n}\n";
        let without = first(text);
        assert!(without.contains("if !off() && (a > 1 ){"), "{without}");
        assert!(without.contains("if !off() { g(a)?; }"), "{without}");
        assert!(without.contains("    if a > 2 {"), "{without}");
    }

    #[test]
    fn a_statement_is_left_out_and_what_binds_a_name_gives_the_default() {
        let call = "fn f() {\n    // enforces: E7\n    a.b(\n        1,\n    );\n    c();\n}\n";
        assert!(first(call).contains("if !off() { a.b(\n        1,\n    ); }\n    c();"));
        let binding = "fn f() {\n    // enforces: E7\n    let a = 1; // why\n}\n";
        assert!(
            first(binding).contains("let a = if off() { Default::default() } else {  1 }; // why")
        );
        let value = "fn f() {\n    // enforces: E7\n    a.b()\n        .c()\n}\n";
        assert!(
            first(value).contains("if off() { Default::default() } else { a.b()\n        .c() }\n")
        );
    }

    #[test]
    fn a_line_of_a_table_stays() {
        assert_eq!(first("object! {\n    // enforces: E7\n    required a: T, E7;\n}\n"), "");
    }

    #[test]
    fn an_arm_is_never_taken() {
        let arm = "match a {\n    // enforces: E7\n    A => b(),\n    _ => c(),\n}\n";
        assert!(first(arm).contains("A if !off() => b(),"));
        let named = "match a {\n    A if d || e => {\n        report(rule::E7)\n    }\n}\n";
        assert!(first(named).contains("A if !off() && (d || e) => {"), "{}", first(named));
    }
}
