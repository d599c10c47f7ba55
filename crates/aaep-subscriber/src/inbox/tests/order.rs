//! Order, duplicates, holes, text.

use super::*;

const TOOL: &str = r#","tool":"x","tool_call_id":"call_1","summary_normal":"X.""#;

// covers: H24
#[test]
fn duplicates_are_dropped_and_order_is_kept() {
    let mut world = World::new();
    let started = event("evt_a", 1, "session.started", 0, START, r#","summary_normal":"Hi.""#);
    let thinking = event("evt_b", 1, "state.changed", 1, START, &state("idle", "thinking"));
    let tool = event("evt_c", 1, "tool.invoked", 2, START, TOOL);
    for text in [&started, &tool, &thinking, &tool, &started] {
        world.comes(text);
    }
    assert_eq!(world.told(), ["session.started", "state.changed", "tool.invoked"]);
}

// covers: H24, D15, I19
#[test]
fn a_hole_means_loss_where_everything_was_to_come() {
    let mut world = World::new();
    world.event("session.started", 0, r#","summary_normal":"Hi.""#);
    world.event("tool.invoked", 3, TOOL);
    assert_eq!(world.told(), ["session.started"]);
    let deadline = world.inbox.next_deadline(world.now);
    assert_eq!(deadline, Some(world.now + 200));
    world.passes(200);
    assert_eq!(world.told(), ["silence Missing 2", "tool.invoked"]);
    // A hub that was restarted skips many numbers; nobody knows how many were used.
    world.passes(10_000);
    world.event("tool.completed", 1_048_576, r#","tool":"x","status":"success""#);
    world.passes(200);
    assert_eq!(world.told(), ["silence Missing 0", "tool.completed"]);
}

// covers: D15
#[test]
fn elsewhere_a_hole_means_nothing() {
    for honored in [
        PLAIN.to_owned(),
        EVERYTHING.replace('{', r#"{"max_events_per_second":5,"#).replacen(
            "\"include\"",
            "\"x\":1,\"include\"",
            1,
        ),
        EVERYTHING.replace("[\"none\"]", "[\"sentence\"]"),
        EVERYTHING.replacen('{', r#"{"cognitive_load":"low","#, 1),
        EVERYTHING.replace("[\"*\"]", "[\"*\"],\"exclude\":[\"aaep:agent.progress.updated\"]"),
    ] {
        let mut world = World::with(&honored, Bounds::default());
        world.event("session.started", 0, r#","summary_normal":"Hi.""#);
        world.event("tool.invoked", 30, TOOL);
        assert_eq!(world.told(), ["session.started", "tool.invoked"], "{honored}");
    }
}

// covers: D15, D28
#[test]
fn who_joins_late_has_lost_nothing() {
    let mut world = World::new();
    world.lost();
    world.begins(EVERYTHING, "sub_2");
    world.event("session.started", 0, r#","summary_normal":"Hi.""#);
    world.event("state.changed", 57, &state("thinking", "awaiting_input"));
    world.asks(40);
    world.event("tool.invoked", 58, TOOL);
    assert_eq!(
        world.told(),
        [
            "lost",
            "connected true true",
            "asked 1",
            "session.started",
            "state.changed",
            "tool.invoked"
        ]
    );
}

// covers: T28
#[test]
fn what_is_critical_waits_for_no_number_and_comes_first() {
    let mut world = World::new();
    world.event("session.started", 0, r#","summary_normal":"Hi.""#);
    world.event("tool.invoked", 2, TOOL);
    world.asks(5);
    assert_eq!(world.told(), ["asked 1", "session.started"]);
    world.event(
        "session.errored",
        7,
        r#","urgency":"critical","error_category":"unknown","summary_normal":"Oh.""#,
    );
    assert_eq!(
        world.told(),
        ["settled 1 Cancelled", "!session.errored", "silence Missing 4", "tool.invoked"]
    );
}

// covers: E6, V2, H25
#[test]
fn unknown_types_are_told_and_critical_ones_first() {
    let mut world = World::new();
    let odd = |id: &str, more: &str| {
        format!(
            r#"{{"type":"medai:patient.consulted","event_id":"{id}","session_id":"sess_1","new_field":[1],"summary_normal":"Consulted."{more}}}"#
        )
    };
    world.comes(&odd("evt_1", ""));
    world.comes(&odd("evt_2", r#","urgency":"sometime""#));
    world.comes(&odd("evt_3", r#","urgency":"critical""#));
    let newer = odd("evt_4", "").replace("medai:patient.consulted", "aaep:agent.dreaming");
    world.comes(&newer);
    let name = "medai:patient.consulted";
    assert_eq!(world.told(), [&format!("!{name}"), name, name, "dreaming"]);
}

// covers: E26
#[test]
fn whatever_is_optional_may_be_absent() {
    let mut world = World::with(PLAIN, Bounds::default());
    for (number, kind) in aaep_types::EventKind::ALL.iter().enumerate() {
        world.comes(&format!(
            r#"{{"type":"{}","event_id":"evt_{number}","session_id":"sess_{number}"}}"#,
            kind.as_str()
        ));
    }
    let told = world.told();
    assert_eq!(told.len(), 11, "all but text without any text: {told:?}");
}

// covers: E27
#[test]
fn what_cannot_be_understood_is_counted_and_noted() {
    let mut world = World::new();
    for bad in ["", "nonsense", "[]", r#"{"type":"x"}"#, r#"{"type":"a","type":"b"}"#] {
        world.comes(bad);
    }
    assert_eq!(world.told(), ["silence Unreadable 5"]);
    assert_eq!(world.rules(), ["E27"; 5]);
    world.comes(&event("event 1", 1, "session.started", 0, START, r#","summary_normal":"Hi.""#));
    assert_eq!(world.told(), ["session.started"], "it is heard all the same");
    assert_eq!(world.rules(), ["E7"]);
}

// covers: T19
#[test]
fn text_is_told_at_its_boundaries() {
    let mut world = World::new();
    let chunk = |text: &str, position: usize, complete: bool| {
        format!(
            r#","chunk":"{text}","position":{position},"complete":{complete},"coalesce_hint":"none","output_id":"out_1""#
        )
    };
    world.event("output.streaming", 0, &chunk("One. T", 0, false));
    world.event("output.streaming", 1, &chunk("wo", 6, false));
    assert_eq!(world.told(), [r#"text "One. ""#]);
    world.event("output.streaming", 2, &chunk("!", 8, true));
    assert_eq!(world.told(), [r#"text "Two!"."#]);
}

// covers: T19
#[test]
fn text_that_waits_is_told_before_the_end_of_its_session() {
    let mut world = World::new();
    world.event("output.streaming", 0, r#","chunk":"Half a sen","position":0,"complete":false"#);
    world.event("session.completed", 1, r#","summary_normal":"Done.""#);
    assert_eq!(world.told(), [r#"text "Half a sen"."#, "session.completed"]);
}

// covers: T8
#[test]
fn what_an_agent_does_can_be_asked_at_any_time() {
    let mut world = World::new();
    world.event("session.started", 0, r#","summary_normal":"Tidying.""#);
    world.event("state.changed", 1, &state("idle", "dreaming"));
    world.event("tool.invoked", 2, TOOL);
    world.event("progress.updated", 3, r#","progress":{"percent":40,"description":"pens"}"#);
    world.asks(4);
    let [doing] = &world.inbox.doing()[..] else { panic!() };
    assert_eq!(doing.state.as_deref(), Some("dreaming"));
    assert_eq!(doing.summary.as_deref(), Some("Now dreaming."));
    assert_eq!(doing.tool.as_deref(), Some("x"));
    assert_eq!(doing.progress.as_ref().unwrap().percent, Some(40.0));
    assert_eq!((doing.waiting, &*doing.agent.name), (1, "Tidy"));
}

// covers: D28
#[test]
fn a_session_that_ended_while_the_hub_was_away_is_not_said_to_go_on() {
    let mut world = World::new();
    world.event_of(1, "session.started", 0, r#","summary_normal":"One.""#);
    let two = world.event_of(2, "session.started", 0, r#","summary_normal":"Two.""#);
    world.lost();
    world.inbox.begin(world.hub, world.now);
    world.accepts(EVERYTHING, "sub_2");
    world.inbox.handle(InboxInput::AttachedAnew { connection: world.hub }, world.now);
    world.comes(&event(&two, 2, "session.started", 0, START, r#","summary_normal":"Two.""#));
    assert_eq!(world.inbox.doing().len(), 2);
    world.passes(10_000);
    let doing = world.inbox.doing();
    assert_eq!((doing.len(), &*doing[0].session_id), (1, "sess_2"));
    assert!(world.told().contains(&"over sess_1".to_owned()));
}

// covers: I32
#[test]
fn a_doubt_outlives_a_connection_that_breaks_while_things_are_told() {
    let mut world = World::new();
    world.event_of(1, "session.started", 0, r#","summary_normal":"One.""#);
    let two = world.event_of(2, "session.started", 0, r#","summary_normal":"Two.""#);
    world.lost();
    world.inbox.begin(world.hub, world.now);
    world.accepts(EVERYTHING, "sub_2");
    world.inbox.handle(InboxInput::AttachedAnew { connection: world.hub }, world.now);
    world.lost();
    world.passes(60_000);
    assert_eq!(world.inbox.doing().len(), 2, "nobody was there to speak of them");
    world.inbox.handle(InboxInput::Attached { connection: world.hub }, world.now);
    world.comes(&event(&two, 2, "session.started", 0, START, r#","summary_normal":"Two.""#));
    world.passes(10_000);
    let doing = world.inbox.doing();
    assert_eq!((doing.len(), &*doing[0].session_id), (1, "sess_2"));
}

// covers: I32
#[test]
fn a_session_that_was_believed_to_be_over_goes_on_when_it_is_heard_of_again() {
    let mut world = World::new();
    let start = world.event("session.started", 0, r#","summary_normal":"Tidying.""#);
    world.lost();
    world.inbox.begin(world.hub, world.now);
    world.accepts(EVERYTHING, "sub_2");
    world.inbox.handle(InboxInput::AttachedAnew { connection: world.hub }, world.now);
    world.passes(10_000);
    assert!(world.inbox.doing().is_empty(), "nothing was said of it in time");
    world.hears();
    // A hub that comes back from a crash says again what may not have been heard.
    world.comes(&event(&start, 1, "session.started", 0, START, r#","summary_normal":"Tidying.""#));
    assert_eq!(world.inbox.doing().len(), 1);
    assert_eq!(world.told(), ["session.started"]);
}

// covers: D13
#[test]
fn an_error_is_critical_though_it_does_not_say_so() {
    let mut world = World::new();
    world.event("session.started", 0, r#","summary_normal":"Tidying.""#);
    // It does not wait for what is missing before it either.
    world.event("session.errored", 7, r#","error_category":"unknown","summary_normal":"Failed.""#);
    assert_eq!(world.told()[0], "!session.errored");
}

// covers: I32
#[test]
fn nothing_that_comes_late_brings_a_session_back_that_ended() {
    let mut world = World::new();
    world.event("session.started", 0, r#","summary_normal":"Tidying.""#);
    world.event("tool.invoked", 1, TOOL);
    world.event("session.errored", 3, r#","error_category":"unknown","summary_normal":"Failed.""#);
    let late = r#","tool":"x","status":"timeout","summary_normal":"It has not ended.""#;
    world.event("tool.completed", 2, late);
    assert!(world.inbox.doing().is_empty(), "{:?}", world.inbox.doing());
}
