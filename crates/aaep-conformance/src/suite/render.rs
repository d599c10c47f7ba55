//! A report as text, JSON, JUnit and HTML.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::catalog::Force;
use super::report::{CheckOutcome, CheckResult, Report, Side, level_name};

impl Report {
    /// Plain lines: what failed first, then what was not exercised, then what passed, then the claim.
    pub fn to_text(&self) -> String {
        let mut text = format!("{} {} at level {}.\n", self.whom(), self.target, self.level);
        if let Some(why) = &self.cut_short {
            let _ = writeln!(text, "The run was cut short: {why}");
        }
        for (word, of) in [("failed", 1), ("not exercised", 2), ("passed", 0)] {
            for result in self.results.iter().filter(|result| rank(result) == of) {
                let check = result.check;
                let soft = if check.force == Force::Should { ", recommended" } else { "" };
                let _ = writeln!(
                    text,
                    "{word}: {}: {} (level {}{soft}, {})",
                    check.id, check.title, check.level, check.rules
                );
                for said in details(result) {
                    let _ = writeln!(text, "  {}", plain(said));
                }
            }
        }
        let [passed, failed, skipped] = self.tally();
        let _ = writeln!(
            text,
            "{passed} passed, {failed} failed, {skipped} not exercised, in {:.1} seconds.",
            self.seconds
        );
        let _ = writeln!(text, "{}", self.claim());
        text
    }

    /// One object, for programs.
    pub fn to_json(&self) -> String {
        let results: Vec<Value> = self.results.iter().map(as_json).collect();
        let [passed, failed, skipped] = self.tally();
        let whole = json!({
            "suite": "aaep-conformance", "suite_version": env!("CARGO_PKG_VERSION"),
            "aaep_version": aaep_types::AAEP_VERSION.to_string(), "side": self.side.name(), "profile": self.profile,
            "target": self.target, "level": self.level, "granted": self.granted(),
            "claim": self.claim(), "began": self.began, "seconds": self.seconds,
            "cut_short": self.cut_short, "passed": passed, "failed": failed,
            "not_exercised": skipped, "checks": results,
        });
        format!("{whole:#}\n")
    }

    /// JUnit's XML: what was not exercised is skipped there.
    pub fn to_junit(&self) -> String {
        let [_, failed, skipped] = self.tally();
        let mut xml = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"aaep {} level {}\" \
             tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\" time=\"{:.3}\" timestamp=\"{}\">\n",
            self.side.name(),
            self.level,
            self.results.len(),
            self.seconds,
            escape(&self.began)
        );
        for result in &self.results {
            let (id, level) = (result.check.id, result.check.level);
            let _ = write!(xml, "  <testcase classname=\"level{level}\" name=\"{id}\"");
            let said = escape(&details(result).join(" "));
            let _ = match result.outcome {
                CheckOutcome::Passed => writeln!(xml, "/>"),
                CheckOutcome::Failed(_) => {
                    writeln!(xml, "><failure message=\"{said}\"/></testcase>")
                }
                CheckOutcome::NotExercised(_) => {
                    writeln!(xml, "><skipped message=\"{said}\"/></testcase>")
                }
            };
        }
        let _ = writeln!(xml, "  <system-out>{}</system-out>\n</testsuite>", escape(&self.claim()));
        xml
    }

    /// One page that needs nothing else: headings, and a table with a caption and headers.
    pub fn to_html(&self) -> String {
        let [passed, failed, skipped] = self.tally();
        let mut rows = String::new();
        for result in &self.results {
            let check = result.check;
            let _ = writeln!(
                rows,
                "<tr><th scope=\"row\">{}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>",
                check.id,
                check.level,
                word(result),
                escape(check.title),
                check.rules,
                escape(&details(result).join(" "))
            );
        }
        let cut = self.cut_short.as_deref().map_or(String::new(), |why| {
            format!("<p>The run was cut short: {}</p>\n", escape(why))
        });
        format!(
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width\">\n\
             <title>AAEP conformance report: level {level}</title>\n\
             <style>body{{font-family:sans-serif;max-width:75em;margin:auto;padding:1em}}\
             table{{border-collapse:collapse}}th,td{{border:1px solid;padding:.3em;text-align:left;\
             vertical-align:top}}</style>\n</head>\n<body>\n<main>\n\
             <h1>AAEP conformance report</h1>\n<p>{whom} {target}, level {level} ({name}), {began}.</p>\n{cut}\
             <h2>Claim</h2>\n<p>{claim}</p>\n<h2>Checks</h2>\n\
             <p>{passed} passed, {failed} failed, {skipped} not exercised.</p>\n\
             <table>\n<caption>Every check and what became of it</caption>\n<thead><tr>\
             <th scope=\"col\">Check</th><th scope=\"col\">Level</th><th scope=\"col\">CheckOutcome</th>\
             <th scope=\"col\">What holds</th><th scope=\"col\">Rules</th><th scope=\"col\">Found</th>\
             </tr></thead>\n<tbody>\n{rows}</tbody>\n</table>\n</main>\n</body>\n</html>\n",
            whom = self.whom(),
            level = self.level,
            name = level_name(self.level),
            target = escape(&self.target),
            began = escape(&self.began),
            claim = escape(&self.claim()),
        )
    }

    fn whom(&self) -> &'static str {
        match self.side {
            Side::Producer => "Producer",
            Side::Subscriber => "Subscriber",
        }
    }

    /// How many passed, failed, and were not exercised.
    pub fn tally(&self) -> [usize; 3] {
        let mut tally = [0; 3];
        for result in &self.results {
            tally[rank(result)] += 1;
        }
        tally
    }
}

fn rank(result: &CheckResult) -> usize {
    match result.outcome {
        CheckOutcome::Passed => 0,
        CheckOutcome::Failed(_) => 1,
        CheckOutcome::NotExercised(_) => 2,
    }
}

fn word(result: &CheckResult) -> &'static str {
    ["passed", "failed", "not exercised"][rank(result)]
}

fn details(result: &CheckResult) -> Vec<&str> {
    match &result.outcome {
        CheckOutcome::Passed => Vec::new(),
        CheckOutcome::Failed(found) => found.iter().map(String::as_str).collect(),
        CheckOutcome::NotExercised(why) => vec![why],
    }
}

fn as_json(result: &CheckResult) -> Value {
    let check = result.check;
    json!({
        "id": check.id, "level": check.level, "must": check.force == Force::Must,
        "rules": check.rules, "title": check.title, "outcome": word(result).replace(' ', "_"),
        "details": details(result),
    })
}

/// Without anything that moves a cursor: what a target said may be in it.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn escape(text: &str) -> String {
    let mut safe = String::with_capacity(text.len());
    for c in plain(text).chars() {
        match c {
            '&' => safe.push_str("&amp;"),
            '<' => safe.push_str("&lt;"),
            '>' => safe.push_str("&gt;"),
            '"' => safe.push_str("&quot;"),
            c => safe.push(c),
        }
    }
    safe
}
