//! Judges everything that was heard on the whole stream.

use aaep_types::json::Members;
use aaep_types::profile::Profile;
use serde_json::Value;

use crate::published;
use crate::stream::{Checker, Finding, Options, Weight};
use crate::suite::ear::{is, is_end};
use crate::suite::report::Report;
use crate::suite::target::Target;

/// How deep an event may nest.
const DEPTH: usize = 64;

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
        "T4" => "errors",
        "T6" => "cancellations",
        "T9" => "progress",
        "T14" | "S9" => "secrets",
        "T12" | "T27" | "C15" | "C16" => "consent",
        "C6" => "tokens",
        "C14" => "timeout",
        "C1" | "C2" | "C3" | "C23" | "T24" => "blocking",
        "X6" | "X9" => "profile",
        _ => "messages",
    }
}

pub(super) fn judge(texts: &[String], target: &Target, report: &mut Report) {
    let mut found: Vec<Finding> = Vec::new();
    let mut checker = Checker::new(Options { complete: true, ..Options::default() });
    if let Some(profile) = &target.profile {
        checker = checker.under(profile.clone());
        match unheard(profile, texts) {
            rules if rules.is_empty() => report.pass("profile"),
            rules => report.skip("profile", format!("Nothing came up for: {}.", rules.join(", "))),
        }
    }
    let values: Vec<Value> =
        texts.iter().map(|text| serde_json::from_str(text).unwrap_or_default()).collect();
    for (place, (text, value)) in (1..).zip(texts.iter().zip(&values)) {
        checker.message(place, text.as_bytes(), &mut found);
        // What a handshake was answered with may be among them.
        for violation in published::judge(value) {
            report.fail("messages", format!("Message {place}: {violation}"));
        }
    }
    checker.finish(&mut found);
    // What was begun last may still be under way.
    let last = values.iter().rev().find(|event| is(event, "session.started"));
    let last = last.and_then(|event| event["session_id"].as_str());
    let streams: Vec<&str> = values
        .iter()
        .filter(|event| is(event, "output.streaming"))
        .filter_map(|event| event["session_id"].as_str())
        .collect();
    for finding in found.iter().filter(|finding| finding.weight == Weight::Error) {
        let session = finding.session_id.as_deref();
        let open = finding.event_id.is_none() && session == last;
        // D15: where text may be merged, a hole is no loss; a subscription without merging shows those.
        let merged = finding.rule.id == "E15" && session.is_some_and(|id| streams.contains(&id));
        if !open && !merged {
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

/// Judges what a subscription with the widest terms heard: each session whole, and in order.
pub(super) fn judge_order(events: &[Value], report: &mut Report) {
    let mut found: Vec<Finding> = Vec::new();
    let mut checker = Checker::new(Options { complete: true, ..Options::default() });
    for (place, event) in (1..).zip(events) {
        checker.message(place, event.to_string().as_bytes(), &mut found);
    }
    let ordered = ["T1", "E7", "E8", "E10", "E15", "T7", "T13", "T15", "T17", "T18"];
    for finding in found.iter().filter(|finding| finding.weight == Weight::Error) {
        if ordered.contains(&finding.rule.id) {
            report.fail("ordered", finding.to_string());
        }
    }
    if events.iter().any(is_end) {
        report.pass("ordered");
    }
}

/// The rules of a profile for which nothing was heard.
fn unheard<'a>(profile: &'a Profile, texts: &[String]) -> Vec<&'a str> {
    let heard: Vec<Members<'_>> =
        texts.iter().filter_map(|text| Members::whole(text, DEPTH).ok().flatten()).collect();
    let quiet = profile.rules.iter().filter(|rule| !heard.iter().any(|it| rule.is_about(it)));
    quiet.map(|rule| rule.id.as_str()).collect()
}
