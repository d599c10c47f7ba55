//! What waits, what is said once, and what is not said again.

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Notification, RequestOutcome};
use aaep_types::DescribedBy;

use crate::listen::talk::stories::{Story, accounted, consent, mild};

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

// covers: I34
#[test]
fn a_yes_that_waits_for_the_pin_is_not_called_sent_and_chatter_waits_with_it() {
    let needs = || {
        let json = r#"{"extensions":{"presence":{"needs":"pin"}}}"#.into();
        aaep_subscriber::Request { json, ..mild(1, "Go") }
    };
    let mut story = Story::new();
    story.asked(needs()).asked(mild(2, "Come")).heard();
    story.event("state.changed", "Thinking.").types("y").is("> y\n[reply 1: Accept]");
    // Nothing that can wait is said while it is typed.
    story.talk.types_pin(true);
    story.event_of("Tidy", "sess_1", "tool.completed", "A result.").is("");
    story.talk.types_pin(false);
    story.talk.not_answered(1);
    story.heard();
    story.event("progress.updated", "Halfway.").is("");
    story.types("y").is("> y\n[reply 1: Accept]");
    // That its time runs out is said all the same.
    assert!(story.after(280).heard().contains("Request 1 waits"));
    story.talk.was_sent(1, &Answer::Accept);
    let heard = story.after(0).heard();
    assert!(heard.starts_with("Request 1: yes, sent.\nRequest 2 still waits."), "{heard}");
    // A yes that waits for it can be taken back; one that was sent cannot.
    let mut story = Story::new();
    story.asked(needs()).types("y").heard();
    story.named(1, Some(Answer::Reject), false).is("Request 1: no, sent.\n[reply 1: Reject]");
    story
        .named(1, Some(Answer::Reject), false)
        .is("Nothing was sent: you answered request 1 before.");
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

// covers: I31
#[test]
fn a_display_has_the_hubs_account_between_the_risk_and_what_the_agent_says_comes_of_it() {
    let mut story = Story::new();
    story.asked(accounted(consent(1, "Read the mail"), DescribedBy::Agent));
    story.asked(accounted(consent(2, "Read the mail"), DescribedBy::Policy));
    let text = story.talk.on_display(1).unwrap().text;
    let hub =
        "High risk. The hub says: tool “transfer”, “euros: 9001, to: Eve”. “It is gone for good.”";
    assert!(text.ends_with(hub), "{text}");
    // Where the policy describes it, nothing more is said unasked.
    let text = story.talk.on_display(2).unwrap().text;
    assert!(text.ends_with("High risk. “It is gone for good.”"), "{text}");
}
