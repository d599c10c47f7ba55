//! Judges everything that was heard on the whole stream.

use serde_json::Value;

use crate::published;
use crate::stream::{Checker, Finding, Options, Weight};
use crate::suite::ear::{is, is_end};
use crate::suite::report::Report;

/// Which check a rule of the stream belongs to.
fn check_of(rule: &str) -> &'static str {
    match rule {
        "T1" | "E8" => "lifecycle",
        "E7" => "identifiers",
        "E10" => "time",
        "E15" => "numbers",
        "T7" | "T16" | "T25" | "T26" => "states",
        "T13" | "T15" | "T33" => "tools",
        "T17" | "T18" => "outputs",
        "T14" | "S9" => "secrets",
        "T12" | "T27" | "C15" | "C16" => "consent",
        "C6" => "tokens",
        "C14" => "timeout",
        "C1" | "C2" | "C3" | "C23" | "T24" => "blocking",
        _ => "messages",
    }
}

pub(super) fn judge(texts: &[String], report: &mut Report) {
    let mut found: Vec<Finding> = Vec::new();
    let mut checker = Checker::new(Options { complete: true, ..Options::default() });
    let values: Vec<Value> =
        texts.iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect();
    for (place, (text, value)) in (1..).zip(texts.iter().zip(&values)) {
        checker.message(place, text.as_bytes(), &mut found);
        for violation in published::judge(value) {
            report.fail("messages", format!("Message {place}: {violation}"));
        }
    }
    checker.finish(&mut found);
    // What was begun last may still be under way.
    let last = values.iter().rev().find(|event| is(event, "session.started"));
    let last = last.and_then(|event| event["session_id"].as_str());
    for finding in found.iter().filter(|finding| finding.weight == Weight::Error) {
        let open = finding.event_id.is_none() && finding.session_id.as_deref() == last;
        if !open {
            report.fail(check_of(finding.rule.id), finding.to_string());
        }
    }
    exercised(&values, report);
}

/// What was seen at all; the rest stays not exercised.
fn exercised(values: &[Value], report: &mut Report) {
    let any = |kind: &str| values.iter().any(|event| is(event, kind));
    for (check, seen) in [
        ("messages", !values.is_empty()),
        ("identifiers", values.len() > 1),
        ("time", values.len() > 1),
        ("numbers", values.len() > 1),
        ("lifecycle", values.iter().any(is_end)),
        ("states", any("state.changed")),
        ("tools", any("tool.completed")),
        ("outputs", any("output.streaming")),
        ("errors", any("session.errored")),
        ("cancellations", any("session.cancelled")),
        ("progress", any("progress.updated")),
        ("secrets", !values.is_empty()),
        ("consent", values.iter().any(|it| is(it, "tool.invoked") && it["irreversible"] == true)),
        ("tokens", any("awaiting.confirmation")),
    ] {
        if seen {
            report.pass(check);
        } else {
            report.skip(check, "Nothing that was heard shows it.");
        }
    }
}
