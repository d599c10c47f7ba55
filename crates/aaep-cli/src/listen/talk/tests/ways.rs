//! Whole sessions, stopping, leaving, and a hub that goes away.

use aaep_subscriber::inbox::Answer;
use aaep_subscriber::words::Words;
use aaep_subscriber::{Notification, RequestOutcome};

use crate::listen::talk::stories::{Story, consent, mild, reply};

// covers: T21, T30, T36, C28, C25
#[test]
fn a_whole_session_is_heard_with_the_action_first_and_the_keys_last() {
    Story::new()
        .event("session.started", "Tidying the desk.")
        .asked(consent(1, "Delete old.txt"))
        .types("y")
        .types("yes")
        .settled(consent(1, "Delete old.txt"), RequestOutcome::Accepted)
        .event("session.completed", "The desk is tidy.")
        .is("
            Started: “Tidying the desk.”
            [bell: blocked]
            Allow this? “Delete old.txt”. It cannot be undone.
            What happens: “It is gone for good.” High risk.
            Request 1 waits for you, for 5 minutes.
            Press y for yes, n for no, d for details, t for more time.
            > y
            This cannot be undone, and the risk is high. To be sure: type yes and press Enter. An empty line goes back.
            > yes
            Request 1: yes, sent.
            [reply 1: Accept]
            Request 1: accepted.
            [bell: done]
            Done. “The desk is tidy.”
        ");
}

#[test]
fn an_end_that_only_repeats_what_was_just_said_is_an_end_and_nothing_more() {
    Story::new()
        .event("session.started", "Looking.")
        .event("tool.completed", "Nobody is at home.")
        .event("session.completed", "Nobody is at home.")
        .event_of("Tidy", "sess_2", "tool.completed", "The door is shut.")
        .event("session.completed", "The door is shut.")
        .is("
            Started: “Looking.”
            “Nobody is at home.”
            [bell: done]
            Done.
            “The door is shut.”
            [bell: done]
            Done. “The door is shut.”
        ");
}

#[test]
fn an_agent_is_stopped_only_after_it_was_asked_back() {
    let mut story = Story::new();
    story.event("session.started", "Tidying the desk.").heard();
    story.types("x").types("y").is("
        > x
        Stop “Tidy”? Press x again to stop it; any other key goes back.
        > y
        Nothing was stopped.
    ");
    story.types("x").types("x").is("
        > x
        Stop “Tidy”? Press x again to stop it; any other key goes back.
        > x
        “Tidy” was told to stop.
        [stop sess_1]
    ");
    story.event_of("Cook", "sess_2", "session.started", "Cooking.").heard();
    story.types("x").types("2").types("x").is("
        > x
        Which agent shall be stopped? Press its number; any other key goes back.
        1: “Cook”. “Cook”: Started: “Cooking.”
        2: “Tidy”. Started: “Tidying the desk.”
        > 2
        Stop “Tidy”? Press x again to stop it; any other key goes back.
        > x
        “Tidy” was told to stop.
        [stop sess_1]
    ");
}

#[test]
fn what_agents_do_now_is_told_when_asked() {
    let mut story = Story::new();
    story.types("w").is("> w\nNo agent is at work.");
    story.event("session.started", "Tidying the desk.").asked(mild(1, "Go")).heard();
    story.types("w").is("
        > w
        Started: “Tidying the desk.”
        It waits for your answer to request 1.
    ");
    story.event("session.completed", "Tidy.").heard();
    story.types("w").is("> w\nNo agent is at work.");
}

#[test]
fn leaving_is_asked_back_while_something_waits() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).heard();
    story.types("q").types("y").is("
        > q
        1 request waits. If nobody else listens, it will get no answer from you. Press q again to leave; any other key stays.
        > y
        Still listening.
    ");
    story.types("q").heard();
    story.types("q").is("> q\nGoodbye.\n[ends]");
    Story::new().types("q").is("> q\nGoodbye.\n[ends]");
}

#[test]
fn once_ends_with_the_first_request_or_session() {
    let once = |settings: &mut crate::listen::talk::Settings| settings.once = true;
    let mut story = Story::with(once);
    story.asked(mild(1, "Go")).types("y").settled(mild(1, "Go"), RequestOutcome::Accepted);
    assert!(story.heard().ends_with("[ends]\n"));
    let mut story = Story::with(once);
    story.asked(mild(1, "Go")).settled(mild(1, "Go"), RequestOutcome::TimedOut);
    assert!(story.heard().ends_with("[ends with 1]\n"));
    let mut story = Story::with(once);
    story.event("session.started", "Tidying.").event("session.completed", "Tidy.");
    assert!(story.heard().ends_with("[ends]\n"));
    let mut story = Story::with(once);
    story.event("session.errored", "Broken.");
    assert!(story.heard().ends_with("[ends with 1]\n"));
}

#[test]
fn the_hub_that_goes_and_comes_back_is_told_and_what_waits_still_does() {
    let mut story = Story::new();
    story.asked(mild(1, "Go")).heard();
    let lost = Notification::Lost { hub: "home".into(), why: "it does not answer".into() };
    let again = Notification::Connected {
        hub: "home".into(),
        again: true,
        may_reply: true,
        identity: None,
    };
    let heard = story.happens(lost).happens(again).heard();
    assert_eq!(heard.lines().count(), 4, "{heard}");
    assert!(heard.contains("Start one with") && heard.contains("Press ? for help."), "{heard}");
    assert_eq!(story.types("y").replies(), reply(1, &Answer::Accept));
}

#[test]
fn help_says_so_where_a_machine_wrote_the_words_and_no_speaker_has_read_them() {
    for (language, _) in Words::languages() {
        let words = Words::new(&[language]);
        let mark = words.phrase("by_machine", &[]).to_string();
        let heard = Story::in_language(language, |_| {}).types("?").heard();
        assert_eq!(heard.contains(&mark), words.by_machine(), "{language}: {heard}");
    }
}
