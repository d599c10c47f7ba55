//! What waits, what is said once, and what is not said again.

use aaep_subscriber::{Notification, RequestOutcome};

use crate::listen::talk::stories::{Story, consent, mild};

#[test]
fn chatter_waits_while_a_request_does_and_only_the_latest_progress_is_said() {
    let mut story = Story::new();
    story.event("session.started", "Tidying.").asked(mild(1, "Go")).heard();
    story.event("progress.updated", "One of three.").event("progress.updated", "Two of three.");
    story.event("state.changed", "Thinking.").text("A sentence.", false);
    story.event_of("Other", "sess_2", "session.completed", "Something else.");
    story.is("[bell: done]\n“Other”: Done. “Something else.”");
    story.types("y").is("
        > y
        Request 1: yes, sent.
        [reply 1: Accept]
        “Thinking.”
        “A sentence.”
        “Two of three.”
    ");
}

#[test]
fn a_request_that_cannot_be_answered_from_here_holds_nothing_back() {
    let mut story = Story::new();
    let connected = Notification::Connected {
        hub: "hub".into(),
        again: false,
        may_reply: false,
        identity: None,
    };
    story.happens(connected).asked(mild(1, "Go")).heard();
    story.event("progress.updated", "Halfway.").is("“Halfway.”");
}

#[test]
fn a_failed_session_is_not_revived_by_a_late_event() {
    let mut story = Story::new();
    story.event("session.started", "Tidying.").event("session.errored", "It broke.");
    story.event("tool.completed", "A tool came back late.").text("Late words.", true).heard();
    story.types("w").is("> w\nNo agent is at work.");
}

#[test]
fn what_can_be_pressed_is_said_the_first_times_and_whenever_it_is_asked_for() {
    let mut story = Story::new();
    let keys = "Press y for yes, n for no, d for details, t for more time.";
    for number in 1..=4 {
        let heard = story.asked(consent(number, "Delete the build")).heard();
        assert_eq!(heard.contains(keys), number <= 3, "{number}: {heard}");
        story.settled(consent(number, "Delete the build"), RequestOutcome::Cancelled).heard();
    }
    story.asked(consent(5, "Delete the build")).heard();
    assert!(!story.types("r").heard().contains(keys));
    assert!(story.types("d").heard().contains(keys));
    story.types("?").heard();
}
