//! Too much of everything: bounded, readable, critical first.

use super::*;

/// An inbox that is drained as fast as it lets itself be drained.
fn count(told: &[String], what: &str) -> usize {
    told.iter().filter(|notification| notification.starts_with(what)).count()
}

// covers: S3, T8, H23
#[test]
fn a_flood_is_thinned_and_the_last_state_is_told() {
    let mut world = World::new();
    let total = 8000;
    for number in 0..total {
        world.event("state.changed", number, &state("thinking", &format!("state{number}")));
    }
    let mut told = world.hears();
    for _ in 0..100 {
        world.passes(1000);
        told.extend(world.hears());
    }
    let (mut events, mut left_out, mut last) = (0, 0, String::new());
    for notification in &told {
        match notification {
            Notification::Event { json, .. } => (events, last) = (events + 1, json.to_string()),
            Notification::Silence { why: Silence::TooMuch, count, .. } => left_out += count,
            other => panic!("{other:?}"),
        }
    }
    assert!(last.contains("state7999"));
    assert_eq!(events + left_out, total, "what is not told is counted");
    assert!(events <= 1200, "{events}");
}

// covers: S3, H23, T28
#[test]
fn nothing_critical_is_ever_left_out_and_it_comes_first() {
    let mut world = World::new();
    for number in 0..3000_u32 {
        let tool = r#","tool":"x","summary_normal":"X.""#;
        world.event_of(number % 50, "tool.invoked", u64::from(number), tool);
        if number % 30 == 0 {
            let rest = r#","reason":"Help","target_kind":"human","urgency":"critical""#;
            world.event_of(number % 50, "handoff.requested", u64::from(number), rest);
        }
    }
    let told = world.told();
    assert_eq!(count(&told, "!handoff.requested"), 100);
    assert!(told[..100].iter().all(|notification| notification == "!handoff.requested"));
}

// covers: S3
#[test]
fn a_full_inbox_says_so_before_anything_critical_is_lost() {
    let mut world = World::new();
    for number in 0..256_u32 {
        assert!(!world.inbox.is_full());
        let rest = r#","reason":"Help","target_kind":"human","urgency":"critical""#;
        world.event_of(number, "handoff.requested", 0, rest);
    }
    assert!(world.inbox.is_full());
    world.inbox.poll_notification(world.now);
    assert!(!world.inbox.is_full());
}

// covers: S3
#[test]
fn one_that_floods_takes_nothing_from_another() {
    let mut world = World::new();
    let other = world.inbox.add("other", 0);
    for number in 0..5000 {
        world.event("tool.invoked", number, r#","tool":"x","summary_normal":"X.""#);
    }
    world.hears();
    let quiet = event("evt_q", 9, "session.started", 0, START, r#","summary_normal":"Quiet.""#);
    world
        .inbox
        .handle(InboxInput::Message { connection: other, bytes: quiet.as_bytes() }, world.now);
    assert_eq!(world.told(), ["session.started"]);
}

// covers: S12
#[test]
fn a_producer_that_breaks_its_word_on_the_rate_is_noted() {
    let honored = EVERYTHING.replacen('{', r#"{"max_events_per_second":5,"#, 1);
    let mut world = World::with(&honored, Bounds::default());
    for number in 1..6 {
        world.event(
            "progress.updated",
            number,
            r#","progress":{"percent":1},"summary_normal":"1.""#,
        );
    }
    assert_eq!(world.rules(), [""; 0]);
    for number in 6..50 {
        world.event(
            "progress.updated",
            number,
            r#","progress":{"percent":1},"summary_normal":"1.""#,
        );
    }
    assert_eq!(world.rules(), ["S12"], "once, not with each");
}

// covers: I22
#[test]
fn a_million_sessions_do_not_grow_it() {
    let mut world = World::new();
    let bounds = Bounds::default();
    for number in 0..5000_u32 {
        world.event_of(number, "session.started", 0, r#","summary_normal":"Hi.""#);
        let chunk = r#","chunk":"never ends","position":0,"complete":false"#;
        world.event_of(number, "output.streaming", 1, chunk);
        assert!(world.inbox.links[0].sessions.len() <= bounds.sessions);
    }
    let link = &world.inbox.links[0];
    assert!(link.backlog.len() <= bounds.waiting && link.backlog.bytes() <= bounds.waiting_bytes);
    assert!(link.heard.len() <= bounds.event_ids);
    assert!(link.text_bytes <= bounds.text_bytes);
    assert!(world.inbox.silences.len() <= bounds.silent_agents);
    assert!(world.inbox.notes.len() <= bounds.notes);
    assert_eq!(world.inbox.doing().len(), bounds.sessions);
}

// covers: I22
#[test]
fn a_million_requests_do_not_grow_it() {
    let mut world = World::new();
    let bounds = Bounds::default();
    for number in 0..3000_u32 {
        let rest = confirmation(&format!("rpl_{number}"));
        let id = world.event_of(number % 500, "awaiting.confirmation", u64::from(number), &rest);
        world.hears();
        if number % 2 == 0 {
            world.resolves(u64::from(number), &id, "cancelled");
        }
    }
    let most = bounds.open_requests + bounds.settled_requests;
    assert!(world.inbox.requests.remembered() <= most);
    assert!(world.inbox.open_requests().len() <= bounds.open_requests);
}

// covers: I22
#[test]
fn a_megabyte_in_a_summary_is_told_and_not_kept() {
    let mut world = World::new();
    let long = "x".repeat(900_000);
    for number in 0..20 {
        let rest = format!(r#","from_state":"a","to_state":"b","summary_normal":"{long}""#);
        world.event("state.changed", number, &rest);
    }
    let doing = world.inbox.doing();
    assert_eq!(doing[0].summary.as_ref().unwrap().len(), Bounds::default().kept_chars);
    assert!(world.inbox.links[0].backlog.bytes() <= Bounds::default().waiting_bytes);
    assert!(count(&world.told(), "state.changed") >= 1);
}

// covers: I22
#[test]
fn too_much_text_says_that_something_is_missing() {
    let bounds = Bounds { waiting: 2, ..Bounds::default() };
    let mut world = World::with(EVERYTHING, bounds);
    for number in 0..6 {
        let rest = format!(
            r#","chunk":"S{number}. ","position":{},"complete":false,"coalesce_hint":"sentence""#,
            number * 4
        );
        world.event("output.streaming", number, &rest);
    }
    let told = world.told();
    assert_eq!(told, [r#"text "S4. "…"#, r#"text "S5. ""#]);
    world.passes(3000);
    assert_eq!(world.told(), ["silence TooMuch 4"]);
}
