mod damage;
mod secrets;

use serde_json::{Map, Value, json};

use super::{
    Checker, Finding, MAX_CALL_IDS, MAX_OPEN_TOOLS, MAX_OUTPUTS, MAX_REQUESTS, Options, Weight,
};

/// Writes the messages of one session: numbers and times follow by themselves.
struct Script {
    session: &'static str,
    number: u64,
    lines: Vec<String>,
}

impl Script {
    fn new(session: &'static str) -> Self {
        Self { session, number: 0, lines: Vec::new() }
    }

    /// Adds an event; members of `payload` replace those of the envelope.
    fn event(&mut self, kind: &str, payload: Value) -> &mut Self {
        let critical = kind.starts_with("awaiting.");
        let mut event = json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:aaep-rs:outcome:v1"],
            "aaep_version": "1.0.0",
            "type": format!("aaep:agent.{kind}"),
            "event_id": format!("evt_{}{}", self.session.trim_start_matches("sess_"), self.number),
            "session_id": self.session,
            "sequence_number": self.number,
            "timestamp": stamp(self.number),
            "producer": { "agent_id": "desk-helper" },
            "urgency": if critical { "critical" } else { "normal" },
            "localization_hints": { "primary_language": "en", "text_direction": "auto" },
        });
        self.number += 1;
        merge(&mut event, payload);
        self.lines.push(event.to_string());
        self
    }

    fn start(&mut self) -> &mut Self {
        self.event("session.started", json!({ "summary_normal": "Tidying." }))
    }

    fn state(&mut self, from: &str, to: &str) -> &mut Self {
        self.event("state.changed", json!({ "from_state": from, "to_state": to }))
    }

    fn confirm(&mut self, token: &str, more: Value) -> &mut Self {
        let mut payload = json!({
            "action": format!("Shred pile {}.", self.number), "consequence": "It is gone for good.",
            "reply_token": token, "timeout_seconds": 600, "default_decision": "reject",
            "risk_level": "high", "irreversible": true,
        });
        merge(&mut payload, more);
        self.event("awaiting.confirmation", payload)
    }

    fn reply(&mut self, token: &str, more: Value) -> &mut Self {
        let mut reply = json!({
            "type": "confirmation.reply", "reply_token": token, "decision": "accept",
            "subscription_id": "sub_1", "timestamp": stamp(self.number),
        });
        merge(&mut reply, more);
        self.lines.push(reply.to_string());
        self
    }

    /// A call with or without `irreversible`, and its end.
    fn call(&mut self, irreversible: bool) -> &mut Self {
        let call = format!("call_{}", self.number);
        self.event(
            "tool.invoked",
            json!({ "tool": "shred", "tool_call_id": call, "summary_normal": "Shredding.",
                    "irreversible": irreversible }),
        );
        self.event(
            "tool.completed",
            json!({ "tool": "shred", "tool_call_id": call, "status": "success" }),
        )
    }

    fn end(&mut self) -> &mut Self {
        self.event("session.completed", json!({ "summary_normal": "Tidy." }))
    }

    fn check(&self, complete: bool) -> Vec<Finding> {
        self.check_with(Options { complete, ..Options::default() })
    }

    fn check_with(&self, options: Options) -> Vec<Finding> {
        let mut checker = Checker::new(options);
        let mut found = Vec::new();
        for (number, line) in (1..).zip(&self.lines) {
            checker.message(number, line.as_bytes(), &mut found);
            assert!(checker.is_bounded());
        }
        checker.finish(&mut found);
        found
    }
}

/// An hour and more of seconds.
fn stamp(second: u64) -> String {
    let (hour, minute, second) = (8 + second / 3600, second / 60 % 60, second % 60);
    format!("2026-03-02T{hour:02}:{minute:02}:{second:02}Z")
}

fn merge(into: &mut Value, more: Value) {
    let members = into.as_object_mut().unwrap();
    if let Value::Object(more) = more {
        members.extend::<Map<String, Value>>(more);
    }
}

/// Rule and weight of each finding.
fn brief(found: &[Finding]) -> Vec<(&'static str, Weight)> {
    found.iter().map(|finding| (finding.rule.id, finding.weight)).collect()
}

// covers: T1
#[test]
fn a_stream_that_begins_and_ends_in_mid_session_is_only_noted() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "thinking").state("thinking", "deciding");
    script.lines.remove(0);
    assert_eq!(brief(&script.check(false)), [("T1", Weight::Note), ("T1", Weight::Note)]);
    assert_eq!(brief(&script.check(true)), [("T1", Weight::Error), ("T1", Weight::Error)]);
}

// covers: T1
#[test]
fn a_first_event_with_the_number_0_that_is_no_start_is_an_error_in_any_stream() {
    let mut script = Script::new("sess_a");
    script.event(
        "x",
        json!({ "type": "lamp:dimmed", "@context":
        ["https://aaep-protocol.org/context/v1", "https://example.org/lamps"] }),
    );
    script.end();
    assert_eq!(brief(&script.check(false)), [("T1", Weight::Error)]);
}

// covers: E15, E10
#[test]
fn who_joins_in_mid_session_may_be_told_of_older_requests() {
    let mut script = Script::new("sess_a");
    script.start();
    script.number = 17;
    script.state("calling_tool", "awaiting_input");
    script.number = 15;
    script.confirm("rpl_a", json!({}));
    script.number = 18;
    script.state("awaiting_input", "thinking").end();
    assert_eq!(brief(&script.check(false)), [("E15", Weight::Note)]);
}

// covers: E15
#[test]
fn a_number_that_goes_back_is_an_error_in_any_stream() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "thinking");
    script.number = 1;
    script.event("progress.updated", json!({ "progress": { "step": 1 }, "event_id": "evt_other" }));
    script.end();
    assert_eq!(brief(&script.check(false)), [("E15", Weight::Error)]);
}

// covers: E27
#[test]
fn an_invalid_event_is_said_once_and_still_counts() {
    let mut script = Script::new("sess_a");
    script.start();
    script.event("session.completed", json!({ "verbosity": "loud" }));
    script.event("progress.updated", json!({ "progress": { "step": 1 } }));
    let found = script.check(true);
    assert_eq!(brief(&found).len(), 2, "{found:?}");
    assert_eq!((found[0].line, found[0].weight), (2, Weight::Error));
    assert_eq!((found[1].line, found[1].rule.id), (3, "T1"), "the session has ended");
}

// covers: E27
#[test]
fn what_cannot_be_heard_is_an_error_and_broken_handshakes_are_not_our_business() {
    let mut script = Script::new("sess_a");
    script.lines.extend(["{".to_owned(), "[1]".to_owned(), "{}".to_owned()]);
    script.lines.push(r#"{"type":"subscription.request"}"#.to_owned());
    let rules: Vec<_> = script.check(true).iter().map(|found| found.rule.id).collect();
    assert_eq!(rules, ["E1", "E1", "E2"]);
}

// covers: E28
#[test]
fn several_agents_may_speak_in_one_session_each_in_its_own_state() {
    let mut script = Script::new("sess_a");
    let other = |members: serde_json::Value| {
        let mut all = json!({ "producer": { "agent_id": "researcher" } });
        all.as_object_mut().unwrap().extend(members.as_object().unwrap().clone());
        all
    };
    script
        .start()
        .event("progress.updated", other(json!({ "progress": { "step": 1 } })))
        .state("idle", "thinking")
        .event("state.changed", other(json!({ "from_state": "idle", "to_state": "thinking" })))
        .end();
    assert_eq!(brief(&script.check(true)), []);
}

// covers: E7, W2, D28
#[test]
fn a_state_change_that_was_merged_may_come_again_as_it_was_said() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    let merged = script.lines[1].clone();
    script.lines.push(merged.replace(r#""from_state":"idle""#, r#""from_state":"thinking""#));
    assert_eq!(brief(&script.check(false)), [("T1", Weight::Note)], "it only has no end yet");
    script.lines.push(merged.replace("awaiting_input", "thinking"));
    assert_eq!(brief(&script.check(false))[0], ("E7", Weight::Error));
}

// covers: E7, W2
#[test]
fn a_start_delivered_again_is_known_even_after_its_id_was_forgotten() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "thinking").state("thinking", "deciding");
    let again = [script.lines[0].clone(), script.lines[2].clone()];
    script.lines.extend(again);
    script.end();
    let found = script.check_with(Options { max_remembered: 1, ..Options::default() });
    assert_eq!(brief(&found), [("E21", Weight::Note)], "said once: memory is short");
}

// covers: T12, C9
#[test]
fn a_reply_that_is_invalid_allows_nothing() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
    script.reply("rpl_a", json!({ "extra": 1 })).call(true).end();
    let found = script.check(true);
    assert_eq!(brief(&found[..2]), [("C9", Weight::Error), ("T12", Weight::Error)]);
}

// covers: T12, C20, D29
#[test]
fn a_clarification_reply_never_answers_a_confirmation() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
    let answer = json!({ "type": "clarification.reply", "reply_token": "rpl_a", "response": true,
                         "subscription_id": "sub_1", "timestamp": stamp(3) });
    script.lines.push(answer.to_string());
    script.reply("rpl_stranger", json!({})).call(true).state("awaiting_input", "thinking").end();
    assert_eq!(
        brief(&script.check(true)),
        [("D29", Weight::Note), ("C11", Weight::Note), ("T12", Weight::Error)]
    );
}

// covers: T12
#[test]
fn an_accept_that_its_request_does_not_allow_allows_nothing() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    script.confirm("rpl_a", json!({ "allowed_replies": ["reject"] }));
    script.reply("rpl_a", json!({})).call(true).state("awaiting_input", "thinking").end();
    assert_eq!(brief(&script.check(true)), [("C11", Weight::Note), ("T12", Weight::Error)]);
}

// covers: T12
#[test]
fn in_a_stream_with_holes_a_missing_accept_is_only_noted() {
    let mut script = Script::new("sess_a");
    script.start();
    script.number = 4;
    script.call(true).end();
    assert_eq!(brief(&script.check(false)), [("E15", Weight::Note), ("T12", Weight::Note)]);
}

// covers: T27
#[test]
fn an_irreversible_action_whose_call_does_not_say_so_is_warned_of() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
    script.reply("rpl_a", json!({})).state("awaiting_input", "calling_tool").call(false);
    script.state("calling_tool", "thinking").end();
    assert_eq!(brief(&script.check(true)), [("T27", Weight::Warning)]);
}

// covers: T27, D10
#[test]
fn either_field_says_that_an_action_is_irreversible() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    script.confirm("rpl_a", json!({ "irreversible": null, "reversibility": "irreversible" }));
    let line = script.lines.pop().unwrap().replace(r#""irreversible":null,"#, "");
    script.lines.push(line);
    script.state("awaiting_input", "calling_tool").call(false);
    script.state("calling_tool", "thinking").end();
    assert_eq!(brief(&script.check(true)), [("T27", Weight::Warning)]);
}

// covers: T24, C3, D37
#[test]
fn a_tool_that_waits_for_consent_or_was_refused_it_does_not_run() {
    let named = || {
        json!({
            "@context": ["https://aaep-protocol.org/context/v1", "urn:aaep-rs:action:v1"],
            "extensions": { "action": { "tool": "shred", "arguments": "", "digest": "sha256:0", "described_by": "agent" } },
        })
    };
    let asked = |decision: Option<&str>| {
        let mut script = Script::new("sess_desk");
        script.start().state("idle", "awaiting_input").confirm("rpl_1", named());
        if let Some(decision) = decision {
            script.reply("rpl_1", json!({ "decision": decision }));
            script.state("awaiting_input", "thinking");
        }
        script
    };
    let warned = |script: &Script, rule| {
        let found = script.check(true);
        found.iter().any(|found| found.rule.id == rule && found.weight == Weight::Warning)
    };
    let mut waits = asked(None);
    waits.call(false);
    assert!(warned(&waits, "C3"));
    let mut refused = asked(Some("reject"));
    refused.call(false).end();
    assert!(warned(&refused, "T24"));
    // A new request that is accepted frees the tool.
    let mut asked_again = asked(Some("reject"));
    asked_again.state("thinking", "awaiting_input").confirm("rpl_2", named());
    asked_again.reply("rpl_2", json!({ "decision": "accept" }));
    asked_again.state("awaiting_input", "calling_tool").call(true).end();
    assert!(!warned(&asked_again, "T24") && !warned(&asked_again, "C3"));
}

// covers: C4
#[test]
fn what_is_asked_twice_is_told_by_the_digest_where_there_is_one() {
    let twice = |digests: [&str; 2], actions: [&str; 2]| {
        let mut script = Script::new("sess_desk");
        script.start().state("idle", "awaiting_input");
        for (at, token) in ["rpl_1", "rpl_2"].into_iter().enumerate() {
            let account = json!({ "tool": "shred", "arguments": "", "digest": digests[at],
                "described_by": "agent" });
            let context = ["https://aaep-protocol.org/context/v1", "urn:aaep-rs:action:v1"];
            script.confirm(
                token,
                json!({ "action": actions[at], "@context": context,
                "extensions": { "action": account } }),
            );
        }
        script.check(true).iter().any(|found| found.rule.id == "C4")
    };
    assert!(!twice(["sha256:0", "sha256:1"], ["Shred a pile.", "Shred a pile."]));
    assert!(twice(["sha256:0", "sha256:0"], ["Shred a pile.", "Shred it."]));
}

// covers: C24
#[test]
fn completing_a_session_over_an_open_request_is_warned_of() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({})).end();
    assert_eq!(brief(&script.check(true)), [("C24", Weight::Warning)]);
}

// covers: D30, C24
#[test]
fn where_nothing_tells_two_requests_apart_findings_about_them_are_notes() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    script.confirm("rpl_a", json!({})).confirm("rpl_b", json!({}));
    script.state("awaiting_input", "thinking").state("thinking", "awaiting_input");
    script.reply("rpl_a", json!({})).state("awaiting_input", "calling_tool").call(true).call(true);
    script.event(
        "session.cancelled",
        json!({ "cancelled_by": "user", "summary_normal": "Stopped." }),
    );
    assert_eq!(brief(&script.check(true)), [("T12", Weight::Note)]);
}

// covers: D30
#[test]
fn an_outcome_of_a_request_that_is_not_open_resolves_no_other() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
    let outcome = json!({ "outcome": { "request_event_id": "evt_gone", "outcome": "accepted" } });
    script.event(
        "state.changed",
        json!({ "from_state": "awaiting_input", "to_state": "calling_tool", "extensions": outcome }),
    );
    script.call(true).end();
    let found = script.check(true);
    assert_eq!(brief(&found), [("T12", Weight::Error), ("C24", Weight::Warning)]);
}

// covers: T12, C24
#[test]
fn doubt_about_two_requests_ends_when_both_are_settled() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    script.confirm("rpl_a", json!({})).confirm("rpl_b", json!({}));
    for _ in 0..2 {
        script.state("awaiting_input", "calling_tool").call(true);
        script.state("calling_tool", "awaiting_input");
    }
    script.call(true).end();
    assert_eq!(brief(&script.check(true)), [("T12", Weight::Error)]);
}

// covers: C10
#[test]
fn a_reply_with_a_changed_action_is_noted_and_nothing_is_expected_of_it() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
    script.reply("rpl_a", json!({ "modified_action": { "piles": 1 } }));
    script.state("awaiting_input", "thinking").end();
    assert_eq!(brief(&script.check(true)), [("C10", Weight::Note)]);
}

// covers: C13
#[test]
fn a_second_reply_changes_nothing() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
    script.reply("rpl_a", json!({ "decision": "reject" })).reply("rpl_a", json!({}));
    script.state("awaiting_input", "thinking").call(true).end();
    assert_eq!(brief(&script.check(true)), [("C13", Weight::Note), ("T12", Weight::Error)]);
}

// covers: T24, C2
#[test]
fn a_stream_that_stops_after_a_decision_lacks_its_follow_up() {
    for (decision, rule) in [("accept", "T24"), ("reject", "C2")] {
        let mut script = Script::new("sess_a");
        script.start().state("idle", "awaiting_input").confirm("rpl_a", json!({}));
        script.reply("rpl_a", json!({ "decision": decision }));
        let found = script.check(true);
        assert_eq!(brief(&found), [(rule, Weight::Error), ("T1", Weight::Error)]);
        assert_eq!(brief(&script.check(false)), [("T1", Weight::Note)]);
    }
}

// covers: C14
#[test]
fn a_timeout_that_nothing_shows_is_only_noted_unless_the_stream_is_complete() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    script.confirm("rpl_a", json!({ "timeout_seconds": 1 }));
    script.event("progress.updated", json!({ "progress": { "step": 1 }, "timestamp": stamp(9) }));
    script.event("session.completed", json!({ "summary_normal": "Tidy.", "timestamp": stamp(9) }));
    assert_eq!(brief(&script.check(false)), [("C14", Weight::Note)]);
    assert_eq!(brief(&script.check(true)), [("C14", Weight::Error)]);
}

// covers: T13
#[test]
fn a_call_id_on_one_of_the_two_events_only_is_warned_of() {
    let mut script = Script::new("sess_a");
    script.start().call(false);
    let line = script.lines.pop().unwrap().replace(r#","tool_call_id":"call_1""#, "");
    script.lines.push(line);
    script.end();
    assert_eq!(brief(&script.check(true)), [("T13", Weight::Warning)]);
}

// covers: E21
#[test]
fn sessions_beyond_the_bound_are_noted_once_and_never_accused() {
    let mut script = Script::new("sess_a");
    script.start();
    for session in ["sess_b", "sess_c", "sess_b"] {
        let mut other = Script::new(session);
        other.number = 5;
        other.state("deciding", "thinking");
        script.lines.extend(other.lines);
    }
    script.state("idle", "thinking").end();
    let found = script.check_with(Options { max_sessions: 1, ..Options::default() });
    let notes = [("T1", Weight::Note), ("E21", Weight::Note)];
    assert_eq!(brief(&found), notes, "the first of them is noted before the bound is");
}

// covers: E21
#[test]
fn every_bound_of_a_session_is_kept_and_said_once() {
    let mut script = Script::new("sess_a");
    script.start();
    for number in 0..=MAX_REQUESTS * 2 {
        script.confirm(&format!("rpl_{number}"), json!({}));
    }
    for number in 0..=MAX_OUTPUTS * 2 {
        let output = format!("out_{number}");
        let chunk = json!({ "chunk": "x", "position": 0, "complete": true, "output_id": output });
        script.event("output.streaming", chunk);
    }
    let invoked = json!({ "tool": "shred", "summary_normal": "Shredding." });
    for _ in 0..=MAX_OPEN_TOOLS {
        script.event("tool.invoked", invoked.clone());
    }
    for number in 0..=MAX_CALL_IDS {
        let call = format!("call_{number}");
        let mut invoked = invoked.clone();
        merge(&mut invoked, json!({ "tool_call_id": call }));
        script.event("tool.invoked", invoked);
    }
    let found = script.check(false);
    let bounds = found.iter().filter(|finding| finding.rule.id == "E21").count();
    assert_eq!(bounds, 3, "requests, outputs, tools");
    assert!(found.iter().all(|finding| finding.weight == Weight::Note), "{found:?}");
}

// covers: T12, E21
#[test]
fn accepts_that_had_to_be_forgotten_still_count() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "awaiting_input");
    for number in 0..MAX_REQUESTS + 3 {
        script.confirm(&format!("rpl_{number}"), json!({}));
        script.state("awaiting_input", "calling_tool").state("calling_tool", "awaiting_input");
    }
    for _ in 0..MAX_REQUESTS + 3 {
        script.call(true);
    }
    assert_eq!(brief(&script.check(false)), [("T1", Weight::Note)]);
    script.call(true);
    assert_eq!(brief(&script.check(false)), [("T12", Weight::Error), ("T1", Weight::Note)]);
}

#[test]
fn the_place_is_the_callers_affair() {
    let mut script = Script::new("sess_a");
    script.start().state("idle", "thinking").end();
    let mut checker = Checker::new(Options { complete: true, ..Options::default() });
    let mut found = Vec::new();
    for line in &script.lines {
        checker.message(1, line.as_bytes(), &mut found);
    }
    checker.finish(&mut found);
    assert_eq!(found, []);
}

#[test]
fn a_finding_is_a_sentence_with_its_place_and_its_rule() {
    let mut script = Script::new("sess_a");
    script.start().state("thinking", "deciding").end();
    assert_eq!(
        script.check(true)[0].to_string(),
        "line 2: error: The first state change of this session leaves `thinking`. \
         It has to leave `idle`. (T7, §4.2.1)"
    );
}
