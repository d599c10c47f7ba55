//! A listener that runs for long stays as large as it is.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic)] // tests

use aaep_subscriber::inbox::{Bounds, Connection, Inbox, InboxInput, Settings};

const STAMP: &str = "2026-05-24T14:22:11.342Z";

/// The events of a working day: sessions that start, think, use tools, write, ask and end.
fn event(number: u64, inbox: &mut Inbox, hub: Connection) {
    let (session, step) = (number / 10, number % 10);
    let rest = match step {
        0 => r#""type":"aaep:agent.session.started","summary_normal":"Hello.""#.to_owned(),
        1 => r#""type":"aaep:agent.state.changed","from_state":"idle","to_state":"thinking","summary_normal":"Thinking.""#.to_owned(),
        2 => r#""type":"aaep:agent.progress.updated","progress":{"percent":40},"summary_normal":"40 percent.""#.to_owned(),
        3..=6 => format!(
            r#""type":"aaep:agent.output.streaming","chunk":"Part {step}. ","position":{},"complete":{}"#,
            (step - 3) * 8,
            step == 6
        ),
        7 => format!(
            r#""type":"aaep:agent.awaiting.confirmation","urgency":"critical","action":"Delete","consequence":"Gone","reply_token":"rpl_{number}","timeout_seconds":60,"default_decision":"reject""#
        ),
        8 => format!(
            r#""type":"aaep:agent.state.changed","from_state":"awaiting_input","to_state":"thinking","extensions":{{"outcome":{{"request_event_id":"evt_{}","outcome":"rejected"}}}}"#,
            number - 1
        ),
        _ => r#""type":"aaep:agent.session.completed","summary_normal":"Done.""#.to_owned(),
    };
    let text = format!(
        r#"{{"@context":["https://aaep-protocol.org/context/v1","urn:aaep-rs:outcome:v1"],"event_id":"evt_{number}","session_id":"sess_{session}","sequence_number":{step},"timestamp":"{STAMP}","producer":{{"agent_id":"tidy"}},"localization_hints":{{"primary_language":"en"}},{rest}}}"#
    );
    let now = number * 20;
    inbox.handle(InboxInput::Message { connection: hub, bytes: text.as_bytes() }, now);
    while inbox.poll_notification(now).is_some() {}
    while inbox.poll_log().is_some() {}
}

// covers: I22
#[test]
fn memory_is_flat_over_a_hundred_thousand_events() {
    let mut inbox = Inbox::new(Settings::default(), Bounds::default(), 1_779_632_531_000);
    let hub = inbox.add("hub", 0);
    inbox.handle(InboxInput::AttachedBare { connection: hub }, 0);
    // Until what it remembers is full.
    let warm = 30_000;
    let filled = allocation_counter::measure(|| {
        for number in 0..warm {
            event(number, &mut inbox, hub);
        }
    });
    let rest = allocation_counter::measure(|| {
        for number in warm..warm + 100_000 {
            event(number, &mut inbox, hub);
        }
    });
    println!("filled: {} bytes; grown by {} since", filled.bytes_current, rest.bytes_current);
    assert!(filled.bytes_current < 4 << 20, "{}", filled.bytes_current);
    assert!(rest.bytes_current < 64 << 10, "{}", rest.bytes_current);
}
