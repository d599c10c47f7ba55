use serde_json::{Value, json};

use super::*;

/// An event that every schema of its type accepts, with the members of `payload` added or replaced.
fn event(type_name: &str, payload: Value) -> Value {
    let mut event = json!({
        "@context": "https://aaep-protocol.org/context/v1",
        "type": type_name,
        "event_id": "evt_1",
        "session_id": "sess_1",
        "timestamp": "2026-02-03T09:30:00Z",
        "producer": {"agent_id": "gardener"}
    });
    add(&mut event, payload);
    event
}

fn add(message: &mut Value, members: Value) {
    let (Value::Object(message), Value::Object(members)) = (message, members) else {
        panic!("both are objects");
    };
    message.extend(members);
}

fn confirmation(payload: Value) -> Value {
    let mut event = event(
        "aaep:agent.awaiting.confirmation",
        json!({
            "action": "Water the ferns",
            "consequence": "Two litres of water are used.",
            "reply_token": "rpl_fern",
            "timeout_seconds": 60,
            "default_decision": "reject"
        }),
    );
    add(&mut event, payload);
    event
}

fn request(capabilities: Value) -> Value {
    json!({
        "type": "subscription.request",
        "aaep_version": "1.0.0",
        "subscriber_id": "braille-desk",
        "capabilities": capabilities
    })
}

fn accepts(message: &Value) {
    assert_eq!(judge(message), [], "{message}");
}

/// The pointers of all violations, in the order in which they are reported.
fn pointers(message: &Value) -> Vec<String> {
    judge(message).into_iter().map(|violation| violation.pointer).collect()
}

fn rejects_at(pointer: &str, message: &Value) {
    assert_eq!(pointers(message), [pointer], "{message}");
}

#[test]
fn there_are_eighteen_schemas_with_names_and_paths_of_their_own() {
    let mut paths: Vec<_> = all().map(Schema::path).collect();
    assert_eq!(paths.len(), 18);
    assert_eq!(paths[0], "envelope.schema.json");
    paths.sort_unstable();
    paths.dedup();
    assert_eq!(paths.len(), 18);
    assert_eq!(Schema::Core(CoreEvent::ToolInvoked).name(), "core/agent.tool.invoked");
}

#[test]
fn a_schema_is_chosen_by_the_exact_type_and_its_path_is_named_after_it() {
    for event in CoreEvent::ALL {
        assert_eq!(schema_for(&json!({"type": event.type_name()})), Schema::Core(event));
        let name = event.type_name().trim_start_matches("aaep:");
        assert_eq!(Schema::Core(event).name(), format!("core/{name}"));
    }
    for kind in HandshakeMessage::ALL {
        assert_eq!(schema_for(&json!({"type": kind.type_name()})), Schema::Handshake(kind));
        assert_eq!(Schema::Handshake(kind).name(), format!("handshake/{}", kind.type_name()));
    }
}

// covers: E6
#[test]
fn any_other_type_is_judged_by_the_envelope() {
    for other in ["aaep:agent.tool.invoked\n", "agent.tool.invoked", "garden:pot.moved", ""] {
        assert_eq!(schema_for(&json!({"type": other})), Schema::Envelope);
    }
    for message in [json!({}), json!({"type": 3}), json!(null), json!(["type"])] {
        assert_eq!(schema_for(&message), Schema::Envelope);
    }
    accepts(&event("garden:pot.moved", json!({"pot": 3})));
}

#[test]
fn every_row_that_replaces_an_envelope_row_is_required_where_that_row_is() {
    for core in CoreEvent::ALL {
        for own in core.payload().members {
            let shared = envelope::ENVELOPE_ROWS.iter().find(|row| row.name == own.name);
            assert!(shared.is_none_or(|row| !row.required || own.required), "{core:?} {own:?}");
        }
    }
}

#[test]
fn every_core_table_asks_for_its_own_type_first() {
    for core in CoreEvent::ALL {
        let row = core.payload().members[0];
        assert_eq!((row.name, row.required), ("type", true));
        assert!(matches!(row.kind, table::Kind::Exactly(name) if name == core.type_name()));
    }
}

// covers: E1
#[test]
fn a_message_that_is_no_object_has_one_violation_whatever_the_schema() {
    for schema in all() {
        for message in [json!(null), json!([]), json!("x"), json!(1), json!(true)] {
            let violations = judge_against(schema, &message);
            assert_eq!(violations.len(), 1);
            assert_eq!(
                violations[0].to_string(),
                "The whole message: Make the message a JSON object."
            );
        }
    }
}

// covers: E2
#[test]
fn every_missing_member_is_reported_with_what_it_has_to_be() {
    let texts: Vec<_> = judge(&json!({})).into_iter().map(|violation| violation.text).collect();
    assert_eq!(texts.len(), 6);
    assert_eq!(
        texts[2],
        "Add `event_id`: it has to be `evt_` followed by 1 to 64 ASCII letters or digits."
    );
    assert_eq!(texts[4].split(':').next(), Some("Add `timestamp`"));
}

#[test]
fn all_violations_are_collected_in_the_order_of_the_message() {
    let message = event(
        "aaep:agent.state.changed",
        json!({
            "event_id": "evt_",
            "producer": {"agent_id": "", "colour": "green"},
            "to_state": 4
        }),
    );
    assert_eq!(
        pointers(&message),
        ["", "/event_id", "/producer/agent_id", "/producer/colour", "/to_state"]
    );
}

#[test]
fn pointers_escape_tilde_and_slash() {
    rejects_at("/extensions/a~1b~0c", &event("garden:x", json!({"extensions": {"a/b~c": 1}})));
}

#[test]
fn a_violation_never_repeats_the_words_of_the_message() {
    let message = json!({"type": "confirmation.reply", "reply_token": "hunter2-is-secret"});
    for violation in judge(&message) {
        assert!(!violation.to_string().contains("hunter2"), "{violation}");
    }
}

// covers: E3
#[test]
fn the_context_is_the_core_one_alone_or_first_in_a_list_of_uris() {
    let core = "https://aaep-protocol.org/context/v1";
    let with = |context: Value| event("garden:x", json!({"@context": context}));
    accepts(&with(json!([core])));
    accepts(&with(json!([core, "urn:example:garden"])));
    accepts(&with(json!([core, core])));
    rejects_at("/@context", &with(json!([])));
    rejects_at("/@context", &with(json!({"@vocab": core})));
    rejects_at("/@context", &with(json!("https://aaep-protocol.org/context/v1/")));
    rejects_at("/@context/0", &with(json!(["urn:example:garden"])));
    rejects_at("/@context/1", &with(json!([core, "garden"])));
}

// covers: E12, E13
#[test]
fn verbosity_and_urgency_are_enums_in_exact_case() {
    accepts(&event("garden:x", json!({"verbosity": "terse", "urgency": "background"})));
    rejects_at("/verbosity", &event("garden:x", json!({"verbosity": "Terse"})));
    rejects_at("/urgency", &event("garden:x", json!({"urgency": null})));
}

// covers: E15
#[test]
fn an_integer_may_be_written_with_a_fraction_of_zero() {
    for good in [json!(0), json!(-0.0), json!(7.0), json!(1e2), json!(u64::MAX), json!(1e300)] {
        accepts(&event("garden:x", json!({"sequence_number": good})));
    }
    for bad in [json!(-1), json!(0.5), json!("1"), json!(-1e300), json!(null)] {
        rejects_at("/sequence_number", &event("garden:x", json!({"sequence_number": bad})));
    }
}

// covers: E17
#[test]
fn extensions_are_objects_keyed_by_prefix() {
    accepts(&event("garden:x", json!({"extensions": {"garden": {"deep": [1, [2]]}}})));
    rejects_at("/extensions/garden", &event("garden:x", json!({"extensions": {"garden": "fern"}})));
    rejects_at("/extensions", &event("garden:x", json!({"extensions": []})));
}

// covers: E19
#[test]
fn events_may_carry_unknown_members_but_messages_and_nested_objects_may_not() {
    accepts(&event("aaep:agent.session.started", json!({"summary_normal": "Hello", "pot": 1})));
    rejects_at(
        "/pot",
        &json!({
            "type": "subscription.rejected", "reason_code": "unknown", "reason_message": "No.", "pot": 1
        }),
    );
    rejects_at(
        "/localization_hints/pot",
        &event("garden:x", json!({"localization_hints": {"pot": 1}})),
    );
}

// covers: T2
#[test]
fn lengths_count_code_points() {
    let with = |text: String| event("aaep:agent.session.started", json!({"summary_normal": text}));
    accepts(&with("🌿".repeat(16_384)));
    accepts(&with("e\u{301}".repeat(8_192)));
    rejects_at("/summary_normal", &with("a".repeat(16_385)));
    rejects_at("/summary_normal", &with(String::new()));
}

// covers: T4, T20, T22, T23
#[test]
fn a_type_that_is_critical_may_leave_urgency_out_but_not_lower_it() {
    accepts(&confirmation(json!({})));
    accepts(&confirmation(json!({"urgency": "critical"})));
    rejects_at("/urgency", &confirmation(json!({"urgency": "normal"})));
}

// covers: T9
#[test]
fn progress_has_at_least_one_of_its_members() {
    let with =
        |progress: Value| event("aaep:agent.progress.updated", json!({"progress": progress}));
    accepts(&with(json!({"percent": 99.5})));
    accepts(&with(json!({"step": 1.0, "total_steps": 2})));
    rejects_at("/progress", &with(json!({})));
    rejects_at("/progress/percent", &with(json!({"percent": 100.5})));
    rejects_at("/progress/step", &with(json!({"step": 0})));
    rejects_at("/progress/leaf", &with(json!({"leaf": 1})));
}

// covers: C15, C16
#[test]
fn an_irreversible_action_of_medium_or_high_risk_is_not_accepted_by_default() {
    for risk in ["medium", "high"] {
        let risky = json!({"irreversible": true, "risk_level": risk});
        let mut message = confirmation(risky);
        accepts(&message);
        add(&mut message, json!({"default_decision": "accept"}));
        rejects_at("/default_decision", &message);
    }
    for harmless in [
        json!({"irreversible": true, "risk_level": "low"}),
        json!({"irreversible": false, "risk_level": "high"}),
        json!({"irreversible": true}),
        json!({"risk_level": "high", "reversibility": "irreversible"}),
    ] {
        let mut message = confirmation(harmless);
        add(&mut message, json!({"default_decision": "accept"}));
        accepts(&message);
    }
}

// covers: T22
#[test]
fn choices_are_two_to_thirty_two_distinct_pairs() {
    let with = |choices: Value| {
        event(
            "aaep:agent.awaiting.clarification",
            json!({
                "question": "Which pot?", "reply_token": "rpl_1", "timeout_seconds": 1.0,
                "choices": choices
            }),
        )
    };
    let pot = |at: usize| json!({"value": format!("pot-{at}"), "label": "A pot"});
    accepts(&with((0..32).map(pot).collect()));
    rejects_at("/choices", &with((0..33).map(pot).collect()));
    rejects_at("/choices", &with(json!([pot(1)])));
    rejects_at("/choices/1/label", &with(json!([pot(1), {"value": "b", "label": ""}])));
    rejects_at("/choices/1", &with(json!([pot(1), {"value": "b"}])));
    // The same pair with its members in another order is the same pair.
    rejects_at("/choices/1", &with(json!([pot(1), {"label": "A pot", "value": "pot-1"}])));
}

// covers: C19, C20
#[test]
fn a_response_is_text_a_boolean_or_a_number() {
    let with = |response: Value| {
        json!({
            "type": "clarification.reply", "reply_token": "rpl_1", "response": response,
            "subscription_id": "sub_1", "timestamp": "2026-02-03T09:30:00Z"
        })
    };
    for good in [json!("the blue pot"), json!(false), json!(-2.5), json!("a".repeat(16_384))] {
        accepts(&with(good));
    }
    for bad in [json!(""), json!(null), json!([]), json!({}), json!("a".repeat(16_385))] {
        rejects_at("/response", &with(bad));
    }
}

// covers: C9
#[test]
fn a_confirmation_reply_decides_accept_or_reject_and_nothing_else() {
    let with = |decision: &str| {
        json!({
            "type": "confirmation.reply", "reply_token": "rpl_1", "decision": decision,
            "subscription_id": "sub_1", "timestamp": "2026-02-03T09:30:00Z",
            "modified_action": {"litres": 1}
        })
    };
    accepts(&with("accept"));
    accepts(&with("reject"));
    rejects_at("/decision", &with("accept\n"));
    rejects_at("/decision", &with("later"));
}

// covers: H1, H12
#[test]
fn capabilities_may_be_empty_and_unknown_ones_are_objects() {
    accepts(&request(json!({})));
    accepts(&request(json!({"garden": {"pots": 3}})));
    rejects_at("/capabilities/garden", &request(json!({"garden": true})));
    rejects_at("/capabilities", &request(json!([])));
}

#[test]
fn one_and_one_point_zero_are_the_same_conformance_level() {
    accepts(&request(json!({"supported_conformance_levels": [1, 2.0, 3]})));
    rejects_at(
        "/capabilities/supported_conformance_levels/1",
        &request(json!({"supported_conformance_levels": [1, 1.0]})),
    );
    rejects_at(
        "/capabilities/supported_conformance_levels/0",
        &request(json!({"supported_conformance_levels": [4]})),
    );
}

#[test]
fn every_item_that_repeats_an_earlier_one_is_reported() {
    let message = request(json!({"languages": ["en", "de", "en", "EN", "en"]}));
    assert_eq!(pointers(&message), ["/capabilities/languages/2", "/capabilities/languages/4"]);
}

// covers: H15
#[test]
fn a_rejection_waits_a_day_at_most() {
    let with = |seconds: Value| {
        json!({
            "type": "subscription.rejected", "reason_code": "rate_limit",
            "reason_message": "The greenhouse is full.", "retry_after_seconds": seconds
        })
    };
    accepts(&with(json!(86_400)));
    accepts(&with(json!(0)));
    rejects_at("/retry_after_seconds", &with(json!(86_401)));
    rejects_at("/retry_after_seconds", &with(json!(-1)));
}

#[test]
fn the_sentences_name_what_is_wanted() {
    let message = json!({
        "type": "subscription.request",
        "aaep_version": "1.0.0",
        "subscriber_id": "",
        "capabilities": {"preferred_verbosity": "loud", "languages": [], "pace_wpm": 10},
        "pot": 1
    });
    let lines: Vec<_> = judge(&message).iter().map(Violation::to_string).collect();
    assert_eq!(
        lines,
        [
            "/subscriber_id: Make this a string of 1 to 256 characters.",
            "/capabilities/preferred_verbosity: Make this `terse`, `normal` or `detailed`.",
            "/capabilities/languages: Make this an array of 1 to 32 items.",
            "/capabilities/pace_wpm: Make this a whole number from 50 to 1000.",
            "/pot: Remove this: no such member is allowed here.",
        ]
    );
}
