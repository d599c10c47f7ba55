//! Requests: announced, heard again, settled.

use std::sync::Arc;

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::{Notification, Request, RequestOutcome};
use aaep_types::DescribedBy;

use crate::listen::talk::stories::{Story, accounted, consent, mild, reply};

// covers: T28, S10
#[test]
fn a_second_request_is_announced_at_once_and_the_first_stays_in_focus() {
    let mut story = Story::new();
    story.asked(mild(1, "Open it")).heard();
    story
        .asked(mild(2, "Close it"))
        .types("n")
        .settled(mild(1, "Open it"), RequestOutcome::Rejected)
        .is("
        [bell: blocked]
        Allow this? “Close it”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 2 waits for you, for 5 minutes.
        Request 2 waits too. Press Tab to go to it.
        > n
        Request 1: no, sent.
        [reply 1: Reject]
        Request 2 still waits.
        Allow this? “Close it”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Request 2 waits for you, for 4 minutes 57 seconds.
        Press y for yes, n for no, d for details, t for more time.
        Request 1: rejected.
    ");
}

#[test]
fn a_request_can_be_heard_again_listed_looked_into_and_spelled() {
    let mut story = Story::new();
    story
        .event("session.started", "Tidying.")
        .asked(mild(1, "Pay \u{430}nn"))
        .asked(mild(2, "B"))
        .heard();
    story.types("r").is("
        > r
        Allow this? “Pay аnn”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Careful: the word “аnn” mixes Cyrillic and Latin letters.
        Request 1 waits for you, for 4 minutes 57 seconds.
        Press y for yes, n for no, d for details, t for more time.
    ");
    story.types("l").is("
        > l
        2 requests wait:
        Request 1, from “Tidy”: “Pay аnn” It waits 4 minutes 56 seconds more. You are here.
        Request 2, from “Tidy”: “B” It waits 4 minutes 56 seconds more.
    ");
    story.types("d").is("
        > d
        Allow this? “Pay аnn”. It can be undone.
        What happens: “You can take it back.” Low risk.
        Careful: the word “аnn” mixes Cyrillic and Latin letters.
        Without an answer it counts as no.
        Request 1 waits for you, for 4 minutes 55 seconds.
        It comes from “Tidy”, whose id is “tidy”.
        Press y for yes, n for no, d for details, t for more time.
    ");
    story.types("c").is("
        > c
        capital P, a, y, space
        а, Cyrillic, U+0430, n, n
        Press y for yes, n for no, d for details, t for more time.
    ");
    story.types("\t").heard();
    assert_eq!(story.types("y").replies(), reply(2, &Answer::Accept));
}

#[test]
fn tab_and_next_go_round_and_a_number_goes_there() {
    let mut story = Story::new();
    for number in 1..=3 {
        story.asked(mild(number, "Go")).heard();
    }
    let at = |story: &mut Story, key: &str| {
        let heard = story.types(key).heard();
        heard.lines().find(|line| line.contains("waits for you")).map(|line| line[..9].to_owned())
    };
    for (key, number) in [("\t", 2), ("\t", 3), ("\t", 1), ("3", 3), ("next", 1), ("j", 2)] {
        assert_eq!(at(&mut story, key), Some(format!("Request {number}")), "{key}");
    }
    story.types("9").is("> 9\nNo request 9 waits for an answer.");
    let mut alone = Story::new();
    alone.asked(mild(7, "Go")).heard();
    alone.types("\t").is("> \\t\nOnly request 7 waits.");
}

// covers: C25, D30
#[test]
fn what_becomes_of_a_request_is_said_as_what_it_is() {
    for (outcome, says) in [
        (RequestOutcome::AcceptedElsewhere, "Request 1 was accepted elsewhere."),
        (RequestOutcome::RejectedElsewhere, "Request 1 was rejected elsewhere."),
        (
            RequestOutcome::TimedOut,
            "Request 1 timed out: nobody answered in time. It counts as no.",
        ),
        (RequestOutcome::Cancelled, "Request 1 was cancelled."),
        (
            RequestOutcome::WrongClock,
            "Request 1: rejected by a device whose clock is wrong. It is not done, and may be asked again.",
        ),
        (RequestOutcome::Gone, "Request 1 no longer waits. Nobody said why."),
    ] {
        let mut story = Story::new();
        story.asked(mild(1, "Go")).heard();
        story.settled(mild(1, "Go"), outcome).is(&format!("{says}\nIt was: “Go”."));
        story.types("y").is("> y\nNothing waits for you.");
    }
}

// covers: C25
#[test]
fn a_request_that_goes_while_an_answer_is_typed_takes_nothing_with_it() {
    let mut story = Story::new();
    story.asked(consent(1, "Go")).types("y").heard();
    story
        .event("progress.updated", "Still tidying.")
        .settled(consent(1, "Go"), RequestOutcome::Cancelled);
    story.types("yes").is("
        Request 1 was cancelled.
        It was: “Go”.
        No answer is needed any more. What you typed was not sent.
        “Still tidying.”
        > yes
        Nothing waits for you.
    ");
}

// covers: D32, C25
#[test]
fn more_time_keeps_the_question_its_number_and_its_focus_and_says_only_the_time() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).asked(mild(2, "Stay")).heard();
    story.types("t").settled(mild(1, "Go"), RequestOutcome::Superseded);
    let mut longer = mild(3, "Go");
    (longer.continues, longer.timeout_seconds) = (Some(1), 600);
    longer.deadline_ms += 600_000;
    story.asked(longer).is("
        > t
        More time was asked for, for request 1.
        [more time for 1: 600]
        Request 1 now waits 14 minutes 57 seconds.
    ");
    assert_eq!(story.types("y").replies(), reply(3, &Answer::Accept));
    let settled = story.settled(mild(3, "Go"), RequestOutcome::Accepted).heard();
    assert!(settled.starts_with("Request 1: accepted."), "{settled}");
}

#[test]
fn that_time_runs_out_is_said_once_with_a_way_to_get_more() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).heard();
    story.after(200).is("");
    story.after(70).after(10).is("
        [bell: waiting]
        Request 1 waits 29 seconds more. Press t for more time.
    ");
}

// covers: I31
#[test]
fn the_hub_says_what_would_run_unasked_where_only_the_agent_describes_something_grave() {
    let mut story = Story::new();
    story.asked(accounted(consent(1, "Save a note about lunch."), DescribedBy::Agent)).is("
        [bell: blocked]
        Allow this? “Save a note about lunch.” It cannot be undone.
        What happens: “It is gone for good.” High risk.
        The hub says: tool “transfer”, “euros: 9001, to: Eve”.
        Request 1 waits for you, for 5 minutes.
        Press y for yes, n for no, d for details, t for more time.
    ");
    // It is said once in the details, too.
    let details = story.types("d").heard();
    assert_eq!(details.matches("The hub says").count(), 1, "{details}");
}

// covers: I31
#[test]
fn elsewhere_details_say_what_would_run_and_what_the_agent_said() {
    let described = Request {
        agent_says: Some("Save a note about lunch.".into()),
        ..accounted(consent(1, "Transfer 9001 euros to \"Eve\""), DescribedBy::Policy)
    };
    let mild = accounted(mild(2, "Look it up"), DescribedBy::Agent);
    let mut story = Story::new();
    let asked = story.asked(described).asked(mild).heard();
    assert!(!asked.contains("The hub says"), "{asked}");
    let details = story.types("d").heard();
    for line in [
        "The hub says: tool “transfer”, “euros: 9001, to: Eve”.",
        "The words of the question are those of your policy.",
        "The agent itself says: “Save a note about lunch.”",
    ] {
        assert!(details.lines().any(|heard| heard.trim() == line), "{details}");
    }
}

// covers: I31, S10, T21
#[test]
fn a_question_that_takes_anothers_place_is_read_and_a_key_that_was_on_its_way_answers_nothing() {
    // Another action in its place: a new question, with its own time to read.
    let mut story = Story::new();
    story.asked(mild(1, "Save a note")).settled(mild(1, "Save a note"), RequestOutcome::Superseded);
    story.heard();
    story.happens(Notification::Asked(Arc::new(accounted(
        consent(2, "Transfer"),
        DescribedBy::Agent,
    ))));
    story.types_at_once("y");
    let heard = story.heard();
    assert!(
        heard.contains("[bell: blocked]") && heard.contains("Allow this? “Transfer”"),
        "{heard}"
    );
    assert!(heard.contains("Not taken: request 2 had only just been said."), "{heard}");
    assert!(!heard.contains("[reply"), "{heard}");
    // The same with more time is the one that was read.
    let mut story = Story::new();
    story.asked(mild(1, "Save a note")).settled(mild(1, "Save a note"), RequestOutcome::Superseded);
    let longer = Request { continues: Some(1), ..mild(2, "Save a note") };
    story.heard();
    story.happens(Notification::Asked(Arc::new(longer))).types_at_once("y");
    let heard = story.heard();
    assert!(!heard.contains("Allow this?") && heard.contains("[reply 2: Accept]"), "{heard}");
}

// covers: D32, C25
#[test]
fn what_is_being_typed_stays_when_a_request_gets_more_time() {
    let mut story = Story::new();
    story.asked(consent(1, "Go")).types("y").heard();
    story.settled(consent(1, "Go"), RequestOutcome::Superseded);
    let longer = Request { continues: Some(1), ..consent(2, "Go") };
    story.happens(Notification::Asked(Arc::new(longer))).types("yes").is("
        Request 1 now waits 4 minutes 58 seconds.
        > yes
        Request 1: yes, sent.
        [reply 2: Accept]
    ");
}

// covers: C25
#[test]
fn a_superseded_request_that_nothing_follows_is_over() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).types("d").heard();
    story.settled(mild(1, "Go"), RequestOutcome::Superseded).is("");
    story.after(1).is("");
    story.after(2).types("y").is("
        Request 1 no longer waits. Nobody said why.
        It was: “Go”.
        > y
        Nothing waits for you.
    ");
}

#[test]
fn what_was_allowed_is_not_said_as_if_it_were_asked_again() {
    let mut story = Story::new();
    story.asked(mild(1, "Save a note")).types("y").heard();
    story.settled(mild(1, "Save a note"), RequestOutcome::Accepted);
    story.event("tool.invoked", "Save a note").event("tool.invoked", "Save a note").is("
        Request 1: accepted.
        It is being done now.
        “Save a note”.
    ");
}

// covers: I31, S10
#[test]
fn a_yes_that_is_being_made_certain_does_not_go_over_to_another_question() {
    let mut story = Story::new();
    story.asked(consent(1, "Delete the build")).types("y").heard();
    story.settled(consent(1, "Delete the build"), RequestOutcome::Superseded);
    let replies = story.asked(consent(2, "Transfer")).types("yes").replies();
    assert!(replies.is_empty(), "{replies:?}");
}

// covers: I31, S10
#[test]
fn a_question_that_takes_the_place_of_another_has_its_own_time_to_be_heard() {
    let mut story = Story::with(|settings| settings.pause_ms = 2_000);
    story.asked(mild(1, "Save a note")).after(60).heard();
    story.settled(mild(1, "Save a note"), RequestOutcome::Superseded);
    let replies = story.asked(mild(2, "Give everything away")).types_at_once("y").replies();
    assert!(replies.is_empty(), "{replies:?}");
    // It was asked two seconds ago, and no longer is new.
    assert_eq!(story.types("n").replies(), reply(2, &Answer::Reject));
}
